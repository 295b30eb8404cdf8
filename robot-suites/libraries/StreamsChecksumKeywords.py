"""The storage application with its multi-threaded checksum as keywords: measure it, then show that what was measured is usable evidence."""

from __future__ import annotations

from typing import Any

from robot.api.deco import keyword, library

from rig.context import RunContext
from rig.extraction import measured
from rig.workloads import streams_checksum


@library(scope="SUITE", auto_keywords=False)
class StreamsChecksumKeywords:
    """Keywords over rig.workloads.streams_checksum. `bundle` is the run bundle's folder."""

    def __init__(self, bundle: str) -> None:
        self._context = RunContext.open(bundle)

    @keyword
    def measure_the_storage_application(self) -> dict[str, Any]:
        """Runs the whole workload; writes results/streams_checksum.json and returns it."""
        return measured(self._context, streams_checksum.WORKLOAD)

    @keyword
    def every_pair_should_have_been_run_in_alternating_order(self, document: dict[str, Any]) -> None:
        """Fails when a comparison lacks a round, or when the original did not come first in every other one."""
        wanted = [(number, number % 2 == 1) for number in range(1, self._context.scenario.repetitions + 1)]
        short = [
            one["label"]
            for one in document["comparisons"]
            if [(pair["round"], pair["reference_first"]) for pair in one["pairs"]] != wanted
        ]
        if short or not document["comparisons"]:
            raise AssertionError(f"pairs are missing or in the wrong order: {', '.join(short) or 'all of them'}")

    @keyword
    def at_least_half_of_the_runs_should_count(self, document: dict[str, Any]) -> None:
        """Fails when most runs are masked, so that nothing could be compared."""
        runs = [
            pair[key] for one in document["comparisons"] for pair in one["pairs"] for key in ("reference", "measured")
        ]
        reasons = [run["reason"] for run in runs if run["reason"]]
        if 2 * len(reasons) > len(runs):
            raise AssertionError(f"most runs are masked: {sorted(set(reasons))}")

    @keyword
    def every_run_that_left_files_should_have_been_read_back(self, document: dict[str, Any]) -> None:
        """Fails when nobody looked at the files of a variant or of a paced run. What the look found is for the verdict."""
        names = [one["name"] for one in document["verification"]]
        missing = [one["name"] for one in document["demand"] if one["name"] not in names]
        empty = [one["name"] for one in document["verification"] if not one["files"]]
        if missing or empty or not names:
            raise AssertionError(f"not read back: {missing}; nothing to read back: {empty}")
