"""The time that stamps the points: the machine's clock as long as it runs forward, and still increasing when it does not.

Promise: no two stamps of one agent are equal and none is smaller than one before, so that no point takes an earlier
one's place in InfluxDB (which overwrites equal series and time). A clock that is set back is followed from where it
was: the stamps run ahead of it by `ahead_s` until it is set forward again or the agent restarts. Every step is kept
with its time and size; the kernel's gentle corrections (slewing) are followed and are no step.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Callable

from daq_bench.telemetry_agent.base.files import utc_text

STEP_NS_MIN = 100_000_000
# A clock that is slewed gains at most 8.3 % (chrony's default limit), so that rare looks must allow for more.
SLEW_SHARE_MAX = 0.1
# Both clocks are read one after the other; a thread that is put aside in between would see a step that never was.
PAIR_NS_MAX = 1_000_000
PAIR_TRIES = 5
STEPS_KEPT_MAX = 200

Nanoseconds = Callable[[], int]


class StampClock:
    """One per process (`CLOCK`); tests make their own with clocks that they move."""

    def __init__(self, wall_ns: Nanoseconds = time.time_ns, monotonic_ns: Nanoseconds = time.monotonic_ns) -> None:
        self._wall_ns, self._monotonic_ns = wall_ns, monotonic_ns
        self._lock = threading.Lock()
        self._last_ns = 0  # the last stamp given out
        self._ahead_ns = 0  # stamps minus clock, after the clock was set back
        self._seen: tuple[int, int] | None = None  # wall minus monotonic, and the monotonic time of that look
        self._unreported_ns = 0
        self.step_count = 0
        self._steps: list[dict[str, Any]] = []

    def continue_after(self, last_ns: int) -> None:
        """Stamps of an earlier agent end here: one that reaches beyond the present says that the clock was set back since."""
        with self._lock:
            self._last_ns = max(self._last_ns, last_ns)
            behind_ns = self._last_ns - self._wall_ns() - self._ahead_ns
            if behind_ns > 0:
                self._enter(-behind_ns)

    def stamp_ns(self) -> int:
        """The present time since 1970 UTC, greater than every stamp before."""
        with self._lock:
            stamp = self._wall_ns() + self._ahead_ns
            if stamp <= self._last_ns:
                self._look()
                stamp = max(self._wall_ns() + self._ahead_ns, self._last_ns + 1)
            self._last_ns = stamp
            return stamp

    def check(self) -> float | None:
        """Look for a step since the look before; its size in seconds, or None. To be called at least once a second."""
        with self._lock:
            return self._look()

    def take_unreported_s(self) -> float | None:
        """Sum of the steps that no point has reported yet, in seconds; None when there was none."""
        with self._lock:
            step_ns, self._unreported_ns = self._unreported_ns, 0
            return step_ns / 1e9 if step_ns else None

    def summary(self) -> dict[str, Any]:
        """The `clock` section of summary.json."""
        with self._lock:
            return {
                "step_count": self.step_count,
                "steps": [dict(step) for step in self._steps],
                "stamps_ahead_s": self._ahead_ns / 1e9,
            }

    def _look(self) -> float | None:
        pair = self._pair()
        if pair is None:
            return None
        before, self._seen = self._seen, pair
        if before is None:
            return None
        step_ns, elapsed_ns = pair[0] - before[0], pair[1] - before[1]
        if abs(step_ns) <= max(STEP_NS_MIN, int(SLEW_SHARE_MAX * elapsed_ns)):
            return None
        self._enter(step_ns)
        return step_ns / 1e9

    def _enter(self, step_ns: int) -> None:
        # Set forward after it was set back: the stamps wait for the clock instead of running further ahead.
        self._ahead_ns = max(0, self._ahead_ns - step_ns)
        self._unreported_ns += step_ns
        self.step_count += 1
        if len(self._steps) < STEPS_KEPT_MAX:
            self._steps.append({"utc": utc_text(self._wall_ns() / 1e9), "step_s": round(step_ns / 1e9, 6)})

    def _pair(self) -> tuple[int, int] | None:
        """Wall minus monotonic time with the monotonic time; None when the two could not be read close together."""
        for _ in range(PAIR_TRIES):
            first = self._monotonic_ns()
            wall = self._wall_ns()
            second = self._monotonic_ns()
            if second - first <= PAIR_NS_MAX:
                return wall - first, first
        return None


CLOCK = StampClock()
