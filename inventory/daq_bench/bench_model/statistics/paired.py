"""Paired comparison of a set with a reference that was measured in the same rounds, in alternating order. Pure.

In each round both are measured, the reference first in one round and last in the next (A B, B A, A B, ...). A drift that is
steady over the run (warming up, a filling drive) then makes the set look better in one order by as much as it makes it look
worse in the other, and their mean is free of it; the test beside this module shows that by simulation. Ratios are compared on
logarithms, where "twice" and "half" are equally far from "the same".

- The estimate is the geometric mean of the ratios, each order with equal weight, so that a masked round unbalances nothing.
- Its interval is Student's t on the log ratios with the two orders as strata: what the order itself does (drift, a warm cache)
  is not taken for noise. It rests on roughly normal log ratios, which few rounds cannot prove, therefore
- beside it stand two exact tests that rest on less: the sign test and Wilcoxon's signed ranks, with the least p that so few
  rounds can give at all.
- An order effect is said when the two orders differ by more than chance.
- A round that lies far from the others (modified z-score over the median absolute deviation) is named, never dropped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final, Literal

import scipy

from daq_bench.bench_model.documents.struct import Amount, Closed, Ordinal, Positive

CONFIDENCE = 0.95
ROUNDS_STRATIFIED_MIN = 4  # fewer leave no degree of freedom that is worth having
OUTLIER_Z = 3.5  # Iglewicz and Hoaglin, How to detect and handle outliers (1993)
OUTLIER_RATIO_MIN = 1.1  # [P] a round less than 10 % off the others is no event, however alike the others are
MAD_TO_SIGMA = 0.6745
Decision = Literal["above", "below", "undecided"]
ABOVE: Final = "above"
BELOW: Final = "below"
UNDECIDED: Final = "undecided"


@dataclass(frozen=True)
class Pair:
    """One round: the set's value over the reference's."""

    round: int
    reference_first: bool
    ratio: float


class OrderEffect(Closed, frozen=True):
    """`factor`: how much larger the ratio is where the reference came first."""

    factor: Positive
    interval: tuple[float, float]
    p: Amount

    @property
    def is_there(self) -> bool:
        return self.p < 1 - CONFIDENCE


class PairedEstimate(Closed, frozen=True):
    """`interval`: None where there are too few rounds. `decision`: the whole interval lies above 1, below 1, or neither."""

    n: Ordinal
    ratio: Positive
    interval: tuple[float, float] | None
    method: str
    decision: Decision
    sign_p: Amount
    wilcoxon_p: Amount | None
    least_p: Amount
    order_effect: OrderEffect | None
    outlier_rounds: tuple[Ordinal, ...]


def compare(pairs: Sequence[Pair], confidence: float = CONFIDENCE) -> PairedEstimate:
    """The comparison over all pairs. Raises ValueError for none, or for a ratio that is not above zero."""
    if not pairs:
        raise ValueError("no pairs")
    if any(not (pair.ratio > 0 and math.isfinite(pair.ratio)) for pair in pairs):
        raise ValueError("a ratio is not above zero")
    first = [math.log(pair.ratio) for pair in pairs if pair.reference_first]
    last = [math.log(pair.ratio) for pair in pairs if not pair.reference_first]
    logs = [math.log(pair.ratio) for pair in pairs]
    centre, half, method = _estimate(first, last, confidence)
    interval = None if half is None else (math.exp(centre - half), math.exp(centre + half))
    return PairedEstimate(
        n=len(pairs),
        ratio=math.exp(centre),
        interval=interval,
        method=method,
        decision=_decision(interval),
        sign_p=sign_test(logs),
        wilcoxon_p=signed_ranks(logs),
        least_p=2.0 ** (1 - len(logs)),
        order_effect=_order_effect(first, last, confidence),
        outlier_rounds=tuple(pair.round for pair, odd in zip(pairs, outliers(logs), strict=True) if odd),
    )


def _estimate(first: list[float], last: list[float], confidence: float) -> tuple[float, float | None, str]:
    """Mean of the log ratios, half of its interval's width (None: too few) and how they were found."""
    logs, count = [*first, *last], len(first) + len(last)
    if not (first and last):
        centre = fmean(logs)
        method = "Student t over rounds of one order only: a drift is in the estimate"
        if count < 2:
            return centre, None, "one round has no interval"
        return (
            centre,
            float(scipy.stats.t.ppf((1 + confidence) / 2, count - 1)) * math.sqrt(_variance(logs) / count),
            method,
        )
    centre = (fmean(first) + fmean(last)) / 2
    if count < ROUNDS_STRATIFIED_MIN:
        half = float(scipy.stats.t.ppf((1 + confidence) / 2, count - 1)) * math.sqrt(_variance(logs) / count)
        return centre, half, "Student t on log ratios"
    error = math.sqrt(_pooled(first, last) * (1 / len(first) + 1 / len(last))) / 2
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, count - 2)) * error
    return centre, half, "Student t on log ratios, stratified by order"


def _variance(values: list[float]) -> float:
    mean = fmean(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _pooled(first: list[float], last: list[float]) -> float:
    squares = sum((value - fmean(part)) ** 2 for part in (first, last) for value in part)
    return squares / (len(first) + len(last) - 2)


def _decision(interval: tuple[float, float] | None) -> Decision:
    if interval is None or interval[0] <= 1 <= interval[1]:
        return UNDECIDED
    return ABOVE if interval[0] > 1 else BELOW


def _order_effect(first: list[float], last: list[float], confidence: float) -> OrderEffect | None:
    """None where there are too few rounds to tell it from chance."""
    count = len(first) + len(last)
    if count < ROUNDS_STRATIFIED_MIN or not (first and last):
        return None
    difference = fmean(first) - fmean(last)
    error = math.sqrt(_pooled(first, last) * (1 / len(first) + 1 / len(last)))
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, count - 2)) * error
    alike = 1.0 if difference == 0 else 0.0  # no spread at all within the orders
    p = float(2 * scipy.stats.t.sf(abs(difference) / error, count - 2)) if error else alike
    return OrderEffect(math.exp(difference), (math.exp(difference - half), math.exp(difference + half)), p)


def sign_test(logs: Sequence[float]) -> float:
    """Exact two-sided p that as many rounds or more favour one side, if both were alike; equal rounds say nothing."""
    above, below = sum(value > 0 for value in logs), sum(value < 0 for value in logs)
    return float(scipy.stats.binomtest(above, above + below).pvalue) if above + below else 1.0


def signed_ranks(logs: Sequence[float]) -> float | None:
    """Wilcoxon's exact two-sided p; None where ranks are tied or a ratio is exactly 1, since it is not exact then."""
    sizes = [abs(value) for value in logs]
    if 0.0 in sizes or len(set(sizes)) < len(sizes):
        return None
    return float(scipy.stats.wilcoxon(list(logs), method="exact").pvalue)


def outliers(logs: Sequence[float]) -> list[bool]:
    """Says which values lie far from the others; empty for fewer than four, which are too few to tell."""
    if len(logs) < ROUNDS_STRATIFIED_MIN:
        return [False] * len(logs)
    middle = median(logs)
    spread = median(abs(value - middle) for value in logs)
    limit = max(OUTLIER_Z * spread / MAD_TO_SIGMA, math.log(OUTLIER_RATIO_MIN))
    return [abs(value - middle) > limit for value in logs]
