"""Tells how a metric follows a temperature over runs, and what is left when that is taken out.

The slope is Theil and Sen's median over the *differences* between one run and the next: a change of level, such as a firmware makes, is
one difference of many and moves it little, where least squares on the values would call it warmth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

FEWEST = 10  # [P] runs
RANGE_DEGC = 2.0  # [P] between the 10th and the 90th percentile: with less there is nothing to see
CONFIDENCE = 0.99  # as strict as the steps: adjusting without a dependence adds noise


@dataclass(frozen=True)
class Warmth:
    """`slope` per K with its interval at `confidence`; `reference` is the temperature that values are adjusted to."""

    sensor: str
    slope: float
    interval: tuple[float, float]
    confidence: float
    reference: float
    n: int

    @property
    def depends(self) -> bool:
        return self.interval[0] > 0 or self.interval[1] < 0

    def adjusted(self, values: Sequence[float], temperatures: Sequence[float]) -> list[float]:
        """The values as they would be at the reference temperature."""
        return [
            value - self.slope * (degrees - self.reference) for value, degrees in zip(values, temperatures, strict=True)
        ]


def warmth(sensor: str, values: Sequence[float], temperatures: Sequence[float]) -> Warmth | None:
    """None where there are too few runs, the temperature hardly differs between them, or the series mostly stays."""
    degrees = np.asarray(temperatures, dtype=float)
    if len(degrees) < FEWEST or np.ptp(np.percentile(degrees, [10, 90])) < RANGE_DEGC:
        return None
    moved = np.diff(degrees)
    if np.ptp(moved) == 0:
        return None
    changes = np.diff(np.asarray(values, dtype=float))
    if np.count_nonzero(changes) <= len(changes) // 2:  # a series that mostly stays: its slopes are ties
        return None
    found = scipy.stats.theilslopes(changes, moved, CONFIDENCE)
    interval = (float(found.low_slope), float(found.high_slope))
    return Warmth(sensor, float(found.slope), interval, CONFIDENCE, float(np.median(degrees)), len(degrees))
