"""The telemetry of a bundle as tracks, one per subject and field, on the candidate's own clock (s since 1970 UTC)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daq_bench.bench_model.bundle.columns import Column, Columns, read_columns
from daq_bench.bench_model.bundle.line_protocol import Point
from daq_bench.bench_model.bundle.telemetry_files import points_files
from daq_bench.candidate_kit import plausible

# Measurement -> the tag that names its subject.
SUBJECTS = {
    "block_device": "device",
    "cpu": "core",
    "cpu_frequency": "core",
    "cpu_throttle": "package",
    "daqwriter": "phase",
    "interrupts": "device",
    "ipmi_event": "sensor",
    "ipmi_sensor": "sensor",
    "kernel_event": "device",
    "md_array": "device",
    "memory_bandwidth": "domain",
    "nvme_event": "device",
    "pcie_errors": "device",
    "pcie_link": "device",
    "pressure": "resource",
    "process": "name",
    "smart": "device",
    "smart_ocp": "device",
    "smart_temperature": "device",
    "temperature": "device",
}
KERNELS, DRIVES_OWN = THERMOMETERS = (
    "temperature",
    "smart_temperature",
)  # read each second, and with the drive's health log
WHOLE_DRIVE = ("composite", "drive")  # sensors of smart_temperature that limits are about
COMPOSITE = "Composite"  # NVMe's name for the temperature that WCTEMP and CCTEMP are about


@dataclass(frozen=True)
class Track:
    """Samples in the order of time."""

    times_s: NDArray[np.float64]
    values: NDArray[np.float64]

    def between(self, start_s: float, end_s: float) -> NDArray[np.float64]:
        inside = (self.times_s >= start_s) & (self.times_s <= end_s)
        return self.values[inside]

    def mean(self, start_s: float, end_s: float) -> float | None:
        found = self.between(start_s, end_s)
        return float(found.mean()) if len(found) else None

    def max(self, start_s: float, end_s: float) -> float | None:
        found = self.between(start_s, end_s)
        return float(found.max()) if len(found) else None

    def growth(self, start_s: float, end_s: float) -> float | None:
        """Growth of a counter from its last sample before `start_s` to its first after `end_s`; None where it cannot be told."""
        ends = self._ends(start_s, end_s)
        return float(self.values[ends[1]] - self.values[ends[0]]) if ends else None

    def slope(self, start_s: float, end_s: float) -> float | None:
        """The same growth per second between those two samples."""
        ends = self._ends(start_s, end_s)
        if ends is None or ends[0] == ends[1]:
            return None
        first, last = ends
        return float((self.values[last] - self.values[first]) / (self.times_s[last] - self.times_s[first]))

    def _ends(self, start_s: float, end_s: float) -> tuple[int, int] | None:
        """Says which samples are the last before and the first after; without one, the outermost inside."""
        count = len(self.times_s)
        first = max(int(np.searchsorted(self.times_s, start_s, side="right")) - 1, 0)
        last = min(int(np.searchsorted(self.times_s, end_s, side="left")), count - 1)
        outside = count == 0 or self.times_s[first] > end_s or self.times_s[last] < start_s
        return None if outside else (first, last)


@dataclass
class Tracks:
    """`get` returns None for what was never collected."""

    found: dict[tuple[str, str, str], Track] = field(default_factory=dict)

    def get(self, measurement: str, subject: str, name: str) -> Track | None:
        return self.found.get((measurement, subject, name))

    def thermometer(self, drive: str) -> str:
        """The measurement that tells a drive's temperature: the kernel's, every second, where it comes with the drive's warning limit;
        else that of its health log where this has one. The kernel reads no temperature of a SAS drive."""
        limited = [name for name in THERMOMETERS if self.get(name, drive, "warning_degc")]
        read = [name for name in THERMOMETERS if self.get(name, drive, "temperature_degc")]
        return next((name for name in (*limited, *read) if name in read), THERMOMETERS[0])

    def of(self, measurement: str, name: str) -> dict[str, Track]:
        """The tracks of one field by subject."""
        return {key[1]: track for key, track in self.found.items() if key[0] == measurement and key[2] == name}

    def has(self, measurement: str) -> bool:
        return any(key[0] == measurement for key in self.found)


def of_bundle(bundle: Path) -> Tracks:
    """Every track of the bundle's telemetry; none where the run has none."""
    files = points_files(bundle)
    return _read(files, tuple((file.stat().st_size, file.stat().st_mtime_ns) for file in files))


@lru_cache(maxsize=1)  # several documents follow from one run's telemetry, which may have millions of lines
def _read(files: tuple[Path, ...], states: tuple[tuple[int, int], ...]) -> Tracks:
    return from_columns(read_columns(file, dict.fromkeys(SUBJECTS)) for file in files)


def from_columns(spools: Iterable[Columns]) -> Tracks:
    """The tracks of spools, one after the other."""
    parts: dict[tuple[str, str, str], list[Column]] = defaultdict(list)
    for spool in spools:
        for (measurement, tags, name), column in spool.found.items():
            subject = _subject(Point(measurement, dict(tags), {}, 0))
            if subject is not None:
                parts[(measurement, subject, name)].append(column)
    return _believed({key: _joined(columns) for key, columns in parts.items()})


def _joined(columns: list[Column]) -> Track:
    """In the order of time, and of value where times are equal."""
    times = np.concatenate([column.times_ns for column in columns]) / 1e9
    values = np.concatenate([column.values for column in columns])
    order = np.lexsort((values, times))
    return Track(times[order], values[order])


def from_points(points: Iterable[Point]) -> Tracks:
    samples: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for point in points:
        subject = _subject(point)
        if subject is None:
            continue
        for name, value in point.fields.items():
            if not isinstance(value, str):
                samples[(point.measurement, subject, name)].append((point.time_ns / 1e9, float(value)))
    return _believed({key: _track(pairs) for key, pairs in samples.items()})


def _believed(found: dict[tuple[str, str, str], Track]) -> Tracks:
    """Without what no thermometer of a drive that runs can say, as older agents wrote it; what is no number stays, and is told of."""
    rules = {"temperature_degc": plausible.is_running_degrees, "warning_degc": plausible.is_limit}
    rules["critical_degc"] = plausible.is_limit
    tracks = Tracks()
    for key, track in found.items():
        if key[0] in THERMOMETERS and key[2] in rules:
            kept = np.array([not np.isfinite(value) or rules[key[2]](value) for value in track.values], dtype=bool)
            if not kept.any():
                continue
            track = Track(track.times_s[kept], track.values[kept])
        tracks.found[key] = track
    return tracks


def _subject(point: Point) -> str | None:
    if point.measurement == "temperature" and point.tags.get("label", COMPOSITE) != COMPOSITE:
        return None  # a drive's inner sensors have no limits of their own
    if point.measurement == "smart_temperature" and point.tags.get("sensor") not in WHOLE_DRIVE:
        return None
    if point.measurement == "pressure" and point.tags.get("kind") != "some":
        return None
    if "member" in point.tags or (point.measurement == "interrupts" and point.tags.get("core") != "total"):
        return None  # an array is judged as a whole, and so are a device's interrupts
    subject = point.tags.get(SUBJECTS.get(point.measurement, ""))
    if subject and point.measurement in ("kernel_event", "nvme_event"):
        behind = f" of {point.tags['drives']}" if "drives" in point.tags else ""
        return f"{subject}{behind} ({point.tags.get('kind', 'unknown')})"
    if subject and "function" in point.tags:
        return f"{subject} ({point.tags['function']})"
    if subject and "entity" in point.tags:  # a server may call the sensors of two processors by one name
        return f"{subject} ({point.tags['entity']})"
    return subject


def _track(pairs: list[tuple[float, float]]) -> Track:
    pairs.sort()
    array = np.asarray(pairs, dtype=float)
    return Track(array[:, 0], array[:, 1])


def rates(counter: Track, start_s: float, end_s: float, step_s: float) -> list[float]:
    """Mean growth per second of a counter over whole steps from `start_s`; only where samples surround them.

    The counter is interpolated between its samples, so that a late sample shifts bytes by less than its lateness and loses none."""
    first, last = max(start_s, float(counter.times_s[0])), min(end_s, float(counter.times_s[-1]))
    steps = int(np.floor((last - first) / step_s + 1e-3))  # times of this size are only good to a microsecond
    if steps < 1:
        return []
    edges = first + step_s * np.arange(steps + 1)
    levels = np.interp(edges, counter.times_s, counter.values)
    return [float(value) for value in np.maximum(np.diff(levels), 0.0) / step_s]


def spacing_s(track: Track) -> float:
    """Usual distance of two samples."""
    return float(np.median(np.diff(track.times_s))) if len(track.times_s) > 1 else 0.0
