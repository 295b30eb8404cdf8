"""Was every target drive's temperature read all the time, and did the reading move? A sensor that falls silent as the drive gets hot must
not look like a cool drive, nor one that is stuck.

The collector itself may go on with other sensors, so that its own account shows no gap."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from daq_bench.bench_model.bundle.evidence import Document
from daq_bench.bench_model.bundle.files import find_document
from daq_bench.bench_model.bundle.telemetry_files import points_of_bundle
from daq_bench.bench_model.documents.telemetry import SensorCoverage
from daq_bench.bench_model.evidence import unmoved_sensors
from daq_bench.bench_model.evidence.admissibility import TELEMETRY_GAP_PERIODS_MAX

COLLECTOR, DEGREES = "temperature", "temperature_degc"
SILENCE_S_MIN = 10.0  # [P] a sensor may miss a reading or two while its drive is busy


def of_bundle(bundle: Path, run: Document) -> SensorCoverage:
    """results/sensor_coverage.json: the longest silence of each target drive's temperature sensor.

    `invalid` names a sensor that fell silent, `limits` a drive without one beside drives that have one, `unmoved` one whose reading
    never changed although the drive's temperature must have."""
    drives = [drive["name"] for drive in run["target"]["drives"]]
    watched: list[float] = []
    read: dict[str, list[float]] = {name: [] for name in drives}
    for point in points_of_bundle(bundle, {COLLECTOR, "block_device"}, fields=(DEGREES,)):
        at_s = point.time_ns / 1e9
        watched.append(at_s)
        # A point without its number, a sensor's limits alone, is no reading.
        if point.measurement == COLLECTOR and DEGREES in point.fields and point.tags.get("device") in read:
            read[point.tags["device"]].append(at_s)
    limit_s = max(SILENCE_S_MIN, TELEMETRY_GAP_PERIODS_MAX * _period_s(bundle))
    silences = {name: _longest_silence_s(times, watched) if times else None for name, times in read.items()}
    known = any(silence is not None for silence in silences.values())
    return SensorCoverage(
        schema_version=1,
        limit_s=limit_s,
        longest_silence_s=silences,
        invalid=[
            f"The temperature of drive {name} was not read for {silence:.0f} s (limit {limit_s:.0f} s)"
            for name, silence in silences.items()
            if silence is not None and silence > limit_s
        ],
        limits=[
            f"Drive {name} reports no temperature, while other drives of the target do"
            for name, silence in silences.items()
            if known and silence is None
        ],
        unmoved=unmoved_sensors.of_bundle(bundle, run["target"]["drives"]),
    )


def _longest_silence_s(times: list[float], watched: list[float]) -> float:
    """Between readings, and from the last to the end of the telemetry; before the first the drive may not have been there."""
    moments = [*sorted(times), max(watched)]
    return round(max(later - earlier for earlier, later in pairwise(moments)), 3)


def _period_s(bundle: Path) -> float:
    summary = find_document(bundle, "telemetry/summary.json")
    if summary is None:
        return 0.0
    collectors: list[Document] = summary["collectors"]
    return max((float(one["period_s"]) for one in collectors if one["name"] == COLLECTOR), default=0.0)
