"""Faults at times that a scenario names, commanded while a load runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from daq_bench.bench_model.base.units import in_digits
from daq_bench.rig.candidate.hazard_control import HazardControl

RELEASE = "release all"  # the step after which nothing is in force


@dataclass
class HazardSchedule:
    """`steps`: (s after the load's begin, what it is, what commands it). `release_all` ends every hazard that was commanded."""

    steps: list[tuple[float, str, Callable[[], None]]]
    release_all: Callable[[], None]
    commanded: list[str] = field(default_factory=list)
    _in_force: bool = False

    @staticmethod
    def of(entries: list[dict[str, Any]], control: HazardControl) -> HazardSchedule:
        """`entries`: a scenario's `hazards`, sizes in bytes."""
        steps = [
            (
                float(entry["after_s"]),
                *_command(control, *next((key, one) for key, one in entry.items() if key != "after_s")),
            )
            for entry in entries
        ]
        return HazardSchedule(sorted(steps, key=lambda step: step[0]), control.release_all)

    def play(self, elapsed_s: float) -> None:
        """Commands what is due."""
        while self.steps and self.steps[0][0] <= elapsed_s:
            after_s, text, command = self.steps.pop(0)
            self._in_force = text != RELEASE
            command()
            self.commanded.append(f"{text} after {in_digits(after_s, 9)} s")

    def release(self) -> None:
        """Ends what was commanded; nothing where nothing was."""
        if self._in_force:
            self._in_force = False
            self.release_all()


def _command(control: HazardControl, kind: str, value: Any) -> tuple[str, Callable[[], None]]:
    """(what a scenario's hazard is, what commands it)."""
    if kind == "throttle":
        return f"throttle {value['serial']}", partial(control.throttle, value["serial"], value["to_size"])
    if kind == "bay":
        return f"bay of {value['serial']}", partial(control.raise_bay, value["serial"], value["celsius"])
    if kind == "inlet":
        return "inlet", partial(control.raise_inlet, value["celsius"])
    if kind == "stop_fan":
        return f"stop {value}", partial(control.stop_fan, value)
    return RELEASE, control.release_all
