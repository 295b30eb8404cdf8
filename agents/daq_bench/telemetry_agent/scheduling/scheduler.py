"""Runs the collectors against absolute deadlines: all fast ones in one thread, each slow one in its own.

Promise: deadline k of a lane is `epoch + k * period` whatever happened before, so periods do not drift; a slow
collector that hangs delays only itself (ipmitool can take seconds), and a fast one the others of its lane for a few
seconds, until they get a thread of their own; every deadline is accounted as collected or missed;
every failure keeps its text; how late each fast sample began is on record. Fast samples are read at their deadlines and
parsed together once a second: parsing ten with a warm cache costs what two or three alone do.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Callable

from daq_bench.telemetry_agent.base.clock import CLOCK
from daq_bench.telemetry_agent.base.priority import raise_own
from daq_bench.telemetry_agent.reading.collector import FAST, PROMPT, SLOW, Collector
from daq_bench.telemetry_agent.scheduling.sampler import Sampler, Sink

SETTLE_S = 1.0
SETTLE_CHARACTERS_MAX = 1024 * 1024  # read and not yet parsed, of one lane


def _nothing() -> None:
    """Default callback: does nothing."""


class Lane:
    """One thread that takes samples of its collectors, one after the other, at each deadline.

    `ended` is called after each tick that handed points over, `clock_seen` with the size in seconds of a step of the machine's clock."""

    def __init__(
        self, name: str, period_s: float, epoch_s: float, ended: Callable[[], None], clock_seen: Callable[[float], None]
    ) -> None:
        self.priority = ""  # what the system lets it have, once it runs
        self._name = name
        self.samplers: list[Sampler] = []
        self.period_s = period_s
        self._epoch_s = epoch_s
        # Half a second off the deadlines at which the slow lanes wake; these parse each sample at once.
        self._settle_s = SETTLE_S if name == FAST else 0.0
        self._settled_s, self._waiting_characters = epoch_s - 0.5 * self._settle_s, 0
        self._ended, self._clock_seen = ended, clock_seen
        self._number = 0  # of the present tick
        self._reading: tuple[Sampler, float] | None = None  # which is under way, and since when
        self._due: list[Sampler] = []  # of the present tick
        self._watched: tuple[Sampler, float] | None = None
        self._lock = threading.Lock()  # of `samplers` against `_reading`: what is being read stays
        # Held until the end is asked for: waiting for a lock costs a quarter of what waiting for an Event does.
        self._stop = threading.Lock()
        self._stop.acquire()
        # A daemon, because a read stuck in the kernel must not keep the agent from ending.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin sampling."""
        self._thread.start()

    def take_turns(self, sampler: Sampler) -> None:
        """One more that is sampled in this thread, but not at every deadline: as near to its own period as these allow."""
        sampler.every = max(1, round(sampler.collector.period_s / self.period_s))
        sampler.turn = sum(other.every > 1 for other in self.samplers) % sampler.every
        sampler.collector.period_s = sampler.every * self.period_s
        self.samplers.append(sampler)

    def part(self) -> Lane | None:
        """Called every second or so: a lane for all the others, not yet started, when the same reading is under way for the second time.

        A hanging one keeps this lane, and goes on in it should it come back. Two looks, since a machine that stood still makes all hang."""
        with self._lock:
            hanging, before = self._reading, self._watched
            self._watched = hanging
            if hanging is None or hanging != before or len(self.samplers) == 1:
                return None
            others = [one for one in self.samplers if one is not hanging[0]]
            self.samplers = [hanging[0]]
            waiting = self._due[self._due.index(hanging[0]) + 1 :]
            lane = Lane(self._name, self.period_s, self._epoch_s, self._ended, self._clock_seen)
            lane.samplers = others
            lane._number = max(self._number + 1, int((time.monotonic() - self._epoch_s) / self.period_s) + 1)
            for sampler in others:
                if sampler in waiting:
                    sampler.miss()
                self._pass(sampler, self._number + 1, lane._number)
            return lane

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
        deadline_s = self._epoch_s + self._number * self.period_s
        while not self._stop.acquire(timeout=max(0.0, deadline_s - time.monotonic())):
            self._tick(deadline_s, self._number)
            if all(sampler.unsupported for sampler in self.samplers):
                return
            following = max(self._number + 1, int((time.monotonic() - self._epoch_s) / self.period_s) + 1)
            if following > self._number + 1:  # deadlines that passed during this tick
                for sampler in self.samplers:
                    self._pass(sampler, self._number + 1, following)
            self._number = following
            deadline_s = self._epoch_s + following * self.period_s
        self._tick(time.monotonic())

    def _pass(self, sampler: Sampler, first: int, end: int) -> None:
        """Counts as passed this sampler's own deadlines, out of those from `first` to before `end`."""
        before, last = ((number - 1 - sampler.turn) // sampler.every for number in (first, end))
        if last > before:
            own = last * sampler.every + sampler.turn
            sampler.pass_deadlines(last - before, self._epoch_s + own * self.period_s)

    def _tick(self, deadline_s: float, number: int | None = None) -> None:
        """`number` None: the last samples, of all."""
        step_s = CLOCK.check()
        if step_s is not None:
            self._clock_seen(step_s)
        with self._lock:
            self._due = due = [one for one in self.samplers if number is None or number % one.every == one.turn]
        for sampler in due:
            sampler.begin(deadline_s)
        for sampler in due:
            with self._lock:
                if sampler.unsupported or sampler not in self.samplers:  # it is another lane's by now
                    continue
                self._reading = (sampler, deadline_s)
            self._waiting_characters += sampler.take(deadline_s)
            with self._lock:
                self._reading = None
        # Half a period early rather than late: deadlines are whole periods apart.
        due_s = self._settled_s + self._settle_s - 0.5 * self.period_s
        if number is None or deadline_s >= due_s or self._waiting_characters > SETTLE_CHARACTERS_MAX:
            self._settle(deadline_s)

    def _settle(self, deadline_s: float) -> None:
        for sampler in self.samplers:
            sampler.settle()
        self._settled_s, self._waiting_characters = deadline_s, 0
        self._ended()


class Scheduler:
    """All lanes. The status collector runs three quarters of a period later, to report the samples just settled; its thread looks
    after the fast lane.

    `sink` takes each sample's points, `fast_sink` those of the fast collectors; `tick_ended` follows every tick of these that
    handed points over. `hangs` is told the name of a collector that the fast lane no longer waits for."""

    def __init__(
        self,
        sink: Sink,
        fast_sink: Sink | None = None,
        tick_ended: Callable[[], None] = _nothing,
        clock_seen: Callable[[float], None] = lambda step_s: None,
        hangs: Callable[[str], None] = lambda name: None,
    ) -> None:
        self._sink, self._fast_sink = sink, fast_sink or sink
        self._tick_ended, self._clock_seen, self._hangs = tick_ended, clock_seen, hangs
        self._lock = threading.Lock()  # of the set of lanes, once they run
        self._stopping = False
        self._epoch_s = time.monotonic()
        self._fast: dict[float, Lane] = {}  # by period: one lane, unless somebody gives fast collectors different ones
        self._lanes: list[Lane] = []
        self._last: list[Lane] = []

    def add(self, collector: Collector) -> None:
        """A collector, from the next `start` on."""
        if getattr(collector, "pace", SLOW) != FAST:
            lane = next(iter(self._fast.values()), None)
            if lane is None or getattr(collector, "pace", SLOW) != PROMPT:
                self._lanes.append(self._lane(collector, self._epoch_s))
            else:
                lane.take_turns(Sampler(collector, self._sink, self._epoch_s, is_fast=False))
            return
        lane = self._fast.get(collector.period_s)
        if lane is None:
            lane = Lane(FAST, collector.period_s, self._epoch_s, self._tick_ended, self._clock_seen)
            self._fast[collector.period_s] = lane
            self._lanes.append(lane)
        lane.samplers.append(Sampler(collector, self._fast_sink, self._epoch_s, is_fast=True))

    def add_status(self, collector: Collector) -> None:
        """The collector that reports the others: offset by three quarters of a period and stopped last."""
        self._last.append(self._lane(collector, self._epoch_s + 0.75 * collector.period_s, self._watch))

    def start(self) -> None:
        """Start every thread."""
        for lane in self._lanes + self._last:
            lane.start()

    def stop(self, timeout_s: float) -> list[str]:
        """Take the final samples; returns the names of collectors that hang and were left behind."""
        until_s = time.monotonic() + timeout_s
        hanging: list[str] = []
        with self._lock:
            self._stopping = True
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
        """Returns the priority of the fast collectors' thread: "round robin" keeps its samples in time on a busy machine."""
        return next((lane.priority for lane in self._fast.values()), "")

    def _watch(self) -> None:
        with self._lock:
            for period_s, lane in [] if self._stopping else list(self._fast.items()):
                others = lane.part()
                if others is not None:
                    self._fast[period_s] = others
                    self._lanes.append(others)
                    others.start()
                    self._hangs(lane.samplers[0].collector.name)

    def _samplers(self) -> list[Sampler]:
        return [sampler for lane in self._lanes + self._last for sampler in lane.samplers]

    def _lane(self, collector: Collector, epoch_s: float, ended: Callable[[], None] = _nothing) -> Lane:
        lane = Lane(collector.name, collector.period_s, epoch_s, ended, self._clock_seen)
        lane.samplers.append(Sampler(collector, self._sink, epoch_s, is_fast=False))
        return lane
