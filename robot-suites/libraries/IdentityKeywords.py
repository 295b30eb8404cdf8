"""Is the candidate the machine that the inventory declares? Reads only."""

from __future__ import annotations

from functools import cached_property

from robot.api.deco import keyword, library

from daq_bench.bench_model.documents.facts import Identity, IdentityCheck
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import check_identity, differences, planned_checks, survey


@library(scope="SUITE", auto_keywords=False)
class IdentityKeywords:
    """Keywords over rig.candidate.host. `bundle` is the run bundle's folder."""

    def __init__(self, bundle: str) -> None:
        self._bundle = bundle

    @cached_property
    def _context(self) -> RunContext:
        return RunContext.open(self._bundle)

    @keyword
    def compare_candidate_with_inventory(self) -> list[IdentityCheck]:
        """Checks everything that the inventory declares; writes results/identity.json and returns the checks."""
        context = self._context
        context.phase("identity", "comparing the candidate with the inventory", 1, 1, 1.0)
        checks = check_identity(context.candidate, survey(context.machine, context.target_path))
        planned = planned_checks(context.candidate)
        context.bundle.write("results/identity.json", Identity(1, planned, checks))
        return checks

    @keyword
    def all_identity_checks_should_hold(self, checks: list[IdentityCheck]) -> None:
        """Fails with one line per difference."""
        if not checks:
            raise AssertionError("the inventory declares nothing of the candidate that could be checked")
        wrong = differences(checks)
        if wrong:
            raise AssertionError(f"this is not the candidate that the inventory declares: {wrong}")
