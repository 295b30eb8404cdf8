"""Tolerance bounds: beyond which value at least a share of all such drives lies, at a confidence. Pure.

Normal: mean -/+ k s with the one-sided factor k from the noncentral t (ISO 16269-6:2014, 6.2; NIST/SEMATECH e-Handbook, 7.2.6.3).
Distribution-free: an order statistic (Wilks, Ann. Math. Statistics 12 (1941) 91; ISO 16269-6:2014, annex): the lowest of 59 for
95 % of the drives at 95 % confidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

import scipy

from daq_bench.bench_model.documents.lot import ToleranceBounds

COVERAGE = CONFIDENCE = 0.95
NORMAL_P_MIN = 0.05  # [P] below, values do not look normal and the normal bound is not to be relied on
NORMAL_N_MIN = 3


def k_factor(n: int, coverage: float = COVERAGE, confidence: float = CONFIDENCE) -> float:
    """One-sided normal tolerance factor; n >= 2."""
    if n < 2:
        raise ValueError("a tolerance factor needs two values or more")
    shift = float(scipy.stats.norm.ppf(coverage)) * math.sqrt(n)
    return float(scipy.stats.nct.ppf(confidence, n - 1, shift)) / math.sqrt(n)


def wilks_n(coverage: float = COVERAGE, confidence: float = CONFIDENCE, rank: int = 1) -> int:
    """The least n whose `rank`-th value from the end bounds the share `coverage` (one-sided) at this confidence."""
    n = rank
    while free_confidence(n, rank, coverage) < confidence:
        n += 1
    return n


def free_confidence(n: int, rank: int, coverage: float) -> float:
    """Confidence that the share `coverage` lies beyond the `rank`-th value from the end: at least `rank` of n fall short of it."""
    return float(scipy.stats.binom.sf(rank - 1, n, 1 - coverage))


def free_rank(n: int, coverage: float = COVERAGE, confidence: float = CONFIDENCE) -> int:
    """The innermost value that still is a bound; 0: not even the extreme one."""
    rank = 0
    while rank < n and free_confidence(n, rank + 1, coverage) >= confidence:
        rank += 1
    return rank


def bounds(
    values: Sequence[float], lower: bool, coverage: float = COVERAGE, confidence: float = CONFIDENCE
) -> ToleranceBounds:
    """Lower (`lower`) or upper bounds of the population that the values were drawn from. Raises ValueError for none or no numbers."""
    if not values:
        raise ValueError("no values")
    if not all(map(math.isfinite, values)):
        raise ValueError("a value is no finite number")
    n, mean = len(values), fmean(values)
    ordered = sorted(values, reverse=not lower)
    sd = stdev(values) if n > 1 else None
    factor = k_factor(n, coverage, confidence) if n > 1 else None
    side = -1 if lower else 1
    rank = free_rank(n, coverage, confidence)
    alike = sd is None or sd == 0
    normality_p = None if alike or n < NORMAL_N_MIN else float(scipy.stats.shapiro(values).pvalue)
    return ToleranceBounds(
        n=n,
        mean=mean,
        sd=sd,
        factor=factor,
        normal=None if factor is None or sd is None else mean + side * factor * sd,
        normality_p=normality_p,
        rank=rank,
        free=ordered[rank - 1] if rank else None,
        covered=(1 - confidence) ** (1 / n),
        reached=1 - coverage**n,
        normal_to_be_relied_on=normality_p is not None and normality_p >= NORMAL_P_MIN,
    )
