"""The power that the server drew during each supernova-burst record, from the BMC's readings in the bundle.

The BMC's power is that of the whole server. A reading holds until the next one: the mean is weighted by time. A record during which the
BMC said nothing has no mean, nor one during which its power could not be read at some time: it answered 0 W, or did not answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from daq_bench.bench_model.bundle.files import find_document
from daq_bench.bench_model.bundle.line_protocol import Point
from daq_bench.bench_model.bundle.telemetry_files import points_of_bundle
from daq_bench.bench_model.documents.derived import PowerOfRecord, RecordPower
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import moment

MEASUREMENT, FIELD, UNREAD = "ipmi_power", "power_w", "unread"
POWER, PER_RATE = "snb_record.power_mean", "snb_record.power_per_rate"
RESULT = "results/snb_record.json"
NO_READING = "the BMC gave no power reading (DCMI) during a record"

NOT_READ = "Telemetry of ipmi: the server's power could not be read at some time of a record (DCMI), and nothing says what it was then"

Reading = tuple[float, float | None]  # (time in s, W; None where the power could not be read)


def of_bundle(bundle: Path, run: Run) -> RecordPower:
    """results/record_power.json for the records of the run."""
    readings = power_readings(bundle)
    found = find_document(bundle, RESULT)
    repetitions = found["repetitions"] if found is not None else []
    return document(readings, repetitions)


def power_readings(bundle: Path) -> list[Reading]:
    """The server's power by its BMC over the run, in the order of time."""
    return readings_of(points_of_bundle(bundle, {MEASUREMENT}, (FIELD, UNREAD)))


def readings_of(points: Iterable[Point]) -> list[Reading]:
    """The same of points, among which there may be others."""
    found: list[Reading] = []
    for point in points:
        if point.measurement == MEASUREMENT and FIELD in point.fields:
            found.append((point.time_ns / 1e9, float(point.fields[FIELD])))
        elif point.measurement == MEASUREMENT and UNREAD in point.fields:
            found.append((point.time_ns / 1e9, None))
    return sorted(found, key=itemgetter(0))


def document(readings: Sequence[Reading], repetitions: Sequence[dict[str, Any]]) -> RecordPower:
    """One entry for each repetition; null, with the reason, where nothing was read."""
    records = [_record(readings, repetition) for repetition in repetitions]
    whole = records and all(record.mean_w is not None for record in records)
    why = NO_READING if repetitions else "no record was made"
    if any(record.mean_w is None and record.readings for record in records):
        why = NOT_READ
    return RecordPower(1, records, {} if whole else dict.fromkeys((POWER, PER_RATE), why))


def _record(readings: Sequence[Reading], repetition: dict[str, Any]) -> PowerOfRecord:
    minidaq = repetition["minidaq"]
    start = moment(minidaq["started_utc"]).timestamp()
    end = start + minidaq["time"]["record_s"]
    power = mean_power(readings, start, end)
    stored = minidaq["stored_bytes_per_s"]
    inside = [watts for at, watts in readings if start <= at <= end and watts is not None]
    return PowerOfRecord(
        started_utc=minidaq["started_utc"],
        readings=len(inside),
        mean_w=power,
        w_per_gb_per_s=power / (stored / 1e9) if power is not None and stored else None,
        condition=repetition.get("condition"),
        samples_w=inside,
    )


def mean_power(readings: Sequence[Reading], start: float, end: float) -> float | None:
    """The mean from `start` to `end`, weighted by time; None without a reading in between, or where one of them, or the one that holds at
    `start`, could not be read. Before the first reading within, the one before it holds, or else that first one itself."""
    inside = [reading for reading in readings if start <= reading[0] <= end]
    if not inside or end <= start:
        return None
    before = [watts for at, watts in readings if at < start]
    steps: list[Reading] = [(start, before[-1] if before else inside[0][1]), *inside]
    energy = 0.0
    for (at, watts), after in zip(steps, [*(at for at, _ in inside), end], strict=True):
        if watts is None:
            return None
        energy += watts * (after - at)
    return energy / (end - start)
