"""The bounded wear experiment: steps of writing with fio until the write budget is used up, the drives' own counts after each.

No step begins that does not fit what is left, with what a file system or an array may add to it. The account is
`rig.wear_ledger`: another run of the same scenario on the same drives goes on with what is left."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from bench_model.errors import BenchError, RefusedError
from bench_model.profiles import Candidate, Scenario
from bench_model.units import decimal_label
from bench_model.yaml_source import check_document
from rig.bundle import now_utc, to_json
from rig.context import RunContext
from rig.host import Device, Survey, device_from
from rig.lock import exclusive
from rig.machine import Machine
from rig.settings import Layout
from rig.wear_ledger import (
    Counters,
    Experiment,
    WearLedger,
    adopt,
    held_elsewhere,
    ledger_file,
    read_entries,
    spent_bytes,
    write_durably,
)
from rig.workloads.base import Need, Report, Workload
from rig.workloads.endurance_step import Plan, Step, fill_step, mix_step, write

RESULT, LEDGER = "results/endurance.json", "results/endurance_ledger.json"
WRITE_BYTES_PER_S = 1.5e9  # for the display only
DEVICE_SHARE_MIN = 0.95  # a step whose bytes the drives do not confirm is masked
# What may reach the drives beyond what is asked: journal and metadata of the file system, the counters' steps.
OVERHEAD_SHARE, OVERHEAD_BYTES = 0.02, 4 * 2**20
# md(4): the most drive writes per byte written: copies, or data and parity of a stripe that is not written whole
COPIES = {"raid0": 1, "linear": 1, "raid5": 2, "raid6": 3, "raid10": 2}
LEVEL_NAMES = {0: "raid0", 1: "raid1", 5: "raid5", 6: "raid6", 10: "raid10"}
HEALTH_METRICS = ("media_errors", "percentage_used", "available_spare")
EMULATED = "QEMU"  # its drives' counters begin again with each start of the machine, as the kernel's do


def drive_id(drive: Device, candidate: str) -> str:
    """The serial; where a drive has none (virtual disks), its name on this candidate."""
    return drive.serial or f"{drive.name} of {candidate}"


def copies_of(level: str | None, members: int) -> int:
    """Drive writes per byte, at most."""
    if level is None:
        return 1
    return members if level == "raid1" else COPIES.get(level, members)


def reserved_bytes(asked: int, copies: int) -> int:
    """What has to be left in the budget before `asked` B are written."""
    return int(asked * copies * (1 + OVERHEAD_SHARE)) + OVERHEAD_BYTES


def first_need(parameters: dict[str, Any], copies: int) -> tuple[int, str]:
    """The least that must be left for a run to be worth its start, with the arithmetic."""
    fill, mix = fill_step(parameters), mix_step(parameters, 0)
    need = reserved_bytes(fill.asked_bytes, copies) + reserved_bytes(mix.asked_bytes, copies)
    drives = f" x {copies} drive writes per byte" if copies > 1 else ""
    return need, (
        f"filling the file ({decimal_label(fill.asked_bytes)}) and one step ({decimal_label(mix.asked_bytes)}){drives}, each with "
        f"{OVERHEAD_SHARE:.0%} and {decimal_label(OVERHEAD_BYTES)} for the file system, need {decimal_label(need)} ({need} B)"
    )


def _need(scenario: Scenario) -> Need:
    size = scenario.workloads["endurance"]["file_size"]
    return Need(size, f"the endurance experiment's file of {decimal_label(size)}")


def estimated_s(scenario: Scenario) -> float:
    return float(scenario.workloads["endurance"]["write_budget"] / WRITE_BYTES_PER_S)


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
    serials, copies = _drives(candidate, found)
    need, arithmetic = first_need(parameters, copies)
    budget = parameters["write_budget"]
    if need > budget:
        raise RefusedError(
            f"{at}.write_budget: {decimal_label(budget)} ({budget} B) is too small for one step: {arithmetic}. "
            "Nothing was written. Raise the budget, or make file_size and step_size smaller"
        )
    experiment = Experiment(candidate.name, scenario.id, candidate.target.name, serials)
    require_left(scenario, account_of(experiment), budget, need, arithmetic)


def account_of(experiment: Experiment) -> Path:
    """Where the experiment's account is or will be. Raises RefusedError when another candidate has one of the same drives."""
    file = ledger_file(Layout().state_directory(experiment.candidate), experiment)
    elsewhere = held_elsewhere(file, experiment)
    if elsewhere:
        raise RefusedError(
            f"{experiment.text} is already accounted for in {elsewhere}, under another candidate's name; a second account would "
            "spend the write budget twice. Run it as that candidate, or give the scenario another id for another budget"
        )
    return file


def require_left(scenario: Scenario, account: Path, budget: int, need: int, arithmetic: str) -> None:
    """Raises RefusedError when what earlier runs left of the budget does not pay for one more."""
    document = read_entries(account)
    spent = spent_bytes(document) if document else 0
    if budget - spent >= need:
        return
    left = max(0, budget - spent)
    raise RefusedError(
        f"{scenario.file}: workloads.endurance.write_budget: {decimal_label(spent)} ({spent} B) of {decimal_label(budget)} are "
        f"spent by earlier runs, {decimal_label(left)} ({left} B) are left, but {arithmetic}. Nothing was written. "
        f"A higher write_budget allows more wear; the account is {account}"
    )


def _drives(candidate: Candidate, found: Survey) -> tuple[tuple[str, ...], int]:
    """The drives that the target will be on and the writes per byte, also for one that provisioning is yet to build."""
    storage = candidate.target.storage
    if storage:
        level = storage.get("raid", {}).get("level")
        serials = tuple(sorted(candidate.target.serials))
        return serials, copies_of(LEVEL_NAMES.get(level) if level is not None else None, len(serials))
    device = found.target.device if found.target else None
    return beneath(device, found.drives_of(device), candidate.name)


def beneath(device: Device | None, drives: list[Device], candidate: str) -> tuple[tuple[str, ...], int]:
    """Ids of the drives of a target that is there, and the writes per byte. Raises RefusedError where none counts."""
    if device is None or not drives:
        raise RefusedError(
            f"no single drive or array carries the target of {candidate}, so that nothing counts what is written and a "
            "write budget cannot be enforced. Set target.directory in the inventory to a folder on a drive"
        )
    ids = tuple(sorted(drive_id(drive, candidate) for drive in drives))
    return ids, copies_of(device.raid_level, len(drives))


def measure(context: RunContext, report: Report) -> dict[str, Any]:
    """results/endurance.json of this run, which is kept up to date as it goes."""
    plan = _plan_of(context)

    def keep(document: dict[str, Any]) -> None:
        check_document(document, "endurance", RESULT)
        context.bundle.write(RESULT, document)

    with ExitStack() as locks:
        context.machine.observe("the drives' locks", lambda: _lock(locks, plan, context.bundle.id))
        return run_experiment(context.machine, plan, _ledger(context, plan), report, keep)


def _plan_of(context: RunContext) -> Plan:
    target = context.bundle.run["target"]
    device = device_from(target["device"]) if target["device"] else None
    drives = [device_from(drive) for drive in target["drives"]]
    ids, copies = beneath(device, drives, context.candidate.name)
    return Plan(
        parameters=context.scenario.workloads["endurance"],
        seed=context.scenario.seed,
        scratch=context.scratch,
        raw=context.raw,
        drives=tuple(drives),
        copies=copies,
        experiment=Experiment(context.candidate.name, context.scenario.id, context.candidate.target.name, ids),
    )


def _lock(locks: ExitStack, plan: Plan, run: str) -> None:
    """Whatever the candidate is called: two experiments on one drive would each count the other's writes."""
    for serial in plan.experiment.serials:
        name = "drive-" + re.sub(r"[^A-Za-z0-9.-]", "_", serial)
        locks.enter_context(exclusive(name, f"run {run}", subject="drive lock"))


def _ledger(context: RunContext, plan: Plan) -> WearLedger:
    """The account; from the journal it is a copy in the bundle, since nobody's budget may change then. Raises as `_opened`."""
    machine, budget, copy = context.machine, plan.parameters["write_budget"], context.bundle.path / LEDGER
    file = copy if machine.from_record else account_of(plan.experiment)
    before = machine.observe("the account before", lambda: _opened(context, plan, file))
    if machine.from_record and before is not None:
        write_durably(file, to_json(before))
    clock = partial(machine.observe, "the time", now_utc)
    ledger = WearLedger(file, plan.experiment, budget, context.bundle.id, [copy], clock)
    ledger.save()
    if ledger.continued:
        text = f"{plan.experiment.text} goes on: {ledger.spent_bytes} B of {budget} B are spent, {ledger.left_bytes} B left"
        context.bundle.event(
            "endurance", "endurance", text, spent_bytes=ledger.spent_bytes, left_bytes=ledger.left_bytes
        )
    return ledger


def _opened(context: RunContext, plan: Plan, file: Path) -> dict[str, Any] | None:
    """The account so far, from an earlier run's bundle where the control node has lost it. Raises RefusedError when nothing is left."""
    for copy in sorted(context.bundle.path.parent.glob(f"*/{LEDGER}")):
        if adopt(file, copy, plan.experiment):
            text = f"the write budget's account was taken from {copy.parts[-3]}"
            context.bundle.event("endurance", "endurance", text)
    require_left(context.scenario, file, plan.parameters["write_budget"], *first_need(plan.parameters, plan.copies))
    return read_entries(file)


WORKLOAD = Workload("endurance", estimated_s, _need, measure, check=check)


class Wear:
    """The drives' counts and health, by id."""

    def __init__(self, machine: Machine, plan: Plan) -> None:
        self._machine, self._plan = machine, plan
        self._ids = {drive.name: drive_id(drive, plan.experiment.candidate) for drive in plan.drives}
        self._emulated = any((drive.model or "").startswith(EMULATED) for drive in plan.drives)

    def read(self) -> tuple[Counters, list[dict[str, Any]]]:
        """Both from one reading; the counts of one boot only compare where the drives themselves do not keep them."""
        said = self._machine.call("drive_wear", *self._ids)
        drives = [{"id": self._ids[one["name"]], **one} for one in said["drives"]]
        lasting = not self._emulated and all(one["counter"] == "nvme" for one in drives)
        counted = {one["id"]: one["written_bytes"] for one in drives}
        return Counters("drives' own" if lasting else f"boot {said['boot_id']}", counted), drives


def run_experiment(
    machine: Machine,
    plan: Plan,
    ledger: WearLedger,
    report: Report,
    keep: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    """Fills the file, then writes step after step while one fits. `keep` gets the document after each; returns the last."""
    wear = Wear(machine, plan)
    before, health = wear.read()
    left_over = ledger.open_entry()
    if left_over:
        ledger.settle_interrupted(left_over, before)
    ledger.open_with(before.epoch, health)
    document = _document(plan, ledger, before.epoch, health)
    keep(document)
    total = _steps_that_fit(plan, ledger)
    ended = None
    while ended is None:
        number = len(document["steps"])
        done = sum(1 for entry in ledger.entries if entry["kind"] == "mix")
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
        report(text, min(number + 1, total), total, step.asked_bytes / WRITE_BYTES_PER_S)
        entry = ledger.reserve(step.kind, step.asked_bytes, reserved, before)
        try:
            written = write(machine, plan, step, entry["number"])
        except (
            BaseException
        ):  # a Ctrl-C, a lost candidate: what the drives say now is better than the whole reservation
            with suppress(BenchError):
                ledger.settle_interrupted(entry, wear.read()[0])
                document |= _account(ledger)
                keep(document)
            raise
        after, health = wear.read()
        ledger.settle(entry, written["written_bytes"], after)
        document["steps"].append(_step_document(step, entry, written, health))
        document |= _account(ledger) | {"at_end": health}
        keep(document)
        before = after
    document["ended"] = ended
    keep(document)
    return document


def _steps_that_fit(plan: Plan, ledger: WearLedger) -> int:
    after_fill = ledger.left_bytes - reserved_bytes(plan.parameters["file_size"], plan.copies)
    each = reserved_bytes(mix_step(plan.parameters, 0).asked_bytes, plan.copies)
    return 1 + max(0, after_fill // each)


def _document(plan: Plan, ledger: WearLedger, epoch: str, health: list[dict[str, Any]]) -> dict[str, Any]:
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
        "opening": ledger.document["opening"],
        "epoch": epoch,
        "at_start": health,
        "at_end": health,
        "steps": [],
        "ended": None,
        "limits": _stated_limits(plan, health),
        "reasons": _reasons(health),
        **_account(ledger),
    }


def _stated_limits(plan: Plan, health: list[dict[str, Any]]) -> list[str]:
    """In what the counts are less than a drive's own."""
    kernel = [one["id"] for one in health if one["counter"] == "kernel"]
    if not kernel:
        return []
    return [
        f"What was written is counted by the kernel, not by the drive, for {', '.join(kernel)}: the drive reports no NVMe health log"
    ]


def _reasons(health: list[dict[str, Any]]) -> dict[str, str]:
    """Why a metric of the drives' health has no value."""
    silent = {key: [one["id"] for one in health if one[key] is None] for key in HEALTH_METRICS}
    return {
        f"endurance.{key}": f"{', '.join(ids)}: no NVMe health log that reports it"
        for key, ids in silent.items()
        if ids
    }


def _account(ledger: WearLedger) -> dict[str, Any]:
    left, budget = ledger.left_bytes, ledger.document["write_budget_bytes"]
    return {
        "experiment": ledger.document["experiment"],
        "write_budget_bytes": budget,
        "spent_before_bytes": ledger.spent_before_bytes,
        "spent_bytes": ledger.spent_bytes,
        "left_bytes": max(0, left),
        "overrun_bytes": max(0, -left),
        "invalid": _others_wrote(ledger, -left) if left < 0 else [],
        "ledger": ledger.entries,
    }


def _others_wrote(ledger: WearLedger, overrun: int) -> list[str]:
    """A step is only begun when it fits, so that an overrun is somebody else's writing, and no fault of the candidate."""
    counted = sum(entry["counted_bytes"] or 0 for entry in ledger.entries)
    asked = sum(entry["asked_bytes"] for entry in ledger.entries if entry["counted_bytes"] is not None)
    return [
        f"The write budget is exceeded by {decimal_label(overrun)}: something besides the bench wrote to the drives, which counted "
        f"{decimal_label(counted)} while {decimal_label(asked)} were asked for"
    ]


def _step_document(
    step: Step, entry: dict[str, Any], written: dict[str, Any], health: list[dict[str, Any]]
) -> dict[str, Any]:
    counted = entry["counted_bytes"]
    reason = None
    if written["written_bytes"] < step.asked_bytes:
        reason = f"fio wrote {written['written_bytes']} B of {step.asked_bytes} B"
    elif counted is None:
        reason = "the drives' counts before and after the step cannot be compared"
    elif counted < DEVICE_SHARE_MIN * step.asked_bytes:
        reason = f"the drives counted {counted} B of the {step.asked_bytes} B that fio says it wrote"
    return {
        "number": entry["number"],
        "kind": step.kind,
        "asked_bytes": step.asked_bytes,
        "sequential_bytes": step.sequential_bytes,
        "random_bytes": step.random_bytes,
        "counted_bytes": counted,
        **written,
        "health": health,
        "admissible": reason is None,
        "reason": reason,
    }
