"""The agent's device collectors with the real tools on the virtual candidate: its emulated drives, and its BMC in band and from here."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from daq_bench.bench_model.bundle.line_protocol import Point, points_of
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.machine import SshMachine
from daq_bench.rig.telemetry.influx_server import LocalInflux
from daq_bench.virtual_candidate.candidate import VirtualCandidate

sys.path.insert(0, str(Path(__file__).parent))
from test_virtual_rig import (
    count,
    document,
    inventory,
    machine,
    of_a_busy_host,
    provisioned,
    rig,
    server,
    short_profiles,
    works,
)

__all__ = ["inventory", "machine", "provisioned", "server"]  # fixtures, for pytest to find

pytestmark = pytest.mark.virtual

LAYOUT = Layout()
YAML_SAFE = YAML(typ="safe")
PLACE = Path("/tmp/agent-under-test")
WATCHED_S = 45  # four samples of the drives, and a BMC that is read in band by an emulated processor
DRIVES = {"VCXP0001", "VCNA0001", "VCNA0002", "VCNA0003"}


@pytest.fixture(scope="module")
def watched(machine: SshMachine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the agent's files after 45 s on the candidate: points.lp and summary.json."""
    folder = tmp_path_factory.mktemp("watched")
    machine.run(["mkdir", "--parents", PLACE], 30).check("making a folder")
    packed = base64.b64encode(LAYOUT.agent.read_bytes()).decode("ascii")
    machine.link.feed(["sh", "-c", 'base64 --decode > "$0"', str(PLACE / "agent.pyz")], packed.encode()).check(
        "sending the agent"
    )
    words = ["timeout", "--signal=TERM", "--preserve-status", str(WATCHED_S), "python3", PLACE / "agent.pyz", "run"]
    words += [f"--spool-dir={PLACE}/spool", "--no-influx", "--collectors=smart,ipmi"]
    machine.run(words, WATCHED_S + 90).check("running the agent")
    for name in ("points.lp", "summary.json"):
        machine.fetch(PLACE / "spool" / name, folder / name)
    machine.run(["rm", "-r", "--", PLACE], 30).check("clearing up")
    return folder


def points(folder: Path, measurement: str) -> list[Point]:
    return list(points_of(folder / "points.lp", {measurement}))


def test_the_real_tools_answer_for_every_emulated_drive(watched: Path) -> None:
    found = points(watched, "smart")
    assert {point.tags["serial"] for point in found} >= DRIVES
    last = {point.tags["serial"]: point.fields for point in found}
    for serial in DRIVES:
        assert last[serial]["passed"] is True, serial
        assert last[serial]["available_spare_percent"] == 0  # QEMU leaves that byte empty
        assert last[serial]["available_spare_threshold_percent"] >= 0
        assert last[serial]["thermal_management_1_transitions"] == 0
        assert "nand_written_bytes" not in last[serial], "QEMU's drives have no OCP page"
    collectors = {one["name"]: one for one in document(watched / "summary.json")["collectors"]}
    assert works(collectors["smart"]), collectors["smart"]


def test_the_drives_own_limits_are_those_of_identify_controller(watched: Path) -> None:
    """QEMU states WCTEMP 343 K and CCTEMP 373 K."""
    composite = [point for point in points(watched, "smart_temperature") if point.tags["sensor"] == "composite"]
    assert {point.tags["serial"] for point in composite} >= DRIVES
    assert {(point.fields["warning_degc"], point.fields["critical_degc"]) for point in composite} == {(70.0, 100.0)}


def test_asking_leaves_no_trail_in_the_drives_error_log(watched: Path) -> None:
    """A page that a drive has not is asked for once at most, in the first sample."""
    entries: dict[str, list[int]] = {}
    for point in points(watched, "smart"):
        entries.setdefault(point.tags["serial"], []).append(int(point.fields["error_log_entries"]))
    for serial in DRIVES:
        assert len(set(entries[serial][1:])) == 1, (serial, entries[serial])


def test_every_drive_answers(watched: Path) -> None:
    """Now and then later than the agent waits, since every CPU is emulated."""
    queries = [point for point in points(watched, "smart_query") if point.tags["device"].startswith("nvme")]
    answered = {point.tags["device"] for point in queries if point.fields["answered"]}
    assert len(answered) == len(DRIVES)
    assert answered == {point.tags["device"] for point in queries}


def test_the_bmc_is_read_in_band(watched: Path) -> None:
    collectors = {one["name"]: one for one in document(watched / "summary.json")["collectors"]}
    assert works(collectors["ipmi"]), collectors["ipmi"]
    fans = {point.tags["sensor"] for point in points(watched, "ipmi_sensor") if point.tags["kind"] == "fan"}
    assert fans == {"Fan1", "Fan2", "FanA", "FanB"}
    assert points(watched, "ipmi_power")


@pytest.fixture(scope="module")
def over_lan(
    virtual_machine: VirtualCandidate, provisioned: Path, server: LocalInflux, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    """A whole run in which the control node reads the BMC: (bundle, InfluxDB's URL)."""
    folder = tmp_path_factory.mktemp("over-lan")
    scenario, requirement = short_profiles(folder)
    named = YAML_SAFE.load(provisioned)
    host = named["all"]["children"]["candidates"]["hosts"][virtual_machine.instance.name]
    host["bench_candidate"]["bmc"]["in_band"] = False
    alone = folder / "lab.yml"
    YAML_SAFE.dump(named, alone)
    url = server.running_url()
    assert url is not None
    words = ["--candidate", virtual_machine.instance.name, "--inventory", str(alone), "--target", "nand-raid0"]
    words += ["--scenario", str(scenario), "--requirement", str(requirement), "--influx-url", url]
    done = rig("qualify", *words, "--runs", str(folder / "runs"))
    bundle = (folder / "runs" / "latest").resolve()
    assert done.returncode == (3 if of_a_busy_host(bundle) else 0), done.stdout + done.stderr
    return bundle, url


@pytest.mark.campaign  # a whole run under emulation
def test_a_run_over_lan_has_the_bmcs_readings_once(over_lan: tuple[Path, str]) -> None:
    """In the spool of the control node's agent alone, whole in InfluxDB, and in what follows from them."""
    bundle, url = over_lan
    own = document(bundle / "telemetry" / "summary.json")
    assert "ipmi" not in [one["name"] for one in own["collectors"]]
    assert not points(bundle / "telemetry", "ipmi_sensor")
    lan = {one["name"]: one for one in document(bundle / "telemetry" / "bmc" / "summary.json")["collectors"]}
    assert works(lan["ipmi_lan"]), lan["ipmi_lan"]
    for measurement, field in (("ipmi_sensor", "speed_rpm"), ("ipmi_power", "power_w")):
        spooled = sum(field in point.fields for point in points(bundle / "telemetry" / "bmc", measurement))
        assert spooled > 0, measurement
        assert count(url, measurement, field, bundle.name) == spooled, measurement
    assert document(bundle / "results" / "cost.json")["energy_kwh"] is not None


@pytest.mark.campaign  # a whole run under emulation
def test_the_bundle_of_such_a_run_is_whole_and_has_no_secret(
    over_lan: tuple[Path, str], virtual_machine: VirtualCandidate
) -> None:
    done = rig("check-bundle", str(over_lan[0]))
    assert done.returncode == 0, done.stdout + done.stderr
    secret = virtual_machine.instance.password_file.read_text(encoding="ascii").strip().encode()
    for file in over_lan[0].rglob("*"):
        assert not file.is_file() or secret not in file.read_bytes(), file
