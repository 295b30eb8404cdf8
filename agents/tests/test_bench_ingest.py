"""Part `ingest`: the simulated server, the backlog's findings, the criteria, and one short run of a small fleet."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_rounds import cli
from daq_bench.bench_rounds.measuring.ratios import summary
from daq_bench.telemetry_agent.base.point import Encoder
from daq_bench.telemetry_bench import backlog, fleet, fleet_trial, simulated_server
from daq_bench.telemetry_bench import ingest as part
from daq_bench.telemetry_bench.backlog import Moment


def test_the_simulated_server_gives_what_such_a_server_gives(tmp_path: Path) -> None:
    steps = simulated_server.readings(tmp_path, 2, seed=1)
    by_measurement: dict[str, list[Any]] = {}
    for point in steps[0]:
        by_measurement.setdefault(point.measurement, []).append(point)
    assert by_measurement.keys() == set(simulated_server.SIMULATED)
    assert len(by_measurement["block_device"]) == simulated_server.DRIVES
    assert len(by_measurement["cpu"]) == simulated_server.CORES + 1
    assert len(by_measurement["cpu_frequency"]) == simulated_server.CORES
    assert len(by_measurement["temperature"]) == 2 * (simulated_server.DRIVES + simulated_server.PACKAGES)
    drive = by_measurement["block_device"][0]
    assert ("device", "nvme0n1") in drive.tags and ("serial", "SIM000000000") in drive.tags
    assert 1e9 < drive.fields["written_bytes_per_s"] < 5e9
    for point in by_measurement["cpu"]:
        assert sum(value for name, value in point.fields.items() if name.endswith("_fraction")) > 0.99
    assert len(steps[0]) == len(steps[1])
    assert all(
        one.fields != other.fields for one, other in zip(steps[0], steps[1], strict=True) if one.measurement == "cpu"
    )
    Encoder({"host": "h", "run": "r"}).encode(drive)


def test_the_simulated_server_repeats_itself_for_one_seed(tmp_path: Path) -> None:
    def fields(name: str, seed: int) -> list[Any]:
        return [point.fields for step in simulated_server.readings(tmp_path / name, 2, seed) for point in step]

    assert fields("a", 1) == fields("b", 1) != fields("c", 2)


def test_points_are_counted_by_a_field_that_all_have(tmp_path: Path) -> None:
    steps = simulated_server.readings(tmp_path, 1, seed=1)
    fields = fleet.fields_of(steps)
    assert all(fields[point.measurement] in point.fields for point in steps[0])


def line(rate: float, settled: float, seconds: int = 20, backlog_before: int = 100) -> list[Moment]:
    return [Moment(k / 2, int(rate * k / 2) + backlog_before, int(settled * k / 2)) for k in range(2 * seconds + 1)]


def test_a_backlog_that_stays_is_sustained() -> None:
    found = backlog.flow(line(1000, 1000), 0, 20)
    assert found.offered_per_s == pytest.approx(1000) and found.settled_per_s == pytest.approx(1000)
    assert found.growth == pytest.approx(0.0) and found.sustained and found.backlog_max == 100


def test_a_backlog_that_grows_is_not() -> None:
    found = backlog.flow(line(1000, 900), 0, 20)
    assert found.growth == pytest.approx(0.1, rel=0.02) and not found.sustained
    assert backlog.flow(line(1000, 985), 0, 20).sustained


def test_what_lies_outside_of_the_window_does_not_count() -> None:
    late = [Moment(one.at_s + 20, one.collected + 20_000, one.settled + 20_000) for one in line(1000, 500)]
    assert backlog.flow([*line(1000, 1000)[:-1], *late], 0, 19).sustained


def test_too_short_a_window_says_nothing() -> None:
    with pytest.raises(BenchError, match="4 samples of the backlog"):
        backlog.flow(line(1000, 1000), 0, 1.5)
    with pytest.raises(BenchError, match="no point was offered"):
        backlog.flow(line(0, 0), 0, 20)


def test_catching_up_is_timed_from_the_servers_return() -> None:
    found = [Moment(k / 2, 1000 + 500 * k, 500 * k) for k in range(11)]  # until 5 s: 1000 behind
    found += [Moment(5.5 + k / 2, 6500 + 500 * k, 5000) for k in range(10)]  # the outage
    found += [Moment(10.5 + k / 2, 11500 + 500 * k, 6000 + 1000 * k) for k in range(20)]
    assert backlog.caught_up_after_s(found, 0, 5.2, 10.4, 20) == pytest.approx(4.6)
    assert backlog.caught_up_after_s(found, 0, 5.2, 10.4, 14) is None
    with pytest.raises(BenchError, match="before the outage"):
        backlog.caught_up_after_s(found, 90, 95, 100, 120)


def watched(outage: tuple[float, float] | None = None) -> fleet_trial.Watched:
    return fleet_trial.Watched(10.0, 0.0, 20.0, 5.0, 100 << 20, outage)


def document(collected: int, **changed: Any) -> dict[str, Any]:
    series = [[one.at_s, one.collected, one.collected, one.settled, 0] for one in line(1000, 1000)]
    agent = {"collected": collected // 2, "spooled": collected // 2, "memory_bytes": 20 << 20, "cpu_us": 500_000}
    return {"series": series, "agents": [agent, {**agent, "memory_bytes": 30 << 20}], "failed_agents": 0, **changed}


def test_quantities_of_a_fleet() -> None:
    # 2 agents, 10 points a sample, each 0.1 s for 20 s: 4000 points.
    trial = fleet_trial.Trial("x", 2, 0.1, 0.0, 20.0, 10.0)
    more = fleet_trial.summarise(document(4000), watched(), trial, 4000)
    assert more["asked_per_s"] == 200 and more["offered_share"] == 1.0 and more["missing"] == 0
    assert more["agent_memory_bytes"] == 30 << 20 and more["agents_cpu_s"] == 1.0
    assert more["server_cpu_percent"] == 25.0
    assert "caught_up_s" not in more
    less = fleet_trial.summarise(document(3600), watched((5.0, 10.0)), trial, 3599)
    assert less["offered_share"] == 0.9 and less["missing"] == 1
    assert less["outage_s"] == 5.0 and less["caught_up_s"] == 0.0


def rate(factor: float, **changed: float) -> dict[str, Any]:
    quantities = {"offered_share": 1.0, "growth": 0.0, "missing": 0.0, "agent_memory_bytes": 20 << 20, **changed}
    contender = {name: summary([value]) for name, value in quantities.items()}
    label = f"{factor:g} x"
    return {"key": {"factor": factor}, "label": label, "errors": {}, "contenders": {part.FLEET: contender}}


def outage(**quantities: float) -> dict[str, Any]:
    return {**rate(1.0, **quantities), "key": {}, "label": part.OUTAGE}


def judged(*points: dict[str, Any]) -> dict[str, Any]:
    return {one.id: one for one in part.judge(list(points))}


def test_all_criteria_can_hold() -> None:
    found = judged(rate(0.5), rate(1.0), rate(2.0, growth=0.3), outage(caught_up_s=4.0))
    assert all(one.met for one in found.values())
    assert found["ingest.sustained"].value == 1.0


def test_the_nominal_rate_must_be_sustained() -> None:
    found = judged(rate(0.5), rate(1.0, growth=0.03), outage(caught_up_s=4.0))["ingest.sustained"]
    assert not found.met and not found.undecided and found.misses == ("above 0.5 x",)


def test_a_rate_that_the_simulator_did_not_offer_is_masked_and_leaves_the_server_undecided() -> None:
    poor = rate(1.0, offered_share=0.8)
    found = judged(rate(0.5), poor, outage(caught_up_s=4.0))["ingest.sustained"]
    assert not found.met and "80.0% only" in found.undecided
    cells = {header: cell(poor) for header, cell in part.PART.columns}
    assert cells["sustained"] == "masked: 80.0% offered"
    assert cells["stored, points/s"] == "masked"
    beyond = judged(rate(0.5), rate(1.0), rate(2.0, offered_share=0.8))["ingest.sustained"]
    assert beyond.met and beyond.value == 1.0


def test_a_point_that_was_not_tried_shows_nothing_and_misses_nothing() -> None:
    absent = {**rate(2.0), "contenders": {part.FLEET: {"not_tried": summary([1.0])}}}
    found = judged(rate(0.5), rate(1.0), absent, outage(caught_up_s=1.0))
    assert all(one.met for one in found.values())
    assert part.state(absent) == "not tried"


def test_one_missing_point_one_large_agent_and_a_backlog_that_stays_are_misses() -> None:
    found = judged(rate(1.0, missing=1), outage(agent_memory_bytes=65 << 20))
    assert found["ingest.missing"].misses == ("1 x (1)",)
    assert found["ingest.memory"].misses == (f"{part.OUTAGE} (65)",)
    assert found["ingest.outage"].misses == (f"{part.OUTAGE} (failed)",)


def test_higher_rates_are_not_tried_once_one_was_not_sustained(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def run(tools: Any, scan: Any, asked: fleet_trial.Trial) -> Any:
        tried.append(1 / asked.period_s)
        return part.Sample(more={"offered_share": 1.0, "growth": 0.5 if asked.period_s <= 1 else 0.0})

    monkeypatch.setattr(part, "run", run)
    scan, settings = part.Scan(), part.Settings(quick=True)
    samples = [part.measure_rate(settings, None, scan, factor) for factor in (0.5, 1.0, 2.0)]  # type: ignore[arg-type]
    assert tried == [0.5, 1.0] and samples[2].more["not_tried"] == 1.0
    assert scan.sustained == 0.5
    part.measure_outage(settings, None, scan)  # type: ignore[arg-type]
    assert tried[-1] == 0.5
    with pytest.raises(BenchError, match="no rate was sustained"):
        part.measure_outage(settings, None, part.Scan())  # type: ignore[arg-type]


def arguments(disk: Path, *more: str) -> list[str]:
    return [f"--scratch={disk / 'scratch'}", f"--output={disk / 'out'}", "--quick", "--parts=ingest", *more]


def test_a_missing_server_is_named_with_its_remedy(
    disk: Path, daqwriter: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments(disk, f"--daqwriter={daqwriter}", f"--influxd={disk / 'absent'}")) == cli.USAGE
    said = capsys.readouterr().err
    assert "INFLUXD_BIN" in said and "make influxd" in said


def test_a_small_fleet_for_real(disk: Path, daqwriter: Path, influxd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Points spooled by the agents' own code are the points that a real InfluxDB counts, also through an outage."""
    monkeypatch.setattr(part, "AGENTS", 3)
    monkeypatch.setattr(part, "QUICK_FACTORS", (1.0,))
    monkeypatch.setattr(part, "OUTAGE_S", 1.0)
    monkeypatch.setattr(part, "BEFORE_OUTAGE_S", 2.0)
    # This test does not ask whether this machine keeps up while other tests run.
    monkeypatch.setattr(part, "OFFERED_MIN", 0.0)
    monkeypatch.setattr(backlog, "GROWTH_MAX", 10.0)
    for name, seconds in (("settle_s", 1.0), ("window_s", 4.5), ("after_outage_s", 4.0)):
        monkeypatch.setattr(part, name, lambda settings, seconds=seconds: seconds)
    status = cli.main(arguments(disk, f"--daqwriter={daqwriter}", f"--influxd={influxd}"))
    made = json.loads((disk / "out" / "ingest.json").read_text())
    nominal, cut, disk_use = made["points"]
    assert [one["errors"] for one in made["points"]] == [{}, {}, {}]
    for one in (nominal, cut):
        found = one["contenders"][part.FLEET]
        assert found["stored"]["median"] == found["collected"]["median"] == found["spooled"]["median"] > 0
        assert 5 << 20 < found["agent_memory_bytes"]["median"] < 64 << 20
        assert found["server_memory_bytes"]["median"] > 10 << 20
    found = nominal["contenders"][part.FLEET]
    # 3 agents at 1 sample per second for 5.5 s: 6 samples each, unless the machine was so busy that some were skipped.
    points_per_sample = found["asked_per_s"]["median"] / 3
    assert found["collected"]["median"] % points_per_sample == 0
    assert found["collected"]["median"] == pytest.approx(18 * points_per_sample * found["offered_share"]["median"])
    assert 0 < found["offered_share"]["median"] <= 1
    assert cut["contenders"][part.FLEET]["outage_s"]["median"] >= 0.9  # as asked; more on a busy machine
    assert disk_use["contenders"][part.SERVER]["disk_bytes_per_million"]["median"] > 1e6
    met = {one["id"]: one["met"] for one in made["criteria"]}
    assert met["ingest.missing"] and met["ingest.memory"]
    assert status == (cli.ALL_HOLD if all(met.values()) else cli.MISSED)
    assert list((disk / "scratch").iterdir()) == []


def test_a_rate_that_was_not_offered_is_tried_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = iter([0.9, 1.0, 0.9, 0.9])
    names = []

    def run(tools: Any, scan: Any, asked: fleet_trial.Trial) -> Any:
        names.append(asked.name)
        return part.Sample(more={"offered_share": next(shares), "growth": 0.0})

    monkeypatch.setattr(part, "run", run)
    scan, settings = part.Scan(), part.Settings(quick=True)
    for factor in (0.5, 1.0, 2.0):
        part.measure_rate(settings, None, scan, factor)  # type: ignore[arg-type]
    assert names == ["x0.5", "x0.5-again", "x1", "x1-again"]
    assert (scan.sustained, scan.ended) == (0.5, "not offered")


def test_an_interrupted_bench_leaves_no_server_and_no_agent(disk: Path, daqwriter: Path, influxd: Path) -> None:
    """The test finds the processes by the scratch folder, which is in the command line of each of them."""
    words = [
        sys.executable,
        "-m",
        "daq_bench.bench_rounds",
        *arguments(disk, f"--daqwriter={daqwriter}", f"--influxd={influxd}"),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    bench = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        until = time.monotonic() + 60
        while not list(disk.glob("scratch/*/fleet-*/agent-*")) and bench.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        assert len(processes_in(disk)) >= 2  # influxd and the fleet
        bench.send_signal(signal.SIGTERM)
        said, _ = bench.communicate(timeout=60)
    finally:
        bench.kill()
        bench.wait()
    assert bench.returncode == cli.INTERRUPTED and "interrupted" in said
    until = time.monotonic() + 10  # the agents see that their parent has gone
    while processes_in(disk) and time.monotonic() < until:
        time.sleep(0.05)
    assert processes_in(disk) == []
    assert list((disk / "scratch").iterdir()) == []


def processes_in(folder: Path) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:  # it has ended meanwhile
            continue
        if any(str(folder / "scratch" / "daqwriter-bench").encode() in word for word in words):
            found.append(b" ".join(words).decode())
    return found
