"""Thermal equilibrium: where a temperature is heading, as an interval, from an exponential approach fitted to the whole load.

A line that is nearly level proves nothing: with a time constant of an hour the last 10 K rise by less than 0.2 K per minute. The
model is A + B exp(-t / s) + C exp(-t / r) for every pair of time constants s < r on a grid that reaches to several times the length
of the load. Each pair that the readings do not refute (profile likelihood, with the residuals' memory and the sensor's resolution in
the variance) adds its own interval of A. Their union is the interval; where it is wider than `WIDTH_MAX_K` there is no value, and
the advice says for how long to go on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from daq_bench.bench_model.bundle.telemetry_tracks import Track

COVER_MIN = 0.9  # of the stretch must have samples, and it must have been observed for its whole length
WIDTH_MAX_K = 5.0  # [P] of the asymptote's interval; a wider one is no statement
RESOLUTION_K = 1.0  # of a sensor that never changed
GAP_S_MAX = 60.0  # [P] a sensor that was silent for longer may hide what happened meanwhile
BINS = 90
TIMES = 40  # time constants on the grid
SHORTEST_SHARE, LONGEST_SHARE = 0.02, 4.0  # [P] of the load's length: the grid's ends
APART = 1.3  # times: nearer ones are one time constant
EFFECTIVE_MIN = 8.0  # degrees of freedom that the residuals are believed to have, at least
TIME_CONSTANT_S_MAX = 7200.0  # [P] of a drive with its heat sink in a server under forced air: no approach is slower
LENGTH_MIN_S = TIME_CONSTANT_S_MAX / LONGEST_SHARE  # a shorter load cannot tell a slow approach from a level
CONFIDENCE = 0.95
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Level:
    """The last stretch of a temperature: its mean, and the slope of the least-squares line through it."""

    mean_degc: float
    slope_k_per_min: float


@dataclass(frozen=True)
class Asymptote:
    """Says where the temperature is heading. `interval` None: nobody can tell yet, and the load should go on for `more_s`."""

    degc: float | None
    interval: tuple[float, float] | None
    more_s: float | None
    reason: str = ""


def level_at(track: Track, end_s: float, window_s: float, not_before_s: float) -> Level | None:
    """The level over the `window_s` before `end_s`; None where samples after `not_before_s` do not fill it."""
    start = end_s - window_s
    inside = (track.times_s >= start) & (track.times_s <= end_s)
    times, values = track.times_s[inside], track.values[inside]
    if start < not_before_s or len(times) < 3 or times[-1] - times[0] < COVER_MIN * window_s:
        return None
    if not np.isfinite(values).all():
        return None
    slope, _ = np.polyfit(times - times[0], values, 1)
    return Level(float(values.mean()), float(slope) * 60)


def asymptote(track: Track, start_s: float, end_s: float, confidence: float = CONFIDENCE) -> Asymptote:
    """From the readings of one load between two times."""
    inside = (track.times_s >= start_s) & (track.times_s <= end_s)
    times, values = track.times_s[inside] - start_s, track.values[inside]
    length = end_s - start_s
    if problem := _unusable(times, values, length):
        return Asymptote(None, None, None, problem)
    if length < LENGTH_MIN_S:
        text = f"{length / 60:.0f} min of load do not show a slow approach: go on for {(LENGTH_MIN_S - length) / 60:.0f} min at least"
        return Asymptote(None, None, LENGTH_MIN_S - length, text)
    degc, interval, slow_s = _fit(times, values, length, confidence)
    if interval[1] - interval[0] <= WIDTH_MAX_K:
        return Asymptote(degc, interval, None)
    more = _more_s(length, slow_s)
    text = (
        f"not at equilibrium after {length / 60:.0f} min (the temperature is heading for {_ends(interval)}): "
        f"go on for {more / 60:.0f} min"
    )
    return Asymptote(None, None, more, text)


def _unusable(times: Values, values: Values, length: float) -> str:
    """Why the readings cannot be fitted; empty where they can."""
    if len(times) < BINS:
        return f"{len(times)} readings of the temperature are fewer than the {BINS} that an approach is fitted to"
    if not np.isfinite(values).all():
        return "a reading of the temperature is no number"
    gaps = np.diff(np.concatenate(([0.0], times, [length])))
    if gaps.max() > max(GAP_S_MAX, (1 - COVER_MIN) * length):
        return f"the temperature was not read for {gaps.max():.0f} s of the load"
    return ""


def _ends(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.0f} to {interval[1]:.0f} degC"


def _more_s(length: float, slow_s: float) -> float:
    """At least half as long again; until two and a half of the slowest time constants that remain possible, else."""
    return max(0.5 * length, min(2.5 * slow_s - length, 2 * length))


@dataclass(frozen=True)
class _Models:
    """Every pair of time constants, over a load of length 1. `bases`: orthonormal columns of each design, padded with zeros."""

    bases: Values  # models x 3 x bins
    inverses: Values  # models x 3 x bins
    slow: Values  # the slower time constant of each

    @cached_property
    def spreads(self) -> Values:
        """Variance of A per unit of noise variance."""
        return np.asarray((self.inverses[:, 0, :] ** 2).sum(axis=1), dtype=np.float64)

    @cached_property
    def tilts(self) -> Values:
        """Says how B and C follow when A moves by 1 and everything else is fitted again."""
        return np.asarray((self.inverses[:, 1:, :] * self.inverses[:, :1, :]).sum(axis=2) / self.spreads[:, None])


@lru_cache(maxsize=1)
def _models() -> _Models:
    grid = np.geomspace(SHORTEST_SHARE, LONGEST_SHARE, TIMES)
    pairs: list[tuple[float, ...]] = [(), *((float(one),) for one in grid)]
    pairs += [(float(slow), float(fast)) for at, slow in enumerate(grid) for fast in grid[:at] if slow >= APART * fast]
    bases, inverses = np.zeros((len(pairs), 3, BINS)), np.zeros((len(pairs), 3, BINS))
    for number, pair in enumerate(pairs):
        design = np.column_stack([np.ones(BINS), *(_decay(one) for one in pair)])
        bases[number, : design.shape[1]] = np.linalg.qr(design)[0].T
        inverses[number, : design.shape[1]] = np.linalg.pinv(design)
    return _Models(bases, inverses, np.array([max(pair, default=0.0) for pair in pairs]))


def _decay(constant: float) -> Values:
    """Mean of exp(-t / constant) over each bin of a load of length 1."""
    edges = np.exp(-np.arange(BINS + 1) / BINS / constant)
    return np.asarray((edges[:-1] - edges[1:]) * constant * BINS, dtype=np.float64)


def _fit(times: Values, values: Values, length: float, confidence: float) -> tuple[float, tuple[float, float], float]:
    """(best A, its interval, slowest time constant that is not refuted)."""
    bins, resolution = _binned(times, values, length)
    models = _models()
    level = bins.mean()
    bins = bins - level  # keeps the squares small against the rounding of their difference
    found = models.inverses @ bins  # A, B and C of each model
    parts = models.bases @ bins
    errors = np.maximum(float(bins @ bins) - (parts**2).sum(axis=1), 0.0)
    errors[found[:, 1] * found[:, 2] < 0] = np.inf  # heat does not first rise and then fall under a constant load
    errors[models.slow * length > TIME_CONSTANT_S_MAX] = np.inf
    best = int(np.argmin(errors))
    memory = _memory(bins - parts[best] @ models.bases[best])
    effective = max(len(bins) * (1 - memory) / (1 + memory), EFFECTIVE_MIN)
    noise = max(errors[best] / (len(bins) - 5), resolution**2 / 12) * len(bins) / effective
    allowed = errors[best] + noise * float(scipy.special.fdtri(1, EFFECTIVE_MIN, confidence)) - errors
    kept = allowed >= 0
    reach = np.sqrt(allowed[kept] * models.spreads[kept])
    low, high = _same_sign(found[kept], models.tilts[kept])
    # A sensor that rounds may stand off by half a step for as long as it likes: no number of readings averages that out.
    ends = (
        float((found[kept, 0] + np.maximum(-reach, low)).min() + level - resolution / 2),
        float((found[kept, 0] + np.minimum(reach, high)).max() + level + resolution / 2),
    )
    return float(found[best, 0] + level), ends, float(models.slow[kept].max()) * length


def _same_sign(found: Values, tilts: Values) -> tuple[Values, Values]:
    """Says how far A may move down and up, until B and C, which follow it along the profile, no longer have one sign."""
    with np.errstate(divide="ignore", invalid="ignore"):
        roots = -found[:, 1:] / tilts
    apart = tilts[:, 0] * tilts[:, 1] < 0
    low = np.where(apart, roots.min(axis=1), -np.inf)
    return low, np.where(apart, roots.max(axis=1), np.inf)


def _binned(times: Values, values: Values, length: float) -> tuple[Values, float]:
    """(means of `BINS` equal stretches, the least step between two readings)."""
    steps = np.diff(np.unique(values))
    resolution = float(steps.min()) if len(steps) else RESOLUTION_K
    place = np.minimum((times / length * BINS).astype(int), BINS - 1)
    count = np.bincount(place, minlength=BINS)
    known = count > 0
    means = np.bincount(place, values, minlength=BINS)[known] / count[known]
    filled = np.interp(np.arange(BINS), np.flatnonzero(known), means)
    return np.asarray(filled, dtype=np.float64), resolution


def _memory(residuals: Values) -> float:
    """Lag-1 correlation of the residuals, at least 0."""
    total = float(residuals @ residuals)
    return float(np.clip(residuals[1:] @ residuals[:-1] / total, 0.0, 0.9)) if total > 0 else 0.0


def settled(level: Level | None, slope_max_k_per_min: float) -> bool:
    return level is not None and abs(level.slope_k_per_min) <= slope_max_k_per_min


def rule(window_s: float, slope_max_k_per_min: float) -> str:
    return (
        f"the temperature that each of the target's drives is heading for, by an exponential approach, is known to within "
        f"{WIDTH_MAX_K:g} K, and the least-squares line through its last {window_s:g} s rises or falls by at most "
        f"{slope_max_k_per_min:g} K per minute"
    )
