"""Figures of the concurrent analysis: rate against workers, file beside device, farm against the sum of its nodes, mass spectrum."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.ticker import MaxNLocator

from daq_bench.bench_report.base.units import significant
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import BLUE, GREY, INK, SERIES
from daq_bench.bench_report.figures.references import COLOUR

HEIGHT_MM, FARM_MM, MASS_MM = 82.0, 66.0, 70.0
MB = 1e6
FARTHEST = 4.0  # a stated point that lies more than this factor above the measured ones would squash them
MARKERS = ("D", "s", "^", "v")


@dataclass(frozen=True)
class WorkerPoint:
    """Rates in B/s: median, least and most over the repetitions that count."""

    workers: int
    value: float
    least: float
    most: float


@dataclass(frozen=True)
class Stated:
    """A point that the paper's text states, in B/s; `workers` None: at any number."""

    label: str
    value: float
    workers: int | None


def workers_figure(
    name: str,
    title: str,
    axis: str,
    series: Sequence[tuple[str, Sequence[WorkerPoint]]],
    stated: Sequence[Stated],
    cores: int,
    caption: str,
) -> Figure:
    """One series for each storage, bars over all repetitions; stated points are hollow marks without a line.

    Those too far up are left to the caption."""
    top = max(point.most for _, points in series for point in points)
    hidden = [one for one in stated if one.value > FARTHEST * top]
    with sheet(name, HEIGHT_MM) as (drawing, (axes,)):
        for index, (label, points) in enumerate(series):
            colour, dashes, marker = SERIES[index % len(SERIES)]
            x, values = [one.workers for one in points], [one.value / MB for one in points]
            spread = ([(one.value - one.least) / MB for one in points], [(one.most - one.value) / MB for one in points])
            axes.errorbar(
                x, values, yerr=spread, color=colour, linestyle=dashes, marker=marker, label=label, elinewidth=0.7, capsize=2, zorder=3
            )  # fmt: skip
        for index, one in enumerate(one for one in stated if one not in hidden):
            if one.workers is None:
                axes.axhline(
                    one.value / MB, color=COLOUR, linewidth=0.9, linestyle=(0, (6, 2, 1, 2)), label=one.label, zorder=1
                )
            else:
                marker = MARKERS[index % len(MARKERS)]
                axes.mark(one.workers, one.value / MB, marker, COLOUR, one.label, 2, size=6, hollow=True)
        axes.axvline(cores, color=GREY, linewidth=0.8, linestyle=":", label=f"{cores} physical cores", zorder=1)
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.name_axes("workers", axis)
        axes.legend_above(columns=2)
        fastest, best = max(
            ((label, point) for label, points in series for point in points), key=lambda one: one[1].value
        )
        alt = f"{title}: {len(series)} series, highest {significant(best.value / MB, 3)} MB/s with {best.workers} workers."
    beyond = (
        f" Beyond the axis: {'; '.join(f'{one.label} ({significant(one.value / MB, 3)} MB/s)' for one in hidden)}."
        if hidden
        else ""
    )
    see = (
        f"The highest median is {significant(best.value / MB, 3)} MB/s with {best.workers} worker{'s' if best.workers != 1 else ''} "
        f"({fastest})."
    )
    return drawing.figure(title, caption + beyond, alt, see)


def farm_figure(name: str, title: str, rounds: Sequence[tuple[int, float, float]], caption: str) -> Figure:
    """Two bars for each round: the sum of the nodes alone, and all together, in B/s."""
    with sheet(name, FARM_MM) as (drawing, (axes,)):
        alone, all_nodes = ([one[place] / MB for one in rounds] for place in (1, 2))
        labels = "sum of the nodes, each alone", "all nodes together"
        axes.paired_bars([one[0] for one in rounds], 0.2, (alone, labels[0]), (all_nodes, labels[1]))
        axes.set_xticks([one[0] for one in rounds])
        axes.name_axes("round", "analysis rate (MB/s)")
        axes.grid(False, axis="x")
        axes.legend_above(columns=2)
        alt = f"{title}: {len(rounds)} rounds."
        shares = sorted(together / alone for _, alone, together in rounds)
        ends = [significant(share, 3) for share in dict.fromkeys((shares[0], shares[-1]))]
        see = f"Together the nodes reach {' to '.join(ends)} of the sum of what each does alone."
        return drawing.figure(title, caption, alt, see)


def mass_figure(
    name: str, title: str, edges: Sequence[float], counts: Sequence[float], fitted: Sequence[float] | None, caption: str
) -> Figure:
    """Pairs in each bin of mass in GeV, with the square root as bar, and the fitted expectation."""
    centres = [(low + high) / 2 for low, high in itertools.pairwise(edges)]
    with sheet(name, MASS_MM) as (drawing, (axes,)):
        errors = [value**0.5 for value in counts]
        axes.errorbar(
            centres,
            counts,
            yerr=errors,
            color=INK,
            linestyle="none",
            marker=".",
            elinewidth=0.6,
            label="pairs of opposite charge",
            zorder=2,
        )
        if fitted is not None:
            axes.plot(centres, fitted, color=BLUE, label="fit", zorder=3)
        axes.set_ylim(bottom=0)
        axes.name_axes("invariant mass (GeV)", f"pairs in {significant(edges[1] - edges[0], 2, trim=True)} GeV")
        axes.legend_above(columns=2)
        alt = f"{title}: {significant(sum(counts), 4, trim=True)} pairs in {len(counts)} bins."
        peak = max(range(len(counts)), key=lambda place: counts[place])
        see = f"The fullest bin is the one at {significant(centres[peak], 3)} GeV."
        return drawing.figure(title, caption, alt, see)
