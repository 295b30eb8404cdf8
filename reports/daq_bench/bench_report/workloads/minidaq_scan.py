"""The MiniDAQ against request size beside synthetic writes (DUNE paper, figure 4)."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from daq_bench.bench_model.workloads.minidaq_scan import MinidaqScan, Point, Synthetic
from daq_bench.bench_report.base.marks import see_table
from daq_bench.bench_report.base.units import (
    GIB,
    THIN,
    binary_size,
    count,
    duration,
    in_gib_per_s,
    percent,
    share,
    significant,
    three,
)
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import BLUE, GREEN, GREY, ORANGE
from daq_bench.bench_report.document.panel import Panel
from daq_bench.bench_report.document.section import Lacking, Part, Section
from daq_bench.bench_report.document.table import IN_FIGURE, Column, Columns, Table, masked, table
from daq_bench.bench_report.figures.references import measured_references
from daq_bench.bench_report.figures.sizes import (
    Line,
    draw_spread,
    not_drawn,
    published_lines,
    rate_axis,
    samples_text,
    size_axis,
    with_gaps,
)
from daq_bench.bench_report.reading.dataset.bundle import Bundle

HEIGHT_MM = 80.0
LIMITS = {
    "inhibit": "inhibit",
    "all asked": "links: all that they deliver",
    "source": "source",
    "nothing stood": "no rate stood",
}


@dataclass(frozen=True)
class _Size:
    """The repetitions of one request size that count; the figure draws their medians."""

    request_bytes: int
    counted: list[Point]

    def rate(self, key: str = "") -> float | None:
        """Returns the median of the MiniDAQ's throughput, or of the synthetic writes'; None where no repetition counts."""
        found = [_of(point, key).throughput_bytes_per_s for point in self.counted]
        rates = [one for one in found if one is not None]
        return statistics.median(rates) if rates else None

    def samples(self, key: str = "") -> tuple[float, ...]:
        return tuple(one for point in self.counted for one in _of(point, key).throughput_bytes_per_s_samples)

    @property
    def top(self) -> float:
        return max(max((*self.samples(key), self.rate(key) or 0.0)) for key in ("", "synthetic"))


def _sizes(points: list[Point]) -> list[_Size]:
    asked = dict.fromkeys(point.asked_request_bytes for point in points)
    return [
        _Size(
            size,
            [point for point in points if point.admissible and point.asked_request_bytes == size],
        )
        for size in asked
    ]


def section(bundle: Bundle) -> Section | None:
    found = bundle.result("minidaq_scan", MinidaqScan)
    if found is None:
        return None
    points = found.points
    figure = _figure(bundle, found)
    parts: list[Part] = [
        _paragraph(bundle, found),
        figure or Lacking("no request size at which the MiniDAQ ran without inhibit and counts"),
        _table(points),
    ]
    return Section("minidaq-scan", "MiniDAQ against request size", tuple(parts))


def _paragraph(bundle: Bundle, found: MinidaqScan) -> str:
    plateau = found.plateau
    start, rate, ratio = plateau.from_request_bytes, plateau.throughput_bytes_per_s, plateau.ratio_to_synthetic
    if start is None and rate is not None:
        said = f"The highest throughput without inhibit is {in_gib_per_s(rate)}; where it begins is not known, since a point is masked."
    elif start is None or rate is None or ratio is None:
        said = "Throughput does not level out within the scanned request sizes, so no plateau is stated."
    else:
        said = (
            f"The highest throughput without inhibit is {in_gib_per_s(rate)}, level from requests of {binary_size(start)} on, and "
            f"{significant(ratio, 3)} times that of synthetic writes in the same rounds."
        )
    copy = plateau.copy_share
    if copy is not None:
        said += f" Copying takes {percent(100 * copy)} of the CPU time of the MiniDAQ, its emulated source included."
    references = [
        one
        for metric in ("minidaq_plateau_request_size", "minidaq_copy_share")
        for one in measured_references(bundle, metric)
    ]
    return " ".join([said, *(one.attribution for one in references)])


def _figure(bundle: Bundle, found: MinidaqScan) -> Figure | None:
    points, all_sizes = found.points, _sizes(found.points)
    drawn = [one for one in all_sizes if one.counted]
    if not drawn:
        return None
    name, title = "minidaq-scan", "Highest throughput of the MiniDAQ without inhibit, beside synthetic writes"
    applications, threads = found.applications, found.synthetic_threads
    sizes = [one.request_bytes for one in all_sizes]
    demand = found.demand_bytes_per_s
    top = max(one.top for one in drawn)
    references = measured_references(bundle, "minidaq_throughput")
    lines = [Line("all that the links deliver", demand, GREY, (0, (1, 1.5))), *published_lines(references)]
    with sheet(name, HEIGHT_MM) as (drawing, (axes,)):
        _draw(axes, all_sizes, f"{applications} \u00d7 MiniDAQ", BLUE, "-", "o")
        _draw(axes, all_sizes, f"synthetic, {threads} threads", ORANGE, "--", "s", key="synthetic")
        _draw_plateau(axes, found, sizes)
        size_axis(axes, sizes, "request size of each application (bytes, powers of two)")
        rate_axis(axes, [top, *(rate for one in drawn for rate in one.samples() or (one.top,))], lines)
        axes.legend_above(columns=3)
        alt = f"{title}: {len(drawn)} request sizes, highest {in_gib_per_s(top)}."
    repetitions = max(point.repetition for point in points)
    masked = [_name(point, repetitions) for point in points if not point.admissible]
    each = samples_text([len(one.samples()) for one in drawn])
    several = f"medians of {samples_text([len(one.counted) for one in drawn])} repetitions; " if repetitions > 1 else ""
    caption = [
        f"{applications} applications of {found.links} links, one writer thread each; records of "
        f"{duration(found.seconds_per_point)} at the highest trigger rate that stood without inhibit, and "
        f"synthetic writes with blocks of the request's size in the same round; {several}"
        f"{found.condition}; n = {len(drawn)} request sizes, each with {each} samples; "
        "bars reach from the lowest to the highest sample, which do not include the final flush.",
        f"{found.plateau.rule}.",
        not_drawn(masked, see_table("minidaq-scan")),
        *(one.attribution for one in references),
    ]
    return drawing.figure(title, " ".join(part for part in caption if part), alt, _see(drawn))


def _of(point: Point, key: str) -> Point | Synthetic:
    return point.synthetic if key else point


def _name(point: Point, repetitions: int) -> str:
    size = binary_size(point.asked_request_bytes)
    return size if repetitions == 1 else f"{size} (repetition {point.repetition})"


def _draw(axes: Panel, sizes: list[_Size], label: str, colour: str, dashes: str, marker: str, key: str = "") -> None:
    rates = [one.rate(key) for one in sizes]
    x = [one.request_bytes for one in sizes]
    axes.curve(x, with_gaps(rates), (colour, dashes, marker), label, zorder=3)
    known = [(one, rate) for one, rate in zip(sizes, rates, strict=True) if rate is not None]
    samples = [one.samples(key) for one, _ in known]
    draw_spread(axes, [one.request_bytes for one, _ in known], [rate for _, rate in known], samples, colour)


def _draw_plateau(axes: Panel, found: MinidaqScan, sizes: list[int]) -> None:
    start, rate = found.plateau.from_request_bytes, found.plateau.throughput_bytes_per_s
    if start is None or rate is None:
        return
    label = f"plateau {in_gib_per_s(rate)} from {binary_size(start)}"
    axes.hlines(rate / GIB, start, max(sizes) * 1.2, color=GREEN, linewidth=1.1, linestyle="--", label=label, zorder=4)


COLUMNS: Columns[Point] = (
    Column("Request", lambda point: point.asked_request_bytes, binary_size),
    Column("Repetition", lambda point: point.repetition, count),
    Column("MiniDAQ", lambda point: point.throughput_bytes_per_s, in_gib_per_s),
    Column(
        "Trigger rate",
        lambda point: f"{significant(point.runs[-1].trigger_rate_hz)}{THIN}Hz" if point.runs else None,
        kind="n",
    ),
    Column("Kept from more by", lambda point: LIMITS[point.limited_by]),
    Column("Inhibits", lambda point: point.inhibits, count),
    Column("Records", lambda point: len(point.runs), count),
    Column("Copying", lambda point: point.copy_share, share),
    Column("Synthetic", lambda point: point.synthetic.throughput_bytes_per_s, in_gib_per_s),
    Column("Ratio", lambda point: point.ratio_to_synthetic, three),
    IN_FIGURE,
)


def _table(points: list[Point]) -> Table:
    caption = (
        "MiniDAQ: stored per second by all applications, final flush included. Trigger rate: decisions per second of each "
        "application. Inhibits: vetoed decisions, BUSY episodes and lost superchunks of the record drawn. Records: how many it took, each "
        "2 % slower, until one had none. Copying: share of the CPU time."
    )
    return table(points, COLUMNS, "minidaq-scan", caption, masked)


def _see(drawn: list[_Size]) -> str:
    largest = max(drawn, key=lambda one: one.request_bytes)
    rate, synthetic = largest.rate(), largest.rate("synthetic")
    if rate is None or synthetic is None:
        return ""
    size = binary_size(largest.request_bytes)
    return f"At {size}, the largest size drawn, the MiniDAQ stores {in_gib_per_s(rate)} and synthetic writes {in_gib_per_s(synthetic)}."
