"""Tells how far two contenders lie apart in one quantity, and whether that decides anything. Pure.

Values that are all above zero are compared by their ratio (on logarithms, where "twice" and "half" are equally far from "the
same"), others (counts with zeros, degrees Celsius) by their difference. Three situations, never mixed up:

- *paired*: both were measured in the same rounds in alternating order: Student's t on the rounds, stratified by order (`paired`);
- *unpaired*, several values each: Welch's t (Biometrika 34 (1947) 28), which lets the two scatter differently;
- *unpaired*, one run each whose value has an interval of its own: both intervals are combined by MOVER (Zou & Donner,
  Statistics in Medicine 27 (2008) 1693). This knows the scatter within the runs, none between them, and says so.

A difference that means nothing to the buyer (the margin) is no difference: "better" needs an interval that lies wholly beyond the
margin, "equivalent" one that lies wholly within it, and everything else is undecided. One run of each decides nothing, however
narrow its own interval: how runs scatter is not in it.

Families of contrasts are judged by Holm's procedure (Scandinavian J. Statistics 6 (1979) 65), each hypothesis being "differs by no
more than its margin": the chance of one or more false "better" in a family is at most alpha. Each contrast's interval is given at
the level of its own step, so that what the interval shows is what was decided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, variance
from typing import Final, Literal

import numpy as np
import scipy

from daq_bench.bench_model.base.units import of_temperature
from daq_bench.bench_model.documents.comparison import Scale
from daq_bench.bench_model.statistics.paired import Pair, compare

ALPHA = 0.05
POWER = 0.8  # [P] with which the runs that are asked for shall decide
RUNS_MAX = 1000  # beyond, nobody would wait
MODES_N_MIN = 5  # such a gap shows in 17 % of normal samples of 4 values, in 6 % of 5, in 2 % of 6
MODES_GAP = 3.0  # [P]
MODES_SPAN_MIN = 0.01  # [P] on logarithms 1 %: less is no other mode of a machine
RATIO: Final = "ratio"
DIFFERENCE: Final = "difference"
PAIRED, WELCH, MOVER, NONE = "paired", "welch", "mover", "none"
Told = Literal["first", "second", "equivalent", "undecided"]
FIRST: Final = "first"
SECOND: Final = "second"
EQUIVALENT: Final = "equivalent"
UNDECIDED: Final = "undecided"
METHODS = {
    PAIRED: "paired: Student's t on the logarithms of the rounds' ratios, stratified by order",
    WELCH: "unpaired: Welch's t",
    MOVER: "unpaired, one run each: both runs' own intervals combined (MOVER); scatter between runs is not in it: it decides nothing",
    NONE: "no interval: too few values",
}


@dataclass(frozen=True)
class Sample:
    """One contender's values of one quantity, each from a run (or a round) of its own; `interval` is that of a single run at 95 %."""

    values: tuple[float, ...]
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Contrast:
    """First over second (`scale` ratio: its logarithm) or first less second, with standard errors towards either side.

    `below`, `above` None: nothing is known of the scatter. `p` is two-sided, of no difference."""

    scale: Scale
    method: str
    estimate: float
    below: float | None
    above: float | None
    freedom: float
    n: tuple[int, int]
    effect: float | None = None  # Hedges' g: standardised difference, corrected for few values
    superiority: float | None = None  # chance that a value of the first exceeds one of the second
    rank_p: float | None = None  # exact Mann-Whitney, which assumes no distribution
    one_run: bool = False  # one of the two has one run only: nothing is known of the scatter between runs
    two_modes: bool = False  # the values of one of the two fall into two groups: a mean of so few does not hold

    @property
    def p(self) -> float | None:
        return self.p_beyond(0.0)

    @property
    def may_decide(self) -> bool:
        return not (self.one_run or self.two_modes) and self.method not in (MOVER, NONE)

    def p_beyond(self, reach: float) -> float | None:
        """Two-sided p of a difference that is no larger than `reach`, on the contrast's own scale; 1 where the estimate is not."""
        if self.below is None or self.above is None:
            return None
        error, beyond = self.below if self.estimate > 0 else self.above, abs(self.estimate) - reach
        if beyond <= 0:
            return 1.0
        return float(2 * scipy.stats.t.sf(beyond / error, self.freedom)) if error else self._least_p()

    def _least_p(self) -> float:
        """Values without any scatter come in steps, and Student's t knows no steps: the least p that an exact test of so many can give."""
        if self.method == WELCH:
            return 2 / math.comb(sum(self.n), self.n[0])
        return 2.0 ** (1 - self.n[0]) if self.method == PAIRED else 0.0

    def interval(self, level: float) -> tuple[float, float] | None:
        """Two-sided, on the contrast's own scale (logarithm of the ratio, or difference)."""
        if self.below is None or self.above is None:
            return None
        quantile = float(scipy.stats.t.ppf((1 + level) / 2, self.freedom))
        return self.estimate - quantile * self.below, self.estimate + quantile * self.above

    def shown(self, value: float) -> float:
        """A value of the contrast's own scale as ratio or difference."""
        return math.exp(value) if self.scale == RATIO else value


def scale_of(samples: Sequence[Sample], unit: str) -> Scale:
    """Ratio where every value is above zero and the unit has a true zero."""
    return (
        RATIO if not of_temperature(unit) and all(value > 0 for one in samples for value in one.values) else DIFFERENCE
    )


def contrast(first: Sample, second: Sample, scale: Scale, ranks: bool = True) -> Contrast:
    """The unpaired contrast; `ranks`: with the exact rank test, which takes most of the time. Raises ValueError where a sample is empty."""
    if not (first.values and second.values):
        raise ValueError("a sample is empty")
    change = math.log if scale == RATIO else float
    a, b = ([change(value) for value in one.values] for one in (first, second))
    counts = (len(a), len(b))
    estimate = fmean(a) - fmean(b)
    if min(counts) > 1:
        return replace(_welch(scale, a, b, ranks), two_modes=has_two_modes(a) or has_two_modes(b))
    if first.interval and second.interval and counts == (1, 1):
        lows, highs = zip(*((change(one[0]), change(one[1])) for one in (first.interval, second.interval)), strict=True)
        quantile = float(scipy.stats.norm.ppf(0.975))
        below = math.hypot(a[0] - lows[0], highs[1] - b[0]) / quantile
        above = math.hypot(highs[0] - a[0], b[0] - lows[1]) / quantile
        return Contrast(scale, MOVER, estimate, below, above, math.inf, counts)
    return Contrast(scale, NONE, estimate, None, None, math.inf, counts)


def has_two_modes(values: Sequence[float]) -> bool:
    """Says whether the values fall into two groups, as repetitions do that are each good or bad: the widest gap between neighbours is
    more than `MODES_GAP` times the wider group's own extent. A group may be a single value: whether an outlier of so few is one of many
    nobody can tell. Fewer than `MODES_N_MIN` values, and values that hardly differ, show no groups."""
    ordered = sorted(values)
    if len(ordered) < MODES_N_MIN or ordered[-1] - ordered[0] <= MODES_SPAN_MIN * max(1.0, *map(abs, ordered)):
        return False
    gaps = [later - earlier for earlier, later in pairwise(ordered)]
    at = gaps.index(max(gaps))
    extent = max(ordered[at] - ordered[0], ordered[-1] - ordered[at + 1])
    return gaps[at] > MODES_GAP * extent


def _welch(scale: Scale, a: Sequence[float], b: Sequence[float], ranks: bool) -> Contrast:
    counts, spreads = (len(a), len(b)), (variance(a), variance(b))
    parts = [spread / n for spread, n in zip(spreads, counts, strict=True)]
    error = math.sqrt(sum(parts))
    freedom = (
        sum(parts) ** 2 / sum(part**2 / (n - 1) for part, n in zip(parts, counts, strict=True)) if error else math.inf
    )
    estimate = fmean(a) - fmean(b)
    above = sum((one > other) + 0.5 * (one == other) for one in a for other in b) / (len(a) * len(b))
    tied = len({*a, *b}) < len(a) + len(b)
    rank_p = None if tied or not ranks else float(scipy.stats.mannwhitneyu(a, b, method="exact").pvalue)
    effect = hedges_g(a, b)
    return Contrast(scale, WELCH, estimate, error, error, freedom, counts, effect, above, rank_p)


def hedges_g(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Difference over the mean of both standard deviations, corrected for its bias (Hedges, J. Educ. Stat. 6 (1981) 107).

    None where nothing scatters."""
    spread = math.sqrt((variance(a) + variance(b)) / 2)
    freedom = len(a) + len(b) - 2
    return (fmean(a) - fmean(b)) / spread * (1 - 3 / (4 * freedom - 1)) if spread else None


def paired_contrast(pairs: Sequence[Pair]) -> Contrast:
    """First over second in the same rounds; `Pair.reference_first` then means that the second came first."""
    found = compare(pairs)
    logs = [math.log(pair.ratio) for pair in pairs]
    above = sum((one > 0) + 0.5 * (one == 0) for one in logs) / len(logs)
    if found.interval is None:
        return Contrast(RATIO, NONE, math.log(found.ratio), None, None, math.inf, (found.n, found.n))
    modes = has_two_modes(logs)
    orders = len({pair.reference_first for pair in pairs})
    freedom = found.n - (2 if orders == 2 and found.n >= 4 else 1)
    half = math.log(found.interval[1] / found.interval[0]) / 2
    error = half / float(scipy.stats.t.ppf(0.975, freedom))
    spread = error * math.sqrt(found.n)
    effect = math.log(found.ratio) / spread * (1 - 3 / (4 * freedom - 1)) if spread else None
    centre = math.log(found.ratio)
    return Contrast(
        RATIO,
        PAIRED,
        centre,
        error,
        error,
        freedom,
        (found.n, found.n),
        effect,
        above,
        found.wilcoxon_p,
        two_modes=modes,
    )


@dataclass(frozen=True)
class Judged:
    """A contrast within its family. `level`: of the interval, by Holm's step; `more`: further runs of each that would decide, about.

    `verdict`: first or second (which is larger, by more than the margin), equivalent (the interval lies within the margin), undecided.
    `p_holm`: of a difference no larger than the margin."""

    contrast: Contrast
    p_holm: float | None
    level: float
    margin: float
    verdict: Told
    more: int | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """On the contrast's own scale."""
        return self.contrast.interval(self.level)


def holm(p_values: Sequence[float], alpha: float = ALPHA) -> tuple[list[float], list[float]]:
    """Holm's adjusted p of each, and the level at which each was tested: alpha over the hypotheses left at its step.

    After the first that is not rejected no other is tested: all later ones share its level."""
    order = sorted(range(len(p_values)), key=lambda index: (p_values[index], index))
    adjusted, levels = [1.0] * len(p_values), [alpha] * len(p_values)
    largest, stopped = 0.0, None
    for step, index in enumerate(order):
        left = len(p_values) - step
        largest = max(largest, min(1.0, left * p_values[index]))
        adjusted[index] = largest
        levels[index] = stopped or alpha / left
        if stopped is None and p_values[index] > alpha / left:
            stopped = alpha / left
    return adjusted, levels


def judge_family(contrasts: Sequence[Contrast], margins: Sequence[float], advise: bool = True) -> list[Judged]:
    """Each contrast's verdict. A margin is a share for ratios (0.02: within 2 %), in the quantity's unit for differences.

    `advise`: with the number of further runs that would decide, which takes most of the time."""
    tested = [one.p_beyond(_reach(one.scale, margin)) for one, margin in zip(contrasts, margins, strict=True)]
    known = [index for index, p in enumerate(tested) if p is not None]
    adjusted, levels = holm([p for p in tested if p is not None])
    by_index = dict(zip(known, zip(adjusted, levels, strict=True), strict=True))
    judged = []
    for index, (one, margin) in enumerate(zip(contrasts, margins, strict=True)):
        p_holm, step = by_index.get(index, (None, ALPHA))
        found = Judged(one, p_holm, 1 - step, margin, UNDECIDED)
        found = replace(found, verdict=_verdict(found))
        judged.append(replace(found, more=more_runs(found)) if advise and found.verdict == UNDECIDED else found)
    return judged


def _reach(scale: Scale, margin: float) -> float:
    """The margin on the contrast's own scale, alike to either side."""
    return math.log1p(margin) if scale == RATIO else margin


def _verdict(found: Judged) -> Told:
    interval = found.interval
    if interval is None or found.p_holm is None or not found.contrast.may_decide:
        return UNDECIDED
    reach = _reach(found.contrast.scale, found.margin)
    if -reach <= interval[0] and interval[1] <= reach:
        return EQUIVALENT
    if found.p_holm > ALPHA:
        return UNDECIDED
    return FIRST if interval[0] > reach else SECOND if interval[1] < -reach else UNDECIDED


def more_runs(found: Judged) -> int | None:
    """About how many further values of each would decide with `POWER`, were the truth what was seen; None: no number helps or is known.

    The smaller of what it takes to tell the two apart and of what it takes to show them equivalent."""
    one = found.contrast
    if one.method not in (WELCH, PAIRED) or one.one_run or one.two_modes or one.below is None or one.below == 0:
        return None
    now, beyond = min(one.n), abs(one.estimate) - _reach(one.scale, found.margin)
    numbers = np.arange(now + 1, RUNS_MAX + 1)
    errors, freedoms = one.below * np.sqrt(now / numbers), one.freedom * numbers / now
    limits = scipy.stats.t.ppf((1 + found.level) / 2, freedoms)
    told_apart = beyond >= (limits + scipy.stats.t.ppf(POWER, freedoms)) * errors
    shown_alike = -beyond >= (limits + scipy.stats.t.ppf((1 + POWER) / 2, freedoms)) * errors
    enough = np.flatnonzero(told_apart | shown_alike)
    return int(numbers[enough[0]]) - now if len(enough) else None
