"""Has a run become worse than its baseline? By the interval of the difference, never by the bare difference.

The interval of a difference from the intervals of its two terms is MOVER's (Zou & Donner 2008, eq. 2; Newcombe 1998, method 10). An
interval of one night says nothing of how nights differ: with earlier good runs their spread is added; without, the document says so.
A metric without an interval is compared by rank: worse than each of n earlier good runs has a chance of 1/(n + 1) without a change."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from daq_bench.bench_model.base.units import convert
from daq_bench.bench_model.documents.nights import Comparison, Result
from daq_bench.bench_model.documents.verdict import Judgement
from daq_bench.bench_model.nights.night import Night
from daq_bench.bench_model.nights.steps import Z95, standard_errors
from daq_bench.bench_model.verdict.decision import MET, MISSED

REGRESSED: Final = "regressed"
IMPROVED: Final = "improved"
SAME: Final = "not distinguishable"
UNDECIDED: Final = "not comparable"
NIGHTS_FOR_SPREAD = 6  # [P] earlier good runs from which the spread between nights is taken
RANK_CHANCE = 0.05  # [P] above it, being the worst so far is no finding


def compare(run: Night, baseline: Night, earlier: Sequence[Night]) -> list[Comparison]:
    """Every requirement of `run`. `earlier`: good runs of the same task, for the spread between nights; may be empty."""
    found = [
        _compare(row, baseline.row(row.id), [one for night in earlier if (one := night.row(row.id))])
        for row in run.rows
    ]
    return [
        replace(one, unit=row.unit, comparison=row.comparison, bound=row.scaled_bound)
        for one, row in zip(found, run.rows, strict=True)
    ]


def regressed(comparisons: Sequence[Comparison], severity: str = "mandatory") -> list[Comparison]:
    """Those that became worse, of one severity."""
    return [one for one in comparisons if one.result == REGRESSED and one.severity == severity]


def _compare(row: Judgement, before: Judgement | None, earlier: Sequence[Judgement]) -> Comparison:
    if before is None or before.definition != row.definition:
        return _undecided(row, None, "the baseline's profile has no such requirement")
    if row.measured is None or before.measured is None:
        which = "run" if row.measured is None else "baseline"
        return _undecided(row, _in_unit(before.measured, before, row), f"not measured in the {which}")
    known = [one for one in earlier if one.definition == row.definition and one.measured is not None]
    values = [value for one in known if (value := _in_unit(one.measured, one, row)) is not None]
    base = _in_unit(before.measured, before, row)
    if base is None:
        return _undecided(row, None, f"the baseline's unit {before.unit} is not {row.unit}'s")
    if row.comparison == "equal":
        return _of_fact(row, before, base)
    if row.confidence_interval is None or before.confidence_interval is None:
        return _by_rank(row, base, values)
    intervals = [_interval(one, row) for one in known if one.confidence_interval]
    return _by_interval(row, base, _interval(before, row), values, intervals)


def _undecided(row: Judgement, base: float | None, why: str) -> Comparison:
    return Comparison(row.id, row.severity, UNDECIDED, base, row.measured, None, None, why)


def _in_unit(value: float | None, own: Judgement, wanted: Judgement) -> float | None:
    try:
        return None if value is None else convert(value, own.unit, wanted.unit)
    except ValueError:
        return None


def _interval(own: Judgement, wanted: Judgement) -> tuple[float, float]:
    low, high = own.confidence_interval or (math.nan, math.nan)
    return convert(low, own.unit, wanted.unit), convert(high, own.unit, wanted.unit)


def _of_fact(row: Judgement, before: Judgement, base: float) -> Comparison:
    """`equal` is a question of fact: worse is what was met and is missed, by the same bound."""
    if before.scaled_bound != row.scaled_bound:
        return _undecided(row, base, f"the bound was {before.scaled_bound:g} {before.unit} then")
    measured = row.measured if row.measured is not None else math.nan
    worse, better = before.decision == MET and row.decision == MISSED, before.decision == MISSED and row.decision == MET
    result: Result = REGRESSED if worse else IMPROVED if better else SAME
    return Comparison(row.id, row.severity, result, base, measured, measured - base, None, "fact: met or missed")


def _by_rank(row: Judgement, base: float, values: Sequence[float]) -> Comparison:
    measured = row.measured if row.measured is not None else math.nan
    sign = 1 if row.comparison == "at_least" else -1
    chance = 1 / (len(values) + 1)
    method = f"no interval: rank among {len(values)} earlier good runs, chance without a change {chance:.2g}"
    result: Result = SAME
    if chance > RANK_CHANCE:
        needed = math.ceil(1 / RANK_CHANCE) - 1
        result, method = (
            UNDECIDED,
            f"no interval, and {len(values)} earlier good runs of the {needed} that a rank needs",
        )
    elif sign * measured < min(sign * value for value in values):
        result = REGRESSED
    elif sign * measured > max(sign * value for value in values):
        result = IMPROVED
    return Comparison(row.id, row.severity, result, base, measured, measured - base, None, method)


def _by_interval(
    row: Judgement,
    base: float,
    of_base: tuple[float, float],
    values: Sequence[float],
    intervals: Sequence[tuple[float, float]],
) -> Comparison:
    measured, (low, high) = row.measured or 0.0, row.confidence_interval or (math.nan, math.nan)
    between, method = (
        0.0,
        "interval of the difference (MOVER); the spread between nights is unknown, so that it alarms too easily",
    )
    if len(values) >= NIGHTS_FOR_SPREAD:
        between = _spread(values, intervals)
        method = f"interval of the difference (MOVER), with the spread between {len(values)} earlier good runs"
    reach = Z95**2 * 2 * between
    difference = measured - base
    least = difference - math.sqrt((measured - low) ** 2 + (of_base[1] - base) ** 2 + reach)
    most = difference + math.sqrt((high - measured) ** 2 + (base - of_base[0]) ** 2 + reach)
    fell, rose = most < 0, least > 0
    worse, better = (fell, rose) if row.comparison == "at_least" else (rose, fell)
    result: Result = REGRESSED if worse else IMPROVED if better else SAME
    return Comparison(row.id, row.severity, result, base, measured, difference, (least, most), method)


def _spread(values: Sequence[float], intervals: Sequence[tuple[float, float]]) -> float:
    """Variance between nights beyond what the nights' own intervals explain."""
    own = float((standard_errors(intervals) ** 2).mean()) if intervals else 0.0
    return max(0.0, statistics.variance(values) - own)
