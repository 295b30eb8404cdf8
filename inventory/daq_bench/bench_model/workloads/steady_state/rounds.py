"""Steady state by the SNIA Solid State Storage Performance Test Specification 2.0.2. Pure.

A round's value is that of the test's tracking variable. Five successive rounds are a measurement window; it is steady when

    max(y) - min(y)                          <= 20 % of the mean of y, and
    max(fit) - min(fit) of the best line fit <= 10 % of the mean of y,

both within the window. The first steady window is the result; without one in 25 rounds, steady state was not reached. A round without a
value (its load was not what was asked) breaks a window: five rounds around a hole are not successive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import linear_regression, mean

WINDOW_ROUNDS = 5
ROUNDS_MAX = 25
RANGE_SHARE_MAX = 0.20
FIT_SHARE_MAX = 0.10
RULE = (
    f"the first {WINDOW_ROUNDS} successive rounds in which max - min is at most {RANGE_SHARE_MAX:.0%} of the mean and the best line's "
    f"excursion at most {FIT_SHARE_MAX:.0%} of the mean, within {ROUNDS_MAX} rounds (SNIA SSS PTS 2.0.2)"
)


@dataclass(frozen=True)
class Window:
    """Five successive rounds. Rounds count from 1; `intercept` the line's value at round 0."""

    first_round: int
    values: tuple[float, ...]
    mean: float
    range_share: float
    slope_per_round: float
    intercept: float
    fit_share: float

    @property
    def last_round(self) -> int:
        return self.first_round + len(self.values) - 1

    @property
    def steady(self) -> bool:
        return self.range_share <= RANGE_SHARE_MAX and self.fit_share <= FIT_SHARE_MAX


def window_of(values: Sequence[float], first_round: int) -> Window:
    """The window over `values`, whose first is that of round `first_round`. A mean of zero is no rate and raises ValueError."""
    average = mean(values)
    if average <= 0:
        raise ValueError(f"a tracking variable with mean {average:g} cannot be judged")
    rounds = range(first_round, first_round + len(values))
    line = linear_regression(rounds, values)
    return Window(
        first_round=first_round,
        values=tuple(values),
        mean=average,
        range_share=(max(values) - min(values)) / average,
        slope_per_round=line.slope,
        intercept=line.intercept,
        # a line's extremes over an interval lie at its ends
        fit_share=abs(line.slope) * (len(values) - 1) / average,
    )


def range_of_rounds(values: Sequence[float]) -> tuple[float, float]:
    """The least and the largest of a window's rounds.

    An interval of their mean would claim too much: the window was chosen for being steady, and five rounds cannot show how far they
    depend on each other (Student's covered 52 to 90 %)."""
    return min(values), max(values)


def windows(values: Sequence[float | None]) -> list[Window]:
    """Every window of successive rounds that all have a value, in their order."""
    found = []
    for start in range(len(values) - WINDOW_ROUNDS + 1):
        inside = [value for value in values[start : start + WINDOW_ROUNDS] if value is not None]
        if len(inside) == WINDOW_ROUNDS:
            found.append(window_of(inside, start + 1))
    return found


def steady_window(values: Sequence[float | None]) -> Window | None:
    """The first steady window of the rounds so far; None while there is none."""
    return next((window for window in windows(values) if window.steady), None)


def why_not(values: Sequence[float | None]) -> str:
    """In words, why the rounds show no steady state; says how far the last window was from it."""
    tried = windows(values)
    if not tried:
        return f"steady state was not reached: no {WINDOW_ROUNDS} successive rounds have a value ({len(values)} rounds)"
    last = tried[-1]
    return (
        f"steady state was not reached in {len(values)} rounds: in the last window (rounds {last.first_round} to {last.last_round}) "
        f"max - min is {last.range_share:.1%} of the mean (at most {RANGE_SHARE_MAX:.0%}) and the best line's excursion "
        f"{last.fit_share:.1%} (at most {FIT_SHARE_MAX:.0%})"
    )
