"""Figures of the storage application: series against checksum threads, and the streams' shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from daq_bench.bench_report.base.units import percent, significant
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import GREY, INK, SERIES
from daq_bench.bench_report.document.panel import BAR_WIDTH, Panel
from daq_bench.bench_report.figures.references import COLOUR, DASHES

HEIGHT_MM = 78.0
SHARES_MM = 62.0
DODGE = 0.025  # share of the axis' length, so that bars of neighbouring series do not hide each other
FARTHEST = 2.2  # a line that lies more than this factor above the points would squash them


@dataclass(frozen=True)
class ThreadPoint:
    """One drawn point: value and the ends of its bar, None where there is no interval."""

    threads: int
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Level:
    """A horizontal line: `published` ones are drawn as references."""

    label: str
    value: float
    published: bool


def thread_figure(
    name: str,
    title: str,
    axis: str,
    series: Sequence[tuple[str, Sequence[ThreadPoint]]],
    levels: Sequence[Level],
    caption: str,
    *,
    cores: int | None = None,
    from_zero: bool = False,
) -> Figure:
    """One series each against threads. `cores`: where siblings begin, if they do. Levels too far up are left to the caption.

    `from_zero`: the axis is linear and holds 0; else it is linear around zero and logarithmic beyond 1."""
    points = [point for _, own in series for point in own]
    top = max(max(point.value, point.high or 0.0) for point in points)
    shown = [level for level in levels if level.value <= FARTHEST * top]
    threads = sorted({point.threads for point in points})
    with sheet(name, HEIGHT_MM) as (drawing, (axes,)):
        length = max(threads) - min(threads) or 1
        for index, (label, own) in enumerate(series):
            shift = (index - (len(series) - 1) / 2) * DODGE * length
            _draw(axes, label, own, shift, index)
        for number, level in enumerate(shown):
            axes.axhline(
                level.value, color=COLOUR if level.published else GREY, linewidth=0.9,
                linestyle=DASHES if level.published else (0, (1 + 2 * number, 1.5)), label=level.label, zorder=1,
            )  # fmt: skip
        if cores is not None:
            axes.axvline(cores, color=GREY, linewidth=0.8, linestyle=":", label=f"{cores} physical cores", zorder=1)
        axes.set_xticks(threads)
        axes.set_xlim(min(threads) - 0.08 * length, max(threads) + 0.08 * length)
        axes.name_axes("checksum threads", axis)
        if from_zero:
            axes.set_ylim(0, max([top, *(level.value for level in shown)]) * 1.1)
        else:
            _logarithmic(axes, points, top)
        axes.legend_above(columns=3)
        highest = max(points, key=lambda point: point.value)
        alt = f"{title}: {len(points)} points, highest {significant(highest.value, 3)} with {highest.threads} threads."
    hidden = [f"{level.label} ({significant(level.value, 3)})" for level in levels if level not in shown]
    beyond = f" Beyond the axis: {'; '.join(hidden)}." if hidden else ""
    return drawing.figure(title, caption + beyond, alt, _see(series))


def _logarithmic(axes: Panel, points: Sequence[ThreadPoint], top: float) -> None:
    """Makes the axis logarithmic above 1 and linear below, where zero and noise lie."""
    least = min(min(point.value, point.low if point.low is not None else point.value) for point in points)
    axes.set_yscale("symlog", linthresh=1.0, linscale=0.5)
    highest = 10.0 ** math.ceil(math.log10(max(top, 10.0)))
    lowest = 0.0 if least >= 0 else -(10.0 ** math.ceil(math.log10(max(-least, 1.0))))
    decades = [10.0**power for power in range(round(math.log10(highest)) + 1)]
    below = [-decade for decade in decades if decade <= -lowest]
    axes.set_ylim(lowest * 1.05, highest * 1.05)
    axes.yaxis.set_major_locator(FixedLocator([*reversed(below), 0.0, *decades]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.axhline(0, color=INK, linewidth=0.6, zorder=1)


def _draw(axes: Panel, label: str, own: Sequence[ThreadPoint], shift: float, index: int) -> None:
    look = SERIES[index % len(SERIES)]
    x = [point.threads + shift for point in own]
    axes.curve(x, [point.value for point in own], look, label, zorder=3)
    for at, point in zip(x, own, strict=True):
        if point.low is not None and point.high is not None:
            axes.whiskers([at], [point.value], [(point.low, point.high)], look[0])


def share_figure(
    name: str, title: str, asked: Sequence[float], achieved: Sequence[float], reference: Level | None, caption: str
) -> Figure:
    """Draws two bars for each stream: its planned share of the events, and its share of the bytes."""
    with sheet(name, SHARES_MM) as (drawing, (axes,)):
        places = range(len(asked))
        own, written = ([100 * value for value in values] for values in (asked, achieved))
        axes.paired_bars(places, BAR_WIDTH / 2, (own, "asked, of the events"), (written, "written, of the bytes"))
        for place, value in zip(places, achieved, strict=True):
            axes.annotate(
                percent(100 * value), (place + BAR_WIDTH / 2, 100 * value), xytext=(0, 2), textcoords="offset points",
                ha="center", fontsize=6.5, color=INK,
            )  # fmt: skip
        if reference:
            axes.axhline(
                100 * reference.value, color=COLOUR, linewidth=0.9, linestyle=DASHES, label=reference.label, zorder=3
            )
        axes.set_xticks(list(places), [f"stream {place}" for place in places])
        axes.set_ylim(0, 100 * max(*asked, *achieved) * 1.15)
        axes.set_ylabel("share of the whole (%)")
        axes.grid(False, axis="x")
        axes.legend_above(columns=3)
        alt = f"{title}: the busiest has {percent(100 * max(achieved))} of the bytes."
        busiest = max(range(len(achieved)), key=lambda place: achieved[place])
        bytes_of, events = percent(100 * achieved[busiest]), percent(100 * asked[busiest])
        see = f"Stream {busiest} is the busiest: {bytes_of} of the bytes, {events} of the events asked."
        return drawing.figure(title, caption, alt, see)


def _see(series: Sequence[tuple[str, Sequence[ThreadPoint]]]) -> str:
    """Says what each series reaches with its most threads, where the lines part."""
    ends = [(label, max(own, key=lambda point: point.threads)) for label, own in series]
    told = (
        f"{label} {significant(end.value, 3)} with {end.threads} thread{'s' if end.threads != 1 else ''}"
        for label, end in ends
    )
    return f"At the right end: {'; '.join(told)}."
