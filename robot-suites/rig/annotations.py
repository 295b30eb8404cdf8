"""The run's events as points of the measurement `bench_event`: moments, and spans once they have ended.

The agent carries them to InfluxDB while it runs. What comes later (restoring, the verdict, the report) and what is only known
afterwards (when the dataflow was BUSY) `late_lines` gives, for rig.history to write."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_model import aligned
from bench_model.line_protocol import Point, points_of

if TYPE_CHECKING:
    from rig.bundle import Bundle

MEASUREMENT = "bench_event"
SPAN = "span"
TAIL_BYTES = 65536


def moment_line(run: str, kind: str, source: str, text: str, time_ns: int) -> str:
    """One event at one moment."""
    return f"{_head(run, kind, source)} text={string(text)} {time_ns}"


def span_line(run: str, kind: str, source: str, text: str, begin_ns: int, end_ns: int) -> str:
    """One event that lasted; a series of its own, so that it does not overwrite the moment at its begin."""
    return f"{_head(run, kind, source)},extent={SPAN} text={string(text)},end_ms={end_ns // 10**6}i {begin_ns}"


def _head(run: str, kind: str, source: str) -> str:
    return f"{MEASUREMENT},kind={tag(kind)},source={tag(source)},run={tag(run)}"


def tag(text: str) -> str:
    return re.sub(r"([,= \\])", r"\\\1", text.replace("\n", " "))


def string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


def open_phase(events: Path) -> dict[str, Any] | None:
    """The phase that was announced last, from the end of events.jsonl."""
    try:
        with events.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").split("\n")
    except FileNotFoundError:
        return None
    whole = lines if size <= TAIL_BYTES else lines[1:]
    for line in reversed(whole):
        if '"phase"' in line:
            event: dict[str, Any] = json.loads(line)
            if event["kind"] == "phase":
                return event
    return None


def late_lines(bundle: Bundle) -> list[str]:
    """Events that the agent has not carried, each with the candidate's name, which else the agent adds."""
    carried = {_identity(point) for point in _points(bundle.path / "telemetry" / "points.lp")}
    host = f",host={tag(bundle.run['candidate']['name'])}"
    late = [
        line.replace(MEASUREMENT, MEASUREMENT + host, 1)
        for line, point in _lines(bundle.workload_file)
        if _identity(point) not in carried
    ]
    spans = [
        span_line(bundle.id, "busy", "snb_record", text, round(begin * 1e9), round(end * 1e9))
        for begin, end, text in aligned.busy_spans(bundle.path)
    ]
    return late + [line.replace(MEASUREMENT, MEASUREMENT + host, 1) for line in spans]


def _identity(point: Point) -> tuple[str, ...]:
    return (str(point.time_ns), *(point.tags.get(key, "") for key in ("kind", "source", "extent")))


def _points(file: Path) -> list[Point]:
    return list(points_of(file, {MEASUREMENT})) if file.exists() else []


def _lines(file: Path) -> list[tuple[str, Point]]:
    if not file.exists():
        return []
    text = [line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith(MEASUREMENT + ",")]
    return list(zip(text, points_of(file, {MEASUREMENT}), strict=True))
