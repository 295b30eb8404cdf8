"""The agent of one run: collectors -> encoder -> spool -> delivery, and the accounting of it all.

Promise: collection never waits for InfluxDB nor for the spool's disk; `finish` always returns, within the sum
of its limits, and leaves a summary whose numbers add up.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from telemetry_agent.collectors.agent_status import AGENT, AgentStatus
from telemetry_agent.collectors.choice import Choice
from telemetry_agent.collectors.workload import MEASUREMENTS, Workload
from telemetry_agent.cursor import Cursor
from telemetry_agent.delivery import Delivery
from telemetry_agent.files import replace_json, utc_text
from telemetry_agent.influx import Destination, InfluxWriter
from telemetry_agent.line_parser import parse_line
from telemetry_agent.point import Encoder, Point
from telemetry_agent.scheduler import Scheduler
from telemetry_agent.spool import Spool
from telemetry_agent.summary import FINISHED, RUNNING, SUMMARY_FILE, influx_section, point_counts

FINAL_SAMPLE_S = 3.0
SUMMARY_PERIOD_S = 10.0


@dataclass(frozen=True)
class Settings:
    """What the command line asked for. `destination` None: spool only."""

    spool_dir: Path
    period_s: float = 1.0
    tags: Mapping[str, str] = field(default_factory=dict)
    destination: Destination | None = None
    workload_file: Path | None = None
    drain_s: float = 10.0
    root: Path = Path("/")
    choice: Choice = field(default_factory=Choice)
    instance: str = ""  # tells two agents of one run apart


def cpu_seconds() -> float:
    """CPU time of this process and of the tools it ran (smartctl)."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Agent:
    """Life: construct (opens the spool), `start`, `refresh_summary` now and then, `finish`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._started_utc = utc_text()
        self._started_s = time.monotonic()
        self._encoder = Encoder(settings.tags)
        self.spool = Spool(settings.spool_dir, MEASUREMENTS)
        self._cursor = Cursor(settings.spool_dir, self.spool.size_bytes)
        self._delivery = self._make_delivery()
        self._workload = self._make_workload()
        self.scheduler = Scheduler(self._take)
        for collector in settings.choice.collectors(settings.period_s, settings.root):
            self.scheduler.add(collector)
        if self._workload:
            self.scheduler.add(self._workload)
        self.scheduler.add_status(AgentStatus(settings.period_s, self._snapshot, settings.instance))

    def start(self) -> None:
        """Start sampling and delivering."""
        self.refresh_summary()
        self.scheduler.start()
        if self._delivery:
            self._delivery.start()

    def refresh_summary(self) -> None:
        """Write the summary of a run under way, so that a killed agent leaves an accounting."""
        try:
            replace_json(self._settings.spool_dir / SUMMARY_FILE, self._summary(RUNNING))
        except OSError as error:  # a full disk is already reported by the spool; sampling goes on
            print(f"telemetry_agent: warning: {SUMMARY_FILE}: {error.strerror}", file=sys.stderr, flush=True)

    def finish(self) -> dict[str, Any]:
        """Final samples, close the spool, drain, write the summary."""
        for name in self.scheduler.stop(FINAL_SAMPLE_S):
            print(f"telemetry_agent: warning: collector {name} hangs, left behind", file=sys.stderr, flush=True)
        self.spool.close()
        if self._delivery:
            self._delivery.stop(self._settings.drain_s)
        if self._workload and self._workload.rejected:
            path, count = self._workload.path, self._workload.rejected
            print(
                f"telemetry_agent: warning: {path}: {count} lines rejected, see {SUMMARY_FILE}",
                file=sys.stderr,
            )
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
        return Delivery(self.spool.path, self._cursor, writer, lambda: self.spool.size_bytes)

    def _make_workload(self) -> Workload | None:
        path = self._settings.workload_file
        if path is None:
            return None
        last = self.spool.recovery.last_workload_line
        after_ns = parse_line(last.decode("utf-8", "replace")).time_ns if last else None
        return Workload(self._settings.period_s, path, after_ns)

    def _take(self, points: list[Point]) -> None:
        self.spool.put([self._encoder.encode(point) for point in points])

    def _points(self) -> dict[str, int]:
        # Delivered before spooled: a batch settled in between must not make "undelivered" negative.
        delivered, rejected = self._cursor.delivered_points, self._cursor.rejected_points
        spooled = self.spool.spooled_points
        return point_counts(max(spooled, self.spool.collected_points), spooled, delivered, rejected)

    def _snapshot(self) -> dict[str, dict[str, Any]]:
        counts = self._points()
        agent: dict[str, Any] = {
            "cpu_s": cpu_seconds(),
            "spool_bytes": self.spool.size_bytes,
            **{f"{name}_points": count for name, count in counts.items()},
        }
        if self._delivery:
            agent["influx_reachable"] = self._delivery.outages.reachable
        return {**self.scheduler.snapshot(), AGENT: agent}

    def _summary(self, state: str) -> dict[str, Any]:
        settings, destination = self._settings, self._settings.destination
        seconds = cpu_seconds()
        elapsed_s = time.monotonic() - self._started_s
        recovery = self.spool.recovery
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
            "spool": {
                "bytes": self.spool.size_bytes,
                "recovered_points": recovery.points,
                "torn_bytes": recovery.torn_bytes,
                "last_error": self.spool.last_error,
            },
            "influx": influx_section(
                destination.url if destination else None,
                destination.database if destination else None,
                self._delivery,
            ),
            "workload": self._workload.summary() if self._workload else None,
            "cpu": {
                "seconds": round(seconds, 4),
                "percent_of_one_core": round(100 * seconds / max(elapsed_s, 1e-9), 3),
            },
        }
