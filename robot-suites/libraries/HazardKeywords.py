"""Hazards of a virtual candidate as keywords, for suites that show what the bench sees of a fault. Every hazard ends with the suite."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from robot.api.deco import keyword, library

from bench_model.units import parse_size
from rig.context import RunContext
from rig.hazard_schedule import RELEASE, HazardSchedule
from rig.hazard_spans import HazardLog
from rig.hazards import hazards_of
from virtual_candidate.hazards import Hazards

POWER = "power"  # what a cut is about


@library(scope="SUITE", auto_keywords=False)
class HazardKeywords:
    """Keywords over rig.hazards. `bundle` is the run bundle's folder; drives are named by serial."""

    def __init__(self, bundle: str) -> None:
        self._context = RunContext.open(bundle)
        self._schedule: HazardSchedule | None = None
        self._log = HazardLog(self._context.bundle, "rig")

    @cached_property
    def _hazards(self) -> Hazards:
        """Asked for by the first hazard: a suite that commands none may run on real hardware."""
        return hazards_of(self._context.candidate)

    @keyword
    def hazards_of_the_scenario(self, workload: str) -> HazardSchedule:
        """What the scenario commands while a workload runs, ready to be played; empty where it commands nothing."""
        steps = [
            (
                float(entry["after_s"]),
                *self._command(*next((key, one) for key, one in entry.items() if key != "after_s")),
            )
            for entry in self._context.scenario.workloads[workload].get("hazards", [])
        ]
        self._schedule = HazardSchedule(sorted(steps, key=lambda step: step[0]), self.release_all_hazards)
        return self._schedule

    def _command(self, kind: str, value: Any) -> tuple[str, Callable[[], None]]:
        """(what a scenario's hazard is, what commands it)."""
        if kind == "throttle":
            return f"throttle {value['serial']}", partial(self.throttle_drive, value["serial"], f"{value['to_size']}B")
        if kind == "bay":
            return f"bay of {value['serial']}", partial(self.raise_bay_temperature, value["serial"], value["celsius"])
        if kind == "inlet":
            return "inlet", partial(self.raise_inlet_temperature, value["celsius"])
        if kind == "stop_fan":
            return f"stop {value}", partial(self.stop_fan, value)
        return RELEASE, self.release_all_hazards

    @keyword
    def release_scheduled_hazards(self) -> None:
        """Ends what a schedule has commanded and not released; for a suite's teardown."""
        if self._schedule:
            self._schedule.release()

    @keyword
    def throttle_drive(self, serial: str, bandwidth: str) -> None:
        """Holds a drive to a bandwidth such as `50MB` (per second), its critical-warning bit for temperature set."""
        self._hazards.throttle(serial, parse_size(bandwidth))
        self._log.begin(f"rate {serial}", f"drive {serial} is held to {bandwidth}/s, critical warning set")

    @keyword
    def fail_writes_of_drive(self, serial: str) -> None:
        """Lets every write to a drive end in an I/O error."""
        self._hazards.fail_writes(serial)
        self._log.begin(f"writes {serial}", f"writes to drive {serial} fail")

    @keyword
    def pull_drive(self, serial: str) -> None:
        """Takes a drive out of its slot."""
        self._hazards.pull(serial)
        self._log.begin(f"slot {serial}", f"drive {serial} is pulled")

    @keyword
    def raise_inlet_temperature(self, celsius: int) -> None:
        """Raises what the BMC reads at the air inlet, degC."""
        self._hazards.raise_inlet(celsius)
        self._log.begin("inlet", f"inlet at {celsius} degC")

    @keyword
    def raise_bay_temperature(self, serial: str, celsius: int) -> None:
        """Raises what the BMC reads in a drive's bay, degC."""
        self._hazards.raise_bay(serial, celsius)
        self._log.begin(f"bay {serial}", f"bay of drive {serial} at {celsius} degC")

    @keyword
    def stop_fan(self, name: str) -> None:
        """Lets a fan stand still."""
        self._hazards.stop_fan(name)
        self._log.begin(f"fan {name}", f"fan {name} stands still")

    @keyword
    def cut_power(self) -> None:
        """Cuts the candidate's power at once."""
        self._hazards.cut_power()
        self._log.begin(POWER, "power is cut")

    @keyword
    def restore_power(self) -> None:
        """Switches the candidate on again."""
        self._hazards.restore_power()
        self._log.end([POWER], "power is back")

    @keyword
    def release_all_hazards(self) -> None:
        """Ends every hazard but a power cut."""
        self._hazards.release_all()
        self._log.end(self._log.except_for(POWER), "every hazard is released", released=True)
