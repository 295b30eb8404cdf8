"""Faults at times that a scenario names, commanded while a load runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

RELEASE = "release all"  # the step after which nothing is in force


@dataclass
class HazardSchedule:
    """`steps`: (s after the load's begin, what it is, what commands it). `release_all` ends every hazard that was commanded."""

    steps: list[tuple[float, str, Callable[[], None]]]
    release_all: Callable[[], None]
    commanded: list[str] = field(default_factory=list)
    _in_force: bool = False

    def play(self, elapsed_s: float) -> None:
        """Commands what is due."""
        while self.steps and self.steps[0][0] <= elapsed_s:
            after_s, text, command = self.steps.pop(0)
            self._in_force = text != RELEASE
            command()
            self.commanded.append(f"{text} after {after_s:g} s")

    def release(self) -> None:
        """Ends what was commanded; nothing where nothing was."""
        if self._in_force:
            self._in_force = False
            self.release_all()
