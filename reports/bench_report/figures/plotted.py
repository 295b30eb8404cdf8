"""What a figure shows, as numbers: read back from the drawing itself, so that no figure can leave something out.

Promise: every line, marker, bar, band, area, map and note of every panel, in the units of its axes, as the renderer was given it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import Collection, PathCollection
from matplotlib.figure import Figure as Sheet
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

Panel = dict[str, Any]
_collected: ContextVar[dict[str, list[Panel]] | None] = ContextVar("figures drawn", default=None)


@contextmanager
def collecting() -> Iterator[dict[str, list[Panel]]]:
    """The panels of every figure that is drawn meanwhile, by the figure's name."""
    found: dict[str, list[Panel]] = {}
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


def note(name: str, sheet: Sheet) -> None:
    """Keeps what is drawn on `sheet`, where somebody collects it."""
    found = _collected.get()
    if found is not None:
        found[name] = [panel(axes) for axes in sheet.axes if not hasattr(axes, "_colorbar")]


def panel(axes: Axes) -> Panel:
    """One panel: its axes, and its series in the order in which they were drawn."""
    return {
        "title": axes.get_title(loc="left") or axes.get_title(),
        "x": {"label": axes.get_xlabel(), "scale": axes.get_xscale(), "limits": numbers(axes.get_xlim())},
        "y": {"label": axes.get_ylabel(), "scale": axes.get_yscale(), "limits": numbers(axes.get_ylim())},
        "series": [
            *(_line(line) for line in axes.lines),
            *(_collection(one) for one in axes.collections),
            *(_patch(patch) for patch in axes.patches),
            *(_map(image) for image in axes.images),
        ],
        "notes": [{"text": text.get_text(), "at": numbers(text.get_position())} for text in axes.texts],
    }


def numbers(values: Any) -> list[Any]:
    """Floats, nested as the array is; null where nothing is drawn (masked, not finite)."""
    array = np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan)
    drawn = array.astype(object)
    drawn[~np.isfinite(array)] = None
    plain: list[Any] = drawn.tolist()
    return plain


def _label(artist: Any) -> str:
    label = str(artist.get_label())
    return "" if label.startswith("_") else label


def _line(line: Line2D) -> Panel:
    x, y = line.get_data(orig=False)
    return {"kind": "line", "label": _label(line), "x": numbers(x), "y": numbers(y)}


def _collection(drawn: Collection) -> Panel:
    if isinstance(drawn, PathCollection):
        offsets = np.ma.asarray(drawn.get_offsets(), dtype=np.float64).reshape(-1, 2)
        return {"kind": "points", "label": _label(drawn), "x": numbers(offsets[:, 0]), "y": numbers(offsets[:, 1])}
    return {"kind": "paths", "label": _label(drawn), "paths": [numbers(path.vertices) for path in drawn.get_paths()]}


def _patch(patch: Patch) -> Panel:
    if isinstance(patch, Rectangle):
        box = [*patch.get_xy(), patch.get_width(), patch.get_height()]
        return {"kind": "bar", "label": _label(patch), "x_y_width_height": numbers(box)}
    corners = patch.get_patch_transform().transform(patch.get_path().vertices)
    return {"kind": "shape", "label": _label(patch), "path": numbers(corners)}


def _map(image: AxesImage) -> Panel:
    return {"kind": "map", "extent": numbers(image.get_extent()), "values": numbers(image.get_array())}
