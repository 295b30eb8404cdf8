"""The read scan: the highest rates, and a table of all points for each tool."""

from __future__ import annotations

from collections.abc import Callable

from daq_bench.bench_model.workloads.read_scan import Best, Point, ReadScan, Scan
from daq_bench.bench_report.base.units import binary_size, count, in_gb_per_s, latency
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.section import Part, Section
from daq_bench.bench_report.document.table import Column, Columns, Table, table
from daq_bench.bench_report.figures.surface import Cell, surface_figure
from daq_bench.bench_report.reading.dataset.bundle import Bundle


def section(bundle: Bundle) -> Section | None:
    found = bundle.result("read_scan", ReadScan)
    if found is None:
        return None
    parts: list[Part] = [_paragraph(found)]
    for scan in found.scans:
        surface = _surface(scan)
        parts += [*([surface] if surface else []), _table(scan)]
    return Section("read-scan", "Read scan", tuple(parts))


def _paragraph(found: ReadScan) -> str:
    said = []
    sequential, random, alone = found.sequential_throughput, found.random_rate, found.random_latency_p99_9
    if sequential:
        said.append(f"Sequential reads reach {in_gb_per_s(sequential.value)} {_with(sequential)}.")
    if random:
        said.append(f"Random reads reach {count(round(random.value))} per second {_with(random)}.")
    if alone:
        said.append(f"99.9 % of random reads {_with(alone)} are answered within {latency(alone.value)}.")
    for pattern in ("sequential", "random"):
        counted = [one for one in found.again if one.pattern == pattern and one.reason is None]
        rates = [one.throughput_bytes_per_s for one in counted]
        if rates:
            said.append(
                f"Measured again {len(rates)} times, {pattern} reads run at {in_gb_per_s(min(rates))} to {in_gb_per_s(max(rates))}."
            )
    return " ".join([*said, f"{found.rule}."])


def _with(best: Best) -> str:
    size, depth, jobs = best.block_bytes, best.io_depth, best.jobs
    return f"(blocks of {binary_size(size)}, depth {depth}, {jobs} job{'s' if jobs > 1 else ''})"


def _surface(scan: Scan) -> Figure | None:
    cells = [
        Cell(
            f"{point.pattern}, {binary_size(point.block_bytes)}",
            point.io_depth, point.jobs,
            point.throughput_bytes_per_s if point.reason is None else None,
        )
        for point in scan.points
    ]  # fmt: skip
    return surface_figure(f"surface-{scan.tool}", f"Reads with {scan.tool}: rate by queue depth and jobs", cells)


def _if_counted(of: Callable[[Point], float]) -> Callable[[Point], float | None]:
    return lambda point: of(point) if point.reason is None else None


COLUMNS: Columns[Point] = (
    Column("Pattern", lambda point: point.pattern),
    Column("Block size", lambda point: point.block_bytes, binary_size),
    Column("Depth", lambda point: point.io_depth, kind="n"),
    Column("Jobs", lambda point: point.jobs, kind="n"),
    Column("Rate", _if_counted(lambda point: point.throughput_bytes_per_s), in_gb_per_s),
    Column("Reads/s", _if_counted(lambda point: round(point.iops)), count),
    Column("p50", _if_counted(lambda point: point.latency_us.p50), latency),
    Column("p99.9", _if_counted(lambda point: point.latency_us.p99_9), latency),
    Column("Masked", lambda point: point.reason or "counts"),
)


def _table(scan: Scan) -> Table:
    caption = (
        f"Reads with {scan.tool} by pattern, block size, depth of each job and number of jobs; 1 GB/s = 10\u2079 B/s."
    )
    return table(scan.points, COLUMNS, f"reads-{scan.tool}", caption)
