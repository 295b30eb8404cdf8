"""Figures of a comparison: paired ratios with their intervals, and throughput beside what others published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from daq_bench.bench_model.statistics.paired import PairedEstimate
from daq_bench.bench_model.workloads.raid_vs_3dxp.document import Comparison
from daq_bench.bench_report.base.units import GB, in_gb_per_s, significant
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import BLUE, FAINT, GREY, INK, PURPLE, VERMILLION
from daq_bench.bench_report.document.panel import Panel

ROW_MM, MARGIN_MM = 9.0, 24.0
JITTER = 0.16  # share of a row's height, for rounds one above the other
LEAST_SPAN = 1.25  # an axis of ratios reaches at least this factor to either side of 1


Row = tuple[Comparison, PairedEstimate]  # one set and quantity, and its ratio to the reference
Quantities = Sequence[tuple[str, Sequence[Row]]]


@dataclass(frozen=True)
class RateRow:
    """Throughput of one target in its rounds, or as published (no values, only `mean`)."""

    label: str
    values: tuple[float, ...]
    mean: float
    published: bool


def ratio_figure(name: str, title: str, caption: str, panels: Quantities) -> Figure:
    """One panel per quantity, one row per set, on a common logarithmic axis of ratios."""
    rows = [len(one) for _, one in panels]
    height_mm = MARGIN_MM + sum(rows) * ROW_MM + 6 * len(rows)
    with sheet(name, height_mm, len(rows), tuple(map(float, rows))) as (drawing, axes):
        lowest, highest = _span(panels)
        for each, (label, ratios) in zip(axes, panels, strict=True):
            each.label_panel(label)
            _draw_ratios(each, ratios)
            each.set_xscale("log")
            each.set_xlim(lowest, highest)
        _ratio_axis(axes[-1], lowest, highest)
        axes[0].legend_above(columns=4)
        said = "; ".join(
            f"{label}, {one.set}: {significant(found.ratio, 3)}" for label, ratios in panels for one, found in ratios
        )
        alt = f"{title}. {said}."
        return drawing.figure(title, caption, alt, _ratios_in_words(panels))


def _ratios_in_words(panels: Quantities) -> str:
    label, rows = panels[0]
    (low, least), (high, most) = (pick(rows, key=lambda row: row[1].ratio) for pick in (min, max))
    intervals = [found.interval for _, each in panels for _, found in each]
    crossing = sum(one is None or one[0] <= 1 <= one[1] for one in intervals)
    ends = f"from {significant(least.ratio, 3)} times the reference ({low.set}) to {significant(most.ratio, 3)} times ({high.set})"
    return f"{label}: {ends}; {crossing} of {len(intervals)} rows decide nothing."


def _span(panels: Quantities) -> tuple[float, float]:
    values = [1 / LEAST_SPAN, LEAST_SPAN]
    for one, found in (row for _, rows in panels for row in rows):
        values += [turn.ratio for turn in one.rounds if turn.ratio is not None]
        # An interval of very few rounds can span decades; its end is then cut off, and the table has it.
        values += [min(max(end, found.ratio / 10), found.ratio * 10) for end in found.interval or ()]
    return min(values) / 1.08, max(values) * 1.08


def _draw_ratios(axes: Panel, rows: Sequence[Row]) -> None:
    axes.axvline(1, color=INK, linewidth=0.8, zorder=1)
    for place, (one, found) in enumerate(rows):
        for turn, ratio in ((turn, turn.ratio) for turn in one.rounds):
            if ratio is None:
                continue
            above = place + (-JITTER if turn.reference_first else JITTER)
            marker, when = ("^", "first") if turn.reference_first else ("v", "last")
            axes.mark(ratio, above, marker, BLUE, f"round, reference {when}", 4, hollow=not turn.reference_first)
            if turn.cause is not None:
                axes.plot(
                    ratio, above, linestyle="none", marker="o", markersize=9, color=VERMILLION,
                    markerfacecolor="none", label=axes.once("disturbed or far off"), zorder=5,
                )  # fmt: skip
                axes.annotate(
                    f"round {turn.round}", (ratio, above), xytext=(7, -2.5), textcoords="offset points",
                    color=VERMILLION, fontsize=6.5,
                )  # fmt: skip
        if found.interval:
            low, high = found.interval
            axes.hlines(place, low, high, color=INK, linewidth=1.4, label=axes.once("95 % interval"), zorder=3)
        axes.mark(found.ratio, place, "D", INK, "geometric mean", 6)
    axes.name_rows([one.set for one, _ in rows])


def _ratio_axis(axes: Panel, lowest: float, highest: float) -> None:
    span = highest / lowest
    subs = (1.0,) if span > 300 else (1.0, 2.0, 5.0) if span > 20 else (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
    axes.decades("x", *subs)
    axes.set_xlabel("set / reference in the same round (logarithmic; 1: alike)")


def rate_figure(name: str, title: str, caption: str, rows: Sequence[RateRow]) -> Figure:
    """Measured targets above, published devices below a line, hollow and without a spread: nobody measured them here."""
    with sheet(name, MARGIN_MM + len(rows) * 5.2) as (drawing, (axes,)):
        for place, row in enumerate(rows):
            kind = "published, not measured here" if row.published else "measured: mean"
            if row.values:
                axes.mark([value / GB for value in row.values], place, "|", GREY, "measured: each round", 3, size=8)
            marker, colour = ("D", PURPLE) if row.published else ("o", BLUE)
            axes.mark(row.mean / GB, place, marker, colour, kind, 4, hollow=row.published)
        measured = sum(not row.published for row in rows)
        if 0 < measured < len(rows):
            axes.axhline(measured - 0.5, color=FAINT, linewidth=1.0, zorder=1)
        few = max(row.mean for row in rows) / min(row.mean for row in rows) < 20
        axes.decades("x", *((1.0, 2.0, 3.0, 5.0, 7.0) if few else ()))
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_yticks(range(len(rows)), [row.label for row in rows])
        axes.set_xlabel("sequential write throughput (GB/s, logarithmic)")
        axes.legend_above(columns=3)
        alt = f"{title}. " + "; ".join(
            f"{row.label}{' (published)' if row.published else ''} {in_gb_per_s(row.mean, 3)}" for row in rows
        )
        best = max((row for row in rows if not row.published), key=lambda row: row.mean, default=None)
        see = f"The fastest that was measured here is {best.label} ({in_gb_per_s(best.mean, 3)})." if best else ""
        return drawing.figure(title, caption, alt, see)
