"""Runs the collectors against absolute deadlines: all fast ones in one thread, each slow one in its own.

Promise: deadline k of a lane is `epoch + k * period` whatever happened before, so periods do not drift; a slow
collector that hangs delays only itself (ipmitool can take seconds); every deadline is accounted as collected or missed;
every failure keeps its text; how late each fast sample began is on record.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Callable

from telemetry_agent.clock import CLOCK
from telemetry_agent.collector import FAST, SLOW, Collector
from telemetry_agent.priority import raise_own
from telemetry_agent.sampler import Sampler, Sink


def _nothing() -> None:
    """No end of a tick to be told."""


class Lane:
    """One thread that takes samples of its collectors, one after the other, at each deadline.

    `ended` is called after each tick, `clock_seen` with the size in seconds of a step of the machine's clock."""

    def __init__(
        self, name: str, period_s: float, epoch_s: float, ended: Callable[[], None], clock_seen: Callable[[float], None]
    ) -> None:
        self.priority = ""  # what the system lets it have, once it runs
        self._name = name
        self.samplers: list[Sampler] = []
        self.period_s = period_s
        self._epoch_s = epoch_s
        self._ended, self._clock_seen = ended, clock_seen
        # Held until the end is asked for: waiting for a lock costs a quarter of what waiting for an Event does.
        self._stop = threading.Lock()
        self._stop.acquire()
        # A daemon, because a read stuck in the kernel must not keep the agent from ending.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin sampling."""
        self._thread.start()

    def request_stop(self) -> None:
        """Ask for the final samples and the end."""
        now_s = time.monotonic()
        for sampler in self.samplers:
            sampler.request_stop(now_s)
        self._stop.release()

    def join(self, until_s: float) -> list[str]:
        """Wait to the monotonic time given; the names of the collectors that hang, or wait behind one, and are left behind."""
        self._thread.join(max(0.0, until_s - time.monotonic()))
        if not self._thread.is_alive():
            return []
        return [sampler.collector.name for sampler in self.samplers if sampler.leave_behind()]

    def _run(self) -> None:
        self.priority = raise_own(self._name == FAST)
        number = 0
        deadline_s = self._epoch_s
        while not self._stop.acquire(timeout=max(0.0, deadline_s - time.monotonic())):
            self._tick(deadline_s)
            if all(sampler.unsupported for sampler in self.samplers):
                return
            following = max(number + 1, int((time.monotonic() - self._epoch_s) / self.period_s) + 1)
            if following > number + 1:  # deadlines that passed during this tick
                for sampler in self.samplers:
                    sampler.pass_deadlines(following - number - 1, self._epoch_s + (following - 1) * self.period_s)
            number = following
            deadline_s = self._epoch_s + number * self.period_s
        self._tick(time.monotonic())

    def _tick(self, deadline_s: float) -> None:
        step_s = CLOCK.check()
        if step_s is not None:
            self._clock_seen(step_s)
        for sampler in self.samplers:
            sampler.begin(deadline_s)
        for sampler in self.samplers:
            if not sampler.unsupported:
                sampler.sample(deadline_s)
        self._ended()


class Scheduler:
    """All lanes. The status collector runs half a period later, to report the samples just taken.

    `sink` takes each sample's points, `fast_sink` those of the fast collectors; `tick_ended` follows every tick."""

    def __init__(
        self,
        sink: Sink,
        fast_sink: Sink | None = None,
        tick_ended: Callable[[], None] = _nothing,
        clock_seen: Callable[[float], None] = lambda step_s: None,
    ) -> None:
        self._sink, self._fast_sink = sink, fast_sink or sink
        self._tick_ended, self._clock_seen = tick_ended, clock_seen
        self._epoch_s = time.monotonic()
        self._fast: dict[float, Lane] = {}  # by period: one lane, unless somebody gives fast collectors different ones
        self._lanes: list[Lane] = []
        self._last: list[Lane] = []

    def add(self, collector: Collector) -> None:
        """A collector, from the next `start` on."""
        if getattr(collector, "pace", SLOW) != FAST:
            self._lanes.append(self._lane(collector, self._epoch_s))
            return
        lane = self._fast.get(collector.period_s)
        if lane is None:
            lane = self._new_lane(FAST, collector.period_s, self._epoch_s)
            self._fast[collector.period_s] = lane
            self._lanes.append(lane)
        lane.samplers.append(Sampler(collector, self._fast_sink, self._epoch_s, is_fast=True))

    def add_status(self, collector: Collector) -> None:
        """The collector that reports the others: offset by half a period and stopped last."""
        self._last.append(self._lane(collector, self._epoch_s + 0.5 * collector.period_s))

    def start(self) -> None:
        """Start every thread."""
        for lane in self._lanes + self._last:
            lane.start()

    def stop(self, timeout_s: float) -> list[str]:
        """Take the final samples; returns the names of collectors that hang and were left behind."""
        until_s = time.monotonic() + timeout_s
        hanging: list[str] = []
        for group in (self._lanes, self._last):
            for lane in group:
                lane.request_stop()
            for lane in group:
                hanging += lane.join(max(until_s, time.monotonic() + 0.5))
        return hanging

    def snapshot(self) -> dict[str, dict[str, Any]]:
        """Fields by collector name."""
        now_s = time.monotonic()
        return {sampler.collector.name: sampler.snapshot(now_s) for sampler in self._samplers()}

    def summary(self) -> list[dict[str, Any]]:
        """The `collectors` list of summary.json."""
        now_s = time.monotonic()
        return [sampler.summary(now_s) for sampler in self._samplers()]

    def priority(self) -> str:
        """Of the fast collectors' thread: "round robin" is what keeps its samples in time on a busy machine."""
        return next((lane.priority for lane in self._fast.values()), "")

    def _samplers(self) -> list[Sampler]:
        return [sampler for lane in self._lanes + self._last for sampler in lane.samplers]

    def _new_lane(self, name: str, period_s: float, epoch_s: float) -> Lane:
        return Lane(name, period_s, epoch_s, self._tick_ended, self._clock_seen)

    def _lane(self, collector: Collector, epoch_s: float) -> Lane:
        lane = self._new_lane(collector.name, collector.period_s, epoch_s)
        lane.samplers.append(Sampler(collector, self._sink, epoch_s, is_fast=False))
        return lane
