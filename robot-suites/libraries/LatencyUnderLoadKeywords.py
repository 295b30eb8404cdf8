"""Latency under load as keywords: climb the ladder, then show that what it measured is usable evidence."""

from __future__ import annotations

from typing import Any

from robot.api.deco import keyword, library

from rig.context import RunContext
from rig.extraction import measured
from rig.workloads import latency_under_load


@library(scope="SUITE", auto_keywords=False)
class LatencyUnderLoadKeywords:
    """Keywords over rig.workloads.latency_under_load. `bundle` is the run bundle's folder."""

    def __init__(self, bundle: str) -> None:
        self._context = RunContext.open(bundle)

    @keyword
    def climb_the_ladder_of_loads(self) -> dict[str, Any]:
        """Offers every load in turn, writes results/latency_under_load.json and returns it."""
        return measured(self._context, latency_under_load.WORKLOAD)

    @keyword
    def every_superchunk_should_be_accounted_for(self, found: dict[str, Any]) -> None:
        """Fails unless offered = stored + lost at every load: a superchunk that nobody counted is the bench's fault."""
        for point in found["points"]:
            if point["admissible"] and point["offered"] != point["stored"] + point["lost"]:
                raise AssertionError(
                    f"load factor {point['load_factor']:g}: offered {point['offered']} superchunks, but stored + lost = "
                    f"{point['stored'] + point['lost']}"
                )

    @keyword
    def at_least_half_of_the_loads_should_have_been_offered(self, found: dict[str, Any]) -> None:
        """Fails when the source could not offer most of the loads, so that no curve can be drawn."""
        reasons = {point["load_factor"]: point["reason"] for point in found["points"] if not point["admissible"]}
        if 2 * len(reasons) > len(found["points"]):
            raise AssertionError(f"most points are masked: {reasons}")
