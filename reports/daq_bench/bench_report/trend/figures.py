"""One metric over the runs of a history: values with intervals, bound, levels, and where something about the machine changed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.ticker import MaxNLocator

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.nights.run_history import History
from daq_bench.bench_model.nights.steps import Step
from daq_bench.bench_model.nights.trend import DAY_S, Track
from daq_bench.bench_model.verdict.decision import MET, MISSED
from daq_bench.bench_model.verdict.sentences import SIGNS
from daq_bench.bench_report.base.marks import see_table
from daq_bench.bench_report.base.units import BARE_UNITS, SPELLED
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import BLUE, GREY, INK, ORANGE, VERMILLION
from daq_bench.bench_report.document.panel import Panel

HEIGHT_MM, HEIGHT_ADJUSTED_MM = 56.0, 92.0
MOST_MARKS = 24  # most changes in one figure; beyond, only those at a step are drawn
DATES = 6
ROOM = 0.1  # share of the axis above the data, for the letters
SIDES = {"at_least": "below", "at_most": "above", "equal": "off"}


def trend_figure(track: Track, history: History, marks: dict[int, str]) -> Figure | None:
    """Draws the metric over the runs; None for fewer than two values. `marks`: letters of the changes by the run that they precede."""
    if len(track.values) < 2:
        return None
    adjusted = bool(track.adjusted)
    row = track.row
    name = f"trend-{row.id.lower()}"
    title = f"{row.id} {row.text} ({row.metric})"
    with sheet(name, HEIGHT_ADJUSTED_MM if adjusted else HEIGHT_MM, rows=2 if adjusted else 1) as (drawing, panels):
        _draw(panels[0], track, history, track.values, [one.step for one in track.steps])
        panels[0].set_title(f"as measured{_unit(row.unit)}", loc="left", pad=4, color=INK)
        if adjusted and track.warmth:
            _draw(panels[1], track, history, track.adjusted, [one.step for one in track.adjusted_steps])
            text = f"adjusted to {track.warmth.reference:.1f} °C of the {track.warmth.sensor}{_unit(row.unit)}"
            panels[1].set_title(text, loc="left", pad=4, color=INK)
        shown = _shown(track, marks)
        for panel in panels:
            for position, letter in shown.items():
                panel.axvline(position + 0.5, color=GREY, linestyle=(0, (1, 2)), linewidth=0.7, zorder=1)
                panel.annotate(
                    letter, (position + 0.5, 1.0), (0, -1), xycoords=("data", "axes fraction"), textcoords="offset points",
                    fontsize=6, ha="center", va="top", color=INK, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
                )  # fmt: skip
        panels[0].legend_above()
        _label_runs(panels[-1], history)
        alt = _alt(track, history)
    return drawing.figure(title, _caption(track, shown), alt)


def _unit(unit: str) -> str:
    return "" if unit in BARE_UNITS else f" ({SPELLED.get(unit, unit)})"


def _draw(axes: Panel, track: Track, history: History, values: Sequence[float], steps: Sequence[Step]) -> None:
    where = np.array(track.positions) + 1
    shift = np.array(values) - np.array(track.values)
    reach = np.array([
        (value - pair[0], pair[1] - value) if pair else (0.0, 0.0)
        for value, pair in zip(track.values, track.intervals, strict=True)
    ]).T  # fmt: skip
    known = np.array([pair is not None for pair in track.intervals])
    if known.any():
        axes.errorbar(
            where[known], np.array(values)[known], reach[:, known], fmt="none", ecolor=GREY, elinewidth=0.7, capsize=1.6,
            label="95 % interval of the run", zorder=2,
        )  # fmt: skip
    decisions = [getattr(history.nights[position].row(track.row.id), "decision", None) for position in track.positions]
    _points(axes, where, track.values + shift, decisions)
    _levels(axes, track, values, steps, where)
    axes.step(
        [where[0] - 0.5, *(where[1:] - 0.5), where[-1] + 0.5], [*track.bounds, track.bounds[-1]], where="post", color=VERMILLION,
        linestyle="--", linewidth=1.1, label=f"bound {SIGNS[track.row.comparison]} {in_digits(track.bounds[-1])}", zorder=3,
    )  # fmt: skip
    if track.drift and track.drift.trend:
        _drift_line(axes, track, history, values, where)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + ROOM * (high - low))
    if high - low < 1e-9 * max(1.0, abs(high)):
        axes.set_ylim(low - 1, high + 1)
    axes.set_xlim(0.5, len(history.nights) + 0.5)


def _points(axes: Panel, where: np.ndarray, values: Sequence[float], decisions: Sequence[str | None]) -> None:
    kinds = ((MET, "o", BLUE, BLUE), (MISSED, "X", VERMILLION, VERMILLION), (None, "o", "white", BLUE))
    for decision, marker, face, edge in kinds:
        chosen = [index for index, one in enumerate(decisions) if (one if one in (MET, MISSED) else None) == decision]
        if chosen:
            axes.plot(
                where[chosen], np.array(values)[chosen], linestyle="none", marker=marker, markerfacecolor=face, markeredgecolor=edge,
                markersize=4.4, label=decision or "undecided", zorder=4,
            )  # fmt: skip


def _levels(axes: Panel, track: Track, values: Sequence[float], steps: Sequence[Step], where: np.ndarray) -> None:
    if not track.enough:
        return
    edges = [0, *(step.index for step in steps), len(values)]
    levels = [steps[0].before, *(step.after for step in steps)] if steps else [float(np.median(values))]
    for start, end, level in zip(edges, edges[1:], levels, strict=False):
        across = [where[start] - 0.4, where[end - 1] + 0.4]
        axes.plot(across, [level, level], color=ORANGE, linewidth=2.2, label=axes.once("level"), zorder=3)


def _drift_line(axes: Panel, track: Track, history: History, values: Sequence[float], where: np.ndarray) -> None:
    """Draws the drift through the runs of the present level, as fitted over time."""
    if track.drift is None or (track.adjusted and values is not track.adjusted):
        return
    chosen = slice(len(values) - track.drift.n, None)
    days = np.array([history.nights[position].started.timestamp() / DAY_S for position in track.positions[chosen]])
    line = np.mean(values[chosen]) + track.drift.slope * (days - days.mean())
    axes.plot(where[chosen], line, color=INK, linestyle="-.", linewidth=1.2, label="drift", zorder=5)


def _shown(track: Track, marks: dict[int, str]) -> dict[int, str]:
    if len(marks) <= MOST_MARKS:
        return marks
    at = {track.positions[one.step.index] for one in (*track.steps, *track.adjusted_steps)}
    return {position: letter for position, letter in marks.items() if position in at}


def _label_runs(axes: Panel, history: History) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(nbins=12, integer=True, min_n_ticks=1))
    axes.set_xlabel("run, in the order of their starts (date, UTC)")
    count = len(history.nights)
    dated = {int(one) for one in np.linspace(1, count, min(DATES, count)).round()}
    axes.set_xticks(
        sorted(dated), [f"{number}\n{history.nights[number - 1].started:%Y-%m-%d}" for number in sorted(dated)]
    )
    axes.set_xticks(range(1, count + 1), minor=True)


def _caption(track: Track, shown: dict[int, str]) -> str:
    known = sum(1 for pair in track.intervals if pair)
    said = [f"n = {len(track.values)} runs, {known or 'none'} with a 95 % interval of their own."]
    count = len(track.steps)
    if track.enough:
        said.append(f"{count} step{'s' * (count != 1)} found." if count else "No step found: one level.")
    else:
        said.append("Too few runs for steps.")
    if shown:
        said.append(
            f"Dotted lines with letters: something about the machine changed between two runs ({see_table('changes')})."
        )
    side = SIDES[track.row.comparison]
    said.append(f"The requirement is missed {side} the dashed line.")
    return " ".join(said)


def _alt(track: Track, history: History) -> str:
    shown = (min(track.values), max(track.values), track.values[-1], track.bounds[-1])
    low, high, newest, bound = map(in_digits, shown)
    first, last = history.nights[track.positions[0]], history.nights[track.positions[-1]]
    return (
        f"{track.row.metric} of {len(track.values)} runs from {first.started:%Y-%m-%d} to {last.started:%Y-%m-%d}, between {low} and "
        f"{high} {track.row.unit}, newest {newest}; bound {bound}; {len(track.steps)} steps."
    )
