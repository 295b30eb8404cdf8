"""The thermal soak as keywords. They show that the evidence is whole; bench_model judges what it is worth."""

from __future__ import annotations

from typing import Any

from robot.api.deco import keyword, library

from rig.context import RunContext
from rig.extraction import measured
from rig.fan_duty import fan_duty
from rig.hazard_schedule import HazardSchedule
from rig.settings import Layout
from rig.workloads import thermal


@library(scope="SUITE", auto_keywords=False)
class ThermalKeywords:
    """Keywords over rig.workloads.thermal. `bundle` is the run bundle's folder."""

    def __init__(self, bundle: str) -> None:
        self._context = RunContext.open(bundle)

    @keyword
    def soak_until_throttled_or_settled(self, hazards: HazardSchedule) -> dict[str, Any]:
        """Runs the scenario's soak, cooling and fan sweep; writes results/thermal.json and returns it."""
        context = self._context
        fans = fan_duty(Layout(), context.candidate, context.machine, context.bundle)
        return measured(context, thermal.WORKLOAD, hazards, fans)

    @keyword
    def soak_should_have_lasted(self, thermal: dict[str, Any]) -> None:
        """Fails when the load ended before its least time, although nothing had stopped it."""
        soak, least = thermal["soak"], thermal["rule"]["min_s"]
        lasted = soak["end_utc_s"] - soak["start_utc_s"]
        if lasted < 0.9 * least:
            raise AssertionError(f"the soak wrote for {lasted:.0f} s only, its least time is {least:g} s")

    @keyword
    def fan_sweep_should_be_accounted_for(self, thermal: dict[str, Any]) -> None:
        """Fails when a sweep was asked for and neither measured nor given a reason."""
        sweep = thermal["fan_sweep"]
        asked = self._context.scenario.workloads["thermal"].get("fan_sweep", {"duties_percent": []})
        if sweep["status"] == "done" and len(sweep["points"]) != len(asked["duties_percent"]):
            raise AssertionError(
                f"asked for fan duties {asked['duties_percent']}, measured {len(sweep['points'])} of them"
            )
        if sweep["status"] in ("unsupported", "stopped") and not sweep["reason"]:
            raise AssertionError(f"the fan sweep is {sweep['status']} without a reason")
