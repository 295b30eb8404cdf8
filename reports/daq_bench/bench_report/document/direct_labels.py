"""Names curves where they end instead of in a legend, whose colours a reader would have to match.

Promise: each labelled line is named once, in its own colour, and no name covers another; a line that ends early is joined to its name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.lines import Line2D

from daq_bench.bench_report.document.palette import INK
from daq_bench.bench_report.document.traces import UNLABELLED

POINTS_PER_INCH = 72.0
SIZE_PT, STEP_PT = 6.8, 8.6  # a name's height, and the least distance of two
MOST_CHARACTERS, MOST_IN_LEGEND = 34, 80
GAP = 0.012  # of the panel's width, between its edge and the names
LIGHTEST = 0.6  # of white
MOVED = 0.004  # of the panel: a name or an end that lies farther off gets a line to it


def label_ends(axes: Axes) -> None:
    """Call it when limits and scales are final, instead of a legend. A hollow vertical line is left to the caller."""
    figure = axes.get_figure(root=True)
    engine = figure.get_layout_engine() if figure else None
    if figure is None:
        return
    if engine is not None:
        engine.execute(figure)
    lines = [line for line in axes.lines if not str(line.get_label()).startswith(UNLABELLED)]
    named = [(line, end) for line in lines if (end := _end(axes, line)) is not None]
    if not named:
        return
    height_pt = axes.get_position().height * figure.get_size_inches()[1] * POINTS_PER_INCH
    places = spread([end[1] for _, end in named], STEP_PT / height_pt)
    for (line, (across, up)), place in zip(named, places, strict=True):
        far = abs(place - up) > MOVED or across < 1 - MOVED
        axes.annotate(
            shortened(str(line.get_label()), MOST_CHARACTERS), xy=(across, up), xycoords="axes fraction", xytext=(1 + GAP, place),
            textcoords="axes fraction", va="center", ha="left", fontsize=SIZE_PT, color=_legible(line.get_color()), annotation_clip=False,
            arrowprops={
                "arrowstyle": "-", "color": line.get_color(), "linewidth": 0.4, "shrinkA": 0, "shrinkB": 0, "relpos": (0, 0.5),
            } if far else None,
        )  # fmt: skip


def shortened(name: str, most: int = MOST_IN_LEGEND) -> str:
    """Returns both ends of a name that is too long for a legend or an axis: names of one kind differ at their ends."""
    return name if len(name) <= most else f"{name[: most // 2]}\u2026{name[-(most // 2 - 1) :]}"


def _legible(colour: object) -> str:
    """Returns the line's colour for its name, or ink where so light a name could not be read."""
    red, green, blue = to_rgb(colour)  # type: ignore[arg-type]
    return to_hex((red, green, blue)) if 0.3 * red + 0.59 * green + 0.11 * blue < LIGHTEST else INK


def _end(axes: Axes, line: Line2D) -> tuple[float, float] | None:
    """Returns where the line's last point lies, as shares of the panel; a level's is the right edge. None where it has none inside."""
    in_x, in_y = line.get_transform().contains_branch_seperately(axes.transData)  # matplotlib's own spelling
    if not in_y:
        return None
    x, y = np.asarray(line.get_xdata(), dtype=float), np.asarray(line.get_ydata(), dtype=float)
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if not known.size:
        return None
    at = known[-1]
    place = axes.transAxes.inverted().transform(axes.transData.transform((x[at], y[at])))
    across = float(place[0]) if in_x else 1.0
    return min(max(across, 0.0), 1.0), min(max(float(place[1]), 0.0), 1.0)


def spread(places: Sequence[float], step: float) -> list[float]:
    """Returns the places moved as little as it takes to be `step` apart, in their order, within 0 and 1 where there is room for all."""
    order = sorted(range(len(places)), key=lambda index: places[index])
    merged: list[
        tuple[float, int]
    ] = []  # (mean of a group less its ranks, number): neighbours that would overlap move together
    for rank, index in enumerate(order):
        merged.append((places[index] - rank * step, 1))
        while len(merged) > 1 and merged[-2][0] > merged[-1][0]:
            (one, many), (other, more) = merged[-2:]
            merged[-2:] = [((one * many + other * more) / (many + more), many + more)]
    bases = [value for value, number in merged for _ in range(number)]
    highest = max(0.0, 1.0 - (len(places) - 1) * step)
    moved = [min(max(value, 0.0), highest) + rank * step for rank, value in enumerate(bases)]
    found = [0.0] * len(places)
    for index, place in zip(order, moved, strict=True):
        found[index] = place
    return found
