"""The evidence that covers the plan of the concurrent analysis: every storage, set, layout, number of workers and round of the farm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.workloads.concurrent_analysis import analysis
from daq_bench.bench_model.workloads.concurrent_analysis.document import ConcurrentAnalysis, ConcurrentAnalysisRates
from daq_bench.bench_model.workloads.concurrent_analysis.points import worker_counts
from daq_bench.bench_model.workloads.model import Asked, Beside, Count, Model, of_result
from daq_bench.bench_model.workloads.plan import INVALIDATES, Plan, Problem, column, follows, rows

SPARSE, FULL = "sparse", "full"
SLOW_DISK, TARGET = "slow-disk", "target"
Key = tuple[Any, ...]


def coverage(plan: Plan, document: Document) -> Iterator[Problem]:
    """On every storage, every set in every layout, with every number of workers in every repetition; every round of the farm."""
    own, cores = plan.parameters, document["cores"]
    if cores > len(document["cpus"]) or len(set(document["cpus"])) < len(document["cpus"]):
        yield f"{cores} cores and the CPUs {document['cpus']} contradict each other", INVALIDATES
    asked = {key: own[key] for key in ("drop_caches", "layouts", "compression")}
    asked["worker_counts"] = worker_counts(cores, own["workers_beyond"])
    yield from follows("what was asked for", {key: document[key] for key in asked}, asked)
    storages = document["storages"]
    yield from rows("storage", _storages(plan, storages), [(one["kind"], one["name"]) for one in storages], " ".join)
    said = [f"{one['name']}: {one['reason']}" for one in storages if one["reason"] is not None]
    yield from (f"not measured: {text}" for text in said if text not in document["limits"])
    held = [one for one in storages if one["reason"] is None]
    for one in storages:
        yield from _held_back(own, one)
    for one in held:
        counted = {
            device["name"]
            for point in document["points"]
            if point["storage"] == one["name"]
            for device in point["devices"]
        }
        yield from follows(
            f"{one['name']}: the devices whose counters were read", sorted(one["devices"]), sorted(counted)
        )
    sets = [(one["name"], kind, layout) for one in held for kind in (SPARSE, FULL) for layout in _layouts(own, one)]
    yield from rows("set", sets, [_series(one) for one in document["sets"]], _shown)
    for one in document["sets"]:
        yield from _set(plan, one)
    points = [key for one in held for key in _points(plan, one, document["worker_counts"], cores)]
    found = [(*_series(one), one["workers"], one["repetition"]) for one in document["points"]]
    yield from rows("point", points, found, _shown)
    files = {_series(one): one["files"] for one in document["sets"]}
    for one in document["points"]:
        yield from _point(one, files.get(_series(one)))
    yield from _farm(own, document)


def _series(one: Document) -> Key:
    return one["storage"], one["analysis"], one["layout"]


def _shown(key: Key) -> str:
    return ", ".join(map(str, key))


def _storages(plan: Plan, found: list[Document]) -> list[Key]:
    """Without names the run's own target is the one; the bench names it."""
    names = plan.parameters.get("storages") or [found[0]["name"]]
    slow = [(SLOW_DISK, SLOW_DISK)] if plan.parameters.get("slow_disk") else []
    return [*((TARGET, name) for name in names), *slow]


def _held_back(own: Document, storage: Document) -> Iterator[Problem]:
    """A slow disk is held to what was asked for; nothing else is held back."""
    slow = own.get("slow_disk") if storage["kind"] == SLOW_DISK else None
    asked = {"read_iops": slow["read_iops"], "read_bytes_per_s": slow["read_bandwidth_size"]} if slow else None
    yield from follows(f"{storage['name']}: what it is held to", storage["limits"], asked)


def _layouts(own: Document, storage: Document) -> list[str]:
    layouts: list[str] = own["layouts"]
    return layouts if storage["kind"] == TARGET else layouts[:1]


def _points(plan: Plan, storage: Document, counts: list[int], cores: int) -> Iterator[Key]:
    own = plan.parameters
    times = plan.repetitions if storage["kind"] == TARGET else own["slow_disk"]["repetitions"]
    for kind in (SPARSE, FULL):
        for place, layout in enumerate(_layouts(own, storage)):
            for workers in counts if place == 0 else [cores]:
                yield from ((storage["name"], kind, layout, workers, turn) for turn in range(1, times + 1))


def _set(plan: Plan, one: Document) -> Iterator[Problem]:
    """The set that was generated is the one that was asked for."""
    own, shape = plan.parameters, one["shape"]
    asked, name = own["sets"][one["analysis"]], _shown(_series(one))
    share = own["slow_disk"]["share"] if one["storage"] == SLOW_DISK else 1
    made = {
        "kind": one["analysis"],
        "layout": one["layout"],
        "events": max(asked["files"], round(share * asked["events"])),
        "files": asked["files"],
        "event_bytes": asked["event_size"],
        "compression": own["compression"],
        "seed": plan.seed,
    }
    yield from follows(f"set {name}", {key: shape[key] for key in made}, made)
    counts = (one["files"], one["truth"]["entries"])
    yield from follows(f"set {name}: files and events", counts, (shape["files"], shape["events"]))


def _point(one: Document, files: int | None) -> Iterator[Problem]:
    """As many jobs as workers, and every file of the set given to one of them."""
    name, records = _shown((*_series(one), one["workers"], one["repetition"])), one["records"]
    yield from rows(f"point {name}: job", range(one["workers"]), column(records, "worker"))
    if files is not None:
        yield from follows(f"point {name}: files", sum(column(records, "files")), files)


def _farm(own: Document, document: Document) -> Iterator[Problem]:
    """Each round has each node alone and all together; a candidate of fewer cores than nodes has no farm."""
    asked, farm = own.get("farm"), document["farm"]
    wanted = asked is not None and document["cores"] >= asked["nodes"]
    if asked is None or not wanted or farm is None:
        if wanted != (farm is not None):
            yield "the farm was planned and is missing" if wanted else ("the farm was not planned", INVALIDATES)
        return
    nodes = column(farm["nodes"], "name")
    yield from follows("the farm's nodes and analysis", (len(set(nodes)), farm["analysis"]), (asked["nodes"], FULL))
    yield from rows("round of the farm", range(1, asked["rounds"] + 1), column(farm["rounds"], "round"))
    planned = [*((name,) for name in nodes), tuple(nodes)]
    for one in farm["rounds"]:
        yield from rows(
            f"round {one['round']} of the farm:", planned, [tuple(run["nodes"]) for run in one["runs"]], _shown
        )


def _rates(plan: Plan, document: Document, found: Document) -> Iterator[Problem]:
    """The rates are those of these points, whole."""
    yield from follows("the rates", found, analysis.document(document))


def _events(asked: Asked, around: Document) -> float:
    """Events of a set of files; those of the slow disk are a declared share of them."""
    slow = [one["name"] for one in around["storages"] if one["kind"] == SLOW_DISK]
    share = asked.own["slow_disk"]["share"] if around["storage"] in slow else 1
    return float(asked.own["sets"][around["kind"]]["events"] * share)


def _times(plan: Plan, metric: str) -> int:
    """The farm has rounds of its own."""
    rounds = (plan.parameters.get("farm") or {}).get("rounds", 0)
    return int(rounds) if metric == "concurrent_analysis.farm_ratio" else plan.repetitions_max


MODEL = Model(
    coverage,
    (Count("sets[].shape.events", _events),),
    (
        Beside(
            analysis.NAME, of_result(f"results/{analysis.RESULTS}", analysis.document), _rates, ConcurrentAnalysisRates
        ),
    ),
    times=_times,
    times_field=lambda metric: "farm.rounds" if metric == "concurrent_analysis.farm_ratio" else "",
    result=ConcurrentAnalysis,
)
