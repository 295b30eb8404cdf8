"""Confidence interval of the mean of a time series whose neighbouring samples resemble each other.

Two intervals are taken and their hull is given, since each alone is too narrow somewhere (docs/statistics.md has the measured
rates): the percentiles of a circular block bootstrap (Politis & Romano 1992) with the automatic block length of Politis &
White (2004) as corrected by Patton, Politis & White (2009); and Student's t on equally weighted cosine transforms of the
series (Lazarus, Lewis, Stock & Watson 2018), the widest over several numbers of transforms. A series too short for its own
autocorrelation or skewness gets no interval, and is told why.

The result depends on the series, the level and the seed only, and is rounded so that another processor's last digit of a
cosine or a sum does not show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

Array = npt.NDArray[np.float64]

# All [P], set by simulation (docs/statistics.md): beyond them the interval misses more often than it claims.
SAMPLES_MIN = 50
BLOCKS_MIN = 8.0  # blocks of the automatic length in the series
TRANSFORMS_MIN = ((1000, 8), (200, 6), (0, 4))  # (series of so many samples, least number of cosine transforms)
EFFECTIVE_MIN = 15.0  # independent samples that would give a mean of the same variance
FLAT_SPECTRUM = 2 * math.pi  # the lowest n (1 - r) / 2 pi frequencies of a series with lag-1 correlation r look alike
SKEWNESS_MAX = 0.35  # |skewness| / sqrt(n): the leading term of the t interval's error
SAMPLES_MAX = 4096  # longer series are averaged in groups first: their mean stays, the time spent does not grow
RESAMPLES = (
    1000  # leave 4 % of uncertainty on the percentiles' distance; the cosine t beside them is the wider one mostly
)
CORRELATED = "are too few for their autocorrelation"
DIGITS = 9  # significant digits of an interval's half-widths


@dataclass(frozen=True)
class SeriesInterval:
    """`interval` of the mean of one series, or None and `reason`. Lengths in samples of the given series."""

    interval: tuple[float, float] | None
    samples: int
    block: float
    reason: str = ""
    samples_needed: int | None = None  # where the series is too short, about how many would do
    correlated: bool = False  # too short for its autocorrelation, whose estimate scatters, and for nothing else


def mean_interval(series: Sequence[float], confidence: float, seed: int) -> SeriesInterval:
    """Two-sided interval of the mean at level `confidence`. Raises ValueError for samples that are no finite numbers."""
    values = np.asarray(series, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError("a series must be a list of finite numbers")
    given = len(values)
    if given < SAMPLES_MIN:
        text = f"{given} samples are too few: {SAMPLES_MIN} are the least"
        return SeriesInterval(None, given, math.nan, text, SAMPLES_MIN)
    values, group = _grouped(values)
    mean = float(values.mean())
    deviations = values - mean
    if float(np.abs(deviations).max()) <= 1e-12 * abs(mean):
        return SeriesInterval((mean, mean), given, 1.0)
    block = block_length(values)
    reason, factor = _too_short(deviations, block)
    if reason:
        needed, correlated = math.ceil(given * factor), reason.startswith(CORRELATED)
        return SeriesInterval(None, given, block * group, f"{given} samples {reason}", needed, correlated)
    low, high = _percentiles(deviations, math.ceil(block), confidence, seed)
    half = cosine_half_width(deviations, confidence)
    below, above = (rounded(max(one, half)) for one in (-low, high))
    return SeriesInterval((mean - below, mean + above), given, block * group)


def _too_short(deviations: Array, block: float) -> tuple[str, float]:
    """Why the series is too short and how many times as long would do; ("", 1.0) where it is not."""
    count = len(deviations)
    variance = float((deviations**2).mean())
    neighbours = float((deviations[1:] * deviations[:-1]).sum()) / (count * variance)
    correlation = min(0.999, (count * neighbours + 1) / (count - 4))  # Kendall's (1954) correction of the bias
    usable = count * (1 - correlation) / FLAT_SPECTRUM
    least = _transforms(count)[0]
    inflation = sum(_cosine_powers(deviations, least)) / least / variance  # of the mean's variance, by autocorrelation
    shortage = max(BLOCKS_MIN * block / count, least / usable, EFFECTIVE_MIN * inflation / count)
    if shortage > 1:
        return f"{CORRELATED} (neighbours correlate by {correlation:.2f})", shortage
    skewness = float((deviations**3).mean()) / variance**1.5
    if abs(skewness) > SKEWNESS_MAX * math.sqrt(count):
        return "are too few for rare large deviations among them", (skewness / SKEWNESS_MAX) ** 2 / count
    return "", 1.0


def rounded(value: float) -> float:
    """`value` with as many digits as a reader on another machine gets too."""
    return float(f"{value:.{DIGITS - 1}e}")


def _grouped(values: Array) -> tuple[Array, int]:
    """At most SAMPLES_MAX means of `group` neighbours each; samples over a multiple are left off at the start."""
    group = -(-len(values) // SAMPLES_MAX)
    if group == 1:
        return values, 1
    count = len(values) // group
    return values[-count * group :].reshape(count, group).mean(axis=1), group


def block_length(values: Array) -> float:
    """Automatic block length of the circular block bootstrap, in samples: Politis & White (2004), corrected 2009.

    The bandwidth is twice the last lag before a run of insignificant autocorrelations; the window is flat-top."""
    count = len(values)
    deviations = values - values.mean()
    run = max(5, int(math.log10(count)))
    longest = min(math.ceil(math.sqrt(count)) + run, count - 2)
    insignificant = 2 * math.sqrt(math.log10(count) / count)
    covariance, correlation = _autocovariance(deviations, longest)
    small = np.abs(correlation) < insignificant
    ends = (lag for lag in range(longest - run + 1) if small[lag : lag + run].all())
    end = next(ends, None)
    bandwidth = longest if end is None else min(2 * max(end, 1), longest)
    lags = np.arange(1, bandwidth + 1)
    window = np.minimum(1.0, 2 * (1 - lags / bandwidth))
    weighted = window * covariance[1 : bandwidth + 1]
    slope = 2 * float((lags * weighted).sum())
    spectrum = float(covariance[0] + 2 * weighted.sum())
    most = math.ceil(min(3 * math.sqrt(count), count / 3))
    if spectrum == 0:
        return float(most)
    return float(max(1.0, min((1.5 * slope**2 / spectrum**2 * count) ** (1 / 3), most)))


def _autocovariance(deviations: Array, longest: int) -> tuple[Array, Array]:
    """Covariance (divided by n) and correlation (by what overlaps) at the lags 0 to `longest`."""
    count = len(deviations)
    covariance, correlation = np.zeros(longest + 1), np.zeros(longest + 1)
    for lag in range(longest + 1):
        ahead, behind = deviations[lag:], deviations[: count - lag]
        product = float((ahead * behind).sum())
        norm = math.sqrt(float((deviations[lag + 1 :] ** 2).sum()) * float((deviations[: count - lag - 1] ** 2).sum()))
        covariance[lag], correlation[lag] = product / count, product / norm if norm else 0.0
    return covariance, correlation


def _percentiles(deviations: Array, block: int, confidence: float, seed: int) -> tuple[float, float]:
    """Percentiles of the resampled means of `deviations`, whose own mean is 0; blocks run round the end to the start."""
    count = len(deviations)
    sums = np.concatenate(([0.0], np.cumsum(np.concatenate((deviations, deviations[:block])))))
    of_block = sums[block : block + count] - sums[:count]
    number = max(1, round(count / block))
    generator = np.random.Generator(np.random.PCG64(seed))
    starts = generator.integers(0, count, size=(RESAMPLES, number))
    means = of_block[starts].sum(axis=1) / (number * block)
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def _transforms(count: int) -> list[int]:
    """The numbers of cosine transforms that are tried: from the least that is usable to the usual one, 0.41 n^(2/3)."""
    least = next(number for samples, number in TRANSFORMS_MIN if count >= samples)
    most = int(0.41 * count ** (2 / 3))
    return sorted({least, *(int(least * 1.5**step) for step in range(12) if least * 1.5**step <= most)})


def cosine_half_width(deviations: Array, confidence: float) -> float:
    """Half of the t interval of the mean: long-run variance from the lowest cosine frequencies, as many degrees of freedom.

    Few frequencies bear much autocorrelation, many give a narrow interval; the widest stands."""
    numbers = _transforms(len(deviations))
    powers = _cosine_powers(deviations, numbers[-1])
    halves = []
    for number in numbers:
        quantile: Any = scipy.stats.t.ppf((1 + confidence) / 2, number)
        halves.append(float(quantile) * math.sqrt(sum(powers[:number]) / number / len(deviations)))
    return max(halves)


def _cosine_powers(deviations: Array, number: int) -> list[float]:
    """Squares of the first `number` normalised cosine transforms; each estimates the long-run variance."""
    count = len(deviations)
    times = (np.arange(count) + 0.5) * math.pi / count
    return [float((deviations * np.cos(j * times)).sum()) ** 2 * 2 / count for j in range(1, number + 1)]
