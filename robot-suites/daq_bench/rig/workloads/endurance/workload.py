"""The bounded wear experiment: steps of writing with fio until the write budget is used up, the drives' own counts after each.

No step begins that does not fit what is left, with what a file system or an array may add to it. The account is
`rig.workloads.shared.wear_ledger`: another run of the same scenario on the same drives goes on with what is left."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.base.units import decimal_label
from daq_bench.bench_model.documents.results import WearEntry, WearExperiment
from daq_bench.bench_model.documents.struct import read
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.workloads.endurance.document import Endurance
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.endurance.step import FILE, Plan, Step, fill_step, mix_step, write
from daq_bench.rig.workloads.shared.base import Report, Workload
from daq_bench.rig.workloads.shared.fio_job import JobFiles
from daq_bench.rig.workloads.shared.plan import UNIT_BYTES_PER_S, Ground
from daq_bench.rig.workloads.shared.plan import Step as PlanStep
from daq_bench.rig.workloads.shared.wear_account import (
    OVERHEAD_BYTES,
    OVERHEAD_SHARE,
    Wear,
    Worn,
    account_of,
    begun,
    drive_id,
    drives_of,
    lock_drives,
    open_ledger,
    others_wrote,
    require_left,
    reserved_bytes,
    shortfall,
    worn_by,
)
from daq_bench.rig.workloads.shared.wear_ledger import WearLedger

NAME, RESULT = "endurance", "results/endurance.json"
HEALTH_METRICS = ("media_errors", "percentage_used", "available_spare")


def first_need(parameters: dict[str, Any], copies: int) -> tuple[int, str]:
    """The least that must be left for a run to be worth its start, with the arithmetic."""
    fill, mix = fill_step(parameters), mix_step(parameters, 0)
    need = reserved_bytes(fill.asked_bytes, copies) + reserved_bytes(mix.asked_bytes, copies)
    drives = f" x {copies} drive writes per byte" if copies > 1 else ""
    return need, (
        f"filling the file ({decimal_label(fill.asked_bytes)}) and one step ({decimal_label(mix.asked_bytes)}){drives}, each with "
        f"{OVERHEAD_SHARE:.0%} and {decimal_label(OVERHEAD_BYTES)} for the file system, need {decimal_label(need)} ({need} B)"
    )


def plan(scenario: Scenario, ground: Ground) -> list[PlanStep]:
    """The file is filled, then the pattern's steps until the next one does not fit what is left of the budget."""
    parameters = scenario.workloads[NAME]
    fill, mix = fill_step(parameters), mix_step(parameters, 0)
    left = parameters["write_budget"] - ground.spent_bytes - reserved_bytes(fill.asked_bytes, ground.copies)
    steps = max(0, left // reserved_bytes(mix.asked_bytes, ground.copies))
    size = parameters["file_size"]
    room = f"the endurance experiment's file of {decimal_label(size)}"
    return [
        PlanStep("filling the file", ground.seconds(fill.asked_bytes), fill.asked_bytes, size, room),
        PlanStep(
            "steps of the pattern", ground.seconds(mix.asked_bytes), mix.asked_bytes, size, room, times=int(steps)
        ),
    ]


def check(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    """Refuses, before anything is written, a pattern that cannot be written and a budget that does not pay for one step."""
    parameters, at = scenario.workloads["endurance"], f"{scenario.file}: workloads.endurance"
    for key in ("sequential_block_size", "random_block_size"):
        if parameters[key] % 4096:
            raise RefusedError(
                f"{at}.{key}: {parameters[key]} B is no multiple of 4 KiB, which O_DIRECT needs. Correct it"
            )
        if parameters["file_size"] % parameters[key]:
            raise RefusedError(
                f"{at}.file_size: {parameters['file_size']} B is no multiple of {key}, {parameters[key]} B. Correct it"
            )
    step = mix_step(parameters, 0)
    if step.asked_bytes == 0 or step.sequential_bytes == 0 < 100 - parameters["random_percent"]:
        raise RefusedError(
            f"{at}.step_size: {parameters['step_size']} B are less than one block of the pattern. Make it larger"
        )
    serials, copies = drives_of(candidate, found)
    need, arithmetic = first_need(parameters, copies)
    budget = parameters["write_budget"]
    if need > budget:
        raise RefusedError(
            f"{at}.write_budget: {decimal_label(budget)} ({budget} B) is too small for one step: {arithmetic}. "
            "Nothing was written. Raise the budget, or make file_size and step_size smaller"
        )
    experiment = WearExperiment(candidate.name, scenario.id, candidate.target.name, serials)
    require_left(scenario, NAME, account_of(experiment), budget, need, arithmetic)


def run(context: RunContext, report: Report) -> dict[str, Any]:
    """results/endurance.json of this run, which is kept up to date as it goes."""
    worn = worn_by(context, NAME)
    plan = _plan_of(context, worn)
    need, budget = first_need(plan.parameters, plan.copies), plan.parameters["write_budget"]

    def keep(document: dict[str, Any]) -> None:
        read(document, Endurance, RESULT)
        context.bundle.write(RESULT, document)

    with ExitStack() as locks:
        context.machine.observe("the drives' locks", lambda: lock_drives(locks, worn, context.bundle.id))
        ledger = open_ledger(context, worn, budget, need)
        return run_experiment(context.machine, plan, ledger, report, keep)


def _plan_of(context: RunContext, worn: Worn) -> Plan:
    return Plan(
        parameters=context.scenario.workloads[NAME],
        seed=context.scenario.seed,
        target=context.load_target(FILE),
        jobs=JobFiles.of(context),
        drives=worn.drives,
        copies=worn.copies,
        experiment=worn.experiment,
    )


def the_budget_should_be_used_up_to_less_than_a_step(context: RunContext, endurance: Endurance) -> None:
    """Fails when the experiment ended for any other reason than its budget."""
    if not endurance.ended:
        raise AssertionError("the experiment did not end by its budget")


def every_reserved_byte_should_be_accounted_for(context: RunContext, endurance: Endurance) -> None:
    """Fails when a step is reserved and not settled, or the sum of the account is another than it says."""
    entries = endurance.ledger
    unsettled = [entry.number for entry in entries if entry.charged_bytes is None]
    if unsettled:
        raise AssertionError(f"steps {unsettled} are reserved and not settled")
    charged = sum(entry.charged_bytes or 0 for entry in entries)
    if charged != endurance.spent_bytes:
        raise AssertionError(f"the steps were charged {charged} B, the account says {endurance.spent_bytes} B")


WORKLOAD = Workload(
    "endurance",
    plan,
    run,
    action="wear_drives_within_write_budget",
    check=check,
    raw=True,
    checks=(the_budget_should_be_used_up_to_less_than_a_step, every_reserved_byte_should_be_accounted_for),
)


def run_experiment(
    machine: Machine,
    plan: Plan,
    ledger: WearLedger,
    report: Report,
    keep: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    """Fills the file, then writes step after step while one fits. `keep` gets the document after each; returns the last."""
    wear = Wear(machine, plan.drives, plan.experiment.candidate)
    before, health = begun(wear, ledger)
    document = opened(plan, ledger, before.epoch, health)
    keep(document)
    total = _steps_that_fit(plan, ledger)
    ended = None
    while ended is None:
        number = len(document["steps"])
        done = sum(1 for entry in ledger.entries if entry.kind == "mix")
        step = fill_step(plan.parameters) if number == 0 else mix_step(plan.parameters, done)
        reserved = reserved_bytes(step.asked_bytes, plan.copies)
        if reserved > ledger.left_bytes:
            ended = (
                f"the next step of {decimal_label(step.asked_bytes)}, reserved as {reserved} B, does not fit the "
                f"{ledger.left_bytes} B that are left"
            )
            break
        what = "filling the file" if step.kind == "fill" else f"step {number}"
        text = f"{what}, {decimal_label(max(0, ledger.left_bytes))} of the write budget left"
        report(text, min(number + 1, total), total, step.asked_bytes / UNIT_BYTES_PER_S)
        entry = ledger.reserve(step.kind, step.asked_bytes, reserved, before)
        try:
            written = write(plan, step, entry.number)
        except (
            BaseException
        ):  # a Ctrl-C, a lost candidate: the drives' present counts are better than the whole reservation
            with suppress(BenchError):
                ledger.settle_interrupted(entry, wear.read()[0])
                document |= account(ledger)
                keep(document)
            raise
        after, health = wear.read()
        entry = ledger.settle(entry, written["written_bytes"], after)
        document["steps"].append(step_document(step, entry, written, health))
        document |= account(ledger) | {"at_end": health}
        keep(document)
        before = after
    document["ended"] = ended
    keep(document)
    return document


def _steps_that_fit(plan: Plan, ledger: WearLedger) -> int:
    after_fill = ledger.left_bytes - reserved_bytes(plan.parameters["file_size"], plan.copies)
    each = reserved_bytes(mix_step(plan.parameters, 0).asked_bytes, plan.copies)
    return 1 + max(0, after_fill // each)


def opened(plan: Plan, ledger: WearLedger, epoch: str, health: list[dict[str, Any]]) -> dict[str, Any]:
    """results/endurance.json before the first step."""
    parameters = plan.parameters
    names = ("file_size", "step_size", "sequential_block_size", "random_block_size")
    return {
        "schema_version": 1,
        "tool": "fio",
        "pattern": {
            **{f"{name.removesuffix('_size')}_bytes": parameters[name] for name in names},
            "random_percent": parameters["random_percent"],
            "io_depth": parameters["io_depth"],
        },
        "demand": parameters["demand"],
        "drives": [
            {
                "id": drive_id(drive, plan.experiment.candidate),
                "name": drive.name,
                "model": drive.model,
                "capacity_bytes": drive.size_bytes,
            }
            for drive in plan.drives
        ],
        "writes_per_byte_max": plan.copies,
        "opening": ledger.account.opening,
        "epoch": epoch,
        "at_start": health,
        "at_end": health,
        "steps": [],
        "ended": None,
        "limits": _stated_limits(plan, health),
        "reasons": _reasons(health),
        **account(ledger),
    }


def _stated_limits(plan: Plan, health: list[dict[str, Any]]) -> list[str]:
    """Returns the respects in which the counts are less than a drive's own."""
    kernel = [one["id"] for one in health if one["counter"] == "kernel"]
    if not kernel:
        return []
    return [
        f"The kernel, not the drive, counts the written bytes for {', '.join(kernel)}: the drive reports no count of its own"
        f"{_faults(health)}"
    ]


def _faults(health: list[dict[str, Any]]) -> str:
    """Returns the nonsense that drives state, for the end of a sentence."""
    return "".join(f"; {fault}" for one in health for fault in one.get("faults", ()))


def _reasons(health: list[dict[str, Any]]) -> dict[str, str]:
    """Returns why metrics of the drives' health have no value."""
    silent = {key: [one["id"] for one in health if one[key] is None] for key in HEALTH_METRICS}
    return {
        f"endurance.{key}": f"{', '.join(ids)}: no health log that reports it{_faults(health)}"
        for key, ids in silent.items()
        if ids
    }


def account(ledger: WearLedger) -> dict[str, Any]:
    """The account as the result repeats it."""
    left = ledger.left_bytes
    return {
        **ledger.repeated(),
        "left_bytes": max(0, left),
        "overrun_bytes": max(0, -left),
        "invalid": others_wrote(ledger, -left) if left < 0 else [],
    }


def step_document(
    step: Step, entry: WearEntry, written: dict[str, Any], health: list[dict[str, Any]]
) -> dict[str, Any]:
    """One step of results/endurance.json."""
    reason = shortfall("fio", "step", step.asked_bytes, written["written_bytes"], entry.counted_bytes)
    return {
        "number": entry.number,
        "kind": step.kind,
        "asked_bytes": step.asked_bytes,
        "sequential_bytes": step.sequential_bytes,
        "random_bytes": step.random_bytes,
        "counted_bytes": entry.counted_bytes,
        **written,
        "health": health,
        "admissible": reason is None,
        "reason": reason,
    }
