"""Keywords of a scenario's workload: they run it and show that its result is whole. bench_model judges what the result is worth."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

from robot.api import SkipExecution

from daq_bench.bench_model.documents.struct import Struct
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.checking.extraction import failed_target, measured
from daq_bench.rig.run.facilities import live_facilities
from daq_bench.rig.workloads.registry import WORKLOADS
from daq_bench.rig.workloads.shared.base import Check


class WorkloadKeywords:
    """Robot Framework's hybrid library. `bundle` is the run bundle's folder, `workload` a name of rig.workloads.registry.

    The first keyword, the workload's `action`, returns the result; the others take it: they are the workload's own `checks`."""

    ROBOT_LIBRARY_SCOPE = "SUITE"

    def __init__(self, bundle: str, workload: str) -> None:
        self._bundle = bundle
        self._workload = WORKLOADS[workload]
        self._checks = {check.__name__: self._keyword(check) for check in self._workload.checks}
        self._keywords = {self._workload.action: self.run_the_workload, **self._checks}

    @cached_property
    def _context(self) -> RunContext:
        return RunContext.open(self._bundle)

    def get_keyword_names(self) -> list[str]:
        return list(self._keywords)

    def run_the_workload(self) -> Struct:
        """Loads the candidate as the scenario says, writes the workload's result into the bundle and returns it. A target that has failed
        in this run is loaded no more: the test is skipped."""
        if failure := failed_target(self._context.bundle):
            raise SkipExecution(failure)
        with live_facilities(self._context) as facilities:
            result = measured(replace(self._context, facilities=facilities), self._workload)
        if result is None:
            raise SkipExecution(failed_target(self._context.bundle))
        return result

    def __getattr__(self, name: str) -> Callable[..., Any]:
        keywords = self.__dict__.get("_keywords", {})
        if name in keywords:
            found: Callable[..., Any] = keywords[name]
            return found
        raise AttributeError(name)

    def _keyword(self, check: Check) -> Callable[[Struct], None]:
        def keyword(result: Struct) -> None:
            check(self._context, result)

        keyword.__name__, keyword.__doc__ = check.__name__, inspect.getdoc(check)
        return keyword
