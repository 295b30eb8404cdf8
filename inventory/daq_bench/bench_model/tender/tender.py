"""The decision between contenders: places in each requirement, one score by the weights, and how firm it is. Pure.

`document` gives the decision part of comparison.json. A contender that misses a mandatory requirement (or has no verdict that counts) is
barred: it stands in every table and cannot be chosen. An award needs weights that the buyer declared, criteria that all have, and
contenders that answered the same question; else the document says why there is none. Families of Holm's procedure:
all pairs within one requirement; all pairs of the score."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final

import msgspec
import scipy

from daq_bench.bench_model.behaviour.record_power import PER_RATE
from daq_bench.bench_model.documents.comparison import (
    BreakEven,
    ComparedContender,
    ContenderFigure,
    CriterionLeftOut,
    CriterionUsed,
    Decision,
    DecisionKind,
    Near,
    PairCompared,
    Score,
    Tender,
    WhyNoAward,
)
from daq_bench.bench_model.statistics.bootstrap import rounded
from daq_bench.bench_model.tender.buyer_files import Weights
from daq_bench.bench_model.tender.contenders import (
    COST,
    DENSITY,
    ENDURANCE,
    POWER,
    REPETITIONS,
    Contender,
    Difference,
    Figure,
    Question,
    Series,
    Weighed,
    estimate,
    score_contrast,
    unlike_evidence,
)
from daq_bench.bench_model.tender.contrasts import (
    ALPHA,
    DIFFERENCE,
    EQUIVALENT,
    FIRST,
    RATIO,
    SECOND,
    UNDECIDED,
    Judged,
    judge_family,
)
from daq_bench.bench_model.tender.ranking import places
from daq_bench.bench_model.tender.tables import beats_of, pair_compared, pareto, ranking, unlike_document
from daq_bench.bench_model.tender.weighing import (
    DRAWS,
    SEED,
    Criterion,
    break_even_price,
    first_chances,
    normalised,
    score,
    weight_shares,
)

LABELS = {COST: "price", POWER: "W per GB/s", DENSITY: "GB/s per rack unit", ENDURANCE: "data that may be written"}
LARGER_IS_BETTER = {COST: False, POWER: False, DENSITY: True, ENDURANCE: True}
EXACT = (COST, ENDURANCE)
CLEAR: Final = "clear"
TIED: Final = "tied"
ONLY: Final = "only one may be chosen"
NOBODY: Final = "nobody may be chosen"
NO_AWARD: Final = "no award"
UNLIKE_NAMED = 3
DECLARE = "Write weights.yml (docs/comparison.md) and name it: --weights FILE"


def document(
    contenders: Sequence[Contender],
    questions: Sequence[Question],
    speed: str | None,
    weights: Weights,
    defined: Sequence[Difference] = (),
) -> Tender:
    """Everything that is decided of the contenders. `speed`: id of the requirement that stands for throughput, a rate.

    `defined`: where they were not asked the same question."""  # fmt: skip
    unlike = [*defined, *_evidence(contenders, questions)]
    rankings = [ranking(one, contenders, [each for each in unlike if each.bars(one.id)]) for one in questions]
    criteria, left_out = _criteria(contenders, questions, speed, weights, unlike)
    why = _why_no_award(contenders, questions, weights, defined, left_out)
    shares = normalised([one for one, _ in criteria]) if criteria else []
    score = _scores(contenders, [one for one, _ in criteria], weights, why)
    return Tender(
        alpha=ALPHA,
        seed=SEED,
        draws=DRAWS,
        speed=speed,
        contenders=[_contender(one) for one in contenders],
        requirements=rankings,
        criteria=[
            CriterionUsed(one.key, label, one.larger_is_better, share)
            for (one, label), share in zip(criteria, shares, strict=True)
        ],
        weights_given=bool(weights.weights),
        criteria_left_out=left_out,
        unlike=[unlike_document(one) for one in unlike],
        pareto=pareto(contenders, questions, speed, unlike),
        decision=score.decision,
        scores=score.scores,
        weight_share_error=score.error,
        score_contrasts=score.contrasts,
        prices=score.prices,
    )


def clean(value: Any) -> Any:
    """Numbers with as many digits as another machine gets too; what is not finite is null."""
    if isinstance(value, bool) or value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return rounded(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: clean(one) for key, one in value.items()}
    return [clean(one) for one in value]


def _contender(one: Contender) -> ComparedContender:
    figures = {key: _declared(figure) for key, figure in one.figures.items()}
    for key, why in ((POWER, "no power was measured"), (DENSITY, "no rack units are declared")):
        figures[key] = _measured(one.series.get(key), why)
    currency, barred = one.currency or None, one.barred or None
    return ComparedContender(one.name, one.units, barred, currency, figures, list(one.runs), one.devices)


def _declared(figure: Figure) -> ContenderFigure:
    if figure.value is None or not math.isfinite(figure.value):
        return ContenderFigure(None, reason=figure.basis)
    return ContenderFigure(figure.value, basis=figure.basis)


def _measured(series: Series | None, why: str) -> ContenderFigure:
    if series is None or not series.known:
        return ContenderFigure(None, reason=why, n=0)
    value, interval = estimate(series, "")
    return ContenderFigure(value, interval=None if interval is None else list(interval), n=len(series.known))


def _values(one: Contender, key: str) -> float | None:
    """The one value by which a criterion counts; None where there is none above zero."""
    figure = one.figures.get(key)
    if figure is not None:
        return figure.value if figure.value is not None and 0 < figure.value < math.inf else None
    series = one.series.get(key)
    if series is None or not series.known or series.has_holes or min(series.known) <= 0:
        return None
    return estimate(series, "")[0]


def _evidence(contenders: Sequence[Contender], questions: Sequence[Question]) -> Iterator[Difference]:
    power = next((one.statistic for one in questions if one.metric == PER_RATE), "median")
    for key, statistic in [*((one.id, one.statistic) for one in questions), (POWER, power)]:
        yield from unlike_evidence(key, statistic, contenders)


def _why_no_award(
    contenders: Sequence[Contender],
    questions: Sequence[Question],
    weights: Weights,
    defined: Sequence[Difference],
    left_out: Sequence[CriterionLeftOut],
) -> list[WhyNoAward]:
    """Returns the reasons why the evidence does not decide, each with its remedy."""  # fmt: skip
    eligible = sum(not one.barred for one in contenders)
    mandatory = [one.id for one in questions if one.severity == "mandatory"]
    unlike = [one for one in defined if not one.concerns or any(map(one.bars, mandatory))]
    why = list[WhyNoAward]()
    if eligible and unlike:
        named = ", ".join(dict.fromkeys(one.what for one in unlike[:UNLIKE_NAMED]))
        more = f" and {len(unlike) - UNLIKE_NAMED} more" if len(unlike) > UNLIKE_NAMED else ""
        text = (
            f"who may be chosen was not decided by the same mandatory requirements, conditions and load ({named}{more})"
        )
        why.append(WhyNoAward(text, "Make the runs again alike, or leave out those that differ"))
    if eligible > 1 and not weights.weights:
        why.append(WhyNoAward("no weights were declared", DECLARE))
    if eligible > 1:
        why += [
            WhyNoAward(f"weight was given to {one.label}, and {one.reason}", one.remedy)
            for one in left_out
            if one.weight
        ]
    return why


def _criteria(
    contenders: Sequence[Contender],
    questions: Sequence[Question],
    speed: str | None,
    weights: Weights,
    unlike: Sequence[Difference],
) -> tuple[list[tuple[Criterion, str]], list[CriterionLeftOut]]:
    """The criteria to which weight was given, and those of them that cannot count, with the reason."""  # fmt: skip
    eligible = [one for one in contenders if not one.barred]
    if not eligible:
        return [], []
    by_id = {question.id: question for question in questions}
    kept, left_out = list[tuple[Criterion, str]](), list[CriterionLeftOut]()
    for key, weight in weights.weights.items():
        label = f"{key} {by_id[key].text}" if key in by_id else LABELS[key]
        larger = by_id[key].larger_is_better if key in by_id else LARGER_IS_BETTER[key]
        lacking = [one.name for one in eligible if _values(one, key) is None]
        apart = [one.what for one in unlike if one.bars(speed or "" if key == DENSITY else key)]
        if lacking:
            reason = f"{', '.join(lacking)} lack{'s' if len(lacking) == 1 else ''} a value above zero for it"
            remedy = "Give or measure it, or take the weight away"
        elif key == COST and len({one.currency for one in eligible}) > 1:
            reason, remedy = "the prices are in different currencies", "Name all prices in one currency (--prices)"
        elif apart and key not in EXACT:
            reason = f"it cannot be compared: {', '.join(apart)} differ"
            remedy = "Measure it alike, or take the weight away"
        else:
            kept.append((Criterion(key, larger, weight, price=key == COST), label))
            continue
        left_out.append(CriterionLeftOut(key, label, weight, lacking, reason, remedy))
    return (kept if any(one.weight for one, _ in kept) else []), left_out


@dataclass(frozen=True)
class _Scored:
    decision: Decision
    scores: list[Score] = field(default_factory=list)
    error: float = 0.0  # of the shares of weights
    contrasts: list[PairCompared] = field(default_factory=list)
    prices: list[BreakEven] = field(default_factory=list)


def _scores(
    contenders: Sequence[Contender], criteria: Sequence[Criterion], weights: Weights, why: Sequence[WhyNoAward]
) -> _Scored:
    eligible = [one for one in contenders if not one.barred]
    if len(eligible) < 2 or why or not criteria:
        return _Scored(_without_score(eligible, why))
    values = {one.name: {c.key: _values(one, c.key) or 0.0 for c in criteria} for one in eligible}
    scores = {name: score(criteria, own) for name, own in values.items()}
    weighed = [
        Weighed(c.key, share, 1 if c.larger_is_better else -1, c.key in EXACT)
        for c, share in zip(criteria, normalised(criteria), strict=True)
    ]
    pairs = list(combinations(eligible, 2))
    contrasts = [score_contrast(a, b, weighed, values) for a, b in pairs]
    reach = math.fsum(one.share * math.log1p(weights.margin(one.key)) for one in weighed)
    judged = judge_family(contrasts, [math.expm1(reach) if one.scale == RATIO else reach for one in contrasts])
    rank = places(list(scores), beats_of(pairs, judged, True))
    order = sorted(scores, key=lambda name: (-scores[name], name))
    shares, chances = weight_shares(criteria, values), _chances(eligible, scores, weighed)
    return _Scored(
        decision=_decision(order, pairs, judged),
        scores=[
            Score(
                name=name,
                relative=math.exp(scores[name] - scores[order[0]]),
                place=[rank[name].best, rank[name].worst],
                weight_share=shares.of[name],
                chance_first=None if chances is None else chances[name],
            )
            for name in order
        ],
        error=shares.error,
        contrasts=[
            _as_ratio(pair_compared(a.name, b.name, one, True)) for (a, b), one in zip(pairs, judged, strict=True)
        ],
        prices=_break_even(order, criteria, values),
    )


def _as_ratio(found: PairCompared) -> PairCompared:
    """A difference of scores as their ratio."""
    if found.scale != DIFFERENCE:
        return found
    return msgspec.structs.replace(
        found,
        scale=RATIO,
        estimate=math.exp(found.estimate),
        interval=None if found.interval is None else [math.exp(end) for end in found.interval],
        margin=math.expm1(found.margin),
    )


def _without_score(eligible: Sequence[Contender], why: Sequence[WhyNoAward]) -> Decision:
    without: dict[int, DecisionKind] = {0: NOBODY, 1: ONLY}
    kind: DecisionKind = NO_AWARD if why else without.get(len(eligible), TIED)
    best = eligible[0].name if kind == ONLY else None
    return Decision(kind, best, [], [], scored=False, why=list(why))


def _decision(order: Sequence[str], pairs: Sequence[tuple[Contender, Contender]], judged: Sequence[Judged]) -> Decision:
    """Returns the best contender, those that cannot be told from it (and why), and those that are certainly behind."""
    best = order[0]
    near, behind = list[Near](), list[str]()
    for (a, b), one in zip(pairs, judged, strict=True):
        if best in (a.name, b.name):
            other = b.name if a.name == best else a.name
            if one.verdict == (FIRST if a.name == best else SECOND):
                behind.append(other)
            else:  # a pair that was measured in rounds may even contradict the order of the means: it decides nothing
                near.append(Near(other, EQUIVALENT if one.verdict == EQUIVALENT else UNDECIDED, one.more))
    rank = {name: index for index, name in enumerate(order)}
    near.sort(key=lambda one: rank[one.name])
    behind.sort(key=rank.__getitem__)
    return Decision(TIED if near else CLEAR, best, near, behind, scored=True, why=[])


def _chances(
    eligible: Sequence[Contender], scores: Mapping[str, float], criteria: Sequence[Weighed]
) -> dict[str, float] | None:
    """Says how often each is ahead when what was measured is drawn anew; None where the scatter of one is not known."""
    errors, freedoms = {}, {}
    for one in eligible:
        total, freedom = 0.0, math.inf
        for c in criteria:
            if c.exact or c.share == 0:
                continue
            interval = estimate(one.series[c.key], "")[1]
            n = len(one.series[c.key].known)
            if interval is None or interval[0] <= 0 or n < 2 or one.units == REPETITIONS:
                return None
            total += c.share * math.log(interval[1] / interval[0]) / 2 / float(scipy.stats.t.ppf(0.975, n - 1))
            freedom = min(freedom, n - 1)
        errors[one.name], freedoms[one.name] = total, freedom
    return first_chances(scores, errors, freedoms)


def _break_even(
    order: Sequence[str], criteria: Sequence[Criterion], values: Mapping[str, Mapping[str, float]]
) -> list[BreakEven]:
    """Returns the price up to which the best contender stays ahead, and for each other the price below which it would be ahead."""
    if not any(one.price for one in criteria) or len(order) < 2:
        return []
    found = list[BreakEven]()
    for name in order:
        rival = order[1] if name == order[0] else order[0]
        price = break_even_price(criteria, values[name], values[rival])
        now = values[name][COST]
        change = None if price is None else price / now - 1
        found.append(BreakEven(name, rival, now, price, change))
    return found
