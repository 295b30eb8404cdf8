"""The results of a scan over threads and block sizes (DUNE paper, figure 2): ratio, CPU cost, plateaus. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from msgspec import Meta, structs

from daq_bench.bench_model.base.units import KIB, MIB, binary_label
from daq_bench.bench_model.documents.results import WritePoint
from daq_bench.bench_model.documents.struct import Amount, Closed, Document, Ordinal, Positive, as_document
from daq_bench.bench_model.statistics.plateau import PLATEAU_SHARE, find_plateau
from daq_bench.bench_model.workloads.model import Count, Model, once, stated
from daq_bench.bench_model.workloads.plan import (
    Plan,
    Problem,
    column,
    counting,
    follows,
    rows,
    sampled,
    typed,
    with_counter,
)
from daq_bench.bench_model.workloads.scan import Tool

RATIO_BLOCK_BYTES, FEW_THREADS, MANY_THREADS = 32 * KIB, 1, 10
CPU_BLOCK_BYTES = 4 * MIB
RULE = (
    "The plateau of each block size starts at the smallest number of threads from which on every larger admissible number "
    f"reaches at least {PLATEAU_SHARE:.0%} of that block size's maximum; its throughput is the median of these points. The scan's "
    "plateau is the highest of them. The saturating block size is the smallest one with which some number of threads reaches at "
    f"least {PLATEAU_SHARE:.0%} of the highest point of all"
)
RATIO, CPU = "thread_scan.ratio_32KiB", "thread_scan.system_cpu_per_thread_4MiB"
PLATEAU, SATURATING = "thread_scan.plateau_throughput", "thread_scan.saturating_block_size"


class ThreadPoint(WritePoint, frozen=True, kw_only=True):
    threads: Ordinal

    @property
    def rate(self) -> float | None:
        """B/s; None where the point does not count."""
        return self.throughput_bytes_per_s if self.admissible else None


class SeriesPlateau(Closed, frozen=True):
    throughput_bytes_per_s: float
    from_threads: Ordinal


class Series(Closed, frozen=True):
    block_bytes: Ordinal
    plateau: SeriesPlateau | None


class Plateau(Closed, frozen=True):
    """The highest of the series' plateaus, B/s."""

    throughput_bytes_per_s: float | None
    rule: str


class Ratio(Closed, frozen=True):
    """`value`: throughput with the most threads over that with one."""

    block_bytes: int
    threads: list[int]
    value: float | None


class SystemCpu(Closed, frozen=True):
    """System time of a thread as a share of one CPU, largest of the scanned numbers of threads."""

    block_bytes: int
    highest_fraction: float | None


class Scan(Closed, frozen=True):
    """`condition`: fresh or overwritten. `reasons`: why a metric has no value, by metric."""

    tool: Tool
    tool_version: str
    condition: str
    points: list[ThreadPoint]
    series: list[Series]
    plateau: Plateau
    ratio: Ratio
    system_cpu: SystemCpu
    saturating_block_bytes: int | None
    reasons: dict[str, str]


class ThreadScan(Closed, frozen=True):
    """results/thread_scan.json. `io_depth`: writes in flight of each thread. `ramp_s`: before each measurement. `file_bytes`: all threads.
    Metrics and `reasons` are those of the first scan."""

    schema_version: Literal[1]
    io_depth: Ordinal
    seconds_per_point: Positive
    ramp_s: Amount
    sample_s: Positive
    file_bytes: Ordinal
    scans: Annotated[list[Scan], Meta(min_length=1)]
    reasons: dict[str, str]


def result(parameters: Document, sample_s: float, scans: list[Scan]) -> Document:
    """results/thread_scan.json from the tools' scans."""
    return as_document(
        ThreadScan(
            schema_version=1,
            io_depth=parameters["io_depth"],
            seconds_per_point=parameters["seconds_per_point"],
            ramp_s=parameters["ramp_s"],
            sample_s=sample_s,
            file_bytes=parameters["file_size"],
            scans=scans,
            reasons=scans[0].reasons,
        )
    )


def scan_of(tool: Tool, version: str, condition: str, points: list[ThreadPoint]) -> Scan:
    """A tool's scan from its points."""
    series = [_series(points, size) for size in sorted({point.block_bytes for point in points})]
    highest = max((one.plateau.throughput_bytes_per_s for one in series if one.plateau), default=None)
    ratio, no_ratio = _ratio(points)
    cpu, no_cpu = _highest_cpu(points)
    saturating = _saturating(points)
    reasons = {
        PLATEAU: ""
        if highest
        else "with no block size does throughput level out within the scanned numbers of threads",
        RATIO: no_ratio,
        CPU: no_cpu,
        SATURATING: "no point of the scan counts" if saturating is None else "",
    }
    return Scan(
        tool=tool,
        tool_version=version,
        condition=condition,
        points=points,
        series=series,
        plateau=Plateau(highest, RULE),
        ratio=Ratio(RATIO_BLOCK_BYTES, [FEW_THREADS, MANY_THREADS], ratio),
        system_cpu=SystemCpu(CPU_BLOCK_BYTES, cpu),
        saturating_block_bytes=saturating,
        reasons={metric: why for metric, why in reasons.items() if why},
    )


def _series(points: Sequence[ThreadPoint], block_bytes: int) -> Series:
    known = sorted((p.threads, p.rate) for p in points if p.block_bytes == block_bytes and p.rate is not None)
    found = find_plateau(known)
    return Series(block_bytes, SeriesPlateau(found.throughput_bytes_per_s, found.start) if found else None)


def _ratio(points: Sequence[ThreadPoint]) -> tuple[float | None, str]:
    rates = []
    for threads in (FEW_THREADS, MANY_THREADS):
        rate = next((p.rate for p in points if (p.threads, p.block_bytes) == (threads, RATIO_BLOCK_BYTES)), None)
        if not rate:
            blocks = binary_label(RATIO_BLOCK_BYTES)
            return None, f"{threads} threads with blocks of {blocks} were not measured, or do not count"
        rates.append(rate)
    return rates[1] / rates[0], ""


def _highest_cpu(points: Sequence[ThreadPoint]) -> tuple[float | None, str]:
    """The largest of the scanned numbers of threads, on the careful side: one alone has the most to do."""
    counted = [p for p in points if p.block_bytes == CPU_BLOCK_BYTES and p.admissible]
    if not counted:
        return None, f"no point with blocks of {binary_label(CPU_BLOCK_BYTES)} was measured, or none counts"
    return max(p.cpu_system_percent / 100 for p in counted), ""


def _saturating(points: Sequence[ThreadPoint]) -> int | None:
    known = [(p.rate, p.block_bytes) for p in points if p.rate is not None]
    if not known:
        return None
    floor = PLATEAU_SHARE * max(rate for rate, _ in known)
    return min(size for rate, size in known if rate >= floor)


def coverage(plan: Plan, document: Document) -> Iterator[Problem]:
    sizes, threads = plan.parameters["block_sizes"], plan.parameters["threads"]
    grid = [(number, size) for size in sizes for number in threads]
    yield from rows("the scan with", plan.parameters["tools"], column(document["scans"], "tool"))
    for scan in typed(document, ThreadScan, plan.file).scans:
        what = f"{scan.tool}: the point with"
        yield from rows(what, grid, [(one.threads, one.block_bytes) for one in scan.points], _thread_point)
        named = [(_thread_point((one.threads, one.block_bytes)), as_document(one)) for one in scan.points]
        yield from counting(what, named)
        yield from sampled(what, document["sample_s"], named)
        yield from with_counter(what, plan, named)
        made = structs.replace(scan_of(scan.tool, scan.tool_version, scan.condition, scan.points), reasons=scan.reasons)
        yield from follows(f"{scan.tool}: the summary", as_document(scan), as_document(made))


def _thread_point(key: tuple[int, int]) -> str:
    return f"{key[0]} thread{'s' if key[0] > 1 else ''} and blocks of {binary_label(key[1])}"


MODEL = Model(
    coverage,
    (Count("seconds_per_point", stated("seconds_per_point")), Count("file_bytes", stated("file_size"))),
    times=once,
    result=ThreadScan,
)
