"""Level changes of a regularly sampled series, under noise that may be correlated.

Promise: `segments` is the exact optimum of the penalised least-squares problem (PELT: Killick, Fearnhead and Eckley 2012, and
tested against a search through all partitions). The penalty grows with the noise's *long-run* variance, so that a series with
memory is not cut into pieces by its own wandering."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

Values = NDArray[np.float64]

# [P] cost of one more change-point in units of variance x log(n). 3 and not the 1 to 2 of the literature, which assumes Gaussian
# noise: throughput has heavy tails. docs/detection.md gives the rates of false alarm and detection that follow.
PENALTY = 3.0
MEMORY_MAX = 0.95  # of the lag-1 correlation: beyond it noise and change of level are the same thing
NORMAL_MAD = 0.6745  # a normal distribution's median absolute deviation over its standard deviation
# Differences are taken over at most a twentieth of the series, so that the two changes of one dip touch a tenth of them.
SHARE_OF_LENGTH = 20
LAG_MAX = 30  # samples
TWO_LEVELS_APART = 6.0  # [P] spreads within two levels by which they differ, where there are two
TWO_LEVELS_SHARE = 0.05  # [P] of the samples on the rarer one: less hardly touches the differences
MOST_SAMPLES = 7200  # the search takes time with their square: a longer series is averaged down to this many


@dataclass(frozen=True)
class Noise:
    """`sigma` of one sample, in the series' unit; `memory` is its lag-1 correlation."""

    sigma: float
    memory: float

    @property
    def long_run_variance(self) -> float:
        """Variance of the mean of n samples, times n, for a first-order autoregressive process."""
        return self.sigma**2 * (1 + self.memory) / (1 - self.memory)


@dataclass(frozen=True)
class Segment:
    """Samples `start` to `end` (excluded) with their mean."""

    start: int
    end: int
    level: float

    @property
    def length(self) -> int:
        return self.end - self.start


def noise_of(series: ArrayLike, floor: float) -> Noise:
    """The noise from the differences of samples at several distances, which a few changes of level or a drift hardly touch.

    `floor`: the least standard deviation that is believed; a perfectly even series still has the resolution of its counters."""
    values = _without_two_levels(np.asarray(series, dtype=float))
    near = _spread(values, 1)
    furthest = int(np.clip(len(values) // SHARE_OF_LENGTH, 2, LAG_MAX))
    memory = float(
        np.median([_memory(_spread(values, lag), near, lag) for lag in range(max(2, furthest // 2), furthest + 1)])
    )
    sigma = near / np.sqrt(2 * (1 - memory))
    return Noise(float(sigma), memory) if sigma > floor else Noise(floor, 0.0)


def _without_two_levels(values: Values) -> Values:
    """The series with its two levels taken out, where it plainly has two: a load that is slow every other moment has no quiet distance
    at which its noise could be seen, and its own changes would pass for memory.

    The split is the one that leaves the least squares. Noise alone, with memory or without, leaves levels less than three of the
    spreads within them apart."""
    order = np.sort(values)
    count = len(order)
    if count < 2:
        return values
    sums, number = np.cumsum(order)[:-1], np.arange(1, count)
    between = (sums - order.sum() * number / count) ** 2 / (number * (count - number))
    bar = order[int(np.argmax(between))]
    high = values > bar
    if min(high.sum(), (~high).sum()) < TWO_LEVELS_SHARE * count:
        return values
    residuals = values - np.where(high, np.median(values[high]), np.median(values[~high]))
    apart = float(np.median(values[high]) - np.median(values[~high]))
    spread = float(np.median(np.abs(residuals))) / NORMAL_MAD
    return residuals if apart >= TWO_LEVELS_APART * spread else values


def _memory(far: float, near: float, lag: int) -> float:
    """The lag-1 correlation of the autoregressive process whose differences have these spreads at `lag` and at 1.

    The ratio of their variances is 1 + phi + phi^2 + ... + phi^(lag - 1)."""
    if near <= 0:
        return 0.0
    ratio = (far / near) ** 2
    low, high = 0.0, MEMORY_MAX
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 - middle**lag) / (1 - middle) < ratio else (low, middle)
    return (low + high) / 2


def _spread(values: Values, lag: int) -> float:
    """Standard deviation of the differences at a distance, by their median absolute deviation."""
    if len(values) <= lag:
        return 0.0
    differences = values[lag:] - values[:-lag]
    return float(np.median(np.abs(differences - np.median(differences)))) / NORMAL_MAD


def segments(series: ArrayLike, noise: Noise, penalty: float = PENALTY) -> list[Segment]:
    """The series cut where its level changes. At most `MOST_SAMPLES` samples; an empty series has no segment."""
    values = np.asarray(series, dtype=float)
    count = len(values)
    if count > MOST_SAMPLES:
        raise ValueError(f"{count} samples are more than {MOST_SAMPLES}; average them first")
    if count == 0:
        return []
    price = penalty * noise.long_run_variance * np.log(max(count, 3))
    return [Segment(start, end, float(values[start:end].mean())) for start, end in _partition(values, price)]


def _partition(values: Values, price: float) -> list[tuple[int, int]]:
    """(start, end) of the segments that minimise the sum of squared deviations plus `price` per segment."""
    count = len(values)
    centred = values - values.mean()  # keeps the cumulated squares small against the rounding of their differences
    sums = np.concatenate(([0.0], np.cumsum(centred)))
    squares = np.concatenate(([0.0], np.cumsum(centred**2)))
    best = np.zeros(count + 1)
    best[0] = -price
    origin = np.zeros(count + 1, dtype=int)
    candidates = np.zeros(1, dtype=int)
    for end in range(1, count + 1):
        length = end - candidates
        cost = squares[end] - squares[candidates] - (sums[end] - sums[candidates]) ** 2 / length
        total = best[candidates] + cost
        winner = int(np.argmin(total))
        best[end] = total[winner] + price
        origin[end] = candidates[winner]
        candidates = np.append(candidates[total <= best[end]], end)  # the others can never win again
    cuts = [count]
    while cuts[-1] > 0:
        cuts.append(int(origin[cuts[-1]]))
    cuts.reverse()
    return list(pairwise(cuts))
