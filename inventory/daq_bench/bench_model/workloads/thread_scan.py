"""The results of a scan over threads and block sizes (DUNE paper, figure 2): ratio, CPU cost, plateaus. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta

from daq_bench.bench_model.base.units import KIB, MIB, binary_label
from daq_bench.bench_model.bundle.evidence import Document
from daq_bench.bench_model.documents.results import WritePoint
from daq_bench.bench_model.documents.struct import Amount, Closed, Ordinal, Positive, as_document, read
from daq_bench.bench_model.statistics.plateau import PLATEAU_SHARE, find_plateau
from daq_bench.bench_model.workloads.model import Count, Model, once, stated
from daq_bench.bench_model.workloads.plan import Plan, Problem, column, counting, follows, rows

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


@dataclass(frozen=True)
class Point:
    """`rate` in B/s; None where the point does not count. `system_percent`: of one CPU, mean of its threads."""

    threads: int
    block_bytes: int
    rate: float | None
    system_percent: float


class ThreadPoint(WritePoint, frozen=True, kw_only=True):
    threads: Ordinal


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

    tool: Literal["fio", "daqwriter"]
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


def result(parameters: Document, sample_s: float, scans: Sequence[Document]) -> Document:
    """results/thread_scan.json from the tools' points."""
    made = []
    for scan in scans:
        found, reasons = summarize([point_of(one) for one in scan["points"]])
        made.append(read({**scan, **found, "reasons": reasons}, Scan, f"the scan with {scan['tool']}"))
    return as_document(
        ThreadScan(
            schema_version=1,
            io_depth=parameters["io_depth"],
            seconds_per_point=parameters["seconds_per_point"],
            ramp_s=parameters["ramp_s"],
            sample_s=sample_s,
            file_bytes=parameters["file_size"],
            scans=made,
            reasons=made[0].reasons,
        )
    )


def summarize(points: Sequence[Point]) -> tuple[dict[str, Any], dict[str, str]]:
    """(what results/thread_scan.json says beside its points, why a metric has no value by metric)."""
    reasons: dict[str, str] = {}
    series = [_series(points, size) for size in sorted({point.block_bytes for point in points})]
    plateaus = [one["plateau"]["throughput_bytes_per_s"] for one in series if one["plateau"]]
    if not plateaus:
        reasons[PLATEAU] = "with no block size does throughput level out within the scanned numbers of threads"
    ratio, why_not = _ratio(points)
    if why_not:
        reasons[RATIO] = why_not
    cpu, why_not = _highest_cpu(points)
    if why_not:
        reasons[CPU] = why_not
    saturating = _saturating(points)
    if saturating is None:
        reasons[SATURATING] = "no point of the scan counts"
    found = {
        "series": series,
        "plateau": {"throughput_bytes_per_s": max(plateaus, default=None), "rule": RULE},
        "ratio": {"block_bytes": RATIO_BLOCK_BYTES, "threads": [FEW_THREADS, MANY_THREADS], "value": ratio},
        "system_cpu": {"block_bytes": CPU_BLOCK_BYTES, "highest_fraction": cpu},
        "saturating_block_bytes": saturating,
    }
    return found, reasons


def _series(points: Sequence[Point], block_bytes: int) -> dict[str, Any]:
    known = sorted((p.threads, p.rate) for p in points if p.block_bytes == block_bytes and p.rate is not None)
    plateau = find_plateau(known)
    shown = (
        {"throughput_bytes_per_s": plateau.throughput_bytes_per_s, "from_threads": plateau.start} if plateau else None
    )
    return {"block_bytes": block_bytes, "plateau": shown}


def _ratio(points: Sequence[Point]) -> tuple[float | None, str]:
    rates = []
    for threads in (FEW_THREADS, MANY_THREADS):
        rate = next((p.rate for p in points if (p.threads, p.block_bytes) == (threads, RATIO_BLOCK_BYTES)), None)
        if not rate:
            return (
                None,
                f"{threads} threads with blocks of {binary_label(RATIO_BLOCK_BYTES)} were not measured, or do not count",
            )
        rates.append(rate)
    return rates[1] / rates[0], ""


def _highest_cpu(points: Sequence[Point]) -> tuple[float | None, str]:
    """The largest of the scanned numbers of threads, on the careful side: one alone has the most to do."""
    shares = [p.system_percent / 100 for p in points if p.block_bytes == CPU_BLOCK_BYTES and p.rate is not None]
    if not shares:
        return None, f"no point with blocks of {binary_label(CPU_BLOCK_BYTES)} was measured, or none counts"
    return max(shares), ""


def _saturating(points: Sequence[Point]) -> int | None:
    known = [(p.rate, p.block_bytes) for p in points if p.rate is not None]
    if not known:
        return None
    floor = PLATEAU_SHARE * max(rate for rate, _ in known)
    return min(size for rate, size in known if rate >= floor)


def coverage(plan: Plan, document: Document) -> Iterator[Problem]:
    sizes, threads = plan.parameters["block_sizes"], plan.parameters["threads"]
    grid = [(number, size) for size in sizes for number in threads]
    yield from rows("the scan with", plan.parameters["tools"], column(document["scans"], "tool"))
    for scan in document["scans"]:
        what, points = f"{scan['tool']}: the point with", scan["points"]
        yield from rows(what, grid, [(one["threads"], one["block_bytes"]) for one in points], _thread_point)
        yield from counting(what, ((_thread_point((one["threads"], one["block_bytes"])), one) for one in points))
        found, _ = summarize([point_of(one) for one in points])
        yield from follows(f"{scan['tool']}: the summary", {key: scan[key] for key in found}, found)


def point_of(one: Document) -> Point:
    """A row of results/thread_scan.json."""
    rate = one["throughput_bytes_per_s"] if one["admissible"] else None
    return Point(one["threads"], one["block_bytes"], rate, one["cpu_system_percent"])


def _thread_point(key: tuple[int, int]) -> str:
    return f"{key[0]} thread{'s' if key[0] > 1 else ''} and blocks of {binary_label(key[1])}"


MODEL = Model(
    coverage,
    (Count("seconds_per_point", stated("seconds_per_point")), Count("file_bytes", stated("file_size"))),
    times=once,
    result=ThreadScan,
)
