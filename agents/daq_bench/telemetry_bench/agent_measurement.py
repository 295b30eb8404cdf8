"""The measurements of part `agent`: one run each of the real artefact, alone, beside daqwriter, or with all CPUs busy."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.units import GIB
from daq_bench.bench_rounds.measuring.processes import Busy, running
from daq_bench.bench_rounds.measuring.sample import Sample
from daq_bench.bench_rounds.measuring.tools import START_S, Tools
from daq_bench.telemetry_bench import jitter
from daq_bench.telemetry_bench.telemetry_process import TelemetryAgent, telemetry_agent, unsupported

PERIOD_S = 0.1  # of the fast collectors; the slow ones keep their own pace
SETTLE_S = 3.0  # imports, first samples and the first delivery belong to the start, not to the cost
EFFECT_SETTLE_S = 1.0
SPAN_BYTES = GIB // 2
FAST_MEASUREMENTS = ("block_device", "cpu")  # points of every sample; the second where there is no whole disk


def write_argv(tools: Tools, duration: float) -> list[str | Path]:
    target = tools.scratch / "load.bin"
    words = [f"--span={SPAN_BYTES}", f"--duration={duration}", "--condition=overwrite"]
    return [tools.daqwriter, "write", f"--target={target}", *words, f"--json={target}.json"]


def burn_argv(tools: Tools, duration: float) -> list[str | Path]:
    """Two threads for each CPU that copy and take checksums without a pause."""
    words = ["--sink=null", "--unpaced", "--links=2", f"--applications={os.cpu_count()}", f"--duration={duration}"]
    return [tools.daqwriter, "minidaq", *words, f"--json={tools.scratch / 'load-burner.json'}"]


@contextmanager
def loads(tools: Tools, *argvs: list[str | Path]) -> Iterator[Callable[[], None]]:
    """Runs daqwriter in the background; yields a function that raises unless all of it still runs."""
    with ExitStack() as stack:
        stack.callback(remove_files, tools)
        logs = [tools.scratch / f"load-{number}.log" for number in range(len(argvs))]
        started = [stack.enter_context(running(argv, log)) for argv, log in zip(argvs, logs, strict=True)]

        def require() -> None:
            for one in started:
                one.require()

        yield require


def remove_files(tools: Tools) -> None:
    for file in tools.scratch.glob("load*"):
        file.unlink()


@contextmanager
def new_agent(tools: Tools, url: str | None, name: str) -> Iterator[TelemetryAgent]:
    """An agent with a spool of its own, which is removed afterwards."""
    spool = tools.scratch / f"spool-{name}"
    try:
        with telemetry_agent(tools.agent, spool, PERIOD_S, url, name) as agent:
            yield agent
    finally:
        with suppress(FileNotFoundError):
            shutil.rmtree(spool)
        spool.with_suffix(".log").unlink(missing_ok=True)


def require_delivered(summary: dict[str, Any]) -> None:
    """Raises BenchError for an agent that did not deliver: it did not do all the work whose cost is measured."""
    missing = summary["points"]["undelivered"] + summary["points"]["rejected"]
    if missing:
        raise BenchError(
            f"{missing} of {summary['points']['collected']} points were not delivered: {summary['influx']}"
        )


def measure_cost(tools: Tools, duration: float, writing: bool) -> Sample:
    server = tools.held["server"]
    with ExitStack() as stack:
        require = stack.enter_context(loads(tools, *[write_argv(tools, duration + 600)] * writing))
        agent = stack.enter_context(new_agent(tools, server.url, "cost"))
        time.sleep(SETTLE_S)
        busy, before, server_before, started_s = Busy(), agent.cpu_time(), server.cpu_time(), time.monotonic()
        time.sleep(duration)
        elapsed_s = time.monotonic() - started_s
        spent, server_spent = agent.cpu_time().since(before), server.cpu_time().since(server_before)
        busy_share, memory = busy.share(), agent.peak_memory()
        require()
        summary = agent.finish()
    require_delivered(summary)
    tools.held["unsupported"] = unsupported(summary)
    more = {
        "cpu_percent": 100 * spent.own_s / elapsed_s,
        "children_percent": 100 * spent.children_s / elapsed_s,
        "start_cpu_s": before.own_s,
        "memory_bytes": memory,
        "influxd_percent": 100 * server_spent.own_s / elapsed_s,
        "busy_share": busy_share,
        "points_per_s": summary["points"]["collected"] / (elapsed_s + SETTLE_S),
    }
    return Sample(more=more, argv=agent.process.argv)


def measure_effect(tools: Tools, delivers: bool, run: Callable[[], Sample], with_agent: bool) -> Sample:
    """One run of daqwriter, beside an agent that has settled, or without any."""
    if not with_agent:
        time.sleep(
            EFFECT_SETTLE_S
        )  # as long as the agent takes, so that the drive's rest before is the same on both sides
        return run()
    url = tools.held["server"].url if delivers else None
    with new_agent(tools, url, "effect") as agent:
        time.sleep(EFFECT_SETTLE_S)
        sample = run()
        agent.process.require()
        summary = agent.finish()
    if delivers:
        require_delivered(summary)
    return sample


def write_once(tools: Tools, duration: float) -> Sample:
    words = [f"--span={SPAN_BYTES}", f"--duration={duration}", "--condition=overwrite"]
    return tools.record("write", *words, timeout_s=START_S + 10 * duration, with_flush=False)


def null_once(tools: Tools, duration: float) -> Sample:
    """One run without a drive: a source and a writer thread for each application, as many threads as there are CPUs."""
    words = ["--sink=null", "--unpaced", "--links=10", f"--applications={max(1, (os.cpu_count() or 1) // 2)}"]
    return tools.run_daqwriter("minidaq", *words, f"--duration={duration}", timeout_s=START_S + 10 * duration)


def measure_jitter(tools: Tools, duration: float) -> Sample:
    server = tools.held["server"]
    long_s = duration + 600
    with ExitStack() as stack:
        require = stack.enter_context(loads(tools, write_argv(tools, long_s), burn_argv(tools, long_s)))
        agent = stack.enter_context(new_agent(tools, server.url, "jitter"))
        time.sleep(SETTLE_S)
        busy, from_ns = Busy(), time.time_ns()
        time.sleep(duration)
        share, to_ns = busy.share(), time.time_ns()
        require()
        summary, lines = agent.finish(), agent.lines()
    steps = summary.get("clock", {}).get("steps", [])
    if steps:
        raise BenchError(f"the clock was set during the measurement, its time stamps say nothing of jitter: {steps}")
    times = next((stamps for name in FAST_MEASUREMENTS if (stamps := jitter.times_of(lines, name))), [])
    found = jitter.jitter([stamp for stamp in times if from_ns <= stamp < to_ns], PERIOD_S)
    more = {
        "p50_ms": 1e3 * found.p50_s,
        "p99_ms": 1e3 * found.p99_s,
        "max_ms": 1e3 * found.max_s,
        "missed": found.missed,
        "expected": found.expected,
        "busy_share": share,
    }
    return Sample(more=more, argv=agent.process.argv)
