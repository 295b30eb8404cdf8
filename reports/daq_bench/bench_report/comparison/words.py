"""The decision in plain words: which contender is best, which ones are not distinguishable from it, and what would change that.

Promise: every sentence follows from comparison.json alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.documents.comparison import ComparedContender, ComparisonDocument, PairCompared
from daq_bench.bench_model.tender.tender import CLEAR, NO_AWARD, NOBODY, ONLY, TIED
from daq_bench.bench_report.base.marks import see_section
from daq_bench.bench_report.base.units import THIN, percent, quantity, significant, span
from daq_bench.bench_report.document.direct_labels import shortened
from daq_bench.bench_report.output.paper import Badge

LETTERS = "ABCDEFGH"
NAME_MAX = 30
RIVALS_SHOWN = 3
BADGES = {
    CLEAR: Badge("DECIDED", "\u2714", "pass"),
    TIED: Badge("NOT TOLD APART", "\u2248", "tied"),
    ONLY: Badge("ONE IS LEFT", "\u2192", "pass"),
    NOBODY: Badge("NO CHOICE", "\u2298", "no-verdict"),
    NO_AWARD: Badge("NO AWARD", "\u2298", "no-verdict"),
}
SHORT = {"cost": "price", "power_per_rate": "W per GB/s", "density": "GB/s per U", "endurance": "endurance"}


def letters(found: ComparisonDocument) -> dict[str, str]:
    """A letter for each contender, A for the one ahead: by the score, else by throughput, then those that are not ranked."""
    names = [one.name for one in found.contenders]
    scored = {one.name: place for place, one in enumerate(found.scores)}
    speed = found.throughput
    rates = {one.name: one.value for one in speed.contenders} if speed else {}
    barred = {one.name for one in found.contenders if one.barred}
    names.sort(key=lambda name: (scored.get(name, len(scored)), name in barred, -(rates.get(name) or 0.0)))
    return dict(zip(names + found.not_ranked, LETTERS, strict=False))


def label(found: ComparisonDocument, name: str) -> str:
    """Letter and name, cut in the middle where a figure has no room for it."""
    return f"{letters(found)[name]}  {shortened(name, NAME_MAX)}"


def badge(found: ComparisonDocument) -> Badge:
    """Returns the badge. A contender that is left because others were not measured is not called the better one."""
    kind = found.decision.kind
    return replace(BADGES[ONLY], css="tied") if kind == ONLY and found.not_ranked else BADGES[kind]


def meaning(found: ComparisonDocument) -> str:
    """The recommendation and its reason, in two sentences."""
    decision = found.decision
    kind = decision.kind
    if kind == NOBODY:
        return f"Choose no candidate yet. This evidence allows no choice: {_why_nobody(found)}."
    if kind == ONLY:
        return f"Only {_tagged(found, decision.ahead)} may be chosen. Every other one is barred or has no evidence that counts."
    if kind == NO_AWARD:
        said = "; ".join(one.text for one in decision.why)
        return f"No award is made: {said}. {trade_off(found)}".strip()
    if kind == CLEAR:
        within, best = percent(100 * found.score_contrasts[0].margin), _tagged(found, decision.ahead)
        return (
            f"Choose {best}. By your weights it is best, by more than chance and the indifference of {within} explain."
        )
    return f"{_tied(found)} {_choices(found)}"


def _why_nobody(found: ComparisonDocument) -> str:
    if found.contenders:
        return "each one misses, or leaves open, a mandatory requirement"
    return "no run counts as evidence" if found.not_ranked else "there is no run"


def _tied(found: ComparisonDocument) -> str:
    decision, tags = found.decision, letters(found)
    near = _listed([tags[one.name] for one in decision.near])
    if _score_alike(found):
        return f"{_tagged(found, decision.ahead)} and {near} cannot be told apart."
    return f"{_tagged(found, decision.ahead)} scores highest, but {near} cannot be told from it."


def _choices(found: ComparisonDocument) -> str:
    """Says how much the choice between those that are not told apart costs, and how many runs would tell them apart."""
    near = found.decision.near
    more = [one.more_runs for one in near if one.verdict != "equivalent"]
    known = [one for one in more if one is not None]
    measure = (
        "more measuring would not change that: they are equivalent" if not more
        else f"make about {max(known)} more runs of each to tell them apart" if len(known) == len(more)
        else "make more runs of each to tell them apart; how many is not known"
    )  # fmt: skip
    if saved := _saved(found):
        least, following, amount = saved
        return (
            f"Choose {_tagged(found, least)}, which costs {amount} less than {_tagged(found, following)}; or {measure}."
        )
    return f"Choose by what was not weighed, or {measure}." if more else f"Choose by what was not weighed; {measure}."


def trade_off(found: ComparisonDocument) -> str:
    """Speed and cost of the faster of the two fastest that may be chosen; empty where they are unknown."""
    speed = found.throughput
    if speed is None or speed.not_compared:
        return "The tables show what was measured and what each meets."
    rates = {each.name: each.value for each in speed.contenders if each.value}
    free = [one for one in found.contenders if not one.barred and one.name in rates]
    if len(free) < 2:
        return "The tables show what was measured and what each meets."
    fast, slow = sorted(free, key=lambda one: -rates[one.name])[:2]
    pair = {fast.name, slow.name}
    contrast = next((one for one in speed.contrasts if {one.first, one.second} == pair), None)
    share = percent(100 * (rates[fast.name] / rates[slow.name] - 1), 2)
    more = more_text(contrast.more_runs if contrast else None)
    sure = (
        f"is {share} faster than {_tagged(found, slow.name)}"
        if contrast and contrast.better
        else f"and {_tagged(found, slow.name)} are not told apart by throughput ({more})"
    )
    return f"{_tagged(found, fast.name)} {sure}{_costs_more(found, fast, slow)}."


def _costs_more(found: ComparisonDocument, one: ComparedContender, other: ComparedContender) -> str:
    mine, its = (each.figures["cost"].value for each in (one, other))
    if mine is None or its is None:
        return "; not both have a price"
    if one.currency != other.currency:
        return f"; their prices are in {one.currency} and {other.currency}"
    more, tags = mine - its, letters(found)
    if not more:
        return ", at the same price"
    amount = quantity(float(in_digits(abs(more), 4)), one.currency or "", trim=True)
    return f"; {tags[one.name]} costs {amount} {'more' if more > 0 else 'less'}"


def reasons(found: ComparisonDocument) -> list[str]:
    """Returns the reasons for the decision, in the order in which a reader asks."""
    return [
        *_remedies(found), *_behind(found), *_near(found), *_barred(found), *_conditions(found), *_price(found),
        *_weights(found), *_criteria(found),
    ]  # fmt: skip


def _score_alike(found: ComparisonDocument) -> bool:
    """Says whether the scores are alike, so that the name alone puts one of them first."""
    return len(found.scores) > 1 and found.scores[1].relative == 1.0


def _remedies(found: ComparisonDocument) -> Iterator[str]:
    for one in found.decision.why:
        yield f"For an award: {one.remedy[0].lower()}{one.remedy[1:]} ({one.text})."


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def against_best(found: ComparisonDocument, name: str) -> PairCompared | None:
    """Returns the score's contrast of `name` with the one that is ahead, turned so that the one ahead comes first."""
    best = found.decision.best
    for one in found.score_contrasts:
        if {one.first, one.second} == {best, name}:
            if one.first == best:
                return one
            interval = one.interval
            turned = None if interval is None else [1 / interval[1], 1 / interval[0]]
            return msgspec.structs.replace(one, first=best, second=name, estimate=1 / one.estimate, interval=turned)
    return None


def _behind(found: ComparisonDocument) -> Iterator[str]:
    tags = letters(found)
    contrasts = [(name, one) for name in found.decision.behind if (one := against_best(found, name)) is not None]
    if len(contrasts) == 1:
        name, one = contrasts[0]
        yield f"{_tagged(found, name)} is behind: {tags[found.decision.ahead]} scores {ratio_text(one)} as much."
    elif contrasts:
        said = _listed([f"{tags[name]} {ratio_text(one)}" for name, one in contrasts])
        yield f"Behind for certain, by how much {tags[found.decision.ahead]} scores more: {said}."


def _tagged(found: ComparisonDocument, name: str) -> str:
    """`B (server-b)`, a long name cut in the middle: the table below has all of it."""
    return f"{letters(found)[name]} ({shortened(name, NAME_MAX)})"


def ratio_text(one: PairCompared) -> str:
    """`1.34 times (1.21 to 1.48)`."""
    text = f"{significant(one.estimate, 3)}{THIN}times"
    interval = one.interval
    if interval is None:
        return text
    if interval[0] == interval[1]:
        return f"{text} (exact)"
    return f"{text} ({span(interval)})"


def _near(found: ComparisonDocument) -> Iterator[str]:
    tags = letters(found)
    for one in found.decision.near:
        name = one.name
        contrast = against_best(found, name)
        said = f": {tags[found.decision.ahead]} scores {ratio_text(contrast)} as much" if contrast else ""
        if one.verdict == "equivalent":
            yield f"{_tagged(found, name)} is equivalent within {percent(100 * contrast.margin) if contrast else 'the margin'}{said}."
        else:
            yield f"{_tagged(found, name)} is undecided{said}; {more_text(one.more_runs)}."


def _saved(found: ComparisonDocument) -> tuple[str, str, str] | None:
    """The cheapest of those that are not told apart, the one after it, and the difference; None unless all have a price in one currency."""
    decision = found.decision
    near = [decision.best, *(one.name for one in decision.near)]
    costs, currencies = dict[str, float](), set[str]()
    for one in found.contenders:
        if one.name in near and (cost := one.figures["cost"].value) is not None and one.currency:
            costs[one.name] = cost
            currencies.add(one.currency)
    if len(costs) < len(near) or len(currencies) != 1:
        return None
    (least, price), (following, more) = sorted(costs.items(), key=lambda one: one[1])[:2]
    if more <= price:
        return None
    return least, following, quantity(float(in_digits(more - price, 4)), currencies.pop(), trim=True)


def more_text(more: int | None) -> str:
    if more is None:
        return "more runs of each are needed, how many is not known"
    return f"about {more} more of each would decide"


def _barred(found: ComparisonDocument) -> Iterator[str]:
    """Yields a sentence for each reason, with all contenders that share it."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for one in found.contenders:
        if one.barred:
            reasons.setdefault(("may not be chosen", one.barred), []).append(one.name)
    for name in found.not_ranked:
        own = [run for run in found.runs if run.contender == name or found.kind == "configurations"]
        why = "; ".join(dict.fromkeys(f"{run.outcome}: {run.reason}" for run in own))
        reasons.setdefault(("not ranked", f"no run of it counts ({why})"), []).append(name)
    for (what, why), names in reasons.items():
        verb = "" if what.startswith("may") else "is " if len(names) == 1 else "are "
        yield f"{_listed([_tagged(found, name) for name in names])} {verb}{what}: {why}."


def _price(found: ComparisonDocument) -> Iterator[str]:
    """Yields the prices at which the order changes: for the one ahead, and for those whose price would have to change least."""
    if found.decision.kind != CLEAR:
        return  # nobody is ahead for certain
    tags, currency = letters(found), currency_of(found)
    others = list[tuple[float, str]]()
    for one in found.prices:
        if one.break_even is None or one.change is None:
            continue
        price = f"{quantity(float(in_digits(one.break_even, 4)), currency)} ({change_text(one.change)})"
        if one.name == found.decision.best:
            yield f"{tags[one.name]} stays ahead of {tags[one.rival]} up to a price of {price}."
        else:
            others.append((one.change, f"{tags[one.name]} below {price}"))
    if others:
        least = sorted(others, key=lambda one: -one[0])[:RIVALS_SHOWN]
        yield f"By its price alone would be ahead: {_listed([text for _, text in least])}."


def change_text(change: float) -> str:
    return f"{'+' if change >= 0 else chr(0x2212)}{significant(abs(100 * change), 3)}{THIN}%"


def currency_of(found: ComparisonDocument) -> str:
    known = {one.currency for one in found.contenders if one.currency}
    return known.pop() if len(known) == 1 else ""


def _weights(found: ComparisonDocument) -> Iterator[str]:
    if len(found.scores) < 2 or len(found.criteria) < 2:
        return
    tags = letters(found)
    shares = sorted(found.scores, key=lambda one: -one.weight_share)
    first, *others = [f"{tags[one.name]} {percent(100 * one.weight_share)}" for one in shares if one.weight_share]
    text = f"Ahead over all possible weights of these criteria: {first}"
    yield text + (f", {_listed(others)}." if others else ", whatever counts how much.")


def _criteria(found: ComparisonDocument) -> Iterator[str]:
    if found.criteria:
        said = ", ".join(f"{SHORT.get(one.key, one.key)} {percent(100 * one.share)}" for one in found.criteria)
        left = [SHORT.get(one.key, one.key) for one in found.criteria_left_out if one.weight]
        if left:
            yield f"Your weights could not be used: {_listed(left)} left out, {said} would remain."
        else:
            yield f"Weights: {said} (from the weights file)."


def _conditions(found: ComparisonDocument) -> Iterator[str]:
    if found.unlike:
        named = list(dict.fromkeys(key for one in found.unlike for key in one.concerns))
        what = "anything" if any(not one.concerns for one in found.unlike) else _listed(named)
        yield f"Not compared, for the contenders are not alike in it: {what} ({see_section('conditions')})."
    between = [one.what for one in found.conditions if one.between]
    if between:
        shown = ", ".join(between[:4]) + (f" and {len(between) - 4} more" if len(between) > 4 else "")
        yield f"The contenders were not measured under the same conditions: {shown} ({see_section('conditions')})."
