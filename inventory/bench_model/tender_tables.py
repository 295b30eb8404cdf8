"""Tables of a comparison: each requirement with every contender's value and place and every pair; price against throughput. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from bench_model.contenders import COST, POWER, Contender, Question, Series, estimate, measured_contrast
from bench_model.contrasts import FIRST, METHODS, RATIO, SECOND, Contrast, Judged, judge_family
from bench_model.pareto import Range, dominance
from bench_model.ranking import places, unbeaten

Document = dict[str, Any]
TEMPERATURE_MARGIN_K = 1.0  # [P] what drives' sensors resolve


def compared_series(question: Question, one: Contender) -> Series | None:
    """What is compared: the values, or their distance to what was asked for exactly."""
    series = one.series.get(question.id)
    if series is None or question.comparison != "equal" or isinstance(question.bound, str):
        return series
    bound = question.bound
    return Series(tuple(None if value is None else abs(value - bound) for value in series.values))


def ranking(question: Question, contenders: Sequence[Contender]) -> Document:
    """One requirement: every contender's value and place, and every pair."""
    shown = {one.name: one.series.get(question.id) for one in contenders}
    present = [
        Contender(**{**vars(one), "series": {question.id: series}})
        for one in contenders
        if (series := compared_series(question, one)) is not None and series.known
    ]
    pairs = list(combinations(present, 2))
    contrasts = [measured_contrast(a, b, question.id, question.unit) for a, b in pairs]
    found = [one for one in contrasts if one is not None]
    judged = judge_family(found, [_margin(question, one) for one in found])
    beats = beats_of(pairs, judged, question.larger_is_better)
    names = [one.name for one in present]
    rank = places(names, beats)
    return {
        "id": question.id,
        "text": question.text,
        "metric": question.metric,
        "comparison": question.comparison,
        "bound": question.bound,
        "unit": question.unit,
        "severity": question.severity,
        "equivalence_share": question.margin,
        "contenders": [
            {
                "name": one.name,
                **_estimated(shown[one.name], question.unit),
                "decision": one.decisions.get(question.id),
                "place": [rank[one.name].best, rank[one.name].worst] if one.name in rank else None,
            }
            for one in contenders
        ],
        "unbeaten": unbeaten(names, beats),
        "contrasts": [
            contrast_document(a.name, b.name, one, question.larger_is_better)
            for (a, b), one in zip(pairs, judged, strict=True)
        ],
    }  # fmt: skip


def _margin(question: Question, found: Contrast) -> float:
    """For differences the share is of the bound; at a bound of 0 only the very same value is the same. Degrees have no shares."""
    if question.unit == "degC":
        return TEMPERATURE_MARGIN_K
    if found.scale == RATIO or isinstance(question.bound, str):
        return question.margin if found.scale == RATIO else 0.0
    return question.margin * abs(question.bound) if question.comparison != "equal" else 0.0


def _estimated(series: Series | None, unit: str) -> Document:
    if series is None or not series.known:
        return {"n": 0, "value": None, "interval": None, "low": None, "high": None, "values": []}
    value, interval = estimate(series, unit)
    known = series.known
    return {
        "n": len(known),
        "value": value,
        "interval": interval,
        "low": min(known),
        "high": max(known),
        "values": series.values,
    }


def beats_of(
    pairs: Sequence[tuple[Contender, Contender]], judged: Sequence[Judged], larger_is_better: bool
) -> dict[str, set[str]]:
    beats: dict[str, set[str]] = {}
    for (a, b), one in zip(pairs, judged, strict=True):
        if one.verdict in (FIRST, SECOND):
            better, worse = (a, b) if (one.verdict == FIRST) == larger_is_better else (b, a)
            beats.setdefault(better.name, set()).add(worse.name)
    return beats


def contrast_document(first: str, second: str, judged: Judged, larger_is_better: bool) -> Document:
    one, interval = judged.contrast, judged.interval
    better = {FIRST: first if larger_is_better else second, SECOND: second if larger_is_better else first}
    return {
        "first": first,
        "second": second,
        "scale": one.scale,
        "estimate": one.shown(one.estimate),
        "interval": None if interval is None else [one.shown(end) for end in interval],
        "level": judged.level,
        "method": one.method,
        "method_text": METHODS.get(one.method, one.method),
        "n": one.n,
        "p": one.p,
        "p_holm": judged.p_holm,
        "effect_size": one.effect,
        "superiority": one.superiority,
        "rank_p": one.rank_p,
        "margin": judged.margin,
        "verdict": "better" if judged.verdict in better else judged.verdict,
        "better": better.get(judged.verdict),
        "more_runs": judged.more,
    }


def pareto(contenders: Sequence[Contender], questions: Sequence[Question], speed: str | None) -> Document | None:
    """Price (or, without prices, W per GB/s) against throughput, with who is dominated. None where fewer than two have both."""
    question = next((one for one in questions if one.id == speed), None)
    if question is None:
        return None
    for key in (COST, POWER):
        points: list[Document] = []
        for one in contenders:
            series, across = one.series.get(question.id), _range(one, key)
            if across is not None and series is not None and series.known:
                value, interval = estimate(series, question.unit)
                low, high = interval or (value, value)
                points.append(
                    {"name": one.name, "x": list(across), "y": [value, low, high], "barred": bool(one.barred)}
                )
        if len(points) > 1:
            kinds = dominance({
                p["name"]: (Range(*p["y"]), Range(-p["x"][0], -p["x"][2], -p["x"][1])) for p in points  # less is better
            })  # fmt: skip
            for point in points:
                point["kind"], point["by"] = kinds[point["name"]]
            return {"x": key, "y": question.id, "unit": question.unit, "points": points}
    return None


def _range(one: Contender, key: str) -> tuple[float, float, float] | None:
    figure = one.figures.get(key)
    if figure is not None:
        return None if figure.value is None else (figure.value, figure.value, figure.value)
    series = one.series.get(key)
    if series is None or not series.known:
        return None
    value, interval = estimate(series, "")
    low, high = interval or (value, value)
    return value, low, high
