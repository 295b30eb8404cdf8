"""Turns the bundle's line protocol and events into series and phases on the run's own clock.

Promise: names are those of inventory/metrics.yml; a field that a point lacks is a sample that is absent, never a
zero. Times are seconds from the run's start.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import numpy as np

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.behaviour.record_power import power_readings
from daq_bench.bench_model.bundle.column_file import load_columns
from daq_bench.bench_model.bundle.columns import Column, Columns
from daq_bench.bench_model.bundle.files import find_document, plain_file
from daq_bench.bench_model.bundle.line_protocol import Point, points_of
from daq_bench.bench_model.documents.events import Event
from daq_bench.bench_model.documents.struct import Document, read
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.reading.dataset.record import Series
from daq_bench.bench_report.reading.dataset.telemetry import ALL_CPUS, Accounting, HostSeries, Phase, Summary, Track
from daq_bench.candidate_kit.smartctl import table

POINTS_FILE, WORKLOAD_FILE = "telemetry/points.lp", "telemetry/workload.lp"
ALL_CORES = "total"
CPU_FIELDS = {
    "user": ("user_fraction",),
    "system": ("system_fraction", "irq_fraction", "softirq_fraction"),  # interrupts are the kernel's work too
    "iowait": ("iowait_fraction",),
    "steal": ("steal_fraction",),
}
RUN_PHASES = {
    "block_scan": "block scan",
    "snb_record": "record",
    "verify": "tuning check",
}  # by the event's source
WRITER_PHASES = {"verify": "read-back"}  # by the tag of the writer's records
SHORTEST_PHASE_SHARE = 0.004  # share of the run: a drain of milliseconds needs no band of its own
ACCOUNTED = (
    ("points.collected", "points collected"), ("points.spooled", "points spooled"), ("points.unspooled", "points not spooled"),
    ("points.delivered", "points delivered to InfluxDB"), ("points.rejected", "points rejected by InfluxDB"),
    ("points.undelivered", "points not delivered"), ("influx.outage_count", "outages of InfluxDB"),
    ("workload.lines_seen", "records of the writer seen"), ("workload.lines_rejected", "records of the writer rejected"),
    ("spool.bytes", "size of the spool"), ("spool.torn_bytes", "torn bytes in the spool"),
    ("cpu.percent_of_one_core", "the agent's share of one CPU"),
)  # fmt: skip
NS = 1e9
SHOWN_CHARACTERS = 40


def seconds(time_ns: int, start: datetime) -> float:
    return time_ns / NS - start.timestamp()


def host_series(root: Path, start: datetime) -> HostSeries | None:
    found = columns_of(root)
    if found is None:
        return None
    disks: dict[str, list[Column]] = defaultdict(list)
    waits: dict[str, list[Column]] = defaultdict(list)
    heat: dict[str, list[Column]] = defaultdict(list)
    cores: dict[str, dict[str, list[Column]]] = defaultdict(lambda: defaultdict(list))
    for (measurement, pairs, field), column in found.found.items():
        tags = dict(pairs)
        if column.flag:
            continue
        if (measurement, field) == ("block_device", "written_bytes_per_s"):
            disks[tags.get("device", "unnamed")].append(column)
        elif (measurement, field) == ("block_device", "write_latency_s"):
            waits[tags.get("device", "unnamed")].append(column)
        elif (measurement, field) == ("temperature", "temperature_degc"):
            heat[_sensor(tags)].append(column)
        elif measurement == "cpu":
            cores[tags.get("core", ALL_CORES)][field].append(column)
    cpu = {core: tracks for core, fields in cores.items() if (tracks := _modes(fields, start))}
    together = {ALL_CPUS: cpu.pop(ALL_CORES)} if ALL_CORES in cpu else {}
    return HostSeries(
        disk_write_bytes_per_s={name: _track(columns, start) for name, columns in sorted(disks.items())},
        cpu_percent={f"CPU {core}": tracks for core, tracks in cpu.items()} or together,
        temperature_celsius={name: _track(columns, start) for name, columns in sorted(heat.items())},
        torn=found.torn,
        power_w=_power(root, start),
        disk_write_latency_s={name: _track(columns, start) for name, columns in sorted(waits.items())},
    )


def _power(root: Path, start: datetime) -> dict[str, Track]:
    """The server's power by its BMC; where it could not be read the line is broken."""
    with _unsound(POINTS_FILE):
        readings = power_readings(root)
    if not any(watts is not None for _, watts in readings):
        return {}
    times = np.array([moment - start.timestamp() for moment, _ in readings])
    return {"server": (times, np.array([np.nan if watts is None else watts for _, watts in readings]))}


def columns_of(root: Path) -> Columns | None:
    """Returns the columns of the candidate's spool that reports draw. Raises BenchError that names file and line."""
    with _unsound(POINTS_FILE):
        return load_columns(root)


@contextmanager
def _unsound(name: str) -> Iterator[None]:
    """Raises BenchError for what a reader of the spool `name` meets in it."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise BundleError(name, f"byte {error.start} of what was read is not UTF-8") from error
    except ValueError as error:  # names file and line
        raise BenchError(str(error)) from error
    except OSError as error:
        raise BundleError(name, f"cannot be read: {error.strerror}") from error


def _track(columns: Sequence[Column], start: datetime) -> Track:
    """Returns the samples in time order; the spool is in order of arrival."""
    times = np.concatenate([column.times_ns for column in columns])
    values = np.concatenate([column.values for column in columns])
    order = np.argsort(times, kind="stable")
    return times[order] / NS - start.timestamp(), values[order]


def _modes(fields: dict[str, list[Column]], start: datetime) -> dict[str, Track]:
    """Shares of one core's time in per cent; a sample that lacks some fields of a mode has the others' sum."""
    found = {}
    for mode, names in sorted(CPU_FIELDS.items()):
        tracks = [_track(fields[name], start) for name in names if name in fields]
        if tracks:
            found[mode] = _summed(tracks)
    return found


def _summed(tracks: Sequence[Track]) -> Track:
    first, _ = tracks[0]
    if all(len(times) == len(first) and bool((times == first).all()) for times, _ in tracks):
        return first, 100 * np.sum([values for _, values in tracks], axis=0)
    times = np.unique(np.concatenate([times for times, _ in tracks]))
    total = np.zeros(len(times))
    for own, values in tracks:
        np.add.at(total, np.searchsorted(times, own), values)
    return times, 100 * total


def _number(point: Point, field: str) -> float | None:
    value = point.fields.get(field)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _sensor(tags: Mapping[str, str]) -> str:
    return " ".join(
        part for part in (tags.get("device") or tags.get("chip"), tags.get("label") or tags.get("sensor")) if part
    )


def workload_points(root: Path) -> list[Point]:
    """Returns the writer's live records; none where it left none. Raises BenchError that names file and line."""
    with _unsound(WORKLOAD_FILE):
        file = plain_file(root, WORKLOAD_FILE)
        return list(points_of(file, ("daqwriter",))) if file else []


def live_series(written: Sequence[Point]) -> Series | None:
    """Returns the last record in the writer's live records, with cumulative counts turned into rates."""
    runs = [points for name, points in _stretches(written) if name == "record"]
    if not runs or len(runs[-1]) < 2:
        return None
    points = runs[-1]
    times = [point.time_ns / NS - points[0].time_ns / NS + (_number(points[0], "elapsed_s") or 0.0) for point in points]
    steps = [index for index in range(1, len(points)) if times[index] > times[index - 1]]
    return Series(
        t_s=tuple(times[index] for index in steps),
        offered_bytes_per_s=tuple(_rate(points, times, index, "offered_bytes") for index in steps),
        stored_bytes_per_s=tuple(_rate(points, times, index, "stored_bytes") for index in steps),
        backlog_bytes=tuple(_number(points[index], "backlog_bytes") or 0.0 for index in steps),
    )


def _rate(points: Sequence[Point], times: Sequence[float], index: int, field: str) -> float:
    before, after = _number(points[index - 1], field) or 0.0, _number(points[index], field) or 0.0
    return max(0.0, (after - before) / (times[index] - times[index - 1]))


def _stretches(points: Sequence[Point]) -> list[tuple[str, list[Point]]]:
    """Consecutive records of one phase, in time order."""
    found: list[tuple[str, list[Point]]] = []
    for point in sorted(points, key=lambda item: item.time_ns):
        name = point.tags.get("phase", "")
        if not found or found[-1][0] != name:
            found.append((name, []))
        found[-1][1].append(point)
    return found


def phases(events: Sequence[Event], live: Sequence[Point], start: datetime, end: datetime | None) -> tuple[Phase, ...]:
    """Returns the phases by the events; record and read-back by the writer's own records, which are finer, where it left any."""
    marked = _event_phases(events, start, end)
    written = [
        Phase(
            WRITER_PHASES.get(name, name),
            seconds(points[0].time_ns, start),
            seconds(points[-1].time_ns, start),
        )
        for name, points in _stretches(live)
        if name and len(points) > 1
    ]
    finer = {"record"} if any(phase.name == "record" for phase in written) else set()
    merged = sorted([phase for phase in marked if phase.name not in finer] + written, key=lambda phase: phase.start_s)
    least = SHORTEST_PHASE_SHARE * max((phase.end_s for phase in merged), default=0.0)
    return tuple(phase for phase in merged if phase.end_s - phase.start_s > least)


def _event_phases(events: Sequence[Event], start: datetime, end: datetime | None) -> list[Phase]:
    """A phase lasts until another begins; its steps announce themselves under the same source."""
    marks = [(event.time, event.source or event.text) for event in events if event.kind == "phase"]
    changes = [mark for index, mark in enumerate(marks) if index == 0 or mark[1] != marks[index - 1][1]]
    if not changes:
        return []
    last = max([event.time for event in events] + ([end] if end else []), default=start)
    ends = [time for time, _ in changes[1:]] + [last]
    return [
        Phase(RUN_PHASES.get(name, name), (since - start).total_seconds(), (until - start).total_seconds())
        for (since, name), until in zip(changes, ends, strict=True)
        if until > since
    ]


def accounting_of(root: Path, name: str) -> Accounting | None:
    """The agent's account of itself in file `name`; None where the bundle has none."""
    document = find_document(root, name)
    if document is None:
        return None
    found = ((label, path, _count_at(document, name, *path.split("."))) for path, label in ACCOUNTED)
    counts = tuple((label, path, value) for label, path, value in found if value is not None)
    return Accounting(counts, read(document, Summary, name).collectors)


def _count_at(document: Document, file: str, group: str, name: str) -> float | None:
    value = table(document, group).get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise BundleError(f"{file}: {group}.{name}", f"expected a number, found {str(value)[:SHOWN_CHARACTERS]}")
    return None if value is None else float(value)
