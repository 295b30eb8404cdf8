"""The paper's comparison: one put thread next to one get-and-remove thread that call LMDB in their own process, and redis-benchmark's SET
next to its GET over loopback TCP, in turns on the same machine. Like with like is in hot_store_matrix.py."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from daq_bench.bench_model.workloads.hot_store.figures import SAMPLE_S, cpus_moved
from daq_bench.bench_rounds.criteria import Criterion, at_most, each, ratio_of
from daq_bench.bench_rounds.measuring.rounds import Comparison, Contender, Point
from daq_bench.bench_rounds.measuring.sample import Sample
from daq_bench.bench_rounds.measuring.tools import Tools
from daq_bench.bench_rounds.part import Column, Documents, Part, Settings
from daq_bench.hot_store_bench.trial import (
    CAPACITY,
    SCATTER,
    carried_out,
    kops,
    limit,
    load,
    plan_of,
    ratio,
    sample_from,
    sample_of,
)

EMBEDDED, REDIS = "hotstore", "redis-benchmark"
PUT, CONSUME = "put", "get and remove"
VALUE_BYTES = (1000, 2000, 4000, 6000, 8000, 10_000)
BACKLOG = (
    2 << 20
)  # the consumer keeps up; with more, LMDB's free pages lie ever farther apart and the rate drifts (docs/hot-store.md)
WARM_UP_S = 4.0  # until the first pages are used again, which is slower than fresh ones
REDIS_CLIENTS = 50  # redis-benchmark's own default; it favours Redis over the one connection of one thread
RATIO_MIN, STDEV_MAX = 3.0, 0.05
WHILE_STAYED = "_while_cpus_stayed"


def embedded(tools: Tools, value_bytes: int, seconds: float) -> Sample:
    options = [
        "--engine=lmdb", "--dir={folder}/store", f"--capacity={CAPACITY}", f"--backlog={BACKLOG}", f"--value-size={value_bytes}",
        f"--seconds={seconds:g}", f"--warm-up={WARM_UP_S:g}",
    ]  # fmt: skip
    document, argv = load(tools, options, WARM_UP_S + seconds)
    return with_distance(sample_from(document, value_bytes, argv), document)


def with_distance(sample: Sample, document: dict[str, Any]) -> Sample:
    """Adds to the sample how far apart the CPUs were before and after. The scatter of runs in which that did not change stands beside that
    of all runs; the criterion takes all runs and leaves none out."""
    more, moved = dict(sample.more), cpus_moved(document)
    if not moved:
        more |= {f"{name}{WHILE_STAYED}": value for name, value in sample.more.items() if name.endswith(SCATTER)}
    more |= {f"handover_{when}_ns": value for when, value in document["handover_ns"].items() if value is not None}
    return replace(sample, more={**more, "cpus_moved": float(bool(moved))})


def redis(tools: Tools, value_bytes: int, seconds: float) -> Sample:
    step = {
        "do": "reference",
        "value_bytes": value_bytes,
        "seconds": seconds,
        "sample_s": SAMPLE_S,
        "clients": REDIS_CLIENTS,
    }
    said = carried_out(tools, plan_of(step, 1), seconds)
    series = said["samples_ops_per_s"]
    return sample_of(series["set"], series["get"], value_bytes, tuple(said["argv"]))


def points(settings: Settings, tools: Tools) -> list[Point]:
    seconds = settings.seconds(10.0, 3.0)
    found = []
    for value in VALUE_BYTES:
        contenders = [
            Contender(EMBEDDED, partial(embedded, tools, value, seconds), seconds + WARM_UP_S + 1),
            Contender(REDIS, partial(redis, tools, value, seconds), seconds + 3),
        ]
        comparisons = [
            Comparison(PUT, EMBEDDED, REDIS, "put_ops_per_s"),
            Comparison(CONSUME, EMBEDDED, REDIS, "consume_ops_per_s"),
        ]
        label = f"values of {value} B"
        found.append(
            Point({"value_bytes": value}, label, contenders, comparisons, settings.rounds, settings.most_rounds)
        )
    return found


def conditions(settings: Settings) -> dict[str, Any]:
    return {
        "hotstore": "LMDB in /dev/shm, durability process: what is acknowledged survives kill -9 of any process, "
        "not a crash of the machine",
        "hotstore threads": "1 put thread, 1 get-and-remove thread, in one process; every value compared",
        "hotstore backlog": f"at most {BACKLOG >> 20} MiB ({BACKLOG} B) between put and get and remove; warm-up {WARM_UP_S:g} s",
        "redis": "redis-server over TCP on loopback, volatile: no snapshot, no append-only file",
        "redis clients": f"redis-benchmark -t set beside redis-benchmark -t get, {REDIS_CLIENTS} connections each, no pipelining",
        "sample_s": SAMPLE_S,
        "CPUs": "the time for handing over a cache line is measured before and after each run; the scatter of the runs in which it changed "
        "by less than half stands beside that of all runs, which is judged",
    }


def judge(measured: Documents) -> list[Criterion]:
    scatter = {
        f"{point['label']}, {side}": point["contenders"][EMBEDDED].get(f"{side}{SCATTER}", {}).get("median")
        for point in measured
        for side in ("put", "consume")
    }
    return [
        each(
            "hot-store.put",
            "put in process against redis-benchmark's SET over loopback TCP",
            ratio_of(measured, PUT),
            RATIO_MIN,
        ),
        each(
            "hot-store.get",
            "get and remove in process against redis-benchmark's GET over loopback TCP",
            ratio_of(measured, CONSUME),
            RATIO_MIN,
        ),
        each(
            "hot-store.stdev",
            "standard deviation over mean of hotstore's samples",
            scatter,
            STDEV_MAX,
            at_most,
        ),
    ]


def scatter_column(side: str) -> Column:
    def cell(point: dict[str, Any]) -> str:
        own = point["contenders"].get(EMBEDDED, {})
        found, stayed = own.get(f"{side}{SCATTER}", {}), own.get(f"{side}{SCATTER}{WHILE_STAYED}", {})
        if not found.get("n"):
            return "-"
        beside = f"; {100 * stayed['median']:.1f} % n={stayed['n']}" if stayed.get("n") else ""
        return f"{100 * found['median']:.1f} % n={found['n']}{beside}"

    return f"{side}, stdev/mean: all runs; those whose hand-over stayed", cell


def handover_cell(point: dict[str, Any]) -> str:
    own = point["contenders"].get(EMBEDDED, {})
    found = [own[name] for name in ("handover_before_ns", "handover_after_ns") if own.get(name, {}).get("n")]
    return f"{min(one['min'] for one in found):.0f} to {max(one['max'] for one in found):.0f}" if found else "-"


PART = Part(
    name="hot_store",
    title="hot store: LMDB in process (survives kill -9, backlog at most 2 MiB) against redis-benchmark over loopback TCP (volatile)",
    points=points,
    conditions=conditions,
    judge=judge,
    columns=[
        kops("put in process", EMBEDDED, "put_ops_per_s"),
        kops("SET over TCP", REDIS, "put_ops_per_s"),
        ratio("put in process / SET over TCP", PUT),
        kops("get and remove in process", EMBEDDED, "consume_ops_per_s"),
        kops("GET over TCP", REDIS, "consume_ops_per_s"),
        ratio("get and remove in process / GET over TCP", CONSUME),
        scatter_column("put"),
        scatter_column("consume"),
        ("cache line handed over, ns", handover_cell),
    ],
    limit=limit,
    space_bytes=lambda settings: 1 << 20,
    extra_s=60.0,
)
