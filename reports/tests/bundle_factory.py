"""Writes a run bundle as a plausible run would have left it. For tests only: nothing here was measured.

The record is simulated: a paced source, a drive that stalls now and then, and the backlog that follows from both, so
that rates, backlog, BUSY, buffer and latencies agree with each other as they do in a real bundle.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from factory_drives import devices, smart
from factory_knobs import (
    LINKS,
    LONG,
    MIB,
    NON_LATIN,
    RATE_HZ,
    REAL,
    RECORD_AT_S,
    SUPERCHUNK_BYTES,
    Knobs,
    offered_rate,
    utc,
)
from factory_telemetry import summary, write_events, write_points, write_workload_lines
from factory_verdict import scaled_sentences, verdict
from hdr_writer import encode

from bench_model.published import FOLDER

PUBLISHED = Path(__file__).resolve().parents[2] / "inventory" / FOLDER


def make(root: Path, knobs: Knobs | None = None) -> Path:
    knobs = knobs or Knobs()
    rng = np.random.default_rng(knobs.seed)
    for folder in ("facts", "results/raw", "telemetry", "robot"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    shutil.copytree(PUBLISHED, root / "profiles" / FOLDER)
    _write(root, "run.json", _run(root.name, knobs))
    _write(root, "facts/tuning.json", {"settings": _settings(knobs)})
    if not knobs.early_error:
        record = _simulate(knobs, rng)
        _workloads(root, knobs, rng, record)
    for name, content in knobs.extra.items():
        if isinstance(content, str):
            (root / name).write_text(content, encoding="utf-8")
        else:
            _write(root, name, content)
    return root


def _workloads(root: Path, knobs: Knobs, rng: np.random.Generator, record: dict[str, Any]) -> None:
    _write(root, "results/block_scan.json", _block_scan(knobs, rng))
    write_events(root, knobs)
    write_workload_lines(root, record, knobs)
    if knobs.telemetry:
        write_points(root, knobs, rng, record)
    if knobs.interrupted:
        return
    repetition = {"minidaq": record["minidaq"], "verify": _verify(knobs, record)}
    _write(
        root,
        "results/snb_record.json",
        {"schema_version": 1, "repetitions": [repetition] * knobs.repetitions},
    )
    _write(root, "facts/tuning-after.json", {"settings": _settings(knobs, after=True)})
    _write(root, "facts/smart-before.json", smart(knobs, after=False))
    _write(root, "facts/smart-after.json", smart(knobs, after=True))
    if knobs.telemetry:
        _write(root, "telemetry/summary.json", summary(knobs))
    _write(root, "verdict.json", verdict(knobs, record))


def _write(root: Path, name: str, document: object) -> None:
    (root / name).write_text(json.dumps(document, ensure_ascii=False, indent=1), encoding="utf-8")


def _run(run_id: str, knobs: Knobs) -> dict[str, Any]:
    name = LONG if knobs.long_names else NON_LATIN if knobs.non_latin else "this-machine"
    told = knobs.device_reports or knobs.long_names
    device = {
        "name": "nvme0n1" if told else "vda", "model": LONG if knobs.long_names else "SAMSUNG MZWLO7T6HBLA" if told else None,
        "serial": "S7Y1NX0W123456" if told else None, "firmware": "OPPA4B5Q" if told else None, "wwn": None,
        "size_bytes": 7.68e12 if told else 2.7e11, "numa_node": 0 if told else None, "rotational": False,
        "transport": "nvme" if told else "virtio", "pcie_link": "Gen5 x4 (32 GT/s)" if told else None,
    }  # fmt: skip
    state = "interrupted" if knobs.interrupted else "error" if knobs.early_error else "finished"
    return {
        "schema_version": 1, "run_id": run_id, "state": state,
        "started_utc": utc(0), "finished_utc": None if knobs.interrupted else utc(170),
        "candidate": {
            "name": name, "description": "The machine that the bench itself runs on", "hostname": "bench-01",
            "kernel": "6.1.0-28-amd64", "os": "Debian GNU/Linux 12 (bookworm)", "cpu_model": "AMD EPYC 7302 16-Core Processor",
            "cpus": knobs.cores, "memory_bytes": 2.5e10, "numa_nodes": 1,
        },
        "target": {"kind": "scratch-file", "path": "build/scratch/snb.rec", "filesystem": "ext4", **devices(knobs, device)},
        "scenario": {
            "id": "dune-snb", "title": "DUNE supernova burst record, rehearsal at a tenth of the load",
            "file": "inventory/scenarios/dune-snb.yml", "scale": knobs.scale, "seed": 20211, "repetitions": knobs.repetitions,
            "parameters": {"duration_s": knobs.duration_s, "workloads": {"block_scan": {}, "snb_record": {}}},
        },
        "requirement": {"id": "dune-snb", "title": "DUNE supernova burst buffer, one readout unit",
        "file": "inventory/requirements/dune-snb.yml"},
        "demand": {
            "links": LINKS, "superchunk_bytes": SUPERCHUNK_BYTES, "superchunk_rate_hz": RATE_HZ, "real_bytes_per_s": REAL,
            "nominal_bytes_per_s": 1e10, "offered_bytes_per_s": offered_rate(knobs), "duration_s": knobs.duration_s,
        },
        "versions": {"bench": "0.1.0", "daqwriter": "0.1.0", "fio": "fio-3.33", "ansible-core": "2.18.1", "python": "3.11.2"},
        "git": {"commit": "4f0c2d1e9ab34c55d0e1f2a3b4c5d6e7f8091a2b", "dirty": False},
        "host_environment": {"virtualization": "kvm", "cpu_governor": "not offered by this machine"},
        "scaled_down": scaled_sentences(knobs), "telemetry": {"period_s": 1.0},
    }  # fmt: skip


def _settings(knobs: Knobs, after: bool = False) -> list[dict[str, Any]]:
    rows = [
        ("aio_max_nr", "cpu", "fs.aio-max-nr", "1048576", "65536", "1048576", "1048576", "applied", None),
        (
            "queue_scheduler",
            "storage",
            "vda",
            "none",
            "none",
            "none",
            "mq-deadline" if after else "none",
            "unchanged",
            None,
        ),
        (
            "cpu_governor",
            "cpu",
            "all CPUs",
            "performance",
            None,
            None,
            None,
            "unsupported",
            "no cpufreq driver on this machine",
        ),
        (
            "fan_mode",
            "fans",
            "BMC",
            "full",
            None,
            None,
            None,
            "unsupported",
            "no BMC answers on this machine",
        ),
        (
            "bios_power_profile",
            "bios",
            "BMC",
            "maximum-performance",
            None,
            None,
            None,
            "unsupported",
            "no Redfish address in the inventory",
        ),
    ]
    keys = ("id", "role", "subject", "asked", "before", "applied", "read_back", "status", "detail")
    return [dict(zip(keys, row, strict=True)) for row in rows]


def _block_scan(knobs: Knobs, rng: np.random.Generator) -> dict[str, Any]:
    points = []
    for power in range(12, 26):
        size = 2**power
        rate = 2.4e9 * size / (size + 60_000)
        samples = [float(value) for value in rate * rng.normal(1.0, 0.05, 5)]
        mean = float(np.mean(samples))
        points.append({
            "block_bytes": size, "throughput_bytes_per_s": mean, "iops": mean / size, "bytes_written": mean * 5, "runtime_s": 5.0,
            "throughput_bytes_per_s_samples": samples, "device_bytes_written": mean * 5, "cpu_user_percent": 3.1,
            "cpu_system_percent": 11.4,
            "latency_us": {"p50": size / mean * 8e6, "p99": size / mean * 2e7, "p99_9": size / mean * 4e7,
            "max": 9e4, "mean": size / mean * 9e6},
            "admissible": size not in knobs.masked,
            "reason": "the device wrote 43 % less than the load generator claims" if size in knobs.masked else None,
        })  # fmt: skip
    return {
        "schema_version": 1, "tool": "fio", "tool_version": "3.33", "io_depth": 8, "threads": 1,
        "seconds_per_point": 5, "sample_s": 1.0, "condition": "fresh file",
        "reasons": {},
        "file_bytes": 4 * 2**30, "direct": True, "points": points,
        "plateau": {"throughput_bytes_per_s": 2.38e9, "from_block_bytes": 2 * MIB, "rule":
            "The plateau starts at the smallest block size from which on every larger admissible block size reaches at least "
            "95% of the scan's maximum; its throughput is the median of these points"},
    }  # fmt: skip


def _simulate(knobs: Knobs, rng: np.random.Generator) -> dict[str, Any]:
    interval, asked = 0.1, offered_rate(knobs)
    steps = round(knobs.duration_s / interval)
    drive = np.full(steps, asked * knobs.drive_headroom)
    stall = slice(steps // 3, steps // 3 + max(2, steps // 12))
    drive[stall] *= knobs.stall_share
    drive *= rng.normal(1.0, 0.04, steps)
    offered, stored, backlog, busy = [], [], [], []
    waiting = 0.0
    for step in range(steps):
        arrived = asked * interval * float(rng.normal(1.0, 0.004))
        if waiting + arrived > knobs.ring_bytes:  # the rings are full: the dataflow holds back
            arrived = max(0.0, knobs.ring_bytes - waiting)
            busy.append({"start_s": step * interval, "duration_s": interval})
        taken = min(waiting + arrived, float(drive[step]) * interval)
        waiting += arrived - taken
        offered.append(int(arrived))
        stored.append(int(taken))
        backlog.append(int(waiting))
    while waiting > 0:
        taken = min(waiting, asked * knobs.drive_headroom * interval)
        waiting -= taken
        offered.append(0)
        stored.append(int(taken))
        backlog.append(int(waiting))
    times = [round((index + 1) * interval, 3) for index in range(len(offered))]
    minidaq = _minidaq(knobs, rng, times, offered, stored, backlog, busy)
    return {"minidaq": minidaq, "times": times, "offered": offered, "stored": stored, "backlog": backlog}


def _latency(rng: np.random.Generator, median_us: float, hdr: bool, definition: str) -> dict[str, Any]:
    values = np.sort((rng.lognormal(np.log(median_us * 1000), 0.5, 20_000)).astype(int))
    pick = {
        f"p{str(p).replace('.', '_')}": float(np.percentile(values, p, method="inverted_cdf")) / 1000
        for p in (50, 90, 99, 99.9, 99.99)
    }
    document = {
        "definition": definition,
        "count": len(values),
        "min": values[0] / 1000,
        "mean": float(values.mean()) / 1000,
        **pick,
        "max": values[-1] / 1000,
    }
    if hdr:
        document |= {"hdr": encode(Counter(values.tolist())), "hdr_unit": "ns"}
    return document


def _minidaq(
    knobs: Knobs,
    rng: np.random.Generator,
    times: list[float],
    offered: list[int],
    stored: list[int],
    backlog: list[int],
    busy: list[dict[str, float]],
) -> dict[str, Any]:
    chunks = sum(stored) // SUPERCHUNK_BYTES
    lost = 1234 if knobs.outcome == "FAIL" else 0
    return {
        "schema_version": 1, "tool": "daqwriter", "command": "minidaq", "version": "0.1.0", "engine": "libaio", "status": "complete",
        "error": None, "started_utc": utc(RECORD_AT_S),
        "parameters": {"target": "build/scratch/snb.rec", "links": LINKS, "scale": knobs.scale, "block_bytes": 8 * MIB, "io_depth": 4,
            "ring_bytes_per_link": int(knobs.ring_bytes / LINKS), "checksum": "crc32", "seed": 20211, "record_id": "0c9be1",
            "placement": {"writer_cpu": 0, "source_cpu": 1, "numa_node": None}},
        "superchunks": {"intended": chunks + lost, "offered": chunks + lost, "stored": chunks, "lost": lost,
        "abandoned": 0, "lost_per_link": [lost] + [0] * 9},
        "bytes": {"payload": sum(stored), "written": sum(stored) + 8192, "padding": 4096},
        "time": {"record_s": knobs.duration_s, "drain_s": times[-1] - knobs.duration_s + 0.02, "total_s": times[-1]},
        "offered_bytes_per_s": sum(offered) / knobs.duration_s, "stored_bytes_per_s": sum(stored) / times[-1],
        "source": {"achieved_fraction": 0.9998, "worst_lateness_us": 812.5, "late_superchunks": 17},
        "busy": {"count": len(busy), "total_s": 0.1 * len(busy), "episodes": busy},
        "backlog": {"high_water_bytes": max(backlog), "high_water_s": times[int(np.argmax(backlog))],
        "capacity_bytes": int(knobs.ring_bytes)},
        "transient_buffer": {"needed_bytes": max(backlog), "method": "service curve: max over t of arrived(t) - durable(t)"},
        "latency_us": _latency(rng, 9000, knobs.hdr,
        "from a superchunk's due time to the completion of the write that holds its last byte"),
        "write_latency_us": _latency(rng, 2500, knobs.hdr, "from io_submit to completion of one block"),
        "cpu": {"user_s": 4.2, "system_s": 1.1, "seconds_per_gb": 0.29, "copy_s": 3.1, "copy_share": 0.58,
        "voluntary_context_switches": 2000, "involuntary_context_switches": 30, "max_rss_bytes": 7e8},
        "series": {"interval_s": 0.1, "t_s": times, "offered_bytes": offered, "stored_bytes": stored, "backlog_bytes": backlog},
    }  # fmt: skip


def _verify(knobs: Knobs, record: dict[str, Any]) -> dict[str, Any]:
    stored = record["minidaq"]["superchunks"]["stored"]
    faults = [
        {
            "kind": "corrupt",
            "offset_bytes": 8 * MIB * index,
            "link": index % 10,
            "sequence": 6000 + index,
            "detail": "checksum differs",
        }
        for index in range(knobs.faults)
    ]
    return {
        "schema_version": 1, "tool": "daqwriter", "command": "verify", "version": "0.1.0", "status": "damaged" if faults else "intact",
        "record_id": "0c9be1", "complete_trailer": True, "faults": faults, "bytes_read": sum(record["stored"]), "duration_s": 9.8,
        "superchunks": {"expected": stored, "present": stored - len(faults), "missing": 0, "duplicated": 0,
        "out_of_order": 0, "corrupt": len(faults), "torn": 0, "stale": 0},
        "read_bytes_per_s": sum(record["stored"]) / 9.8,
    }  # fmt: skip
