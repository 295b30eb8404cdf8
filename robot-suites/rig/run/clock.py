"""The candidate's clock against the control node's, read at several moments of a run: evidence that telemetry lies beside events."""

from __future__ import annotations

from typing import Any

from rig.candidate.host import Survey

FILE = "facts/clock.json"


class ClockLog:
    """Readings in the order in which they were taken. On this machine there is one clock and nothing to compare."""

    def __init__(self) -> None:
        self._readings: list[dict[str, Any]] = []

    def note(self, when: str, found: Survey, before_s: float, after_s: float) -> None:
        """Notes a survey that the candidate answered between `before_s` and `after_s` by our clock."""
        reading = {
            "when": when,
            "difference_s": round(found.clock_s - (before_s + after_s) / 2, 6),
            "uncertainty_s": round((after_s - before_s) / 2, 6),
        }
        self._readings.append(reading)

    def document(self, same_clock: bool) -> dict[str, Any]:
        """facts/clock.json: the candidate's clock minus the control node's, s."""
        return {"schema_version": 1, "same_clock": same_clock, "readings": [] if same_clock else self._readings}
