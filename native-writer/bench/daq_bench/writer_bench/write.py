"""`daqwriter write` against fio: libaio and io_uring; same block size, depth, threads, size of file and order, both overwriting."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from daq_bench.bench_model.base.units import GIB, KIB, MIB, binary_label
from daq_bench.bench_rounds import columns
from daq_bench.bench_rounds.criteria import Criterion, at_most, each, median, ratio_of
from daq_bench.bench_rounds.measuring.machine import reserved_huge_pages
from daq_bench.bench_rounds.measuring.rounds import Comparison, Contender, Point
from daq_bench.bench_rounds.measuring.sample import Sample
from daq_bench.bench_rounds.measuring.tools import START_S, Tools
from daq_bench.bench_rounds.part import Documents, Part, Settings, limit_by_cpu

DEPTH = 4
ENGINES = {"": "libaio", ", io_uring": "io_uring"}  # by the ends of the names of contenders and ratios
SMALLEST_SPAN_BYTES = GIB // 2
CPU_OF_FIO_AT_4_KIB = {"libaio": 0.5, "io_uring": 0.9}  # at most so much of its CPU time per byte
LARGE_BYTES = MIB  # from here on fio also runs with huge pages
BLOCKS = [4 * KIB << step for step in range(14)]  # 4 KiB ... 32 MiB
QUICK_BLOCKS = [4 * KIB, 64 * KIB, MIB, 8 * MIB]
THREADS, QUICK_THREADS = [1, 2, 4, 10], [1, 4]
MEASUREMENT_START_S = 0.35  # start of the process and, for daqwriter, writing the span before
HUGE = "fio, huge pages"
HUGE_ROUNDS = 3  # a column beside the criterion


def grid(settings: Settings) -> list[tuple[int, int]]:
    blocks, threads = (QUICK_BLOCKS, QUICK_THREADS) if settings.quick else (BLOCKS, THREADS)
    return [(block, count) for block in blocks for count in threads]


def span_bytes(block: int, threads: int) -> int:
    """Size of the file: twice as many blocks as are in flight at the least, so that no two of them are the same block."""
    return max(SMALLEST_SPAN_BYTES, 2 * DEPTH * threads * block)


def seconds(settings: Settings) -> float:
    return settings.seconds(0.3, 0.3)


def make_point(settings: Settings, tools: Tools, block: int, threads: int) -> Point:
    span, duration = span_bytes(block, threads), seconds(settings)
    file = tools.scratch / f"overwritten-{span}.bin"

    def ours(engine: str) -> Sample:
        return tools.record(
            "write",
            f"--engine={engine}",
            f"--block-size={block}",
            f"--threads={threads}",
            f"--io-depth={DEPTH}",
            f"--span={span}",
            f"--duration={duration}",
            "--condition=overwrite",
            timeout_s=START_S + 10 * duration,
            with_flush=False,  # fio does not flush either
        )

    def fio(section: str) -> Sample:
        return tools.fio(file, block, threads, DEPTH, duration, section)

    expected = duration + MEASUREMENT_START_S
    contenders, comparisons = [], []
    for end, engine in ENGINES.items():
        names = f"daqwriter{end}", f"fio{end}"
        contenders += [
            Contender(name, partial(run, engine), expected) for name, run in zip(names, (ours, fio), strict=True)
        ]
        comparisons += [
            Comparison(f"throughput{end}", *names),
            Comparison(f"cpu{end}", *names, "cpu_s_per_gb", steers=False),
        ]
    if block >= LARGE_BYTES:
        contenders.append(Contender(HUGE, partial(fio, "libaio-huge"), expected, min(settings.rounds, HUGE_ROUNDS)))
        comparisons.append(Comparison("throughput, fio with huge pages", "daqwriter", HUGE, steers=False))
    label = f"{binary_label(block)} x {threads}"
    key = {"block_bytes": block, "threads": threads, "span_bytes": span}
    return Point(key, label, contenders, comparisons, settings.rounds, settings.most_rounds)


def points(settings: Settings, tools: Tools) -> list[Point]:
    return [make_point(settings, tools, *point) for point in grid(settings)]


@contextmanager
def hold(settings: Settings, tools: Tools) -> Iterator[list[str]]:
    # Every job's buffer is rounded up to whole huge pages, with one to spare for its alignment.
    wanted = max(threads * (DEPTH * block + 4 * MIB) for block, threads in grid(settings))
    with reserved_huge_pages(wanted) as refusal:
        files = [tools.lay_out(span) for span in sorted({span_bytes(*point) for point in grid(settings)})]
        notes = [
            "fio's default buffers are 4 KiB pages, daqwriter's are transparent huge pages: a request of ours has fewer "
            "segments, so the kernel cuts it into fewer and larger requests to the device. From 1 MiB on this explains "
            "most of the difference; the column with fio's buffers in huge pages (--iomem=mmaphuge) takes it away."
        ]
        try:
            yield notes if refusal is None else [*notes, f"fio could not run with huge pages: {refusal}."]
        finally:
            for file in files:
                file.unlink()


def conditions(settings: Settings) -> dict[str, Any]:
    return {
        "engines": list(ENGINES.values()),
        "io_uring": "file and buffers registered on both sides, no polling",
        "io_depth": DEPTH,
        "direct": True,
        "pattern": "sequential, each thread its own part",
        "condition": "overwrite of blocks that were written before; both files laid out by daqwriter",
        "seconds_per_measurement": seconds(settings),
    }


def judge(measured: Documents) -> list[Criterion]:
    held = []
    for end, engine in ENGINES.items():
        suffix, against = end.replace(", ", "."), f"against fio, both with {engine}"
        rates, costs = ratio_of(measured, f"throughput{end}"), ratio_of(measured, f"cpu{end}")
        smallest = ratio_of([point for point in measured if point["key"]["block_bytes"] == BLOCKS[0]], f"cpu{end}")
        held += [
            each(f"write.throughput{suffix}", f"throughput {against}, every block size, median over threads", by_block(measured, end), 1.0),
            each(f"write.throughput_worst{suffix}", f"throughput {against}, every point", rates, 0.93),
            median(f"write.cpu{suffix}", f"CPU seconds per GB {against}, median over the grid", costs, 1.0, at_most),
            median(
                f"write.cpu_smallest{suffix}", f"CPU seconds per GB {against}, 4 KiB, median over threads", smallest,
                CPU_OF_FIO_AT_4_KIB[engine], at_most,
            ),
        ]  # fmt: skip
    return held


def by_block(measured: Documents, end: str) -> dict[str, float | None]:
    """By block size, the median over the numbers of threads; None where one of them failed."""
    found: dict[str, float | None] = {}
    for block in sorted({point["key"]["block_bytes"] for point in measured}):
        ratios = ratio_of(
            [point for point in measured if point["key"]["block_bytes"] == block], f"throughput{end}"
        ).values()
        known = [ratio for ratio in ratios if ratio is not None]
        found[binary_label(block)] = statistics.median(known) if known and len(known) == len(ratios) else None
    return found


def limit(point: dict[str, Any]) -> str:
    return limit_by_cpu(point["contenders"]["daqwriter"], point["key"]["threads"], "drive")


def space_bytes(settings: Settings) -> int:
    """fio's files, one per size, and daqwriter's own beside them."""
    spans = {span_bytes(*point) for point in grid(settings)}
    return sum(spans) + max(spans)


PART = Part(
    name="write",
    title="daqwriter write against fio",
    points=points,
    hold=hold,
    conditions=conditions,
    judge=judge,
    columns=[
        *[
            column
            for end in ENGINES
            for column in (
                columns.rate(f"daqwriter{end}", f"daqwriter{end}"),
                columns.rate(f"fio{end}", f"fio{end}"),
                columns.ratio(f"ratio{end}", f"throughput{end}"),
            )
        ],
        columns.rate(HUGE, HUGE),
        columns.ratio("ratio to that", "throughput, fio with huge pages"),
        *[
            column
            for end in ENGINES
            for column in (
                columns.value(f"daqwriter{end}, CPU s/GB", f"daqwriter{end}", "cpu_s_per_gb", "{:.4f}"),
                columns.value(f"fio{end}, CPU s/GB", f"fio{end}", "cpu_s_per_gb", "{:.4f}"),
                columns.ratio(f"CPU ratio{end}", f"cpu{end}"),
            )
        ],
    ],
    limit=limit,
    space_bytes=space_bytes,
    extra_s=30.0,
)
