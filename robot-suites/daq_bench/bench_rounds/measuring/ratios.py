"""Ratios of paired measurements, and when more pairs are needed. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import numpy

from daq_bench.bench_model.statistics.repetitions import median_interval

CONFIDENCE = 0.90  # five pairs can give it: their whole range covers the median with 93.75 %
SPREAD_MAX = 0.10  # inter-quartile range over median, above which more pairs are taken


def spread(values: Sequence[float]) -> float:
    """Inter-quartile range over median."""
    low, high = numpy.percentile(values, [25, 75])
    return float((high - low) / statistics.median(values))


def wants_more(ratios: Sequence[float], most: int) -> bool:
    """The rule of the further rounds: it sees how wide the ratios scatter, never on which side of 1 they lie."""
    return len(ratios) < most and spread(ratios) > SPREAD_MAX


def summary(values: Sequence[float]) -> dict[str, Any]:
    """n, median, range, spread, and the median's interval by order statistics (None where n is too small for it)."""
    if not values:
        return {"n": 0, "median": None, "min": None, "max": None, "spread": None, "interval": None}
    interval = median_interval(values, CONFIDENCE)
    return {
        "n": len(values),
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
        "spread": spread(values) if statistics.median(values) else None,
        "interval": list(interval) if interval else None,
    }
