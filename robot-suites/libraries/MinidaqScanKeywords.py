"""The MiniDAQ's scan over request sizes as keywords: run it, then show that what it measured is usable evidence."""

from __future__ import annotations

from typing import Any

from robot.api.deco import keyword, library

from bench_model.yaml_source import check_document
from rig.context import RunContext
from rig.workloads.minidaq_scan import run_minidaq_scan
from rig.workloads.site import Site


@library(scope="SUITE", auto_keywords=False)
class MinidaqScanKeywords:
    """Keywords over rig.workloads.minidaq_scan. `bundle` is the run bundle's folder."""

    def __init__(self, bundle: str) -> None:
        self._context = RunContext.open(bundle)

    @keyword
    def scan_request_sizes(self) -> dict[str, Any]:
        """Runs the scenario's scan, writes results/minidaq_scan.json and returns it."""
        context, scenario = self._context, self._context.scenario

        def report(text: str, step: int, steps: int, seconds: float) -> None:
            context.phase("minidaq_scan", text, step, steps, seconds)

        parameters = scenario.workloads["minidaq_scan"]
        scan = run_minidaq_scan(Site.of(context), parameters, scenario.scale, scenario.seed, report)
        check_document(scan, "minidaq-scan", "results/minidaq_scan.json")
        context.bundle.write("results/minidaq_scan.json", scan)
        return scan

    @keyword
    def every_request_size_should_have_been_measured(self, scan: dict[str, Any]) -> None:
        """Fails when a point is missing; a masked point is there, with its reason."""
        asked = self._context.scenario.workloads["minidaq_scan"]["request_sizes"]
        measured = [point["asked_request_bytes"] for point in scan["points"]]
        if measured != asked:
            raise AssertionError(f"asked for request sizes {asked} B, measured {measured} B")

    @keyword
    def at_least_half_of_the_points_should_be_admissible(self, scan: dict[str, Any]) -> None:
        """Fails when so many points are masked that no curve can be drawn."""
        reasons = {point["asked_request_bytes"]: point["reason"] for point in scan["points"] if not point["admissible"]}
        if 2 * len(reasons) > len(scan["points"]):
            raise AssertionError(f"most points are masked: {reasons}")
