"""Is the candidate the machine that the inventory declares? Reads only."""

from __future__ import annotations

from functools import cached_property

from robot.api.deco import keyword, library

from daq_bench.bench_model.documents.facts import IdentityCheck
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import differences
from daq_bench.rig.run.readings import compare


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
        return compare(self._context)

    @keyword
    def all_identity_checks_should_hold(self, checks: list[IdentityCheck]) -> None:
        """Fails with one line per difference."""
        if not checks:
            raise AssertionError("the inventory declares nothing of the candidate that could be checked")
        wrong = differences(checks)
        if wrong:
            raise AssertionError(f"this is not the candidate that the inventory declares: {wrong}")
