"""Thins a long series for drawing without hiding its extremes.

Promise: every interval of the drawn axis keeps its lowest and its highest sample, in their true order and at
their true times; nothing is averaged, so a spike that was measured is a spike that is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MAX_DRAWN_POINTS = 1600

Series = NDArray[np.float64]


def thinned(
    times: Sequence[float] | Series, values: Sequence[float] | Series, limit: int = MAX_DRAWN_POINTS
) -> tuple[Series, Series]:
    """Returns at most `limit` of the samples: the minimum and the maximum of each of limit/2 equal parts."""
    x = np.asarray(times, dtype=np.float64)
    y = np.asarray(values, dtype=np.float64)
    if x.size <= limit:
        return x, y
    kept: list[int] = [0]
    for part in np.array_split(np.arange(x.size), limit // 2 - 1):
        kept.extend(sorted({int(part[np.argmin(y[part])]), int(part[np.argmax(y[part])])}))
    kept.append(x.size - 1)
    order = np.unique(kept)
    return x[order], y[order]


def thinned_together(
    times: Series, rows: Sequence[Series], limit: int = MAX_DRAWN_POINTS
) -> tuple[Series, list[Series]]:
    """Does the same for rows that are drawn on top of each other, all of the length of `times`: each part keeps every row's extremes."""
    if times.size <= limit:
        return times, list(rows)
    kept = {0, times.size - 1}
    for part in np.array_split(np.arange(times.size), max(1, limit // (2 * len(rows)) - 1)):
        start, stop = int(part[0]), int(part[-1]) + 1
        for row in rows:
            kept |= {start + int(np.argmin(row[start:stop])), start + int(np.argmax(row[start:stop]))}
    order = np.array(sorted(kept))
    return times[order], [row[order] for row in rows]
