"""A run's dates are held against each other: id, events, tools, drives, telemetry; the candidate's clock counts as the run read it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from daq_bench.audit.good.small_run import some_run

from daq_bench.bench_model.behaviour.cost import _seconds
from daq_bench.bench_model.behaviour.record_power import document
from daq_bench.bench_model.bundle.dates import date_problems, moment_of_id, stamp_problem
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import as_document, read
from daq_bench.bench_model.workloads.raid_vs_3dxp.analysis import hazard_events

STARTED_S = 1_769_860_800  # 2026-01-31T12:00:00Z
RUN_ID = "20260131T120000Z-server-demo"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    for name in ("facts", "results/raw", "telemetry"):
        (tmp_path / name).mkdir(parents=True)
    event = {"time_utc": "2026-01-31T12:10:00Z", "kind": "phase", "source": "x", "text": "y", "data": {}}
    ended = {**event, "time_utc": "2026-01-31T15:00:00Z", "kind": "verdict"}
    (tmp_path / "events.jsonl").write_text(f"{json.dumps(event)}\n{json.dumps(ended)}\n", encoding="utf-8")
    put(tmp_path, "results/raw/minidaq-1.json", {"started_utc": "2026-01-31T12:20:00.000Z"})
    put(tmp_path, "results/raw/fio-4096.json", {"timestamp": STARTED_S + 600})
    put(tmp_path, "facts/smart-before.json", {"devices": [{"data": {"local_time": {"time_t": STARTED_S + 60}}}]})
    spool(tmp_path, STARTED_S + 1, STARTED_S + 3000)
    return tmp_path


def put(bundle: Path, name: str, document: object) -> None:
    (bundle / name).write_text(json.dumps(document), encoding="utf-8")


def spool(bundle: Path, *seconds: float, tags: str = f"device=nvme0n1,run={RUN_ID},serial=IMG1") -> None:
    lines = [f"smart,{tags} a=1i {int(at * 1e9)}\n" for at in seconds]
    (bundle / "telemetry/points.lp").write_text("".join(lines), encoding="utf-8")


def problems(bundle: Path, **changes: Any) -> list[str]:
    told = {"run_id": RUN_ID, "started_utc": "2026-01-31T12:00:00Z", "finished_utc": "2026-01-31T13:00:00Z", **changes}
    run = read({**as_document(some_run(state="finished")), **told}, Run, "run.json")
    return date_problems(bundle, run)


def test_an_honest_run_has_no_problem(bundle: Path) -> None:
    assert problems(bundle) == []


def test_a_run_that_was_moved_by_a_year_is_named_by_each_of_its_witnesses(bundle: Path) -> None:
    found = problems(bundle, started_utc="2027-01-31T12:00:00Z", finished_utc="2027-01-31T13:00:00Z")
    assert [text.partition(": ")[0] for text in found] == [
        "run.json", "events.jsonl:1", "events.jsonl:2", "results/raw/fio-4096.json", "results/raw/minidaq-1.json",
        "facts/smart-before.json", "telemetry/points.lp", "telemetry/points.lp",
    ]  # fmt: skip
    assert "2026-01-31 12:20:00 UTC, but by run.json the run was from 2027-01-31 12:00:00 UTC" in found[4]


def test_the_candidates_clock_counts_as_the_run_read_it(bundle: Path) -> None:
    """An hour off: the judge says so; the dates agree with what was read, and with nothing beyond it."""
    spool(bundle, STARTED_S + 3601, STARTED_S + 7000)
    assert len(problems(bundle)) == 1
    put(
        bundle,
        "facts/clock.json",
        {"readings": [{"when": "before the load", "difference_s": 3600.0, "uncertainty_s": 1e9}]},
    )
    assert problems(bundle) == []
    spool(bundle, STARTED_S + 3601, STARTED_S + 8000)
    assert len(problems(bundle)) == 1


@pytest.mark.parametrize("stated", [None, float("nan"), "3600", True, {}, []])
def test_a_difference_that_is_no_number_widens_nothing(bundle: Path, stated: object) -> None:
    spool(bundle, STARTED_S + 3601, STARTED_S + 7000)
    (bundle / "facts/clock.json").write_text(
        json.dumps({"readings": [{"difference_s": stated}]}).replace("NaN", "null"), encoding="utf-8"
    )
    assert len(problems(bundle)) == 1


def test_points_of_another_run_and_of_other_drives_are_named(bundle: Path) -> None:
    spool(bundle, STARTED_S + 1, tags="device=nvme0n1,run=20250101T000000Z-other,serial=OTHER")
    drive = {"name": "nvme0n1", "model": "M", "serial": "S1"}
    target = {**as_document(some_run())["target"], "drives": [drive]}
    found = problems(bundle, target=target)
    assert found == [
        f"telemetry/points.lp: its points are of run '20250101T000000Z-other', not of {RUN_ID}",
        "telemetry: no point is of a drive of run.json (S1); points name OTHER",
    ]


@pytest.mark.parametrize("name", ["20261399T250000Z-x", "20260131T120000-x", "snb-1", ""])
def test_an_id_without_a_moment_that_exists_contradicts_nothing(name: str) -> None:
    assert moment_of_id(name) is None and stamp_problem(name, datetime(2026, 1, 31, tzinfo=UTC)) == ""


def test_a_run_without_an_end_is_compared_by_its_id_alone(bundle: Path) -> None:
    assert problems(bundle, finished_utc=None, started_utc="2026-01-31T12:01:00Z") == []
    assert stamp_problem(
        RUN_ID, read({**as_document(some_run()), "started_utc": "2026-01-31T12:03:00Z"}, Run, "run.json").started
    ).startswith("it began at")


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The reader's clock is that of Lord Howe Island, ten hours and a half before UTC."""
    monkeypatch.setenv("TZ", "LHST-10:30")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("far_east")
@pytest.mark.parametrize("zone", ["", "Z", "+00:00"])
def test_a_time_without_a_zone_is_utc_whatever_the_readers_clock_says(tmp_path: Path, zone: str) -> None:
    """The same bundle once had other figures at home and at the buyer's."""
    at = f"2026-01-31T12:00:00{zone}"
    assert _seconds(at) == STARTED_S
    minidaq = {"started_utc": at, "time": {"record_s": 10.0}, "stored_bytes_per_s": 9e9}
    found = document([(STARTED_S + 2.0, 420.0)], [{"condition": None, "minidaq": minidaq}])
    assert as_document(found)["records"][0]["mean_w"] == 420.0
    event = {"time_utc": at, "kind": "hazard", "source": "x", "text": "y", "data": {}}
    (tmp_path / "events.jsonl").write_text(json.dumps(event) + "\n", encoding="utf-8")
    assert hazard_events(tmp_path) == [{"at_s": STARTED_S, "text": "y"}]
