"""Did a drive's temperature reading move at all? One that gives the same number in the idle time, under the whole load and afterwards
tells nothing of the drive, however cool the number is.

A sensor has whole degrees and a well-cooled drive warms little, so that a constant reading alone proves nothing. It is held against
what cannot be without a change of temperature:

- the least by which the drive's own writing must have warmed it, from few watts and good cooling;
- another reading of the same drive, or a drive of the same model that had no more to do, that moved by several degrees;
- the drive's own count of crossings of its throttling temperatures.

An air-cooled drive's temperature rises by R W r (1 - exp(-t / RC)) after t seconds of writing at the rate r: the more for a larger R,
at every moment, and so the numbers below are those of a drive that is cooled better than most. Without any of these the reading counts
as it is: in a short rehearsal and under a small load."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.behaviour.throttling import EVENTS
from daq_bench.bench_model.bundle import telemetry_tracks
from daq_bench.bench_model.bundle.telemetry_files import points_of_bundle
from daq_bench.bench_model.bundle.telemetry_tracks import Track, Tracks
from daq_bench.bench_model.documents.run import Drive

# [P] Writing adds some 1 W (NAND behind PCIe 5) to 4 W (3D XPoint) for each GB/s.
W_PER_GB_PER_S_MIN = 1.0
# [P] From a drive's sensor to the air: 25 W stay 12 K above it. Drives that need their fans to stay below 70 degC have 1 to 2 K/W.
K_PER_W_MIN = 0.5
TIME_CONSTANT_S = 80.0  # of that drive: 160 J/K, a 2.5-inch case of some 180 g of aluminium
RISE_K_MIN = 2.0  # [P] twice the step of a sensor of whole degrees
# [P] Another place of the same drive or chassis, cooled four times worse, leaves 1 K for this one.
OTHER_MOVED_K_MIN = 4.0
LOADED_S_MIN = 3 * TIME_CONSTANT_S  # before that a hot spot in a drive may be far ahead of its composite temperature
LIKE_LOAD = 0.9  # share of another drive's bytes from which on this one had no less to do
CROSSINGS = {
    key: words for key, words in EVENTS.items() if not key[1].endswith("_time_s")
}  # time also grows without a crossing
KERNELS, DRIVES_OWN, DEGREES = "temperature", "smart_temperature", "temperature_degc"
Inner = Mapping[str, float]  # by drive: the most that any of its readings moved, K


@dataclass(frozen=True)
class _Still:
    """A drive's reading that never changed, and what the drive did meanwhile."""

    drive: str
    model: str | None
    degrees: float
    start_s: float
    end_s: float
    written: Track | None


def of_bundle(bundle: Path, drives: list[Drive]) -> list[str]:
    """A sentence for each drive of the target (run.json's entries) whose reading is no evidence for its temperature."""
    tracks = telemetry_tracks.of_bundle(bundle)
    stills = [one for one in (_still(tracks, drive) for drive in drives) if one]
    inner = _inner(bundle) if stills else {}
    found = ((one, next(_contradictions(tracks, one, drives, inner), "")) for one in stills)
    return [_sentence(one, why) for one, why in found if why]


def _inner(bundle: Path) -> Inner:
    """Returns how far the readings of each drive moved, whoever read them: the composite temperature and the sensors inside."""
    degrees: dict[tuple[str, str], list[float]] = defaultdict(list)
    for point in points_of_bundle(bundle, {KERNELS, DRIVES_OWN}, (DEGREES,)):
        if DEGREES in point.fields and "device" in point.tags:
            sensor = f"{point.measurement} {point.tags.get('sensor')} {point.tags.get('label')}"
            degrees[point.tags["device"], sensor].append(float(point.fields[DEGREES]))
    moved: dict[str, float] = defaultdict(float)
    for (drive, _), values in degrees.items():
        if all(map(math.isfinite, values)):
            moved[drive] = max(moved[drive], max(values) - min(values))
    return moved


def _sentence(still: _Still, why: str) -> str:
    return (
        f"The temperature reading of drive {still.drive} was {still.degrees:g} degC throughout {still.end_s - still.start_s:.0f} s, "
        f"although {why}: it never moved and is no evidence for the drive's temperature. Compare smartctl -a with nvme smart-log under "
        "load, then update the drive's firmware or replace it, and run again"
    )


def _still(tracks: Tracks, drive: Drive) -> _Still | None:
    name = drive.name
    track = _believed(tracks, name)
    if track is None or len(track.values) < 2 or not np.isfinite(track.values).all() or np.ptp(track.values) > 0:
        return None
    first, last = float(track.times_s[0]), float(track.times_s[-1])
    written = _between(tracks, name, "written_bytes", first, last)
    return _Still(name, drive.model, float(track.values[0]), first, last, written)


def _believed(tracks: Tracks, drive: str) -> Track | None:
    """Returns the reading that drives are judged by: the kernel's where it comes with limits, else the drive's own."""
    kernels, own = tracks.get(KERNELS, drive, DEGREES), tracks.get(DRIVES_OWN, drive, DEGREES)
    limited = any(tracks.get(KERNELS, drive, limit) for limit in ("warning_degc", "critical_degc"))
    return kernels if limited or own is None else own


def _between(tracks: Tracks, drive: str, counter: str, start_s: float, end_s: float) -> Track | None:
    """The drive's counter of the block layer while its temperature was read; None where that is no growing number."""
    track = tracks.get("block_device", drive, counter)
    if track is None:
        return None
    inside = (track.times_s >= start_s) & (track.times_s <= end_s)
    part = Track(track.times_s[inside], track.values[inside])
    sound = len(part.values) > 1 and np.isfinite(part.values).all() and (np.diff(part.values) >= 0).all()
    return part if sound else None


def _contradictions(tracks: Tracks, still: _Still, drives: list[Drive], inner: Inner) -> Iterator[str]:
    """Yields, in words, each fact that cannot be if the drive's temperature stood still."""
    yield from _by_rise(still)
    yield from _by_another_sensor(still, inner)
    yield from _by_another_drive(tracks, still, drives)
    for (log, name), meaning in CROSSINGS.items():
        track = tracks.get(log, still.drive, name)
        if track is not None and track.values[-1] > track.values[0]:
            yield f"the drive counted {in_digits(track.values[-1] - track.values[0], 15)} more {meaning}"


def _by_rise(still: _Still) -> Iterator[str]:
    if still.written is None:
        return
    rise = least_rise_k(still.written)
    if rise >= RISE_K_MIN:
        written = (still.written.values[-1] - still.written.values[0]) / 1e9
        yield f"writing {written:.0f} GB in {loaded_s(still.written):.0f} s warms even a well-cooled drive by {rise:.1f} K"


def least_rise_k(written: Track) -> float:
    """By how much such a drive's temperature moves under this writing, if it was in equilibrium with what came first."""
    steps = np.diff(written.times_s)
    ends = K_PER_W_MIN * W_PER_GB_PER_S_MIN * np.diff(written.values) / np.maximum(steps, 1e-9) / 1e9
    degrees = lowest = highest = float(ends[0])
    for end, step in zip(ends.tolist(), steps.tolist(), strict=True):
        degrees = end + (degrees - end) * math.exp(-step / TIME_CONSTANT_S)
        lowest, highest = min(lowest, degrees), max(highest, degrees)
    return highest - lowest


def loaded_s(written: Track) -> float:
    """Seconds in which anything was written."""
    return float(np.diff(written.times_s)[np.diff(written.values) > 0].sum())


def _by_another_sensor(still: _Still, inner: Inner) -> Iterator[str]:
    moved = inner.get(still.drive, 0.0)
    if still.written is not None and loaded_s(still.written) >= LOADED_S_MIN and moved >= OTHER_MOVED_K_MIN:
        yield f"another reading of the same drive moved by {moved:.0f} K"


def _by_another_drive(tracks: Tracks, still: _Still, drives: list[Drive]) -> Iterator[str]:
    mine = _bytes(tracks, still, still.drive)
    for other in (one.name for one in drives if still.model and one.model == still.model):
        theirs, moved = _bytes(tracks, still, other), _moved(_believed(tracks, other), still)
        if moved >= OTHER_MOVED_K_MIN and 0 < LIKE_LOAD * theirs <= mine:
            yield f"drive {other}, of the same model and with the same load, moved by {moved:.0f} K"


def _bytes(tracks: Tracks, still: _Still, drive: str) -> float:
    """Returns what a drive wrote and read meanwhile; 0 where nobody counted it."""
    both = (_between(tracks, drive, name, still.start_s, still.end_s) for name in ("written_bytes", "read_bytes"))
    return sum(float(one.values[-1] - one.values[0]) for one in both if one)


def _moved(track: Track | None, still: _Still) -> float:
    values = track.between(still.start_s, still.end_s) if track else np.array([])
    return float(np.ptp(values)) if len(values) and np.isfinite(values).all() else 0.0
