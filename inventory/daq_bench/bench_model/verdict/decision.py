"""One requirement against its evidence: judged value, spread, interval with the method named, and met, missed or undecided.

Level 95 %, two-sided, so that at most 2.5 % of the runs on a candidate at the bound end in a wrong `met` and at most 2.5 % in a
wrong `missed`. `met` only when the whole interval lies inside the bound by at least the guard band (guarded acceptance, JCGM
106:2012, 8.3.2); `missed` only when all of it lies outside; else `undecided`, with how much more would decide. Where the interval
leaves it undecided, the range of all samples of enough repetitions decides by the same rule (ADR 36). Fewer repetitions than bound
anything speak of this run only, and decide nothing (docs/statistics.md has the rules and how often they err)."""

from __future__ import annotations

import hashlib
import math
import statistics as stdlib_statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from daq_bench.bench_model.base.direction import Comparison
from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.documents.verdict import Decided, Spread
from daq_bench.bench_model.evidence.measured import Interval, Measured
from daq_bench.bench_model.profiles.metrics import ResultMetric
from daq_bench.bench_model.profiles.requirements import Requirement
from daq_bench.bench_model.statistics.bootstrap import SAMPLES_MIN, mean_interval, rounded
from daq_bench.bench_model.statistics.repetitions import (
    CONFIDENCE,
    judged_value,
    repetition_interval,
    repetitions_for_median,
)
from daq_bench.bench_model.workloads.steady_state.rounds import WINDOW_ROUNDS, range_of_rounds

MET: Final = "met"
MISSED: Final = "missed"
UNDECIDED: Final = "undecided"

SERIES_AGREES = 0.05  # [P] share of the value by which its samples' mean may differ from it; the interval holds both
FORGIVEN_OF = 6  # [P] one repetition of so many may look too correlated for its length, as one of many such estimates will by chance
LENGTH_FACTOR_MAX = 100.0  # beyond, the value lies at the bound and nobody would wait that long
RANGE_OF_ALL = "range of all "  # how the method's name begins
WINDOW_RULE = "range of the steady window (SNIA PTS), this run only, no confidence level"


@dataclass(frozen=True)
class Estimate:
    """The judged value and what is known of it. `method` says how the interval was made, or why there is none.

    `exact`: the value is a fact about the run and needs no interval. `confidence`: level of the interval; None where it has none.
    `this_run_only`: the interval knows nothing of other runs, and decides nothing. `more_repetitions` and `length_factor` say what
    would give an interval that does.

    `ranged`: the same by the range of all samples, which decides where the interval does not. `parts`: the strata whose worst it is."""

    value: float
    n: int
    spread: Spread | None
    interval: Interval | None
    method: str
    exact: bool = False
    confidence: float | None = None
    this_run_only: bool = False
    more_repetitions: int | None = None
    length_factor: float | None = None
    ranged: Estimate | None = None
    parts: dict[str, Estimate] = field(default_factory=dict)


@dataclass(frozen=True)
class Decision:
    """`margin`: distance of the judged value to the bound, positive inside. `advice`: what would decide; empty when decided. `found`: the
    estimate that decided, or did not."""

    decision: Decided
    margin: float
    found: Estimate
    advice: str = ""
    more_repetitions: int | None = None
    length_factor: float | None = None


class _NoIntervalError(Exception):
    """Why a repetition has no interval; with `factor` times its length it would have one."""

    def __init__(self, reason: str, factor: float | None = None) -> None:
        super().__init__(reason)
        self.factor = factor


@dataclass(frozen=True)
class _Repetition:
    """One repetition: its value as low and as high as it may be read, and how far its own interval reaches from there.

    `refused`: why it has no interval of its own, where others of the same thing may stand for it."""

    low: float
    high: float
    below: float = 0.0
    above: float = 0.0
    refused: _NoIntervalError | None = None


def estimate(requirement: Requirement, metric: ResultMetric, measured: Measured, seed: int) -> Estimate:
    """The best that the data allow. `measured` must have values; `seed` is the run's."""
    if metric.nature == "observed" or requirement.comparison == "equal":
        return _fact(requirement, measured)
    parts = {
        label: _of_stratum(requirement.statistic, metric, part, f"{seed}:{metric.name}:{label}")
        for label, part in measured.by_stratum().items()
    }
    return _worst(requirement.comparison, parts)


def _fact(requirement: Requirement, measured: Measured) -> Estimate:
    """Facts about this run's repetitions."""
    values, statistic = measured.values, requirement.statistic
    value = worst_fact(requirement, measured)
    which = "an observation" if len(values) == 1 else f"the {statistic} of these repetitions, an observation"
    text = f"this run only (n = {len(values)}): {which}, exact; it bounds no other repetition"
    return Estimate(value, len(values), _spread(values, measured.series), None, text, exact=True)


def worst_fact(requirement: Requirement, measured: Measured) -> float:
    """A median over unlike repetitions would hide the worse, so that the worst stratum's is taken. `measured` must have values."""
    statistic, parts = requirement.statistic, {"": measured}
    if statistic == "median" and requirement.comparison != "equal":
        parts = measured.by_stratum()
    return _extreme(requirement.comparison, [judged_value(part.values, statistic) for part in parts.values()])


def _extreme(comparison: Comparison, values: Any) -> float:
    """The value of the worst stratum."""
    return float(max(values) if comparison == "at_most" else min(values))


def _worst(comparison: Comparison, parts: dict[str, Estimate]) -> Estimate:
    """All strata must be met, and one that is missed misses: the worst of each end of their intervals says both."""
    found = list(parts.values())
    worst = min(found, key=lambda one: margin(comparison, one.value, 0.0))
    if len(parts) == 1:
        return worst
    known = [one.interval for one in found if one.interval is not None]
    low, high = (_extreme(comparison, [pair[end] for pair in known]) if known else 0.0 for end in (0, 1))
    lacking = next((label for label in parts if parts[label].interval is None), None)
    methods = dict.fromkeys(one.method for one in sorted(found, key=lambda one: one.confidence is not None))
    text = (
        f"{' and '.join(methods)}; the worst of {len(parts)} strata"
        if lacking is None
        else f"{parts[lacking].method} ({lacking})"
    )
    return replace(
        worst,
        n=sum(one.n for one in found),
        interval=(low, high) if lacking is None else None,
        method=text,
        confidence=None if any(one.confidence is None for one in found) else worst.confidence,
        this_run_only=any(one.this_run_only for one in found),
        more_repetitions=max(one.more_repetitions or 0 for one in found) or None,
        length_factor=max(one.length_factor or 0.0 for one in found) or None,
        ranged=None,
        parts=parts,
    )


def _of_stratum(statistic: str, metric: ResultMetric, measured: Measured, seed: str) -> Estimate:
    """From values that are repetitions of the same thing."""
    values, n = measured.values, len(measured.values)
    known = Estimate(judged_value(values, statistic), n, _spread(values, measured.series), None, "")
    try:
        if metric.rule:
            return _of_window(known, measured)
        if metric.rounds:
            return _given(known, metric, measured)
        known = replace(known, ranged=_ranged(known, metric, measured))
        runs = [_repetition(metric, measured, number, f"{seed}:{number}") for number in range(1, n + 1)]
        refused = [one.refused for one in runs if one.refused]
        if len(refused) > n // FORGIVEN_OF:
            raise refused[0]
    except _NoIntervalError as error:
        more = repetitions_for_median(measured.confidence) - n if error.factor else 0
        return replace(
            known, method=f"none: {error}", more_repetitions=more if more > 0 else None, length_factor=error.factor
        )
    return _between(known, statistic, metric, measured, runs)


def _of_window(known: Estimate, measured: Measured) -> Estimate:
    """The standard's rule chose the window by its steadiness, which no interval of the mean knows: the range of its rounds decides."""
    rounds = measured.series[0] if len(measured.series) == 1 else ()
    if len(rounds) != WINDOW_ROUNDS:
        raise _NoIntervalError(f"the steady window has {len(rounds)} rounds with a value instead of {WINDOW_ROUNDS}")
    _agree(known.value, rounds, "")
    low, high = range_of_rounds(rounds)
    return replace(known, interval=(min(low, known.value), max(high, known.value)), method=WINDOW_RULE)


def _ranged(known: Estimate, metric: ResultMetric, measured: Measured) -> Estimate | None:
    """The range of every sample of enough repetitions, and at least the interval of their values; None where there are too few of them, or
    their series contradict them.

    A repetition whose mean lies outside of the bound has a sample outside. Where at least half of the repetitions are such, n of them
    without one have a chance of (1/2)^n, whatever the distribution and the memory within a repetition. Joined with the interval of the
    values, it decides nothing that repetitions without series would leave open."""
    if not metric.samples or known.n < repetitions_for_median(measured.confidence):
        return None
    try:
        series = [_series(metric, measured, number) for number in range(1, known.n + 1)]
    except _NoIntervalError:
        return None
    if min(len(one) for one in series) < SAMPLES_MIN:
        return None
    of_values = repetition_interval([(value, value) for value in measured.values], measured.confidence)
    low, high = min(of_values[0], *map(min, series)), max(of_values[1], *map(max, series))
    text = f"{RANGE_OF_ALL}{sum(map(len, series))} samples of {known.n} repetitions, no confidence level"
    return replace(known, interval=(low, high), method=text)


def _given(known: Estimate, metric: ResultMetric, measured: Measured) -> Estimate:
    """From the interval that the workload made of its rounds, each of which measures all of it anew."""
    interval = _own_interval(known.value, metric, measured, 0)
    rounds, needed = measured.rounds[0], repetitions_for_median(measured.confidence)
    if rounds < needed:
        text = f"{_only(rounds)}given by the workload in {metric.file}; fewer than {needed} rounds bound nothing"
        return replace(known, interval=interval, method=text, this_run_only=True, more_repetitions=needed - rounds)
    text = f"given by the workload in {metric.file}, over {rounds} rounds"
    return replace(known, n=rounds, interval=interval, method=text, confidence=measured.confidence)


def _own_interval(value: float, metric: ResultMetric, measured: Measured, place: int) -> Interval:
    """The interval that the workload gave; None where it is missing, or does not hold its value."""
    interval = measured.intervals[place] if measured.intervals else None
    if interval is None:
        raise _NoIntervalError(f"{metric.file} does not give an interval of every value")
    if not interval[0] <= value <= interval[1]:
        raise _NoIntervalError(f"the value {in_digits(value)} lies outside of its own interval in {metric.file}")
    if measured.confidence > CONFIDENCE:
        raise _NoIntervalError(
            f"the interval in {metric.file} is one of {CONFIDENCE:.0%}, and several looks ask for more"
        )
    return interval


def _repetition(metric: ResultMetric, measured: Measured, number: int, seed: str) -> _Repetition:
    """Returns repetition `number`, counted from 1, from its own data alone."""
    value = measured.values[number - 1]
    if metric.interval:
        low, high = _own_interval(value, metric, measured, number - 1)
        return _Repetition(value, value, value - low, high - value)
    if not metric.samples:
        return _Repetition(value, value)
    series = _series(metric, measured, number)
    mean = math.fsum(series) / len(series)
    found = mean_interval(series, measured.confidence, _seed(seed))
    low, high = min(mean, value), max(mean, value)
    if found.interval is None:
        of = _of(measured, number)
        error = _NoIntervalError(f"{of}{found.reason}", (found.samples_needed or found.samples) / found.samples)
        if found.correlated:
            return _Repetition(low, high, refused=error)
        raise error
    return _Repetition(low, high, mean - found.interval[0], found.interval[1] - mean)


def _of(measured: Measured, number: int) -> str:
    return f"repetition {number}: " if len(measured.values) > 1 else ""


def _series(metric: ResultMetric, measured: Measured, number: int) -> Sequence[float]:
    """The samples of repetition `number`, where they are its own and agree with its value."""
    of, series = _of(measured, number), measured.series[number - 1]
    if not series:
        raise _NoIntervalError(f"{of}{metric.file} gives no series of its samples")
    if len(set(series)) > 1 and series in measured.series[: number - 1]:
        raise _NoIntervalError(f"{of}the same samples stand for an earlier repetition too")
    if len(series) >= SAMPLES_MIN:  # fewer give no interval, and the ramp in them is no contradiction
        _agree(measured.values[number - 1], series, of)
    return series


def _agree(value: float, series: Sequence[float], of: str) -> None:
    """The samples' mean differs a little from the value by how their tool rounds; more contradicts it."""
    mean = math.fsum(series) / len(series)
    if abs(mean - value) > SERIES_AGREES * abs(value):
        raise _NoIntervalError(f"{of}its samples' mean of {in_digits(mean)} is not the value {in_digits(value)}")


def _between(
    known: Estimate, statistic: str, metric: ResultMetric, measured: Measured, runs: Sequence[_Repetition]
) -> Estimate:
    """The one rule: how far the repetitions scatter, joined with what each of them knows of its own scatter."""
    n, needed = len(runs), repetitions_for_median(measured.confidence)
    inside = "block bootstrap and cosine t" if metric.samples else f"given in {metric.file}" if metric.interval else ""
    if n < needed:
        ends = (min(one.low - one.below for one in runs), max(one.high + one.above for one in runs)) if inside else None
        text = f"{_only(n)}{inside or 'no series'}; fewer than {needed} repetitions bound nothing"
        return replace(known, interval=ends, method=text, this_run_only=True, more_repetitions=needed - n)
    low, high = repetition_interval([(one.low, one.high) for one in runs], measured.confidence)
    # The half width of a mean of n independent repetitions: that of one of them, in square mean, over the root of n.
    whole = [one for one in runs if not one.refused]
    sides = ([one.below for one in whole], [one.above for one in whole])
    below, above = (rounded(math.hypot(*half) / math.sqrt(len(whole) * n)) for half in sides)
    low = min(low, math.fsum(one.low for one in runs) / n - below)
    high = max(high, math.fsum(one.high for one in runs) / n + above)
    if statistic == "min":  # the worst that was seen, whatever the interval says
        low = min(low, *(one.low for one in runs))
    elif statistic == "max":
        high = max(high, *(one.high for one in runs))
    text = f"Student t and order statistics of {n} repetitions"
    text += f", joined with {inside} within each" if inside else ""
    text += "" if statistic == "median" else f", extended to the {statistic}"
    return replace(known, interval=(low, high), method=text, confidence=measured.confidence)


def _only(n: int) -> str:
    return f"this run only (n = {n}): "


def _spread(values: Sequence[float], series: Sequence[Sequence[float]]) -> Spread:
    """Over the repetitions, or over the samples of a single one, where it has some."""
    of_samples = len(values) == 1 and any(series)
    data = series[0] if of_samples else values
    return Spread(
        of="samples" if of_samples else "repetitions",
        count=len(data),
        min=min(data),
        median=float(stdlib_statistics.median(data)),
        max=max(data),
        sd=float(f"{stdlib_statistics.stdev(data):.9g}") if len(data) > 1 else None,
    )


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


def margin(comparison: Comparison, value: float, bound: float) -> float:
    """Distance of `value` to the bound, positive inside."""
    if comparison == "at_least":
        return value - bound
    return bound - value if comparison == "at_most" else -abs(value - bound)


def decide(comparison: Comparison, bound: float, guard_band: float, found: Estimate) -> Decision:
    """The three-way decision against `bound`, in one unit with `guard_band`: by the interval; by the range where that does not decide."""
    if comparison == "equal":
        found = _farthest(bound, found)
    usual = by_interval(comparison, bound, guard_band, found)
    if usual.decision != UNDECIDED:
        return usual
    ranged = found.ranged
    if found.parts:
        parts = {label: decide(comparison, bound, guard_band, part).found for label, part in found.parts.items()}
        ranged = _worst(comparison, parts)
    decided = by_interval(comparison, bound, guard_band, ranged) if ranged else usual
    return usual if decided.decision == UNDECIDED else decided


def _farthest(bound: float, found: Estimate) -> Estimate:
    """All repetitions must equal the bound: the one farthest from it is judged, whatever the statistic would show."""
    if not found.exact or not found.spread or found.spread.of != "repetitions":
        return found
    value = min((found.value, found.spread.min, found.spread.max), key=lambda one: margin("equal", one, bound))
    if value == found.value:
        return found
    return replace(found, value=value, method=f"this run only (n = {found.n}): the farthest from the bound, exact")


def by_interval(comparison: Comparison, bound: float, guard_band: float, found: Estimate) -> Decision:
    """The decision by the estimate's own interval alone."""
    at = margin(comparison, found.value, bound)
    if found.this_run_only or (found.interval is None and not found.exact):
        return _without_interval(at, found)
    ends = [margin(comparison, end, bound) for end in found.interval or (found.value, found.value)]
    if min(ends) >= guard_band:
        return Decision(MET, at, found)
    if max(ends) < 0:
        return Decision(MISSED, at, found)
    if found.exact or 0 <= at <= guard_band:
        inside = "at the bound" if at == 0 else "within the guard band"
        return Decision(UNDECIDED, at, found, f"the value lies {inside}, and more of the same would not move it")
    if found.confidence is None:
        return Decision(UNDECIDED, at, found, "the range reaches over the bound, and a range does not shrink")
    # The worst counts, and no further repetition makes it better.
    if found.spread and at < 0 <= margin(comparison, found.spread.median, bound):
        text = "the worst repetition misses the bound and most do not, which more of them would not change: find what was different in it"
        return Decision(UNDECIDED, at, found, text)
    near = at - guard_band if at > 0 else -at
    reach = at - min(ends) if at > 0 else max(ends) - at
    factor = (reach / near) ** 2
    if factor > LENGTH_FACTOR_MAX:
        return Decision(
            UNDECIDED, at, found, "the value lies so near the bound that a hundred times as much would not decide"
        )
    more = max(1, math.ceil(found.n * factor) - found.n)
    return Decision(UNDECIDED, at, found, _advice(more, None), more_repetitions=more)


def _without_interval(at: float, found: Estimate) -> Decision:
    more, factor = found.more_repetitions, found.length_factor
    if more or factor:
        return Decision(UNDECIDED, at, found, _advice(more, factor), more, factor)
    return Decision(
        UNDECIDED, at, found, "the workload's results contradict themselves; report it as a fault of the bench"
    )


def _advice(repetitions: int | None, factor: float | None) -> str:
    parts = []
    if factor:
        parts.append(f"a measurement about {in_digits(max(factor, 1.1), 2)} times as long")
    if repetitions:
        parts.append(f"about {repetitions} more repetition{'s' if repetitions > 1 else ''}")
    return f"{' and '.join(parts)} would decide"
