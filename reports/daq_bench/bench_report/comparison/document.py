"""comparison.json as a paper: first page, then the sections in the order in which a board asks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.documents.comparison import ComparedRequirement, ComparisonDocument
from daq_bench.bench_model.documents.struct import read
from daq_bench.bench_model.workloads.raid_vs_3dxp.document import RaidComparison
from daq_bench.bench_report.base.marks import see_section
from daq_bench.bench_report.base.units import NONE, SIDES, SPELLED, THIN, count, percent, quantity, significant
from daq_bench.bench_report.comparison import first_page, tables, unranked, words
from daq_bench.bench_report.comparison.curve_figures import curve_figures
from daq_bench.bench_report.comparison.figures import (
    Bound,
    PriceRow,
    ValueRow,
    price_figure,
    share_figure,
    value_figure,
)
from daq_bench.bench_report.comparison.ownership import ownership_table
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.made_by import seal_of_runs
from daq_bench.bench_report.document.section import Bullets, Lacking, Part, Section
from daq_bench.bench_report.output.paper import Paper
from daq_bench.bench_report.workloads.raid_vs_3dxp.section import performance, rates_figure

FIGURES_MAX = 4
SEEN = (6, 1 - 0.05 ** (1 / 6))  # runs, and the share of bad ones that they miss with a chance of 5 %
NAMED_MAX = 2  # runs that the warning on the first page names; the section has all


def paper_of(found: ComparisonDocument, command: str, moment: datetime) -> Paper:
    ranked = sum(run.ranked for run in found.runs)
    sets = found.kind == "configurations"
    what = "configurations of one run" if sets else "candidates"
    number = len(found.contenders) + len(found.not_ranked)
    shown = unranked.mark(found)
    side = (
        (Section("unranked", "Measurements of runs that do not count", tuple(unranked.side_by_side(found))),)
        if found.unranked
        else ()
    )
    sections = _told_once(
        *(() if found.contenders else side),
        Section("ranking", "Compliance and ranking for each requirement", tuple(_ranking(found))),
        *((Section("curves", "Curves laid over each other", drawn),) if (drawn := tuple(curve_figures(found))) else ()),
        *_sets(found),
        Section("compared", "What was compared", (tables.runs(found), *_named(found))),
        Section("differences", "Differences, with intervals and effect sizes", tables.differences(found)),
        Section("same", "What is not distinguishable", tuple(tables.not_distinguishable(found))),
        Section("cost", "Price, power, room and wear beside speed", tuple(_cost(found))),
        Section("firmness", "How firm the decision is", tuple(_firmness(found))),
        Section("conditions", "Conditions that differ", (*tables.unlike(found), *tables.conditions(found))),
        *(side if found.contenders else ()),
        Section("method", "How this was computed", tuple(_method(found, command))),
    )
    scaled = sorted({run.scale for run in found.runs if run.ranked and run.scale and run.scale < 1})
    boxes = [*_accepted(found)]
    if scaled:
        of = ", ".join(in_digits(one, 6) for one in scaled)
        boxes.append(("Not at full scale", (f"The load was {of} of one readout unit.",)))
    return Paper(
        kicker="Comparison report",
        title=("RAID and 3D XPoint: " if sets else "")
        + f"{number} {what}: {found.scenario.title or found.scenario.id}",
        meta=(
            f"Requirements: {found.requirement.title or found.requirement.id}",
            f"{len(found.runs)} run{'s' if len(found.runs) != 1 else ''}, of which {ranked} count{'s' if ranked == 1 else ''}; "
            f"newest of {moment:%Y-%m-%d %H:%M} UTC",
        ),
        running=f"{found.scenario.id}: {number} {what}",
        badge=words.badge(found),
        meaning=words.meaning(found),
        reasons=first_page.first_reasons(words.reasons(found)),
        boxes=tuple(boxes),
        summary=first_page.front_matrix(found),
        notes=(first_page.rule(found),),
        figure=first_page.margin_figure(found),
        mark=shown,
        sections=sections,
        keywords=("comparison", found.scenario.id, found.requirement.id),
        moment=moment,
        seal=seal_of_runs(run.manifest_sha256 for run in found.runs),
    )


def _told_once(*sections: Section) -> tuple[Section, ...]:
    """The sections that say something. The missing ones stand in one list, before how it was computed."""
    kept, missing = list[Section](), dict[str, None]()
    for one in sections:
        missing.update(dict.fromkeys(part.text for part in one.parts if isinstance(part, Lacking)))
        if parts := tuple(part for part in one.parts if not isinstance(part, Lacking)):
            kept.append(replace(one, parts=parts))
    said = [Section("missing", "What this comparison cannot say", (Bullets(tuple(map(_capital, missing))),))]
    return (*kept[:-1], *(said if missing else []), *kept[-1:])


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


def _accepted(found: ComparisonDocument) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The warning on the first page where runs are ranked that no trusted key signed."""
    accepted = [run.run_id for run in found.runs if run.run_id in found.accepted_unsigned]
    if accepted:
        more = f" and {len(accepted) - NAMED_MAX} more" if len(accepted) > NAMED_MAX else ""
        why = (
            "Nobody vouches for these runs: anybody can have made them. They are ranked because --accept-unsigned asked for it: "
            f"{', '.join(accepted[:NAMED_MAX])}{more} ({see_section('compared')})."
        )
        yield "Unsigned runs are ranked", (why,)


def _sets(found: ComparisonDocument) -> tuple[Section, ...]:
    """Shows what no requirement asks of one run's configurations: latency, CPU time of md, and what others published."""
    if found.sets is None:
        return ()
    sets = read(found.sets, RaidComparison, "comparison.json: sets")
    rates = rates_figure(sets)
    without = () if sets.published else (Lacking("figures of published devices: the bundle holds none"),)
    parts = (performance(sets), *((rates,) if rates else ()), *without)
    return (Section("sets", "Latency, CPU of md, and published devices", parts),)


def _named(found: ComparisonDocument) -> Iterator[Part]:
    if not found.contenders:
        yield Lacking("no run of any contender counts as evidence, so that nothing is ranked")


def _ranking(found: ComparisonDocument) -> Iterator[Part]:
    reasons = words.reasons(found)
    if first_page.first_reasons(reasons) != tuple(reasons):
        yield Bullets(tuple(reasons))
    yield from first_page.further_matrices(found)
    if not found.contenders:
        yield Lacking("a ranking: no run counts as evidence")
        return
    yield tables.summary(found)
    yield " ".join(tables.summary_notes(found))
    yield (
        "A place is a range: as far ahead and as far behind as the differences between contenders are certain. Contenders that share "
        "a range cannot be told apart in that requirement."
    )
    yield tables.ranking(found)
    for one in _drawn(found):
        yield _values(found, one)


def _drawn(found: ComparisonDocument) -> list[ComparedRequirement]:
    """Returns the requirements whose values scatter: those that the score weighs first, then mandatory ones."""
    keys = [one.key for one in found.criteria]
    scatter = [
        one
        for one in found.requirements
        if one.comparison != "equal"  # met or missed, and nothing in between
        and sum(each.value is not None for each in one.contenders) > 1
        and any(each.interval and each.interval[0] < each.interval[1] for each in one.contenders)
    ]
    order = sorted(scatter, key=lambda one: (one.id not in keys, one.severity != "mandatory"))
    of_metric = {
        one.metric: one for one in reversed(order)
    }  # one figure for each metric, in whatever units it is asked for
    return [one for one in order if one is of_metric[one.metric]][:FIGURES_MAX]


def _values(found: ComparisonDocument, one: ComparedRequirement) -> Figure:
    barred = {each.name for each in found.contenders if each.barred}
    rows = [
        ValueRow(
            words.label(found, each.name), tuple(value for value in each.values if value is not None), each.value,
            (each.interval[0], each.interval[1]) if each.interval else None, each.name in barred,
        )
        for each in one.contenders
        if each.value is not None
    ]  # fmt: skip
    unit = SPELLED.get(one.unit, one.unit)
    bound = None
    if not isinstance(one.bound, str):
        text = f"bound at full scale: {SIDES[one.comparison]} {quantity(one.bound, one.unit, trim=True)}"
        bound = Bound(one.bound, text, one.comparison)
    counts = ", ".join(f"{words.letters(found)[each.name]} {each.n}" for each in one.contenders if each.n)
    better = "More is better" if one.larger_is_better else "Less is better"
    caption = f"{better}. Values per contender: {counts} ({_units(found)}). Bar: 95{THIN}% interval of the mean."
    if bound is not None and not tables.near(
        bound.value, [value for each in one.contenders for value in each.values if value is not None]
    ):
        caption += f" The {bound.text} lies off the scale."
        bound = None
    return value_figure(f"values-{one.id}", f"{one.id}: {one.text}", caption, rows, f"{one.id} ({unit})", bound)


def _units(found: ComparisonDocument) -> str:
    kinds = list(dict.fromkeys(one.units for one in found.contenders))
    texts = {
        "runs": "one per run", "repetitions": "repetitions of a single run: they do not show how runs scatter",
        "rounds": "one per round",
    }  # fmt: skip
    return "; ".join(texts[kind] for kind in kinds)


def _cost(found: ComparisonDocument) -> Iterator[Part]:
    if not found.contenders:
        yield Lacking("figures of contenders: no run counts as evidence")
        return
    yield tables.figures(found)
    yield from tables.figure_reasons(found)
    yield from ownership_table(found)
    if found.pareto is None:
        yield Lacking(
            "the plot of price against margin: contenders that may be chosen have no price, and no power instead of it, or their "
            "throughput cannot be compared"
        )


def _firmness(found: ComparisonDocument) -> Iterator[Part]:
    if len(found.scores) < 2:
        why = "; ".join(one.text for one in found.decision.why)
        yield Lacking(f"a score: {why or 'fewer than two contenders may be chosen'}")
        return
    yield tables.scores(found)
    rows = [(words.label(found, one.name), one.weight_share, one.chance_first) for one in found.scores]
    caption = (
        "Solid: the share of all possible weights of the criteria for which a contender is ahead, prices and mean values taken as "
        "they are. Hatched: the weights as given, but every measured value drawn anew from its interval."
    )
    if found.weight_share_error:
        error = percent(100 * found.weight_share_error, 2)
        caption += f" {significant(found.draws, 2)} draws each, seed {found.seed}; standard error at most {error}."
    else:
        caption += f" The solid bars are exact; hatched: {count(found.draws)} draws, seed {found.seed}."
    if any(one.chance_first is None for one in found.scores):
        caption += " No hatched bars: the scatter of one contender is not known."
    yield share_figure("shares", "Who is ahead, whatever counts", caption, rows)
    if found.prices:
        yield tables.prices(found)
        currency = words.currency_of(found)
        shown = [
            PriceRow(
                words.label(found, one.name), one.price,
                one.break_even if one.change is not None and -1 < one.change < 2 else None,
                one.name == found.decision.best,
            )
            for one in found.prices
        ]  # fmt: skip
        caption = (
            "All else as it is. The contender ahead (solid line) stays so up to the diamond; each other (dotted) would be ahead below "
            "its own. No diamond: the price would have to more than treble."
        )
        yield price_figure("prices", "At which price the order changes", caption, shown, currency)
    else:
        yield Lacking("break-even prices: not all contenders that may be chosen have a price in one currency")


def _method(found: ComparisonDocument, command: str) -> Iterator[Part]:
    yield (
        "Only runs that count (PASS or FAIL, and no rehearsal) are ranked; who misses a mandatory requirement is shown and cannot be "
        "chosen. Values above zero are compared by ratio (on logarithms), others by difference. Contenders are paired only where they "
        "were measured in the same rounds in alternating order: then Student's t, stratified by order; else Welch's t over runs, or, with "
        "one run each, the runs' own intervals combined (MOVER), which knows no scatter between runs and decides nothing. Each row of the "
        "differences names its method. An exact requirement is met or missed and never ranked."
    )
    yield (
        f"Many comparisons: the pairs within one requirement are one family, the pairs of the score another. In each, Holm's procedure "
        f"keeps the chance of one or more false \u201cbetter\u201d at {percent(100 * found.alpha)} at most. "
        f"Each interval is given at the level of its own step. Better: the whole interval beyond the margin, "
        f"{percent(found.equivalence_percent)} unless the weights file says otherwise. Equivalent: all of it within. Undecided: "
        "anything else."
    )
    yield (
        f"What so few values cannot hold: a fault that befalls a run now and then stays unseen in {SEEN[0]} runs with a chance of "
        f"{percent(5)} although it befalls {percent(100 * SEEN[1])} of them. Where the values that are there fall into two groups, "
        "nothing is decided by them."
    )
    yield (
        "The score is the weighted product of the criteria, each to the power of its share: it depends on no unit, and leaving out a "
        "loser changes nothing among the others. The methods, their sources and their measured error rates: docs/comparison.md."
    )
    tags = words.letters(found)
    yield tables.made_of([(tags.get(run.contender, NONE), run) for run in found.runs])
    yield "To make it again from the same bundles: " + command + "."
