"""Tells how drives of one model differ in a quantity: between drives, within a drive, the slowest of a stripe, clusters. Pure.

One-way random effects by analysis of variance (Searle, Casella & McCulloch, Variance Components (1992), chapter 3), for unequal
numbers of repetitions. The drive that limits a stripe is held against the drive-to-drive spread by Grubbs' one-sided test
(Technometrics 11 (1969) 1), and against the next one by the scatter of repetitions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

import numpy as np
import numpy.typing as npt
import scipy

from daq_bench.bench_model.documents.lot import Clusters, LimitingDrive, Spread

Array = npt.NDArray[np.float64]
LEAST = 2  # drives in a cluster: one alone is an outlier
CLUSTER_P = 0.01  # [P] a second cluster is said only where one normal lot would hardly show it
CLUSTER_N_MIN = 6
SIMULATIONS = 4000
NUMBERS_AT_ONCE = 10**6
SEED = 20211


def spread(values: Mapping[str, Sequence[float]]) -> Spread:
    """Raises ValueError for no drives or a drive without values."""
    if not values or any(not own for own in values.values()):
        raise ValueError("every drive needs a value")
    counts = [len(own) for own in values.values()]
    total, drives = sum(counts), len(counts)
    means = [fmean(own) for own in values.values()]
    grand = fmean([value for own in values.values() for value in own])
    centre = fmean(means)
    if drives < 2 or total == drives:
        between = stdev(means) if drives > 1 else None
        return Spread(drives, total, centre, between, None, None, None)
    inside = _inside(values)
    outside = math.fsum(n * (mean - grand) ** 2 for n, mean in zip(counts, means, strict=True))
    within, among = inside / (total - drives), outside / (drives - 1)
    typical = (total - sum(n * n for n in counts) / total) / (drives - 1)
    own = max(0.0, (among - within) / typical)
    p = float(scipy.stats.f.sf(among / within, drives - 1, total - drives)) if within else (0.0 if among else 1.0)
    whole = own + within
    return Spread(drives, total, centre, math.sqrt(own), math.sqrt(within), p, own / whole if whole else None)


def limiting(values: Mapping[str, Sequence[float]], larger_is_better: bool) -> LimitingDrive | None:
    """None for fewer than two drives."""
    if len(values) < 2:
        return None
    means = {name: fmean(own) for name, own in values.items()}
    order = sorted(means, key=lambda name: (means[name] if larger_is_better else -means[name], name))
    worst, following = order[0], order[1]
    centre = fmean(means.values())
    side = 1 if larger_is_better else -1
    return LimitingDrive(
        drive=worst,
        next=following,
        value=means[worst],
        behind_mean=side * (centre - means[worst]) / abs(centre) if centre else 0.0,
        behind_next=side * (means[following] - means[worst]) / abs(means[following]) if means[following] else 0.0,
        outlier_p=grubbs_p(list(means.values()), low=larger_is_better),
        next_p=_next_p(values, worst, following),
    )


def grubbs_p(values: Sequence[float], low: bool) -> float | None:
    """One-sided p of the lowest (or highest) value; None for fewer than three values or values that are all alike."""
    n = len(values)
    if n < 3 or _alike(values):
        return None
    sd = stdev(values)
    extreme = min(values) if low else max(values)
    distance = abs(extreme - fmean(values)) / sd
    room = (n - 1) ** 2 - n * distance**2
    if room <= 0:
        return 0.0
    student = math.sqrt(n * (n - 2) * distance**2 / room)
    return min(1.0, n * float(scipy.stats.t.sf(student, n - 2)))


def _alike(values: Sequence[float]) -> bool:
    """No spread but that of the last digits of a sum."""
    return max(values) - min(values) <= 1e-9 * max(map(abs, values))


def _inside(values: Mapping[str, Sequence[float]]) -> float:
    """The sum of squares within the drives."""
    centres = ((fmean(own), own) for own in values.values())
    return math.fsum((value - centre) ** 2 for centre, own in centres for value in own)


def _next_p(values: Mapping[str, Sequence[float]], worst: str, following: str) -> float | None:
    """From the repetitions' scatter pooled over all drives; None where nothing was repeated."""
    counts = {name: len(own) for name, own in values.items()}
    freedom = sum(counts.values()) - len(counts)
    if not freedom:
        return None
    inside = _inside(values)
    error = math.sqrt(inside / freedom * (1 / counts[worst] + 1 / counts[following]))
    distance = abs(fmean(values[worst]) - fmean(values[following]))
    if error == 0:
        return 0.0 if distance else 1.0
    return float(2 * scipy.stats.t.sf(distance / error, freedom))


def clusters(means: Mapping[str, float], simulations: int = SIMULATIONS, seed: int = SEED) -> Clusters | None:
    """The best split in two, with its p by seeded simulation of one normal lot; None for too few drives or no spread.

    An outlier alone is no cluster: each group has two drives or more."""
    if len(means) < CLUSTER_N_MIN or _alike(list(means.values())):
        return None
    names = sorted(means, key=lambda name: (means[name], name))
    shares = _splits(np.array([[means[name] for name in names]]))[0]
    at, explained = int(shares.argmax()) + LEAST, float(shares.max())
    generator = np.random.Generator(np.random.PCG64([seed, len(names)]))
    as_far, at_once = 0, max(1, NUMBERS_AT_ONCE // len(names))
    for begun in range(
        0, simulations, at_once
    ):  # the same numbers as drawn at once: a lot of thousands would fill the memory
        drawn = np.sort(generator.standard_normal((min(at_once, simulations - begun), len(names))), axis=1)
        as_far += int((_splits(drawn).max(axis=1) >= explained).sum())
    p = (as_far + 1) / (simulations + 1)
    return Clusters(names[:at], names[at:], explained, p, p < CLUSTER_P)


def _splits(ordered: Array) -> Array:
    """Returns the share of the sum of squares that each split of rows in rising order takes away, the lower group growing from LEAST."""
    n = ordered.shape[1]
    deviations = ordered - ordered.mean(axis=1, keepdims=True)
    sizes = np.arange(LEAST, n - LEAST + 1)
    sums = np.cumsum(deviations, axis=1)[:, sizes - 1]
    # All deviations sum to 0: a split after k leaves s^2 (1/k + 1/(n-k)) between the groups.
    shares: Array = sums**2 * (1 / sizes + 1 / (n - sizes)) / (deviations**2).sum(axis=1, keepdims=True)
    return shares
