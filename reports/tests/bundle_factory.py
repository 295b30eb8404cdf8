"""Writes a run bundle as a plausible run would have left it. For tests only: nothing here was measured.

The record is simulated: a paced source, a drive that stalls now and then, and the backlog that follows from both, so
that rates, backlog, BUSY, buffer and latencies agree with each other as they do in a real bundle.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from daq_bench.audit.good.record import drive_temperature
from factory_drives import devices, smart
from factory_knobs import (
    LINKS,
    LONG,
    MIB,
    NON_LATIN,
    RATE_HZ,
    RECORD_AT_S,
    SEED,
    SUPERCHUNK_BYTES,
    Knobs,
    demand,
    offered_rate,
    ring_of,
    utc,
    workloads,
)
from factory_telemetry import account, summary, write_events, write_points, write_workload_lines
from factory_verdict import HEADROOM, scaled_sentences, write_profiles, write_verdict
from filled import filled

from daq_bench.bench_model.documents.results import WriteLatency, WritePoint
from daq_bench.bench_model.evidence.schemas import TYPES
from daq_bench.bench_model.profiles.published import FOLDER
from daq_bench.rig.workloads import block_scan
from daq_bench.simulation.tools.hdr_writer import encode

KEPT = tempfile.TemporaryDirectory(prefix="bundles-")  # until the process ends
PUBLISHED = Path(__file__).resolve().parents[2] / "inventory" / FOLDER


def make(root: Path, knobs: Knobs | None = None) -> Path:
    """A bundle of these knobs is made once for each name; who asks again gets a copy."""
    knobs = knobs or Knobs()
    if knobs.extra:
        return _made(root, knobs)
    kept = Path(KEPT.name) / f"{hashlib.sha256(repr(knobs).encode()).hexdigest()}/{root.name}"
    if not kept.exists():
        _made(kept, knobs)
    return Path(shutil.copytree(kept, root, dirs_exist_ok=True))


def _made(root: Path, knobs: Knobs) -> Path:
    rng = np.random.default_rng(knobs.seed)
    for folder in ("facts", "results/raw", "telemetry", "robot"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    shutil.copytree(PUBLISHED, root / "profiles" / FOLDER)
    write_profiles(root, knobs)
    run = _run(root.name, knobs)
    run["scaled_down"] = scaled_sentences(root, run)
    _write(root, "run.json", run)
    _write(root, "profiles/scenarios/dune-snb.yml", run["scenario"]["parameters"])  # JSON is YAML too
    _write(root, "facts/tuning.json", {"settings": _settings(knobs)})
    _write(root, "facts/tuning-verified.json", {"settings": _settings(knobs)})
    _write(root, "results/identity.json", {"schema_version": 1, "planned": ["CPUs"], "checks": [
        {"subject": "CPUs", "declared": "at least 1", "found": str(knobs.cores), "ok": True}]})  # fmt: skip
    if not knobs.early_error:
        record = _simulate(knobs, rng)
        _workloads(root, knobs, rng, record)
        _watched(root, knobs, [drive["name"] for drive in run["target"]["drives"]])
    for name, content in knobs.extra.items():
        if isinstance(content, str):
            (root / name).write_text(content, encoding="utf-8")
        else:
            _write(root, name, filled(content, TYPES[name]) if name in TYPES else content)
    if not knobs.early_error and not knobs.interrupted:
        write_verdict(root)
    return root


def _workloads(root: Path, knobs: Knobs, rng: np.random.Generator, record: dict[str, Any]) -> None:
    _write(root, "results/block_scan.json", _block_scan(knobs, rng))
    write_events(root, knobs)
    write_workload_lines(root, record, knobs)
    if knobs.telemetry:
        write_points(root, knobs, rng, record)
    if knobs.interrupted:
        return
    repetitions = [_repetition(knobs, record, number) for number in range(1, knobs.repetitions + 1)]
    stopping = {
        "repetitions_min": knobs.repetitions,
        "repetitions_max": knobs.repetitions,
        "confidence": 0.95,
        "looks": [],
    }
    _write(
        root,
        "results/snb_record.json",
        {"schema_version": 1, "repetitions": repetitions, "conditioning": [], "limits": [], "stopping": stopping},
    )
    _write(root, "facts/tuning-after.json", {"settings": _settings(knobs, after=True)})
    _write(root, "facts/smart-before.json", smart(knobs, after=False))
    _write(root, "facts/smart-after.json", smart(knobs, after=True))


def _watched(root: Path, knobs: Knobs, drives: list[str]) -> None:
    """Writes the knowledge of the clock, of the telemetry and of the drives' temperatures."""
    _write(root, "facts/clock.json", {"schema_version": 1, "same_clock": True, "readings": []})
    if knobs.interrupted:
        return
    told = summary(knobs)
    _write(root, "telemetry/summary.json", told)
    _write(root, "results/telemetry_account.json", account(told))
    silence = 1.0 if knobs.temperature or knobs.outcome == "PASS" else None
    _write(root, "results/sensor_coverage.json", {
        "schema_version": 1, "limit_s": 10.0, "longest_silence_s": dict.fromkeys(drives, silence),
        "limits": [], "invalid": []})  # fmt: skip
    heat = drive_temperature()
    if knobs.outcome != "PASS":
        known = {key: None for key in heat if "degC" in key}
        heat |= {"samples": 0, **known, "reasons": {HEADROOM: "no temperature sensor"}}
    _write(root, "results/drive_temperature.json", heat)


def _repetition(knobs: Knobs, record: dict[str, Any], number: int) -> dict[str, Any]:
    """The same record again, under an identifier and with a seed of its own."""
    parameters = {**record["minidaq"]["parameters"], "seed": SEED + number - 1, "record_id": f"{number:032x}"}
    minidaq = {**record["minidaq"], "parameters": parameters}
    verify = {**_verify(knobs, record), "record_id": parameters["record_id"]}
    present, offered = verify["superchunks"]["present"], minidaq["superchunks"]["offered"]
    return {
        "condition": None, "minidaq": minidaq, "verify": verify, "damaged_superchunks": knobs.faults,
        "verified_fraction": present / offered,
    }  # fmt: skip


def _write(root: Path, name: str, document: object) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(json.dumps(document, ensure_ascii=False, indent=1), encoding="utf-8")


def _run(run_id: str, knobs: Knobs) -> dict[str, Any]:
    name = LONG if knobs.long_names else NON_LATIN if knobs.non_latin else "this-machine"
    told = knobs.device_reports or knobs.long_names
    device = {
        "name": "nvme0n1" if told else "vda", "model": LONG if knobs.long_names else "SAMSUNG MZWLO7T6HBLA" if told else None,
        "serial": "S7Y1NX0W123456" if told else None, "firmware": "OPPA4B5Q" if told else None, "wwn": None,
        "size_bytes": 7680 * 10**9 if told else 270 * 10**9, "numa_node": 0 if told else None, "rotational": False,
        "transport": "nvme" if told else "virtio", "pcie_link": "Gen5 x4 (32 GT/s)" if told else None,
    }  # fmt: skip
    broken = knobs.early_error or knobs.outcome == "ERROR"
    state = "interrupted" if knobs.interrupted else "error" if broken else "finished"
    why = "The telemetry agent stopped 12 s into the record" if knobs.outcome == "ERROR" else None
    return {
        "schema_version": 1, "run_id": run_id, "state": state, "state_reason": why,
        "started_utc": utc(0), "finished_utc": None if knobs.interrupted else utc(170),
        "candidate": {
            "name": name, "description": "The machine that the bench itself runs on", "hostname": "bench-01",
            "kernel": "6.1.0-28-amd64", "os": "Debian GNU/Linux 12 (bookworm)", "cpu_model": "AMD EPYC 7302 16-Core Processor",
            "cpus": knobs.cores, "memory_bytes": 25 * 10**9, "numa_nodes": 1, "transient_buffer_bytes": 2**30, "virtual": False,
            "connection": "local",
        },
        "target": {"kind": "scratch-file", "path": "build/scratch/snb.rec", "filesystem": "ext4", **devices(knobs, device)},
        "scenario": {
            "id": "dune-snb", "title": "DUNE supernova burst record, rehearsal at a tenth of the load",
            "file": "inventory/scenarios/dune-snb.yml", "scale": knobs.scale, "seed": SEED, "repetitions": knobs.repetitions,
            "repetitions_max": knobs.repetitions,
            "parameters": {
                "id": "dune-snb", "scale": knobs.scale, "duration_s": knobs.duration_s, "repetitions": knobs.repetitions,
                "repetitions_max": knobs.repetitions, "seed": SEED, "workloads": workloads(knobs),
            },
        },
        "requirement": {"id": "dune-snb", "title": "DUNE supernova burst buffer, one readout unit",
        "file": "inventory/requirements/dune-snb.yml"},
        "demand": demand(knobs).as_document(), "declared_limits": [],
        "versions": {"bench": "0.1.0", "daqwriter": "0.1.0", "fio": "fio-3.33", "ansible-core": "2.18.1", "python": "3.11.2"},
        "git": {"commit": "4f0c2d1e9ab34c55d0e1f2a3b4c5d6e7f8091a2b", "dirty": False},
        "host_environment": {"virtualization": "kvm", "cpu_governor": "not offered by this machine"},
        "telemetry": {"influx_url": "http://127.0.0.1:8086"},
    }  # fmt: skip


def _settings(knobs: Knobs, after: bool = False) -> list[dict[str, Any]]:
    rows = [
        ("aio_max_nr", "cpu", "fs.aio-max-nr", ">= 1048576", "65536", "1048576", "1048576", "applied", ""),
        (
            "queue_scheduler",
            "storage",
            "vda",
            "none",
            "none",
            "none",
            "mq-deadline" if after else "none",
            "unchanged",
            "",
        ),
        (
            "cpu_governor",
            "cpu",
            "all CPUs",
            "performance",
            "",
            "",
            "",
            "unsupported",
            "no cpufreq driver on this machine",
        ),
        (
            "fan_mode",
            "fans",
            "BMC",
            "full",
            "",
            "",
            "",
            "unsupported",
            "no BMC answers on this machine",
        ),
        (
            "bios_power_profile",
            "bios",
            "BMC",
            "maximum-performance",
            "",
            "",
            "",
            "unsupported",
            "no Redfish address in the inventory",
        ),
    ]
    keys = ("id", "role", "subject", "asked", "before", "applied", "read_back", "status", "detail")
    done = rows[:1] if knobs.outcome == "PASS" else rows  # a setting that the machine lacks forbids a PASS
    return [dict(zip(keys, row, strict=True)) for row in done]


def _block_scan(knobs: Knobs, rng: np.random.Generator) -> dict[str, Any]:
    parameters = workloads(knobs)["block_scan"]
    points = [_point(knobs, rng, size, 5.0, 0.05) for size in parameters["block_sizes"]]
    again = [
        block_scan.repetition_of(_point(knobs, rng, size, 20.0, 0.03), number)
        for number, size in block_scan.turns(parameters)
    ]
    return {**block_scan.document("3.33", parameters, points, again, condition="fresh file"), "others": []}


def _point(knobs: Knobs, rng: np.random.Generator, size: int, seconds: float, scatter: float) -> WritePoint:
    """Returns a point that ran for its whole time, with a sample for each 250 ms."""
    rate = _fastest(knobs) * size / (size + 60_000)
    samples = [float(value) for value in rate * rng.normal(1.0, scatter, int(4 * seconds))]
    mean = float(np.mean(samples))
    each_s = size / mean
    return WritePoint(
        block_bytes=size, throughput_bytes_per_s=mean, iops=mean / size, bytes_written=int(mean * seconds),
        runtime_s=seconds, throughput_bytes_per_s_samples=samples, device_bytes_written=int(mean * seconds),
        cpu_user_percent=3.1, cpu_system_percent=11.4,
        latency_us=WriteLatency(p50=each_s * 8e6, p99=each_s * 2e7, p99_9=each_s * 4e7, max=9e4, mean=each_s * 9e6),
        admissible=size not in knobs.masked_sizes,
        reason="the device wrote 43 % less than the load generator claims" if size in knobs.masked_sizes else None,
    )  # fmt: skip


def _fastest(knobs: Knobs) -> float:
    """Returns the drive's fastest rate, in B/s: enough for the load."""
    return 2.4e9 * max(1.0, 10 * knobs.scale)


def _arrivals(knobs: Knobs, rng: np.random.Generator, steps: int) -> list[int]:
    """Returns superchunks in each step: all but 0.02 % of those that are due, a little unevenly."""
    due = _due(knobs)
    made = [round(due / steps * float(rng.normal(1.0, 0.004))) for _ in range(steps)]
    made[-1] += due - due // 5000 - sum(made)
    return made


def _due(knobs: Knobs) -> int:
    return round(LINKS * RATE_HZ * knobs.scale * knobs.duration_s)


def _lost(knobs: Knobs) -> int:
    return 1234 if knobs.outcome == "FAIL" else 0


def _simulate(knobs: Knobs, rng: np.random.Generator) -> dict[str, Any]:
    """Simulates the record in superchunks: the drive takes whole ones. Lost ones arrive while it stalls."""
    interval, size = 0.1, SUPERCHUNK_BYTES
    steps = round(knobs.duration_s / interval)
    fast = offered_rate(knobs) * knobs.drive_headroom * interval / size
    drive = np.full(steps, fast)
    stall = slice(steps // 3, steps // 3 + max(2, steps // 12))
    drive[stall] *= knobs.stall_share
    drive *= rng.normal(1.0, 0.04, steps)
    offered, stored, backlog = [], [], []
    waiting = 0
    arrivals = _arrivals(knobs, rng, steps)
    for step, arrived in enumerate(arrivals + [0] * steps):
        if step >= steps and not waiting:
            break
        accepted = arrived - (_lost(knobs) if step == stall.start else 0)
        taken = min(waiting + accepted, int(drive[step] if step < steps else fast))
        waiting += accepted - taken
        for series, value in ((offered, arrived), (stored, taken), (backlog, waiting)):
            series.append(value * size)
    times = [round((index + 1) * interval, 3) for index in range(len(offered))]
    minidaq = _minidaq(knobs, rng, times, offered, stored, backlog)
    return {"minidaq": minidaq, "times": times, "offered": offered, "stored": stored, "backlog": backlog}


def _latency(rng: np.random.Generator, median_us: float, hdr: bool, definition: str) -> dict[str, Any]:
    values = np.sort((rng.lognormal(np.log(median_us * 1000), 0.5, 20_000)).astype(int))
    pick = {
        f"p{str(p).replace('.', '_')}": float(np.percentile(values, p, method="inverted_cdf")) / 1000
        for p in (50, 90, 99, 99.9, 99.99)
    }
    return {
        "definition": definition,
        "count": len(values),
        "min": values[0] / 1000,
        "mean": float(values.mean()) / 1000,
        **pick,
        "max": values[-1] / 1000,
        "hdr": encode(Counter(values.tolist())) if hdr else "HIST",  # that is no histogram
        "hdr_unit": "ns",
    }


def _latency_over_time(rng: np.random.Generator, times: list[float], backlog: list[int], count: int) -> dict[str, Any]:
    """The latencies of `count` superchunks by the time of their arrival: longer while more is waiting."""
    edges = [1024.0 * 2 ** (step // 2) * (1.5 if step % 2 else 1.0) for step in range(16)]
    together = -(-len(times) // 128)  # intervals in a row, as daqwriter joins them
    rows = np.zeros((-(-len(times) // together), len(edges)), dtype=int)
    waiting = np.array(backlog) / max(max(backlog), 1)
    places = rng.integers(0, len(times), count)
    us = rng.lognormal(np.log(9000 * (1 + 8 * waiting[places])), 0.4)
    np.add.at(rows, (places // together, np.clip(np.searchsorted(edges, us) - 1, 0, len(edges) - 1)), 1)
    return {"definition": "as daqwriter's", "interval_s": 0.1 * together, "from_us": edges, "counts": rows.tolist()}


def _minidaq(
    knobs: Knobs,
    rng: np.random.Generator,
    times: list[float],
    offered: list[int],
    stored: list[int],
    backlog: list[int],
) -> dict[str, Any]:
    lost, ring = _lost(knobs), ring_of(knobs)
    chunks, arrived = sum(stored) // SUPERCHUNK_BYTES, sum(offered) // SUPERCHUNK_BYTES
    full = 0.9 * LINKS * ring  # beyond, the rings are as good as full: the dataflow holds back
    busy = [
        {"start_s": at_s - 0.1, "duration_s": 0.1} for at_s, held in zip(times, backlog, strict=True) if held > full
    ]
    total_s = max(times[-1], knobs.duration_s) + 0.02
    placement = {"writer_cpu": 0, "source_cpu": 1, "numa_node": None, "note": "pinned"}
    cpu = {"user_s": 4.2, "system_s": 1.1}
    application = {
        "target": "build/scratch/snb.rec", "offset_bytes": 0, "record_id": f"{1:032x}", "status": "complete", "error": None,
        "offered": arrived, "stored": chunks, "lost": lost, "busy_count": len(busy), "drained_s": times[-1], "writer_cpu_s": 4.0,
        "placement": placement,
    }  # fmt: skip
    return {
        "schema_version": 1, "tool": "daqwriter", "command": "minidaq", "version": "0.1.0", "engine": "libaio", "engine_note": None,
        "status": "complete", "error": None, "started_utc": utc(RECORD_AT_S),
        "parameters": {"target": "build/scratch/snb.rec", "target_kind": "scratch-file", "filesystem": "ext4", "mode": "continuous",
            "paced": True, "data_path": "copy", "applications": 1, "links": LINKS, "superchunk_bytes": SUPERCHUNK_BYTES,
            "superchunk_rate_hz": RATE_HZ, "scale": knobs.scale, "offered_bytes_per_s": offered_rate(knobs),
            "duration_s": knobs.duration_s, "ring_bytes_per_link": ring, "ring_slots_per_link": ring // SUPERCHUNK_BYTES,
            "block_bytes": 8 * MIB, "alignment_bytes": 4096, "io_depth": 4, "checksum": "crc32", "preallocate": True, "seed": SEED,
            "record_id": f"{1:032x}", "memory_locked": True, "placement": placement},
        "superchunks": {"intended": _due(knobs), "emitted": arrived, "offered": arrived, "stored": chunks, "lost": lost,
        "abandoned": 0, "lost_per_link": [lost] + [0] * 9},
        "bytes": {"payload": sum(stored), "written": sum(stored) + 8192, "padding": 4096},
        "time": {"prepare_s": 1.0, "record_s": knobs.duration_s, "drain_s": total_s - knobs.duration_s - 0.005, "flush_s": 0.005,
        "total_s": total_s},
        "offered_bytes_per_s": sum(offered) / knobs.duration_s, "stored_bytes_per_s": sum(stored) / total_s,
        "source": {"achieved_fraction": 0.9998, "worst_lateness_us": 812.5, "late_superchunks": 17, "late_threshold_us": 2000.0},
        "trigger": None, "applications": [application], "busy": {"count": len(busy), "total_s": 0.1 * len(busy), "episodes": busy},
        "backlog": {"high_water_bytes": max(backlog), "high_water_s": times[int(np.argmax(backlog))], "capacity_bytes": LINKS * ring},
        "transient_buffer": {"needed_bytes": max(backlog), "method": "service curve: max over t of arrived(t) - durable(t)"},
        "latency_us": _latency(rng, 9000, knobs.hdr,
        "from a superchunk's due time to the completion of the write that holds its last byte"),
        "latency_over_time": _latency_over_time(np.random.default_rng(knobs.seed), times, backlog, 20_000),
        "write_latency_us": _latency(rng, 2500, knobs.hdr, "from io_submit to completion of one block"),
        "cpu": {**cpu, "seconds_per_gb": 0.29, "writer": cpu, "source": cpu, "writer_seconds_per_gb": 0.2, "copy_s": 3.1,
        "copy_share": 0.58, "voluntary_context_switches": 2000, "involuntary_context_switches": 30, "max_rss_bytes": 700_000_000},
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
    counts = {"missing": 0, "duplicated": 0, "out_of_order": 0, "corrupt": len(faults), "torn": 0, "stale": 0}
    return {
        "schema_version": 1, "tool": "daqwriter", "command": "verify", "version": "0.1.0", "status": "damaged" if faults else "intact",
        "error": None, "record_id": f"{1:032x}", "complete_trailer": True, "trailer_status": "complete", "lost_at_source": _lost(knobs),
        "faults": faults, "bytes_read": sum(record["stored"]), "duration_s": 9.8,
        "superchunks": {"expected": stored, "present": stored - len(faults), **counts}, "read_bytes_per_s": sum(record["stored"]) / 9.8,
    }  # fmt: skip
