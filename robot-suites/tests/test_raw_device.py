"""A raw drive behind `daqwriter guard`: the real daqwriter and a real loop device, whose serial only this test's mount namespace shows.

What the guard refuses is tried in native-writer/tests (guard_test.cpp, interlock_test.cpp); a whole run in test_virtual_raw.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.documents.results import WearExperiment
from daq_bench.bench_model.documents.run import Drive
from daq_bench.bench_model.evidence.target_failures import PURGE_FAILURE, failure_of, sentence
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.shell import Completed
from daq_bench.rig.candidate.journal import Answers, Recording, Replay, read_journal, recorded
from daq_bench.rig.candidate.load_target import CAUTION, RawDevice
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.workloads import block_scan, latency_under_load, minidaq_scan, read_scan, saturation, thread_scan
from daq_bench.rig.workloads.shared.conditioning import PRECONDITIONED, Conditioner
from daq_bench.rig.workloads.shared.fio_job import JobFiles
from daq_bench.rig.workloads.shared.site import Site
from daq_bench.rig.workloads.shared.target_failure import UnpurgedError, failure_behind
from daq_bench.rig.workloads.shared.wear_account import Worn
from daq_bench.rig.workloads.shared.wear_ledger import WearLedger
from daq_bench.rig.workloads.steady_state import workload as steady_state

LAYOUT = Layout()
SIZE, MIB = 16 * 2**20, 2**20
MARK = bytes(range(1, 256)) * 257 + b"\1"  # 64 KiB that no tool writes
with_loop = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/loop-control").exists(), reason="needs root and loop devices"
)


class InNamespace(LocalMachine):
    """This machine, where udev says that the loop device is a drive with a serial."""

    def __init__(self, loop: str) -> None:
        super().__init__(LAYOUT)
        number = Path(f"/sys/class/block/{Path(loop).name}/dev").read_text(encoding="ascii").strip()
        show = f"mount -t tmpfs none /run && mkdir -p /run/udev/data && echo E:ID_SERIAL_SHORT=L1 > /run/udev/data/b{number}"
        self.prefix = ("unshare", "--mount", "--", "sh", "-c", f'{show} && exec "$@"', "sh")


class WithCounts(InNamespace):
    """A drive with a health log that counts what the kernel counts."""

    def __init__(self, loop: str) -> None:
        super().__init__(loop)
        self.written_bytes = lambda: 512 * int(Path(f"/sys/block/{Path(loop).name}/stat").read_text().split()[6])

    def call(self, program: str, *arguments: str | Path, timeout_s: float = 120.0) -> Any:
        assert program == "drive_wear"
        counts = {"counter": "nvme", "written_bytes": self.written_bytes(), "step_bytes": 512, "nand_bytes": None}
        return {"boot_id": "boot-1", "drives": [{"name": "nvme0n1", **counts}]}


class KeepsData(WithCounts):
    """A drive that takes a discard and keeps its data: the purge's ioctl is a flush (BLKFLSBUF)."""

    def run(self, argv: Sequence[str | Path], timeout_s: float, env: Mapping[str, str] | None = None) -> Completed:
        words = [
            str(word).replace(
                "BLKDISCARD, BLKRRPART, BLKGETSIZE64 = 0x1277", "BLKDISCARD, BLKRRPART, BLKGETSIZE64 = 0x1261"
            )
            for word in argv
        ]
        assert ("purge" in words) == (words != [*map(str, argv)])
        return super().run(words, timeout_s, env)


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[str]:
    file = tmp_path / "drive"
    file.write_bytes(os.urandom(SIZE))
    path = subprocess.run(
        ["losetup", "--find", "--show", str(file)], check=True, capture_output=True, text=True
    ).stdout.strip()
    yield path
    subprocess.run(["losetup", "--detach", path], check=True)


def drive(loop: str, serial: str = "L1", destroy: bool = True) -> RawDevice:
    return RawDevice(InNamespace(loop), serial, Path(loop), destroy, LAYOUT.daqwriter)


@with_loop
def test_a_command_runs_under_the_claim_and_its_exit_status_is_its_own(loop: str) -> None:
    assert drive(loop).size_bytes() == SIZE
    tried = drive(loop).run(["sh", "-c", f"mkfs.ext4 -q -F {loop}; exit 2"], 60)
    assert tried.returncode == 2, "no refusal of the guard"
    assert "apparently in use by the system" in tried.stderr
    assert tried.argv[0] == "sh"


@with_loop
def test_another_serial_or_no_consent_starts_nothing(loop: str, tmp_path: Path) -> None:
    for wrong, said in ((drive(loop, "L2"), "is another drive than"), (drive(loop, destroy=False), "--destroy with")):
        with pytest.raises(RefusedError, match=rf"^touch was not started: daqwriter: .*{said}"):
            wrong.run(["touch", tmp_path / "started"], 60)
        with pytest.raises(RefusedError, match="was not started"):
            wrong.purge("discard")
    assert not (tmp_path / "started").exists()


@with_loop
def test_a_drive_is_purged_and_given_back_without_a_signature(loop: str) -> None:
    found = drive(loop).purge("discard")
    assert (found["tool"], found["zero_share"], found["size_bytes"]) == ("BLKDISCARD", 1.0, SIZE)
    subprocess.run(["mkfs.ext4", "-q", "-F", loop], check=True)
    given = drive(loop).release()
    assert (given["path"], given["signatures_before"]) == (loop, ["ext4"])
    assert subprocess.run(["wipefs", "--noheadings", loop], check=True, capture_output=True).stdout == b""


@with_loop
def test_zeros_that_were_there_before_are_no_purge(loop: str) -> None:
    """A new drive reads zeros whatever a discard does to it."""
    subprocess.run(["blkdiscard", "--zeroout", loop], check=True)
    assert replace(drive(loop), machine=KeepsData(loop)).purge("discard")["zero_share"] == 0.0
    assert drive(loop).purge("discard")["zero_share"] == 1.0


def test_what_daqwriter_could_not_see_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container daqwriter says so on every start; a command that then ends with 2 was started all the same."""
    source = (LAYOUT.repository / "native-writer/src/cli/cli.cpp").read_text(encoding="utf-8")
    assert CAUTION in source
    machine = LocalMachine(LAYOUT)
    said = Completed((), 2, "", f"daqwriter: /dev/x: {CAUTION}: processes of other users are hidden\nfio: bad\n")
    monkeypatch.setattr(machine, "run", lambda argv, timeout_s: said)
    raw = RawDevice(machine, "L1", Path("/dev/x"), True, LAYOUT.daqwriter)
    assert raw.run(["fio"], 9).returncode == 2


def test_nothing_is_done_to_a_drive_that_is_not_claimed(tmp_path: Path) -> None:
    file = tmp_path / "drive"
    file.write_bytes(b"data")
    with file.open("rb+") as other:
        for claim in ({}, {"DAQWRITER_CLAIM": str(other.fileno())}, {"DAQWRITER_CLAIM": "999"}):
            argv = [*LocalMachine(LAYOUT).program("raw_device", "release", "S1", file)]
            environment = {key: text for key, text in os.environ.items() if key != "DAQWRITER_CLAIM"} | claim
            done = subprocess.run(
                argv, env=environment, pass_fds=[other.fileno()], check=True, capture_output=True, text=True
            )
            assert "claimed" in json.loads(done.stdout)["error"]
    assert file.read_bytes() == b"data"


@with_loop
@pytest.mark.parametrize("answer", ["", "{}", '{"blockdevices": [{"path": "/dev/x"}]}', "lsblk: unknown column"])
def test_a_drive_is_not_formatted_by_an_answer_that_is_no_list(
    answer: str, loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its namespaces are counted in lsblk's list."""
    (tmp_path / "lsblk").write_text(f"#!/bin/sh\necho '{answer}'\n", encoding="utf-8")
    (tmp_path / "lsblk").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(
        BenchError, match=r"drive L1: lsblk's list of drives cannot be read .* util-linux 2\.34 or newer"
    ):
        drive(loop).purge("format")


def test_a_program_of_ours_runs_from_memory_and_leaves_nothing() -> None:
    argv = LocalMachine(LAYOUT).program("from_memory", "daqwriter", "--version")
    done = subprocess.run(argv, input=LAYOUT.daqwriter.read_bytes(), check=True, capture_output=True)
    assert done.stdout.startswith(b"daqwriter ")
    broken = subprocess.run(argv, input=b"\x7fELFnot", check=False, capture_output=True)
    assert (broken.returncode, b"daqwriter cannot run on this machine" in broken.stderr) == (1, True)


@with_loop
def test_what_a_guarded_program_said_is_told_again_from_the_journal(loop: str, tmp_path: Path) -> None:
    def asked(machine: Any) -> Any:
        raw = RawDevice(machine, "L1", Path(loop), True, Path(LAYOUT.daqwriter))
        return raw.size_bytes(), raw.purge("discard"), raw.run(["true"], 30).returncode

    with recorded(InNamespace(loop), tmp_path, "w") as machine:
        assert isinstance(machine, Recording)
        told = asked(machine)
    lines = read_journal(tmp_path, "w")
    assert lines is not None
    assert sys.executable not in json.dumps(lines), "our program's text is no evidence"
    assert asked(Replay(Answers(lines[1:-1], tmp_path), local=True)) == told


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A drive of 256 MiB, of which a scan may write its own region only."""
    file = tmp_path / "drive"
    file.write_bytes(MARK * (256 * MIB // len(MARK)))
    words = ["losetup", "--find", "--show", "--direct-io=on", str(file)]
    path = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    try:
        for name in ("work", "raw"):
            (tmp_path / name).mkdir()
        raw = drive(path)
        scratch, device = Path(path).parent, Path(path).name
        yield Site(raw.machine, LAYOUT.daqwriter, scratch, tmp_path / "work", tmp_path / "raw", device, raw)
    finally:
        subprocess.run(["losetup", "--detach", path], check=True)


SHORT = {"seconds_per_point": 1, "ramp_s": 0, "io_depth": 2, "file_size": 32 * MIB}


def announce(*phase: Any) -> None:
    """No progress display in these tests."""


def untouched_from(tmp_path: Path, offset: int) -> bool:
    """Says whether the drive still holds, from `offset` on, what it held before."""
    with (tmp_path / "drive").open("rb") as file:
        file.seek(offset)
        return all(file.read(len(MARK)) == MARK for _ in range(offset, 256 * MIB, len(MARK)))


@with_loop
def test_fio_and_daqwriter_scan_a_bounded_region_of_a_raw_drive(site: Site, tmp_path: Path) -> None:
    own = {**SHORT, "tools": ["fio", "daqwriter"], "block_sizes": [MIB, 8 * MIB]}
    scan = block_scan.run_tools(site, own, announce)
    for one in (scan, *scan["others"]):
        assert [point["reason"] for point in one["points"]] == [None, None], one["tool"]
        assert all(point["device_bytes_written"] >= 0.95 * point["bytes_written"] for point in one["points"])
    threads = {**SHORT, "tools": ["fio", "daqwriter"], "threads": [2], "block_sizes": [MIB]}
    for one in thread_scan.run_thread_scan(site, threads, announce)["scans"]:
        assert [point["reason"] for point in one["points"]] == [None], one["tool"]
    assert untouched_from(tmp_path, 32 * MIB)


@with_loop
def test_a_raw_drive_is_read(site: Site, tmp_path: Path) -> None:
    keys = {"tools": ["fio", "daqwriter"], "patterns": ["random"], "block_sizes": [MIB], "io_depths": [2], "jobs": [1]}
    scenario = SimpleNamespace(workloads={"read_scan": {**SHORT, **keys}}, repetitions=1)
    with patch.object(read_scan.Site, "of", lambda context: site):
        scan = read_scan.run(SimpleNamespace(scenario=scenario), announce)  # type: ignore[arg-type]
    assert [point["reason"] for one in scan["scans"] for point in one["points"]] == [None, None]
    assert untouched_from(tmp_path, 32 * MIB)


@with_loop
def test_minidaq_records_go_to_a_raw_drive(site: Site, tmp_path: Path) -> None:
    links = {"links": 2, "superchunk_bytes": 5568, "superchunk_rate_hz": 166000, "ring_size": 4 * MIB}
    writer = {"block_size": MIB, "io_depth": 2, "checksum": "crc32"}
    loads = {**links, **writer, "load_factors": [1.0], "seconds_per_point": 1}
    found = latency_under_load.run_ladder(site, loads, 0.01, 1, announce)
    assert [one["offered"] == one["stored"] + one["lost"] > 0 for one in found["points"]] == [True]
    requests = {"applications": 2, "request_sizes": [MIB], "seconds_per_trial": 0.5, "search_resolution": 0.5}
    own = {**links, **writer, **requests, "seconds_per_point": 1, "synthetic_threads": 2}
    (point,) = minidaq_scan.run_minidaq_scan(site, minidaq_scan.Load(own, 0.01), 1, 1, announce)["points"]
    assert point["synthetic"]["reason"] is None
    assert point["search"]["trials"] >= 1


@with_loop
def test_a_scan_of_another_drive_or_without_consent_writes_nothing(site: Site, tmp_path: Path) -> None:
    own = {**SHORT, "block_sizes": [MIB]}
    assert site.drive is not None
    other, unwilling = replace(site.drive, serial="L2"), replace(site.drive, destroy=False)
    for spoilt in (other, unwilling):
        with pytest.raises(RefusedError, match=r"^fio was not started"):
            block_scan.run_tools(replace(site, drive=spoilt), own, announce)
    links = {"links": 1, "superchunk_bytes": 5568, "superchunk_rate_hz": 1000, "ring_size": MIB}
    writer = {"block_size": MIB, "io_depth": 1, "checksum": "off", "load_factors": [1.0], "seconds_per_point": 1}
    with pytest.raises(BenchError, match="another drive than"):
        latency_under_load.run_ladder(replace(site, drive=other), {**links, **writer}, 1.0, 1, announce)
    assert untouched_from(tmp_path, 0)


Kind = Callable[[str], WithCounts]


def saturation_of(site: Site, kind: Kind, tmp_path: Path) -> tuple[saturation.SaturationPlan, WearLedger]:
    """Three passes of 32 MiB over the loop device."""
    machine = kind(f"/dev/{site.device}")
    raw = RawDevice(machine, "L1", Path(f"/dev/{site.device}"), True, LAYOUT.daqwriter)
    own = {
        "span_size": 32 * MIB,
        "block_size": MIB,
        "io_depth": 2,
        "sample_s": 0.01,
        "purge": "discard",
        "cliff_free_size": MIB,
    }
    known = Drive("nvme0n1", "Drive", "L1", "1", 256 * MIB, 0, False, "nvme", None)
    experiment = WearExperiment("raw-test", "saturation", "", ("L1",))
    there = replace(site, machine=machine, drive=raw)
    worn = Worn("saturation", (known,), 1, experiment)
    return (
        saturation.SaturationPlan({**own, "write_budget": 10**9}, 3, 1, raw, there, worn, True, tmp_path / "raw/workload.lp", {"run": "r"}),
        WearLedger(tmp_path / "account.json", experiment, 10**9, "run-1", []),
    )  # fmt: skip


@with_loop
def test_a_drive_that_reads_zeros_after_its_purge_is_written_full(site: Site, tmp_path: Path) -> None:
    plan, ledger = saturation_of(site, WithCounts, tmp_path)
    found = saturation.run_saturation(plan.site.machine, plan, ledger, announce, lambda document: None)
    assert [(one["written_bytes"], one["conditioning"]["purge"]["zero_share"]) for one in found["repetitions"]] == [
        (32 * MIB, 1.0)
    ] * 3
    assert [one["reason"] for one in found["repetitions"]] == [None] * 3


@with_loop
def test_a_drive_that_keeps_its_data_ends_the_saturation_behind_its_first_purge(site: Site, tmp_path: Path) -> None:
    plan, ledger = saturation_of(site, KeepsData, tmp_path)
    machine = plan.site.machine
    assert isinstance(machine, KeepsData)
    before = machine.written_bytes()
    with pytest.raises(
        UnpurgedError, match=r"^saturation-1: After the purge \(discard\) 0% of the sampled places"
    ) as caught:
        saturation.run_saturation(machine, plan, ledger, announce, lambda document: None)
    assert machine.written_bytes() - before <= MIB, "a mark in each sampled place"
    assert ledger.entries == [], "nothing is charged to the write budget"
    failure = failure_of({PURGE_FAILURE: caught.value.document("saturation")})
    assert failure is not None
    for part in ("drive L1", "0% of the sampled places read as zeros", "Set workloads.saturation.purge: format"):
        assert part in sentence(failure)
    assert failure_behind(caught.value) is caught.value


@with_loop
def test_a_drive_that_keeps_its_data_is_not_preconditioned_for_the_steady_state(site: Site, tmp_path: Path) -> None:
    plan, _ = saturation_of(site, KeepsData, tmp_path)
    machine = plan.site.machine
    assert isinstance(machine, KeepsData)
    jobs = JobFiles(machine, tmp_path / "work", tmp_path / "raw")
    own = {"span_size": 32 * MIB, "purge": "discard", "rounds_max": 5, "seconds_per_point": 1}
    own |= {"iops": {"transfer_sizes": [4096], "read_percents": [0], "io_depth": 1, "threads": 1}}
    steady = steady_state.SteadyPlan(own, 1, plan.target, site.device, 256 * MIB, jobs)
    before = machine.written_bytes()
    with pytest.raises(UnpurgedError, match=r"^steady-iops: After the purge"):
        steady_state.run_steady_state(machine, steady, announce)
    assert machine.written_bytes() - before <= MIB
    # The record takes the worse of two conditions: there a purge that failed is a remark.
    conditioner = Conditioner(
        plan.target, 16 * MIB, 256 * MIB, "discard", jobs, lambda text, seconds: None, judged=True
    )
    conditioning = conditioner.bring_to(PRECONDITIONED, "record-1")
    assert (conditioning["purge"]["zero_share"], conditioning["limits"]) == (0.0, [])
    assert conditioning["preconditioning"]["bytes_written"] == 32 * MIB
