"""The run's events as points of the measurement `bench_event`: moments, and spans once they have ended.

The agent carries them to InfluxDB while it runs; rig.telemetry.history writes all of them once more, with what came later."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.files import last_lines, parse_json, text_lines
from daq_bench.bench_model.documents.events import Event
from daq_bench.bench_model.documents.struct import read

MEASUREMENT = "bench_event"
SPAN = "span"
SERIES = re.compile(rf"{MEASUREMENT},(?:\\.|[^ \\])+")
PHASE_BYTES = 65536  # of events.jsonl, within which the last phase was announced


def moment_line(run: str, kind: str, source: str, text: str, time_ns: int) -> str:
    """One event at one moment."""
    return f"{_head(run, kind, source)} text={string(text)} {time_ns}"


def span_line(run: str, kind: str, source: str, text: str, begin_ns: int, end_ns: int) -> str:
    """One event that lasted; it has a series of its own, so that it does not overwrite the moment at its begin."""
    return f"{_head(run, kind, source)},extent={SPAN} text={string(text)},end_ms={end_ns // 10**6}i {begin_ns}"


def moments(workload: Path) -> Iterator[tuple[str, int]]:
    """Yields each event that stands in a file of line protocol, without the spans: its line up to the time, and the time in ns."""
    for line in text_lines(workload):
        series, (head, _, stamp) = SERIES.match(line), line.rstrip("\n").rpartition(" ")
        if series and not series[0].endswith(f",extent={SPAN}") and line.endswith("\n") and stamp.isdecimal():
            yield head, int(stamp)


def _head(run: str, kind: str, source: str) -> str:
    return f"{MEASUREMENT},kind={tag(kind)},source={tag(source)},run={tag(run)}"


def tag(text: str) -> str:
    return re.sub(r"([,= \\])", r"\\\1", _one_line(text))


def string(text: str) -> str:
    escaped = _one_line(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _one_line(text: str) -> str:
    """Whatever ends a line for any reader: ssh ends its own with CR LF."""
    return " ".join(text.splitlines())


def event_of(line: str | bytes) -> Event | None:
    """The event in a line of events.jsonl; None for any other line."""
    try:
        return read(parse_json(line.encode() if isinstance(line, str) else line, "the line"), Event, "the line")
    except BenchError:
        return None


def open_phase(events: Path) -> Event | None:
    """Returns the phase that was announced last, from the end of events.jsonl."""
    told = (event_of(line) for line in reversed(last_lines(events, PHASE_BYTES)) if '"phase"' in line)
    return next((event for event in told if event and event.kind == "phase"), None)
