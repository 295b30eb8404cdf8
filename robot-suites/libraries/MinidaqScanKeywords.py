"""The MiniDAQ's scan over request sizes as keywords: run it, then show that what it measured is usable evidence."""

from __future__ import annotations

from typing import Any

from robot.api.deco import keyword, library

from rig.context import RunContext
from rig.extraction import measured
from rig.workloads import minidaq_scan


@library(scope="SUITE", auto_keywords=False)
class MinidaqScanKeywords:
    """Keywords over rig.workloads.minidaq_scan. `bundle` is the run bundle's folder."""

    def __init__(self, bundle: str) -> None:
        self._context = RunContext.open(bundle)

    @keyword
    def scan_request_sizes(self) -> dict[str, Any]:
        """Runs the scenario's scan, writes results/minidaq_scan.json and returns it."""
        return measured(self._context, minidaq_scan.WORKLOAD)

    @keyword
    def every_request_size_should_have_been_measured(self, scan: dict[str, Any]) -> None:
        """Fails when a point of a repetition is missing; a masked point is there, with its reason."""
        scenario = self._context.scenario
        asked = minidaq_scan.turns(scenario.workloads["minidaq_scan"], scenario.repetitions)
        measured = [(point["repetition"], point["asked_request_bytes"]) for point in scan["points"]]
        if measured != asked:
            raise AssertionError(f"asked for (repetition, request size in B) {asked}, measured {measured}")

    @keyword
    def at_least_half_of_the_points_should_be_admissible(self, scan: dict[str, Any]) -> None:
        """Fails when so many points are masked that no curve can be drawn."""
        reasons = {
            (point["repetition"], point["asked_request_bytes"]): point["reason"]
            for point in scan["points"]
            if not point["admissible"]
        }
        if 2 * len(reasons) > len(scan["points"]):
            raise AssertionError(f"most points are masked: {reasons}")
