"""Tells what arrived and what was stored, both summed up, around the moment of the highest backlog: the distance is the buffer in use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daq_bench.bench_model.documents.tools.minidaq import Minidaq
from daq_bench.bench_report.base.units import count, decimal_size, duration
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import BLUE, INK, VERMILLION
from daq_bench.bench_report.document.panel import Panel
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.reading.dataset.record import Series, series_of

HEIGHT_MM = 40.0
FEWEST_SAMPLES = 5
VISIBLE_SHARE = 0.01  # of the figure's height: a smaller distance of two lines cannot be seen
EPISODE_SHARE = 0.1  # of the highest backlog: the window reaches from where it rises above to where it falls below
ROOM_SHARE, ROOM_SAMPLES = 0.25, 8  # of the episode, and at least so many samples, on both sides of it
NAME = "buffer"
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Curves:
    """Bytes since the window's begin: offered by the source, taken into the buffer (offered less lost), durable."""

    times: Numbers
    offered: Numbers
    accepted: Numbers
    stored: Numbers
    high_s: float
    high_bytes: float

    @property
    def lost(self) -> float:
        return float((self.offered - self.accepted)[-1] - (self.offered - self.accepted)[0])

    @property
    def apart(self) -> bool:
        """Says whether arrived and stored are two lines on paper."""
        return self.high_bytes >= VISIBLE_SHARE * float(max(self.offered.max(), self.accepted.max()))


def buffer_figure(bundle: Bundle) -> Figure | None:
    """Draws the repetition that needed most; None without a record whose backlog rose."""
    drawn = [
        (number, repetition, repetition.minidaq)
        for number, repetition in enumerate(bundle.repetitions, 1)
        if repetition.minidaq.backlog.high_water_bytes
    ]
    if not drawn:
        return None
    number, repetition, minidaq = max(drawn, key=lambda one: one[2].backlog.high_water_bytes)
    curves = curves_of(minidaq, number)
    if curves is None or not (curves.apart or curves.lost > 0):
        return None  # the two lines would lie on each other: the figure of the record shows the backlog itself
    title = "Arrived and stored around the highest backlog"
    title += f", repetition {repetition.named(number)}" if len(bundle.repetitions) > 1 else ""
    return _figure(curves, minidaq, title)


def curves_of(minidaq: Minidaq, repetition: int = 1) -> Curves | None:
    """Returns the summed series in the window around the high-water mark, which is a point of each curve."""
    high = float(minidaq.backlog.high_water_bytes)
    series = series_of(minidaq.series, repetition)
    if len(series.t_s) < FEWEST_SAMPLES or not high:
        return None
    times, backlog = np.array((0.0, *series.t_s)), np.array((0.0, *series.backlog_bytes))
    offered, stored = _summed(series, series.offered_bytes_per_s), _summed(series, series.stored_bytes_per_s)
    accepted = stored + backlog
    at = min(max(minidaq.backlog.high_water_s, 0.0), float(times[-1]))
    level = float(np.interp(at, times, accepted))
    first, last = _window(times, backlog, at, high)
    inside = slice(first, last + 1)
    place = int(np.searchsorted(times[inside], at))
    if at in times[inside]:
        drawn = (times[inside], offered[inside], accepted[inside], stored[inside].copy())
        drawn[3][place] = level - high
    else:
        marks = (at, float(np.interp(at, times, offered)), level, level - high)
        columns = (times, offered, accepted, stored)
        drawn = tuple(np.insert(one[inside], place, mark) for one, mark in zip(columns, marks, strict=True))  # type: ignore[assignment]
    base = drawn[3][0]
    lost_before = drawn[1][0] - drawn[2][0]
    return Curves(drawn[0], drawn[1] - base - lost_before, drawn[2] - base, drawn[3] - base, at, high)


def _summed(series: Series, rates: tuple[float, ...]) -> Numbers:
    lengths = np.diff(np.array((0.0, *series.t_s)))
    return np.concatenate(([0.0], np.cumsum(lengths * np.array(rates))))


def _window(times: Numbers, backlog: Numbers, at: float, high: float) -> tuple[int, int]:
    """Returns the first and the last sample to draw."""
    middle = min(int(np.searchsorted(times, at)), len(times) - 1)
    calm = np.flatnonzero(backlog < EPISODE_SHARE * high)
    before, after = calm[calm < middle], calm[calm > middle]
    first, last = int(before[-1]) if before.size else 0, int(after[0]) if after.size else len(times) - 1
    room = max(ROOM_SAMPLES, round(ROOM_SHARE * (last - first)))
    return max(0, first - room), min(len(times) - 1, last + room)


def _figure(curves: Curves, minidaq: Minidaq, title: str) -> Figure:
    top = float(max(curves.offered.max(), curves.accepted.max()))
    divisor, unit = (1e9, "GB") if top >= 1e9 else (1e6, "MB")
    with sheet(NAME, HEIGHT_MM) as (drawing, (axes,)):
        _draw(axes, curves, divisor)
        axes.set_xlim(curves.times[0], curves.times[-1])
        axes.set_ylim(bottom=0)
        axes.name_axes("time since the start of the record (s)", f"since {duration(float(curves.times[0]))} ({unit})")
        axes.label_ends()
        alt = f"{title}: two rising curves from {duration(float(curves.times[0]))} to {duration(float(curves.times[-1]))}."
    capacity = minidaq.backlog.capacity_bytes
    room = f" of the {decimal_size(capacity)} that the rings hold" if capacity else ""
    see = f"The curves are farthest apart {duration(curves.high_s)} after the start: {decimal_size(curves.high_bytes)}{room}."
    caption = (
        "Bytes summed up from the begin of this stretch, where what was waiting already stands above zero. The vertical distance of the "
        "curves is the buffer in use, the level one how long a byte waits. The mark is the writer's own and lies between two samples. "
        f"n = {count(len(curves.times))} points."
    )
    if curves.lost > 0:
        caption += f" Lost here: {decimal_size(curves.lost)}, by which what was offered leaves what the buffer took."
    return drawing.figure(title, caption, alt, see)


def _draw(axes: Panel, curves: Curves, divisor: float) -> None:
    offered, accepted, stored = (one / divisor for one in (curves.offered, curves.accepted, curves.stored))
    axes.fill_between(
        curves.times, stored, accepted, color=BLUE, alpha=0.15, linewidth=0, label="buffer in use", zorder=2
    )
    if curves.lost > 0:
        axes.fill_between(
            curves.times, accepted, offered, facecolor="none", edgecolor=VERMILLION, hatch="////", linewidth=0, label="lost", zorder=2,
        )  # fmt: skip
        axes.plot(curves.times, offered, color=VERMILLION, linestyle=(0, (1, 1.5)), label="offered, with what was lost")
    if curves.apart:
        axes.plot(curves.times, accepted, color=VERMILLION, linestyle=(0, (4, 1.5)), label="arrived", zorder=4)
    axes.plot(curves.times, stored, color=BLUE, label="stored" if curves.apart else "taken, and stored", zorder=4)
    place = int(np.flatnonzero(curves.times == curves.high_s)[0])
    axes.vlines(
        curves.high_s, stored[place], accepted[place], color=INK, linewidth=1.4, label="high-water mark", zorder=5
    )
    axes.annotate(
        decimal_size(curves.high_bytes), (curves.high_s, stored[place]), xytext=(4, -5), textcoords="offset points", ha="left",
        va="top", fontsize=7,
    )  # fmt: skip
