"""Changes of level over nightly runs: few points, of unequal spread, each resembling the one before.

`change_points` finds cuts in long, evenly sampled series of equal spread, whose noise it can measure. Twenty nights have neither
length nor equal spread. Here each cut is tested: the largest weighted between-segment sum of squares, over the residual variance,
against its distribution under no change, simulated as a first-order autoregressive process with the series' own memory (parametric
bootstrap; Davison & Hinkley 1997, section 4.2). Cuts are found one at a time (binary segmentation: Vostrikova 1981)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

Values = NDArray[np.float64]

LEVEL = 0.01  # [P] of a series without a change that one is found nevertheless; a report tests a dozen series
SHORTEST = 3  # [P] runs on each side of a step: one night is no level
FEWEST = 2 * SHORTEST + 2  # fewer runs leave no degree of freedom for the noise
LONG = 18  # [P] runs from which on a second step is allowed for when the noise is estimated
RESAMPLES = 1999
MEMORY_MAX = 0.9  # beyond it a wandering and a step are the same thing
RESOLUTION = 1e-9  # of the level: what two equal values may differ by
NOTHING = 1e-200  # a variance of even zeros
Z95 = 1.959964


@dataclass(frozen=True)
class Step:
    """The level changes before run `index`. `p`: how often a series without a change shows as much."""

    index: int
    before: float
    after: float
    p: float


def standard_errors(intervals: Sequence[tuple[float, float] | None]) -> Values:
    """Returns the error of each value, from its 95 % interval; where one lacks, the median of the others; zeros where all lack."""
    known = [(high - low) / (2 * Z95) for low, high in (pair for pair in intervals if pair)]
    fill = float(np.median(known)) if known else 0.0
    return np.array([(pair[1] - pair[0]) / (2 * Z95) if pair else fill for pair in intervals])


def steps(values: Sequence[float] | Values, errors: Values, seed: int = 0) -> list[Step]:
    """The steps of the series, in its order. `errors`: standard errors, from which runs of a wide interval weigh less."""
    series = np.asarray(values, dtype=float)
    if len(series) < FEWEST:
        return []
    cuts = sorted(_cuts(series, errors, 0, np.random.default_rng(seed)))
    edges = [0, *(cut for cut, _ in cuts), len(series)]
    weights = _weights(series, errors, edges)
    levels = [
        float(np.average(series[start:end], weights=weights[start:end])) for start, end in itertools.pairwise(edges)
    ]
    return [Step(cut, levels[number], levels[number + 1], p) for number, (cut, p) in enumerate(cuts)]


def _cuts(series: Values, errors: Values, offset: int, random: np.random.Generator) -> list[tuple[int, float]]:
    if len(series) < FEWEST or np.ptp(series) == 0:
        return []
    best, weights = _best(series, errors)
    p = _chance(series, errors, weights, best, random)
    if p > LEVEL:
        return []
    left = _cuts(series[:best], errors[:best], offset, random)
    right = _cuts(series[best:], errors[best:], offset + best, random)
    return [*left, (offset + best, p), *right]


def _best(series: Values, errors: Values) -> tuple[int, Values]:
    """The best cut, and the weights that follow from it."""
    even = np.ones(len(series))
    weights = _weights(series, errors, [0, int(_scores(series[None, :], even)[1][0]), len(series)])
    return int(_scores(series[None, :], weights)[1][0]), weights


def _weights(series: Values, errors: Values, edges: Sequence[int]) -> Values:
    """1 / (variance between runs + variance of each), of mean 1."""
    variances = _spread_between(series, errors, edges) + errors**2
    if variances.max() < NOTHING:
        return np.ones(len(series))
    weights = 1 / variances
    return np.asarray(weights / weights.mean())


def _spread_between(series: Values, errors: Values, edges: Sequence[int]) -> float:
    """Variance between the runs of one level by moments; at least a twentieth of what the levels leave."""
    residuals = _residuals(series, edges)
    total = float(residuals @ residuals) / max(1, len(series) - len(edges) + 1)
    floor = (RESOLUTION * max(1e-300, float(np.abs(series).max(initial=0)))) ** 2
    return max(total - float(np.mean(errors**2)), 0.05 * total, floor)


def _residuals(series: Values, edges: Sequence[int]) -> Values:
    return np.concatenate([series[a:b] - series[a:b].mean() for a, b in itertools.pairwise(edges)])


def _scores(rows: Values, weights: Values) -> tuple[Values, NDArray[np.int64]]:
    """Returns the largest score over all cuts of each row (r, n) and its place: between-segment over residual mean square."""
    count = rows.shape[1]
    centred = rows - np.average(rows, axis=1, weights=weights)[:, None]
    total = (weights * centred**2).sum(axis=1)
    left = np.cumsum(weights * centred, axis=1)[:, SHORTEST - 1 : count - SHORTEST]
    weight = np.cumsum(weights)[SHORTEST - 1 : count - SHORTEST]
    between = left**2 * weights.sum() / (weight * (weights.sum() - weight))
    where = np.argmax(between, axis=1)
    most = between[np.arange(len(rows)), where]
    floor = weights.sum() * (RESOLUTION * np.maximum(1e-300, np.abs(rows).max(axis=1))) ** 2
    return most / np.maximum(total - most, floor) * (count - 2), where + SHORTEST


def _chance(series: Values, errors: Values, weights: Values, cut: int, random: np.random.Generator) -> float:
    """Says how often a series of this length, spread and memory without a change scores as high."""
    score = float(_scores(series[None, :], weights)[0][0])
    edges = _generous(series, weights, cut)
    phi, between = memory_of(series, errors, edges), _spread_between(series, errors, edges)
    noise = np.sqrt(between) * autoregressive(random, RESAMPLES, len(series), phi)
    noise += errors * random.standard_normal(noise.shape)
    return float((1 + np.count_nonzero(_scores(noise, weights)[0] >= score)) / (RESAMPLES + 1))


def _generous(series: Values, weights: Values, cut: int) -> list[int]:
    """The edges of `cut` and, in a series long enough, of the best further one: a second step would else look like memory."""
    found = {0, cut, len(series)}
    if len(series) >= LONG:
        parts = [(a, b) for a, b in ((0, cut), (cut, len(series))) if b - a >= 2 * SHORTEST + 1]
        best = [(_scores(series[None, a:b], weights[a:b]), a) for a, b in parts]
        gain = max(best, key=lambda one: float(one[0][0][0]), default=None)
        if gain:
            found.add(gain[1] + int(gain[0][1][0]))
    return sorted(found)


def memory_of(series: Values, errors: Values, edges: Sequence[int]) -> float:
    """Lag-1 correlation of the nights themselves, without their measurement's noise, which has no memory and would hide it.

    Corrected for each level that was fitted between `edges` (Kendall 1954)."""
    parts = [_residuals(series[a:b], [0, b - a]) for a, b in itertools.pairwise(edges)]
    power = _spread_between(series, errors, edges) * len(series)
    if power <= 0:
        return 0.0
    raw = sum(float(part[1:] @ part[:-1]) for part in parts) / power
    each = len(series) / len(parts)
    return float(np.clip((each * raw + 1) / max(each - 3, 1.0), 0.0, MEMORY_MAX))


def autoregressive(random: np.random.Generator, rows: int, count: int, phi: float) -> Values:
    """(rows, count) stationary first-order autoregressive series of variance 1."""
    noise = random.standard_normal((rows, count)) * np.sqrt(1 - phi**2)
    noise[:, 0] /= np.sqrt(1 - phi**2)
    return np.asarray(scipy.signal.lfilter([1.0], [1.0, -phi], noise, axis=1))
