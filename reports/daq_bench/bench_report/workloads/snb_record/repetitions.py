"""All repetitions of the record side by side: the backlog of each, with BUSY outlined, and the latencies of each as a curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from daq_bench.bench_model.documents.tools.minidaq import Minidaq
from daq_bench.bench_report.base.envelope import thinned
from daq_bench.bench_report.base.units import count, decimal_size, latency
from daq_bench.bench_report.document.canvas import Figure, sheet, small_multiples
from daq_bench.bench_report.document.palette import ASH, BLUE, GREY, INK, SERIES, VERMILLION
from daq_bench.bench_report.document.panel import Panel
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.reading.dataset.record import Series, series_of
from daq_bench.bench_report.workloads.latency_under_load.figures import (
    LEAST_SHOWN,
    Curve,
    curve_of,
    draw_curve,
    nines,
    set_percentile_axes,
)

FEWEST, MOST_PANELS, COLUMNS = 2, 24, 6
PANEL_MM, MARGIN_MM, ECDF_MM = 18.0, 11.0, 48.0
MOST_COLOURED = len(SERIES)
ROOM = 1.15
SAME = 0.01  # of the axis' height, a line's width: nearer lines cannot be told apart on paper
LONGER = 3.0  # the axis of percentiles than that of latencies
HAIR = 1 / 60  # of a small panel's width: a shorter episode is drawn as wide, else nobody sees it
BACKLOGS, ECDF = "repetitions-backlog", "repetitions-latency"
Numbered = list[tuple[int, Minidaq]]


def repetition_figures(bundle: Bundle) -> list[Figure]:
    """Returns none for a single repetition, which has figures of its own."""
    found = [(number, one.minidaq) for number, one in enumerate(bundle.repetitions, 1)]
    return [one for one in (_backlogs(bundle, found), _latencies(bundle, found)) if one is not None]


def _backlogs(bundle: Bundle, found: Numbered) -> Figure | None:
    drawn = [(number, minidaq, series_of(minidaq.series, number)) for number, minidaq in found if minidaq.series.t_s]
    if len(drawn) < FEWEST:
        return None
    chosen = sorted(drawn, key=lambda one: one[1].backlog.high_water_bytes, reverse=True)[:MOST_PANELS]
    chosen = sorted(chosen, key=lambda one: one[0])
    tops = [max([*series.backlog_bytes, float(minidaq.backlog.high_water_bytes)]) for _, minidaq, series in chosen]
    divisor, unit = (1e9, "GB") if max(tops) >= 1e9 else (1e6, "MB")
    title = (
        f"Backlog of all {len(drawn)} repetitions"
        if len(chosen) == len(drawn)
        else f"Backlog of {len(chosen)} repetitions"
    )
    across = "time since the start of each record (s)"
    with small_multiples(BACKLOGS, len(chosen), COLUMNS, MARGIN_MM, PANEL_MM, across, unit) as (drawing, panels):
        for panel, (number, minidaq, series) in zip(panels, chosen, strict=True):
            _draw_backlog(panel, minidaq, series, divisor)
            panel.name_data(x="time since the start of the record (s)", y=f"backlog ({unit})")
            name = bundle.repetitions[number - 1].named(number)
            apart = ":\n" if "," in name else ": "  # a name with a condition fills its panel's width
            text = f"{name}{apart}{decimal_size(minidaq.backlog.high_water_bytes)}"
            panel.set_title(text, loc="left", pad=2.5, fontsize=7, color=INK)
        panels[0].set_ylim(0, max(tops) / divisor * ROOM or 1.0)
        panels[0].set_xlim(0, max(series.t_s[-1] for _, _, series in chosen))
        alt = f"{title}: {len(chosen)} small panels on the same axes, highest {decimal_size(max(tops))}."
    return drawing.figure(title, _backlog_caption(len(drawn), len(chosen), unit), alt, _backlog_see(bundle, drawn))


def _draw_backlog(axes: Panel, minidaq: Minidaq, series: Series, divisor: float) -> None:
    x, y = thinned(series.t_s, [value / divisor for value in series.backlog_bytes], limit=200)
    axes.plot(x, y, color=BLUE, linewidth=0.8, label="backlog", zorder=3)
    axes.fill_between(x, y, color=BLUE, alpha=0.15, linewidth=0)
    high, at = minidaq.backlog.high_water_bytes / divisor, minidaq.backlog.high_water_s
    axes.mark(at, high, "v", INK, "high-water mark", 4, size=3)
    for one in minidaq.busy.episodes:
        end_s = one.start_s + max(one.duration_s, HAIR * series.t_s[-1])
        label = axes.once("BUSY")
        axes.axvspan(one.start_s, end_s, facecolor="none", edgecolor=VERMILLION, linewidth=1.0, label=label, zorder=5)
    if minidaq.busy.count:
        for spine in axes.spines.values():
            spine.set(visible=True, edgecolor=VERMILLION, linewidth=1.4)
    axes.tick_params(labelsize=6.5)


def _backlog_caption(total: int, shown: int, unit: str) -> str:
    text = (
        f"The same two axes in every panel; above it the repetition and its highest backlog (\u25be, the writer's own mark), in {unit} on "
        "the axis. A red frame: the dataflow was BUSY in it, where the red outlines stand."
    )
    return text if shown == total else f"{text} Shown are those with the highest backlog of {total} repetitions."


def _backlog_see(bundle: Bundle, drawn: list[tuple[int, Minidaq, Series]]) -> str:
    by_high = sorted(drawn, key=lambda one: one[1].backlog.high_water_bytes)
    (low, least, _), (high, most, _) = by_high[0], by_high[-1]
    text = (
        f"The highest backlog goes from {decimal_size(least.backlog.high_water_bytes)} "
        f"(repetition {bundle.repetitions[low - 1].named(low)}) to "
        f"{decimal_size(most.backlog.high_water_bytes)} ({bundle.repetitions[high - 1].named(high)})"
    )
    busy = [str(number) for number, minidaq, _ in drawn if minidaq.busy.count]
    told = f"BUSY in {len(busy)} of {len(drawn)}" + (f": {', '.join(busy)}" if busy else "")
    return f"{text}; {told}."


@dataclass(frozen=True)
class Latencies:
    """The curve of one repetition."""

    number: int
    condition: str | None
    curve: Curve


def _latencies(bundle: Bundle, found: Numbered) -> Figure | None:
    own = [
        Latencies(number, one.condition, curve_of(f"repetition {one.named(number)}", minidaq.latency_us))
        for (number, minidaq), one in zip(found, bundle.repetitions, strict=True)
    ]
    if len(own) < FEWEST:
        return None
    ordered = sorted((one.curve for one in own), key=lambda one: max(one.us, default=0.0))
    groups = _alike(own)
    best, worst = ordered[0], ordered[-1]
    title = "Latency from arrival to durable, a curve for each repetition"
    with sheet(ECDF, ECDF_MM) as (drawing, (axes,)):
        for place, group in enumerate(groups):
            curve = replace(group[0].curve, label=_label(group))
            held = [one.curve for one in group]
            _draw_latencies(axes, curve, place, len(groups), worst=worst in held, best=best in held)
        set_percentile_axes(axes, ordered)
        axes.label_ends()
        alt = f"{title}: {len(groups)} curves, of which the highest ends at {latency(max(worst.us))}."
    caption = (
        "The empirical distribution (ECDF) of each repetition, turned so that the tail has room: the share of superchunks below, the time "
        f"that they took at most on the left.{_numbers(ordered)}"
    )
    if len(groups) < len(own):
        caption += " Repetitions whose lines lie within a line's width of each other all along share one."
    if len(groups) > MOST_COLOURED:
        caption += " Named are the repetitions with the longest and the shortest tail; the others are grey."
    odd = [curve for curve in ordered if not curve.whole]
    if odd:
        caption += f" Only percentiles are known of {len(odd)} repetitions (marked)."
    return drawing.figure(title, caption, alt, _latency_see(ordered))


def _alike(own: Sequence[Latencies]) -> list[list[Latencies]]:
    """Repetitions under one condition whose lines would lie on each other, together."""
    values = [us for one in own for us in one.curve.us if us > 0]
    above = SAME * math.log(max(values) / min(values)) if values else 0.0
    beside = SAME / LONGER * math.log(max(nines(max(one.curve.percentiles)) for one in own))
    found: list[list[Latencies]] = []
    for one in own:
        same = next((group for group in found if _coincide(group[0], one, above, beside)), None)
        if same is None:
            found.append([one])
        else:
            same.append(one)
    return found


def _coincide(one: Latencies, other: Latencies, above: float, beside: float) -> bool:
    """Says whether the curves lie on each other wherever both are drawn: nearer than `above` or `beside`, distances of logarithms on the
    axes. Where a curve is steep, a line's width aside is more than one upwards."""
    if (one.condition, one.curve.whole) != (other.condition, other.curve.whole):
        return False
    first, second = (
        np.log([[nines(share) for share in each.curve.percentiles], [max(us, 1e-3) for us in each.curve.us]])
        for each in (one, other)
    )
    across = np.union1d(first[0], second[0])
    across = across[(across >= math.log(nines(LEAST_SHOWN))) & (across <= min(first[0][-1], second[0][-1]))]
    for curve, near in ((first, second), (second, first)):
        drawn, low, high = np.interp(across, *curve), *(np.interp(across + aside, *near) for aside in (-beside, beside))
        if np.any((drawn < low - above) | (drawn > high + above)):
            return False
    return True


def _label(group: Sequence[Latencies]) -> str:
    if len(group) == 1:
        return group[0].curve.label
    numbers = [one.number for one in group]
    together = numbers == list(range(numbers[0], numbers[-1] + 1)) and len(numbers) > 2
    text = f"{numbers[0]} to {numbers[-1]}" if together else ", ".join(str(number) for number in numbers)
    return f"repetitions {text}" + (f", {group[0].condition}" if group[0].condition else "")


def _numbers(curves: list[Curve]) -> str:
    numbers = sorted({curve.count for curve in curves if curve.count is not None})
    if not numbers:
        return ""
    return f" n = {count(numbers[0])}{f' to {count(numbers[-1])}' if len(numbers) > 1 else ''} each."


def _draw_latencies(axes: Panel, curve: Curve, place: int, total: int, *, worst: bool, best: bool) -> None:
    colour, dashes, marker = SERIES[place % MOST_COLOURED]
    if total > MOST_COLOURED:
        colour, dashes, marker = (VERMILLION, "-", "s") if worst else (BLUE, "--", "o") if best else (ASH, "-", ".")
    if total > MOST_COLOURED and not (worst or best):
        x, y = thinned([nines(share) for share in curve.percentiles], curve.us, limit=200)
        axes.plot(x, y, color=GREY, linewidth=0.4, label=f"_{curve.label}")
        return
    draw_curve(axes, curve, colour, dashes, marker)


def _latency_see(ordered: list[Curve]) -> str:
    best, worst = ordered[0], ordered[-1]
    said = []
    for share in (50.0, 99.9):
        ends = [_within(curve, share) for curve in (best, worst)]
        if all(end is not None for end in ends):
            said.append(f"{share:g}\u202f% within {latency(ends[0] or 0.0)} and {latency(ends[1] or 0.0)}")
    text = f"The shortest and the longest tail, {best.label} and {worst.label}, end at {latency(max(best.us))} and {latency(max(worst.us))}"
    return f"{text}; {', '.join(said)}." if said else f"{text}."


def _within(curve: Curve, share: float) -> float | None:
    """Returns the least time that this share of the values did not exceed; None where the curve ends before."""
    places = np.flatnonzero(np.array(curve.percentiles) >= share)
    return float(curve.us[places[0]]) if places.size else None
