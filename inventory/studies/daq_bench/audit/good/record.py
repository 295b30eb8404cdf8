"""Good records, as the modelled daqwriter tells of them, and results/snb_record.json with what is derived from it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from daq_bench.audit.good.case import RATE, STARTED_UTC, Case

from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.documents.struct import Document, moment
from daq_bench.bench_model.workloads.preconditioning import FRESH, PRECONDITIONED, WRITTEN_SHARE, Room, span_of
from daq_bench.rig.workloads.shared.site import minidaq_options
from daq_bench.rig.workloads.snb_record import conditions_of, repetition_document
from daq_bench.simulation.physics.drawing import spec_of
from daq_bench.simulation.physics.server import Server
from daq_bench.simulation.tools.daqwriter import Recording, Stored, verify

FILESYSTEM_SHARE = 0.02  # of a drive, for the file system itself


def documents(case: Case) -> dict[str, Document]:
    """results/snb_record.json and the documents that follow from it and the telemetry."""
    demand, parameters = case.scenario.demand, case.plan("snb_record").parameters
    repetitions: list[Document] = []
    conditioning: list[Document] = []
    now = moment(STARTED_UTC) + timedelta(seconds=60)
    for condition in conditions_of(parameters):
        for turn in range(case.scenario.repetitions):
            number = len(repetitions) + 1
            if condition == FRESH or (condition and turn == 0):
                conditioning.append(_conditioned(case, condition, f"record-{number}-{condition}", now))
                now += timedelta(seconds=_took(conditioning[-1]))
            written, kept = minidaq(case, demand, parameters, number)
            written["started_utc"] = f"{now:%Y-%m-%dT%H:%M:%S.000Z}"
            read_back, _, _ = verify(server(case), kept, ["--target="], lambda _: None)
            assert read_back is not None
            repetitions.append(repetition_document(written, read_back, condition))
            now += timedelta(seconds=written["time"]["total_s"] + read_back["duration_s"] + 2)
    stopping = {"repetitions_min": 1, "repetitions_max": 1, "confidence": 0.95, "looks": []}
    return {
        "results/snb_record.json": {
            "schema_version": 1,
            "repetitions": repetitions,
            "conditioning": conditioning,
            "limits": [],
            "stopping": stopping,
        },
        "results/drive_temperature.json": drive_temperature(),
        "results/record_power.json": {
            "schema_version": 1,
            "records": [_power(one) for one in repetitions],
            "reasons": {},
        },
    }


def _conditioned(case: Case, condition: str, label: str, now: datetime) -> Document:
    """The target emptied, and for the preconditioned one written full: a raw drive whole, a file system but for its reserve."""
    free = case.capacity_bytes if case.raw else int(case.capacity_bytes * (1 - FILESYSTEM_SHARE))
    room = Room(case.capacity_bytes, free, 10**9, case.raw, dedicated=True)
    span = span_of(None, room, case.scenario.demand.record_bytes)
    written, rate = int(WRITTEN_SHARE * span), case.around(RATE * case.members)
    fill = {
        "passes": 1,
        "block_bytes": 131072,
        "io_depth": 32,
        "bytes_written": written,
        "bytes_per_s": rate,
        "seconds": written / rate + 1.0,
        "device_bytes_written": written,
    }
    purge = {"method": "fstrim", "text": "trimmed", "done": True, "zero_share": None, "seconds": 10.0}
    if case.raw:
        purge = {"method": "discard", "text": "BLKDISCARD", "done": True, "zero_share": 1.0, "seconds": 10.0}
    return {
        "condition": condition,
        "label": label,
        "started_utc": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "span_bytes": span,
        "capacity_bytes": case.capacity_bytes,
        "share_of_capacity": span / case.capacity_bytes,
        "purge": purge,
        "preconditioning": fill if condition == PRECONDITIONED else None,
        "limits": [],
        "used_bytes": 0 if case.raw else 10**9,
        "remarks": [],
        **({"discarded_bytes": 0} if condition == PRECONDITIONED else {}),
    }


def _took(conditioning: Document) -> float:
    written = conditioning["preconditioning"]
    return float(conditioning["purge"]["seconds"] + (written["seconds"] if written else 0.0) + 2.0)


def drive_temperature() -> Document:
    return {
        "schema_version": 1,
        "device": "nvme0n1",
        "samples": 7200,
        "max_degC": 58.0,
        "hottest_sensor": {"device": "nvme0n1", "sensor": "Composite", "degC": 58.0},
        "warning_degC": 70.0,
        "headroom_degC": 12.0,
        "critical_degC": 80.0,
        "critical_headroom_degC": 22.0,
        "reasons": {},
    }


def _power(repetition: Document) -> Document:
    stored = repetition["minidaq"]["stored_bytes_per_s"]
    return {
        "condition": repetition["condition"],
        "started_utc": STARTED_UTC,
        "readings": 100,
        "samples_w": [450.0] * 100,
        "mean_w": 450.0,
        "w_per_gb_per_s": 450.0 / (stored / 1e9),
    }


def server(case: Case) -> Server:
    """The modelled server that wrote the good documents: nothing befalls it."""
    return Server(replace(spec_of(1), hazards=(), raw=case.raw))


def minidaq(case: Case, demand: Demand, parameters: dict[str, Any], number: int) -> tuple[Document, Stored]:
    """Returns the modelled daqwriter's answer on a whole paced record in which nothing was lost, and the record as it lies there."""
    asked = {
        "target": "/dev/nvme0n1" if case.raw else "/data/record.daq",
        "duration": demand.duration_s,
        "scale": demand.scale,
        "seed": case.scenario.seed + number - 1,
    }
    options = [*minidaq_options(parameters, demand.scale), *(f"--{name}={value}" for name, value in asked.items())]
    made = Recording(server(case), options, lambda _: None)
    payload, seconds = demand.record_bytes, max(1, int(demand.duration_s))
    made.started_s, made.drain_from_s = moment(STARTED_UTC).timestamp(), seconds
    made.times = [float(step + 1) for step in range(seconds)]
    made.arrived = made.durable = payload
    for name in ("offered_bytes", "stored_bytes"):
        made.series[name] = [payload // seconds] * seconds
    made.series["backlog_bytes"] = [20_000_000] * seconds
    made.most_waiting, made.most_at_s, made.most_owed, made.slowest_s = 40e6, 4.0, 41e6, 0.07
    return made.result()
