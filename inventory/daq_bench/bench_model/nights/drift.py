"""Tells where a slow change over nights leads: a straight line through the runs of the present level, and when it meets the bound.

The slope's interval is Student's t with the degrees of freedom that the series' memory leaves. Whether that slope lasts, nobody knows;
nothing is projected further than ten times the time that was observed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from daq_bench.bench_model.nights.steps import Values, memory_of

FEWEST = 8  # [P] runs for a line
HORIZON = 10.0  # [P] times the observed time
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Drift:
    """`slope` per day with its 95 % interval; days are counted from the first of the `n` runs. `days_to_bound`: from the newest run, None
    where it does not lead there within the horizon; `earliest`, `latest` from the interval of the slope (None: never)."""

    slope: float
    interval: tuple[float, float]
    n: int
    days: float
    days_to_bound: float | None
    earliest: float | None
    latest: float | None

    @property
    def trend(self) -> bool:
        """The interval of the slope lies on one side of zero."""
        return self.interval[0] > 0 or self.interval[1] < 0


def drift(
    days: Sequence[float], values: Sequence[float], errors: Values, comparison: str, bound: float
) -> Drift | None:
    """The line through the runs; None for fewer than `FEWEST`, or when they all began at one moment."""
    times, series = np.asarray(days, dtype=float), np.asarray(values, dtype=float)
    span = float(np.ptp(times)) if len(times) else 0.0
    if len(series) < FEWEST or span <= 0:
        return None
    slope, error, freedom = _line(times, series, errors)
    reach = float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, freedom)) * error
    interval = (slope - reach, slope + reach)
    level = float(series.mean() + slope * (times[-1] - times.mean()))
    towards = {"at_least": -1.0, "at_most": 1.0}.get(comparison)
    reached = [
        _days(level, one, bound, towards, HORIZON * span)
        for one in (slope, *sorted(interval, key=lambda it: -it * (towards or 0)))
    ]
    return Drift(slope, interval, len(series), span, reached[0], reached[1], reached[2])


def _line(times: Values, series: Values, errors: Values) -> tuple[float, float, float]:
    """Slope, its standard error and the degrees of freedom, by least squares with the residuals' memory in the error."""
    centred = times - times.mean()
    slope = float(centred @ series / (centred @ centred))
    residuals = series - series.mean() - slope * centred
    phi = memory_of(residuals, errors, [0, len(series)])
    effective = max(3.0, len(series) * (1 - phi) / (1 + phi))
    variance = float(residuals @ residuals) / (len(series) - 2)
    error = math.sqrt(variance / float(centred @ centred) * (1 + phi) / (1 - phi))
    return slope, error, max(1.0, effective - 2)


def _days(level: float, slope: float, bound: float, towards: float | None, horizon: float) -> float | None:
    """Days until the line from `level` meets the bound; 0 when it is past it; None when it never does, or too late to tell."""
    if towards is None:
        return None
    if (level - bound) * towards >= 0:
        return 0.0
    if slope * towards <= 0:
        return None
    days = (bound - level) / slope
    return float(days) if days <= horizon else None
