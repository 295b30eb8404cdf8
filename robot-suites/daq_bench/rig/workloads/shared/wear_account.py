"""The part that workloads which wear drives on purpose share: the account of their bytes, and the drives' counts.

The account is `rig.workloads.shared.wear_ledger` (ADR 13). A workload reserves bytes before it writes them and settles against
the drives' own counters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_model.base.units import decimal_label
from daq_bench.bench_model.documents.results import Counters, WearAccount, WearExperiment
from daq_bench.bench_model.documents.run import Drive
from daq_bench.bench_model.documents.struct import as_document, read
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.workloads.plan import DEVICE_SHARE_MIN
from daq_bench.rig.base.bundle import now_utc
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.candidate.lock import exclusive
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.shared.wear_ledger import (
    WearLedger,
    adopt,
    held_elsewhere,
    ledger_file,
    read_account,
    write_account,
)

# Bytes that may reach the drives beyond those asked: journal and metadata of the file system, the counters' steps.
OVERHEAD_SHARE, OVERHEAD_BYTES = 0.02, 4 * 2**20
# md(4): the most drive writes per byte written: copies, or data and parity of a stripe that is not written whole
COPIES = {"raid0": 1, "linear": 1, "raid5": 2, "raid6": 3, "raid10": 2}
LEVEL_NAMES = {0: "raid0", 1: "raid1", 5: "raid5", 6: "raid6", 10: "raid10"}
EMULATED = "QEMU"  # its drives' counters begin again with each start of the machine, as the kernel's do


@dataclass(frozen=True)
class Worn:
    """The drives beneath a run's target, as a wear account knows them. `copies`: drive writes per byte, at most."""

    workload: str
    drives: tuple[Drive, ...]
    copies: int
    experiment: WearExperiment

    @property
    def ledger(self) -> str:
        """The bundle's copy of the account."""
        return f"results/{self.workload}_ledger.json"


def drive_id(drive: Drive, candidate: str) -> str:
    """The serial; where a drive has none (virtual disks), its name on this candidate."""
    return drive.serial or f"{drive.name} of {candidate}"


def copies_of(level: str | None, members: int) -> int:
    """Drive writes per byte, at most: of a volume over several drives, whose kind nobody tells, it may be that all hold the same."""
    return members if level is None else COPIES.get(level, members)


def reserved_bytes(asked: int, copies: int) -> int:
    """Returns the bytes that the budget must still hold before `asked` B are written."""
    return int(asked * copies * (1 + OVERHEAD_SHARE)) + OVERHEAD_BYTES


def account_of(experiment: WearExperiment) -> Path:
    """Says where the experiment's account is or will be. Raises RefusedError when another candidate has one of the same drives."""
    file = ledger_file(Layout().state_directory(experiment.candidate), experiment)
    elsewhere = held_elsewhere(file, experiment)
    if elsewhere:
        raise RefusedError(
            f"{experiment.text} is already accounted for in {elsewhere}, under another candidate's name; a second account would "
            "spend the write budget twice. Run it as that candidate, or give the scenario another id for another budget"
        )
    return file


def require_left(scenario: Scenario, workload: str, account: Path, budget: int, need: int, arithmetic: str) -> None:
    """Raises RefusedError when the budget that earlier runs left does not pay for one more."""
    found = read_account(account)
    spent = found.spent_bytes if found else 0
    if budget - spent >= need:
        return
    left = max(0, budget - spent)
    raise RefusedError(
        f"{scenario.file}: workloads.{workload}.write_budget: {decimal_label(spent)} ({spent} B) of {decimal_label(budget)} are "
        f"spent by earlier runs, {decimal_label(left)} ({left} B) are left, but {arithmetic}. Nothing was written. "
        f"A higher write_budget allows more wear; the account is {account}"
    )


def drives_of(candidate: Candidate, found: Survey) -> tuple[tuple[str, ...], int]:
    """The drives that the target will be on and the writes per byte, also for one that provisioning is yet to build."""
    storage = candidate.target.storage
    if storage:
        level = storage.get("raid", {}).get("level")
        serials = tuple(sorted(candidate.target.serials))
        return serials, copies_of(LEVEL_NAMES.get(level) if level is not None else None, len(serials))
    if found.target is None:  # nobody has looked yet; a run whose target is not there ends before this
        return tuple(sorted(candidate.target.serials)), 1
    device = found.target.device
    return beneath(device, found.drives_of(device), candidate.name)


def beneath(device: Drive | None, drives: list[Drive], candidate: str) -> tuple[tuple[str, ...], int]:
    """Ids of the drives of a target that is there, and the writes per byte. Raises RefusedError where none counts."""
    if device is None or not drives:
        raise RefusedError(
            f"no single drive or array carries the target of {candidate}, so that nothing counts what is written and a "
            "write budget cannot be enforced. Set target.directory in the inventory to a folder on a drive"
        )
    ids = tuple(sorted({drive_id(drive, candidate) for drive in drives}))  # the paths to one drive have its serial
    return ids, copies_of(device.raid_level, len(ids))


def worn_by(context: RunContext, workload: str) -> Worn:
    """Returns the drives of a run whose target is there. Raises RefusedError where no drive counts its writes."""
    target = context.bundle.run.target
    drives = tuple({drive_id(drive, context.candidate.name): drive for drive in target.drives}.values())
    ids, copies = beneath(target.device, target.drives, context.candidate.name)
    experiment = WearExperiment(context.candidate.name, context.scenario.id, context.candidate.target.name, ids)
    return Worn(workload, drives, copies, experiment)


def lock_drives(locks: ExitStack, worn: Worn, run: str) -> None:
    """Locks the drives, whatever the candidate is called: two experiments on one drive would each count the other's writes."""
    for serial in worn.experiment.serials:
        name = "drive-" + re.sub(r"[^A-Za-z0-9.-]", "_", serial)
        locks.enter_context(exclusive(name, f"run {run}", subject="drive lock"))


def open_ledger(context: RunContext, worn: Worn, budget: int, need: tuple[int, str]) -> WearLedger:
    """The account; from the journal it is a copy in the bundle, since nobody's budget may change then. Raises as `_opened`."""
    machine, copy = context.machine, context.bundle.path / worn.ledger
    file = copy if machine.from_record else account_of(worn.experiment)
    before = machine.observe("the account before", lambda: _opened(context, worn, budget, need, file))
    if machine.from_record and before is not None:
        write_account(file, read(before, WearAccount, worn.ledger))
    clock = partial(machine.observe, "the time", now_utc)
    ledger = WearLedger(file, worn.experiment, budget, context.bundle.id, [copy], clock)
    ledger.save()
    if ledger.continued:
        text = f"{worn.experiment.text} goes on: {ledger.spent_bytes} B of {budget} B are spent, {ledger.left_bytes} B left"
        context.bundle.event(
            worn.workload, worn.workload, text, spent_bytes=ledger.spent_bytes, left_bytes=ledger.left_bytes
        )
    return ledger


def _opened(context: RunContext, worn: Worn, budget: int, need: tuple[int, str], file: Path) -> dict[str, Any] | None:
    """Returns the account so far, from an earlier run's bundle where the control node lost it. Raises RefusedError when nothing is left."""
    for copy in sorted(context.bundle.path.parent.glob(f"*/{worn.ledger}")):
        if adopt(file, copy, worn.experiment):
            text = f"the write budget's account was taken from {copy.parts[-3]}"
            context.bundle.event(worn.workload, worn.workload, text)
    require_left(context.scenario, worn.workload, file, budget, *need)
    found = read_account(file)
    return as_document(found) if found else None


class Wear:
    """The drives' counts and health, by id."""

    def __init__(self, machine: Machine, drives: Sequence[Drive], candidate: str) -> None:
        self._machine = machine
        self._ids = {drive.name: drive_id(drive, candidate) for drive in drives}
        self._emulated = any((drive.model or "").startswith(EMULATED) for drive in drives)

    def read(self) -> tuple[Counters, list[dict[str, Any]]]:
        """Returns both from one reading; where the drives keep no counts, only counts of one boot compare."""
        said = self._machine.call("drive_wear", *self._ids)
        drives = [{"id": self._ids[one["name"]], **one} for one in said["drives"]]
        lasting = not self._emulated and all(one["counter"] != "kernel" for one in drives)
        counted = {one["id"]: one["written_bytes"] for one in drives}
        return Counters("drives' own" if lasting else f"boot {said['boot_id']}", counted), drives


def begun(wear: Wear, ledger: WearLedger) -> tuple[Counters, list[dict[str, Any]]]:
    """Settles what an interrupted run left open, and notes the drives' state before the first byte, which it returns."""
    before, health = wear.read()
    if left_over := ledger.open_entry():
        ledger.settle_interrupted(left_over, before)
    ledger.open_with(before.epoch, health)
    return before, health


def shortfall(tool: str, piece: str, asked: int, written: int, counted: int | None) -> str | None:
    """Says why a piece of writing does not count. `counted`: B by the drives' own counters."""
    if written < asked:
        return f"{tool} wrote {written} B of {asked} B"
    if counted is None:
        return f"the drives' counts before and after the {piece} cannot be compared"
    if counted < DEVICE_SHARE_MIN * asked:
        return f"the drives counted {counted} B of the {asked} B that {tool} says it wrote"
    return None


def others_wrote(ledger: WearLedger, overrun: int) -> list[str]:
    """Says that others wrote: a step only begins when it fits, so that an overrun is their writing, and no fault of the candidate."""
    counted = sum(entry.counted_bytes or 0 for entry in ledger.entries)
    asked = sum(entry.asked_bytes for entry in ledger.entries if entry.counted_bytes is not None)
    return [
        f"The write budget is exceeded by {decimal_label(overrun)}: something besides the bench wrote to the drives, which counted "
        f"{decimal_label(counted)} while {decimal_label(asked)} were asked for"
    ]
