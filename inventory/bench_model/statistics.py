"""Statistics over repetitions. Nothing here is assumed normal: three repetitions of a disk benchmark seldom are."""

from __future__ import annotations

import math
import statistics as stdlib_statistics
from collections.abc import Sequence

from scipy.stats import binom

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
    rank = 0
    while 1 - 2 * binom.cdf(rank, count, 0.5) >= confidence:
        rank += 1
    return (ordered[rank - 1], ordered[count - rank]) if rank else None


def repetitions_for_median(confidence: float = CONFIDENCE) -> int:
    """The least number of repetitions whose range covers their median at this level: 1 - 2 (1/2)^n >= confidence."""
    return math.ceil(math.log2(2 / (1 - confidence)) - 1e-9)
