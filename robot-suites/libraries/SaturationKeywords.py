"""The saturation run as keywords: write the passes, then show that each rests on whole evidence."""

from __future__ import annotations

from typing import Any

from robot.api.deco import keyword, library

from bench_model import saturation_passes
from rig.context import RunContext
from rig.extraction import measured
from rig.workloads.saturation import WORKLOAD


@library(scope="SUITE", auto_keywords=False)
class SaturationKeywords:
    """Keywords over rig.workloads.saturation. `bundle` is the run bundle's folder."""

    def __init__(self, bundle: str) -> None:
        self._context = RunContext.open(bundle)

    @keyword
    def write_the_fresh_target_once_in_each_pass(self) -> dict[str, Any]:
        """Writes the scenario's passes; keeps results/saturation.json up to date and returns it."""
        return measured(self._context, WORKLOAD)

    @keyword
    def every_sample_should_be_accounted_for(self, saturation: dict[str, Any]) -> None:
        """Fails when the samples of a pass do not add up to what it wrote, or contradict one another."""
        for one in saturation["repetitions"]:
            wrong = list(saturation_passes.contradictions(one))
            if wrong:
                raise AssertionError(f"pass {one['number']}: {'; '.join(wrong)}")

    @keyword
    def every_pass_should_be_charged_to_the_write_budget(self, saturation: dict[str, Any]) -> None:
        """Fails when a pass is reserved and not settled, or the account charges less than what was written."""
        entries = [entry for entry in saturation["ledger"] if entry["run"] == self._context.bundle.id]
        unsettled = [entry["number"] for entry in saturation["ledger"] if entry["charged_bytes"] is None]
        written = sum(one["written_bytes"] for one in saturation["repetitions"])
        charged = sum(entry["charged_bytes"] or 0 for entry in entries)
        if unsettled or charged < written:
            raise AssertionError(f"{written} B were written, {charged} B charged; not settled: {unsettled}")
