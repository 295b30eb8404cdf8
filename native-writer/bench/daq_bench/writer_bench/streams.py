"""The storage application of ATLAS without a drive, by checksum variant; `zlib` is the original single-threaded one."""

from __future__ import annotations

from typing import Any

from daq_bench.bench_rounds import columns
from daq_bench.bench_rounds.criteria import Criterion, each, ratio_of
from daq_bench.bench_rounds.measuring.rounds import Comparison, Contender, Point
from daq_bench.bench_rounds.measuring.sample import Sample
from daq_bench.bench_rounds.measuring.tools import START_S, Tools
from daq_bench.bench_rounds.part import Documents, Part, Settings, limit_by_cpu

ORIGINAL = "zlib"
VARIANTS = ("thread-per-chunk", "pool-cv", "pool-busy", "fused", "off")
LARGE, SMALL = "default events", "events of 4 KiB"


def points(settings: Settings, tools: Tools) -> list[Point]:
    duration = settings.seconds(1.0, 0.7)

    def contender(variant: str, *options: str) -> Contender:
        def measure() -> Sample:
            chosen = [f"--checksum-variant={variant}", f"--duration={duration}", *options]
            return tools.run_daqwriter("streams", "--sink=null", *chosen, timeout_s=START_S + 10 * duration)

        return Contender(variant, measure, duration + 0.5)

    def point(label: str, variants: tuple[str, ...], *options: str) -> Point:
        contenders = [contender(variant, *options) for variant in (ORIGINAL, *variants)]
        comparisons = [Comparison(variant, variant, ORIGINAL) for variant in variants]
        key = {"options": list(options)}
        return Point(key, label, contenders, comparisons, settings.rounds, settings.most_rounds)

    return [point(LARGE, VARIANTS), point(SMALL, ("fused",), "--event-size=4KiB")]


def conditions(settings: Settings) -> dict[str, Any]:
    return {"sink": "null: no I/O", "pacing": "none"}


def judge(measured: Documents) -> list[Criterion]:
    large = [point for point in measured if point["label"] == LARGE]
    small = [point for point in measured if point["label"] == SMALL]
    return [
        each("streams.fused", "fused against zlib", ratio_of(large, "fused"), 3.0),
        each("streams.off", "checksums off against zlib", ratio_of(large, "off"), 0.99),
        each("streams.small", "fused against zlib, events of 4 KiB", ratio_of(small, "fused"), 0.99),
    ]


def limit(point: dict[str, Any]) -> str:
    return limit_by_cpu(point["contenders"]["fused"], 2, "the busiest stream's thread")


PART = Part(
    name="streams",
    title="streams without a drive, by checksum variant",
    points=points,
    conditions=conditions,
    judge=judge,
    columns=[
        columns.rate(ORIGINAL, ORIGINAL),
        *[
            column
            for name in VARIANTS
            for column in (columns.rate(name, name), columns.ratio(f"{name} / {ORIGINAL}", name))
        ],
    ],
    limit=limit,
    extra_s=15.0,
)
