"""Tables of a comparison: each requirement with every contender's value and place and every pair; price against throughput. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Final

from daq_bench.bench_model.base.units import of_temperature
from daq_bench.bench_model.documents.comparison import (
    ComparedRequirement,
    Dominance,
    PairCompared,
    Pareto,
    ParetoPoint,
    Standing,
    Unlike,
)
from daq_bench.bench_model.tender.contenders import (
    COST,
    POWER,
    REPETITIONS,
    Contender,
    Difference,
    Question,
    estimate,
    measured_contrast,
)
from daq_bench.bench_model.tender.contrasts import (
    EQUIVALENT,
    FIRST,
    METHODS,
    RATIO,
    SECOND,
    UNDECIDED,
    Contrast,
    Judged,
    judge_family,
)
from daq_bench.bench_model.tender.ranking import Range, dominance, places, unbeaten

TEMPERATURE_MARGIN_K = 1.0  # [P] what drives' sensors resolve
BARRED: Final = "barred"


def ranking(question: Question, contenders: Sequence[Contender], unlike: Sequence[Difference]) -> ComparedRequirement:
    """One requirement: every contender's value and place, and every pair; values only where they are not alike.

    An exact demand is met or missed: nothing is nearer to it, and no place is given."""
    present = [one for one in contenders if (series := one.series.get(question.id)) is not None and series.known]
    if unlike or not question.may_be_scored:
        present = []
    pairs = list(combinations(present, 2))
    contrasts = [measured_contrast(a, b, question.id, question.unit) for a, b in pairs]
    found = [one for one in contrasts if one is not None]
    judged = judge_family(found, [_margin(question, one) for one in found])
    beats = beats_of(pairs, judged, question.larger_is_better)
    names = [one.name for one in present]
    rank = places(names, beats)
    return ComparedRequirement(
        id=question.id,
        text=question.text,
        metric=question.metric,
        comparison=question.comparison,
        larger_is_better=question.larger_is_better,
        bound=question.bound,
        unit=question.unit,
        severity=question.severity,
        equivalence_share=question.margin,
        contenders=[
            _standing(one, question, [rank[one.name].best, rank[one.name].worst] if one.name in rank else None)
            for one in contenders
        ],
        not_compared=[unlike_document(one) for one in unlike],
        unbeaten=unbeaten(names, beats),
        contrasts=[
            pair_compared(a.name, b.name, one, question.larger_is_better)
            for (a, b), one in zip(pairs, judged, strict=True)
        ],
    )


def _margin(question: Question, found: Contrast) -> float:
    """For differences the share is of the bound; at a bound of 0 only the very same value is the same. Degrees have no shares."""
    if of_temperature(question.unit):
        return TEMPERATURE_MARGIN_K
    if found.scale == RATIO or isinstance(question.bound, str):
        return question.margin if found.scale == RATIO else 0.0
    return question.margin * abs(question.bound)


def unlike_document(one: Difference) -> Unlike:
    return Unlike(one.what, [(value, list(names)) for value, names in one.sides], list(one.concerns), one.of_definition)


def _standing(one: Contender, question: Question, place: list[int] | None) -> Standing:
    series, decision = one.series.get(question.id), one.decisions.get(question.id)
    if series is None or not (known := series.known):
        return Standing(one.name, 0, None, None, None, None, [], decision, place)
    value, interval = estimate(series, question.unit)
    ends = None if interval is None else list(interval)
    return Standing(one.name, len(known), value, ends, min(known), max(known), list(series.values), decision, place)


def beats_of(
    pairs: Sequence[tuple[Contender, Contender]], judged: Sequence[Judged], larger_is_better: bool
) -> dict[str, set[str]]:
    beats: dict[str, set[str]] = {}
    for (a, b), one in zip(pairs, judged, strict=True):
        if one.verdict in (FIRST, SECOND):
            better, worse = (a, b) if (one.verdict == FIRST) == larger_is_better else (b, a)
            beats.setdefault(better.name, set()).add(worse.name)
    return beats


def pair_compared(first: str, second: str, judged: Judged, larger_is_better: bool) -> PairCompared:
    one, interval = judged.contrast, judged.interval
    better = {FIRST: first if larger_is_better else second, SECOND: second if larger_is_better else first}
    return PairCompared(
        first=first,
        second=second,
        scale=one.scale,
        estimate=one.shown(one.estimate),
        interval=None if interval is None else [one.shown(end) for end in interval],
        level=judged.level,
        method=one.method,
        method_text=METHODS.get(one.method, one.method),
        n=list(one.n),
        p=one.p,
        p_holm=judged.p_holm,
        effect_size=one.effect,
        superiority=one.superiority,
        rank_p=one.rank_p,
        two_modes=one.two_modes,
        margin=judged.margin,
        verdict=judged.verdict if judged.verdict in (EQUIVALENT, UNDECIDED) else "better",
        better=better.get(judged.verdict),
        more_runs=judged.more,
    )


def pareto(
    contenders: Sequence[Contender], questions: Sequence[Question], speed: str | None, unlike: Sequence[Difference]
) -> Pareto | None:
    """Price (or, without prices, W per GB/s) against throughput, with which contender dominates which among those that may be chosen.

    None where fewer than two have both, where no contender may be chosen, or where the throughput cannot be compared."""
    question = next((one for one in questions if one.id == speed), None)
    if question is None or any(one.bars(question.id) for one in unlike):
        return None
    for key in (COST, POWER):
        shown = [one for one in contenders if _has_both(one, question.id, key)]
        if len(shown) < 2 or all(one.barred for one in shown) or not _comparable(shown, key, unlike):
            continue
        if any(not one.barred for one in contenders if one not in shown):
            continue  # a front without one that may be chosen is no front
        kinds = dominance({one.name: _ranges(one, question.id, key) for one in shown if not one.barred})
        points = [_drawn(one, question.id, key, kinds.get(one.name, (BARRED, []))) for one in shown]
        return Pareto(key, question.id, question.unit, points)
    return None


def _has_both(one: Contender, speed: str, key: str) -> bool:
    return None not in (_ends(one, speed), _ends(one, key))


def _comparable(shown: Sequence[Contender], key: str, unlike: Sequence[Difference]) -> bool:
    if key == COST:
        return len({one.currency for one in shown}) == 1
    return not any(one.bars(key) for one in unlike)


def _drawn(one: Contender, speed: str, key: str, kind: tuple[Dominance, list[str]]) -> ParetoPoint:
    """Returns one point of the drawing. A barred contender is neither on the front nor does it dominate anybody."""
    x, y = _ends(one, key), _ends(one, speed)
    assert x is not None and y is not None
    return ParetoPoint(one.name, list(x), list(y), bool(one.barred), *kind)


def _ranges(one: Contender, speed: str, key: str) -> tuple[Range, Range]:
    """Throughput and what it costs, larger being better in both."""
    up, across = _range(one, speed), _range(one, key)
    return up, Range(-across.value, -across.high, -across.low)


def _range(one: Contender, key: str) -> Range:
    """A declared figure is exact. One run's value may lie anywhere as far as anybody knows: it dominates nothing for certain."""
    ends = _ends(one, key)
    assert ends is not None
    sure = key in one.figures or (len(one.series[key].known) > 1 and one.units != REPETITIONS)
    return Range(*ends) if sure else Range(ends[0], -math.inf, math.inf)


def _ends(one: Contender, key: str) -> tuple[float, float, float] | None:
    """Value, low, high; None where one is missing."""
    figure = one.figures.get(key)
    if figure is not None:
        return None if figure.value is None else (figure.value, figure.value, figure.value)
    series = one.series.get(key)
    if series is None or not series.known or series.has_holes:
        return None
    value, interval = estimate(series, "")
    return value, *(interval or (value, value))
