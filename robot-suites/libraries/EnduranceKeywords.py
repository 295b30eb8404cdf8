"""The bounded wear experiment as keywords. They show that the budget held and that the account is whole."""

from __future__ import annotations

from typing import Any

from robot.api.deco import keyword, library

from rig.context import RunContext
from rig.extraction import measured
from rig.workloads.endurance import WORKLOAD


@library(scope="SUITE", auto_keywords=False)
class EnduranceKeywords:
    """Keywords over rig.workloads.endurance. `bundle` is the run bundle's folder."""

    def __init__(self, bundle: str) -> None:
        self._context = RunContext.open(bundle)

    @keyword
    def wear_the_drives_within_the_budget(self) -> dict[str, Any]:
        """Writes until the next step does not fit what is left; keeps results/endurance.json up to date and returns it."""
        return measured(self._context, WORKLOAD)

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
