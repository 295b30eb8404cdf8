"""The thread scan as keywords: run it, then show that what it measured is usable evidence."""

from __future__ import annotations

from typing import Any

from robot.api.deco import keyword, library

from rig.context import RunContext
from rig.extraction import measured
from rig.workloads import thread_scan


@library(scope="SUITE", auto_keywords=False)
class ThreadScanKeywords:
    """Keywords over rig.workloads.thread_scan. `bundle` is the run bundle's folder."""

    def __init__(self, bundle: str) -> None:
        self._context = RunContext.open(bundle)

    @keyword
    def run_thread_scan(self) -> dict[str, Any]:
        """Runs the scenario's scan, writes results/thread_scan.json and returns it."""
        return measured(self._context, thread_scan.WORKLOAD)

    @keyword
    def every_number_of_threads_should_have_been_measured(self, scan: dict[str, Any]) -> None:
        """Fails when a point of a tool's grid is missing; a masked point is there, with its reason."""
        parameters = self._context.scenario.workloads["thread_scan"]
        asked = {(block, threads) for block in parameters["block_sizes"] for threads in parameters["threads"]}
        for one in scan["scans"]:
            missing = asked - {(point["block_bytes"], point["threads"]) for point in one["points"]}
            if missing:
                raise AssertionError(f"{one['tool']} did not measure (block size in B, threads): {sorted(missing)}")

    @keyword
    def at_least_half_of_the_points_should_be_admissible(self, scan: dict[str, Any]) -> None:
        """Fails when the device or a tool let most points down, so that no curves can be drawn."""
        for one in scan["scans"]:
            reasons = [point["reason"] for point in one["points"] if not point["admissible"]]
            if 2 * len(reasons) > len(one["points"]):
                raise AssertionError(f"most points of {one['tool']} are masked: {reasons}")
