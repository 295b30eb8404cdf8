"""Interference as keywords. They show that every cell was run; a run that does not count is there, with its reason."""

from __future__ import annotations

from typing import Any

from robot.api.deco import keyword, library

from rig.context import RunContext
from rig.extraction import measured
from rig.workloads import interference
from rig.workloads.interference import BURST


@library(scope="SUITE", auto_keywords=False)
class InterferenceKeywords:
    """Keywords over rig.workloads.interference. `bundle` is the run bundle's folder."""

    def __init__(self, bundle: str) -> None:
        self._context = RunContext.open(bundle)

    @keyword
    def measure_how_activities_slow_each_other_down(self) -> dict[str, Any]:
        """Runs every pair as often as the scenario says; writes results/interference.json and returns it."""
        document = measured(self._context, interference.WORKLOAD)
        self._log_losses(document)
        return document

    def _log_losses(self, document: dict[str, Any]) -> None:
        for row in document["burst"]:
            if row["busy_count"] or row["lost_superchunks"]:
                text = f"the burst beside {row['disturber']}: {row['lost_superchunks']} superchunks lost, BUSY {row['busy_count']} times"
                self._context.bundle.event("busy", "interference", text, **row)

    @keyword
    def every_pair_should_have_been_run(self, interference: dict[str, Any]) -> None:
        """Fails when a cell of the matrix, or one of its pairs, is missing."""
        rounds = self._context.scenario.repetitions
        short = [
            f"{cell['victim']} beside {cell['disturber']}"
            for cell in interference["cells"]
            if [pair["round"] for pair in cell["pairs"]] != list(range(1, rounds + 1))
        ]
        if short or not interference["cells"]:
            raise AssertionError(f"pairs are missing: {', '.join(short) or 'all of them'}")

    @keyword
    def at_least_half_of_the_cells_should_count(self, interference: dict[str, Any]) -> None:
        """Fails when most disturbers did not overlap their victims, so that there is no matrix."""
        reasons = [cell["reason"] for cell in interference["cells"] if cell["slowdown"] is None]
        if 2 * len(reasons) > len(interference["cells"]):
            raise AssertionError(f"most cells are masked: {reasons}")

    @keyword
    def the_bursts_superchunks_should_be_accounted_for(self, interference: dict[str, Any]) -> None:
        """Fails when the burst was asked for as a victim and left no account."""
        asked = BURST in self._context.scenario.workloads["interference"]["victims"]
        if asked and not interference["burst"]:
            raise AssertionError("the burst was run and there is no account of its superchunks")
