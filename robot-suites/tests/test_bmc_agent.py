"""The choice of the BMC's reader, and the control node reading it: a real agent and real ipmitool against OpenIPMI's simulator."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from daq_bench.audit.good import small_run
from ruamel.yaml import YAML

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.line_protocol import points_of
from daq_bench.bench_model.bundle.telemetry_files import points_of_bundle, spool_folders
from daq_bench.bench_model.profiles.candidates import Candidate, load_candidate
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.influx import Influx
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.telemetry.bmc_agent import bmc_agent, may_read_in_band, reads_in_band
from daq_bench.rig.telemetry.history import replay_run, undelivered
from daq_bench.rig.telemetry.influx_server import LocalInflux
from daq_bench.virtual_candidate.bmc.simulator import Bmc

LAYOUT = Layout()
YAML_SAFE = YAML(typ="safe")
NOWHERE = Influx("http://127.0.0.1:9")
READING = "telemetry_agent,collector=ipmi supported=true,success={},duration_s={} 5\n"
ABSENT = "telemetry_agent,collector=ipmi supported=false,success=false 5\n"
OTHERS = "telemetry_agent,collector=ipmi_lan,instance=bmc supported=false 4\ntelemetry_agent,collector=cpu supported=true 5\n"


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return Bundle.create(tmp_path / "runs", "virtual", "", "dune-snb")


@pytest.fixture
def simulated(start_bmc: Callable[..., Bmc]) -> Bmc:
    return start_bmc(vendor="supermicro")


@pytest.fixture
def candidate(simulated: Bmc, tmp_path: Path) -> Candidate:
    """The virtual candidate's entry, with the simulator as its BMC."""
    known = load_candidate(LAYOUT.inventory / "lab.yml", "virtual")
    secret = tmp_path / "password"
    secret.touch(mode=0o600)
    secret.write_text(simulated.password, encoding="ascii")
    known.document["bmc"] |= {"ipmi_port": simulated.ipmi_port, "password_file": str(secret)}
    ca_file = str(simulated.directory / "tls" / "ca.pem")
    known.document["bmc"] |= {"redfish_port": simulated.redfish_port, "redfish_ca_file": ca_file}
    return known


def events(bundle: Bundle) -> list[str]:
    return [json.loads(line)["text"] for line in bundle.events_file.read_text(encoding="utf-8").splitlines()]


def own_spool(bundle: Bundle, text: str) -> Path:
    file = bundle.path / "telemetry" / "points.lp"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("said", "in_band"),
    [
        (OTHERS + ABSENT, False),
        (OTHERS + READING.format("true", 2.5), True),
        (OTHERS + READING.format("false", 7.0), True),  # it fails, but there is something to read
    ],
)
def test_the_candidates_own_collector_settles_who_reads(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch, said: str, in_band: bool
) -> None:
    """At once: the first look is enough."""
    spool = own_spool(bundle, said)
    monkeypatch.setattr("daq_bench.rig.telemetry.bmc_agent.time.sleep", lambda _s: pytest.fail("it looked again"))
    assert reads_in_band(spool) is in_band


def test_a_collector_that_goes_on_reading_has_a_device(bundle: Bundle) -> None:
    file = own_spool(bundle, OTHERS + READING.format("false", 0.0))
    assert reads_in_band(file, silence_s=0.3) is True


def test_the_answer_may_come_late(bundle: Bundle) -> None:
    file = own_spool(bundle, READING.format("false", 0.0))
    threading.Timer(0.5, lambda: file.write_text(READING.format("false", 0.0) + ABSENT, encoding="utf-8")).start()
    assert reads_in_band(file, silence_s=20.0) is False


def test_an_agent_that_says_nothing_of_it_is_an_error(bundle: Bundle) -> None:
    with pytest.raises(BenchError, match=r"did not say within 0\.5 s whether it can read"):
        reads_in_band(bundle.path / "telemetry" / "points.lp", report_s_max=0.5)
    with pytest.raises(BenchError, match=r"did not say within 0\.5 s"):
        reads_in_band(own_spool(bundle, OTHERS), report_s_max=0.5)


@pytest.mark.parametrize(("said", "allowed"), [({}, True), ({"in_band": True}, True), ({"in_band": False}, False)])
def test_the_inventory_may_keep_the_agent_off_the_candidates_own_device(
    tmp_path: Path, said: dict[str, bool], allowed: bool
) -> None:
    document = YAML_SAFE.load(LAYOUT.inventory / "lab.yml")
    hosts = document["all"]["children"]["candidates"]["hosts"]
    hosts["virtual"]["bench_candidate"]["bmc"] |= said
    YAML_SAFE.dump(document, tmp_path / "lab.yml")
    assert may_read_in_band(load_candidate(tmp_path / "lab.yml", "virtual")) is allowed


def settled(candidate: Candidate, bundle: Bundle) -> Any:
    return bmc_agent(LAYOUT, candidate, bundle, NOWHERE, {"host": "virtual", "run": bundle.id})


def test_in_band_is_preferred_and_no_address_means_nobody_else(bundle: Bundle) -> None:
    known = load_candidate(LAYOUT.inventory / "lab.yml", "virtual")
    own_spool(bundle, READING.format("true", 1.0))
    assert settled(known, bundle) is None
    assert events(bundle) == ["the BMC is read in band by the candidate's agent"]
    known.document["bmc"].pop("address")
    own_spool(bundle, ABSENT)
    assert settled(known, bundle) is None
    assert len(events(bundle)) == 1


def test_a_missing_password_is_said_and_stops_nothing(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    known = load_candidate(LAYOUT.inventory / "lab.yml", "virtual")
    known.document["bmc"].pop("password_file")
    monkeypatch.delenv("BENCH_VIRTUAL_BMC_PASSWORD", raising=False)
    own_spool(bundle, ABSENT)
    assert settled(known, bundle) is None
    assert events(bundle)[0].startswith("nobody reads the BMC: the candidate's own agent finds no IPMI device")
    assert "BENCH_VIRTUAL_BMC_PASSWORD (bench_candidate.bmc.password_env) is not set" in events(bundle)[0]


def wait_until(done: Callable[[], bool], what: str, limit_s: float = 60.0) -> None:
    deadline = time.monotonic() + limit_s
    while not done():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def watched(candidate: Candidate, bundle: Bundle, simulated: Bmc) -> None:
    """A run's worth of readings by the control node's agent, ended properly."""
    agent = settled(candidate, bundle)
    assert agent is not None
    agent.start()
    try:
        spool = bundle.path / "telemetry" / "bmc" / "points.lp"
        for wanted in ("ipmi_power", "redfish_sensor"):
            wait_until(lambda wanted=wanted: wanted in spool.read_text(encoding="utf-8"), wanted)  # type: ignore[misc]
        assert agent.alive()
        commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if os.access(path, os.R_OK)]
        assert not any(simulated.password.encode() in words for words in commands)
    finally:
        assert agent.stop() == 0


def test_the_control_node_reads_the_bmc_into_a_spool_of_its_own(
    candidate: Candidate, bundle: Bundle, simulated: Bmc
) -> None:
    """Under the run's tags, with an account of its own; the password is in no file and no argument."""
    candidate.document["bmc"]["in_band"] = False
    assert not may_read_in_band(candidate)
    watched(candidate, bundle, simulated)
    assert events(bundle) == ["the BMC is read over the network by the control node: bmc.in_band is false"]
    assert spool_folders(bundle.path) == [bundle.path / "telemetry" / "bmc"]
    power = [point.fields["power_w"] for point in points_of_bundle(bundle.path, {"ipmi_power"})]
    assert power
    assert set(power) == {420.0}
    fans = {
        point.tags["sensor"] for point in points_of_bundle(bundle.path, {"ipmi_sensor"}) if point.tags["kind"] == "fan"
    }
    assert fans == {"Fan1", "Fan2", "FanA", "FanB"}
    own = list(points_of(bundle.path / "telemetry" / "bmc" / "points.lp", {"telemetry_agent"}))
    assert {point.tags["instance"] for point in own} == {"bmc"}
    assert {(point.tags["host"], point.tags["run"]) for point in own} == {("virtual", bundle.id)}
    summary = json.loads((bundle.path / "telemetry" / "bmc" / "summary.json").read_text(encoding="utf-8"))
    assert summary["state"] == "finished"
    air = {
        (one.tags["resource"], one.fields["temperature_degc"])
        for one in points_of_bundle(bundle.path, {"redfish_sensor"})
    }
    assert air == {("Thermal", 24.0), ("ThermalMetrics", 24.0), ("EnvironmentMetrics", 24.0)}
    assert [one["name"] for one in summary["collectors"]] == ["ipmi_lan", "redfish", "agent_status"]
    assert summary["collectors"][1]["status"] == "ok", summary["collectors"][1]["detail"]
    assert summary["collectors"][0]["status"] == "ok", summary["collectors"][0]["detail"]
    assert summary["points"]["collected"] == summary["points"]["spooled"] == summary["points"]["undelivered"] > 0
    for file in bundle.path.rglob("*"):
        assert not file.is_file() or simulated.password.encode() not in file.read_bytes(), file


def test_a_later_replay_delivers_both_spools(
    candidate: Candidate, bundle: Bundle, simulated: Bmc, influx: LocalInflux
) -> None:
    """Points that neither agent could deliver are not complete before both spools are through."""
    candidate.document["bmc"]["in_band"] = False
    watched(candidate, bundle, simulated)
    own_spool(bundle, f"memory,host=virtual,run={bundle.id} free_bytes=7i {time.time_ns()}\n")
    bundle.begin(
        small_run.some_run(
            state="finished",
            finished_utc="2026-01-31T12:00:00.000Z",
            candidate=small_run.candidate("virtual"),
            scenario=small_run.scenario("dune-snb", parameters={"workloads": {}}),
            started_utc="2026-01-31T11:50:00.000Z",
            target=small_run.target(),
        )
    )
    bundle.write("verdict.json", {"outcome": "INADMISSIBLE", "requirements": []})
    assert undelivered(bundle.path)
    url = influx.running_url()
    assert url is not None
    assert replay_run(LAYOUT.agent, bundle.path, Influx(url)) is None
    assert not undelivered(bundle.path)
    for spool in spool_folders(bundle.path):
        replayed = json.loads((spool / "replay.json").read_text(encoding="utf-8"))["points"]
        assert replayed["undelivered"] == 0
        assert replayed["delivered"] > 0
    assert len(spool_folders(bundle.path)) == 2
