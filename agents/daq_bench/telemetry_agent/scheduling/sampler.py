"""One collector's samples and what became of its deadlines.

Promise: every deadline is collected or missed, a sample that failed is missed, and each failure keeps its text. A reading
that was taken and not yet parsed is neither, unless its lane is left behind. The thread of the collector's lane writes,
others read, under one lock.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, NamedTuple

from daq_bench.telemetry_agent.base.point import Point
from daq_bench.telemetry_agent.base.quantiles import Quantiles
from daq_bench.telemetry_agent.reading.collector import Collector, Reading, Unsupported

Sink = Callable[[list[Point]], None]

OK, UNSUPPORTED, FAILING = "ok", "unsupported", "failing"
DETAIL_CHARACTERS_MAX = 500


class Taken(NamedTuple):
    """A reading on its way to become points."""

    reading: Reading
    started_s: float
    read_s: float


class Sampler:
    """A collector with its tally. A sample's points go into `sink`, whose errors are the sample's own."""

    def __init__(self, collector: Collector, sink: Sink, started_s: float, is_fast: bool) -> None:
        self.collector = collector
        self.unsupported = False
        self.every, self.turn = 1, 0  # of the lane's deadlines those with number % every == turn are this sampler's
        self._sink = sink
        self._is_fast = is_fast
        self._previous: Reading | None = None
        self._taken: list[Taken] = []
        self._lock = threading.Lock()
        self._status, self._detail = OK, ""
        # Deadlines settled; `_pending`: one more is under way, or waits for its turn in the tick.
        self._expected = self._collected = self._attempts = self._points = self._faults = 0
        self._pending = self._left_behind = False
        self._last_deadline_s = self._last_success_s = started_s
        self._stop_s: float | None = None
        self._duration_s_sum = self._duration_s_max = self._duration_s_last = self._longest_gap_s = 0.0
        self._lateness = Quantiles()
        self._lateness_s_max = 0.0  # since the last snapshot

    def request_stop(self, now_s: float) -> None:
        """Silence ends with sampling: the delivery that follows may wait long for InfluxDB."""
        self._stop_s = now_s

    def leave_behind(self) -> bool:
        """The lane does not end; True when this collector has not given its last sample."""
        self._left_behind = self._pending or bool(self._taken)
        return self._left_behind

    def begin(self, deadline_s: float) -> None:
        """A tick has begun; this collector's turn comes within it."""
        with self._lock:
            self._last_deadline_s = deadline_s
            self._pending = not self.unsupported

    def miss(self) -> None:
        """Its turn in the tick does not come any more."""
        with self._lock:
            self._expected += self._pending
            self._pending = False

    def pass_deadlines(self, count: int, last_deadline_s: float) -> None:
        """Deadlines that went by during the last tick."""
        with self._lock:
            self._expected += count
            self._last_deadline_s = last_deadline_s

    def take(self, deadline_s: float) -> int:
        """Read; returns the characters that now wait to be parsed."""
        started_s = time.monotonic()
        try:
            reading = self.collector.read()
        except Unsupported as reason:
            self._refuse(started_s, reason)
            return 0
        except Exception as error:  # the boundary: one broken collector must neither end the agent nor go unrecorded
            self.settle()  # what came before it counts first
            self._fail(time.monotonic() - started_s, FAILING, f"{type(error).__name__}: {error}")
            return 0
        with self._lock:
            self._pending = False
            self._taken.append(Taken(reading, started_s, time.monotonic() - started_s))
            if self._is_fast and self._stop_s is None:  # the final sample has no deadline
                self._lateness.add(started_s - deadline_s)
                self._lateness_s_max = max(self._lateness_s_max, started_s - deadline_s)
        return sum([len(text) for text in reading.texts.values()])

    def settle(self) -> None:
        """Parse what was taken, and hand it over."""
        while self._taken:
            taken = self._taken[0]
            started_s = time.monotonic() - taken.read_s  # as if it had been read just before
            try:
                points = self.collector.parse(taken.reading, self._previous)
                self._sink(points)
            except Unsupported as reason:
                self._refuse(started_s, reason, taken)
            except Exception as error:  # as above
                self._fail(time.monotonic() - started_s, FAILING, f"{type(error).__name__}: {error}", taken)
            else:
                self._previous = taken.reading
                self._succeed(taken, time.monotonic() - started_s, len(points))

    def _refuse(self, started_s: float, reason: Unsupported, taken: Taken | None = None) -> None:
        """A collector that answered once, or may have, does not become "not there": from then on it is failing."""
        if taken is None:
            self.settle()
        status = UNSUPPORTED if self._attempts == 0 else FAILING
        self._fail(time.monotonic() - started_s, status, str(reason), taken)

    def _succeed(self, taken: Taken, duration_s: float, points: int) -> None:
        with self._lock:
            self._account(duration_s, taken)
            self._status = OK
            self._collected += 1
            self._points += points
            faults = taken.reading.faults
            if faults:
                self._faults += len(faults)
                self._detail = "; ".join(faults)[:DETAIL_CHARACTERS_MAX]
            self._longest_gap_s = max(self._longest_gap_s, taken.started_s - self._last_success_s)
            self._last_success_s = taken.started_s

    def _fail(self, duration_s: float, status: str, detail: str, taken: Taken | None = None) -> None:
        with self._lock:
            self._account(duration_s, taken)
            self._status, self._detail = status, detail[:DETAIL_CHARACTERS_MAX]
            self.unsupported = status == UNSUPPORTED

    def _account(self, duration_s: float, taken: Taken | None) -> None:
        """One deadline more is settled (the caller holds the lock): of what was taken, or of a reading that failed."""
        if taken is None:
            self._pending = False
        else:
            self._taken.remove(taken)
        self._attempts += 1
        self._expected += 1
        self._duration_s_last = duration_s
        self._duration_s_sum += duration_s
        self._duration_s_max = max(self._duration_s_max, duration_s)

    def snapshot(self, now_s: float) -> dict[str, Any]:
        """Present state, as fields of the measurement `telemetry_agent`."""
        with self._lock:
            if self.unsupported:
                return {"supported": False, "success": False}
            fields: dict[str, Any] = {
                "supported": True,
                "success": self._status == OK and self._attempts > 0,
                "duration_s": self._duration_s_last,
                "staleness_s": max(0.0, now_s - self._last_success_s),
                "points": self._points,
                "collected_samples": self._collected,
                "missed_samples": self._deadlines(now_s) - self._collected,
                "faults": self._faults,
            }
            if self._is_fast:
                fields["lateness_s"], self._lateness_s_max = self._lateness_s_max, 0.0
            return fields

    def summary(self, now_s: float) -> dict[str, Any]:
        """This collector's entry in summary.json."""
        with self._lock:
            expected = 0 if self.unsupported else self._deadlines(now_s)
            until_s = now_s if self._stop_s is None else self._stop_s
            gap_s = 0.0 if self.unsupported else max(self._longest_gap_s, until_s - self._last_success_s)
            entry = {
                "name": self.collector.name,
                "period_s": self.collector.period_s,
                "status": self._status,
                "detail": self._detail,
                "expected_samples": expected,
                "collected_samples": self._collected,
                "missed_samples": expected - self._collected,
                "longest_gap_s": round(gap_s, 6),
                "points": self._points,
                "faults": self._faults,
                "duration_s_mean": round(self._duration_s_sum / max(1, self._attempts), 6),
                "duration_s_max": round(self._duration_s_max, 6),
            }
            if self._is_fast:
                entry["lateness_s"] = self._lateness.summary()
            return entry

    def _deadlines(self, now_s: float) -> int:
        """Deadlines settled, and those that a hanging sample lets pass (the caller holds the lock)."""
        lost = len(self._taken) if self._left_behind else 0
        if not self._pending:
            return self._expected + lost
        until_s = now_s if self._stop_s is None else self._stop_s
        passed = max(0, int((until_s - self._last_deadline_s) / self.collector.period_s))
        # A sample under way is neither collected nor missed yet, unless nobody waits for it any more.
        return self._expected + passed + lost + (1 if self._left_behind else 0)
