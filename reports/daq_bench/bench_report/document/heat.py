"""The cells of a panel whose colour is the value (`Panel.heat`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

COLOURS = "cividis_r"  # even in lightness, and the same for every kind of colour-blindness: more is darker
EMPTY = "white"


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
