"""One reference drive against RAID sets of others, in paired rounds within one run.

The reference is the run's own target and stays up. Sets that share no drive are up together; sets that do follow one another,
built anew each time. In each round every target that is up is visited once: the reference first and the sets after it in one
round, the other way round in the next, so that a drift which is steady over the rounds cancels from each pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.units import decimal_label, in_digits
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.profiles.candidates import Target
from daq_bench.bench_model.profiles.compared_targets import Compared, compared
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.workloads.raid_vs_3dxp.document import RaidVs3Dxp
from daq_bench.candidate_kit.sizes import parse_size
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.facilities import OpenTarget
from daq_bench.rig.candidate.hazard_control import HazardControl
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.raid_vs_3dxp.visit import VisitPlan, counters, paced_demand, visit
from daq_bench.rig.workloads.shared.base import Report, Workload
from daq_bench.rig.workloads.shared.open_target import ObservedTargets, Targets
from daq_bench.rig.workloads.shared.plan import UNIT_BYTES_PER_S, Ground, Need, Step, rings

NAME = "raid_vs_3dxp"
BUILD_S = 15.0  # time to build a set on the machines seen so far, without a resync; only for the display


def plan(scenario: Scenario, ground: Ground) -> list[Step]:
    """Each group's sets are built, and every target that is up is visited once in each round: a write, and a paced record."""
    parameters = scenario.workloads[NAME]
    demand, size = paced_demand(parameters), parameters["write_size"]
    groups: list[list[str]] = [[name] for name in parameters["sets"]]
    if ground.candidate:
        groups = [[one.name for one in group] for group in compared(scenario, ground.candidate).groups]
    room, text = size, f"each write of {decimal_label(size)} (write_size)"
    if demand.record_bytes > size:
        room = demand.record_bytes
        text = (
            f"the paced record of {decimal_label(demand.offered_bytes_per_s)}/s x {in_digits(demand.duration_s, 9)} s = "
            f"{decimal_label(room)} ({room} B)"
        )
    found = []
    for group in groups:
        found.append(Step("building and taking away", 2 * BUILD_S, times=len(group)))
        found.append(Step("at rest", parameters["idle_s"] + 1.0, times=parameters["rounds"]))
        for name in (parameters["reference"], *group):
            on = "" if name == parameters["reference"] else name
            length = size / ground.rate_bytes_per_s + demand.duration_s + 3.0
            written = size + ground.written(demand.duration_s, demand.offered_bytes_per_s)
            found.append(Step(f"visits of {name}", length, written, room, text, on=on, times=parameters["rounds"]))
    return found


def _buffers(scenario: Scenario) -> Need:
    parameters = scenario.workloads[NAME]
    paced = parameters["paced"]
    paced_rings = rings("paced.ring_size", paced["links"], paced["ring_size"])
    blocks = parameters["threads"] * parameters["io_depth"] * parameters["block_size"]
    if paced_rings.size_bytes >= blocks:
        return paced_rings
    return Need(
        blocks,
        f"block_size: {parameters['threads']} threads x {parameters['io_depth']} blocks need {decimal_label(blocks)}",
    )


def _limits(scenario: Scenario) -> list[str]:
    return [
        f"A fault is caused on purpose: drive {hazard['throttle_drive']} is throttled in round {hazard['round']} of {hazard['set']}"
        for hazard in scenario.workloads[NAME].get("hazards", [])
    ]


def run(context: RunContext, report: Report) -> dict[str, Any]:
    """results/raid_vs_3dxp.json of this run."""
    parameters = context.scenario.workloads[NAME]
    hazards = context.facilities.hazards(NAME) if context.facilities and parameters.get("hazards") else None
    plan = VisitPlan(
        machine=context.machine,
        daqwriter=context.daqwriter,
        parameters=parameters,
        seed=context.scenario.seed,
        work=context.places.raw,
        raw=context.raw,
        line_protocol=context.places.workload_file,
        tags={"host": context.candidate.name, "run": context.bundle.id},
    )
    comparison = compared(context.scenario, context.candidate)
    return run_comparison(plan, comparison, ObservedTargets(context), hazards, report)


def every_target_should_have_been_visited_in_every_round(context: RunContext, found: RaidVs3Dxp) -> None:
    """Fails when a pair of a round is incomplete; a masked visit is there, with its reason."""
    asked = context.scenario.workloads[NAME]
    for name in asked["sets"]:
        turns = [one.round for one in found.rounds if {name, found.reference} <= {visit.target for visit in one.visits}]
        if turns != list(range(1, asked["rounds"] + 1)):
            raise AssertionError(f"{name} was compared in rounds {turns} of {asked['rounds']}")


def the_order_should_have_alternated(context: RunContext, found: RaidVs3Dxp) -> None:
    """Fails when the reference was not first in one round of a group and last in the next."""
    for one in found.rounds:
        positions = {visit.target: visit.position for visit in one.visits}
        first = positions[found.reference] == 0
        last = positions[found.reference] == len(positions) - 1
        if not (first if one.round % 2 else last):
            raise AssertionError(f"group {one.group}, round {one.round}: the reference was neither first nor last")


WORKLOAD = Workload(
    NAME,
    plan,
    run,
    action="compare_sets_with_reference",
    memory=_buffers,
    limits=_limits,
    checks=(every_target_should_have_been_visited_in_every_round, the_order_should_have_alternated),
)


def run_comparison(
    plan: VisitPlan, comparison: Compared, targets: Targets, hazards: HazardControl | None, report: Report
) -> dict[str, Any]:
    """Runs all rounds of all groups; returns results/raid_vs_3dxp.json. Raises BenchError that names the set which broke."""
    reference = targets.reference()
    described: dict[str, dict[str, Any]] = {reference.name: as_document(reference.document)}
    rounds: list[dict[str, Any]] = []
    progress = _Progress(report, plan.parameters, comparison)
    for number, group in enumerate(comparison.groups, start=1):
        with _open(targets, group, progress) as sets:
            described |= {one.name: as_document(one.document) for one in sets}
            for turn in range(1, plan.parameters["rounds"] + 1):
                rounds.append(_round(plan, [reference, *sets], (number, turn), hazards, progress))
    return document(plan.parameters, described, rounds)


@contextmanager
def _open(targets: Targets, group: Sequence[Target], progress: _Progress) -> Iterator[list[OpenTarget]]:
    """Builds the group's sets and takes them away after it. After an interruption `restore` does that, which needs no time of ours."""
    opened: list[OpenTarget] = []
    try:
        for one in group:
            progress.tell(f"building set {one.name}", BUILD_S)
            opened.append(targets.open(one.name))
        yield opened
    except BenchError:
        _close(targets, opened)
        raise
    progress.tell("taking the sets away", BUILD_S)
    _close(targets, opened)


def _close(targets: Targets, opened: Sequence[OpenTarget]) -> None:
    for one in reversed(opened):
        targets.close(one)


class _Progress:
    """Counts the visits for the display."""

    def __init__(self, report: Report, parameters: dict[str, Any], comparison: Compared) -> None:
        self._report = report
        self._visits = parameters["rounds"] * sum(1 + len(group) for group in comparison.groups)
        self._each_s = parameters["write_size"] / UNIT_BYTES_PER_S + parameters["paced"]["seconds"]
        self._done = 0

    def tell(self, text: str, seconds: float) -> None:
        self._report(text, self._done, self._visits, seconds)

    def visit(self, target: str, turn: int) -> None:
        self._done += 1
        self._report(f"round {turn}, {target}", self._done, self._visits, self._each_s)


def order_of(names: Sequence[str], turn: int) -> list[str]:
    """The reference (the first name) first in odd rounds, last in even ones; each round mirrors the one before."""
    return list(names) if turn % 2 else list(reversed(names))


def _round(
    plan: VisitPlan,
    up: Sequence[OpenTarget],
    number: tuple[int, int],
    hazards: HazardControl | None,
    progress: _Progress,
) -> dict[str, Any]:
    group, turn = number
    by_name = {one.name: one for one in up}
    idle = _rest(plan, up[0], progress)
    visits = []
    for position, name in enumerate(order_of([one.name for one in up], turn)):
        progress.visit(name, turn)
        label = f"raid-{group}-{turn:02d}-{name}"
        with _hazards(plan.machine, plan.parameters, name, turn, hazards):
            seed = plan.seed + 1000 * group + turn  # the same data for both of a pair
            visits.append({"target": name, "position": position, **visit(plan, by_name[name], label, seed)})
    return {"group": group, "round": turn, "reference_first": turn % 2 == 1, "idle": idle, "visits": visits}


def _rest(plan: VisitPlan, reference: OpenTarget, progress: _Progress) -> dict[str, float]:
    """A pause in which nothing is written, by the candidate's clock."""
    seconds = float(plan.parameters["idle_s"])
    progress.tell("at rest, for the idle power", seconds)
    begin = float(counters(plan.machine, reference)["clock_s"])
    plan.machine.observe("a rest", lambda: plan.machine.wait(seconds))
    return {"begin_s": begin, "end_s": begin + seconds}


@contextmanager
def _hazards(
    machine: Machine, parameters: dict[str, Any], name: str, turn: int, hazards: HazardControl | None
) -> Iterator[None]:
    """The faults that the scenario asks for in this visit, released after it."""
    asked = [one for one in parameters.get("hazards", []) if (one["set"], one["round"]) == (name, turn)]

    def cause(one: dict[str, Any]) -> None:
        if hazards is None:
            raise BenchError(f"round {turn} of {name}: the scenario asks for a fault, and nothing here can cause one")
        hazards.throttle(one["throttle_drive"], parse_size(one["bandwidth_size"]))

    def end(one: dict[str, Any]) -> None:
        if hazards:
            hazards.release_throttle(one["throttle_drive"])

    for one in asked:
        machine.observe(f"fault of {one['throttle_drive']}", partial(cause, one))
    try:
        yield
    finally:
        for one in asked:
            machine.observe(f"end of the fault of {one['throttle_drive']}", partial(end, one))


def document(
    parameters: dict[str, Any], described: dict[str, dict[str, Any]], rounds: list[dict[str, Any]]
) -> dict[str, Any]:
    """Returns results/raid_vs_3dxp.json, the measurements; results/raid_comparison.json has the conclusions."""
    limits = [
        f"The set {name} is a scratch file on {one['filesystem']}, not the candidate's own storage set aside for the record"
        for name, one in described.items()
        if one["kind"] == "scratch-file"
    ]
    limits += [
        f"Group {one['group']}, round {one['round']}: {visit['target']}: {visit[part]['reason']}"
        for one in rounds
        for visit in one["visits"]
        for part in ("write", "paced")
        if visit[part]["reason"] and not visit[part]["failed"]
    ]
    invalid = [f"Tuning of {name}: {text}" for name, one in described.items() for text in one["tuning_wrong"]]
    return {
        "schema_version": 1,
        "reference": parameters["reference"],
        "sets": parameters["sets"],
        "judged_set": parameters["judged_set"],
        "write": {key: parameters[key] for key in ("write_size", "block_size", "threads", "io_depth")},
        "paced": {
            "offered_bytes_per_s": paced_demand(parameters).offered_bytes_per_s,
            "seconds": parameters["paced"]["seconds"],
        },
        "targets": described,
        "rounds": rounds,
        "limits": limits,
        "invalid": invalid,
        "reasons": {},
    }
