"""Reads the numbers back from a finished sheet: those that were drawn, not those that were meant to be.

Promise: every labelled mark of every panel is a `Trace` in the panel's own units; the same traces feed the hover layer of the HTML,
the data attached to the PDF, and the tests that compare a figure with its bundle.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import Collection, LineCollection, PolyCollection
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure as Sheet
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter
from numpy.typing import NDArray

from daq_bench.bench_report.base.units import significant

UNLABELLED = "_"


@dataclass(frozen=True)
class Trace:
    """One series of one panel, as drawn.

    `kind`: line (x, y), level or mark (a line across the panel at y or at x), range (x, from low to high), band (an area from
    low to high along x), span (from x[0] to x[1], x[2] to x[3], ...), bars (x, y; the end that tells the value), box (an area
    from x[0] to x[1] and from low[0] to high[0], ...), grid (rows of values). `look`: dashes, marker and
    hatch, which tell series apart without colour. A missing value is not a number. `x_names` and `y_names`: texts of places on an axis."""

    panel: str
    series: str
    kind: str
    x_label: str
    y_label: str
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    look: str = ""
    x_names: tuple[tuple[float, str], ...] = ()
    y_names: tuple[tuple[float, str], ...] = ()
    grid: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class Spot:
    """Describes where one plotted point lies on the sheet, as shares of its width (from the left) and height (from the top)."""

    across: float
    down: float
    text: str


def traces_of(sheet: Sheet) -> tuple[Trace, ...]:
    return tuple(trace for axes in sheet.axes if axes.get_label() != "<colorbar>" for trace in _of_panel(sheet, axes))


def _of_panel(sheet: Sheet, axes: Axes) -> Iterator[Trace]:
    common = _common(sheet, axes)
    caps = {line for one in axes.containers if isinstance(one, ErrorbarContainer) for line in one.lines[1]}
    for line in axes.lines:
        if line not in caps:
            yield _line(axes, line, common)
    for container in axes.containers:
        if isinstance(container, ErrorbarContainer):
            yield from (_ranges(bars, container.get_label(), common) for bars in container.lines[2])
        elif isinstance(container, BarContainer):
            yield _bars(container, common)
    bars = {id(bar) for one in axes.containers for bar in one if not isinstance(one, ErrorbarContainer)}
    areas = [patch for patch in axes.patches if isinstance(patch, Rectangle) and id(patch) not in bars]
    boxes = [patch for patch in areas if patch.get_data_transform() == axes.transData]
    yield from _spans([patch for patch in areas if patch not in boxes], common)
    if boxes:
        yield _boxes(boxes, common)
    drawn = {id(bars) for one in axes.containers if isinstance(one, ErrorbarContainer) for bars in one.lines[2]}
    for collection in axes.collections:
        if id(collection) not in drawn:
            yield from _collection(collection, common)
    for image in axes.images:
        rows: NDArray[np.float64] = np.atleast_2d(np.ma.filled(np.ma.asarray(image.get_array(), dtype=float), math.nan))
        grid = tuple(tuple(float(value) for value in row) for row in rows)
        left, right, bottom, top = image.get_extent()
        yield replace(common, series="values", kind="grid", x=(left, right), y=(bottom, top), grid=grid)


def _common(sheet: Sheet, axes: Axes) -> Trace:
    x_name, y_name = getattr(axes, "data_names", ("", ""))  # of a Panel
    shared = next((one.get_xlabel() for one in reversed(sheet.axes) if one.get_xlabel()), "")
    title = axes.get_title(loc="left")
    return Trace(
        panel=title, series="", kind="", x_label=x_name or axes.get_xlabel() or shared, y_label=y_name or axes.get_ylabel() or title,
        x_names=_names(axes.xaxis.get_major_locator(), axes.xaxis.get_major_formatter()),
        y_names=_names(axes.yaxis.get_major_locator(), axes.yaxis.get_major_formatter()),
    )  # fmt: skip


def _names(locator: object, formatter: object) -> tuple[tuple[float, str], ...]:
    """Returns the texts at places of an axis, such as targets one below the other."""
    if not isinstance(locator, FixedLocator) or not isinstance(formatter, FuncFormatter):
        return ()
    if not isinstance(formatter.func, partial):  # texts that were given by hand: others follow from the numbers
        return ()
    return tuple((float(at), formatter(at)) for at in np.asarray(locator()))


def _name(label: object) -> str:
    text = str(label)
    return "" if text.startswith(UNLABELLED) else text


def _numbers(values: object) -> tuple[float, ...]:
    plain = np.asarray(np.ma.filled(np.ma.asarray(values, dtype=float), math.nan), dtype=np.float64)
    return tuple(plain.ravel().tolist())


def _line(axes: Axes, line: Line2D, common: Trace) -> Trace:
    in_x, in_y = line.get_transform().contains_branch_seperately(axes.transData)  # matplotlib's own spelling
    kind = "line" if in_x and in_y else "level" if in_y else "mark"
    x, y = _numbers(line.get_xdata()), _numbers(line.get_ydata())
    x, y = (x, y) if kind == "line" else ((), y[:1]) if kind == "level" else (x[:1], ())
    dashes, marker = str(line._dash_pattern), str(line.get_marker())  # type: ignore[attr-defined]
    look = f"{dashes if line.get_linestyle() != 'None' else 'no line'} {marker} {line.get_fillstyle()}"
    return replace(common, series=_name(line.get_label()), kind=kind, x=x, y=y, look=look)


def _ranges(bars: LineCollection, label: object, common: Trace) -> Trace:
    ends = np.array([segment for segment in bars.get_segments() if len(segment) == 2]).reshape(-1, 2, 2)
    return replace(common, series=_name(label), kind="range", x=_numbers(ends[:, 0, 0]), low=_numbers(ends[:, 0, 1]),
        high=_numbers(ends[:, 1, 1]),
    )  # fmt: skip


def _bars(container: BarContainer, common: Trace) -> Trace:
    if container.orientation == "horizontal":
        x = tuple(float(bar.get_x() + bar.get_width()) for bar in container.patches)
        y = tuple(float(bar.get_y() + bar.get_height() / 2) for bar in container.patches)
    else:
        x = tuple(float(bar.get_x() + bar.get_width() / 2) for bar in container.patches)
        y = tuple(float(bar.get_y() + bar.get_height()) for bar in container.patches)
    hatch = str(container.patches[0].get_hatch() or "") if container.patches else ""
    return replace(common, series=_name(container.get_label()), kind="bars", x=x, y=y, look=f"bar {hatch}")


def _spans(patches: Sequence[Rectangle], common: Trace) -> Iterator[Trace]:
    """Yields shaded stretches of the panel, under their label: the first of a kind carries it, the others follow it."""
    found: dict[tuple[str, str], list[float]] = {}
    names: dict[tuple[object, ...], str] = {}
    for patch in patches:
        look = str(patch.get_hatch() or "")
        key = (tuple(patch.get_facecolor()), look)
        name = names.setdefault(key, _name(patch.get_label()))
        found.setdefault((name, look), []).extend((patch.get_x(), patch.get_x() + patch.get_width()))
    for (name, look), ends in found.items():
        yield replace(common, series=name, kind="span", x=_numbers(ends), look=f"shade {look}")


def _boxes(patches: Sequence[Rectangle], common: Trace) -> Trace:
    sides = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in patches]
    return replace(
        common,
        kind="box",
        x=_numbers([side for pair in sides for side in pair]),
        low=_numbers([patch.get_y() for patch in patches]),
        high=_numbers([patch.get_y() + patch.get_height() for patch in patches]),
    )


def _collection(found: Collection, common: Trace) -> Iterator[Trace]:
    name = _name(found.get_label())
    if isinstance(found, LineCollection):
        for segment in found.get_segments():
            x, y = _numbers(segment[:, 0]), _numbers(segment[:, 1])
            yield replace(common, series=name, kind="line", x=x, y=y, look=f"{found.get_linestyle()}")
    elif isinstance(found, PolyCollection):
        hatch = str(found.get_hatch() or "")
        for path in found.get_paths():
            corners = np.asarray(path.vertices, dtype=float)
            points = (len(corners) - 3) // 2
            if points > 1:  # fill_between: start, one edge, end, the other edge backwards, start
                low, high = corners[1 : points + 1], corners[points + 2 : 2 * points + 2][::-1]
                yield replace(common, series=name, kind="band", x=_numbers(low[:, 0]), low=_numbers(low[:, 1]), high=_numbers(high[:, 1]),
                    look=f"fill {hatch}",
                )  # fmt: skip
            else:
                ends = (corners[:, 0].min(), corners[:, 0].max())
                yield replace(common, series=name, kind="span", x=_numbers(ends), y=_numbers([corners[:, 1].mean()]))


def spots_of(sheet: Sheet, most: int) -> tuple[Spot, ...]:
    """Returns at most `most` points of the labelled lines, with their numbers for the reader."""
    lines = [
        (axes, line, trace)
        for axes in sheet.axes
        for line in axes.lines
        if (trace := _line(axes, line, _common(sheet, axes))).kind == "line" and trace.x
    ]
    each = max(2, most // max(1, len(lines)))
    return tuple(spot for axes, line, trace in lines for spot in _spots(sheet, axes, trace, each))


def _spots(sheet: Sheet, axes: Axes, trace: Trace, most: int) -> Iterator[Spot]:
    x, y = np.array(trace.x), np.array(trace.y)
    inside = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    chosen = inside if inside.size <= most else inside[np.linspace(0, inside.size - 1, most).round().astype(int)]
    width, height = sheet.bbox.width, sheet.bbox.height
    names_x, names_y = dict(trace.x_names), dict(trace.y_names)
    for at in chosen:
        across, up = axes.transData.transform((x[at], y[at]))
        if not axes.bbox.padded(1).contains(across, up):
            continue
        values = (
            f"{trace.x_label}: {names_x.get(x[at], significant(x[at], trim=True))}",
            f"{trace.y_label}: {names_y.get(y[at], significant(y[at], trim=True))}",
        )
        text = "\n".join(part.replace("\n", "\u202f") for part in (trace.series, *values) if part)
        yield Spot(across / width, 1 - up / height, text)
