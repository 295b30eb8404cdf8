"""Figures of a decision: values with their intervals, price against throughput, break-even prices, shares of the weights.

Contenders stand in rows or carry their letter; a dominated one has a shape of its own, so that no colour is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.patches import Rectangle

from daq_bench.bench_report.base.units import significant, together
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import BLUE, FAINT, GREY, INK, VERMILLION
from daq_bench.bench_report.document.panel import Panel

ROW_MM, MARGIN_MM = 6.4, 22.0
MARGIN_SHARE = 0.15  # share of the span of the values, on both sides
HEIGHT_PT, LABEL_PT, LETTER_SHARE, LOWEST_PT = 110.0, 9.0, 0.009, -9.0  # of the plot; a label: height, width, place
SHAPES = {
    "front": ("o", "not dominated"),
    "maybe dominated": ("D", "dominated by the estimates, not for certain"),
    "dominated": ("X", "dominated"),
    "barred": ("x", "may not be chosen"),
}


@dataclass(frozen=True)
class ValueRow:
    """One row: each value, the middle and its interval where there is one; `hollow` where the contender may not be chosen."""

    label: str
    values: tuple[float, ...]
    middle: float
    interval: tuple[float, float] | None
    hollow: bool = False


@dataclass(frozen=True)
class Bound:
    """A requirement's bound; `better` says on which side of it a value has to lie: right, left or on."""

    value: float
    text: str
    better: str


@dataclass(frozen=True)
class ParetoPoint:
    """(value, low, high) across and up; `kind` one of SHAPES."""

    label: str
    across: tuple[float, float, float]
    up: tuple[float, float, float]
    kind: str


@dataclass(frozen=True)
class PriceRow:
    label: str
    now: float
    break_even: float | None
    ahead: bool


def value_figure(
    name: str, title: str, caption: str, rows: Sequence[ValueRow], axis: str, bound: Bound | None
) -> Figure:
    """Rows on one linear axis, that of the quantity."""
    with sheet(name, MARGIN_MM + len(rows) * ROW_MM) as (drawing, (axes,)):
        for place, row in enumerate(rows):
            axes.mark(row.values, place, "|", GREY, "each value", 3, size=8)
            if row.interval:
                axes.hlines(place, *row.interval, color=INK, linewidth=1.4, label=axes.once("95 % interval"), zorder=4)
            label = "mean, may not be chosen" if row.hollow else "mean"
            axes.mark(row.middle, place, "o", BLUE, label, 5, hollow=row.hollow)
        if bound is not None:
            axes.axvline(bound.value, color=VERMILLION, linestyle="--", linewidth=1.1, label=bound.text, zorder=2)
        _rows(axes, [row.label for row in rows])
        axes.set_xlabel(axis)
        axes.legend_above(columns=4)
        alt = f"{title}. " + "; ".join(_said(row) for row in rows)
        return drawing.figure(title, caption, alt)


def _said(row: ValueRow) -> str:
    if row.interval is None:
        return f"{row.label}: {significant(row.middle, trim=True)}"
    middle, low, high = together((row.middle, *row.interval))
    return f"{row.label}: {middle} ({low} to {high})"


def _rows(axes: Panel, labels: Sequence[str]) -> None:
    axes.name_rows(labels)
    axes.margins(x=0.06)


def pareto_figure(
    name: str,
    title: str,
    caption: str,
    points: Sequence[ParetoPoint],
    across: str,
    up: str,
    floor: Bound,
    height_mm: float,
) -> Figure:
    """Draws price against margin: the best place is up and to the left, the worst down and to the right. Boxes are the intervals, the
    line is what is asked."""
    with sheet(name, height_mm) as (drawing, (axes,)):
        axes.axhline(floor.value, color=VERMILLION, linestyle="--", linewidth=1.1, label=floor.text, zorder=1)
        lifted = _label_offsets(points, floor.value)
        for point in points:
            shape, label = SHAPES[point.kind]
            colour = GREY if point.kind in ("dominated", "barred") else BLUE
            axes.add_patch(Rectangle(
                (point.across[1], point.up[1]), point.across[2] - point.across[1], point.up[2] - point.up[1],
                facecolor=FAINT, edgecolor=GREY, linewidth=0.6, zorder=2,
            ))  # fmt: skip
            axes.vlines(point.across[0], point.up[1], point.up[2], color=GREY, linewidth=1.0, zorder=3)
            hollow = point.kind == "maybe dominated"
            axes.mark(point.across[0], point.up[0], shape, colour, label, 4, size=6, hollow=hollow)
            axes.annotate(
                point.label, (point.across[0], point.up[0]), xytext=(6, lifted[point.label]),
                textcoords="offset points", fontsize=7,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5}, zorder=3,
            )  # fmt: skip
        _staircase(axes, points)
        axes.set_xlim(*_limits([value for point in points for value in point.across]))
        axes.set_ylim(*_with_floor([value for point in points for value in point.up], floor.value))
        axes.name_axes(f"{across} (less is better)", up)
        axes.legend_above(columns=4)
        alt = f"{title}. " + "; ".join(
            f"{point.label}: {significant(point.across[0], 4)} and {significant(point.up[0], 4)}, {SHAPES[point.kind][1]}"
            for point in points
        )
        return drawing.figure(title, caption, alt)


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """Returns the limits of an axis that shows points, not bars: from zero only where that takes no more than half of it."""
    low, high = min(values), max(values)
    room = MARGIN_SHARE * (high - low)
    return (0.0, 1.12 * high) if room == 0 or low < high / 2 else (low - room, high + room)


def _with_floor(values: Sequence[float], floor: float) -> tuple[float, float]:
    """The limits with the line of what is asked inside."""
    low, high = min(*values, floor), max(*values, floor)
    room = MARGIN_SHARE * (high - low) or 1.0
    return low - room, high + room


def _label_offsets(points: Sequence[ParetoPoint], floor: float) -> dict[str, float]:
    """Returns how far each label stands above its point (pt): from the lowest up, each as low as those placed before it allow."""
    left, right = _limits([value for point in points for value in point.across])
    bottom, top = _with_floor([value for point in points for value in point.up], floor)
    offsets: dict[str, float] = {}
    placed: list[tuple[float, float, float]] = []  # places taken by labels: share across from, to; pt up
    for point in sorted(points, key=lambda one: one.up[0]):
        x, offset = (point.across[0] - left) / (right - left), LOWEST_PT
        y = (point.up[0] - bottom) / (top - bottom) * HEIGHT_PT
        end = x + LETTER_SHARE * (len(point.label) + 2)
        while any(
            x < its_end and start < end and abs(y + offset - height) < LABEL_PT for start, its_end, height in placed
        ):
            offset += 1.0
        offsets[point.label] = offset
        placed.append((x, end, y + offset))
    return offsets


def _staircase(axes: Panel, points: Sequence[ParetoPoint]) -> None:
    """Draws a line along the points that no other dominates by the estimates: dominated ones lie below and to the right of it."""
    front = sorted((point.across[0], point.up[0]) for point in points if point.kind == "front")
    if len(front) > 1:
        axes.step(*zip(*front, strict=True), where="post", color=BLUE, linewidth=0.8, linestyle=":", zorder=1)


def price_figure(name: str, title: str, caption: str, rows: Sequence[PriceRow], currency: str) -> Figure:
    """Draws bars from today's price to the one at which the order changes."""
    with sheet(name, MARGIN_MM + len(rows) * ROW_MM) as (drawing, (axes,)):
        for place, row in enumerate(rows):
            if row.break_even is not None:
                dashes = "-" if row.ahead else ":"
                axes.hlines(place, row.now, row.break_even, color=GREY, linewidth=1.2, linestyle=dashes, zorder=2)
                label = "price at which the order changes"
                axes.mark(row.break_even, place, "D", VERMILLION, label, 4, hollow=True)
            axes.mark(row.now, place, "o", BLUE, "price today", 3)
        _rows(axes, [row.label for row in rows])
        axes.set_xlim(*_limits([price for row in rows for price in (row.now, row.break_even) if price is not None]))
        axes.set_xlabel(f"price ({currency})")
        axes.legend_above(columns=2)
        alt = f"{title}. " + "; ".join(
            f"{row.label}: {significant(row.now, 4)}"
            + (f", break-even {significant(row.break_even, 4)}" if row.break_even is not None else "")
            for row in rows
        )
        return drawing.figure(title, caption, alt)


def share_figure(name: str, title: str, caption: str, rows: Sequence[tuple[str, float, float | None]]) -> Figure:
    """Draws rows of (label, share of the weights, chance of being first as weighed); both are shares of 1."""
    with sheet(name, MARGIN_MM + len(rows) * (ROW_MM + 2)) as (drawing, (axes,)):
        places = range(len(rows))
        shares = [100 * share for _, share, _ in rows]
        axes.barh([place - 0.17 for place in places], shares, height=0.3, color=BLUE, label="all possible weights")
        chances = [(place + 0.17, 100 * chance) for place, (_, _, chance) in enumerate(rows) if chance is not None]
        if chances:
            axes.barh(
                [place for place, _ in chances], [chance for _, chance in chances], height=0.3, facecolor="white",
                edgecolor=INK, hatch="////", linewidth=0.6, label="weights as given, measured anew",
            )  # fmt: skip
        for place, value in [*zip([p - 0.17 for p in places], shares, strict=True), *chances]:
            axes.annotate(
                f"{significant(value, 3, trim=True)} %", (value, place), xytext=(3, 0), textcoords="offset points",
                va="center", fontsize=6.5,
            )  # fmt: skip
        _rows(axes, [label for label, _, _ in rows])
        axes.set_xlim(0, 112)
        axes.set_xlabel("share in which the contender is ahead (%)")
        axes.legend_above(columns=2)
        alt = f"{title}. " + "; ".join(f"{label}: {significant(100 * share, 3)} %" for label, share, _ in rows)
        return drawing.figure(title, caption, alt)
