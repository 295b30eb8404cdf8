"""The block-size scan as keywords: run it, then show that what it measured is usable evidence."""

from __future__ import annotations

from typing import Any

from robot.api.deco import keyword, library

from rig.context import RunContext
from rig.extraction import measured
from rig.workloads import fio_scan
from rig.workloads.fio_scan import turns


@library(scope="SUITE", auto_keywords=False)
class BlockScanKeywords:
    """Keywords over rig.workloads.fio_scan. `bundle` is the run bundle's folder."""

    def __init__(self, bundle: str) -> None:
        self._context = RunContext.open(bundle)

    @keyword
    def run_block_size_scan(self) -> dict[str, Any]:
        """Runs the scenario's scan, writes results/block_scan.json and returns it."""
        return measured(self._context, fio_scan.WORKLOAD)

    @keyword
    def every_block_size_should_have_been_measured(self, scan: dict[str, Any]) -> None:
        """Fails when a point of the scan is missing; a masked point is there, with its reason."""
        asked = self._context.scenario.workloads["block_scan"]["block_sizes"]
        for one in (scan, *scan["others"]):
            measured = [point["block_bytes"] for point in one["points"]]
            if measured != asked:
                raise AssertionError(f"asked for block sizes {asked} B, measured {measured} B with {one['tool']}")

    @keyword
    def every_large_block_size_should_have_been_repeated(self, scan: dict[str, Any]) -> None:
        """Fails when a repetition of a large block size is missing; one that does not count is there, with its reason."""
        asked = turns(self._context.scenario.workloads["block_scan"])
        for one in (scan, *scan["others"]):
            found = [(again["repetition"], again["block_bytes"]) for again in one["large_blocks"]["repetitions"]]
            if asked and found != asked:
                raise AssertionError(
                    f"asked for the repetitions {asked} (number, B), measured {found} with {one['tool']}"
                )

    @keyword
    def at_least_half_of_the_points_should_be_admissible(self, scan: dict[str, Any]) -> None:
        """Fails when the device or a tool let most points down, so that no curve can be drawn."""
        for one in (scan, *scan["others"]):
            reasons = {point["block_bytes"]: point["reason"] for point in one["points"] if not point["admissible"]}
            if 2 * len(reasons) > len(one["points"]):
                raise AssertionError(f"most points of {one['tool']} are masked: {reasons}")
