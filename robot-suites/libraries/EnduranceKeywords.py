"""The bounded wear experiment as keywords. They show that the budget held and that the account is whole."""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import Any

from robot.api.deco import keyword, library

from bench_model.yaml_source import check_document
from rig.context import RunContext
from rig.host import device_from
from rig.lock import exclusive
from rig.wear_ledger import Experiment, WearLedger, adopt
from rig.workloads.endurance import account_of, beneath, first_need, require_left, run_experiment
from rig.workloads.endurance_step import Plan

RESULT, LEDGER = "results/endurance.json", "results/endurance_ledger.json"


@library(scope="SUITE", auto_keywords=False)
class EnduranceKeywords:
    """Keywords over rig.workloads.endurance. `bundle` is the run bundle's folder."""

    def __init__(self, bundle: str) -> None:
        self._context = RunContext.open(bundle)

    def _plan(self) -> Plan:
        context, target = self._context, self._context.bundle.run["target"]
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

    @keyword
    def wear_the_drives_within_the_budget(self) -> dict[str, Any]:
        """Writes until the next step does not fit what is left; keeps results/endurance.json up to date and returns it."""
        context, plan = self._context, self._plan()

        def report(text: str, step: int, steps: int, seconds: float) -> None:
            context.phase("endurance", text, step, steps, seconds)

        def keep(document: dict[str, Any]) -> None:
            check_document(document, "endurance", RESULT)
            context.bundle.write(RESULT, document)

        with ExitStack() as locks:
            # Whatever the candidate is called: two experiments on one drive would each count the other's writes.
            for serial in plan.experiment.serials:
                name = "drive-" + re.sub(r"[^A-Za-z0-9.-]", "_", serial)
                locks.enter_context(exclusive(name, f"run {context.bundle.id}", subject="drive lock"))
            return run_experiment(context.machine, plan, self._ledger(plan), report, keep)

    def _ledger(self, plan: Plan) -> WearLedger:
        """The account, from an earlier run's bundle where the control node has lost it. Raises RefusedError when nothing is left."""
        context, budget = self._context, plan.parameters["write_budget"]
        file = account_of(plan.experiment)
        for copy in sorted(context.bundle.path.parent.glob(f"*/{LEDGER}")):
            if adopt(file, copy, plan.experiment):
                context.bundle.event(
                    "endurance", "endurance", f"the write budget's account was taken from {copy.parts[-3]}"
                )
        require_left(context.scenario, file, budget, *first_need(plan.parameters, plan.copies))
        ledger = WearLedger(file, plan.experiment, budget, context.bundle.id, [context.bundle.path / LEDGER])
        ledger.save()
        if ledger.continued:
            text = f"{plan.experiment.text} goes on: {ledger.spent_bytes} B of {budget} B are spent, {ledger.left_bytes} B left"
            context.bundle.event(
                "endurance", "endurance", text, spent_bytes=ledger.spent_bytes, left_bytes=ledger.left_bytes
            )
        return ledger

    @keyword
    def the_budget_should_be_used_up_to_less_than_a_step(self, endurance: dict[str, Any]) -> None:
        """Fails when the experiment ended for any other reason than its budget."""
        if not endurance["ended"]:
            raise AssertionError("the experiment did not end by its budget")

    @keyword
    def every_reserved_byte_should_be_accounted_for(self, endurance: dict[str, Any]) -> None:
        """Fails when a step is reserved and not settled, or the sum of the account is another than it says."""
        entries = endurance["ledger"]
        unsettled = [entry["number"] for entry in entries if entry["charged_bytes"] is None]
        if unsettled:
            raise AssertionError(f"steps {unsettled} are reserved and not settled")
        charged = sum(entry["charged_bytes"] for entry in entries)
        if charged != endurance["spent_bytes"]:
            raise AssertionError(f"the steps were charged {charged} B, the account says {endurance['spent_bytes']} B")
