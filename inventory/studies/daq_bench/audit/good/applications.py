"""Good runs of applications: the storage application with its checksums, and concurrent analysis of ROOT files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from daq_bench.audit.good.case import Case

from daq_bench.bench_model.documents.run import FurtherTarget
from daq_bench.bench_model.documents.struct import Document, Kind, as_document, checked, read
from daq_bench.bench_model.workloads.concurrent_analysis import analysis
from daq_bench.bench_model.workloads.concurrent_analysis.document import SetTruth, Shape, Spectrum
from daq_bench.bench_model.workloads.concurrent_analysis.reader import AnalysisSet, SetFile
from daq_bench.bench_model.workloads.streams_checksum import analysis as streams
from daq_bench.bench_model.workloads.streams_checksum.setups import (
    ALL,
    ORIGINAL,
    THREADED,
    Cpus,
    application_threads,
    comparisons,
)
from daq_bench.rig.candidate.facilities import OpenTarget
from daq_bench.rig.workloads.concurrent_analysis import workload as analysis_workload
from daq_bench.rig.workloads.concurrent_analysis.runs import Reader, SetPlan, Storage
from daq_bench.rig.workloads.shared.open_target import Targets
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
    asked = case.plan("concurrent_analysis")
    plan = analysis_workload.Plan(asked.parameters, CORES, asked.repetitions, case.scenario.seed)
    reader, targets = cast(Reader, _Reader(case)), cast(Targets, _Targets(case, asked.parameters.get("storages", [""])))
    found = checked(analysis_workload.Campaign(reader, plan, targets, lambda *_: None).run())
    return {"results/concurrent_analysis.json": found, analysis.NAME: analysis.document(found)}


@dataclass(frozen=True)
class _Targets:
    """Each target is like the run's own."""

    case: Case
    names: list[str]

    def reference(self) -> OpenTarget:
        return self.open(self.names[0])

    def open(self, name: str) -> OpenTarget:
        return OpenTarget(name, Path("/data"), FurtherTarget.of(self.case.run.target, None, []))

    def close(self, target: OpenTarget) -> None:
        """Does nothing: it stays."""


class _Reader:
    """The reader on a candidate, as the workload asks it: of the set that lies there now."""

    def __init__(self, case: Case) -> None:
        self._case = case

    @contextmanager
    def generated(self, _: Storage, wanted: SetPlan) -> Iterator[tuple[Path, AnalysisSet]]:
        self._made = _made(wanted)
        yield Path(wanted.name), self._made

    def run(self, command: str, options: list[str], name: str, kind: type[Kind], _: float) -> Kind:
        asked = dict(one.removeprefix("--").split("=") for one in options if "=" in one)
        found: Document = {"schema_version": 1}
        if command == "farm":
            found |= _farm(self._case, asked, self._made)
        else:
            turns = int(asked.get("repetitions", 0))
            numbers = [{"repetition": turn} for turn in range(1, turns + 1)] or [{}]
            workers = [int(one) for one in asked["workers"].split(",")]
            found["points"] = [{**_pass(self._case, self._made, one), **turn} for turn in numbers for one in workers]
        if command == "slow-disk":
            held = {"read_iops": int(asked["read-iops"]), "read_bytes_per_s": int(asked["read-bytes-per-s"])}
            found |= {"controller": "io", "limits": held}
        return read(found, kind, name)


def _made(wanted: SetPlan) -> AnalysisSet:
    names = ("kind", "layout", "events", "files", "event_bytes", "cluster_events", "compression", "seed")
    spectrum = Spectrum(mass=91.19, width=2.5, slope=30.0, signal_share=0.3, opposite_share=0.8)
    shape = Shape(**{name: getattr(wanted, name) for name in names}, truth=spectrum)
    digest = hashlib.sha256(str(wanted.events).encode()).hexdigest()
    truth = SetTruth(wanted.events, digest, opposite=800, signal=240, mass=[7] * 100 + [5] * 20)
    size = int(wanted.raw_bytes / 1.4)
    files = [SetFile(f"{place}.root", size // wanted.files, wanted.events) for place in range(wanted.files)]
    return AnalysisSet(1, shape, files, size, truth, {"uproot": "5"})


def _result(made: AnalysisSet, entries: int | None = None) -> Document:
    truth, full = made.truth, made.shape.kind == "full"
    fitted = {
        "signal": (245.0, 20.0),
        "mass": (91.29, 0.1),
        "width": (2.4, 0.1),
        "background": (560.0, 30.0),
        "slope": (29.0, 2.0),
    }
    fit: dict[str, Any] = {name: {"value": value, "error": error} for name, (value, error) in fitted.items()}
    return {
        "entries": entries or truth.entries,
        "digest": truth.digest,
        "selected": truth.opposite if full else 0,
        "balanced": truth.entries if full else 0,
        "mass": truth.mass,
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


def _pass(case: Case, made: AnalysisSet, workers: int) -> Document:
    """One pass; more jobs than cores share these, and lose a little."""
    cores, files = len(CORES.cores), len(made.files)
    rate = case.around(JOB_BYTES_PER_S * (min(workers, cores) - 0.05 * max(0, workers - cores)))
    each = made.bytes // workers
    seconds = each * workers / rate
    shares = [files // workers + (number < files % workers) for number in range(workers)]
    busy = 0.95 * seconds * min(workers, cores) / workers
    used = _usage(each, seconds, busy, made.truth.entries // workers)
    return {
        "analysis": made.shape.kind,
        "workers": workers,
        "files": files,
        "drop_caches": True,
        "devices": _fetched(case, each * workers + 8192 * workers),
        "records": [{"worker": number, "files": own, **used} for number, own in enumerate(shares)],
        "result": _result(made),
    }


def _fetched(case: Case, read_bytes: int) -> list[Document]:
    """What the counters of the target's device say."""
    device = case.run.target.device
    return [{"name": device.name, "read_bytes": read_bytes}] if device else []


def _farm(case: Case, asked: dict[str, str], made: AnalysisSet) -> Document:
    names = [f"node{number}" for number in range(int(asked["nodes"]))]
    cpus = [int(one) for one in asked["cpus"].split(",")]
    nodes = [
        {"name": name, "workers": int(asked["workers"]), "cpus": [cpu], "files": len(made.files) // len(names)}
        for name, cpu in zip(names, cpus, strict=False)
    ]
    rounds = []
    for number in range(1, int(asked["rounds"]) + 1):
        runs = [_farm_run(case, [name], made) for name in names] + [_farm_run(case, names, made)]
        rounds.append({"round": number, "alone_first": number % 2 == 1, "runs": runs if number % 2 else runs[::-1]})
    return {"analysis": made.shape.kind, "nodes": nodes, "rounds": rounds}


def _farm_run(case: Case, nodes: list[str], made: AnalysisSet) -> Document:
    fetched, rate = made.bytes // 2, case.around(60e6 * len(nodes) * (0.98 if len(nodes) > 1 else 1))
    seconds = fetched * len(nodes) / rate
    each = made.truth.entries // 2
    return {
        "nodes": nodes,
        "elapsed_s": seconds,
        "devices": _fetched(case, (fetched + 8192) * len(nodes)),
        "records": [
            {"node": name, "file": f"{name}.root", **_usage(fetched, seconds, seconds, each)} for name in nodes
        ],
        "result": _result(made, each if len(nodes) == 1 else None),
    }
