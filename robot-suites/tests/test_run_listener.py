"""The Robot listener, phases and hazards as events and spans: what Grafana draws over the graphs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import robot
from daq_bench.audit.good.small_run import candidate, some_run

from daq_bench.bench_model.behaviour.aligned import busy_spans
from daq_bench.bench_model.bundle.line_protocol import Point, points_of
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.event_lines import open_phase
from daq_bench.rig.base.hazard_spans import HazardLog
from daq_bench.telemetry_agent.collectors.workload import check_record

SUITE = """*** Test Cases ***
The First, Which Passes
    Sleep    50ms

The Second, "Which" = Fails
    Fail    a reason, with = and "quotes"
"""
LISTENER = Path(__file__).resolve().parents[1] / "libraries" / "RunListener.py"


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    made = Bundle.create(tmp_path / "runs", "bench-01", "", "short")
    made.begin(some_run(candidate=candidate("bench-01")))
    return made


def points(bundle: Bundle) -> list[Point]:
    """Returns the points that the agent would carry: every line passes its own check."""
    for line in bundle.workload_file.read_text(encoding="utf-8").splitlines():
        assert check_record(line).measurement == "bench_event"
    return list(points_of(bundle.workload_file, {"bench_event"}))


def spans(bundle: Bundle, kind: str) -> dict[str, tuple[int, int]]:
    """Text -> begin and end, ms."""
    return {
        str(point.fields["text"]): (point.time_ns // 10**6, int(point.fields["end_ms"]))
        for point in points(bundle)
        if point.tags["kind"] == kind and point.tags.get("extent") == "span"
    }


def test_suites_and_tests_become_events_and_spans(bundle: Bundle, tmp_path: Path) -> None:
    """By Robot Framework itself, in this process, with the listener as a run has it."""
    (tmp_path / "suite.robot").write_text(SUITE, encoding="utf-8")
    failed = robot.run(
        str(tmp_path / "suite.robot"),
        outputdir=str(tmp_path / "out"),
        listener=f"{LISTENER}:{bundle.path}",
        stdout=None,
        console="none",
    )
    assert failed == 1
    texts = [event.text for event in bundle.events()]
    assert texts == [
        "begin: The First, Which Passes",
        "PASS: The First, Which Passes",
        'begin: The Second, "Which" = Fails',
        'FAIL: The Second, "Which" = Fails: a reason, with = and "quotes"',
    ]
    tests, suites = spans(bundle, "test"), spans(bundle, "suite")
    assert list(tests) == [texts[1], texts[3]]
    begin, end = tests[texts[1]]
    assert end - begin >= 50
    assert list(suites) == ["FAIL: Suite"]
    assert suites["FAIL: Suite"][0] <= begin
    assert suites["FAIL: Suite"][1] >= tests[texts[3]][1]
    moments = [point for point in points(bundle) if "extent" not in point.tags]
    assert [str(point.fields["text"]) for point in moments] == texts
    assert {point.tags["source"] for point in moments} == {"Suite"}


def test_a_phase_ends_when_the_next_begins(bundle: Bundle) -> None:
    """Also one that another process announced: what is open stands in events.jsonl."""
    assert open_phase(bundle.events_file) is None
    bundle.end_phase()  # nothing is open
    assert not bundle.workload_file.exists()
    bundle.event("phase", "provision", "applying the tuning", step=1, steps=1)
    bundle.event("telemetry", "influxdb", 'says "phase"')
    Bundle.open(bundle.path).event("phase", "snb_record", "record 1 of 2", step=1, steps=2)
    bundle.event("phase", "snb_record", "record 2 of 2", step=2, steps=2)
    assert list(spans(bundle, "phase")) == ["applying the tuning", "record 1 of 2"]
    bundle.end_phase()
    found = spans(bundle, "phase")
    assert list(found) == ["applying the tuning", "record 1 of 2", "record 2 of 2"]
    begins = [begin for begin, _ in found.values()]
    assert [end for _, end in found.values()][:2] == begins[1:]


@pytest.mark.parametrize("torn", ['{"kind": "phase", "sou\n', '{"kind": "phase"}\n', '"phase"\n', '{"kind": "phase"'])
def test_a_damaged_announcement_hides_no_earlier_phase(bundle: Bundle, torn: str) -> None:
    """A disk that was full for a moment keeps the half of a line."""
    bundle.event("phase", "thermal", "soak", step=1, steps=1)
    with bundle.events_file.open("a", encoding="utf-8") as file:
        file.write(torn)
    found = open_phase(bundle.events_file)
    assert found is not None and found.text == "soak"


def test_a_phase_is_found_behind_many_other_events(bundle: Bundle) -> None:
    bundle.event("phase", "thermal", "soak", step=1, steps=1)
    for number in range(300):
        bundle.event("busy", "thermal", f"episode {number}", note="x" * 100)
    found = open_phase(bundle.events_file)
    assert found is None or found.text == "soak"
    assert bundle.events_file.stat().st_size < 65536 or found is None


def test_hazards_last_from_command_to_release(bundle: Bundle) -> None:
    log = HazardLog(bundle, "rig")
    log.begin("inlet", "inlet at 45 degC")
    log.begin("inlet", "inlet at 50 degC")  # ends the one before
    log.begin("power", "power is cut")
    log.begin("fan Fan1", "fan Fan1 stands still")
    log.end(log.except_for("power"), "every hazard is released", released=True)
    assert list(spans(bundle, "hazard")) == ["inlet at 45 degC", "inlet at 50 degC", "fan Fan1 stands still"]
    log.end(["power"], "power is back")
    assert list(spans(bundle, "hazard"))[-1] == "power is cut"
    assert [event.text for event in bundle.events()][-2:] == ["every hazard is released", "power is back"]
    assert bundle.events()[-2].data == {"released": True}


def test_busy_episodes_are_at_their_own_time(bundle: Bundle) -> None:
    """From daqwriter's account: its start, what it took to prepare, and the episode's own offset."""
    assert busy_spans(bundle.path) == []
    said = {
        "started_utc": "2026-01-31T12:00:00.500Z",
        "time": {"prepare_s": 1.5},
        "busy": {"episodes": [{"start_s": 3.0, "duration_s": 0.25}]},
    }
    bundle.write("results/snb_record.json", {"repetitions": [{"minidaq": said}]})
    ((begin, end, text),) = busy_spans(bundle.path)
    assert begin == pytest.approx(1769860805.0)
    assert end - begin == pytest.approx(0.25)
    assert text == "BUSY for 0.250 s in record 1"
    assert json.loads((bundle.path / "results/snb_record.json").read_text())["repetitions"]
