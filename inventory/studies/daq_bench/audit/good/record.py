"""daqwriter's own documents of good records, and results/snb_record.json with what is derived from it."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Any

from daq_bench.audit.good.case import RATE, STARTED_UTC, Case

from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.documents.struct import Document, moment
from daq_bench.bench_model.workloads.preconditioning import FRESH, PRECONDITIONED, WRITTEN_SHARE, Room, span_of
from daq_bench.rig.workloads.snb_record import conditions_of, repetition_document

FILESYSTEM_SHARE = 0.02  # of a drive, for the file system itself
ENGINE = {"schema_version": 1, "tool": "daqwriter", "version": "0.1.0", "error": None}


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
            written = {**minidaq(case, demand, parameters, number), "started_utc": f"{now:%Y-%m-%dT%H:%M:%S.000Z}"}
            read_back = verify(written)
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


def latency(median_us: float, count: int) -> Document:
    """Percentiles that are in order; no verdict reads the histogram's text."""
    return {
        "definition": "intended arrival until durable",
        "count": count,
        "min": median_us / 4,
        "mean": median_us * 1.1,
        "p50": median_us,
        "p90": median_us * 2,
        "p99": median_us * 3,
        "p99_9": median_us * 4,
        "p99_99": median_us * 5,
        "max": median_us * 6,
        "hdr_unit": "ns",
        "hdr": "HISTFAAAABl42pNpmSzMwMDAxQABIJoRRDPZf4AKAABOsAMv",
    }


def minidaq(case: Case, demand: Demand, parameters: dict[str, Any], number: int) -> Document:
    """The document of `daqwriter minidaq` for one whole paced record in which nothing was lost."""
    count = int(demand.links * demand.superchunk_rate_hz * demand.scale * demand.duration_s)
    payload, rate = count * demand.superchunk_bytes, demand.offered_bytes_per_s
    identifier = hashlib.md5(f"{case.scenario.id}-{demand.scale}-{number}".encode(), usedforsecurity=False).hexdigest()
    placement = {"writer_cpu": 1, "source_cpu": 0, "numa_node": None, "note": "pinned"}
    drained_s, seconds = 0.01, max(1, int(demand.duration_s))
    steps = [float(step + 1) for step in range(seconds)]
    series = [payload // seconds] * (seconds - 1) + [payload - payload // seconds * (seconds - 1)]
    cpu = {"user_s": 30.0, "system_s": 5.0}
    return {
        **ENGINE,
        "command": "minidaq",
        "engine": "libaio",
        "engine_note": None,
        "status": "complete",
        "started_utc": STARTED_UTC,
        "parameters": {
            "target": "/dev/nvme0n1" if case.raw else "/data/record.daq",
            "target_kind": "raw-device" if case.raw else "scratch-file",
            "filesystem": None if case.raw else "xfs",
            "mode": "continuous",
            "paced": True,
            "data_path": "copy",
            "applications": 1,
            "links": demand.links,
            "superchunk_bytes": demand.superchunk_bytes,
            "superchunk_rate_hz": demand.superchunk_rate_hz,
            "scale": demand.scale,
            "offered_bytes_per_s": rate,
            "duration_s": demand.duration_s,
            "ring_bytes_per_link": parameters["ring_size"],
            "ring_slots_per_link": parameters["ring_size"] // demand.superchunk_bytes,
            "block_bytes": parameters["block_size"],
            "alignment_bytes": 4096,
            "io_depth": parameters["io_depth"],
            "checksum": parameters["checksum"],
            "preallocate": True,
            "seed": case.scenario.seed + number - 1,
            "record_id": identifier,
            "memory_locked": True,
            "placement": placement,
        },
        "superchunks": {
            "intended": count,
            "emitted": count,
            "offered": count,
            "stored": count,
            "lost": 0,
            "abandoned": 0,
            "lost_per_link": [0] * demand.links,
        },
        "bytes": {"payload": payload, "written": payload + 8192, "padding": 0},
        "time": {
            "prepare_s": 1.0,
            "record_s": demand.duration_s,
            "drain_s": drained_s,
            "flush_s": 0.005,
            "total_s": demand.duration_s + drained_s + 0.005,
        },
        "offered_bytes_per_s": rate,
        "stored_bytes_per_s": payload / (demand.duration_s + drained_s + 0.005),
        "source": {
            "achieved_fraction": 1.0,
            "worst_lateness_us": 40.0,
            "late_superchunks": 0,
            "late_threshold_us": 2000.0,
        },
        "trigger": None,
        "applications": [
            {
                "target": "/data/record.daq",
                "offset_bytes": 0,
                "record_id": identifier,
                "status": "complete",
                "error": None,
                "offered": count,
                "stored": count,
                "lost": 0,
                "busy_count": 0,
                "drained_s": demand.duration_s + drained_s,
                "writer_cpu_s": 30.0,
                "placement": placement,
            }
        ],
        "busy": {"count": 0, "total_s": 0.0, "episodes": []},
        "backlog": {"high_water_bytes": 40_000_000, "high_water_s": 4.0, "capacity_bytes": 738_197_504},
        "transient_buffer": {
            "needed_bytes": 41_000_000,
            "method": "service curve",
            "busy_fraction": 0.6,
            "busy_bytes_per_s": rate / 0.6,
            "extrapolated": [],
            "extrapolation_method": "the measured service replayed against another load",
        },
        "latency_us": latency(12_000.0, count),
        "write_latency_us": latency(4_000.0, max(1, payload // parameters["block_size"])),
        "cpu": {
            **cpu,
            "seconds_per_gb": 0.04,
            "writer": cpu,
            "source": cpu,
            "writer_seconds_per_gb": 0.03,
            "copy_s": 20.0,
            "copy_share": 0.5,
            "voluntary_context_switches": 1000,
            "involuntary_context_switches": 10,
            "copied_bytes": payload,
            "max_rss_bytes": 800_000_000,
        },
        "series": {
            "interval_s": 1.0,
            "t_s": steps,
            "offered_bytes": series,
            "stored_bytes": list(series),
            "backlog_bytes": [20_000_000] * seconds,
        },
    }


def verify(written: Document) -> Document:
    """The document of `daqwriter verify` for that record."""
    count, payload = written["superchunks"]["stored"], written["bytes"]["payload"]
    kinds = ("missing", "duplicated", "out_of_order", "corrupt", "torn", "stale")
    return {
        **ENGINE,
        "command": "verify",
        "status": "intact",
        "record_id": written["parameters"]["record_id"],
        "complete_trailer": True,
        "trailer_status": "complete",
        "lost_at_source": 0,
        "superchunks": {"expected": count, "present": count, **dict.fromkeys(kinds, 0)},
        "faults": [],
        "bytes_read": payload,
        "duration_s": payload / 5e9,
        "read_bytes_per_s": 5e9,
    }
