"""Latency over time as a heat map: when superchunks began to wait, how long, and how many of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daq_bench.bench_model.documents.tools.minidaq import LatencyOverTime
from daq_bench.bench_report.base.units import count, duration, latency
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import INK
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.reading.latency_over_time import latency_over_time_of

HEIGHT_MM = 41.0
FEWEST_ROWS = 5  # intervals: fewer are no course of time
MOST_NAMED = 7  # latencies on the axis
NAME = "latency-time"


def latency_time_figure(bundle: Bundle) -> Figure | None:
    """Draws the repetition with the longest wait; None where no record counted its latencies over time."""
    drawn = [
        (number, repetition, found)
        for number, repetition in enumerate(bundle.repetitions, 1)
        if (found := latency_over_time_of(repetition.minidaq, number)) and len(found.counts) >= FEWEST_ROWS
    ]
    if not drawn:
        return None
    number, repetition, found = max(drawn, key=lambda one: (_last_edge(one[2]), -one[0]))
    many = len(bundle.repetitions) > 1
    title = "Latency over time" + (f", repetition {repetition.named(number)} (the longest wait)" if many else "")
    return _figure(found, title)


def _last_edge(found: LatencyOverTime) -> float:
    """Returns the lower edge of the last column that counts anything."""
    return max(edge for edge, column in zip(found.from_us, zip(*found.counts, strict=True), strict=True) if sum(column))


def _figure(found: LatencyOverTime, title: str) -> Figure:
    counts = np.array(found.counts, dtype=np.float64).T
    end_s, columns = found.interval_s * counts.shape[1], len(found.from_us)
    shown = np.where(counts > 0, counts, np.nan)
    with sheet(NAME, HEIGHT_MM) as (drawing, (axes,)):
        axes.heat(shown, (0, end_s, 0, columns), "superchunks", logarithmic=True)
        middle = _share_edges(counts, 0.5)
        times = found.interval_s * (np.arange(counts.shape[1]) + 0.5)
        axes.plot(times, middle, color="white", linewidth=2.4, zorder=4)
        axes.plot(times, middle, color=INK, linewidth=1.0, label="half of them within", zorder=5)
        named = range(0, columns + 1, max(1, -(-columns // MOST_NAMED)))
        edges = [*found.from_us, _beyond(found)]
        axes.set_yticks(list(named), [latency(edges[place], 2) for place in named])
        axes.set_ylim(0, columns)
        axes.set_xlim(0, end_s)
        axes.name_axes("intended arrival since the start of the record (s)", "arrival to durable")
        axes.name_data(y="latency column (the axis names their edges)")
        axes.legend_above()
        alt = f"{title}: {counts.shape[1]} intervals of {duration(found.interval_s)}, {columns} columns of latency."
    caption = (
        f"Each cell: how many superchunks arrived in {duration(found.interval_s)} and took so long until they were durable; empty: zero; "
        f"n = {count(counts.sum())}. Dark line with a white edge: median, in whole cells."
    )
    return drawing.figure(title, caption, alt, _see(found, counts))


def _beyond(found: LatencyOverTime) -> float:
    """Returns the upper edge of the last column: each doubling has two, from 2 to 3 and from 3 to 4."""
    last = found.from_us[-1]
    ratio = last / found.from_us[-2] if len(found.from_us) > 1 and found.from_us[-2] > 0 else 2.0
    return last * (4 / 3 if ratio > 1.42 else 3 / 2)


def _share_edges(counts: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Returns for each interval the upper side of the cell in which that share of its superchunks is reached."""
    total = counts.sum(axis=0)
    reached = np.cumsum(counts, axis=0) >= share * total
    return np.where(total > 0, reached.argmax(axis=0) + 1.0, np.nan)


def _see(found: LatencyOverTime, counts: NDArray[np.float64]) -> str:
    edges = [*found.from_us, _beyond(found)]
    filled = np.flatnonzero(counts.sum(axis=0) > 0)
    tops = {int(at): int(np.flatnonzero(counts[:, at])[-1]) for at in filled}
    worst, calmest = max(tops, key=lambda at: tops[at]), min(tops, key=lambda at: tops[at])
    text = f"The longest wait, {latency(edges[tops[worst]])} to {latency(edges[tops[worst] + 1])}, began {_at(found, worst)}"
    if tops[worst] == tops[calmest]:
        return f"{text}; it is as long in every interval."
    return f"{text}; in the calmest interval, {_at(found, calmest)}, nothing waited longer than {latency(edges[tops[calmest] + 1])}."


def _at(found: LatencyOverTime, row: int) -> str:
    return f"{duration(row * found.interval_s)} to {duration((row + 1) * found.interval_s)} after the start"
