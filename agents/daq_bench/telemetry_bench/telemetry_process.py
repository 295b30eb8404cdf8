"""The telemetry agent's real artefact as a process under measurement: started, paused, ended with its own account."""

from __future__ import annotations

import json
import selectors
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_rounds.measuring.processes import CpuTime, Running, cpu_time, peak_memory, running
from daq_bench.rig.base.influx import DATABASE

READY_S_MAX = 20.0
DRAIN_S = 10.0
STOP_S_MAX = DRAIN_S + 20.0
SPOOL_FILE, SUMMARY_FILE = "points.lp", "summary.json"


def require_agent(artefact: Path) -> None:
    """Raises RefusedError, with the remedy, when there is no artefact."""
    if not artefact.is_file():
        raise RefusedError(f"no telemetry agent at {artefact}: `make agent` builds it")


@dataclass(frozen=True)
class TelemetryAgent:
    process: Running
    spool: Path

    def cpu_time(self) -> CpuTime:
        """CPU time of the agent and of tools that it ran (smartctl, ipmitool)."""
        return cpu_time(self.process.pid)

    def peak_memory(self) -> int:
        """The agent's peak memory in bytes."""
        return peak_memory(self.process.pid)

    def finish(self) -> dict[str, Any]:
        """Ends it as a run's end does, and returns its summary."""
        self.process.signal(signal.SIGTERM)
        self.process.finish(STOP_S_MAX)
        summary: dict[str, Any] = json.loads((self.spool / SUMMARY_FILE).read_text(encoding="utf-8"))
        return summary

    def lines(self) -> list[str]:
        return (self.spool / SPOOL_FILE).read_text(encoding="utf-8").splitlines()


@contextmanager
def telemetry_agent(
    artefact: Path, spool: Path, period_s: float, url: str | None, run: str
) -> Iterator[TelemetryAgent]:
    """Yields an agent that already takes samples. `url`: where it delivers; None: nowhere."""
    spool.mkdir(parents=True)
    where = ["--no-influx"] if url is None else [f"--influx-url={url}", f"--database={DATABASE}"]
    argv: list[str | Path] = [
        sys.executable,
        artefact,
        "run",
        f"--spool-dir={spool}",
        f"--period={period_s:g}",
        f"--drain-seconds={DRAIN_S:g}",
        "--tag=host=bench",
        f"--tag=run={run}",
        *where,
    ]
    with running(argv, spool.with_suffix(".log")) as process:
        _await_ready(process)
        yield TelemetryAgent(process, spool)


def _await_ready(process: Running) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(process.output, selectors.EVENT_READ)
        if not selector.select(READY_S_MAX):
            raise BenchError(f"the agent did not say within {READY_S_MAX:g} s that it samples")
    if process.output.readline().strip() != "ready":
        process.process.wait(READY_S_MAX)
        process.fail("the agent did not start")


def unsupported(summary: dict[str, Any]) -> list[str]:
    """Collectors that found nothing to read here, or failed."""
    return [f"{one['name']} ({one['status']})" for one in summary["collectors"] if one["status"] != "ok"]
