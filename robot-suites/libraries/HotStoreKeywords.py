"""The hot store as keywords. They show that all that was asked for was measured; whether it is enough, the verdict says."""

from __future__ import annotations

from typing import Any

from robot.api.deco import keyword, library

from bench_model.hot_store import ENGINES
from bench_model.hot_store_runs import raw_of
from rig.context import RunContext
from rig.extraction import measured
from rig.workloads import hot_store
from rig.workloads.hot_store import NAME


@library(scope="SUITE", auto_keywords=False)
class HotStoreKeywords:
    """Keywords over rig.workloads.hot_store. `bundle` is the run bundle's folder."""

    def __init__(self, bundle: str) -> None:
        self._context = RunContext.open(bundle)

    @keyword
    def measure_the_hot_store(self) -> dict[str, Any]:
        """Runs the whole workload, writes results/hot_store_runs.json and returns it."""
        return measured(self._context, hot_store.WORKLOAD)

    @keyword
    def every_value_size_should_have_been_measured(self, store: dict[str, Any]) -> None:
        """Fails when a point of a repetition is missing."""
        scenario = self._context.scenario
        asked = hot_store.turns(scenario.workloads[NAME], scenario.repetitions)
        measured = [(point["repetition"], point["value_bytes"]) for point in store["points"]]
        if measured != asked:
            raise AssertionError(f"asked for (repetition, value size in B) {asked}, measured {measured}")

    @keyword
    def every_row_of_the_matrix_should_be_there_for_every_engine(self, store: dict[str, Any]) -> None:
        """Fails when `hotstore semantics` was not asked on an engine, gave other rows there, or nothing was killed on it."""
        killed = {row["engine"] for row in store["losses"]}
        raw = raw_of(self._context.raw)
        rows = {tuple(row["id"] for row in raw(store["semantics"][engine])["rows"]) for engine in ENGINES}
        if killed != set(ENGINES) or len(rows) != 1:
            raise AssertionError(
                f"killed on {sorted(killed)}; {len(rows)} different lists of rows on {len(ENGINES)} engines"
            )

    @keyword
    def every_deployment_should_have_been_measured(self, store: dict[str, Any]) -> None:
        """Fails when a deployment or a number of nodes is missing."""
        asked = self._context.scenario.workloads[NAME]["scale_out"]
        wanted = {(kind, nodes) for kind in asked["deployments"] for nodes in asked["nodes"]}
        found = {(point["deployment"], point["nodes"]) for point in store["scale_out"]["points"]}
        if wanted != found:
            raise AssertionError(f"not measured: {sorted(wanted - found)}")
