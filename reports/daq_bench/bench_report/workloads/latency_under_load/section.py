"""Latency from intended arrival to durable against offered rate, and its whole distribution at a few rates."""

from __future__ import annotations

import math
from functools import partial

from daq_bench.bench_model.documents.run import DemandOfRun
from daq_bench.bench_model.workloads.latency_under_load import LatencyUnderLoad, Point
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.base.marks import see_table
from daq_bench.bench_report.base.units import GB, count, duration, factor_text, in_gb_per_s, latency
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import GREY, INK, SERIES, VERMILLION
from daq_bench.bench_report.document.panel import Panel
from daq_bench.bench_report.document.section import Lacking, Part, Section
from daq_bench.bench_report.document.table import IN_FIGURE, Column, Columns, Table, masked, table
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.workloads.latency_under_load.figures import (
    Curve,
    curve_of,
    draw_curve,
    set_latency_axis,
    set_percentile_axes,
)

HEIGHT_MM, SPECTRUM_MM = 84.0, 70.0
PERCENTILES = (50.0, 99.0, 99.9, 99.99, 99.999)
MOST_CURVES = 3


def section(bundle: Bundle) -> Section | None:
    found = bundle.result("latency_under_load", LatencyUnderLoad)
    if found is None:
        return None
    points = found.points
    parts: list[Part] = [
        _paragraph(found),
        _curve_figure(found, bundle.run.demand) or Lacking("no load that was really offered"),
    ]
    spectrum = _spectrum_figure(found)
    if spectrum:
        parts.append(spectrum)
    parts.append(_table(points))
    return Section("latency-under-load", "Latency under load", tuple(parts))


def _paragraph(found: LatencyUnderLoad) -> str:
    knee = found.knee
    sustained, beyond, why = knee.sustained_bytes_per_s, knee.knee_bytes_per_s, knee.why
    if sustained is None:
        said = f"No offered rate lies before the knee: {why}."
    elif beyond is None:
        said = f"At least {in_gb_per_s(sustained)} is sustained; the knee was {why}."
    else:
        said = f"{in_gb_per_s(sustained)} is sustained; the knee is at {in_gb_per_s(beyond)}, where {why}."
    return f"{said} {knee.rule}."


def _asked(point: Point) -> float:
    return point.asked_bytes_per_s


def _values(point: Point) -> dict[float, float | None]:
    return {one.percentile: one.us for one in point.percentiles}


def _at(percentile: float, point: Point) -> float | None:
    return _values(point).get(percentile)


def _curve_figure(found: LatencyUnderLoad, asked: DemandOfRun | None) -> Figure | None:
    points = found.points
    drawn = [point for point in points if point.admissible]
    values = [us for point in drawn for us in _values(point).values() if us]
    if not values:
        return None
    name, title = "latency-under-load", "Latency against offered rate"
    rates = [_asked(point) / GB for point in points]
    with sheet(name, HEIGHT_MM) as (drawing, (axes,)):
        for percentile, look in zip(PERCENTILES, SERIES, strict=False):
            line = [(_at(percentile, point) or math.nan) if point.admissible else math.nan for point in points]
            if any(not math.isnan(value) for value in line):
                axes.curve(rates, line, look, f"p{percentile:g}", zorder=3)
        _mark_losses(axes, drawn, max(values))
        demand = _demand(found, asked)
        _set_axes(axes, [*rates, *([demand / GB] if demand else [])], values)
        _mark(axes, found.knee.knee_bytes_per_s, "knee", GREY, (0, (1, 1.5)))
        _mark(axes, demand, "demand", VERMILLION, (0, (6, 2)))
        axes.label_ends()
        alt = f"{title}: {len(drawn)} rates from {in_gb_per_s(_asked(drawn[0]))} to {in_gb_per_s(_asked(drawn[-1]))}."
    return drawing.figure(title, _caption(found, drawn), alt, _see(drawn))


def _mark_losses(axes: Panel, drawn: list[Point], highest_us: float) -> None:
    lost = [_asked(point) / GB for point in drawn if point.lost]
    if lost:
        axes.mark(lost, highest_us * 2, "x", INK, "superchunks lost", 4, size=6)


def _demand(found: LatencyUnderLoad, asked: DemandOfRun | None) -> float | None:
    """Returns what one readout unit delivers at this run's scale, in B/s."""
    return asked.real_bytes_per_s * found.scale if asked else None


def _mark(axes: Panel, rate: float | None, word: str, colour: str, dashes: object) -> None:
    """Draws a rate as a vertical line with its name at the foot, where no curve runs; the demand stands a line higher."""
    if rate is None:
        return
    label = f"{word} {in_gb_per_s(rate)}"
    axes.axvline(rate / GB, color=colour, linewidth=0.9, linestyle=dashes, label=label, zorder=1)
    axes.annotate(
        label, (rate / GB, 0.0), xycoords=("data", "axes fraction"), xytext=(-3, 12 if word == "demand" else 3), textcoords="offset points",
        ha="right", va="bottom", fontsize=7, color=colour,
    )  # fmt: skip


def _set_axes(axes: Panel, rates: list[float], values: list[float]) -> None:
    set_latency_axis(axes, values)
    axes.set_ylim(min(values) / 1.6, max(values) * 3.2)
    axes.set_xlim(0, max(rates) * 1.05)
    axes.name_axes("offered rate (GB/s)", "intended arrival to durable")
    axes.name_data(y="latency (us)")


def _caption(found: LatencyUnderLoad, drawn: list[Point]) -> str:
    masked = [in_gb_per_s(_asked(point)) for point in found.points if point not in drawn]
    numbers = [point.offered for point in drawn]
    parts = [
        f"Time from each superchunk's intended arrival until all of it is durable: an open loop of {found.links} links "
        f"that keeps its schedule whatever the drive does. Records of {duration(found.seconds_per_point)}; n = "
        f"{count(min(numbers))} to {count(max(numbers))} superchunks each, of which those in one block share their fate.",
        f"{found.percentile_rule}.",
        "A rate with a cross lost superchunks; percentiles that fall among them have no value."
        if any(point.lost for point in drawn)
        else "",
        f"Not drawn, since the source did not offer the load: {', '.join(masked)} (reasons in {see_table('latency-load')})."
        if masked
        else "",
    ]  # fmt: skip
    scale = found.scale
    if scale < 1:
        parts.append(f"Scaled down: the demand is {factor_text(scale)} of one readout unit's.")
    return " ".join(part for part in parts if part)


def _chosen(found: LatencyUnderLoad) -> list[Point]:
    """Chooses the lowest rate, the sustained one, and the first one at or beyond the knee, else the highest."""
    drawn = [point for point in found.points if point.admissible and point.stored]
    if not drawn:
        return []
    knee = found.knee
    wanted = [_asked(drawn[0]), knee.sustained_bytes_per_s, knee.knee_bytes_per_s or _asked(drawn[-1])]
    return [point for point in drawn if _asked(point) in wanted][:MOST_CURVES]


def _spectrum_figure(found: LatencyUnderLoad) -> Figure | None:
    curves: list[Curve] = []
    for point in _chosen(found):
        curve = curve_of(f"{in_gb_per_s(_asked(point))} offered", point.latency_us)
        if curve.problem:
            place = f"results/latency_under_load.json: points[{found.points.index(point)}].latency_us"
            raise BundleError(place, f"the exported distribution cannot be used: {curve.problem}")
        curves.append(curve)
    if not curves:
        return None
    name, title = "latency-spectrum", "Latency by percentile at a few offered rates"
    with sheet(name, SPECTRUM_MM) as (drawing, (axes,)):
        for curve, (colour, dashes, marker) in zip(curves, SERIES, strict=False):
            draw_curve(axes, curve, colour, dashes, marker)
        set_percentile_axes(axes, curves)
        axes.label_ends()
        alt = f"{title}: " + "; ".join(f"{curve.label}, highest {latency(max(curve.us))}" for curve in curves) + "."
    numbers = "; ".join(f"{curve.label}: n = {count(curve.count or 0)}" for curve in curves)
    caption = (
        "The whole distribution (HdrHistogram) over the stored superchunks: the lowest rate, the highest before the knee, "
        f"and the knee or the highest rate offered. {numbers}. "
        "Lost superchunks are not in these curves, and the source's own lateness (table) is: the percentiles of the figure above "
        "count the ones and leave out what the other may have made."
    )
    see = "; ".join(f"{curve.label}: the tail ends at {latency(max(curve.us))}" for curve in curves)
    return drawing.figure(title, caption, alt, f"{see}.")


COLUMNS: Columns[Point] = (
    Column("Offered", _asked, in_gb_per_s),
    Column("Stored", lambda point: point.stored_bytes_per_s, in_gb_per_s),
    Column("n", lambda point: point.offered, count),
    *(Column(f"p{percentile:g}", partial(_at, percentile), latency) for percentile in PERCENTILES),
    Column("Lost", lambda point: point.lost, count),
    Column("BUSY", lambda point: point.busy_count, count),
    Column("Source late by", lambda point: point.worst_lateness_us, latency),
    IN_FIGURE,
)


def _table(points: list[Point]) -> Table:
    caption = (
        "Latency from intended arrival to durable by offered rate; n: superchunks offered. A dash: no "
        "value, by the rule under the figure. Source late by: the worst delay of an arrival that the source itself made."
    )
    return table(points, COLUMNS, "latency-load", caption, masked)


def _see(drawn: list[Point]) -> str:
    """Says how the rarest percentile that both ends of the axis have moves from the lowest to the highest rate."""
    first, last = _values(drawn[0]), _values(drawn[-1])
    shared = [percentile for percentile in PERCENTILES if first.get(percentile) and last.get(percentile)]
    if not shared:
        return "The percentiles of the highest rate fall among lost superchunks."
    few, many = first[shared[-1]] or 0.0, last[shared[-1]] or 0.0
    rates = [in_gb_per_s(_asked(point)) for point in (drawn[0], drawn[-1])]
    return f"p{shared[-1]:g} goes from {latency(few)} at {rates[0]} to {latency(many)} at {rates[1]}."
