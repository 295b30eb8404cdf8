"""One number for several criteria, and how firm the choice by it is. Pure.

The score is the weighted product of the criteria (Bridgman, Dimensional Analysis, 1922; Tofallis, INFORMS Trans. Education 14
(2014) 109): on logarithms a weighted sum. It depends on no unit and on no reference value, and leaving out a loser never
changes their order, which weighted sums of normalised values cannot promise. Each criterion must be above zero.

- *Break-even price*: the price at which a contender and a rival score alike; exact, since the score is linear in its logarithm.
- *Share of the weights*: in which share of all possible weights (the simplex, uniformly) each contender is ahead: the
  acceptability index of SMAA (Lahdelma & Salminen, Operations Research 49 (2001) 444). Exact for one and two criteria, else by
  seeded draws, whose standard error is given."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
DRAWS = 50_000
SEED = 20211
DIGITS = 9  # of a share, so that another processor's last digit does not show


@dataclass(frozen=True)
class Criterion:
    """`weight` as asked for, not yet normalised. `price`: this criterion is the price."""

    key: str
    larger_is_better: bool
    weight: float
    price: bool = False


def normalised(criteria: Sequence[Criterion]) -> list[float]:
    """The weights as shares of 1. Raises ValueError where none is above zero or one is below."""
    weights = [one.weight for one in criteria]
    if not weights or not all(weight >= 0 for weight in weights) or not 0 < sum(weights) < math.inf:
        raise ValueError("the weights must be numbers of zero or more, and one of them above zero")
    return [weight / sum(weights) for weight in weights]


def utilities(criteria: Sequence[Criterion], values: Mapping[str, float]) -> list[float]:
    """Logarithm of each criterion's value, turned so that more is better. Raises ValueError for a value that is not above zero."""
    for one in criteria:
        if not 0 < values[one.key] < math.inf:
            raise ValueError(f"{one.key} is {values[one.key]:g}: a weighted product needs numbers above zero")
    return [math.log(values[one.key]) * (1 if one.larger_is_better else -1) for one in criteria]


def score(criteria: Sequence[Criterion], values: Mapping[str, float]) -> float:
    """Weighted sum of the utilities: a logarithm, of which differences alone mean something."""
    shares = normalised(criteria)
    return math.fsum(w * u for w, u in zip(shares, utilities(criteria, values), strict=True))


def break_even_price(
    criteria: Sequence[Criterion], own: Mapping[str, float], rival: Mapping[str, float]
) -> float | None:
    """The price of `own` at which it scores as its rival does, all else staying; None where the price has no weight."""
    shares = normalised(criteria)
    at = next((index for index, one in enumerate(criteria) if one.price), None)
    if at is None or shares[at] == 0:
        return None
    distance = (score(criteria, own) - score(criteria, rival)) / shares[at]
    # A far cheaper or dearer rival can lie beyond any number.
    return own[criteria[at].key] * math.exp(distance) if abs(distance) < 500 else None


@dataclass(frozen=True)
class Shares:
    """`of`: each contender's share of the weight simplex; `error`: the largest standard error, 0 where exact."""

    of: dict[str, float]
    error: float
    draws: int


def weight_shares(criteria: Sequence[Criterion], values: Mapping[str, Mapping[str, float]]) -> Shares:
    """Says where in the weight simplex each contender is ahead; a share in which several score alike is split among them."""
    names = list(values)
    table = np.array([utilities(criteria, values[name]) for name in names])
    if len(criteria) == 1:
        return Shares(_shares(names, table, np.ones((1, 1))), 0.0, 0)
    if len(criteria) == 2:
        return Shares(_between_two(names, table), 0.0, 0)
    generator = np.random.Generator(np.random.PCG64(SEED))
    weights = generator.standard_exponential((DRAWS, len(criteria)))
    weights /= weights.sum(axis=1, keepdims=True)
    found = _shares(names, table, weights)
    error = max(math.sqrt(share * (1 - share) / DRAWS) for share in found.values())
    return Shares(found, round(error, DIGITS), DRAWS)


def _shares(names: Sequence[str], table: Array, weights: Array) -> dict[str, float]:
    return _ahead(names, weights @ table.T, 1e-12)


def _ahead(names: Sequence[str], scores: Array, alike: float = 0.0) -> dict[str, float]:
    """The share of the rows in which each contender's score is the highest; within `alike` of it several share a row."""
    ahead = scores >= scores.max(axis=1, keepdims=True) - alike
    parts = (ahead / ahead.sum(axis=1, keepdims=True)).mean(axis=0)
    return {name: round(float(part), DIGITS) for name, part in zip(names, parts, strict=True)}


def _between_two(names: Sequence[str], table: Array) -> dict[str, float]:
    """Exact: along the one free weight the scores are straight lines; who is ahead changes only where two of them cross."""
    cuts = {0.0, 1.0}
    for one in range(len(names)):
        for other in range(one):
            at_start, at_end = (table[one] - table[other])[::-1]  # at weight 0 and at weight 1 of the first criterion
            if at_start != at_end and 0 < (cut := at_start / (at_start - at_end)) < 1:
                cuts.add(float(cut))
    ends = sorted(cuts)
    total = dict.fromkeys(names, 0.0)
    for low, high in pairwise(ends):
        middle = (low + high) / 2
        part = _shares(names, table, np.array([[middle, 1 - middle]]))
        for name in names:
            total[name] += part[name] * (high - low)
    return {name: round(share, DIGITS) for name, share in total.items()}


def first_chances(
    score_of: Mapping[str, float], error_of: Mapping[str, float], freedom_of: Mapping[str, float]
) -> dict[str, float]:
    """Says how often each contender is ahead when each score is drawn anew from Student's t about what was measured.

    Given the weights and the prices; an error of 0 draws nothing."""
    generator = np.random.Generator(np.random.PCG64(SEED))
    names = list(score_of)
    drawn = np.empty((DRAWS, len(names)))
    for column, name in enumerate(names):
        freedom = min(freedom_of[name], 1e6)
        drawn[:, column] = score_of[name] + error_of[name] * generator.standard_t(freedom, DRAWS)
    return _ahead(names, drawn)
