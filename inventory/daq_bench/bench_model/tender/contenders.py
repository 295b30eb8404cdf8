"""The data that a comparison has of each contender (a candidate or a configuration), and how it compares two of them. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Final

import scipy

from daq_bench.bench_model.base.direction import Better, Comparison, Severity, larger_is_better
from daq_bench.bench_model.documents.comparison import Units
from daq_bench.bench_model.statistics.paired import Pair
from daq_bench.bench_model.tender.contrasts import (
    DIFFERENCE,
    MOVER,
    NONE,
    RATIO,
    Contrast,
    Sample,
    contrast,
    paired_contrast,
    scale_of,
)

RUNS: Final = "runs"
REPETITIONS: Final = "repetitions"
ROUNDS: Final = "rounds"
COST: Final = "cost"
POWER: Final = "power_per_rate"
DENSITY, ENDURANCE, SPEED = "density", "endurance", "speed"
WITH, WITHOUT = "with an interval", "without one"
COUNT_FACTOR = 2  # by which numbers of values may differ: beyond, Welch's t errs too often (docs/comparison.md)


@dataclass(frozen=True)
class Question:
    """One requirement as all compared runs pose it. `margin`: share within which two values mean the same to the buyer."""

    id: str
    text: str
    metric: str
    comparison: Comparison
    bound: float | str
    unit: str
    severity: Severity
    margin: float
    statistic: str = "median"
    better: Better | None = None

    @property
    def larger_is_better(self) -> bool:
        return larger_is_better(self.better, self.comparison) is True

    @property
    def may_be_scored(self) -> bool:
        return self.comparison != "equal"


@dataclass(frozen=True)
class Backing:
    """The evidence behind one run's value: over how many repetitions the statistic was taken, over how many samples (None: the run
    states none), and whether the value has an interval. All three decide which values it may be compared with."""

    repetitions: int
    samples: int | None
    interval: bool


@dataclass(frozen=True)
class Series:
    """Values of one quantity, one per unit of observation; None where a unit has none. `interval`: of a single run's value, at 95 %.
    `backing`: of each run's value; empty where the quantity is no requirement."""

    values: tuple[float | None, ...]
    interval: tuple[float, float] | None = None
    backing: tuple[Backing, ...] = ()

    @property
    def known(self) -> tuple[float, ...]:
        """A number that is not finite is a missing one."""
        return tuple(value for value in self.values if value is not None and math.isfinite(value))

    @property
    def has_holes(self) -> bool:
        return bool(self.known) and len(self.known) < len(self.values)

    def sample(self) -> Sample:
        return Sample(self.known, self.interval)


@dataclass(frozen=True)
class Difference:
    """Something in which contenders must be alike and are not: each side's value with those that have it.

    `concerns`: ids of the requirements (or POWER) that it keeps from being compared; empty: all of them."""

    what: str
    sides: tuple[tuple[str, tuple[str, ...]], ...]
    concerns: tuple[str, ...] = ()
    of_definition: bool = True  # of what was asked; else of the evidence that answers it

    def bars(self, key: str) -> bool:
        return not self.concerns or key in self.concerns


@dataclass(frozen=True)
class Figure:
    """A number that is declared and not measured, with where it comes from, or why there is none."""

    value: float | None
    basis: str


@dataclass(frozen=True)
class Contender:
    """`units`: what its values are counted by (runs, a run's repetitions, rounds). `series`: by requirement, and of `power_per_rate`.

    `decisions`: by requirement: met, missed, undecided. `barred`: why it cannot be chosen, whatever its figures; empty where it can.
    `positions`: of rounds, the group, number and place of each, in the order of the values; two contenders were measured in pairs
    where they share rounds."""

    name: str
    units: Units
    series: Mapping[str, Series]
    decisions: Mapping[str, str]
    figures: Mapping[str, Figure]
    barred: str = ""
    positions: tuple[tuple[int, int, int], ...] = ()
    currency: str = ""
    runs: tuple[str, ...] = ()
    devices: str = ""


def rounds_shared(first: Contender, second: Contender) -> list[tuple[int, int, bool]]:
    """(index of the first's value, of the second's, whether the second came first) of each round in which both were measured.

    Empty unless either of them came first in some: without alternating order nothing is paired."""
    beside = {(group, number): (index, place) for index, (group, number, place) in enumerate(second.positions)}
    found = []
    for index, (group, number, place) in enumerate(first.positions):
        if (group, number) in beside:
            other, its_place = beside[group, number]
            found.append((index, other, its_place < place))
    return found if len({second_first for _, _, second_first in found}) == 2 else []


def measured_contrast(first: Contender, second: Contender, key: str, unit: str) -> Contrast | None:
    """First against second in one quantity: paired where they were measured in pairs. None where one of them has no value."""
    one, other = first.series.get(key), second.series.get(key)
    if one is None or other is None or not one.known or not other.known:
        return None
    scale = scale_of([one.sample(), other.sample()], unit)
    shared = rounds_shared(first, second) if scale == RATIO else []
    pairs = [
        Pair(number, second_first, mine / its)
        for number, (a, b, second_first) in enumerate(shared, start=1)
        if (mine := one.values[a]) is not None and (its := other.values[b]) is not None
    ]
    found = paired_contrast(pairs) if pairs else contrast(one.sample(), other.sample(), scale)
    return replace(found, one_run=REPETITIONS in (first.units, second.units))


def unlike_evidence(key: str, statistic: str, contenders: Sequence[Contender]) -> list[Difference]:
    """In what the evidence of those that have values of a quantity differs by more than may be compared."""
    shown = {one.name: of for one in contenders if (of := one.series.get(key)) is not None and of.known}
    kinds = {one.name: {one.units} for one in contenders if one.name in shown}
    intervals = {name: {WITH if one.interval else WITHOUT for one in of.backing} for name, of in shown.items()}
    repetitions = {name: {one.repetitions for one in of.backing} for name, of in shown.items()}
    samples = {name: {one.samples or 0 for one in of.backing} for name, of in shown.items()}
    counts = {name: {len(of.known)} for name, of in shown.items()}
    holes = {name: {f"{len(of.known)} of {len(of.values)} have a value"} for name, of in shown.items()}
    # The extreme of more repetitions is more extreme, so that their number must be the same; a median's may differ, as samples may.
    factor = 1 if statistic in ("min", "max") else COUNT_FACTOR
    checks = (
        ("what a value is counted by", kinds, _mixed(kinds)),
        ("interval of a run's value", intervals, _mixed(intervals)),
        ("repetitions in a run", repetitions, _apart(repetitions, factor)),
        ("samples of a value", samples, _apart(samples, COUNT_FACTOR)),
        (f"number of values (more than {COUNT_FACTOR} times)", counts, _apart(counts, COUNT_FACTOR)),
        ("missing values", holes, any(of.has_holes for of in shown.values())),
    )
    return [Difference(what, _sides(sides), (key,), of_definition=False) for what, sides, unlike in checks if unlike]


def _mixed(sides: Mapping[str, Collection[object]]) -> bool:
    return len({one for own in sides.values() for one in own}) > 1


def _apart(sides: Mapping[str, Collection[int]], factor: int) -> bool:
    numbers = [one for own in sides.values() for one in own]
    return bool(numbers) and max(numbers) > factor * min(numbers)


def _sides(sides: Mapping[str, Collection[object]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    said = {name: ", ".join(sorted(map(str, own))) for name, own in sides.items()}
    return tuple((text, tuple(name for name in said if said[name] == text)) for text in dict.fromkeys(said.values()))


def estimate(series: Series, unit: str) -> tuple[float, tuple[float, float] | None]:
    """The middle of the values (geometric mean where all are above zero) and its 95 % interval: Student's t, or a single run's own."""
    known = series.known
    scale = scale_of([Sample(known)], unit)
    logs = [math.log(value) if scale == RATIO else value for value in known]
    centre = fmean(logs)
    back = math.exp if scale == RATIO else float
    if len(logs) < 2:
        return back(centre), series.interval
    half = float(scipy.stats.t.ppf(0.975, len(logs) - 1)) * stdev(logs) / math.sqrt(len(logs))
    return back(centre), (back(centre - half), back(centre + half))


@dataclass(frozen=True)
class Weighed:
    """A criterion of the score: `exact` values are declared, others measured. `sign`: 1 where more is better, else -1."""

    key: str
    share: float
    sign: int
    exact: bool


def score_contrast(
    first: Contender, second: Contender, criteria: Sequence[Weighed], values: Mapping[str, Mapping[str, float]]
) -> Contrast:
    """Difference of the two scores (logarithms). `values`: by contender and criterion.

    Where every unit of observation has all measured criteria, each unit has a score of its own, and what the criteria have in common
    is in its scatter. Else their errors are added up as if they all went wrong together, which errs on the cautious side."""
    measured = [one for one in criteria if not one.exact and one.share > 0]
    constant = math.fsum(
        one.share * one.sign * math.log(values[first.name][one.key] / values[second.name][one.key])
        for one in criteria
        if one.exact
    )
    own, its = (_unit_scores(who, measured) for who in (first, second))
    if not measured:
        return Contrast(DIFFERENCE, "exact", constant, 0.0, 0.0, math.inf, (1, 1))
    if own is not None and its is not None:
        return _by_units(first, second, own, its, constant)
    return _added_up(first, second, measured, constant)


def _unit_scores(who: Contender, measured: Sequence[Weighed]) -> list[float] | None:
    columns = [who.series[one.key].values for one in measured]
    if who.units == REPETITIONS or len({len(column) for column in columns}) != 1 or len(columns[0]) < 2:
        return None
    scores = []
    for row in zip(*columns, strict=True):
        if any(value is None or value <= 0 for value in row):
            return None
        known = [value for value in row if value is not None]
        scores.append(math.fsum(c.share * c.sign * math.log(v) for c, v in zip(measured, known, strict=True)))
    return scores


def _by_units(
    first: Contender, second: Contender, own: Sequence[float], its: Sequence[float], constant: float
) -> Contrast:
    shared = rounds_shared(first, second)
    if shared:
        pairs = [
            Pair(number, second_first, math.exp(own[a] - its[b] + constant))
            for number, (a, b, second_first) in enumerate(shared, start=1)
        ]
        return paired_contrast(pairs)
    return contrast(Sample(tuple(one + constant for one in own)), Sample(tuple(its)), DIFFERENCE)


def _added_up(first: Contender, second: Contender, measured: Sequence[Weighed], constant: float) -> Contrast:
    total, below, above, freedom, n, one_run = constant, 0.0, 0.0, math.inf, (10**9, 10**9), False
    for one in measured:
        part = measured_contrast(first, second, one.key, "")
        assert part is not None  # a criterion that a contender lacks is no criterion
        total += one.share * one.sign * part.estimate
        one_run = one_run or part.one_run or part.method == MOVER
        if part.below is None or part.above is None:
            return Contrast(DIFFERENCE, NONE, total, None, None, math.inf, part.n)
        sides = (part.below, part.above) if one.sign > 0 else (part.above, part.below)
        below, above = below + one.share * sides[0], above + one.share * sides[1]
        freedom = min(freedom, part.freedom)
        n = (min(n[0], part.n[0]), min(n[1], part.n[1]))
    return Contrast(DIFFERENCE, "errors of the criteria added up", total, below, above, freedom, n, one_run=one_run)
