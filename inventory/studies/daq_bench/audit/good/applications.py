"""Good runs of applications: the storage application with its checksums, and concurrent analysis of ROOT files."""

from __future__ import annotations

import hashlib
from typing import Any

from daq_bench.audit.good.case import Case

from daq_bench.bench_model.documents.struct import Document, as_document
from daq_bench.bench_model.workloads.concurrent_analysis import analysis
from daq_bench.bench_model.workloads.concurrent_analysis.points import worker_counts
from daq_bench.bench_model.workloads.streams_checksum import analysis as streams
from daq_bench.bench_model.workloads.streams_checksum.setups import (
    ALL,
    ORIGINAL,
    THREADED,
    Cpus,
    application_threads,
    comparisons,
)
from daq_bench.rig.workloads.streams_checksum import workload as streams_workload

CORES = Cpus((0, 1, 2, 3), (0, 1, 2, 3), 1, "notsupported")
ORIGINAL_BYTES_PER_S = 1.5e9
GAINS = {"switched-off": 1.02, "small-events": 1.02, "application": 2.5, "ceiling": 2.8}


def streams_checksum(case: Case) -> dict[str, Document]:
    own = case.plan("streams_checksum").parameters
    variant = own["application_variant"]
    threads = CORES.threads(sorted({1, *own["throughput"]["threads"]}), ALL)
    demand = [_paced(case, own, name) for name in ("sustained", "peak")]
    verified = [_verified(f"identity-{one}", one, 64_000_000, 5) for one in (ORIGINAL, *THREADED, "fused")]
    verified += [_verified(one["name"], variant, one["written_bytes"], 10) for one in demand]
    identity = {
        "splits": {"bytes": own["overhead"]["split_size"], "comparisons": 8200},
        "wrong": 0,
        "mismatch": None,
        "combine_ns": {"median": 16.8, "min": 16.0, "max": 20.0},
    }
    turns = own["overhead"]["repetitions"]
    points = [_overhead(case, one, number, turns) for one in THREADED for number in threads]
    overhead = {"event_bytes": own["overhead"]["event_size"], "points": points}
    compared = [
        {**as_document(one), "pairs": _pairs(case, GAINS.get(one.kind, 1 + 0.1 * one.setup.threads))}
        for one in comparisons(own, CORES)
    ]
    found = streams_workload.document(
        streams_workload.Plan(case.scenario), CORES, identity, overhead, compared, demand, verified
    )
    return {"results/streams_checksum.json": found, "results/streams_checksum_analysis.json": streams.document(found)}


def _pairs(case: Case, gain: float) -> list[Document]:
    return [
        {
            "round": number,
            "reference_first": number % 2 == 1,
            "reference": _run(case.around(ORIGINAL_BYTES_PER_S)),
            "measured": _run(case.around(ORIGINAL_BYTES_PER_S * gain)),
        }
        for number in range(1, case.scenario.repetitions + 1)
    ]


def _run(rate: float) -> Document:
    return {
        "bytes_per_s": rate,
        "written_bytes": int(5 * rate),
        "emission_s": 5.0,
        "held_share": 0.9,
        "busiest_share": 0.67,
        "fallback_share": 0.0,
        "cpu_seconds_per_gb": 0.6,
        "failed": False,
        "reason": None,
    }


def _overhead(case: Case, variant: str, threads: int, turns: int) -> Document:
    share = [case.around(280e3 / threads) for _ in range(turns)]
    whole = [one + 4e3 * (threads - 1) for one in share]
    return {"variant": variant, "threads": threads, "ns": whole, "share_ns": share, "reason": None}


def _paced(case: Case, own: Document, name: str) -> Document:
    full, seconds = own["demand"][f"{name}_rate_size"] / own["demand"]["servers"], own["demand"][f"{name}_s"]
    due = int(full * case.scenario.scale * seconds)
    shares = own["streams"]["shares"]
    sizes = [int(due * share) for share in shares[1:]]
    variant = own["application_variant"]
    return {
        "name": name,
        "variant": variant,
        "threads": application_threads(variant, CORES),
        "full_bytes_per_s": full,
        "asked_bytes_per_s": full * case.scenario.scale,
        "seconds": seconds,
        **dict.fromkeys(("due_bytes", "offered_bytes", "written_bytes"), due),
        "achieved_fraction": 1.0,
        "kept": 1.0,
        "held_s": 0.0,
        "backlog_high_bytes": 5_000_000,
        "abandoned_events": 0,
        "latency_us_p99": 9000.0,
        "cpu_seconds_per_gb": 0.4,
        "streams": [_stream(share, size) for share, size in zip(shares, [due - sum(sizes), *sizes], strict=True)],
        "elapsed_s": float(seconds),
        "failed": False,
        "error": None,
        "reason": None,
    }


def _stream(share: float, size: int) -> Document:
    more = {"cpu_s": 0.5, "checksum_and_copy_s": 0.1, "queue_high_water": 0.2, "held_s": 0.0}
    return {"share": share, "achieved_share": share, "written_bytes": size, "files": 2, **more}


def _verified(name: str, variant: str, size: int, files: int) -> Document:
    return {
        "name": name,
        "variant": variant,
        "threads": 2,
        "files": files,
        "bytes": size,
        "by_definition": 1,
        "wrong_files": 0,
        "wrong": [],
        "closed": True,
        "status": "intact",
        "faults": 0,
        "events": {"expected": 640, "present": 640},
        "failed": False,
        "error": None,
    }


def concurrent_analysis(case: Case) -> dict[str, Document]:
    """Jobs that are as fast as their cores let them; more is read from the device than they ask for."""
    plan = case.plan("concurrent_analysis")
    own, cores = plan.parameters, len(CORES.cores)
    counts = worker_counts(cores, own["workers_beyond"])
    storages = [_storage(name, "target", None) for name in own.get("storages", ["target"])]
    slow: Document = own.get("slow_disk") or {}
    if slow:
        held = {"read_iops": slow["read_iops"], "read_bytes_per_s": slow["read_bandwidth_size"]}
        storages.append(_storage("slow-disk", "slow-disk", held))
    sets = [
        _set(case, own, one["name"], kind, layout)
        for one in storages
        for kind in ("sparse", "full")
        for layout in (own["layouts"] if one["kind"] == "target" else own["layouts"][:1])
    ]
    points = [
        _point(case, one, workers, turn)
        for one in sets
        for turn in range(1, (slow["repetitions"] if one["storage"] == "slow-disk" else plan.repetitions) + 1)
        for workers in (counts if one["layout"] == own["layouts"][0] else [cores])
    ]
    found = {
        "schema_version": 1,
        "cores": cores,
        "cpus": list(CORES.order),
        **{key: own[key] for key in ("drop_caches", "layouts", "compression")},
        "worker_counts": counts,
        "versions": {"uproot": "5"},
        "storages": storages,
        "sets": sets,
        "points": points,
        "farm": _farm(case, own["farm"], sets[len(own["layouts"])]) if own.get("farm") else None,
        "limits": [],
    }
    return {"results/concurrent_analysis.json": found, analysis.NAME: analysis.document(found)}


def _storage(name: str, kind: str, limits: Document | None) -> Document:
    return {
        "name": name,
        "kind": kind,
        "text": "xfs on a drive",
        "devices": ["nvme0n1"],
        "limits": limits,
        "reason": None,
    }


def _set(case: Case, own: Document, storage: str, kind: str, layout: str) -> Document:
    asked = own["sets"][kind]
    share = own["slow_disk"]["share"] if storage == "slow-disk" else 1.0
    events = max(asked["files"], round(share * asked["events"]))
    shape = {
        "kind": kind,
        "layout": layout,
        "events": events,
        "files": asked["files"],
        "event_bytes": asked["event_size"],
        "cluster_events": asked["cluster_events"],
        "compression": own["compression"],
        "seed": case.scenario.seed,
        "truth": {"mass": 91.19, "width": 2.5, "slope": 30.0, "signal_share": 0.3, "opposite_share": 0.8},
    }
    truth = {
        "entries": events,
        "digest": hashlib.sha256(str(events).encode()).hexdigest(),
        "opposite": 800,
        "signal": 240,
        "mass": [7] * 100 + [5] * 20,
    }
    size = int(events * asked["event_size"] / 1.4)
    about = {"storage": storage, "analysis": kind, "layout": layout, "shape": shape, "files": asked["files"]}
    return {**about, "bytes": size, "truth": truth}


def _result(one: Document, entries: int | None = None) -> Document:
    truth, full = one["truth"], one["analysis"] == "full"
    fitted = {
        "signal": (245.0, 20.0),
        "mass": (91.29, 0.1),
        "width": (2.4, 0.1),
        "background": (560.0, 30.0),
        "slope": (29.0, 2.0),
    }
    fit: dict[str, Any] = {name: {"value": value, "error": error} for name, (value, error) in fitted.items()}
    return {
        "entries": entries or truth["entries"],
        "digest": truth["digest"],
        "selected": truth["opposite"] if full else 0,
        "balanced": truth["entries"] if full else 0,
        "mass": truth["mass"],
        "fit": {**fit, "chi2": 118.0, "degrees": 115} if full else None,
    }


def _usage(fetched: int, seconds: float, cpu_s: float, entries: int) -> Document:
    return {
        "pid": 4711,
        "start_s": 100.0,
        "end_s": 100.0 + seconds,
        "user_s": 0.9 * cpu_s,
        "system_s": 0.1 * cpu_s,
        "rchar": fetched,
        "read_bytes": fetched + 4096,
        "fetched_bytes": fetched,
        "requests": 400,
        "fits": 0,
        "entries": entries,
    }


JOB_BYTES_PER_S = 30e6


def _point(case: Case, one: Document, workers: int, turn: int) -> Document:
    """One point; more jobs than cores share these, and lose a little."""
    cores = len(CORES.cores)
    rate = case.around(JOB_BYTES_PER_S * (min(workers, cores) - 0.05 * max(0, workers - cores)))
    each = one["bytes"] // workers
    seconds = each * workers / rate
    files = [one["files"] // workers + (number < one["files"] % workers) for number in range(workers)]
    busy = 0.95 * seconds * min(workers, cores) / workers
    records = [
        {"worker": number, "files": own, **_usage(each, seconds, busy, one["truth"]["entries"] // workers)}
        for number, own in enumerate(files)
    ]
    about = {"storage": one["storage"], "layout": one["layout"], "repetition": turn, "analysis": one["analysis"]}
    devices = [{"name": "nvme0n1", "read_bytes": each * workers + 8192 * workers}]
    return {**about, "workers": workers, "devices": devices, "records": records, "result": _result(one)}


def _farm(case: Case, asked: Document, one: Document) -> Document:
    names = [f"node{number}" for number in range(asked["nodes"])]
    workers, cpus = len(CORES.cores) // len(names), len(CORES.cores)
    nodes = [
        {"name": name, "workers": workers, "cpus": [place % cpus], "files": one["files"] // len(names)}
        for place, name in enumerate(names)
    ]
    rounds = []
    for number in range(1, asked["rounds"] + 1):
        runs = [_farm_run(case, [name], one) for name in names] + [_farm_run(case, names, one)]
        rounds.append({"round": number, "alone_first": number % 2 == 1, "runs": runs if number % 2 else runs[::-1]})
    return {"analysis": "full", "nodes": nodes, "rounds": rounds}


def _farm_run(case: Case, nodes: list[str], one: Document) -> Document:
    fetched, rate = one["bytes"] // 2, case.around(60e6 * len(nodes) * (0.98 if len(nodes) > 1 else 1))
    seconds = fetched * len(nodes) / rate
    entries = one["truth"]["entries"] // 2 * len(nodes)
    return {
        "nodes": nodes,
        "elapsed_s": seconds,
        "devices": [{"name": "nvme0n1", "read_bytes": (fetched + 8192) * len(nodes)}],
        "records": [
            {"node": name, "file": f"{name}.root", **_usage(fetched, seconds, seconds, one["truth"]["entries"] // 2)}
            for name in nodes
        ],
        "result": _result(one, entries if len(nodes) == 1 else None),
    }
