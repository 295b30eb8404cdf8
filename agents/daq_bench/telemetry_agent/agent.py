"""The agent of one run: collectors -> encoder -> spool -> delivery, and the accounting of it all.

Promise: collection never waits for InfluxDB nor for the spool's disk; `finish` always returns, within the sum of its limits,
and leaves a summary whose numbers add up.
"""

from __future__ import annotations

import gc
import os
import resource
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from daq_bench.telemetry_agent.base.clock import CLOCK
from daq_bench.telemetry_agent.base.files import replace_json, utc_text
from daq_bench.telemetry_agent.base.point import Encoder, Point
from daq_bench.telemetry_agent.base.priority import raise_own
from daq_bench.telemetry_agent.collectors.agent_status import AGENT, AgentStatus
from daq_bench.telemetry_agent.collectors.choice import Choice
from daq_bench.telemetry_agent.collectors.workload import MEASUREMENTS, Workload
from daq_bench.telemetry_agent.delivery.delivery import Delivery, warn
from daq_bench.telemetry_agent.delivery.influx import Destination, InfluxWriter
from daq_bench.telemetry_agent.reading.collector import FAST, SLOW, SLOW_PERIOD_S_MIN
from daq_bench.telemetry_agent.scheduling.scheduler import Scheduler
from daq_bench.telemetry_agent.spool.cursor import Cursor
from daq_bench.telemetry_agent.spool.room import Limits
from daq_bench.telemetry_agent.spool.spool import Spool
from daq_bench.telemetry_agent.summary import FINISHED, RUNNING, SUMMARY_FILE, influx_section, point_counts

FINAL_SAMPLE_S = 3.0
SUMMARY_PERIOD_S = 10.0
SWITCH_INTERVAL_S = 0.001  # a tick waits so long at most for another thread to let go of the interpreter


@dataclass(frozen=True)
class Settings:
    """The choices of the command line. `destination` None: spool only."""

    spool_dir: Path
    period_s: float = 1.0
    tags: Mapping[str, str] = field(default_factory=dict)
    destination: Destination | None = None
    workload_file: Path | None = None
    drain_s: float = 10.0
    root: Path = Path("/")
    limits: Limits = field(default_factory=Limits)
    choice: Choice = field(default_factory=Choice)
    instance: str = ""  # tells two agents of one run apart


class Cost(NamedTuple):
    """CPU time so far of this process and of the tools that it ran (smartctl, ipmitool), and its largest memory."""

    own_s: float
    tools_s: float
    rss_max_bytes: int


def cost() -> Cost:
    """Returns the cost of the agent and its tools until now."""
    own, tools = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return Cost(own.ru_utime + own.ru_stime, tools.ru_utime + tools.ru_stime, own.ru_maxrss * 1024)


class Agent:
    """Life: construct (opens the spool), `start`, `refresh_summary` now and then, `finish`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._started_utc = utc_text()
        self._started_s = time.monotonic()
        self._summary_error: str | None = None
        self._encoder = Encoder(settings.tags)
        self.spool = Spool(settings.spool_dir, MEASUREMENTS, settings.limits)
        CLOCK.continue_after(self.spool.recovery.last_time_ns)
        self._cursor = Cursor(settings.spool_dir, self.spool.size_bytes, self.spool.recovery.offset_points)
        self.spool.watch(self._cursor)
        self._delivery = self._make_delivery()
        self._workload = self._make_workload()
        self.scheduler = Scheduler(self._take, self._take_fast, self.spool.wake, self._clock_stepped, self._hangs)
        for collector in settings.choice.collectors(settings.period_s, settings.root):
            if getattr(collector, "pace", SLOW) != FAST:
                collector.period_s = max(SLOW_PERIOD_S_MIN, collector.period_s)
            self.scheduler.add(collector)
        if self._workload:
            self.scheduler.add(self._workload)
        self.scheduler.add_status(
            AgentStatus(max(SLOW_PERIOD_S_MIN, settings.period_s), self._snapshot, settings.instance)
        )

    def start(self) -> None:
        """Start sampling and delivering."""
        self.refresh_summary()
        # All threads alike: one that held the interpreter and waited for a processor would make the fast one wait.
        raise_own(real_time=False)
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        gc.collect()
        gc.freeze()  # what lives until the end is never looked through again
        self.scheduler.start()
        if self._delivery:
            self._delivery.start()

    def refresh_summary(self) -> None:
        """Write the summary of a run under way, so that a killed agent leaves an accounting."""
        try:
            replace_json(self._settings.spool_dir / SUMMARY_FILE, self._summary(RUNNING))
        except OSError as error:  # a full disk is already reported by the spool; sampling goes on
            if self._summary_error != error.strerror:
                warn(f"{SUMMARY_FILE}: {error.strerror}")
            self._summary_error = error.strerror

    def finish(self) -> dict[str, Any]:
        """Final samples, close the spool, drain, write the summary."""
        for name in self.scheduler.stop(FINAL_SAMPLE_S):
            warn(f"collector {name} hangs, left behind")
        self.spool.close()
        if self._delivery:
            self._delivery.stop(self._settings.drain_s)
        if self._workload and self._workload.rejected:
            path, count = self._workload.path, self._workload.rejected
            warn(f"{path}: {count} lines rejected, see {SUMMARY_FILE}")
        self._cursor.close()
        summary = self._summary(FINISHED)
        replace_json(self._settings.spool_dir / SUMMARY_FILE, summary, durable=True)
        self.spool.release()
        return summary

    def _make_delivery(self) -> Delivery | None:
        destination = self._settings.destination
        if destination is None:
            return None
        writer = InfluxWriter(destination)
        return Delivery(self.spool.path, self._cursor, writer, lambda: self.spool.size_bytes, self.spool.fence)

    def _make_workload(self) -> Workload | None:
        path = self._settings.workload_file
        if path is None:
            return None
        recovery = self.spool.recovery
        return Workload(self._settings.period_s, path, recovery.workload_time_ns, recovery.workload_points)

    def _take(self, points: list[Point]) -> None:
        self._put(points, fast=False)

    def _take_fast(self, points: list[Point]) -> None:
        self._put(points, fast=True)

    def _put(self, points: list[Point], fast: bool) -> None:
        if not points:
            return
        encode = self._encoder.encode
        lines = [encode(point) for point in points]
        counts: dict[str, int] = {}
        for point in points:
            counts[point.measurement] = counts.get(point.measurement, 0) + 1
        self.spool.put_batch("".join(lines), counts, fast)

    @staticmethod
    def _hangs(name: str) -> None:
        warn(f"collector {name} hangs: the other fast ones go on without it")

    @staticmethod
    def _clock_stepped(step_s: float) -> None:
        warn(f"the machine's clock was set {'forward' if step_s > 0 else 'back'} by {abs(step_s):.3f} s")

    def _points(self) -> dict[str, int]:
        # Delivered before spooled: a batch settled in between must not make "undelivered" negative.
        delivered, rejected = self._cursor.delivered_points, self._cursor.rejected_points
        known = self.spool.ledger.totals()
        return point_counts(
            known["collected"], known["spooled"], delivered, rejected, known["thinned"], known["thinned_delivered"]
        )

    def _snapshot(self) -> dict[str, dict[str, Any]]:
        counts, spent = self._points(), cost()
        agent: dict[str, Any] = {
            "cpu_s": spent.own_s,
            "tools_cpu_s": spent.tools_s,
            "rss_max_bytes": spent.rss_max_bytes,
            "clock_step_s": CLOCK.take_unreported_s(),
            "spool_bytes": self.spool.size_bytes,
            **{f"{name}_points": count for name, count in counts.items()},
        }
        if self._delivery:
            agent["influx_reachable"] = self._delivery.outages.reachable
        return {**self.scheduler.snapshot(), AGENT: agent}

    def _summary(self, state: str) -> dict[str, Any]:
        settings, destination = self._settings, self._settings.destination
        spent = cost()
        elapsed_s = max(time.monotonic() - self._started_s, 1e-9)
        return {
            "schema_version": 1,
            "state": state,
            "started_utc": self._started_utc,
            "finished_utc": utc_text() if state == FINISHED else None,
            "host": settings.tags.get("host") or os.uname().nodename,
            "tags": dict(settings.tags),
            "period_s": settings.period_s,
            "collectors": self.scheduler.summary(),
            "points": self._points(),
            "measurements": self.spool.ledger.measurements(),
            "spool": self.spool.summary(),
            "clock": CLOCK.summary(),
            "priority": self.scheduler.priority(),
            "influx": influx_section(
                destination.url if destination else None,
                destination.database if destination else None,
                self._delivery,
            ),
            "workload": self._workload.summary() if self._workload else None,
            # The cost of this process; the tools that it runs are others' programs and stand apart.
            "cpu": {
                "seconds": round(spent.own_s, 4),
                "percent_of_one_core": round(100 * spent.own_s / elapsed_s, 3),
                "tools_seconds": round(spent.tools_s, 4),
                "tools_percent_of_one_core": round(100 * spent.tools_s / elapsed_s, 3),
            },
            "memory": {"rss_max_bytes": spent.rss_max_bytes},
        }
