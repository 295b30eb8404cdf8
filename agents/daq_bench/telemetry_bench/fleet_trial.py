"""One trial of a fleet of simulated agents: run it beside a server, watch both, count what arrived."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_rounds.measuring.processes import Running, running
from daq_bench.bench_rounds.measuring.sample import Sample
from daq_bench.bench_rounds.measuring.tools import Tools
from daq_bench.telemetry_bench import backlog
from daq_bench.telemetry_bench.fleet import host_name
from daq_bench.telemetry_bench.influx import Server


@dataclass(frozen=True)
class Trial:
    """Each agent samples every `period_s`, first for `settle_s`, then for the window of which figures are said; within it, after
    `before_outage_s`, the server may stand still for `outage_s`."""

    name: str
    agents: int
    period_s: float
    settle_s: float
    window_s: float
    drain_s: float
    before_outage_s: float = 0.0
    outage_s: float = 0.0

    @property
    def sampling_s(self) -> float:
        return self.settle_s + self.window_s


def run_trial(tools: Tools, server: Server, trial: Trial) -> Sample:
    """Runs the fleet once; afterwards counts in InfluxDB the points that it collected."""
    folder = tools.scratch / f"fleet-{trial.name}"
    folder.mkdir()
    asked = {
        "url": server.url,
        "database": server.database,
        "run": trial.name,
        "agents": trial.agents,
        "period_s": trial.period_s,
        "sampling_s": trial.sampling_s,
        "drain_s": trial.drain_s,
        "directory": str(folder),
    }
    config = folder / "fleet.json"
    config.write_text(json.dumps(asked), encoding="utf-8")
    argv: list[str | Path] = [sys.executable, "-m", "daq_bench.telemetry_bench.fleet", config]
    try:
        with running(argv, folder / "fleet.log", {"PYTHONPATH": os.pathsep.join(sys.path)}) as fleet:
            watched = watch(server, fleet, trial)
            document = json.loads(fleet.finish(trial.drain_s + 60))
        if document["failed_agents"]:
            said = (folder / "fleet.log").read_text(encoding="utf-8")[-1000:]
            raise BenchError(f"{document['failed_agents']} of {trial.agents} simulated agents failed: {said}")
        stored = server.count(document["fields"], trial.name, map(host_name, range(trial.agents)))
    finally:
        shutil.rmtree(folder)
    return Sample(more=summarise(document, watched, trial, stored), argv=fleet.argv)


@dataclass
class Watched:
    """The readings that the bench took from outside, in monotonic seconds and CPU seconds."""

    points_per_sample: float
    from_s: float
    to_s: float
    server_cpu_s: float
    server_memory_bytes: int
    outage: tuple[float, float] | None = None


def watch(server: Server, fleet: Running, trial: Trial) -> Watched:
    """Watches server and fleet through the window, with the outage within it."""
    first = fleet.output.readline()
    if not first:
        fleet.process.wait(10)
        fleet.fail("the simulated agents did not start")
    said = json.loads(first)
    from_s = said["started_s"] + trial.settle_s
    _sleep_until(from_s)
    cpu_before = server.cpu_time()
    outage = None
    if trial.outage_s:
        _sleep_until(from_s + trial.before_outage_s)
        stopped_s = time.monotonic()
        server.stop_answering()
        try:
            _sleep_until(stopped_s + trial.outage_s)
        finally:
            server.answer_again()
        outage = (stopped_s, time.monotonic())
    _sleep_until(from_s + trial.window_s)
    fleet.require()
    spent = server.cpu_time().since(cpu_before)
    return Watched(said["points_per_sample"], from_s, from_s + trial.window_s, spent.own_s, server.memory(), outage)


def _sleep_until(monotonic_s: float) -> None:
    time.sleep(max(0.0, monotonic_s - time.monotonic()))


def summarise(document: dict[str, Any], watched: Watched, trial: Trial, stored: int) -> dict[str, float]:
    """The quantities of one trial. Pure."""
    moments = backlog.moments(document["series"])
    found = backlog.flow(moments, watched.from_s, watched.to_s)
    agents = document["agents"]
    points = len(agents) * watched.points_per_sample
    collected = sum(one["collected"] for one in agents)
    window = watched.to_s - watched.from_s
    more = {
        "asked_per_s": points / trial.period_s,
        "offered_per_s": found.offered_per_s,
        # Over the fleet's whole life, in which samples are counted and no edge of the window cuts one off.
        "offered_share": collected / (points * math.ceil(trial.sampling_s / trial.period_s)),
        "settled_per_s": found.settled_per_s,
        "growth": found.growth,
        "backlog_max": float(found.backlog_max),
        "collected": float(collected),
        "spooled": float(sum(one["spooled"] for one in agents)),
        "stored": float(stored),
        "missing": float(abs(collected - stored)),
        "agent_memory_bytes": float(max(one["memory_bytes"] for one in agents)),
        "agents_cpu_s": sum(one["cpu_us"] for one in agents) / 1e6,
        "server_cpu_percent": 100 * watched.server_cpu_s / window,
        "server_memory_bytes": float(watched.server_memory_bytes),
    }
    if watched.outage:
        stopped_s, resumed_s = watched.outage
        after = backlog.caught_up_after_s(moments, watched.from_s, stopped_s, resumed_s, watched.to_s)
        more["outage_s"] = resumed_s - stopped_s
        if after is not None:
            more["caught_up_s"] = after
    return more
