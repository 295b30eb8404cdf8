"""The comparison of a reference drive with RAID sets as keywords. They show that the evidence is whole; bench_model compares."""

from __future__ import annotations

from typing import Any

from robot.api.deco import keyword, library

from bench_model.comparison import compared
from bench_model.yaml_source import check_document
from rig.context import RunContext
from rig.further_targets import FurtherTargets
from rig.hazard_spans import HazardLog
from rig.hazards import hazards_of
from rig.workloads.raid_visit import VisitPlan
from rig.workloads.raid_vs_3dxp import NAME, Faults, run_comparison


@library(scope="SUITE", auto_keywords=False)
class RaidVs3dxpKeywords:
    """Keywords over rig.workloads.raid_vs_3dxp. `bundle` is the run bundle's folder."""

    def __init__(self, bundle: str) -> None:
        self._context = RunContext.open(bundle)

    @keyword
    def compare_the_sets_with_the_reference(self) -> dict[str, Any]:
        """Builds the sets, runs all rounds, writes results/raid_vs_3dxp.json and returns it."""
        context = self._context
        parameters = context.scenario.workloads[NAME]
        plan = VisitPlan(
            machine=context.machine,
            daqwriter=context.daqwriter,
            parameters=parameters,
            seed=context.scenario.seed,
            work=context.places.raw,
            raw=context.raw,
            line_protocol=context.places.workload_file,
            tags={"host": context.candidate.name, "run": context.bundle.id},
        )

        def report(text: str, step: int, steps: int, seconds: float) -> None:
            context.phase(NAME, text, step, steps, seconds)

        comparison = compared(context.scenario, context.candidate)
        found = run_comparison(plan, comparison, FurtherTargets(context), self._faults(parameters), report)
        check_document(found, "raid-vs-3dxp", "results/raid_vs_3dxp.json")
        context.bundle.write("results/raid_vs_3dxp.json", found)
        return found

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
