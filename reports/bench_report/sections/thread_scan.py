"""The thread scan (DUNE paper, figure 2): one family of curves for each tool."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib import colormaps
from matplotlib.colors import to_hex

from bench_report.base.fields import Node
from bench_report.base.units import NONE, binary_size, duration, in_gib_per_s, percent, significant
from bench_report.document.canvas import INK, Figure, legend_above, sheet, to_svg
from bench_report.document.section import Lacking, Part, Section
from bench_report.document.table import Table
from bench_report.figures.references import measured_references
from bench_report.figures.sizes import (
    beyond_text,
    draw_references,
    draw_spread,
    rate_axis,
    samples_text,
    split_references,
    with_gaps,
)
from bench_report.reading.dataset.bundle import Bundle

HEIGHT_MM = 88.0
MARKERS = "os^DvP<X>*"
DASHES = ("-", "--", "-.", ":")
DODGE = 0.012  # share of the axis' length, so that bars of neighbouring series do not hide each other
PUBLISHED = (("thread_ratio_32KiB", "ratio"), ("system_cpu_per_thread_4MiB", "CPU"))


@dataclass(frozen=True)
class Point:
    threads: int
    block_bytes: int
    rate: float
    samples: tuple[float, ...]
    admissible: bool
    reason: str | None


def section(bundle: Bundle) -> Section | None:
    node = bundle.results.get("thread_scan")
    if node is None:
        return None
    parts: list[Part] = []
    for scan in node.at("scans").items():
        points = [_point(one) for one in scan.at("points").items()]
        figure = _figure(bundle, node, scan, points)
        parts.append(_paragraph(bundle, scan))
        parts.append(figure or Lacking(f"no point of the thread scan with {scan.at('tool').as_text()} counts"))
        parts.append(_table(scan, points))
    return Section("threads", "Thread scan", tuple(parts))


def _point(node: Node) -> Point:
    return Point(
        threads=node.at("threads").as_integer(),
        block_bytes=node.at("block_bytes").as_integer(),
        rate=node.at("throughput_bytes_per_s").as_number(),
        samples=node.numbers("throughput_bytes_per_s_samples"),
        admissible=node.at("admissible").as_flag(),
        reason=node.text("reason"),
    )


def _paragraph(bundle: Bundle, scan: Node) -> str:
    ratio, cpu = scan.at("ratio"), scan.at("system_cpu")
    few, many = (int(value) for value in ratio.numbers("threads"))
    size = binary_size(ratio.at("block_bytes").as_number())
    said = [f"With {scan.at('tool').as_text()}:"]
    value = ratio.number("value")
    said.append(
        f"{many} threads write blocks of {size} {significant(value, 3)} times as fast as {few}."
        if value is not None
        else f"the ratio of {many} threads to {few} with blocks of {size} was not measured."
    )
    share = cpu.number("highest_fraction")
    if share is not None:
        size = binary_size(cpu.at("block_bytes").as_number())
        said.append(f"With blocks of {size} a thread spends at most {percent(100 * share)} of its time in the system.")
    saturating = scan.integer("saturating_block_bytes")
    if saturating is not None:
        said.append(
            f"Blocks of {binary_size(saturating)} are the smallest that reach the highest throughput of the scan."
        )
    for metric, _ in PUBLISHED:
        said += [one.attribution for one in measured_references(bundle, metric)]
    return " ".join(said)


def _figure(bundle: Bundle, node: Node, scan: Node, points: list[Point]) -> Figure | None:
    drawn = [point for point in points if point.admissible]
    if not drawn:
        return None
    tool = scan.at("tool").as_text()
    sizes = sorted({point.block_bytes for point in points})
    threads = sorted({point.threads for point in points})
    name, title = f"threads-{tool}", f"Sequential write throughput against threads, with {tool}"
    top = max(max((*point.samples, point.rate)) for point in drawn)
    references = measured_references(bundle, "sequential_write_throughput")
    shown, hidden = split_references(references, top)
    with sheet(HEIGHT_MM) as (figure, (axes,)):
        length = max(threads) - min(threads) or 1
        for index, size in enumerate(sizes):
            colour = to_hex(colormaps["viridis"](0.92 * index / max(1, len(sizes) - 1)))
            shift = (index - (len(sizes) - 1) / 2) * DODGE * length / max(1, len(sizes) / 4)
            of = {point.threads: point for point in points if point.block_bytes == size and point.admissible}
            rates = [of[number].rate if number in of else None for number in threads]
            axes.plot(
                [number + shift for number in threads], with_gaps(rates), color=colour, marker=MARKERS[index % len(MARKERS)],
                linestyle=DASHES[index % len(DASHES)], label=binary_size(size), zorder=3,
            )  # fmt: skip
            known = [of[number] for number in threads if number in of]
            draw_spread(
                axes, [p.threads + shift for p in known], [p.rate for p in known], [p.samples for p in known], colour
            )
        draw_references(axes, shown)
        rate_axis(axes, max(top, *(one.value for one in shown), 0.0) if shown else top)
        axes.set_xticks(threads)
        axes.set_xlabel("threads", color=INK)
        axes.set_xlim(min(threads) - 0.06 * length, max(threads) + 0.06 * length)
        legend_above(axes, columns=6)
        alt = f"{title}: {len(sizes)} block sizes, highest point {in_gib_per_s(max(point.rate for point in drawn))}."
        svg = to_svg(figure, name, alt)
    masked = [f"{p.threads} \u00d7 {binary_size(p.block_bytes)}" for p in points if not p.admissible]
    each = samples_text([len(point.samples) for point in drawn])
    caption = [
        f"One series per block size; {node.at('io_depth').as_integer()} write"
        f"{'s' if node.at('io_depth').as_integer() > 1 else ''} in flight per thread, {scan.at('condition').as_text()}; "
        f"n = {len(drawn)} points, each with {each} samples of {duration(node.at('sample_s').as_number())}; bars reach from the lowest to "
        "the highest sample. Series are set a little apart sideways so that their bars can be seen.",
        f"{scan.at('plateau').at('rule').as_text()}.",
        f"Not drawn, since the point does not count as evidence: {', '.join(masked)}." if masked else "",
        beyond_text(hidden),
        *(one.attribution for one in references),
    ]
    return Figure(name, title, " ".join(part for part in caption if part), alt, svg, _see(drawn))


def _table(scan: Node, points: list[Point]) -> Table:
    rows = []
    for series in scan.at("series").items():
        size, plateau = series.at("block_bytes").as_integer(), series.find("plateau")
        of = {p.threads: p for p in points if p.block_bytes == size and p.admissible}
        masked = [f"{p.threads}: {p.reason}" for p in points if p.block_bytes == size and not p.admissible]
        ends = [in_gib_per_s(of[number].rate) if number in of else NONE for number in _ends(points)]
        best = max(of.values(), key=lambda p: p.rate, default=None)
        rows.append(
            (
                binary_size(size),
                *ends,
                f"{in_gib_per_s(best.rate)} with {best.threads}" if best else NONE,
                in_gib_per_s(plateau.at("throughput_bytes_per_s").as_number()) if plateau else NONE,
                str(plateau.at("from_threads").as_integer()) if plateau else NONE,
                "; ".join(masked) or "all drawn",
            )
        )
    few, many = _ends(points)
    return Table(
        heads=("Block size", f"{few} thread{'s' if few > 1 else ''}", f"{many} threads", "Highest", "Plateau", "From threads", "Masked"),
        kinds="nnnnnnt", rows=tuple(rows), name="threads",
        caption=f"Throughput with {scan.at('tool').as_text()} by block size, 1 GiB/s = 2\u00b3\u2070 B/s.",
    )  # fmt: skip


def _ends(points: list[Point]) -> tuple[int, int]:
    numbers = [point.threads for point in points]
    return min(numbers), max(numbers)


def _see(drawn: list[Point]) -> str:
    best = max(drawn, key=lambda point: point.rate)
    alone = [point for point in drawn if point.threads == min(one.threads for one in drawn)]
    few = max(alone, key=lambda point: point.rate)
    return (
        f"The highest mean is {in_gib_per_s(best.rate)} with {best.threads} threads and blocks of {binary_size(best.block_bytes)}; with "
        f"{few.threads} it is {in_gib_per_s(few.rate)} ({binary_size(few.block_bytes)})."
    )
