"""The virtual candidate's configuration, without starting it: command line, BMC's files, apt sources, processes, errors."""

from __future__ import annotations

import gzip
import json
import lzma
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.virtual_candidate import apt_sources, image, instance, processes
from daq_bench.virtual_candidate.bmc import ipmi_config
from daq_bench.virtual_candidate.candidate import VirtualCandidate
from daq_bench.virtual_candidate.cli import main
from daq_bench.virtual_candidate.emulated import qemu
from daq_bench.virtual_candidate.emulated.faults import DriveFaults
from daq_bench.virtual_candidate.files import read_json, write_json
from daq_bench.virtual_candidate.hardware import SENSORS
from daq_bench.virtual_candidate.image import Image
from daq_bench.virtual_candidate.instance import Instance, Ports
from daq_bench.virtual_candidate.vendors import VENDORS


def qemu_words(faults: DriveFaults | None = None, version: tuple[int, int] = (7, 2)) -> list[str]:
    at = Instance(base=Path("/base"), ports=Ports(ssh=22122, system=9724))
    return qemu.command(at, Image(Path("/image")), Path("/base/virtual/root.qcow2"), faults or DriveFaults(), version)


def documents(words: list[str], option: str, **wanted: str) -> list[dict[str, Any]]:
    """The JSON values of an option that carry `wanted`."""
    values = [value for name, value in pairwise(words) if name == option and value.startswith("{")]
    found = [json.loads(value) for value in values]
    return [document for document in found if wanted.items() <= document.items()]


def test_each_drive_sits_in_a_root_port_of_its_own_node() -> None:
    words = qemu_words()
    ports = {port["id"]: port["bus"] for port in documents(words, "-device", driver="pcie-root-port")}
    drives = documents(words, "-device", driver="nvme")
    assert {drive["serial"]: ports[drive["bus"]] for drive in drives} == {
        "VCXP0001": "host0",
        "VCNA0001": "host0",
        "VCNA0002": "host1",
        "VCNA0003": "host1",
    }
    assert {drive["serial"]: drive["logical_block_size"] for drive in drives}["VCXP0001"] == 4096
    assert any("pxb-pcie,id=host1" in word and "numa_node=1" in word for word in words)


def test_every_socket_of_the_machine_is_on_loopback() -> None:
    words = " ".join(qemu_words())
    assert "hostfwd=tcp:127.0.0.1:22122-:22" in words
    assert "restrict=on" in words
    assert "host=127.0.0.1,port=9724,reconnect=1" in words
    assert "reconnect-ms=1000" in " ".join(qemu_words(version=(10, 0)))


def test_drive_faults_are_in_force_from_the_start() -> None:
    faults = DriveFaults(
        throttled={"VCNA0001": 50_000_000},
        pulled=["VCNA0002"],
        failing_writes=["VCNA0003"],
        swapped={"VCXP0001": "VCXP0009"},
    )
    words = qemu_words(faults)
    drives = {drive["serial"]: drive for drive in documents(words, "-device", driver="nvme")}
    assert sorted(drives) == ["VCNA0001", "VCNA0003", "VCXP0009"]
    assert drives["VCNA0001"]["smart_critical_warning"] == qemu.TEMPERATURE_WARNING
    assert drives["VCXP0009"]["smart_critical_warning"] == 0
    assert drives["VCXP0009"]["id"] == "nvme-VCXP0001"
    (group,) = documents(words, "-object", id="limits-VCNA0001")
    assert group["limits"] == {"bps-total": 50_000_000}
    (throttle,) = documents(words, "-blockdev", **{"node-name": "throttle-VCNA0003"})
    assert throttle["file"] == "failing-VCNA0003"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("QEMU emulator version 7.2.22 (Debian 1:7.2)", (7, 2)), ("QEMU emulator version 10.0.2", (10, 0))],
)
def test_qemu_version(text: str, wanted: tuple[int, int]) -> None:
    assert qemu.version(text) == wanted


def test_ipmi_files_agree_on_every_sensor() -> None:
    commands = ipmi_config.emulator_commands(VENDORS["dell"], Path("/sensors"))
    records = ipmi_config.sdr_source()
    for sensor in SENSORS:
        assert f'file "/sensors/{sensor.file}" div={sensor.step}' in commands
        assert f'id_string "{sensor.name}"' in records
    assert " 0x2a2 " in commands  # Dell's number, by which ipmitool tells the vendor
    assert records.count("\nendsdr") == len(SENSORS) + 1


def test_no_reading_exceeds_a_byte() -> None:
    assert all(0 <= sensor.value / sensor.step <= 255 for sensor in SENSORS)


def test_deb822_sources_are_cut_down_to_the_release() -> None:
    text = (
        "Types: deb deb-src\n# a comment\nURIs: http://mirror.example/debian\n"
        "Suites: bookworm bookworm-updates bookworm-backports\nComponents: main\n\n"
        "Types: deb\nURIs: http://other.example\nSuites: nodistro\nComponents: main\n\n"
        "Types: deb\nEnabled: no\nURIs: http://off.example\nSuites: bookworm\nComponents: main\n"
    )
    assert apt_sources.select_deb822(text, "bookworm").splitlines() == [
        "Types: deb",
        "Suites: bookworm bookworm-updates",
        "URIs: http://mirror.example/debian",
        "Components: main",
    ]


def test_one_line_sources_are_cut_down_to_the_release() -> None:
    text = (
        "deb http://mirror.example/debian bookworm main\n# deb http://mirror.example/debian bookworm contrib\n"
        "deb-src http://mirror.example/debian bookworm main\ndeb [trusted=yes] http://x.example third-bookworm main\n"
        "deb [signed-by=/k.gpg] http://mirror.example/security bookworm-security main\n"
    )
    assert apt_sources.select_lines(text, "bookworm").splitlines() == [
        "deb http://mirror.example/debian bookworm main",
        "deb [signed-by=/k.gpg] http://mirror.example/security bookworm-security main",
    ]


def test_apts_proxy_goes_to_the_guests_build() -> None:
    dump = 'Acquire "";\nAcquire::http::Proxy "http://proxy.example:3128";\nAcquire::Languages "none";\n'
    assert apt_sources.proxy_options(dump) == ('Acquire::http::Proxy "http://proxy.example:3128";',)


@pytest.mark.parametrize("compress", [lambda data: lzma.compress(data, lzma.FORMAT_XZ), gzip.compress])
def test_the_kernel_is_found_behind_its_boot_code(compress: Any) -> None:
    elf = b"\x7fELF" + bytes(range(256)) * 40
    # A magic number that only looks like one comes first.
    bz_image = b"MZ" + b"\x1f\x8b\x08 not it" + b"\xfd7zXZ\0 neither" + compress(elf) + b"what follows"
    assert image.unpack_kernel(bz_image) == elf


def test_an_unknown_compression_is_named() -> None:
    with pytest.raises(BenchError, match="compressed in a way"):
        image.unpack_kernel(b"MZ" + bytes(4096))


def test_the_image_is_named_by_what_goes_in() -> None:
    sources = apt_sources.Sources("debian", "bookworm", "Types: deb\n", "", ())
    assert image.digest(sources) == image.digest(sources)
    assert image.digest(sources) != image.digest(replace(sources, codename="trixie"))


def test_an_instance_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    at = Instance(base=tmp_path, name="other", ports=Ports(1, 2, 3, 4), drives_directory=Path("/dev/shm"))
    at.directory.mkdir()
    at.save()
    assert instance.load(at.directory) == at
    assert instance.load(tmp_path / "nothing") is None


def sleeper(record: Path, directory: Path) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-c", "import time; time.sleep(60)"]
    return processes.start(record, argv, directory, directory / "log")


def test_a_recycled_pid_is_never_ended(tmp_path: Path) -> None:
    record = tmp_path / "process.json"
    process = sleeper(record, tmp_path)
    # As if the recorded process had ended, and another one had got its pid.
    write_json(record, {**read_json(record), "started_ticks": 1})
    assert processes.running(record) is None
    assert processes.stop(record) is False
    assert process.poll() is None
    process.kill()
    process.wait()


def test_down_ends_and_removes_what_a_killed_start_has_left(tmp_path: Path) -> None:
    candidate = VirtualCandidate(Instance(base=tmp_path, name="half"))
    directory = candidate.instance.directory
    directory.mkdir()
    candidate.instance.cache.mkdir()
    recorded = sleeper(candidate.instance.record("qemu"), directory)
    unrecorded = sleeper(tmp_path / "elsewhere.json", directory)
    assert candidate.down() is True
    assert [processes.identity_of(process.pid) for process in (recorded, unrecorded)] == [None, None]
    assert not directory.exists()
    assert candidate.down() is False


def test_status_of_what_is_not_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--base", str(tmp_path), "status"]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "virtual", "up": False}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["hazard", "inlet", "--celsius", "50"], "make virtual-up"),
        (["up", "--ssh-port", "9443"], "four different ones"),
        (["up", "--drive-size", "2G"], "--drive-size"),
        (["up", "--memory", "64"], "at least 1024"),
        (["--name", "../x", "up"], "letters, digits"),
    ],
)
def test_a_users_mistake_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["--base", str(tmp_path), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_ended_process_is_not_taken_for_running(tmp_path: Path) -> None:
    record = tmp_path / "process.json"
    process = processes.start(record, ["true"], tmp_path, tmp_path / "log")
    deadline = time.monotonic() + 10
    while processes.running(record) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes.running(record) is None
    process.wait()
