"""The thread scan (DUNE paper, figure 2): one family of curves for each tool."""

from __future__ import annotations

from matplotlib import colormaps
from matplotlib.colors import to_hex

from daq_bench.bench_model.workloads.thread_scan import Scan, ThreadPoint, ThreadScan
from daq_bench.bench_report.base.units import NONE, binary_size, duration, in_gib_per_s, percent, significant
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.section import Lacking, Part, Section
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.figures.references import measured_references
from daq_bench.bench_report.figures.sizes import (
    draw_spread,
    not_drawn,
    published_lines,
    rate_axis,
    samples_text,
    with_gaps,
)
from daq_bench.bench_report.reading.dataset.bundle import Bundle

HEIGHT_MM = 88.0
MARKERS = "os^DvP<X>*"
DASHES = ("-", "--", "-.", ":")
DODGE = 0.012  # share of the axis' length, so that bars of neighbouring series do not hide each other
PUBLISHED = (("thread_ratio_32KiB", "ratio"), ("system_cpu_per_thread_4MiB", "CPU"))


def section(bundle: Bundle) -> Section | None:
    found = bundle.result("thread_scan", ThreadScan)
    if found is None:
        return None
    parts: list[Part] = []
    for scan in found.scans:
        figure = _figure(bundle, found, scan)
        parts.append(_paragraph(bundle, scan))
        parts.append(figure or Lacking(f"no point of the thread scan with {scan.tool} counts"))
        parts.append(_table(scan))
    return Section("threads", "Thread scan", tuple(parts))


def _paragraph(bundle: Bundle, scan: Scan) -> str:
    ratio, cpu = scan.ratio, scan.system_cpu
    few, many = (int(value) for value in ratio.threads)
    size = binary_size(ratio.block_bytes)
    said = [f"With {scan.tool}:"]
    value = ratio.value
    said.append(
        f"{many} threads write blocks of {size} {significant(value, 3)} times as fast as {few}."
        if value is not None
        else f"the ratio of {many} threads to {few} with blocks of {size} was not measured."
    )
    share = cpu.highest_fraction
    if share is not None:
        size = binary_size(cpu.block_bytes)
        said.append(f"With blocks of {size} a thread spends at most {percent(100 * share)} of its time in the system.")
    saturating = scan.saturating_block_bytes
    if saturating is not None:
        said.append(
            f"Blocks of {binary_size(saturating)} are the smallest that reach the highest throughput of the scan."
        )
    for metric, _ in PUBLISHED:
        said += [one.attribution for one in measured_references(bundle, metric)]
    return " ".join(said)


def _figure(bundle: Bundle, found: ThreadScan, scan: Scan) -> Figure | None:
    points = scan.points
    drawn = [point for point in points if point.admissible]
    if not drawn:
        return None
    tool = scan.tool
    sizes = sorted({point.block_bytes for point in points})
    threads = sorted({point.threads for point in points})
    name, title = f"threads-{tool}", f"Sequential write throughput against threads, with {tool}"
    seen = [rate for point in drawn for rate in (point.throughput_bytes_per_s, *point.throughput_bytes_per_s_samples)]
    references = measured_references(bundle, "sequential_write_throughput")
    with sheet(name, HEIGHT_MM) as (drawing, (axes,)):
        length = max(threads) - min(threads) or 1
        for index, size in enumerate(sizes):
            colour = to_hex(colormaps["viridis"](0.92 * index / max(1, len(sizes) - 1)))
            shift = (index - (len(sizes) - 1) / 2) * DODGE * length / max(1, len(sizes) / 4)
            of = {point.threads: point for point in points if point.block_bytes == size and point.admissible}
            rates = [of[number].throughput_bytes_per_s if number in of else None for number in threads]
            look = (colour, DASHES[index % len(DASHES)], MARKERS[index % len(MARKERS)])
            axes.curve([number + shift for number in threads], with_gaps(rates), look, binary_size(size), zorder=3)
            known = [of[number] for number in threads if number in of]
            draw_spread(
                axes,
                [p.threads + shift for p in known],
                [p.throughput_bytes_per_s for p in known],
                [p.throughput_bytes_per_s_samples for p in known],
                colour,
            )
        rate_axis(axes, seen, published_lines(references))
        axes.set_xticks(threads)
        axes.set_xlabel("threads")
        axes.set_xlim(min(threads) - 0.06 * length, max(threads) + 0.06 * length)
        axes.label_ends()
        alt = f"{title}: {len(sizes)} block sizes, highest point {in_gib_per_s(max(point.throughput_bytes_per_s for point in drawn))}."
    masked = [f"{p.threads} \u00d7 {binary_size(p.block_bytes)}" for p in points if not p.admissible]
    each = samples_text([len(point.throughput_bytes_per_s_samples) for point in drawn])
    caption = [
        f"One series per block size; {found.io_depth} write"
        f"{'s' if found.io_depth > 1 else ''} in flight per thread, {scan.condition}; "
        f"n = {len(drawn)} points, each with {each} samples of {duration(found.sample_s)}; bars reach from the lowest to "
        "the highest sample. Series are set a little apart sideways so that their bars can be seen.",
        f"{scan.plateau.rule}.",
        not_drawn(masked),
        *(one.attribution for one in references),
    ]
    return drawing.figure(title, " ".join(part for part in caption if part), alt, _see(drawn))


def _table(scan: Scan) -> Table:
    rows, points = [], scan.points
    for series in scan.series:
        size, plateau = series.block_bytes, series.plateau
        of = {p.threads: p for p in points if p.block_bytes == size and p.admissible}
        masked = [f"{p.threads}: {p.reason}" for p in points if p.block_bytes == size and not p.admissible]
        ends = [in_gib_per_s(of[number].throughput_bytes_per_s) if number in of else NONE for number in _ends(points)]
        best = max(of.values(), key=lambda p: p.throughput_bytes_per_s, default=None)
        level = (in_gib_per_s(plateau.throughput_bytes_per_s), str(plateau.from_threads)) if plateau else (NONE, NONE)
        highest = f"{in_gib_per_s(best.throughput_bytes_per_s)} with {best.threads}" if best else NONE
        rows.append((binary_size(size), *ends, highest, *level, "; ".join(masked) or "all drawn"))
    few, many = _ends(points)
    return Table(
        heads=("Block size", f"{few} thread{'s' if few > 1 else ''}", f"{many} threads", "Highest", "Plateau", "From threads", "Masked"),
        kinds="nnnnnnt", rows=tuple(rows), name="threads",
        caption=f"Throughput with {scan.tool} by block size, 1 GiB/s = 2\u00b3\u2070 B/s.",
    )  # fmt: skip


def _ends(points: list[ThreadPoint]) -> tuple[int, int]:
    numbers = [point.threads for point in points]
    return min(numbers), max(numbers)


def _see(drawn: list[ThreadPoint]) -> str:
    best = max(drawn, key=lambda point: point.throughput_bytes_per_s)
    alone = [point for point in drawn if point.threads == min(one.threads for one in drawn)]
    few = max(alone, key=lambda point: point.throughput_bytes_per_s)
    highest, alone_at = in_gib_per_s(best.throughput_bytes_per_s), in_gib_per_s(few.throughput_bytes_per_s)
    return (
        f"The highest mean is {highest} with {best.threads} threads and blocks of {binary_size(best.block_bytes)}; "
        f"with {few.threads} it is {alone_at} ({binary_size(few.block_bytes)})."
    )
