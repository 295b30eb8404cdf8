"""Runs each collector at its own period, in its own thread, against absolute deadlines.

Promise: deadline k of a collector is `epoch + k * period` whatever happened before, so periods do not drift;
a collector that hangs delays only itself (reading an NVMe temperature can wait seconds behind a saturated
queue); every deadline is accounted as collected or missed; every failure keeps its text.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Callable

from telemetry_agent.collector import Collector, Reading, Unsupported
from telemetry_agent.point import Point

Sink = Callable[[list[Point]], None]

OK, UNSUPPORTED, FAILING = "ok", "unsupported", "failing"


class Tally:
    """What became of one collector's deadlines. Its thread writes, others read: one lock guards it all."""

    def __init__(self, started_s: float) -> None:
        self.lock = threading.Lock()
        self.status = OK
        self.detail = ""
        self.expected = self.collected = self.points = self.faults = 0
        self.duration_s_sum = self.duration_s_max = self.duration_s_last = 0.0
        self.longest_gap_s = 0.0
        self.last_success_s = started_s
        self.last_deadline_s = started_s

    def succeed(self, started_s: float, ended_s: float, points: int, reading: Reading) -> None:
        """A sample was taken and handed over."""
        with self.lock:
            self.status = OK
            self.collected += 1
            self.points += points
            if reading.faults:
                self.faults += len(reading.faults)
                self.detail = "; ".join(reading.faults)[:500]
            self._time(started_s, ended_s)
            self.longest_gap_s = max(self.longest_gap_s, started_s - self.last_success_s)
            self.last_success_s = started_s

    def fail(self, started_s: float, ended_s: float, status: str, detail: str) -> None:
        """A sample was not taken."""
        with self.lock:
            self.status, self.detail = status, detail[:500]
            if status == UNSUPPORTED:
                self.expected = 0
            self._time(started_s, ended_s)

    def _time(self, started_s: float, ended_s: float) -> None:
        self.duration_s_last = ended_s - started_s
        self.duration_s_sum += self.duration_s_last
        self.duration_s_max = max(self.duration_s_max, self.duration_s_last)


class Runner:
    """One collector's thread and tally."""

    def __init__(self, collector: Collector, sink: Sink, epoch_s: float) -> None:
        self.collector = collector
        self.tally = Tally(epoch_s)
        self._sink = sink
        self._epoch_s = epoch_s
        self._attempts = 0
        self._previous: Reading | None = None
        self._in_flight = False
        self._left_behind = False
        self._stop_s: float | None = None
        self._stop = threading.Event()
        # A daemon, because a read stuck in the kernel must not keep the agent from ending.
        self._thread = threading.Thread(target=self._run, name=collector.name, daemon=True)

    def start(self) -> None:
        """Begin sampling."""
        self._thread.start()

    def request_stop(self) -> None:
        """Ask for the final sample and the end."""
        self._stop_s = time.monotonic()
        self._stop.set()

    def join(self, until_s: float) -> bool:
        """Wait to the monotonic time given; False when the collector hangs and is left behind."""
        self._thread.join(max(0.0, until_s - time.monotonic()))
        self._left_behind = self._thread.is_alive()
        return not self._left_behind

    def _run(self) -> None:
        period_s = self.collector.period_s
        number = 0
        while not self._stop.wait(max(0.0, self._epoch_s + number * period_s - time.monotonic())):
            deadline_s = self._epoch_s + number * period_s
            self._sample(deadline_s)
            if self.tally.status == UNSUPPORTED:
                return
            following = max(number + 1, int((time.monotonic() - self._epoch_s) / period_s) + 1)
            with self.tally.lock:
                self.tally.expected += following - number - 1  # deadlines that passed while this sample was taken
                self.tally.last_deadline_s = self._epoch_s + (following - 1) * period_s
            number = following
        self._sample(time.monotonic())

    def _sample(self, deadline_s: float) -> None:
        with self.tally.lock:
            self.tally.expected += 1
            self.tally.last_deadline_s = deadline_s
            self._in_flight = True
        started_s = time.monotonic()
        try:
            reading = self.collector.read()
            points = self.collector.parse(reading, self._previous)
            self._sink(points)
        except Unsupported as reason:
            # What answered once, or may have, does not become "not there": from then on it is failing.
            status = UNSUPPORTED if self._attempts == 0 else FAILING
            self.tally.fail(started_s, time.monotonic(), status, str(reason))
        except Exception as error:  # the boundary: one broken collector must neither end the agent nor go unrecorded
            self.tally.fail(started_s, time.monotonic(), FAILING, f"{type(error).__name__}: {error}")
        else:
            self._previous = reading
            self.tally.succeed(started_s, time.monotonic(), len(points), reading)
        with self.tally.lock:
            self._attempts += 1
            self._in_flight = False

    def snapshot(self, now_s: float) -> dict[str, Any]:
        """Present state, as fields of the measurement `telemetry_agent`."""
        tally = self.tally
        with tally.lock:
            supported = tally.status != UNSUPPORTED
            if not supported:
                return {"supported": False, "success": False}
            return {
                "supported": True,
                "success": tally.status == OK and self._attempts > 0,
                "duration_s": tally.duration_s_last,
                "staleness_s": max(0.0, now_s - tally.last_success_s),
                "points": tally.points,
                "collected_samples": tally.collected,
                "missed_samples": self._expected(now_s) - tally.collected,
                "faults": tally.faults,
            }

    def summary(self, now_s: float) -> dict[str, Any]:
        """This collector's entry in summary.json."""
        tally = self.tally
        with tally.lock:
            supported = tally.status != UNSUPPORTED
            expected = self._expected(now_s) if supported else 0
            # Silence ends with sampling: the delivery that follows may wait long for InfluxDB.
            until_s = now_s if self._stop_s is None else self._stop_s
            gap_s = max(tally.longest_gap_s, until_s - tally.last_success_s) if supported else 0.0
            return {
                "name": self.collector.name,
                "period_s": self.collector.period_s,
                "status": tally.status,
                "detail": tally.detail,
                "expected_samples": expected,
                "collected_samples": tally.collected,
                "missed_samples": expected - tally.collected,
                "longest_gap_s": round(gap_s, 6),
                "points": tally.points,
                "faults": tally.faults,
                "duration_s_mean": round(tally.duration_s_sum / max(1, self._attempts), 6),
                "duration_s_max": round(tally.duration_s_max, 6),
            }

    def _expected(self, now_s: float) -> int:
        """Deadlines settled, and those that a hanging sample lets pass (the caller holds the lock)."""
        expected = self.tally.expected
        if self._in_flight:
            until_s = now_s if self._stop_s is None else self._stop_s
            expected += max(0, int((until_s - self.tally.last_deadline_s) / self.collector.period_s))
            if not self._left_behind:
                expected -= 1  # a sample under way is neither collected nor missed yet
        return expected


class Scheduler:
    """All runners. The status collector runs half a period later, to report the samples just taken."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._epoch_s = time.monotonic()
        self._runners: list[Runner] = []
        self._last: list[Runner] = []

    def add(self, collector: Collector) -> None:
        """A collector, from the next `start` on."""
        self._runners.append(Runner(collector, self._sink, self._epoch_s))

    def add_status(self, collector: Collector) -> None:
        """The collector that reports the others: offset by half a period and stopped last."""
        self._last.append(Runner(collector, self._sink, self._epoch_s + 0.5 * collector.period_s))

    def start(self) -> None:
        """Start every thread."""
        for runner in self._runners + self._last:
            runner.start()

    def stop(self, timeout_s: float) -> list[str]:
        """Take the final samples; returns the names of collectors that hang and were left behind."""
        until_s = time.monotonic() + timeout_s
        hanging = []
        for group in (self._runners, self._last):
            for runner in group:
                runner.request_stop()
            hanging += [
                runner.collector.name for runner in group if not runner.join(max(until_s, time.monotonic() + 0.5))
            ]
        return hanging

    def snapshot(self) -> dict[str, dict[str, Any]]:
        """Fields by collector name."""
        now_s = time.monotonic()
        return {runner.collector.name: runner.snapshot(now_s) for runner in self._runners + self._last}

    def summary(self) -> list[dict[str, Any]]:
        """The `collectors` list of summary.json."""
        now_s = time.monotonic()
        return [runner.summary(now_s) for runner in self._runners + self._last]
