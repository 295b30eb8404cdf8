"""A run's dates: what its id, its tools, its drives, its events and its telemetry say of when it was, held against run.json.

Promise: each fault is named with file, value and the span of the run. Times of the candidate's clock count with the differences that the
run itself read; a run whose clock was wrong is named by the judge, and not here a second time."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.files import find_document, find_json, read_json_lines, survey, text_lines
from daq_bench.bench_model.bundle.telemetry_files import points_files
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import moment

STAMP = re.compile(r"^(\d{8}T\d{6}Z)-")
STAMP_TOLERANCE = timedelta(minutes=2)  # [P] between the folder's name and run.json: preflight lies between them
SPAN_TOLERANCE_S = 120.0  # [P] what a clock that is disciplined moves, and a tool's whole seconds
RAW, CLOCK, EVENTS = "results/raw/", "facts/clock.json", "events.jsonl"
SMART = ("facts/smart-before.json", "facts/smart-after.json")
AFTER_THE_RUN = "verdict"  # the event that is noted when the run has ended
SERIES = re.compile(r"(?:\\.|[^ \\])+")  # measurement and tags
TAG = re.compile(r",(run|serial)=((?:\\.|[^, \\])+)")


def moment_of_id(name: str) -> datetime | None:
    """Returns the moment that a run's id, or a night's name, begins with; None where it begins with none."""
    stamp = STAMP.match(name)
    try:
        return datetime.strptime(stamp[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC) if stamp else None
    except ValueError:  # 20261399T250000Z-x
        return None


def stamp_problem(run_id: str, started: datetime) -> str:
    """Why the run's id and its start contradict each other; empty where they do not, or where the id has no time."""
    named = moment_of_id(run_id)
    if named and abs(started - named) > STAMP_TOLERANCE:
        return f"it began at {started:%Y-%m-%d %H:%M} UTC by run.json, and at another time by its id"
    return ""


@dataclass(frozen=True)
class Span:
    """From start to end of a run, in seconds since 1970, with what clocks may differ."""

    begin_s: float
    end_s: float

    def problem(self, what: str, at_s: float | None) -> str:
        if at_s is None or (math.isfinite(at_s) and self.begin_s <= at_s <= self.end_s):
            return ""
        begin, end = utc(self.begin_s + SPAN_TOLERANCE_S), utc(self.end_s - SPAN_TOLERANCE_S)
        return f"{what} is {utc(at_s)}, but by run.json the run was from {begin} to {end}"


def utc(at_s: float) -> str:
    try:
        return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{at_s!r}, which no calendar has"


def date_problems(bundle: Path, run: Run) -> list[str]:
    """Faults of the bundle's dates. A run that has no end has no span: only its id is compared."""
    found = [f"run.json: {text}" for text in [stamp_problem(run.run_id, run.started)] if text]
    if run.finished is None:
        return found
    if run.finished < run.started:
        return [*found, "run.json: the run ended before it began"]
    own = Span(run.started.timestamp() - SPAN_TOLERANCE_S, run.finished.timestamp() + SPAN_TOLERANCE_S)
    candidate = _of_candidate(bundle, own)
    texts = [
        *_events(bundle, own),
        *_tools(bundle, candidate),
        *_drives(bundle, candidate),
        *_points(bundle, run, candidate),
    ]
    return [*found, *filter(None, texts)]


def _of_candidate(bundle: Path, own: Span) -> Span:
    """The span by the candidate's clock, wherever the run read it."""
    readings = (find_document(bundle, CLOCK) or {}).get("readings")
    known = [one.get("difference_s") for one in readings if isinstance(one, dict)] if isinstance(readings, list) else []
    offsets = [float(one) for one in known if isinstance(one, int | float) and math.isfinite(one)]
    return Span(own.begin_s + min([0.0, *offsets]), own.end_s + max([0.0, *offsets]))


def _events(bundle: Path, own: Span) -> Iterator[str]:
    for number, event in enumerate(read_json_lines(bundle, EVENTS), start=1):
        at = _seconds(event.get("time_utc"))
        if event.get("kind") != AFTER_THE_RUN or at is None or at < own.begin_s:
            yield own.problem(f"{EVENTS}:{number}: time_utc", at)


def _tools(bundle: Path, candidate: Span) -> Iterator[str]:
    """`started_utc` of the bench's own tools, `timestamp` of fio."""
    for name in survey(bundle).files:
        if name.startswith(RAW) and name.endswith(".json") and name.count("/") == RAW.count("/"):
            try:
                document = find_json(bundle, name)
            except BenchError:
                continue  # a tool that was killed leaves half a document; extraction names it
            if isinstance(document, dict):
                yield candidate.problem(f"{name}: started_utc", _seconds(document.get("started_utc")))
                yield candidate.problem(f"{name}: timestamp", _number(document.get("timestamp")))


def _drives(bundle: Path, candidate: Span) -> Iterator[str]:
    """When smartctl read each drive."""
    for name in SMART:
        for at, device in enumerate((find_document(bundle, name) or {}).get("devices") or []):
            data = device.get("data") if isinstance(device, dict) else None
            told = data.get("local_time") if isinstance(data, dict) else None
            if isinstance(told, dict):
                yield candidate.problem(f"{name}: devices[{at}].data.local_time", _number(told.get("time_t")))


def _points(bundle: Path, run: Run, candidate: Span) -> Iterator[str]:
    """The first and last point of each spool, the run that its points name, and the drives that they were read of."""
    serials: set[str] = set()
    for file in points_files(bundle):
        name, series = file.relative_to(bundle).as_posix(), set[str]()
        first, last = math.inf, -math.inf
        for line in text_lines(file):
            stamp = line.rstrip("\r\n").rpartition(" ")[2]
            if line.endswith("\n") and stamp.lstrip("-").isdecimal() and (head := SERIES.match(line)):
                first, last = min(first, int(stamp) / 1e9), max(last, int(stamp) / 1e9)
                series.add(head[0])
        if first <= last:
            yield candidate.problem(f"{name}: the first point", first)
            yield candidate.problem(f"{name}: the last point", last)
        tags = {pair for one in series for pair in TAG.findall(one)}
        serials |= {value for key, value in tags if key == "serial"}
        if others := sorted(value for key, value in tags if key == "run" and value != run.run_id):
            yield f"{name}: its points are of run {others[0]!r:.100}, not of {run.run_id}"
    own = {one.serial.strip().replace(" ", "\\ ") for one in run.target.drives if one.serial and one.serial.strip()}
    if serials and own and own.isdisjoint(serials):
        yield (
            f"telemetry: no point is of a drive of run.json ({', '.join(sorted(own)[:3])}); points name {', '.join(sorted(serials)[:3])}"
        )


def _seconds(told: Any) -> float | None:
    """None for what is no time: the document's own reader names that."""
    try:
        return moment(told).timestamp() if isinstance(told, str) else None
    except ValueError:
        return None


def _number(told: Any) -> float | None:
    return float(told) if isinstance(told, int | float) and not isinstance(told, bool) else None
