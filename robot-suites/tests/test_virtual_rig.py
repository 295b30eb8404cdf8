"""The rig on a candidate behind SSH: the booted virtual one. Connection, commands that end with the bench, and a whole qualification."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from whole_runs import document

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.line_protocol import points_of
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.rig.base.influx import Influx
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.connection import connection_of
from daq_bench.rig.candidate.hazard_control import hazards_of
from daq_bench.rig.candidate.host import survey
from daq_bench.rig.candidate.lock import MachineLock
from daq_bench.rig.candidate.machine import Machine, SshMachine
from daq_bench.rig.candidate.ssh import SshLink
from daq_bench.rig.run.candidate_session import connected
from daq_bench.rig.telemetry.influx_server import LocalInflux
from daq_bench.virtual_candidate.candidate import VirtualCandidate
from daq_bench.virtual_candidate.testing import fan_readings

pytestmark = pytest.mark.virtual

LAYOUT = Layout()
YAML_SAFE = YAML(typ="safe")
SECRET = "BENCH_VIRTUAL_BMC_PASSWORD"


@pytest.fixture(scope="module")
def inventory(virtual_machine: VirtualCandidate, inventory_of: Callable[..., Path]) -> Path:
    return inventory_of(virtual_machine.instance, lambda candidate: None)


@pytest.fixture(scope="module")
def machine(virtual_machine: VirtualCandidate, inventory: Path) -> Iterator[SshMachine]:
    with connected(inventory, virtual_machine.instance.name, LAYOUT) as found:
        assert isinstance(found, SshMachine)
        yield found


def test_the_candidate_describes_itself(machine: Machine) -> None:
    found = survey(machine, Path("/root"))
    assert found.host.numa_nodes == 2
    nodes = {one.description.serial: one.description.numa_node for one in found.devices}
    assert (nodes["VCXP0001"], nodes["VCNA0002"]) == (0, 1)
    assert found.target is not None
    assert found.target.filesystem == "ext4"
    assert abs(found.clock_s - time.time()) < 30


def test_a_command_gives_back_its_words_and_its_status(machine: Machine, tmp_path: Path) -> None:
    done = machine.run(["sh", "-c", 'echo "$GREETING"; echo bad >&2; exit 7'], 30, env={"GREETING": "it's $HOME"})
    assert (done.returncode, done.stdout, done.stderr) == (7, "it's $HOME\n", "bad\n")
    assert machine.run(["no-such-program"], 30).returncode == 127
    assert isinstance(machine, SshMachine)
    for text in ("one\n", "two\n"):
        machine.append(Path("/tmp/lines"), text)
    machine.fetch(Path("/tmp/lines"), tmp_path / "lines")
    assert (tmp_path / "lines").read_text(encoding="utf-8") == machine.read_text(Path("/tmp/lines")) == "one\ntwo\n"
    machine.remove(Path("/tmp/lines"))
    with pytest.raises(BenchError, match="/tmp/lines cannot be fetched: it is not there"):
        machine.fetch(Path("/tmp/lines"), tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_a_load_on_isolated_cpus_runs_outside_of_the_systems_slices(machine: SshMachine) -> None:
    isolated = SshMachine(machine.link)
    isolated.isolate()
    assert "daq_bench.slice" in isolated.run(["cat", "/proc/self/cgroup"], 30).stdout
    assert "daq_bench.slice" not in machine.run(["cat", "/proc/self/cgroup"], 30).stdout


def running(virtual_machine: VirtualCandidate, seconds: int) -> bool:
    return f"sleep {seconds}" in virtual_machine.run("ps -e -o args=").splitlines()


def wait_for(virtual_machine: VirtualCandidate, seconds: int, there: bool) -> None:
    deadline = time.monotonic() + 120
    while running(virtual_machine, seconds) is not there:
        assert time.monotonic() < deadline, f"`sleep {seconds}` is {'not ' if there else ''}running"
        time.sleep(0.2)


def test_a_command_that_takes_too_long_ends_on_the_candidate(
    machine: Machine, virtual_machine: VirtualCandidate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "hang_s", 3)  # else no command ends before 300 s
    with pytest.raises(BenchError, match="sleep did not end within 3 s on candidate"):
        machine.run(["sleep", "601"], timeout_s=3)
    assert not running(virtual_machine, 601)


def test_a_killed_bench_takes_its_load_with_it(virtual_machine: VirtualCandidate, inventory: Path) -> None:
    code = (
        "from pathlib import Path; from daq_bench.rig.run.candidate_session import connected\n"
        "from daq_bench.rig.base.settings import Layout\n"
        f"with connected(Path({str(inventory)!r}), {virtual_machine.instance.name!r}, Layout()) as machine:\n"
        "    machine.run(['sleep', '602'], 900)\n"
    )
    bench = subprocess.Popen([sys.executable, "-c", code], cwd=LAYOUT.repository / "robot-suites")
    try:
        wait_for(virtual_machine, 602, there=True)
    finally:
        bench.send_signal(signal.SIGKILL)
        bench.wait()
    wait_for(virtual_machine, 602, there=False)


def test_a_lost_connection_is_said_and_a_link_can_be_opened_again(machine: SshMachine, tmp_path: Path) -> None:
    link = SshLink(machine.link.connection, tmp_path / "link")
    link.open()
    port = link.forward_back("127.0.0.1", 9)
    link.close()
    with pytest.raises(BenchError, match=r"the connection to candidate .* was lost"):
        SshLink(replace(link.connection, port=1), tmp_path / "none").run(["true"], 30, ["true"])
    link.ensure()
    assert link.run(["true"], 30, ["true"]).returncode == 0
    listening = link.run(["ss", "--no-header", "--listening", "--tcp", "--numeric"], 30, ["ss"]).stdout
    assert f"127.0.0.1:{port} " in listening
    link.close()


def test_a_killed_master_ends_the_link_and_the_lock_and_nobody_connects_past_it(
    machine: SshMachine, tmp_path: Path
) -> None:
    """ssh would connect anew by itself; the lock on the candidate went with the old connection, and another bench could take it."""
    link = SshLink(machine.link.connection, tmp_path / "link")
    link.open()
    locked = SshMachine(link)
    lock = MachineLock(locked, link.connection.name, "test", 0.0)
    lock.take()
    lock.demand_held()
    assert link._master is not None
    link._master.kill()
    link._master.wait()
    assert link.control.exists()  # nobody was left to remove it
    for ask in (
        lambda: locked.run(["true"], 30),
        lambda: locked.append(Path("/run/never"), "x"),
        lambda: locked.fetch(Path("/etc/hostname"), tmp_path / "hostname"),
    ):
        with pytest.raises(BenchError, match=r"the connection to candidate .* was lost: the bench's own ssh has ended"):
            ask()
    assert lock._holder is not None
    lock._holder.wait(120)
    with pytest.raises(BenchError, match="was lost while the run went on"):
        lock.demand_held()
    link.ensure()
    lock.renew()
    lock.demand_held()
    lock.give_back()
    link.close()


def test_who_cannot_be_reached_is_named_with_the_remedy(inventory: Path, machine: SshMachine, tmp_path: Path) -> None:
    connection = connection_of(inventory, machine.link.connection.name)
    unknown = ("-o", "UserKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=yes")
    identity = connection.options[:4]
    with pytest.raises(BenchError, match=r"(?s)Host key verification failed.*Correct ansible_host"):
        SshLink(replace(connection, options=identity + unknown), tmp_path / "a").open()
    with pytest.raises(BenchError, match="Connection refused"):
        SshLink(replace(connection, port=1), tmp_path / "b").open()


def test_hazards_are_for_emulated_hardware_that_is_up(inventory: Path, virtual_machine: VirtualCandidate) -> None:
    candidate = load_candidate(inventory, virtual_machine.instance.name)
    hazards = hazards_of(candidate, virtual_machine.instance.base)
    before = hazards.in_force()
    hazards.stop_fan("Fan1")
    try:
        assert hazards.in_force() != before
    finally:
        hazards.release_all()
    assert hazards.in_force() == before
    with pytest.raises(BenchError, match="is no virtual candidate"):
        hazards_of(replace(candidate, virtual=False))
    with pytest.raises(BenchError, match="is not up"):
        hazards_of(replace(candidate, name="nemo"), virtual_machine.instance.base)


def rig(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "daq_bench.rig", *words],
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalInflux]:
    made = LocalInflux(LAYOUT.influxd, tmp_path_factory.mktemp("influxdb-virtual"))
    made.start(18486)
    yield made
    made.stop()


def short_profiles(folder: Path) -> tuple[Path, Path]:
    """The shipped scenario without its block scan, and the requirements that then have a metric."""
    scenario = load_scenario(LAYOUT.inventory / "scenarios" / "snb-emulated.yml").document
    scenario |= {"id": "short", "duration_s": 5}
    del scenario["workloads"]["block_scan"]
    requirement = YAML_SAFE.load(LAYOUT.inventory / "requirements" / "dune-snb.yml")
    requirement["id"] = "short-requirement"
    kept = [entry for entry in requirement["requirements"] if not entry["metric"].startswith("block_scan.")]
    requirement["requirements"] = kept
    files = folder / "short.yml", folder / "short-requirement.yml"
    YAML_SAFE.dump(scenario, files[0])
    YAML_SAFE.dump(requirement, files[1])
    return files


@pytest.fixture(scope="module")
def provisioned(virtual_machine: VirtualCandidate, inventory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An inventory whose only target, the RAID 0, was built by `rig provision`."""
    document = YAML_SAFE.load(inventory)
    host = document["all"]["children"]["candidates"]["hosts"][virtual_machine.instance.name]
    del host["bench_candidate"]["targets"]["reference"]
    alone = tmp_path_factory.mktemp("provisioned") / "lab.yml"
    YAML_SAFE.dump(document, alone)
    words = ["--candidate", virtual_machine.instance.name, "--inventory", str(alone)]
    done = rig("provision", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return alone


@pytest.fixture(scope="module")
def qualified(
    virtual_machine: VirtualCandidate, provisioned: Path, server: LocalInflux, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    """A whole run on the RAID 0 of emulated drives, which is provisioned already: (bundle, InfluxDB's URL)."""
    folder = tmp_path_factory.mktemp("virtual-qualify")
    scenario, requirement = short_profiles(folder)
    url = server.running_url()
    assert url is not None
    words = ["--candidate", virtual_machine.instance.name, "--inventory", str(provisioned), "--target", "nand-raid0"]
    words += ["--scenario", str(scenario), "--requirement", str(requirement), "--influx-url", url]
    done = rig("qualify", "--yes", *words, "--runs", str(folder / "runs"))
    bundle = (folder / "runs" / "latest").resolve()
    assert done.returncode == (3 if of_a_busy_host(bundle) else 0), done.stdout + done.stderr
    return bundle, url


def of_a_busy_host(bundle: Path) -> list[str]:
    """Lists what invalidates the run because the emulated CPUs got too little time: gaps of the telemetry, a slow answer of the clock, a
    source that came late. Anything else that invalidates the run is a fault of the bench."""
    invalid = [one for one in document(bundle / "verdict.json")["findings"] if one["invalidates"]]
    slow = ("telemetry/", "facts/clock.json", "results/snb_record.json", "results/sensor_coverage.json")
    assert all(file.startswith(slow) for one in invalid for file in one["evidence"]), invalid
    return [one["text"] for one in invalid]


def works(collector: dict[str, Any]) -> bool:
    """Whether the collector read, and ended without a fault. That a device had no answer yet is a busy host's doing."""
    late = re.fullmatch(r"OSError: no drive answers: (\w+: no answer for \d+ s(; )?)+", collector["detail"] or "")
    return collector["collected_samples"] > 0 and (collector["status"] == "ok" or late is not None)


def count(url: str, measurement: str, field: str, run: str) -> int:
    series = Influx(url).query(f"SELECT count({field}) FROM {measurement} WHERE run = '{run}'")
    return int(series[0]["values"][0][1]) if series else 0


def test_a_run_on_emulated_drives_is_a_rehearsal_that_says_so(qualified: tuple[Path, str]) -> None:
    verdict = document(qualified[0] / "verdict.json")
    rehearsal = not of_a_busy_host(qualified[0])
    assert (verdict["outcome"], verdict["declared_rehearsal"]) == ("INADMISSIBLE", rehearsal)
    assert any(reason.startswith("The candidate is a virtual machine") for reason in verdict["reasons"])
    run = document(qualified[0] / "run.json")
    assert (run["target"]["name"], run["target"]["filesystem"]) == ("nand-raid0", "xfs")
    assert run["target"]["device"]["raid_level"] == "raid0"
    assert sorted(drive["serial"] for drive in run["target"]["drives"]) == ["VCNA0001", "VCNA0002", "VCNA0003"]
    repetition = document(qualified[0] / "results" / "snb_record.json")["repetitions"][0]
    assert repetition["verify"]["status"] == "intact"
    assert (qualified[0] / "report.pdf").stat().st_size > 10_000


def test_a_second_provision_changes_nothing_but_the_agents_arguments(qualified: tuple[Path, str]) -> None:
    """The run provisions again: what it changes is the agent's service, which has this run's id."""
    task, changed = "", set()
    for line in (qualified[0] / "facts" / "ansible-provision-tuning.log").read_text(encoding="utf-8").splitlines():
        if line.startswith("TASK ["):
            task = line.partition("[")[2].partition("]")[0]
        elif line.startswith("changed:"):
            changed.add(task.partition(" : ")[0])
    assert changed == {"telemetry"}


def test_smart_and_ipmi_of_the_candidate_are_in_influxdb(qualified: tuple[Path, str]) -> None:
    bundle, url = qualified
    summary = document(bundle / "telemetry" / "summary.json")
    assert summary["points"]["undelivered"] == 0
    assert summary["workload"]["lines_rejected"] == 0
    for measurement, field in (
        ("smart", "available_spare_percent"),
        ("ipmi_sensor", "speed_rpm"),
        ("ipmi_power", "power_w"),
        ("temperature", "temperature_degc"),
        ("daqwriter", "stored_bytes"),
        ("bench_event", "text"),
    ):
        points = points_of(bundle / "telemetry" / "points.lp", {measurement})
        spooled = sum(1 for point in points if field in point.fields)
        assert spooled > 0, measurement
        assert count(url, measurement, field, bundle.name) == spooled, measurement


def test_the_agents_service_may_read_the_kernels_log(qualified: tuple[Path, str]) -> None:
    """Its unit closes what the agent does not need; a reset of a drive must be seen."""
    bundle, _ = qualified
    collectors = {one["name"]: one for one in document(bundle / "telemetry" / "summary.json")["collectors"]}
    assert works(collectors["kernel_log"]), collectors["kernel_log"]
    assert document(bundle / "facts" / "firmware.json")
    events = document(bundle / "results" / "hardware_events.json")
    assert isinstance(events["summary"]["kernel_messages"], int), events["reasons"]


def test_the_candidate_is_as_it_was(qualified: tuple[Path, str], virtual_machine: VirtualCandidate) -> None:
    assert virtual_machine.run("find /opt /srv /var/lib/daq-storage-bench/runs -mindepth 1").strip() == ""
    assert "daq-bench" not in virtual_machine.run("ls /etc/systemd/system")
    assert " active " not in virtual_machine.run("cat /proc/mdstat")
    assert virtual_machine.run("wipefs --noheadings /dev/nvme*n1").strip() == ""
    assert virtual_machine.run("cat /proc/sys/fs/aio-max-nr").strip() == "65536"
    assert max(fan_readings(virtual_machine.bmc)) < 10000


def test_no_secret_is_in_the_bundle(qualified: tuple[Path, str], virtual_machine: VirtualCandidate) -> None:
    secret = virtual_machine.instance.password_file.read_text(encoding="ascii").strip().encode()
    assert len(secret) >= 8
    for file in qualified[0].rglob("*"):
        assert not file.is_file() or secret not in file.read_bytes(), file
