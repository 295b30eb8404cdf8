"""A run's main series on a common clock: each sustained load begins at EPOCH, so that two runs can be laid over each other.

A pure function of the bundle. InfluxQL cannot shift a series by an amount that a variable names, so the shifted copy is what
the history keeps (measurement `aligned`)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from daq_bench.bench_model.behaviour import load_windows
from daq_bench.bench_model.bundle.files import find_document, read_structs
from daq_bench.bench_model.bundle.telemetry_files import points_of_bundle
from daq_bench.bench_model.bundle.telemetry_tracks import Track, Tracks, of_bundle
from daq_bench.bench_model.documents.events import Event
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import moment

EPOCH_NS = 946_684_800 * 10**9  # 2000-01-01T00:00:00Z
BEFORE_S, AFTER_S = 10.0, 30.0
POINTS_MAX = 3600  # of one series: a load of an hour at 1 s; a longer one gets longer steps
LOADS_MAX = 8  # the longest; a scan has hundreds that nobody compares second by second
WHOLE_RUN = "run"  # the load's name where a run has no sustained one
WITH_DRAIN = ("record", "drain")


@dataclass(frozen=True)
class Load:
    """A stretch of the run, s since 1970 UTC on the candidate's clock."""

    name: str
    begin_s: float
    end_s: float


@dataclass(frozen=True)
class AlignedPoint:
    """`time_ns` counts from 1970 UTC, EPOCH_NS being the begin of the load; `device` is empty for the machine as a whole."""

    load: str
    device: str
    time_ns: int
    fields: dict[str, float]


def points(bundle: Path, run: Run) -> list[AlignedPoint]:
    """All points of a finished run; none where it was never watched."""
    tracks = of_bundle(bundle)
    if not tracks.found:
        return []
    loads = loads_of(bundle, run, tracks)
    power = _power(bundle) if loads else None
    return [point for load in loads for point in _points_of_load(load, run, tracks, power)]


def loads_of(bundle: Path, run: Run, tracks: Tracks) -> list[Load]:
    """The longest sustained loads in the order of time; for a run without one, the time of its workloads."""
    found = [
        Load(_name(window), _begin_s(window, tracks), window.end_s)
        for window in load_windows.of_bundle(bundle, run, tracks)
    ]
    longest = sorted(found, key=lambda load: load.begin_s - load.end_s)[:LOADS_MAX]
    return sorted(longest, key=lambda load: load.begin_s) or _whole_run(bundle, run)


def _name(window: load_windows.Window) -> str:
    return window.name if window.workload == "daqwriter" else f"{window.workload} {window.name}"


def _begin_s(window: load_windows.Window, tracks: Tracks) -> float:
    """The trigger itself: daqwriter's first record comes an interval later, and says by how much."""
    if window.workload != "daqwriter":
        return window.start_s
    elapsed = tracks.get("daqwriter", window.name.split(" ", maxsplit=1)[0], "elapsed_s")
    first = elapsed.between(window.start_s, window.start_s) if elapsed else np.empty(0)
    return window.start_s - float(first[0]) if len(first) else window.start_s


def _whole_run(bundle: Path, run: Run) -> list[Load]:
    workloads = run.scenario.workloads
    events = [event for event in read_structs(bundle, "events.jsonl", Event) if event.kind == "phase"]
    begins = [event.time_s for event in events if event.source in workloads]
    ends = [event.time_s for event in events if begins and event.time_s > begins[-1]]
    return [Load(WHOLE_RUN, begins[0], ends[0] if ends else begins[-1])] if begins else []


def _points_of_load(load: Load, run: Run, tracks: Tracks, power: Track | None) -> Iterator[AlignedPoint]:
    first, last = load.begin_s - BEFORE_S, load.end_s + AFTER_S
    step_s = float(max(1, math.ceil((last - first) / POINTS_MAX)))
    edges = first + step_s * np.arange(int((last - first) / step_s) + 1)
    made: dict[tuple[str, int], dict[str, float]] = defaultdict(dict)
    for device, field, values in _series(load, run, tracks, power, edges):
        for index, value in enumerate(values):
            if not math.isnan(value):
                made[device, index][field] = float(value)
    for (device, index), fields in sorted(made.items()):
        offset_ns = (
            round((edges[index] - load.begin_s) * 1000) * 10**6
        )  # a millisecond is more than the clocks agree on
        yield AlignedPoint(load.name, device, EPOCH_NS + offset_ns, fields)


def _series(
    load: Load, run: Run, tracks: Tracks, power: Track | None, edges: np.ndarray[Any, Any]
) -> Iterator[tuple[str, str, np.ndarray[Any, Any]]]:
    """(device, field, value for each step; NaN where there was no sample)."""
    for field, counter in (("offered_bytes_per_s", "offered_bytes"), ("stored_bytes_per_s", "stored_bytes")):
        yield "", field, _rates(_joined(tracks, counter, load), edges)
    yield "", "backlog_bytes", _extreme(_joined(tracks, "backlog_bytes", load), edges)
    for field in ("busy_fraction", "system_fraction"):
        yield "", field, _means(tracks.get("cpu", "total", field), edges)
    yield "", "power_w", _means(power, edges)
    for device in _devices(run, tracks):
        yield device, "written_bytes_per_s", _rates(tracks.get("block_device", device, "written_bytes"), edges)
        yield device, "write_latency_s", _means(tracks.get("block_device", device, "write_latency_s"), edges)
        yield device, "temperature_degc", _extreme(tracks.get("temperature", device, "temperature_degc"), edges)


def _devices(run: Run, tracks: Tracks) -> list[str]:
    """The target's device and its drives; others are not what the run was about."""
    return [drive.name for drive in run.target.devices] or sorted(tracks.of("block_device", "written_bytes"))


def _joined(tracks: Tracks, field: str, load: Load) -> Track | None:
    """daqwriter's series over record and drain, of this load alone: the next record's counters begin again."""
    parts = [track for phase in WITH_DRAIN if (track := tracks.get("daqwriter", phase, field)) is not None]
    if not parts:
        return None
    times = np.concatenate([part.times_s for part in parts])
    values = np.concatenate([part.values for part in parts])
    inside = (times >= load.begin_s) & (times <= load.end_s + AFTER_S)
    if not inside.any():
        return None
    order = np.argsort(times[inside], kind="stable")
    # Everything begins at nothing, an interval before the first record says so.
    times, values = np.append(load.begin_s, times[inside][order]), np.append(0.0, values[inside][order])
    resets = np.flatnonzero(np.diff(values) < 0) if field != "backlog_bytes" else np.empty(0, dtype=int)
    end = int(resets[0]) + 1 if len(resets) else len(times)
    return Track(times[:end], values[:end])


def _rates(counter: Track | None, edges: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Growth per second of a counter in each step that its samples surround."""
    made = np.full(len(edges) - 1, np.nan)
    if counter is None or len(counter.times_s) < 2:
        return made
    levels = np.interp(edges, counter.times_s, counter.values)
    inside = (edges[:-1] < counter.times_s[-1]) & (edges[1:] > counter.times_s[0])
    made[inside] = (np.maximum(np.diff(levels), 0.0) / np.diff(edges))[inside]
    return made


def _means(track: Track | None, edges: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return _binned(track, edges, np.mean)


def _extreme(track: Track | None, edges: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return _binned(track, edges, np.max)


def _binned(track: Track | None, edges: np.ndarray[Any, Any], what: Any) -> np.ndarray[Any, Any]:
    made = np.full(len(edges) - 1, np.nan)
    if track is None:
        return made
    bounds = np.searchsorted(track.times_s, edges)
    for index, (low, high) in enumerate(pairwise(bounds)):
        if high > low:
            made[index] = what(track.values[low:high])
    return made


def _power(bundle: Path) -> Track | None:
    """The server's power by DCMI; a measurement without a tag of its own, which `Tracks` knows nothing of."""
    power = (point for point in points_of_bundle(bundle, {"ipmi_power"}, ("power_w",)) if "power_w" in point.fields)
    found = sorted((point.time_ns / 1e9, float(point.fields["power_w"])) for point in power)
    if not found:
        return None
    array = np.asarray(found)
    return Track(array[:, 0], array[:, 1])


def busy_spans(bundle: Path) -> list[tuple[float, float, str]]:
    """(begin, end, what) of every time that a record's dataflow was BUSY, s since 1970 UTC on the candidate's clock."""
    record = find_document(bundle, "results/snb_record.json")
    if record is None:
        return []
    found = []
    for number, repetition in enumerate(record["repetitions"], start=1):
        said = repetition["minidaq"]
        for episode in said.get("busy", {}).get("episodes", []):
            # daqwriter says when it started; the record begins once its target and its buffers are prepared.
            record_s = moment(said["started_utc"]).timestamp() + float(said["time"]["prepare_s"])
            begin_s = record_s + float(episode["start_s"])
            length_s = float(episode["duration_s"])
            found.append((begin_s, begin_s + length_s, f"BUSY for {length_s:.3f} s in record {number}"))
    return found
