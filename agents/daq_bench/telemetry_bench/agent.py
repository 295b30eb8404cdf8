"""The cost of the telemetry agent for the machine that it watches: its CPU time and memory, daqwriter's throughput beside it, and
whether it keeps its own time under full load."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from daq_bench.bench_model.base.units import MIB
from daq_bench.bench_model.statistics.paired import Pair
from daq_bench.bench_rounds import columns
from daq_bench.bench_rounds.criteria import Criterion, at_most, each, loss_below
from daq_bench.bench_rounds.measuring.rounds import Comparison, Contender, Point
from daq_bench.bench_rounds.measuring.sample import Sample
from daq_bench.bench_rounds.measuring.tools import Tools
from daq_bench.bench_rounds.part import Column, Documents, Part, Settings
from daq_bench.telemetry_bench.agent_measurement import (
    PERIOD_S,
    SPAN_BYTES,
    measure_cost,
    measure_effect,
    measure_jitter,
    null_once,
    write_once,
)
from daq_bench.telemetry_bench.influx import influxd, require_influxd, version
from daq_bench.telemetry_bench.telemetry_process import require_agent

COST_ROUNDS, QUICK_COST_ROUNDS, JITTER_ROUNDS, EFFECT_ROUNDS, QUICK_EFFECT_ROUNDS = 5, 3, 3, 40, 6
BUSY_MIN = 0.95  # of all CPUs; with less the load was not full

CPU_PERCENT_MAX, MEMORY_BYTES_MAX, LOSS_PERCENT_MAX, P99_MS_MAX = 1.5, 64 * MIB, 0.5, 20.0
AGENT, WITH, WITHOUT = "agent", "with agent", "without"
IDLE, WRITING = "cost, nothing else", "cost, beside daqwriter write"
EFFECT_WRITE, EFFECT_NULL = "effect on daqwriter write", "effect on MiniDAQ, null sink"
FULL_LOAD = "jitter, all CPUs busy"


def cost_s(settings: Settings) -> float:
    return settings.seconds(30.0, 10.0)


def effect_s(settings: Settings) -> float:
    return settings.seconds(2.0, 0.7)


def jitter_s(settings: Settings) -> float:
    return settings.seconds(60.0, 10.0)


def points(settings: Settings, tools: Tools) -> list[Point]:
    long_s, short_s, jitter_time_s = cost_s(settings), effect_s(settings), jitter_s(settings)

    def cost(label: str, writing: bool) -> Point:
        rounds = QUICK_COST_ROUNDS if settings.quick else COST_ROUNDS
        one = Contender(AGENT, partial(measure_cost, tools, long_s, writing), long_s + 5)
        return Point({"writing": writing, "duration_s": long_s}, label, [one], [], rounds, rounds)

    def effect(label: str, delivers: bool, run: Callable[[], Sample]) -> Point:
        rounds = QUICK_EFFECT_ROUNDS if settings.quick else EFFECT_ROUNDS
        sides = [
            Contender(name, partial(measure_effect, tools, delivers, run, name == WITH), short_s + 2)
            for name in (WITHOUT, WITH)
        ]
        comparisons = [Comparison("throughput", WITH, WITHOUT, steers=False)]
        return Point({"duration_s": short_s}, label, sides, comparisons, rounds, rounds)

    loaded = Contender(AGENT, partial(measure_jitter, tools, jitter_time_s), jitter_time_s + 7)
    jitter_rounds = 1 if settings.quick else JITTER_ROUNDS
    return [
        cost(IDLE, False),
        cost(WRITING, True),
        effect(EFFECT_WRITE, True, partial(write_once, tools, short_s)),
        effect(EFFECT_NULL, False, partial(null_once, tools, short_s)),
        Point({"duration_s": jitter_time_s}, FULL_LOAD, [loaded], [], jitter_rounds, jitter_rounds),
    ]


def require(tools: Tools) -> None:
    require_influxd(tools.influxd)
    require_agent(tools.agent)


@contextmanager
def hold(settings: Settings, tools: Tools) -> Iterator[list[str]]:
    notes = [f"{version(tools)}; agent's interpreter Python {platform.python_version()}."]
    with influxd(tools) as server:
        tools.held["server"] = server
        try:
            yield notes
        finally:
            absent = tools.held.get("unsupported")
            if absent:
                notes.append(f"Not the full set: this machine has nothing for the collectors {', '.join(absent)}.")


def conditions(settings: Settings) -> dict[str, Any]:
    return {
        "fast_collectors_hz": 1 / PERIOD_S,
        "cpu": "user + system of all the agent's threads; tools that it ran beside it; the start excluded",
        "memory": "VmHWM: the peak of the whole life",
        "delivery": "to InfluxDB on this machine; in the null sink's point to the spool alone, since the server would take part of "
        "the CPUs that daqwriter needs, and on a candidate there is none",
        "loss": "mean of the paired ratios, both orders with equal weight; 95 % interval",
        "full_load": "daqwriter write, and MiniDAQ on the null sink with two busy threads for each CPU",
        "seconds": {"cost": cost_s(settings), "effect": effect_s(settings), "jitter": jitter_s(settings)},
    }


def masked(point: dict[str, Any]) -> bool:
    """Says whether the point's jitter does not count, because it was not measured under the load that was asked for."""
    share = columns.median_of(point, AGENT, "busy_share")
    return point["label"] == FULL_LOAD and share is not None and share < BUSY_MIN


def pairs_of(point: dict[str, Any]) -> list[Pair]:
    """The pairs of a point; empty where a side failed once."""
    if point["errors"]:
        return []
    rounds: dict[int, dict[str, dict[str, Any]]] = {}
    for one in point["repetitions"]:
        rounds.setdefault(one["round"], {})[one["contender"]] = one
    return [
        Pair(
            number,
            sides[WITHOUT]["position"] < sides[WITH]["position"],
            sides[WITH]["sample"]["bytes_per_s"] / sides[WITHOUT]["sample"]["bytes_per_s"],
        )
        for number, sides in sorted(rounds.items())
        if sides.keys() >= {WITH, WITHOUT}
    ]


def worst(
    measured: Documents, labels: tuple[str, ...], quantity: str, pick: str, unit: float
) -> dict[str, float | None]:
    """By label, the median or the max over the repetitions; None where the agent failed or did not run."""
    found = {}
    for point in measured:
        if point["label"] in labels:
            value = None if point["errors"] else point["contenders"][AGENT].get(quantity, {}).get(pick)
            found[point["label"]] = None if value is None else value / unit
    return found


def judge(measured: Documents) -> list[Criterion]:
    cpu = worst(measured, (IDLE, WRITING), "cpu_percent", "median", 1.0)
    memory = worst(measured, (IDLE, WRITING), "memory_bytes", "max", MIB)
    by_label = {point["label"]: point for point in measured}
    effects = [
        loss_below(id_, text, pairs_of(by_label[label]) if label in by_label else [], LOSS_PERCENT_MAX)
        for id_, label, text in (
            ("agent.write", EFFECT_WRITE, "loss of daqwriter write's throughput beside the agent, %"),
            ("agent.null", EFFECT_NULL, "loss of MiniDAQ's throughput on the null sink beside the agent, %"),
        )
    ]
    return [
        each("agent.cpu", "agent's own CPU time, % of one core", cpu, CPU_PERCENT_MAX, at_most),
        each("agent.memory", "agent's peak memory, MiB", memory, MEMORY_BYTES_MAX / MIB, at_most),
        *effects,
        judge_jitter(measured),
    ]


def judge_jitter(measured: Documents) -> Criterion:
    text = "jitter of the 10 Hz samples under full load, 99th percentile, ms, every round"
    values = worst(measured, (FULL_LOAD,), "p99_ms", "max", 1.0)
    criterion = each("agent.jitter", text, values, P99_MS_MAX, at_most)
    if any(masked(point) for point in measured):
        return Criterion("agent.jitter", text, P99_MS_MAX, None, False, undecided="the CPUs were not all busy")
    return criterion


def jitter_column(header: str, quantity: str, form: str) -> Column:
    _, shown = columns.ranged(header, AGENT, quantity, form)
    return header, lambda point: "masked" if masked(point) else shown(point)


PART = Part(
    name="agent",
    title="Telemetry agent, fast collectors at 10 Hz",
    points=points,
    hold=hold,
    conditions=conditions,
    judge=judge,
    columns=[
        columns.ranged("CPU, % of one core", AGENT, "cpu_percent"),
        columns.ranged("tools it ran, %", AGENT, "children_percent"),
        columns.ranged("memory, MiB", AGENT, "memory_bytes", "{:.1f}", MIB),
        columns.ranged("points/s", AGENT, "points_per_s", "{:.0f}"),
        columns.ranged("influxd, %", AGENT, "influxd_percent"),
        columns.rate("without", WITHOUT),
        columns.rate("with agent", WITH),
        columns.ratio("with / without", "throughput"),
        jitter_column("p50, ms", "p50_ms", "{:.2f}"),
        jitter_column("p99, ms", "p99_ms", "{:.2f}"),
        jitter_column("max, ms", "max_ms", "{:.1f}"),
        jitter_column("missed", "missed", "{:.0f}"),
        columns.value("CPUs busy", AGENT, "busy_share", "{:.0%}"),
    ],
    limit=lambda point: "",
    space_bytes=lambda settings: 2 * SPAN_BYTES,
    require=require,
)
