"""`daqwriter write` against fio: same engine, block size, depth, threads, size of file and order, both overwriting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench_model.units import GIB, KIB, MIB, binary_label
from writer_bench import columns
from writer_bench.criteria import Criterion, at_most, each, median, ratio_of
from writer_bench.machine import reserved_huge_pages
from writer_bench.part import Documents, Part, Settings, limit_by_cpu
from writer_bench.rounds import Comparison, Contender, Point
from writer_bench.sample import Sample
from writer_bench.tools import START_S, Tools

DEPTH = 4
SMALLEST_SPAN_BYTES = GIB // 2
SMALL_BYTES = 64 * KIB
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

    def ours() -> Sample:
        return tools.record(
            "write",
            f"--block-size={block}",
            f"--threads={threads}",
            f"--io-depth={DEPTH}",
            f"--span={span}",
            f"--duration={duration}",
            "--condition=overwrite",
            timeout_s=START_S + 10 * duration,
            with_flush=False,  # fio does not flush either
        )

    def fio(*options: str) -> Sample:
        return tools.fio(file, block, threads, DEPTH, duration, *options)

    expected = duration + MEASUREMENT_START_S
    contenders = [Contender("daqwriter", ours, expected), Contender("fio", fio, expected)]
    comparisons = [
        Comparison("throughput", "daqwriter", "fio"),
        Comparison("cpu", "daqwriter", "fio", "cpu_s_per_gb", steers=False),
    ]
    if block >= LARGE_BYTES:
        contenders.append(Contender(HUGE, lambda: fio("--iomem=mmaphuge"), expected, min(settings.rounds, HUGE_ROUNDS)))
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
        "engine": "libaio",
        "io_depth": DEPTH,
        "direct": True,
        "pattern": "sequential, each thread its own part",
        "condition": "overwrite of blocks that were written before; both files laid out by daqwriter",
        "seconds_per_measurement": seconds(settings),
    }


def judge(measured: Documents) -> list[Criterion]:
    rates, costs = ratio_of(measured, "throughput"), ratio_of(measured, "cpu")
    small = ratio_of([point for point in measured if point["key"]["block_bytes"] <= SMALL_BYTES], "cpu")
    return [
        median("write.throughput", "throughput against fio, median over the grid", rates, 1.0),
        each("write.throughput_worst", "throughput against fio, every point", rates, 0.93),
        median("write.cpu", "CPU seconds per GB against fio, median over the grid", costs, 1.0, at_most),
        median("write.cpu_small", "CPU seconds per GB against fio, median up to 64 KiB", small, 0.9, at_most),
    ]


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
        columns.rate("daqwriter", "daqwriter"),
        columns.rate("fio", "fio"),
        columns.ratio("ratio", "throughput"),
        columns.rate(HUGE, HUGE),
        columns.ratio("ratio to that", "throughput, fio with huge pages"),
        columns.value("daqwriter, CPU s/GB", "daqwriter", "cpu_s_per_gb", "{:.4f}"),
        columns.value("fio, CPU s/GB", "fio", "cpu_s_per_gb", "{:.4f}"),
        columns.ratio("CPU ratio", "cpu"),
    ],
    limit=limit,
    space_bytes=space_bytes,
    extra_s=30.0,
)
