"""Steady-state tests as keywords: run them, then show that what they say of steadiness rests on whole evidence."""

from __future__ import annotations

from typing import Any

from robot.api.deco import keyword, library

from bench_model.steady_state import WINDOW_ROUNDS, steady_window
from rig.context import RunContext
from rig.extraction import measured
from rig.workloads import steady_state


@library(scope="SUITE", auto_keywords=False)
class SteadyStateKeywords:
    """Keywords over rig.workloads.steady_state. `bundle` is the run bundle's folder."""

    def __init__(self, bundle: str) -> None:
        self._context = RunContext.open(bundle)

    @keyword
    def run_steady_state_tests(self) -> dict[str, Any]:
        """Runs the scenario's tests, writes results/steady_state.json and returns it."""
        return measured(self._context, steady_state.WORKLOAD)

    @keyword
    def every_test_should_have_been_preconditioned(self, result: dict[str, Any]) -> None:
        """Fails when less was written before a test than twice its span, up to whole 128 KiB blocks."""
        for test in result["tests"]:
            done = test["conditioning"]["preconditioning"]
            wanted = done["passes"] * (result["span_bytes"] // done["block_bytes"] * done["block_bytes"])
            if done["bytes_written"] < wanted:
                raise AssertionError(f"{test['name']}: {done['bytes_written']} B of {wanted} B were written before it")

    @keyword
    def every_round_should_have_all_of_its_points(self, result: dict[str, Any]) -> None:
        """Fails when rounds of a test differ in what they measured; a masked point is there, with its reason."""
        for test in result["tests"]:
            measured = {tuple(point["name"] for point in one["points"]) for one in test["rounds"]}
            if len(measured) != 1:
                raise AssertionError(f"{test['name']}: its rounds measured different points: {sorted(measured)}")

    @keyword
    def tests_that_are_not_steady_should_say_why(self, result: dict[str, Any]) -> None:
        """Fails when the result claims another steadiness than its rounds have."""
        for test in result["tests"]:
            found = steady_window([one["value"] for one in test["rounds"]])
            if (found is not None) != test["steady"] or bool(test["reason"]) == test["steady"]:
                raise AssertionError(f"{test['name']}: its {WINDOW_ROUNDS}-round windows say otherwise than its result")
