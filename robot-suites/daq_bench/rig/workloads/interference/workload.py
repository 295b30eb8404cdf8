"""Interference: each activity of a DAQ day alone and beside each other one, and beside all of them.

For each victim and disturber, pairs of runs (alone, disturbed) follow one another, the order turning from pair to pair.
A run counts only when the disturbers are proven to have been at work during all of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, InterruptedRunError, RefusedError
from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.base.units import GB, decimal_label, in_digits
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.workloads.interference import (
    ALL,
    BURST,
    Interference,
    disturbers_of,
    losses_of,
    overlap_problem,
    ratio,
    slowdown_of,
)
from daq_bench.rig.base.bundle import to_json
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.interference.activities import KINDS, Activity, Fio, Measured, Setting
from daq_bench.rig.workloads.shared.base import Note, Report, Workload
from daq_bench.rig.workloads.shared.fio_job import JobFiles
from daq_bench.rig.workloads.shared.plan import Ground, Need, Step, rings

LEAD_S = 2.0  # disturbers are at work for this long before the victim starts
# A disturber must outlast the victim, whose tool needs time to start and end, however busy the machine is.
MARGIN_SHARE, MARGIN_S = 0.5, 15.0
SAMPLE_S = 0.25
LIMIT_S = 180.0
SETTLE_S = 1.0  # for the display: overhead of a run besides its time


def demand_of(scenario: Scenario) -> Demand:
    """The burst's load at the scenario's scale."""
    return Demand.of(scenario.workloads["interference"][BURST], scenario.scale, scenario.duration_s or 0.0)


def disturber_s(seconds: float) -> float:
    """Returns how long a disturber is told to run for a victim of `seconds`; it is ended when the victim is done."""
    return LEAD_S + seconds * (1 + MARGIN_SHARE) + MARGIN_S


def plan(scenario: Scenario, ground: Ground) -> list[Step]:
    """The files once, then each cell's pairs: the victim alone, and the victim with its disturbers, which end with it."""
    parameters, demand = scenario.workloads["interference"], demand_of(scenario)
    names = {*parameters["victims"], *parameters["disturbers"]}
    files = {name: parameters[name]["file_size"] for name in ("writers", "readers") if name in names}
    record_s = disturber_s(demand.duration_s) if BURST in parameters["disturbers"] else demand.duration_s
    record = int(demand.offered_bytes_per_s * record_s) if BURST in names else 0
    parts = (
        [f"a burst of {in_digits(demand.offered_bytes_per_s / GB)} GB/s x {in_digits(record_s, 9)} s"] if record else []
    )
    parts += [f"the file of the {name}, {decimal_label(size)}" for name, size in files.items()]
    room = record + sum(files.values())
    text = f"{' and '.join(parts) or 'no file'} ({room} B)"
    offered = {BURST: demand.offered_bytes_per_s, "writers": parameters.get("writers", {}).get("rate_size")}

    def written(name: str, seconds: float) -> float:
        return ground.written(seconds, offered[name]) if name in offered else 0.0

    found = [
        Step(f"laying out the file of the {name}", ground.seconds(size), size, room, text)
        for name, size in files.items()
    ]
    seconds, beside_s = demand.duration_s, LEAD_S + demand.duration_s
    for victim in parameters["victims"]:
        others = disturbers_of(victim, parameters["disturbers"])
        for other in others:
            beside = [name for name in others if name != ALL] if other == ALL else [other]
            both = 2 * written(victim, seconds) + min(
                sum(written(name, beside_s) for name in beside), ground.written(beside_s)
            )
            length = 2 * (seconds + SETTLE_S) + LEAD_S
            found.append(Step(f"{victim} beside {other}", length, both, room, text, times=scenario.repetitions))
    return found


def _rings(scenario: Scenario) -> Need:
    own = scenario.workloads["interference"][BURST]
    return rings("burst.ring_size", own["links"], own["ring_size"])


def check(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    """Refuses a scenario that names an activity without its parameters, or has nothing to compare."""
    parameters, at = scenario.workloads["interference"], f"{scenario.file}: workloads.interference"
    if scenario.duration_s is None:
        raise RefusedError(
            f"{scenario.file}: duration_s is missing: it is the length of each run of interference, s. Add it"
        )
    for key in ("victims", "disturbers"):
        lacking = [name for name in parameters[key] if name not in parameters]
        if lacking:
            raise RefusedError(f"{at}.{key}: {', '.join(lacking)} has no parameters. Add {at}.{lacking[0]}")
    alone = [name for name in parameters["victims"] if not disturbers_of(name, parameters["disturbers"])]
    if alone:
        raise RefusedError(f"{at}.disturbers: nothing would disturb {', '.join(alone)}. Name another activity")


def _limits(scenario: Scenario) -> list[str]:
    parameters = scenario.workloads["interference"]
    if "network" not in {*parameters["victims"], *parameters["disturbers"]} or "peer" in parameters["network"]:
        return []
    said = "The network traffic goes over loopback, since network.peer names no server of iperf3: it takes CPU and memory bandwidth"
    return [f"{said}, and uses no network interface"]


def run(context: RunContext, report: Report) -> dict[str, Any]:
    """results/interference.json of this run."""
    scenario = context.scenario
    setting = Setting(
        daqwriter=context.daqwriter,
        demand=demand_of(scenario),
        parameters=scenario.workloads["interference"],
        scratch=context.scratch,
        jobs=JobFiles.of(context),
        seed=scenario.seed,
    )

    def keep(name: str, said: dict[str, Any]) -> None:
        (context.raw / f"interference-run-{name}.json").write_text(to_json(said), encoding="utf-8")

    plan = Plan.of(setting, scenario.duration_s or 0.0, scenario.repetitions)
    return run_interference(context.machine, plan, report, keep)


def _losses(document: Interference) -> Iterator[Note]:
    for row in document.burst:
        if row.busy_count or row.lost_superchunks:
            yield (
                f"the burst beside {row.disturber}: {row.lost_superchunks} superchunks lost, BUSY {row.busy_count} times",
                as_document(row),
            )


def every_pair_should_have_been_run(context: RunContext, interference: Interference) -> None:
    """Fails when a cell of the matrix, or one of its pairs, is missing."""
    rounds = context.scenario.repetitions
    short = [
        f"{cell.victim} beside {cell.disturber}"
        for cell in interference.cells
        if [pair.round for pair in cell.pairs] != list(range(1, rounds + 1))
    ]
    if short or not interference.cells:
        raise AssertionError(f"pairs are missing: {', '.join(short) or 'all of them'}")


def at_least_half_of_the_cells_should_count(context: RunContext, interference: Interference) -> None:
    """Fails when most disturbers did not overlap their victims, so that there is no matrix."""
    masked = [cell.reason for cell in interference.cells if cell.slowdown is None]
    if 2 * len(masked) > len(interference.cells):
        raise AssertionError(f"most cells are masked: {masked}")


def the_bursts_superchunks_should_be_accounted_for(context: RunContext, interference: Interference) -> None:
    """Fails when the burst was asked for as a victim and left no account."""
    asked = BURST in context.scenario.workloads["interference"]["victims"]
    if asked and not interference.burst:
        raise AssertionError("the burst was run and there is no account of its superchunks")


WORKLOAD = Workload(
    "interference",
    plan,
    run,
    action="run_each_activity_alone_and_in_pairs",
    memory=_rings,
    check=check,
    limits=_limits,
    checks=(
        every_pair_should_have_been_run,
        at_least_half_of_the_cells_should_count,
        the_bursts_superchunks_should_be_accounted_for,
    ),
    notes=_losses,
)


@dataclass(frozen=True)
class Plan:
    """Everything that the workload needs besides its machine."""

    setting: Setting
    seconds: float
    rounds: int
    victims: list[str]
    disturbers: list[str]
    activities: dict[str, Activity]

    @staticmethod
    def of(setting: Setting, seconds: float, rounds: int) -> Plan:
        victims, disturbers = setting.parameters["victims"], setting.parameters["disturbers"]
        names = [name for name in KINDS if name in {*victims, *disturbers}]
        return Plan(setting, seconds, rounds, victims, disturbers, {name: KINDS[name](setting) for name in names})

    def cells(self) -> list[tuple[str, str]]:
        return [(victim, other) for victim in self.victims for other in disturbers_of(victim, self.disturbers)]


def run_interference(
    machine: Machine, plan: Plan, report: Report, keep: Callable[[str, dict[str, Any]], None]
) -> dict[str, Any]:
    """Runs all pairs; returns results/interference.json. `keep` gets the raw result of each run, with its name."""
    _require_tools(machine, plan)
    files = [activity.target for activity in plan.activities.values() if isinstance(activity, Fio)]
    try:
        for activity in plan.activities.values():
            if isinstance(activity, Fio):
                report(f"laying out the file of the {activity.name}", 0, 1, 1.0)
                activity.lay_out()
        runner = _Runner(machine, plan, report, keep)
        # Round by round over all cells, so that a cell's pairs are spread over the whole time.
        pairs = [(cell, runner.pair(number, *cell)) for number in range(1, plan.rounds + 1) for cell in plan.cells()]
    finally:
        for file in files:
            file.remove()
    cells = [cell_of(cell, [pair for at, pair in pairs if at == cell]) for cell in plan.cells()]
    return document(plan, cells)


def _require_tools(machine: Machine, plan: Plan) -> None:
    if "network" in plan.activities and machine.run(["sh", "-c", "command -v iperf3"], timeout_s=30).returncode != 0:
        raise BenchError(
            "iperf3 is not on the candidate, and the scenario asks for network traffic. Install the package iperf3 there, or "
            "take `network` out of the scenario's victims and disturbers"
        )


class _Runner:
    """Runs victims, alone and disturbed, and counts the runs."""

    def __init__(
        self, machine: Machine, plan: Plan, report: Report, keep: Callable[[str, dict[str, Any]], None]
    ) -> None:
        self._machine, self._plan, self._report, self._keep = machine, plan, report, keep
        self._done, self._runs = 0, 2 * plan.rounds * len(plan.cells())

    def pair(self, number: int, victim: str, disturber: str) -> dict[str, Any]:
        """One pair; the odd ones begin alone."""
        others = disturbers_of(victim, self._plan.disturbers) if disturber == ALL else [disturber]
        names = [name for name in others if name != ALL]
        alone_first = number % 2 == 1
        runs = {}
        for kind in ("solo", "disturbed") if alone_first else ("disturbed", "solo"):
            runs[kind] = self._run(number, victim, names if kind == "disturbed" else [], disturber)
        reasons = [f"{kind}: {runs[kind]['reason']}" for kind in ("solo", "disturbed") if runs[kind]["reason"]]
        better = self._plan.activities[victim].larger_is_better
        values = runs["solo"]["value"], runs["disturbed"]["value"]
        return {
            "round": number,
            "alone_first": alone_first,
            **runs,
            "slowdown": None if reasons else ratio(*values, better),
            "reason": "; ".join(reasons) or None,
        }

    def _run(self, number: int, victim: str, disturbers: list[str], cell: str) -> dict[str, Any]:
        plan, tag = self._plan, f"{number}-{victim}-{cell if disturbers else f'before-{cell}'}"
        beside = f" beside {', '.join(disturbers)}" if disturbers else " alone"
        self._done += 1
        self._report(f"round {number}: {victim}{beside}", self._done, self._runs, plan.seconds + SETTLE_S + LEAD_S)
        activities = [plan.activities[name] for name in [victim, *disturbers]]
        services = [service for activity in activities for service in activity.services()]
        limit_s = LIMIT_S + 3 * plan.seconds
        spec: dict[str, Any] = {
            "victim": {"name": victim, "argv": activities[0].command(plan.seconds, tag)},
            "disturbers": [
                {"name": one.name, "argv": one.command(disturber_s(plan.seconds), f"{tag}-{one.name}")}
                for one in activities[1:]
            ],
            "services": services,
            "lead_s": LEAD_S,
            "sample_s": SAMPLE_S,
            "limit_s": limit_s,
        }
        try:
            said = self._machine.call("together", json.dumps(spec), timeout_s=limit_s + 120)
            self._keep(tag, said)
            return self._point(activities, said, tag)
        finally:
            left = [activities[0].files(tag), *(one.files(f"{tag}-{one.name}") for one in activities[1:])]
            for file in (path for paths in left for path in paths):
                self._machine.remove(file)

    def _point(self, activities: list[Activity], said: dict[str, Any], tag: str) -> dict[str, Any]:
        victim, ran = activities[0], said["victim"]
        if ran["returncode"] == 130:
            raise InterruptedRunError(f"{victim.name} was interrupted")
        if ran["returncode"] != 0:
            text = f"{victim.name} ended with status {ran['returncode']}: {ran['stderr'][-300:]}"
            found = Measured(None, text, {})
        else:
            found = victim.measured(ran["stdout"], self._plan.seconds, tag, self._machine)
        proofs = [
            overlap_problem(
                one.name, other["samples"], one.work, ran["started_s"], ran["ended_s"], other["alive_at_end"]
            )
            for one, other in zip(activities[1:], said["disturbers"], strict=True)
        ]
        problems = [text for text in [found.reason, *proofs] if text]
        return {
            "value": None if problems else found.value,
            "reason": "; ".join(problems) or None,
            "started_s": ran["started_s"],
            "ended_s": ran["ended_s"],
            "more": found.more,
        }


def cell_of(cell: tuple[str, str], pairs: list[dict[str, Any]]) -> dict[str, Any]:
    """One victim beside one disturber."""
    ratios = [pair["slowdown"] for pair in pairs if pair["slowdown"] is not None]
    found = slowdown_of(ratios)
    return {
        "victim": cell[0],
        "disturber": cell[1],
        "pairs": pairs,
        "slowdown": as_document(found) if found else None,
        "reason": None if found else pairs[0]["reason"],
    }


def document(plan: Plan, cells: list[dict[str, Any]]) -> dict[str, Any]:
    """results/interference.json; a cell without a pair that counts is null, and `reasons` says why by metric."""
    masked = [cell for cell in cells if cell["slowdown"] is None]
    reasons: dict[str, str] = {}
    for cell in masked:
        metric = f"interference.{'burst' if cell['victim'] == BURST else 'others'}_slowdown"
        reasons[metric] = f"{cell['victim']} beside {cell['disturber']}: {cell['reason']}"
    burst = _burst(cells)
    unknown = [row["disturber"] for row in burst if row["n"] == 0]
    if unknown:
        for metric in ("burst_lost_superchunks", "burst_busy_episodes", "burst_buffer_needed"):
            reasons[f"interference.{metric}"] = f"no run of the burst beside {', '.join(unknown)} counts"
    return {
        "schema_version": 1,
        "seconds": plan.seconds,
        "rounds": plan.rounds,
        "lead_s": LEAD_S,
        "sample_s": SAMPLE_S,
        "burst_bytes_per_s": plan.setting.demand.offered_bytes_per_s,
        "activities": [
            {
                "name": one.name,
                "measure": one.measure,
                "unit": one.unit,
                "larger_is_better": one.larger_is_better,
                "command": one.command(plan.seconds, "N"),
            }
            for one in plan.activities.values()
        ],
        "cells": cells,
        "burst": burst,
        "reasons": reasons,
    }


def _burst(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the burst's losses, alone and under each disturbance, over all runs that count."""
    found = []
    mine = [cell for cell in cells if cell["victim"] == BURST]
    rows = [("none", "solo", mine)] + [(cell["disturber"], "disturbed", [cell]) for cell in mine]
    for name, kind, of in rows:
        runs = [pair[kind] for cell in of for pair in cell["pairs"]]
        told = [run["more"] for run in runs if run["reason"] is None]
        if runs:
            masked = len(runs) - len(told)
            found.append({"disturber": name, "n": len(told), "masked": masked, **losses_of(told)})
    return found
