"""The evidence that covers the plan of the steady state: each test that was asked for, its rounds, their points."""

from __future__ import annotations

from collections.abc import Iterator

from daq_bench.bench_model.base.units import KIB
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.workloads.model import Count, Model, once, stated
from daq_bench.bench_model.workloads.plan import (
    INVALIDATES,
    Plan,
    Problem,
    column,
    confirmed,
    counting,
    follows,
    rows,
    with_counter,
)
from daq_bench.bench_model.workloads.preconditioning import PASSES, PRECONDITIONED, on_target, written_in_full
from daq_bench.bench_model.workloads.steady_state.document import SteadyState
from daq_bench.bench_model.workloads.steady_state.rounds import steady_window
from daq_bench.bench_model.workloads.steady_state.summary import figures_of, summary_of

TRACKED_POINT = f"r0-{4 * KIB}"  # random writes


def coverage(plan: Plan, document: Document) -> Iterator[Problem]:
    """Each test that was asked for, its rounds in order, each round's points all there; steadiness is what the rounds show."""
    parameters, tests = plan.parameters, document["tests"]
    planned = [f"throughput-{size // KIB}kib" for size in parameters.get("throughput", {}).get("transfer_sizes", [])]
    planned += [name for name in ("iops", "latency", "jesd219") if name in parameters]
    yield from rows("test", planned, column(tests, "name"))
    for test in tests:
        name, found = test["name"], test["rounds"]
        yield from follows(f"{name}: the rounds in their order", column(found, "round"), list(range(1, len(found) + 1)))
        if len(found) > parameters["rounds_max"]:
            yield (
                f"{name}: {len(found)} rounds are there and at most {parameters['rounds_max']} were planned",
                INVALIDATES,
            )
        points = _matrix_points(parameters, name, document["logical_block_bytes"])
        for one in found:
            where = f"{name}: round {one['round']}: point"
            yield from rows(where, points, column(one["points"], "name"))
            yield from counting(where, ((point["name"], point) for point in one["points"]))
            for point in one["points"]:
                sides = {"read": point["read_percent"] > 0, "write": point["read_percent"] < 100}
                size = None if point["name"] == "mix" else int(point["name"].rpartition("-")[2])
                if point["block_bytes"] != size:
                    yield f"{where} {point['name']} says that its blocks have {point['block_bytes']} B", INVALIDATES
                if any((point[side] is not None) is not there for side, there in sides.items()):
                    yield f"{where} {point['name']} lacks what it was to measure, or has more", INVALIDATES
                made = figures_of([point[side] for side in sides if point[side] and point[side]["latency_us"]])
                yield from follows(f"{where} {point['name']}", {key: point[key] for key in made}, made)
            yield from _confirmed(plan, test, one)
            if one["reason"] is not None or one["value"] is None:
                yield f"{name}: round {one['round']} does not count: {one['reason']}"
        window = steady_window([one["value"] for one in found])
        said = test["window"] and (test["window"]["first_round"], test["window"]["last_round"])
        yield from follows(
            f"{name}: the steady window", said, (window.first_round, window.last_round) if window else None
        )
        yield from follows(f"{name}: steady", test["steady"], window is not None)
        yield from on_target(test["conditioning"], plan.capacity_bytes)
        if test["conditioning"]["condition"] != PRECONDITIONED:
            yield f"{name}: the drive was not preconditioned before", INVALIDATES
        elif test["conditioning"]["preconditioning"]:
            yield from written_in_full(test["conditioning"], PASSES)
        if test["conditioning"]["purge"]["done"] is not True:
            yield f"{name}: the drive was not purged before"
        if (test["reason"] is None) is not test["steady"]:
            yield f"{name}: it is steady, and a reason stands there, or neither", INVALIDATES
    summary = summary_of(tests, parameters["rounds_max"])
    yield from follows("the summary", document["summary"], summary.values)
    yield from follows("the window's rounds", document["samples"], summary.samples)


TRACKED = {"throughput": "bytes_per_s", "iops": "iops", "latency": "latency_us", "jesd219": "iops"}  # by kind of test


def _confirmed(plan: Plan, test: Document, one: Document) -> Iterator[Problem]:
    """The device's own counter confirms what a round wrote, and its value is that of the point by which steadiness is judged."""
    written = sum(point["write"]["bytes"] for point in one["points"] if point["write"])
    row = {**one, "bytes_written": written}
    yield from confirmed(f"{test['name']}: round", [(str(one["round"]), row)])
    yield from with_counter(f"{test['name']}: round", plan, [(str(one["round"]), row)])
    name = {"throughput": f"write-{one['points'][0]['block_bytes']}", "jesd219": "mix"}.get(test["kind"], TRACKED_POINT)
    value = next((point[TRACKED[test["kind"]]] for point in one["points"] if point["name"] == name), None)
    if one["reason"] is None:
        yield from follows(f"{test['name']}: the value of round {one['round']}", one["value"], value)


def _matrix_points(parameters: Document, test: str, least_bytes: int) -> list[str]:
    """Names of the points of one round, as `rig.workloads.steady_state.tests` gives them to fio."""
    if test.startswith("throughput-"):
        size = int(test.removeprefix("throughput-").removesuffix("kib")) * KIB
        return [f"{word}-{size}" for word in ("write", "read")]
    if test == "jesd219":
        return ["mix"]
    asked = parameters[test]
    return [
        f"r{percent}-{size}"
        for percent in asked["read_percents"]
        for size in asked["transfer_sizes"]
        if size >= least_bytes
    ]


MODEL = Model(
    coverage,
    (
        Count("seconds_per_point", stated("seconds_per_point")),
        Count("span_bytes", lambda asked, own: asked.own.get("span_size", own.get("capacity_bytes"))),
    ),
    times=once,
    result=SteadyState,
)
