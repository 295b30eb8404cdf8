"""Raw drives of the virtual candidate: what the guard refuses, that nothing starts without it, and a whole steady-state run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from whole_runs import document

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.host import survey
from daq_bench.rig.candidate.load_target import RawDevice
from daq_bench.rig.candidate.machine import SshMachine
from daq_bench.rig.run import preflight
from daq_bench.rig.run.candidate_session import connected
from daq_bench.rig.telemetry.influx_server import LocalInflux
from daq_bench.virtual_candidate import ssh
from daq_bench.virtual_candidate.candidate import VirtualCandidate

pytestmark = pytest.mark.virtual

LAYOUT = Layout()
YAML_SAFE = YAML(typ="safe")
SERIAL = "VCNA0001"
DAQWRITER = Path("/root/daqwriter")  # in the guest, whose only user is root


@pytest.fixture(scope="module")
def inventory(virtual_machine: VirtualCandidate, inventory_of: Callable[..., Path]) -> Path:
    """With one raw drive as its target."""

    def change(candidate: dict[str, Any]) -> None:
        del candidate["bmc"], candidate["targets"], candidate["tuning"]["fan_mode"]
        candidate["target"] = {"kind": "raw-device", "drive_serial": SERIAL, "destroy": True}

    return inventory_of(virtual_machine.instance, change)


@pytest.fixture(scope="module")
def machine(virtual_machine: VirtualCandidate, inventory: Path) -> Iterator[SshMachine]:
    """The candidate, with daqwriter on it, as after provisioning."""
    with connected(inventory, virtual_machine.instance.name, LAYOUT) as found:
        assert isinstance(found, SshMachine)
        at = virtual_machine.instance
        copy = ssh.command(at.ssh, at.ports.ssh, f"cat > {DAQWRITER} && chmod +x {DAQWRITER}")
        with LAYOUT.portable_daqwriter.open("rb") as program:
            subprocess.run(copy, stdin=program, check=True, timeout=600)
        yield found
        found.remove(DAQWRITER)


@pytest.fixture
def node(machine: SshMachine) -> Path:
    path = survey(machine).path_of(SERIAL)
    assert path is not None
    return path


def drive(machine: SshMachine, path: Path, destroy: bool = True) -> RawDevice:
    return RawDevice(machine, SERIAL, path, destroy, DAQWRITER)


def first_bytes(virtual_machine: VirtualCandidate, path: Path) -> str:
    return virtual_machine.run(f"head -c 65536 {path} | sha256sum").split()[0]


def test_without_consent_a_drive_is_refused_and_nothing_starts(
    machine: SshMachine, virtual_machine: VirtualCandidate, node: Path
) -> None:
    before = first_bytes(virtual_machine, node)
    with pytest.raises(BenchError, match=r"there may be data without a known signature; --destroy"):
        drive(machine, node, destroy=False).size_bytes()
    with pytest.raises(RefusedError, match=r"^sh was not started: .*--destroy with the same serial"):
        drive(machine, node, destroy=False).run(["sh", "-c", "touch /tmp/started"], 60)
    assert machine.run(["test", "-e", "/tmp/started"], 30).returncode == 1
    assert first_bytes(virtual_machine, node) == before


def test_a_drive_in_use_is_refused_whatever_the_consent(
    machine: SshMachine, virtual_machine: VirtualCandidate, node: Path
) -> None:
    virtual_machine.run(f"mkfs.ext4 -q {node} && mkdir -p /mnt/used && mount {node} /mnt/used")
    try:
        with pytest.raises(BenchError, match=rf"mounted: {node} on /mnt/used; unmount it"):
            drive(machine, node).size_bytes()
        with pytest.raises(RefusedError, match=r"fio was not started: .*mounted: .* on /mnt/used"):
            drive(machine, node).run(["fio", "--version"], 60)
    finally:
        virtual_machine.run("umount /mnt/used && rmdir /mnt/used")
    # unmounted, it still carries a file system: lost only with consent
    with pytest.raises(BenchError, match=r"carries a signature \(ext4 filesystem\)"):
        drive(machine, node, destroy=False).size_bytes()
    assert drive(machine, node).release()["signatures_before"] == ["ext4"]
    assert virtual_machine.run(f"wipefs --noheadings {node}").strip() == ""


def test_a_member_of_a_set_is_refused_whatever_the_consent(
    machine: SshMachine, virtual_machine: VirtualCandidate, node: Path
) -> None:
    virtual_machine.run(f"mdadm --create /dev/md/h --level=1 --raid-devices=2 --force --run {node} missing")
    try:
        with pytest.raises(BenchError, match=r"in use by md\w+ \(RAID"):
            drive(machine, node).size_bytes()
        virtual_machine.run("mdadm --stop --scan")
        with pytest.raises(BenchError, match=r"belongs to a set of drives: \w+ \(linux_raid_member\)"):
            drive(machine, node).size_bytes()
    finally:
        virtual_machine.run(f"mdadm --stop --scan; mdadm --zero-superblock {node}")


def test_the_claim_lasts_as_long_as_the_command(machine: SshMachine, node: Path) -> None:
    """While the guarded command runs nobody can mount or format the drive; afterwards it is free again."""
    tried = ["sh", "-c", f"mkfs.ext4 -q {node} 2>&1; echo status $?"]
    done = drive(machine, node).run(tried, 120)
    assert "apparently in use by the system" in done.stdout, done.stdout
    assert "status 0" not in done.stdout
    assert drive(machine, node).size_bytes() > 0


def test_before_provisioning_the_guard_is_lent_to_the_candidate(
    machine: SshMachine, virtual_machine: VirtualCandidate, node: Path
) -> None:
    """No daqwriter is there yet: ours runs from memory, refuses as ever, and leaves nothing behind."""
    lent = RawDevice(machine, SERIAL, node, True, LAYOUT.portable_daqwriter)
    assert lent.size_bytes(machine.run_from_here) == drive(machine, node).size_bytes()
    with pytest.raises(RefusedError, match=r"--destroy with the same serial"):
        replace(lent, destroy=False).size_bytes(machine.run_from_here)
    # A slow line is no hang: the short limit of a question does not end it.
    assert lent.size_bytes(lambda argv, _: machine.run_from_here(argv, 0.1)) > 0
    assert "daqwriter" not in virtual_machine.run("ls -A /tmp /run")


def test_a_purged_drive_reads_as_zeros(machine: SshMachine, virtual_machine: VirtualCandidate, node: Path) -> None:
    virtual_machine.run(f"dd if=/dev/urandom of={node} bs=1M count=64 oflag=direct status=none")
    for method in ("discard", "format"):
        found = drive(machine, node).purge(method)
        assert (found["zero_share"], found["samples"]) == (1.0, 64), method


def test_an_unknown_serial_is_answered_with_the_drives_that_are_there(machine: SshMachine, inventory: Path) -> None:
    candidate = load_candidate(inventory, machine.link.connection.name)
    wrong = replace(candidate, target=replace(candidate.target, drive_serial="VCNA9999"))
    with pytest.raises(
        RefusedError, match=r"has no drive with the serial VCNA9999; it has: .*VCNA0001.*Correct drive_serial"
    ):
        preflight.raw_path(wrong, survey(machine))


def test_a_drive_that_is_too_small_is_refused_with_the_arithmetic(node: Path) -> None:
    scenario = load_scenario(LAYOUT.inventory / "scenarios" / "snb-120s.yml")
    with pytest.raises(RefusedError) as caught:
        preflight.check_space(scenario, node, 10**9, reserve=0)
    assert "x 120 s = 1.109 TB (1109145600000 B), against a drive of 1 GB (1000000000 B). Nothing was written" in str(
        caught.value
    )


def rig(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "daq_bench.rig", *words], capture_output=True, text=True, timeout=2400, check=False
    )


def scenario_with_a_record(folder: Path) -> Path:
    """The shipped scenario, and before it a short record in both conditions."""
    scenario = load_scenario(LAYOUT.inventory / "scenarios" / "steady-state-emulated.yml").document
    record = load_scenario(LAYOUT.inventory / "scenarios" / "snb-emulated.yml").document["workloads"]["snb_record"]
    record["conditions"] = ["fresh", "preconditioned"]
    scenario |= {"id": "raw-drive", "duration_s": 3, "workloads": {"snb_record": record, **scenario["workloads"]}}
    file = folder / "raw-drive.yml"
    YAML_SAFE.dump(scenario, file)
    return file


@pytest.fixture(scope="module")
def qualified(virtual_machine: VirtualCandidate, inventory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run on the raw drive; its bundle."""
    folder = tmp_path_factory.mktemp("raw-qualify")
    runs, server = folder / "runs", LocalInflux(LAYOUT.influxd, folder / "influxdb")
    words = ["--candidate", virtual_machine.instance.name, "--inventory", str(inventory), "--runs", str(runs)]
    words += [
        "--scenario",
        str(scenario_with_a_record(folder)),
        "--requirement",
        "steady-state",
        "--influx-url",
        server.start(18487),
    ]
    try:
        done = rig("qualify", "--yes", *words)
    finally:
        server.stop()
    assert (runs / "latest" / "verdict.json").exists(), done.stdout + done.stderr
    return (runs / "latest").resolve()


@pytest.mark.campaign
def test_the_drive_is_purged_preconditioned_and_watched_in_rounds(qualified: Path) -> None:
    run, result = document(qualified / "run.json"), document(qualified / "results" / "steady_state.json")
    assert (run["state"], run["target"]["kind"], run["target"]["filesystem"]) == ("finished", "raw-device", None), run[
        "state_reason"
    ]
    assert [one["serial"] for one in run["target"]["drives"]] == [SERIAL]
    assert [test["name"] for test in result["tests"]] == ["throughput-128kib", "iops", "latency", "jesd219"]
    for test in result["tests"]:
        conditioning = test["conditioning"]
        assert (conditioning["purge"]["method"], conditioning["purge"]["zero_share"]) == ("format", 1.0)
        assert conditioning["preconditioning"]["bytes_written"] == 2 * result["span_bytes"]
        assert 5 <= len(test["rounds"]) <= result["rounds_max"]
        # the drive's own counter saw what fio says it wrote
        for one in test["rounds"]:
            written = sum(point["write"]["bytes"] for point in one["points"] if point["write"])
            assert one["device_bytes_written"] >= 0.95 * written
    verdict = document(qualified / "verdict.json")
    assert verdict["outcome"] in ("INADMISSIBLE", "FAIL")
    assert any(finding["text"].startswith("Steady state is sought on 256 MiB") for finding in verdict["findings"])


@pytest.mark.campaign
def test_the_record_is_made_on_the_fresh_and_on_the_preconditioned_drive(qualified: Path) -> None:
    result = document(qualified / "results" / "snb_record.json")
    assert [one["condition"] for one in result["repetitions"]] == ["fresh", "preconditioned"]
    assert [one["verify"]["status"] for one in result["repetitions"]] == ["intact", "intact"]
    assert {one["minidaq"]["parameters"]["target_kind"] for one in result["repetitions"]} == {"raw-device"}
    fresh, preconditioned = result["conditioning"]
    assert (fresh["preconditioning"], fresh["purge"]["zero_share"]) == (None, 1.0)
    assert preconditioned["preconditioning"]["bytes_written"] >= 2 * (preconditioned["capacity_bytes"] - 2**17)
    assert result["limits"] == []


@pytest.mark.campaign
def test_a_test_that_is_not_steady_has_no_figures(qualified: Path) -> None:
    result = document(qualified / "results" / "steady_state.json")
    for test, metric in (("iops", "random_write_4kib"), ("jesd219", "jesd219_iops")):
        steady = next(one["steady"] for one in result["tests"] if one["name"] == test)
        assert (result["summary"][metric] is not None) == steady
        assert (f"steady_state.{metric}" in result["reasons"]) != steady


@pytest.mark.campaign
def test_the_drive_is_given_back_without_a_signature(
    qualified: Path, virtual_machine: VirtualCandidate, node: Path
) -> None:
    assert document(qualified / "facts" / "raw-device-released.json")["path"] == str(node)
    assert virtual_machine.run(f"wipefs --noheadings {node}").strip() == ""
    assert virtual_machine.run(f"head -c 1048576 {node} | tr -d '\\0' | wc -c").strip() == "0"
    assert virtual_machine.run("find /opt /var/lib/daq-storage-bench/runs -mindepth 1").strip() == ""


@pytest.mark.campaign
def test_the_bundle_gives_the_same_verdict_again(qualified: Path) -> None:
    done = rig("check-bundle", str(qualified))
    assert done.returncode == 0, done.stdout + done.stderr
