"""Statistics over repetitions. Nothing here is assumed normal: three repetitions of a disk benchmark seldom are."""

from __future__ import annotations

import math
import statistics as stdlib_statistics
from collections.abc import Sequence
from functools import cache

import scipy

from daq_bench.bench_model.statistics.bootstrap import rounded

CONFIDENCE = 0.95


def judged_value(values: Sequence[float], statistic: str) -> float:
    """The value that is held against the bound: `min`, `max` or `median` over the repetitions (at least one)."""
    if not values:
        raise ValueError("no values")
    if statistic == "median":
        return float(stdlib_statistics.median(values))
    return float(min(values) if statistic == "min" else max(values))


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """Distribution-free interval of the median by order statistics; None where n is too small for it (n < 6 at 95 %).

    The interval [x(k), x(n+1-k)] covers the median with probability 1 - 2 P(B < k), B ~ Binomial(n, 1/2)."""
    ordered, count = sorted(values), len(values)
    rank = _rank(count, confidence)
    return (ordered[rank - 1], ordered[count - rank]) if rank else None


@cache
def _rank(count: int, confidence: float) -> int:
    rank = 0
    while 1 - 2 * scipy.stats.binom.cdf(rank, count, 0.5) >= confidence:
        rank += 1
    return rank


@cache
def _quantile(degrees: int, confidence: float) -> float:
    return float(scipy.stats.t.ppf((1 + confidence) / 2, degrees))


def repetitions_for_median(confidence: float = CONFIDENCE) -> int:
    """The least number of repetitions whose range covers their median at this level: 1 - 2 (1/2)^n >= confidence."""
    return math.ceil(math.log2(2 / (1 - confidence)) - 1e-9)


def repetition_interval(runs: Sequence[tuple[float, float]], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Interval of what repetitions measure, as wide as Student's t of their mean and the order statistics of their median.

    Each is too narrow somewhere: t where a rare state was in no or in every repetition, the order statistics of many skewed ones.
    A repetition is (value, value), or the two values that it can be read as. Raises ValueError below `repetitions_for_median`."""
    rank = _rank(len(runs), confidence)
    if not rank:
        raise ValueError(f"{len(runs)} repetitions bound nothing at {confidence:.4g}")
    lows, highs = (sorted(side) for side in zip(*runs, strict=True))
    quantile = _quantile(len(runs) - 1, confidence) / math.sqrt(len(runs))
    (low, scatter_low), (high, scatter_high) = _moments(lows), _moments(highs)
    below, above = (rounded(quantile * scatter) for scatter in (scatter_low, scatter_high))
    return min(low - below, lows[rank - 1]), max(high + above, highs[len(runs) - rank])


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation."""
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
