"""A rate over queue depth and number of jobs: a small surface for each kind of access, all readable at once.

Promise: a point that does not count leaves its cell empty; a cell has its number, and its colour is the share of its panel's best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from daq_bench.bench_report.base.units import GB, in_gb_per_s, percent, significant
from daq_bench.bench_report.document.canvas import Figure, small_multiples
from daq_bench.bench_report.document.heat import COLOURS
from daq_bench.bench_report.document.palette import INK
from daq_bench.bench_report.document.panel import Panel

FEWEST, MOST_PANELS, COLUMNS = 2, 12, 3  # values of each of the two; panels
ROW_MM, HEAD_MM, MARGIN_MM = 6.0, 9.0, 12.0
DEPTH = "queue depth of each job"
DARK = 0.55  # share of the best from which on a cell is so dark that its number is white
NEAR = 0.95  # of the best: where more depth or jobs bring no more


@dataclass(frozen=True)
class Cell:
    """`panel` names the kind of access, such as "random, 4 KiB"; no rate (B/s): the point does not count."""

    panel: str
    depth: int
    jobs: int
    rate: float | None


def surface_figure(name: str, title: str, cells: Sequence[Cell]) -> Figure | None:
    """None where depth or jobs were not varied, or nothing counts: a table says as much."""
    depths, jobs = sorted({one.depth for one in cells}), sorted({one.jobs for one in cells})
    panels = [
        panel
        for panel in dict.fromkeys(one.panel for one in cells)
        if any(one.rate for one in cells if one.panel == panel)
    ][:MOST_PANELS]
    if len(depths) < FEWEST or len(jobs) < FEWEST or not panels:
        return None
    each_mm = HEAD_MM + ROW_MM * len(jobs)
    with small_multiples(name, len(panels), COLUMNS, MARGIN_MM, each_mm, DEPTH, "jobs") as (drawing, sheets):
        for axes, panel in zip(sheets, panels, strict=True):
            _draw(axes, [one for one in cells if one.panel == panel], depths, jobs)
            axes.name_data(x=DEPTH, y="jobs")
            axes.set_title(panel, loc="left", pad=2.5, fontsize=7.2, color=INK)
        alt = f"{title}: {len(panels)} panels of {len(depths)} depths by {len(jobs)} numbers of jobs."
    caption = (
        "In each cell the rate in GB/s; the colour is its share of its panel's best, which is outlined. An empty cell was not measured or "
        "does not count."
    )
    dropped = len({one.panel for one in cells}) - len(panels)
    if dropped:
        caption += f" Not drawn: {dropped} more kinds of access; the table has them."
    return drawing.figure(title, caption, alt, _see(cells, panels))


def _draw(axes: Panel, cells: Sequence[Cell], depths: Sequence[int], jobs: Sequence[int]) -> None:
    values = np.full((len(jobs), len(depths)), np.nan)
    for one in cells:
        if one.rate is not None:
            values[jobs.index(one.jobs), depths.index(one.depth)] = one.rate / GB
    best = float(np.nanmax(values))
    axes.imshow(
        np.ma.masked_invalid(values), aspect="auto", origin="lower", interpolation="nearest", cmap=COLOURS, vmin=0, vmax=best,
        extent=(-0.5, len(depths) - 0.5, -0.5, len(jobs) - 0.5), zorder=1,
    )  # fmt: skip
    axes.grid(visible=False)
    for row, column in zip(*np.nonzero(np.isfinite(values)), strict=True):
        value = float(values[row, column])
        axes.annotate(
            significant(value, 3),
            (column, row),
            ha="center",
            va="center",
            fontsize=6.6,
            color="white" if value > DARK * best else INK,
        )
    row, column = np.unravel_index(int(np.nanargmax(values)), values.shape)
    left, bottom = float(column) - 0.5, float(row) - 0.5
    for colour, width in (("white", 3.4), (INK, 1.6)):
        axes.plot(
            [left, left + 1, left + 1, left, left], [bottom, bottom, bottom + 1, bottom + 1, bottom], color=colour, linewidth=width,
            label="_best", zorder=3, clip_on=False,
        )  # fmt: skip
    axes.set_xticks(range(len(depths)), [str(one) for one in depths])
    axes.set_yticks(range(len(jobs)), [str(one) for one in jobs])
    axes.tick_params(length=0)


def _see(cells: Sequence[Cell], panels: Sequence[str]) -> str:
    """Says where the fastest panel is at its best, and how little outstanding work comes near it."""
    known = [one for one in cells if one.rate is not None and one.panel in panels]
    best = max(known, key=lambda one: one.rate or 0.0)
    near = [one for one in known if one.panel == best.panel and (one.rate or 0.0) >= NEAR * (best.rate or 0.0)]
    least = min(near, key=lambda one: (one.depth * one.jobs, one.jobs))
    text = f"{best.panel}: best at depth {best.depth} with {best.jobs} job{'s' if best.jobs > 1 else ''} ({in_gb_per_s(best.rate or 0.0)})"
    if least is best:
        return f"{text}; every cell with less in flight is more than {percent(100 * (1 - NEAR))} slower."
    share = percent(100 * (least.rate or 0.0) / (best.rate or 1.0))
    return f"{text}; depth {least.depth} with {least.jobs} reaches {share} of it."
