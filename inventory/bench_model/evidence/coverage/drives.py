"""Coverage of what is asked of drives: their steady state, their warmth and their wear."""

from __future__ import annotations

import math
from collections.abc import Iterator

from bench_model.base.units import KIB
from bench_model.bundle.evidence import Document
from bench_model.workloads.plan import INVALIDATES, Plan, Problem, column, counting, follows, rows, tool
from bench_model.workloads.saturation import analysis as saturation_model
from bench_model.workloads.saturation import passes as saturation_passes
from bench_model.workloads.steady_state.rounds import steady_window
from bench_model.workloads.steady_state.summary import summary_of


def steady_state(plan: Plan, document: Document) -> Iterator[Problem]:
    """Each test that was asked for, its rounds in order, each round's points all there; steadiness is what the rounds show."""
    parameters, tests = plan.parameters, document["tests"]
    planned = [f"throughput-{size // KIB}kib" for size in parameters.get("throughput", {}).get("transfer_sizes", [])]
    planned += [name for name in ("iops", "latency", "jesd219") if name in parameters]
    yield from rows("test", planned, column(tests, "name"))
    for test in tests:
        name, found = test["name"], test["rounds"]
        yield from rows(f"{name}: round", range(1, len(found) + 1), column(found, "round"))
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
            if one["reason"] is not None or one["value"] is None:
                yield f"{name}: round {one['round']} does not count: {one['reason']}"
        window = steady_window([one["value"] for one in found])
        said = test["window"] and (test["window"]["first_round"], test["window"]["last_round"])
        yield from follows(
            f"{name}: the steady window", said, (window.first_round, window.last_round) if window else None
        )
        yield from follows(f"{name}: steady", test["steady"], window is not None)
        if test["conditioning"]["purge"]["done"] is not True:
            yield f"{name}: the drive was not purged before"
        if (test["reason"] is None) is not test["steady"]:
            yield f"{name}: it is steady, and a reason stands there, or neither", INVALIDATES
    summary = summary_of(tests, parameters["rounds_max"])
    yield from follows("the summary", document["summary"], summary.values)
    yield from follows("the window's rounds", document["samples"], summary.samples)


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


def thermal(plan: Plan, document: Document) -> Iterator[Problem]:
    """The soak ran for its least time, and each fan speed that was asked for was tried, or it is said why not."""
    parameters, soak = plan.parameters, document["soak"]
    length_s = soak["end_utc_s"] - soak["start_utc_s"]
    if length_s < SOAK_SHARE_MIN * parameters["soak"]["min_s"] and soak["stopped_by"] != "throttling":
        yield f"the soak lasted {length_s:.0f} s of at least {parameters['soak']['min_s']:g} s"
    asked, sweep = parameters.get("fan_sweep"), document["fan_sweep"]
    if asked and sweep["status"] not in ("done", "stopped"):
        yield f"the fan sweep is {sweep['status']!r}: {sweep['reason']}"
    duties = asked["duties_percent"] if asked and sweep["status"] == "done" else []
    planned = [SOAK, *(f"fans at {duty} %" for duty in duties)]
    if sweep["status"] == "done":
        yield from rows("fan speed", duties, column(sweep["points"], "duty_percent"))
    yield from rows("the load", planned, [name for name in column(document["sustained"], "name") if name in planned])
    for one in (soak, *sweep["points"]):
        if one["bytes_written"] <= 0 or one["throughput_bytes_per_s"] <= 0:
            yield f"the load {one['name']} wrote nothing"
    record = {key: parameters["record"][key] for key in ("links", "superchunk_bytes", "superchunk_rate_hz")}
    demand = math.prod(float(value) for value in record.values()) * plan.scale
    if not math.isclose(document["record"]["demand_bytes_per_s"], demand, rel_tol=1e-9):
        yield (
            f"the record's demand is {document['record']['demand_bytes_per_s']:g} B/s instead of {demand:g} B/s",
            INVALIDATES,
        )


SOAK = "soak"
SOAK_SHARE_MIN = 0.97  # [P] of its least time that a soak must have lasted


def endurance(plan: Plan, document: Document) -> Iterator[Problem]:
    """The steps in their order until the budget ended them, and the same drives at the start, at the end and after each step."""
    steps, drives = document["steps"], column(document["drives"], "id")
    if not drives or len(set(drives)) < len(drives):
        yield "no drive was watched, or one of them twice", INVALIDATES
    yield from follows("the experiment's drives", sorted(document["experiment"]["serials"]), sorted(drives))
    for step in steps:
        written = sum(job["written_bytes"] for job in step["jobs"])
        yield from follows(f"step {step['number']}: what its jobs wrote", step["written_bytes"], written)
    if document["ended"] is None:
        yield "the experiment did not come to its end"
    first = steps[0]["number"] if steps else 0  # earlier runs on the same drives have numbers of their own
    yield from rows("step", range(first, first + len(steps)), column(steps, "number"))
    if not steps or steps[0]["kind"] != "fill":
        yield "the step that fills the file is missing"
    if not any(step["kind"] == "mix" for step in steps):
        yield "not one step of the mix was written"
    yield from counting("step", ((str(step["number"]), step) for step in steps))
    for name, health in (
        ("opening", document["opening"]["drives"]),
        ("start", document["at_start"]),
        ("end", document["at_end"]),
    ):
        yield from rows(f"at the {name}, drive", drives, column(health, "id"))
    for step in steps:
        yield from rows(f"after step {step['number']}, drive", drives, column(step["health"], "id"))
    if steps:
        yield from follows("the drives' state at the end", document["at_end"], steps[-1]["health"])
    before, after = ({one["id"]: one for one in document[key]} for key in ("at_start", "at_end"))
    for drive in before.keys() & after.keys():
        for key in ("written_bytes", "media_errors", "percentage_used", "power_cycles", "unsafe_shutdowns"):
            first, last = before[drive][key], after[drive][key]
            if (first is None) != (last is None) or (first is not None and last < first):
                yield f"{key} of drive {drive} went from {first} to {last}", INVALIDATES
    spent = sum(
        one["reserved_bytes"] if one["charged_bytes"] is None else one["charged_bytes"] for one in document["ledger"]
    )
    yield from follows("what was spent", document["spent_bytes"], spent)
    for entry in document["ledger"]:
        if entry["charged_by"] == "drives":
            charged, counted = entry["charged_bytes"], entry["counted_bytes"]
            # An interrupted step is charged its reservation at most.
            right = counted if counted is None or charged == counted else min(counted, entry["reserved_bytes"])
            yield from follows(f"entry {entry['number']} of the account: what was charged", charged, right)
    overrun = max(0, spent - document["write_budget_bytes"])
    yield from follows("the overrun", document["overrun_bytes"], overrun)


def saturation(plan: Plan, document: Document) -> Iterator[Problem]:
    """Each pass once, over all that was asked for, on a target that was shown to be fresh, with an account that adds up."""
    found = document["repetitions"]
    yield from rows("pass", range(1, plan.repetitions + 1), column(found, "number"))
    for one in found:
        what = f"pass {one['number']}"
        yield from tool(what, one["status"])
        yield from ((f"{what}: {text}", INVALIDATES) for text in saturation_passes.contradictions(one))
        if not any(saturation_passes.contradictions(one)):
            yield from (f"{what}: {text}" for text in saturation_passes.holes(one))
        yield from follows(f"{what}: what was asked for", one["asked_bytes"], _asked_of_pass(plan.parameters, one))
        if one["written_bytes"] < one["asked_bytes"]:
            yield f"{what} wrote {one['written_bytes']} B of {one['asked_bytes']} B"
        if why := saturation_passes.not_fresh(one):
            yield f"{what}: {why}"
        if (one["ended_by"] in ("bytes", "span")) is not (one["status"] == "complete"):
            yield f"{what} is {one['status']!r} and was ended by {one['ended_by']!r}", INVALIDATES
    yield from counting("pass", ((str(one["number"]), one) for one in found))
    seen = [one["series"]["t_s"] for one in found]
    if any(times in seen[:place] for place, times in enumerate(seen)):
        yield "the samples of one pass stand for another one, too", INVALIDATES
    ledger = document["ledger"]
    yield from rows("the account's entry", range(1, len(ledger) + 1), column(ledger, "number"))
    spent = sum(one["reserved_bytes"] if one["charged_bytes"] is None else one["charged_bytes"] for one in ledger)
    yield from follows("what was spent", document["spent_bytes"], spent)
    for entry, one in zip(ledger[-len(found) :], found, strict=True):
        what = f"the account of pass {one['number']}"
        yield from follows(f"{what}: the drives' count", one["device_bytes_written"], _counted(entry))
        serials = sorted(entry["before"]["written_bytes"])
        yield from follows(f"{what}: its drives", sorted(document["experiment"]["serials"]), serials)


def _counted(entry: Document) -> int | None:
    """Bytes that the drives took between two readings of their own; None where these do not compare."""
    before, after = entry["before"], entry["after"]
    if entry["kind"] != "pass" or not after or before["epoch"] != after["epoch"]:
        return None
    if before["written_bytes"].keys() != after["written_bytes"].keys():
        return None
    return int(sum(after["written_bytes"][drive] - count for drive, count in before["written_bytes"].items()))


def _asked_of_pass(parameters: Document, one: Document) -> int:
    """Whole blocks of the span, of the share of the room, or of the capacity."""
    block = parameters["block_size"]
    asked = parameters.get("span_size", int(one["capacity_bytes"] * parameters.get("free_share", 1)))
    return int(asked) // int(block) * int(block)


def saturation_analysis(plan: Plan, document: Document, analysis: Document) -> Iterator[Problem]:
    yield from follows("the analysis", analysis, saturation_model.document(document))
