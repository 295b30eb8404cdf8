"""Concurrent analysis as keywords. They show that all that was asked for was measured; whether it is enough, the verdict says."""

from __future__ import annotations

from typing import Any

from robot.api.deco import keyword, library

from rig.context import RunContext
from rig.extraction import measured
from rig.further_targets import FurtherTargets
from rig.workloads.concurrent_analysis import KINDS, WORKLOAD


@library(scope="SUITE", auto_keywords=False)
class ConcurrentAnalysisKeywords:
    """Keywords over rig.workloads.concurrent_analysis. `bundle` is the run bundle's folder."""

    def __init__(self, bundle: str) -> None:
        self._context = RunContext.open(bundle)

    @keyword
    def analyse_with_every_number_of_workers(self) -> dict[str, Any]:
        """Runs the whole workload, writes results/concurrent_analysis.json and returns it."""
        return measured(self._context, WORKLOAD, FurtherTargets(self._context))

    @keyword
    def every_number_of_workers_should_have_been_measured_in_every_repetition(self, found: dict[str, Any]) -> None:
        """Fails when a point is missing on a target; a masked point is there, with its reason."""
        turns, layout = range(1, self._context.scenario.repetitions + 1), found["layouts"][0]
        measured = {
            (one["storage"], one["analysis"], one["layout"], one["workers"], one["repetition"])
            for one in found["points"]
        }
        wanted = {
            (storage["name"], kind, layout, workers, turn)
            for storage in found["storages"]
            if storage["kind"] == "target"
            for kind in KINDS
            for workers in found["worker_counts"]
            for turn in turns
        }
        if missing := sorted(wanted - measured):
            raise AssertionError(f"not measured: {missing}")

    @keyword
    def every_job_should_have_read_its_share(self, found: dict[str, Any]) -> None:
        """Fails when the files of a set were not all read in a point, or one of them twice."""
        files = {(one["storage"], one["analysis"], one["layout"]): one["files"] for one in found["sets"]}
        for one in found["points"]:
            key = (one["storage"], one["analysis"], one["layout"])
            if sum(record["files"] for record in one["records"]) != files[key]:
                raise AssertionError(f"{key} with {one['workers']} workers: not every file was read once")
