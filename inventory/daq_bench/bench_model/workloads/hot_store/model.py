"""The evidence that covers the plan of the hot store: every value size, number of clients, row of the semantics, kill and deployment."""

from __future__ import annotations

from collections.abc import Iterator

from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.workloads.hot_store import figures as store
from daq_bench.bench_model.workloads.hot_store import runs as measured
from daq_bench.bench_model.workloads.hot_store.document import HotStore, HotStoreRuns
from daq_bench.bench_model.workloads.model import Beside, Count, Model, stated
from daq_bench.bench_model.workloads.plan import (
    INVALIDATES,
    Plan,
    Problem,
    as_asked,
    column,
    counting,
    follows,
    rows,
    tool,
)


def coverage(plan: Plan, document: Document) -> Iterator[Problem]:
    """Every value size, number of clients, row of the semantics on every engine, kill, and number of nodes of every deployment."""
    own, points = plan.parameters, document["points"]
    yield from rows("the point of", _turns(plan), [_turn(one) for one in points], _turn_label)
    yield from counting("the point of", ((_turn_label(_turn(one)), one) for one in points))
    for one in points:
        yield from _value_size(plan, one)
    clients = document["clients"]
    yield from rows("number of clients", own["client_counts"], column(clients, "clients"))
    yield from counting("number of clients", ((str(one["clients"]), one) for one in clients))
    for one in clients:
        sides = {f"{one['clients']} clients: {side}": one[side] for side in store.SIDES}
        yield from _rates(own["seconds_per_point"], sides)
    yield from rows("the promise of", store.ENGINES, list(document["promises"]))
    yield from _semantics(document)
    yield from _scale_out(own["scale_out"], document["scale_out"])
    again = store.summary(points, document["semantics"], document["losses"], document["scale_out"]["points"])
    yield from follows("the summary", document["summary"], again)


def _turns(plan: Plan) -> list[tuple[int, int]]:
    """(repetition, value size) of each point."""
    return [(number, size) for number in range(1, plan.repetitions + 1) for size in plan.parameters["value_sizes"]]


def _turn(one: Document) -> tuple[int, int]:
    return one["repetition"], one["value_bytes"]


def _turn_label(key: tuple[int, int]) -> str:
    return f"values of {key[1]} B, repetition {key[0]}"


def _value_size(plan: Plan, one: Document) -> Iterator[Problem]:
    where, embedded, drive = _turn_label(_turn(one)), one["embedded"], one["drive"]
    sides = {f"{where}: {side}": embedded[side] for side in store.SIDES}
    sides |= {f"{where}: redis {name}": one["redis"][name] for name in store.SIDES.values()}
    if plan.parameters.get("target_too", True):
        if drive is None:
            yield f"{where}: the store on the target was not measured"
        else:
            sides |= {f"{where}: {side} on the target": drive[side] for side in store.SIDES}
    yield from _rates(plan.parameters["seconds_per_point"], sides)
    made = {side: store.ratio_of(embedded[side], one["redis"][name], plan.seed) for side, name in store.SIDES.items()}
    yield from follows(f"{where}: the ratios", one["ratios"], made)
    yield from follows(f"{where}: whether the CPUs moved", embedded["cpus_moved"], store.cpus_moved(embedded))


def _rates(seconds: float, sides: dict[str, Document]) -> Iterator[Problem]:
    """A rate is what its samples give, and has as many as its time holds."""
    for name, one in sides.items():
        again = {
            **store.rate_of(one["samples_ops_per_s"]),
            "waited_s": one["waited_s"],
            "latency_us": one["latency_us"],
        }
        yield from follows(name, one, again)
        if one["n"] < store.SAMPLES_SHARE_MIN * seconds / store.SAMPLE_S:
            yield f"{name}: {one['n']} samples of {seconds / store.SAMPLE_S:g}"


def _semantics(document: Document) -> Iterator[Problem]:
    """Each row on each engine, and each kill; what failed is counted by its metric, what was not tried is a hole."""
    losses, matrix = document["losses"], document["semantics"]
    kills = [(name, engine) for engine, names in store.KILLS.items() for name in names]
    yield from rows("kill", kills, [(one["id"], one["engine"]) for one in losses], " of ".join)
    found = [(row["id"], engine, cell) for row in matrix["rows"] for engine, cell in row["engines"].items()]
    planned = [(name, engine) for name in store.SEMANTICS for engine in store.ENGINES]
    yield from rows("semantics", [*planned, *kills], [(name, engine) for name, engine, _ in found], " on ".join)
    for name, engine, cell in found:
        yield from tool(f"semantics {name} on {engine}", cell["outcome"], (store.PASSED, store.FAILED))
    outcomes = [cell["outcome"] for _, _, cell in found]
    made = (outcomes.count(store.PASSED), outcomes.count(store.FAILED))
    yield from follows("the semantics' counts", (matrix["passed"], matrix["failed"]), made)
    cells = {(name, engine): cell for name, engine, cell in found}
    for one in losses:
        cell = cells.get((one["id"], one["engine"]), one)
        yield from follows(f"the kill {one['id']} of {one['engine']}", cell["outcome"], one["outcome"])
        if one["lost"] > 0 and one["outcome"] == store.PASSED:
            yield f"the kill {one['id']} of {one['engine']} lost {one['lost']} events and passed", INVALIDATES


def _scale_out(own: Document, found: Document) -> Iterator[Problem]:
    asked = {
        "value_bytes": own["value_size"],
        **{key: own[key] for key in ("replicas", "network", "consumers_per_node")},
    }
    yield from follows("scale out", {key: found[key] for key in asked}, asked)
    planned = [(kind, nodes) for nodes in own["nodes"] for kind in own["deployments"]]
    points = found["points"]
    yield from rows("scale out of", planned, [(one["deployment"], one["nodes"]) for one in points], _deployment)
    yield from counting("scale out of", ((_deployment((one["deployment"], one["nodes"])), one) for one in points))
    for one in points:
        counted, events = one["network_bytes"], one["events"]
        each = counted / events if counted is not None and events else None
        yield from follows("the network bytes per event", one["network_bytes_per_event"], each)


def _deployment(key: tuple[str, int]) -> str:
    return f"the {key[0]} deployment on {key[1]} nodes"


def _runs(plan: Plan, document: Document, runs: Document) -> Iterator[Problem]:
    """The runs that the figures were made from are those of the plan."""
    own, losses = plan.parameters, runs["losses"]
    yield from as_asked(plan, runs)
    yield from follows("the seed", runs["seed"], plan.seed)
    yield from rows("the run of", _turns(plan), [_turn(one) for one in runs["points"]], _turn_label)
    wanted = own.get("target_too", True)
    if any((one["drive"] is not None) is not wanted for one in runs["points"]):
        yield "the runs on the target are not those that were asked for", INVALIDATES
    yield from rows("the run with clients", own["client_counts"], column(runs["clients"], "clients"))
    yield from rows("the semantics of", store.ENGINES, list(runs["semantics"]))
    kills = [(name, engine) for engine, names in store.KILLS.items() for name in names]
    yield from rows("the run of kill", kills, [(one["id"], one["engine"]) for one in losses], " of ".join)
    for one in losses:
        if len(set(one["heirs"])) != (store.HEIRS if one["id"] == store.CONSUMER else 0):
            yield f"the run of kill {one['id']} of {one['engine']} has the heirs {one['heirs']}", INVALIDATES
    yield from follows(
        "what must be acknowledged before a kill",
        column(losses, "acknowledged_min"),
        [own["kills"]["acknowledged_min"]] * len(losses),
    )
    yield from _scale_out_runs(own["scale_out"], runs["scale_out"], document["scale_out"])


def _scale_out_runs(own: Document, runs: Document, found: Document) -> Iterator[Problem]:
    planned = [(kind, nodes) for nodes in own["nodes"] for kind in own["deployments"]]
    points = [(one["deployment"], one["nodes"]) for one in runs["points"]]
    yield from rows("the run of", planned, points, _deployment)
    for one in runs["points"]:
        for kind in ("producers", "consumers"):
            if len(set(one[kind])) != one["nodes"]:
                yield f"{_deployment((one['deployment'], one['nodes']))} has {len(set(one[kind]))} {kind}"
    counted = (column(part["points"], "network_bytes") for part in (found, runs))
    yield from follows("the network bytes", *counted)


MODEL = Model(
    coverage,
    (
        Count("seconds_per_point", stated("seconds_per_point")),
        Count("redis_clients", stated("redis_clients")),
        Count("client_value_bytes", stated("client_value_size")),
        Count("scale_out.replicas", stated("scale_out", "replicas")),
    ),
    (Beside(measured.NAME, measured.of_bundle, kind=HotStore), Beside(measured.RUNS, held=_runs, kind=HotStoreRuns)),
    result=HotStore,
)
