"""The comparison of a reference drive with RAID sets as keywords. They show that the evidence is whole; bench_model compares."""

from __future__ import annotations

from typing import Any

from robot.api.deco import keyword, library

from rig.context import RunContext
from rig.extraction import measured
from rig.further_targets import FurtherTargets
from rig.hazard_spans import HazardLog
from rig.hazards import hazards_of
from rig.workloads.raid_vs_3dxp import NAME, WORKLOAD, Faults


@library(scope="SUITE", auto_keywords=False)
class RaidVs3dxpKeywords:
    """Keywords over rig.workloads.raid_vs_3dxp. `bundle` is the run bundle's folder."""

    def __init__(self, bundle: str) -> None:
        self._context = RunContext.open(bundle)

    @keyword
    def compare_the_sets_with_the_reference(self) -> dict[str, Any]:
        """Builds the sets, runs all rounds, writes results/raid_vs_3dxp.json and returns it."""
        context = self._context
        faults = self._faults(context.scenario.workloads[NAME])
        return measured(context, WORKLOAD, FurtherTargets(context), faults)

    def _faults(self, parameters: dict[str, Any]) -> Faults | None:
        if not parameters.get("hazards"):
            return None
        hazards = hazards_of(self._context.candidate)

        log = HazardLog(self._context.bundle, NAME)

        def note(text: str, data: dict[str, Any]) -> None:
            if data.get("released"):
                log.end([data["serial"]], text, **data)
            else:
                log.begin(data["serial"], text, **data)

        return Faults(hazards.throttle, hazards.release_throttle, note)

    @keyword
    def every_target_should_have_been_visited_in_every_round(self, found: dict[str, Any]) -> None:
        """Fails when a pair of a round is incomplete; a masked visit is there, with its reason."""
        asked = self._context.scenario.workloads[NAME]
        for name in asked["sets"]:
            turns = [
                one["round"]
                for one in found["rounds"]
                if {name, found["reference"]} <= {visit["target"] for visit in one["visits"]}
            ]
            if turns != list(range(1, asked["rounds"] + 1)):
                raise AssertionError(f"{name} was compared in rounds {turns} of {asked['rounds']}")

    @keyword
    def the_order_should_have_alternated(self, found: dict[str, Any]) -> None:
        """Fails when the reference was not first in one round of a group and last in the next."""
        for one in found["rounds"]:
            positions = {visit["target"]: visit["position"] for visit in one["visits"]}
            first = positions[found["reference"]] == 0
            last = positions[found["reference"]] == len(positions) - 1
            if not (first if one["round"] % 2 else last):
                raise AssertionError(
                    f"group {one['group']}, round {one['round']}: the reference was neither first nor last"
                )
