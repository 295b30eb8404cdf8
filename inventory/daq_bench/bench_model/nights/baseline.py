"""Has a run become worse than the level of the nights before it? By how nights differ, never by the bare difference.

The level and the windows are `level.by_mean`'s and `level.by_rank`'s. The chance of a false alarm is one for all requirements of a severity
together: each that is compared gets its share of it (Bonferroni), so that a long profile alarms no more often than a short one."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from daq_bench.bench_model.base.units import convert_earlier, in_digits
from daq_bench.bench_model.documents.nights import Comparison, Result
from daq_bench.bench_model.documents.verdict import Judgement
from daq_bench.bench_model.nights.level import Nights, Shift, by_mean, by_rank
from daq_bench.bench_model.nights.night import Night
from daq_bench.bench_model.nights.steps import standard_errors
from daq_bench.bench_model.statistics.repetitions import CONFIDENCE
from daq_bench.bench_model.verdict.decision import MET, MISSED

REGRESSED: Final = "regressed"
IMPROVED: Final = "improved"
SAME: Final = "not distinguishable"
UNDECIDED: Final = "not comparable"
# [P] chance that a night of an unchanged machine alarms, over all mandatory requirements. Red nights, not being in the level, add to it:
FALSE_ALARM = 0.008  # so much leaves less than 1 night in 100 (docs/trend.md)
TOGETHER = f"{1 - FALSE_ALARM:.0%} for all requirements together"

Red = Mapping[str, Collection[str]]  # requirements that became worse, by run


def compare(
    run: Night, baseline: Night, earlier: Sequence[Night], red: Red | None = None, accepted: bool = False
) -> list[Comparison]:
    """Every requirement of `run`. `earlier`: good runs of the same task in their order, those among them that alarmed too (`red`).

    `accepted`: somebody set `baseline`, so that the level begins with it; else with the first run."""
    nights = list(earlier)
    if baseline.id not in {night.id for night in nights}:
        nights = sorted([*nights, baseline], key=lambda night: night.started)
    shares = {row.id: FALSE_ALARM / _together(run, row.severity) for row in run.rows}
    found = []
    for row in run.rows:
        before = baseline.row(row.id)
        if before is None or before.definition != row.definition:
            one = _undecided(row, None, "the baseline's profile has no such requirement")
        elif row.measured is None or before.measured is None:
            which = "run" if row.measured is None else "baseline"
            one = _undecided(row, _in_unit(before.measured, before, row), f"not measured in the {which}")
        elif (base := _in_unit(before.measured, before, row)) is None:
            one = _undecided(row, None, f"the baseline's unit {before.unit} is not {row.unit}'s")
        elif row.comparison == "equal":
            one = _of_fact(row, before, base)
        else:
            one = _against_level(row, base, _values(row, nights, baseline, red or {}, accepted), shares[row.id])
        found.append(replace(one, unit=row.unit, comparison=row.comparison, bound=row.scaled_bound))
    return found


def _together(run: Night, severity: str) -> int:
    """How many requirements share the chance of a false alarm: those that a level is held against."""
    return max(1, sum(row.severity == severity and row.comparison != "equal" for row in run.rows))


def _values(row: Judgement, nights: Sequence[Night], baseline: Night, red: Red, accepted: bool) -> Nights:
    """Returns what the nights measured of `row`; what somebody accepted is not red."""
    known = [
        (night, own, value)
        for night in nights
        if (own := night.row(row.id)) and own.definition == row.definition
        if (value := _in_unit(own.measured, own, row)) is not None
    ]
    pairs = [_interval(own, row) for _, own, _ in known if own.confidence == CONFIDENCE and own.confidence_interval]
    return Nights(
        tuple(value for _, _, value in known),
        tuple(row.id in red.get(night.id, ()) and night.id != baseline.id for night, _, _ in known),
        sum(night.started < baseline.started for night, _, _ in known) if accepted else 0,
        float(standard_errors(pairs).mean()) if pairs else 0.0,
    )


def _against_level(row: Judgement, base: float, nights: Nights, chance: float) -> Comparison:
    measured = row.measured if row.measured is not None else math.nan
    worse = -1 if row.larger_is_better else 1
    test = by_mean if row.confidence_interval else by_rank
    fell, rose = (test(nights, measured, side, chance) for side in (worse, -worse))
    if fell is None or rose is None:
        text = f"no interval, and {len(nights.values)} earlier good runs are too few for a rank among them"
        return _undecided(row, base, text)
    result: Result = REGRESSED if fell.excess > 1 else IMPROVED if rose.excess > 1 else SAME
    seen = rose if result == IMPROVED else fell
    return Comparison(
        row.id,
        row.severity,
        result,
        seen.level,
        measured,
        seen.mean - seen.level,
        seen.interval,
        _method(seen, row.unit),
    )


def _method(seen: Shift, unit: str) -> str:
    nights = "this night" if seen.window == 1 else f"the last {seen.window} nights"
    against = f"{seen.n} earlier good run{'s' * (seen.n != 1)}"
    if seen.spread is None:
        return f"no interval: rank sum of {nights} among {against}, {TOGETHER}"
    known = "assumed, since too few runs show it" if seen.assumed else "between nights"
    return f"mean of {nights} against {against}, spread {in_digits(seen.spread, 3)} {unit} {known}; {TOGETHER}"


def regressed(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The mandatory ones that became worse."""
    return [one for one in comparisons if one.result == REGRESSED and one.severity == "mandatory"]


def _undecided(row: Judgement, base: float | None, why: str) -> Comparison:
    return Comparison(row.id, row.severity, UNDECIDED, base, row.measured, None, None, why)


def _in_unit(value: float | None, own: Judgement, wanted: Judgement) -> float | None:
    try:
        return None if value is None else convert_earlier(value, own.unit, wanted.unit)
    except ValueError:
        return None


def _interval(own: Judgement, wanted: Judgement) -> tuple[float, float]:
    low, high = own.confidence_interval or (math.nan, math.nan)
    return convert_earlier(low, own.unit, wanted.unit), convert_earlier(high, own.unit, wanted.unit)


def _of_fact(row: Judgement, before: Judgement, base: float) -> Comparison:
    """`equal` is a question of fact: worse is what was met and is missed, by the same bound."""
    if before.scaled_bound != row.scaled_bound:
        return _undecided(row, base, f"the bound was {in_digits(before.scaled_bound, 15)} {before.unit} then")
    measured = row.measured if row.measured is not None else math.nan
    worse, better = before.decision == MET and row.decision == MISSED, before.decision == MISSED and row.decision == MET
    result: Result = REGRESSED if worse else IMPROVED if better else SAME
    return Comparison(row.id, row.severity, result, base, measured, measured - base, None, "fact: met or missed")
