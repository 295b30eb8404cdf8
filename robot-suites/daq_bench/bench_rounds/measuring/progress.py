"""Shows on stderr what runs now and how long it will still take: one line redrawn on a terminal, a line every ten seconds in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

from daq_bench.rig.run.progress import LOG_EVERY_S, clock


class TimeLeft:
    """The planned time that is left, scaled by how the time so far compares with what was planned for it."""

    def __init__(
        self, planned_s: float, stream: TextIO = sys.stderr, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._planned_s, self._stream, self._now = planned_s, stream, now
        self._started = now()
        self._done_s = self._running_s = 0.0
        self._shown_at = float("-inf")

    def begin(self, text: str, expected_s: float) -> None:
        self._done_s += self._running_s
        self._running_s = expected_s
        if not self._stream.isatty() and self._now() - self._shown_at < LOG_EVERY_S:
            return
        self._shown_at = self._now()
        line = f"{clock(self._now() - self._started)} elapsed, about {clock(self.left_s())} left | {text}"
        self._stream.write(f"\r\x1b[K{line[:150]}" if self._stream.isatty() else f"{line}\n")
        self._stream.flush()

    def left_s(self) -> float:
        elapsed = self._now() - self._started
        # A few measurements say little about the pace of the rest.
        pace = elapsed / self._done_s if self._done_s > 30 else 1.0
        return max(0.0, self._planned_s - self._done_s) * pace

    def say(self, text: str) -> None:
        """A line that stays."""
        self._stream.write(f"\r\x1b[K{text}\n" if self._stream.isatty() else f"{text}\n")
        self._stream.flush()
