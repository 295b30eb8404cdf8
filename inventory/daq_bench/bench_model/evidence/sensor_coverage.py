"""Was every target drive's temperature read all the time, and did the reading move? A sensor that falls silent as the drive gets hot must
not look like a cool drive, nor one that is stuck.

The collector itself may go on with other sensors, so that its own account shows no gap. The kernel reads no temperature of a SAS drive:
there the readings are those of the drive's health log."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.behaviour.throttling import EVENTS
from daq_bench.bench_model.bundle import telemetry_tracks
from daq_bench.bench_model.bundle.files import find_document
from daq_bench.bench_model.bundle.line_protocol import Point
from daq_bench.bench_model.bundle.telemetry_files import points_of_bundle
from daq_bench.bench_model.bundle.telemetry_tracks import DRIVES_OWN, THERMOMETERS, WHOLE_DRIVE, Track, Tracks
from daq_bench.bench_model.documents.run import Drive, Run
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.documents.telemetry import SensorCoverage
from daq_bench.bench_model.evidence.admissibility import TELEMETRY_GAP_PERIODS_MAX

COLLECTOR, HEALTH, DEGREES = "temperature", "smart", "temperature_degc"
SILENCE_S_MIN = 10.0  # [P] a sensor may miss a reading or two while its drive is busy


def of_bundle(bundle: Path, run: Run) -> SensorCoverage:
    """results/sensor_coverage.json: the longest silence of each target drive's temperature sensor.

    `invalid` names a sensor that fell silent, or that began long after its drive was there, `limits` a drive without one beside drives that
    have one, `unmoved` one whose reading never changed although the drive's temperature must have."""
    drives = run.target.names
    watched: list[float] = []
    there: dict[str, float] = {}  # since when the drive itself was
    read: dict[str, dict[str, list[float]]] = {name: {source: [] for source in THERMOMETERS} for name in drives}
    for point in points_of_bundle(bundle, {*THERMOMETERS, "block_device"}, fields=(DEGREES,)):
        at_s = point.time_ns / 1e9
        watched.append(at_s)
        if point.measurement == "block_device" and (device := point.tags.get("device")) in read:
            there[device] = min(at_s, there.get(device, at_s))
        # A point without its number, a sensor's limits alone, is no reading.
        if DEGREES in point.fields and point.tags.get("device") in read and _is_of_whole_drive(point):
            read[point.tags["device"]][point.measurement].append(at_s)
    limits_s = {
        source: max(SILENCE_S_MIN, TELEMETRY_GAP_PERIODS_MAX * _period_s(bundle, collector))
        for source, collector in ((COLLECTOR, COLLECTOR), (DRIVES_OWN, HEALTH))
    }
    sources = {name: next((one for one in THERMOMETERS if found[one]), COLLECTOR) for name, found in read.items()}
    limit_s = limits_s[COLLECTOR]
    silences = {
        name: _longest_silence_s(found[sources[name]], watched) if found[sources[name]] else None
        for name, found in read.items()
    }
    for name, silence in silences.items():
        late = min(read[name][sources[name]]) - there[name] if silence is not None and name in there else 0.0
        if silence is not None and late > limits_s[sources[name]]:
            silences[name] = max(silence, round(late, 3))
    known = any(silence is not None for silence in silences.values())
    return SensorCoverage(
        schema_version=1,
        limit_s=limit_s,
        longest_silence_s=silences,
        invalid=[
            f"The temperature of drive {name} was not read for {silence:.0f} s (limit {limits_s[sources[name]]:.0f} s)"
            for name, silence in silences.items()
            if silence is not None and silence > limits_s[sources[name]]
        ],
        limits=[
            f"Drive {name} reports no temperature, while other drives of the target do"
            for name, silence in silences.items()
            if known and silence is None
        ],
        unmoved=unmoved(bundle, run.target.drives),
    )


def _longest_silence_s(times: list[float], watched: list[float]) -> float:
    """Between readings, and from the last to the end of the telemetry."""
    moments = [*sorted(times), max(watched)]
    return round(max(later - earlier for earlier, later in pairwise(moments)), 3)


def _is_of_whole_drive(point: Point) -> bool:
    return point.measurement == COLLECTOR or point.tags.get("sensor") in WHOLE_DRIVE


def _period_s(bundle: Path, collector: str) -> float:
    summary = find_document(bundle, "telemetry/summary.json")
    if summary is None:
        return 0.0
    collectors: list[Document] = summary["collectors"]
    return max((float(one["period_s"]) for one in collectors if one["name"] == collector), default=0.0)


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


def unmoved(bundle: Path, drives: list[Drive]) -> list[str]:
    """A sentence for each drive of the target (run.json's entries) whose reading is no evidence for its temperature: it gives the same
    number in the idle time, under the whole load and afterwards, however cool the number is.

    A sensor has whole degrees and a well-cooled drive warms little, so that a constant reading alone proves nothing. It is held against
    what cannot be without a change of temperature:

    - the least by which the drive's own writing must have warmed it, from few watts and good cooling;
    - another reading of the same drive, or a drive of the same model that had no more to do, that moved by several degrees;
    - the drive's own count of crossings of its throttling temperatures.

    An air-cooled drive's temperature rises by R W r (1 - exp(-t / RC)) after t seconds of writing at the rate r: the more for a larger R,
    at every moment, and so the numbers here are those of a drive that is cooled better than most. Without any of these the reading counts
    as it is: in a short rehearsal and under a small load."""
    tracks = telemetry_tracks.of_bundle(bundle)
    stills = [one for one in (_still(tracks, drive) for drive in drives) if one]
    inner = _inner(bundle) if stills else {}
    found = ((one, next(_contradictions(tracks, one, drives, inner), "")) for one in stills)
    return [_sentence(one, why) for one, why in found if why]


def _inner(bundle: Path) -> Inner:
    """Returns how far the readings of each drive moved, whoever read them: the composite temperature and the sensors inside."""
    degrees: dict[tuple[str, str], list[float]] = defaultdict(list)
    for point in points_of_bundle(bundle, {*THERMOMETERS}, (DEGREES,)):
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
    kernels, own = tracks.get(COLLECTOR, drive, DEGREES), tracks.get(DRIVES_OWN, drive, DEGREES)
    limited = any(tracks.get(COLLECTOR, drive, limit) for limit in ("warning_degc", "critical_degc"))
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
