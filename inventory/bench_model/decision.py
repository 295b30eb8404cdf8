"""One requirement against its evidence: judged value, spread, interval with the method named, and met, missed or undecided.

Level 95 %, two-sided, so that at most 2.5 % of the runs on a candidate at the bound end in a wrong `met` and at most 2.5 % in a
wrong `missed`. `met` only when the whole interval lies inside the bound by at least the guard band (guarded acceptance, JCGM
106:2012, 8.3.2); `missed` only when all of it lies outside; else `undecided`, with how much more would decide."""

from __future__ import annotations

import hashlib
import math
import statistics as stdlib_statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathTypeError

from bench_model.bootstrap import mean_interval
from bench_model.evidence import Document
from bench_model.profiles import Comparison, Requirement, ResultMetric
from bench_model.statistics import CONFIDENCE, judged_value, median_interval, repetitions_for_median
from bench_model.units import convert

MET, MISSED, UNDECIDED = "met", "missed", "undecided"
Interval = tuple[float, float]

SERIES_AGREES = 0.05  # [P] share of the value by which its samples' mean may differ from it
LENGTH_FACTOR_MAX = 100.0  # beyond, the value lies at the bound and nobody would wait that long


@dataclass(frozen=True)
class Measured:
    """What the results say of one metric, one entry per repetition, in the requirement's unit. `problem`: why there is nothing."""

    values: tuple[float, ...]
    series: tuple[tuple[float, ...], ...] = ()
    intervals: tuple[Interval, ...] = ()
    confidence: float = CONFIDENCE
    problem: str = ""


@dataclass(frozen=True)
class Estimate:
    """The judged value and what is known of it. `method` says how the interval was made, or why there is none.

    `exact`: the value is a fact about the run and needs no interval. Where there is no interval, `more_repetitions` or
    `length_factor` say what would give one."""

    value: float
    n: int
    spread: dict[str, Any]
    interval: Interval | None
    method: str
    exact: bool = False
    of_series: bool = False
    more_repetitions: int | None = None
    length_factor: float | None = None


@dataclass(frozen=True)
class Decision:
    """`margin`: distance of the judged value to the bound, positive inside. `advice`: what would decide; empty when decided."""

    decision: str
    margin: float
    advice: str = ""
    more_repetitions: int | None = None
    length_factor: float | None = None


def measure(requirement: Requirement, metric: ResultMetric, results: dict[str, Document]) -> Measured:
    """Reads the metric. One missing repetition makes all of them unusable."""
    document = results.get(metric.file)
    if document is None:
        return Measured((), problem=f"{metric.file} was not written: the workload did not finish")
    values: list[Any] | None = jmespath.search(metric.path, document)
    if not values or not all(_is_number(value) for value in values):
        # A workload says of each metric that it could not measure, why.
        reason = document.get("reasons", {}).get(metric.name) or f"{metric.path} gives no number in {metric.file}"
        return Measured((), problem=f"Not measured: {reason}")
    converted = tuple(convert(float(value), metric.unit, requirement.unit) for value in values)
    return Measured(
        converted,
        series=_lists(metric.samples, document, metric.unit, requirement.unit),
        intervals=tuple(
            (pair[0], pair[1]) for pair in _lists(metric.interval, document, metric.unit, requirement.unit)
        ),
        confidence=document.get("stopping", {}).get("confidence", CONFIDENCE),
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _lists(path: str | None, document: Document, unit: str, wanted: str) -> tuple[tuple[float, ...], ...]:
    """The lists of numbers at `path`, in the unit `wanted`; empty where one of them holds anything else."""
    try:
        found: list[Any] | None = jmespath.search(path, document) if path else None
    except JMESPathTypeError:  # min_by and the like of a list that is not there
        return ()
    if not found or not all(isinstance(one, list) and one and all(_is_number(item) for item in one) for one in found):
        return ()
    return tuple(tuple(convert(float(item), unit, wanted) for item in one) for one in found)


def estimate(requirement: Requirement, metric: ResultMetric, measured: Measured, seed: int) -> Estimate:
    """The best that the data allow. `measured` must have values; `seed` is the run's."""
    values = measured.values
    value, n = judged_value(values, requirement.statistic), len(values)
    spread = _spread(values, measured.series)
    if metric.nature == "observed" or requirement.comparison == "equal":
        return Estimate(value, n, spread, None, _observation(requirement.statistic, n), exact=True)
    if len(measured.intervals) == n:
        ends = [judged_value([pair[end] for pair in measured.intervals], requirement.statistic) for end in (0, 1)]
        text = f"given by the workload in {metric.file}" + (f", {requirement.statistic} over {n}" if n > 1 else "")
        return Estimate(value, n, spread, (ends[0], ends[1]), text, of_series=True)
    of_series = _of_series(requirement, metric, measured, spread, seed) if len(measured.series) == n else None
    of_values = _of_repetitions(requirement.statistic, values, measured.confidence)
    # A median over enough repetitions speaks of all such repetitions; else the series, where they are long enough.
    if of_values and (requirement.statistic == "median" or of_series is None or of_series.interval is None):
        return Estimate(value, n, spread, of_values, _order_statistics(requirement.statistic))
    if of_series:
        return of_series
    needed = repetitions_for_median(measured.confidence)
    text = f"none: {n} repetition{'s' if n > 1 else ''} without a series, and fewer than {needed} bound nothing"
    return Estimate(value, n, spread, None, text, more_repetitions=needed - n)


def _observation(statistic: str, n: int) -> str:
    which = "the repetition itself" if n == 1 else f"the {statistic} of the {n} repetitions themselves"
    return f"observation: {which}, exact; it bounds no other repetition"


def _order_statistics(statistic: str) -> str:
    extended = "" if statistic == "median" else f", extended to the {statistic}"
    return f"order statistics of the repetitions{extended}"


def _spread(values: Sequence[float], series: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Over the repetitions; of a single one over its samples, where it has some."""
    of_samples = len(values) == 1 and len(series) == 1
    data = series[0] if of_samples else values
    return {
        "of": "samples" if of_samples else "repetitions",
        "count": len(data),
        "min": min(data),
        "median": float(stdlib_statistics.median(data)),
        "max": max(data),
        "sd": float(f"{stdlib_statistics.stdev(data):.9g}") if len(data) > 1 else None,
    }


def _of_repetitions(statistic: str, values: Sequence[float], confidence: float) -> Interval | None:
    """Distribution-free, from the repetitions' values alone; for `min` and `max` extended to the worst that was seen.

    Whether the repetitions differ, or only their measurement scatters, is unknown here: the interval serves both."""
    interval = median_interval(values, confidence)
    if interval is None or statistic == "median":
        return interval
    return (min(values), interval[1]) if statistic == "min" else (interval[0], max(values))


def _of_series(
    requirement: Requirement, metric: ResultMetric, measured: Measured, spread: dict[str, Any], seed: int
) -> Estimate:
    """From each repetition's series, at a level at which all n intervals hold together (Bonferroni)."""
    values = measured.values
    value, n = judged_value(values, requirement.statistic), len(values)
    each = 1 - (1 - measured.confidence) / n
    intervals, blocks = [], []
    for number, (one, series) in enumerate(zip(values, measured.series, strict=True), start=1):
        of = f"repetition {number}: " if n > 1 else ""
        found = mean_interval(series, each, _seed(seed, metric.name, number))
        if found.interval is None:
            factor = (found.samples_needed or found.samples) / found.samples
            return Estimate(value, n, spread, None, f"none: {of}{found.reason}", length_factor=factor)
        mean = math.fsum(series) / len(series)
        if abs(mean - one) > SERIES_AGREES * abs(one):
            text = f"none: {of}its samples' mean of {mean:.4g} is not the value {one:.4g}"
            return Estimate(value, n, spread, None, text)
        intervals.append((found.interval[0] + one - mean, found.interval[1] + one - mean))
        blocks.append(found.block)
    ends = [judged_value([pair[end] for pair in intervals], requirement.statistic) for end in (0, 1)]
    samples = min(len(series) for series in measured.series)
    text = f"block bootstrap and cosine t, {samples} samples, block {max(blocks):.3g}"
    if n > 1:
        text = f"{requirement.statistic} of {n} intervals by {text}"
    return Estimate(value, n, spread, (ends[0], ends[1]), text, of_series=True)


def _seed(run_seed: int, metric: str, repetition: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{run_seed}:{metric}:{repetition}".encode()).digest()[:8])


def margin(comparison: Comparison, value: float, bound: float) -> float:
    """Distance of `value` to the bound, positive inside."""
    if comparison == "at_least":
        return value - bound
    return bound - value if comparison == "at_most" else -abs(value - bound)


def decide(comparison: Comparison, bound: float, guard_band: float, found: Estimate) -> Decision:
    """The three-way decision against `bound`, in one unit with `guard_band`."""
    at = margin(comparison, found.value, bound)
    if found.interval is None and not found.exact:
        return _without_interval(at, found)
    ends = [margin(comparison, end, bound) for end in found.interval or (found.value, found.value)]
    if min(ends) >= guard_band:
        return Decision(MET, at)
    if max(ends) < 0:
        return Decision(MISSED, at)
    if found.exact or 0 <= at <= guard_band:
        inside = "at the bound" if at == 0 else "within the guard band"
        return Decision(UNDECIDED, at, f"the value lies {inside}, and more of the same would not move it")
    near = at - guard_band if at > 0 else -at
    reach = at - min(ends) if at > 0 else max(ends) - at
    factor = (reach / near) ** 2
    if factor > LENGTH_FACTOR_MAX:
        return Decision(UNDECIDED, at, "the value lies so near the bound that a hundred times as much would not decide")
    if found.of_series:
        return Decision(UNDECIDED, at, _longer(factor), length_factor=factor)
    more = max(1, math.ceil(found.n * factor) - found.n)
    return Decision(UNDECIDED, at, _more(more), more_repetitions=more)


def _without_interval(at: float, found: Estimate) -> Decision:
    if found.more_repetitions:
        return Decision(UNDECIDED, at, _more(found.more_repetitions), more_repetitions=found.more_repetitions)
    if found.length_factor:
        return Decision(UNDECIDED, at, _longer(found.length_factor), length_factor=found.length_factor)
    return Decision(UNDECIDED, at, "the workload's results contradict themselves; report it as a fault of the bench")


def _longer(factor: float) -> str:
    return f"a measurement about {max(factor, 1.1):.2g} times as long would decide"


def _more(repetitions: int) -> str:
    return f"about {repetitions} more repetition{'s' if repetitions > 1 else ''} would decide"
