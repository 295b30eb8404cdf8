"""A panel whose colour is the value: a raster, so that thousands of cells take few bytes; its numbers are read back like any other's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure as Sheet
from numpy.typing import NDArray

COLOURS = "cividis_r"  # even in lightness, and the same for every kind of colour-blindness: more is darker
EMPTY = "white"


def draw_heat(
    figure: Sheet,
    axes: Axes,
    values: NDArray[np.float64],
    extent: tuple[float, float, float, float],
    unit: str,
    *,
    logarithmic: bool = False,
    limits: tuple[float, float] | None = None,
) -> None:
    """Draws rows from the bottom up over `extent` (left, right, bottom, top); a value that is not a number leaves its cell empty."""
    shown = np.ma.masked_invalid(values)
    low, high = limits or (float(shown.min()), float(shown.max()))
    norm = LogNorm(low, max(high, low * 1.01)) if logarithmic else Normalize(low, high if high > low else low + 1.0)
    image = axes.imshow(
        shown, aspect="auto", origin="lower", interpolation="nearest", cmap=COLOURS, norm=norm, extent=extent, zorder=3
    )
    axes.set_facecolor(EMPTY)
    axes.grid(visible=False)
    figure.colorbar(image, ax=axes, label=unit, pad=0.01, aspect=12)


def in_bins(times: Sequence[float] | NDArray[np.float64], values: Sequence[float] | NDArray[np.float64], edges: NDArray[np.float64],
) -> NDArray[np.float64]:  # fmt: skip
    """Returns the mean of the values in each bin of time; not a number where none lies."""
    places = np.digitize(np.asarray(times, dtype=float), edges) - 1
    given = np.asarray(values, dtype=float)
    inside = (places >= 0) & (places < len(edges) - 1) & np.isfinite(given)
    number = np.bincount(places[inside], minlength=len(edges) - 1)
    total = np.bincount(places[inside], weights=given[inside], minlength=len(edges) - 1)
    found = np.full(len(edges) - 1, np.nan)
    found[number > 0] = total[number > 0] / number[number > 0]
    return found
