"""The paper's comparison: one put thread next to one get-and-remove thread that call LMDB in their own process, and redis-benchmark's SET
next to its GET over loopback TCP, in turns on the same machine. Like with like is in hot_store_matrix.py."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bench_model.base.errors import BenchError
from bench_model.workloads.hot_store.figures import SAMPLE_S, cpus_moved, rate_of
from rig.candidate.travelling import source_of
from writer_bench.criteria import Criterion, at_most, each, ratio_of
from writer_bench.part import Column, Documents, Part, Settings
from writer_bench.rounds import Comparison, Contender, Point
from writer_bench.sample import Sample
from writer_bench.tools import START_S, Tools

EMBEDDED, REDIS = "hotstore", "redis-benchmark"
PUT, CONSUME = "put", "get and remove"
VALUE_BYTES = (1000, 2000, 4000, 6000, 8000, 10_000)
CAPACITY = 512 << 20
BACKLOG = (
    2 << 20
)  # the consumer keeps up; with more, LMDB's free pages lie ever farther apart and the rate drifts (docs/hot-store.md)
WARM_UP_S = 4.0  # until the first pages are used again, which is slower than fresh ones
MEMORY = Path("/dev/shm")
REDIS_CLIENTS = 50  # redis-benchmark's own default; it favours Redis over the one connection of one thread
RATIO_MIN, STDEV_MAX = 3.0, 0.05
SCATTER, WHILE_STAYED = "_relative_stdev", "_while_cpus_stayed"


def hotstore_of(tools: Tools) -> Path:
    """Beside daqwriter's build folder, where the same command builds it."""
    return tools.daqwriter.parent.parent / "hot_store" / "hotstore"


def carried_out(tools: Tools, plan: dict[str, Any], seconds: float) -> dict[str, Any]:
    argv = [sys.executable, "-c", source_of("hot_store_nodes"), json.dumps(plan)]
    done = tools.shell.run(argv, START_S + 2 * seconds).check("hot_store_nodes")
    said = json.loads(done.stdout)
    if "error" in said:
        raise BenchError(said["error"])
    result: dict[str, Any] = said["result"][0]
    return result


def plan_of(step: dict[str, Any], masters: int, **more: Any) -> dict[str, Any]:
    folder = str(MEMORY / f"bench-hot-store-{uuid.uuid4().hex[:12]}")
    return {"folder": folder, "masters": masters, "steps": [step], **more}


def load(
    tools: Tools, options: Sequence[str], seconds: float, masters: int = 0, **server: Any
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The document of one `hotstore bench`, alone on the machine with its server, and its command line. `seconds`: all that it may take."""
    result = tools.scratch / f"hot-store-{uuid.uuid4().hex[:12]}.json"
    argv = [str(hotstore_of(tools)), "bench", *options, f"--interval={SAMPLE_S:g}", f"--json={result}"]
    step = {"do": "run", "processes": [{"name": "hotstore", "argv": argv}], "timeout_s": START_S + seconds}
    try:
        said = carried_out(tools, plan_of(step, masters, **server), seconds)["processes"][0]
        if said["returncode"] != 0:
            raise BenchError(f"hotstore ended with exit status {said['returncode']}: {said['stderr']}")
        return json.loads(result.read_text(encoding="utf-8")), tuple(argv)
    finally:
        result.unlink(missing_ok=True)


def sample_from(document: dict[str, Any], value_bytes: int, argv: tuple[str, ...]) -> Sample:
    series = [document[side]["samples_ops_per_s"] for side in ("put", "consume")]
    return sample_of(series[0], series[1], value_bytes, argv)


def sample_of(put: list[float], consume: list[float], value_bytes: int, argv: tuple[str, ...]) -> Sample:
    sides = {"put": rate_of(put), "consume": rate_of(consume)}
    more = {}
    for name, rate in sides.items():
        if not rate["mean_ops_per_s"] or rate["relative_stdev"] is None:
            raise BenchError(f"nothing was done, or too few samples: {name}")
        more[f"{name}_ops_per_s"] = rate["mean_ops_per_s"]
        more[f"{name}_min_ops_per_s"] = rate["min_ops_per_s"]
        more[f"{name}{SCATTER}"] = rate["relative_stdev"]
    return Sample(more["put_ops_per_s"] * value_bytes, more=more, argv=argv)


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


def kops(header: str, contender: str, quantity: str) -> Column:
    def cell(point: dict[str, Any]) -> str:
        found = point["contenders"].get(contender, {}).get(quantity, {}).get("median")
        return "-" if found is None else f"{found / 1e3:.1f}"

    return f"{header}, KOPS", cell


def ratio(header: str, name: str) -> Column:
    def cell(point: dict[str, Any]) -> str:
        found = point["ratios"].get(name)
        return "**failed**" if not found or not found["n"] else f"{found['median']:.2f} n={found['n']}"

    return header, cell


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


def limit(point: dict[str, Any]) -> str:
    return "two threads that share one writer's lock"


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
