"""Was every target drive's temperature read all the time, and did the reading move? A sensor that falls silent as the drive gets hot must
not look like a cool drive, nor one that is stuck.

The collector itself may go on with other sensors, so that its own account shows no gap. The kernel reads no temperature of a SAS drive:
there the readings are those of the drive's health log."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from daq_bench.bench_model.bundle.files import find_document
from daq_bench.bench_model.bundle.line_protocol import Point
from daq_bench.bench_model.bundle.telemetry_files import points_of_bundle
from daq_bench.bench_model.bundle.telemetry_tracks import DRIVES_OWN, THERMOMETERS, WHOLE_DRIVE
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.documents.telemetry import SensorCoverage
from daq_bench.bench_model.evidence import unmoved_sensors
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
        unmoved=unmoved_sensors.of_bundle(bundle, run.target.drives),
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
