"""The comparison's tables, cell by cell as finished text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from daq_bench.bench_model.behaviour.record_power import PER_RATE
from daq_bench.bench_model.documents.comparison import (
    ComparedContender,
    ComparisonDocument,
    ContenderFigure,
    PairCompared,
    Standing,
)
from daq_bench.bench_model.documents.several import RunBehind
from daq_bench.bench_model.tender.tender import TIED
from daq_bench.bench_report.base.marks import see_section
from daq_bench.bench_report.base.units import (
    BARE_UNITS,
    MINUS,
    NONE,
    SPELLED,
    THIN,
    count,
    percent,
    quantity,
    significant,
    span,
    together,
)
from daq_bench.bench_report.comparison.words import SHORT, change_text, currency_of, letters, more_text
from daq_bench.bench_report.document.section import Lacking, Part
from daq_bench.bench_report.document.table import Table

TWO_MODES = "values fall into two groups, as of runs that are each good or bad: find out why, then measure again"
VOUCHED = "signed by a key that you trust, by your profiles, extracted again"
ROWS_MAX = 120
SIGNS = {"met": "\u2714", "missed": "\u2718", "undecided": "?"}
PB = 1e15


def near(bound: float, values: Iterable[float]) -> bool:
    """Says whether a bound lies near the values: one far away would squeeze them together on an axis."""
    low, high = min(known := list(values)), max(known)
    return low - 2 * (high - low) <= bound <= high + 2 * (high - low)


def place_text(place: list[int] | None) -> str:
    if place is None:
        return NONE
    return str(place[0]) if place[0] == place[1] else f"{place[0]}\u2013{place[1]}"


def _interval(value: float, interval: list[float] | None, digits: int = 4) -> str:
    if interval is None or interval[0] == interval[1]:
        return significant(value, digits, trim=True)
    middle, low, high = together((value, *interval), digits)
    return f"{middle} ({low} to {high})"


def by_letter(found: ComparisonDocument) -> list[ComparedContender]:
    """Returns the contenders in the order of their letters."""
    places = {name: place for place, name in enumerate(letters(found))}
    return sorted(found.contenders, key=lambda one: places[one.name])


def summary(found: ComparisonDocument) -> Table:
    """Returns a row for each contender with the figures that a board compares."""
    speed = next((one for one in found.requirements if one.id == found.speed), None)
    speeds = {each.name: each for each in speed.contenders} if speed else {}
    scores = {one.name: one for one in found.scores}
    tags = letters(found)
    rows: list[tuple[str, ...]] = []
    marked = []
    for one in by_letter(found):
        fast, figures, score = speeds.get(one.name), one.figures, scores.get(one.name)
        rows.append((
            f"{tags[one.name]} {one.name}",
            place_text(score.place) if score else "barred" if one.barred else NONE,
            significant(score.relative, 3) if score else NONE,
            _interval(fast.value, fast.interval) if fast and fast.value is not None else NONE,
            money(figures["cost"].value, one.currency),
            _plain(figures["power_per_rate"].value), _plain(figures["density"].value),
            _plain(figures["endurance"].value, PB), count(fast.n) if fast else NONE,
        ))  # fmt: skip
        if one.name == found.decision.best and found.decision.kind != TIED:
            marked.append(len(rows) - 1)
    rows += [(f"{tags[name]} {name}", "not ranked", *[NONE] * 7) for name in found.not_ranked]
    unit = f", {speed.unit}" if speed else ""
    return Table(
        ("Contender", "Place", "Score", f"Throughput{unit}", "Price", "W per GB/s", "GB/s per U", "Endurance, PB", "n"),
        "ttnnnnnnn", tuple(rows), "Contenders in the order of their score, else of their throughput.", "decision", frozenset(marked),
    )  # fmt: skip


def summary_notes(found: ComparisonDocument) -> tuple[str, ...]:
    speed = next((one for one in found.requirements if one.id == found.speed), None)
    said = [
        "Place: a range where contenders cannot be told apart. Score: of the one ahead, by the weights; "
        f"\u2013: no score, or no such figure ({see_section('cost')} says why)."
    ]
    if speed:
        said.append(
            f"Throughput: {speed.id}, {speed.text}; mean and 95{THIN}% interval over n values. "
            "1 PB = 10\u00b9\u2075 B, 1 GB = 10\u2079 B."
        )
    return tuple(said)


def money(value: float | None, currency: str | None) -> str:
    return "no price" if value is None else f"{significant(value, 4, trim=True)}{THIN}{currency or ''}".strip()


def _plain(value: float | None, unit: float = 1.0) -> str:
    return NONE if value is None else significant(value / unit, trim=True)


def runs(found: ComparisonDocument) -> Table:
    tags = letters(found)
    own = {one.name: one for one in found.contenders}
    rows, marked = [], []
    for run in sorted(found.runs, key=lambda one: (tags.get(one.contender, ""), one.run_id)):
        tag = tags.get(run.contender, NONE)
        devices = own[run.contender].devices if run.contender in own else ""
        said = "ranked" if run.ranked else f"not ranked: {run.reason}"
        marks = f"{', '.join(run.marks)}. " if run.marks else ""
        rows.append((tag, f"{run.contender}: {run.run_id}", run.word, devices or NONE, marks + said))
        if not run.ranked:
            marked.append(len(rows) - 1)
    if found.kind == "configurations":
        rows += [
            (tags[one.name], one.name, "", one.devices, one.barred or "meets what is mandatory")
            for one in found.contenders
        ]
    return Table(
        ("Tag", "Contender and run", "Outcome", "Drives", "In this comparison"), "ttttt", tuple(rows),
        "Every run that was named. An INADMISSIBLE or ERROR run is never ranked.", "compared-runs", frozenset(marked),
    )  # fmt: skip


def ranking(found: ComparisonDocument) -> Table:
    tags = letters(found)
    names = [one.name for one in by_letter(found)]
    rows = []
    for one in found.requirements:
        cells = {each.name: each for each in one.contenders}
        said = [
            "" if one.unit in BARE_UNITS else SPELLED.get(one.unit, one.unit),
            "advisory" if one.severity != "mandatory" else "",
            "not compared" if one.not_compared else "",
        ]
        marks = ", ".join(filter(None, said))
        rows.append((
            f"{one.id} {one.text}" + (f" ({marks})" if marks else ""), *(_ranked(cells[name]) for name in names),
        ))  # fmt: skip
    return Table(
        ("Requirement", *(tags[name] for name in names)), "t" + "t" * len(names), tuple(rows),
        f"Compliance and ranking. Place (none where values are met or missed only, or not alike): mean, with its 95{THIN}% interval; "
        f"{SIGNS['met']} met, {SIGNS['missed']} missed, "
        f"{SIGNS['undecided']} undecided against the bound.",
        "ranking",
    )  # fmt: skip


def _ranked(cell: Standing) -> str:
    if cell.value is None:
        return f"not measured {SIGNS.get(cell.decision or '', '')}".strip()
    sign = SIGNS.get(cell.decision or "", "")
    place = "" if cell.place is None else f"{place_text(cell.place)}: "
    return f"{place}{_interval(cell.value, cell.interval)} {sign}".strip()


def differences(found: ComparisonDocument) -> tuple[Part, ...]:
    """All pairs of the score and of each requirement whose values differ at all."""
    tags = letters(found)
    rows = [_row("Score", "1", one, tags) for one in found.score_contrasts]
    for one in found.requirements:
        rows += [_row(one.id, one.unit, each, tags) for each in one.contrasts if not _same(each)]
    if not rows:
        return (Lacking("differences: no two contenders have values of the same requirement that differ"),)
    caption = (
        "Differences of all pairs. "
        "First over second, or first less second where values can be zero. Interval: at the level of Holm's step; one is better where "
        "all of it lies beyond the margin. Effect: Hedges' g (0.8 is large). Higher: how often a value of the first exceeds one of the "
        "second. p: after Holm, of a difference within the margin. Methods: P paired rounds in alternating order, W Welch, M single "
        "runs' own intervals, S sum of errors."
    )
    shown = rows[:ROWS_MAX]
    if len(rows) > len(shown):
        caption += f" The first {ROWS_MAX} of {len(rows)}; the others are in comparison.json."
    heads = ("Requirement, pair", "First / second", "Interval", "Effect", "Higher", "p", "By", "n", "Result")
    return (Table(heads, "tnnnnnttt", tuple(shown), caption, "differences"),)


def _same(one: PairCompared) -> bool:
    """Says whether the two are exactly alike, so that there is nothing to show."""
    neutral = 1.0 if one.scale == "ratio" else 0.0
    return bool(one.estimate == neutral and one.interval in (None, [neutral, neutral]))


def _row(what: str, unit: str, one: PairCompared, tags: dict[str, str]) -> tuple[str, ...]:
    ratio, interval = one.scale == "ratio", one.interval
    pair = f"{tags[one.first]} {'/' if ratio else MINUS} {tags[one.second]}"
    shown = significant(one.estimate, 3) if ratio else quantity(one.estimate, unit, 3)
    ends = NONE if interval is None else span(interval)
    method = {"paired": "P", "welch": "W", "mover": "M", "none": NONE, "exact": "exact"}.get(one.method, "S")
    numbers = NONE if one.n == [1, 1] and method == "exact" else "/".join(count(n) for n in one.n)
    return (
        f"{what}, {pair}", shown, ends, _digits(one.effect_size),
        NONE if one.superiority is None else percent(100 * one.superiority, 2), p_text(one.p_holm), method, numbers,
        f"{tags[one.better]} better" if one.better else one.verdict,
    )  # fmt: skip


def _digits(value: float | None) -> str:
    return NONE if value is None else significant(value, 2)


def p_text(p: float | None) -> str:
    if p is None:
        return NONE
    return "< 0.0001" if p < 1e-4 else significant(p, 2)


def not_distinguishable(found: ComparisonDocument) -> Iterator[Part]:
    """Yields every pair about which nothing may be claimed, with the reason."""
    tags = letters(found)
    alike: list[str] = []
    rows: list[tuple[str, ...]] = []
    for one in found.requirements:
        if one.contrasts and all(_same(each) for each in one.contrasts):
            alike.append(one.id)
            continue
        rows += [_open(one.id, each, tags) for each in one.contrasts if each.better is None]
    rows = [_open("Score", each, tags) for each in found.score_contrasts if each.better is None] + rows
    if alike:
        yield f"Exactly the same for all contenders: {', '.join(alike)}."
    if not rows:
        compared = any(one.contrasts for one in found.requirements)
        yield (
            "Every other pair of contenders is told apart in every requirement."
            if compared
            else Lacking("pairs that cannot be told apart: no two contenders were compared")
        )
        return
    yield (
        "About the following pairs nothing may be claimed. Equivalent: whatever difference there is lies within the margin for certain. "
        "Undecided: the interval covers \u201cno difference\u201d and reaches beyond the margin, so that either may be better. More runs: "
        f"of each contender, to tell the two apart or to show them equivalent with a power of 80{THIN}%, were the truth what was seen."
    )
    shown = rows[:ROWS_MAX]
    caption = "Pairs of which nothing may be claimed."
    if len(rows) > ROWS_MAX:
        caption += f" The first {ROWS_MAX} of {len(rows)}; the others are in comparison.json."
    yield Table(
        ("Requirement, pair", "Result", "Interval", "Margin", "What would decide"),
        "ttnnt",
        tuple(shown),
        caption,
        "same",
    )


def _open(what: str, one: PairCompared, tags: dict[str, str]) -> tuple[str, ...]:
    ratio, interval = one.scale == "ratio", one.interval
    pair = f"{tags[one.first]} {'/' if ratio else MINUS} {tags[one.second]}"
    ends = "one value each" if interval is None else span(interval)
    low, high = (1 / (1 + one.margin), 1 + one.margin) if ratio else (-one.margin, one.margin)
    decide = "" if one.verdict == "equivalent" else TWO_MODES if one.two_modes else more_text(one.more_runs)
    return f"{what}, {pair}", one.verdict, ends, span((low, high)), decide or NONE


def figures(found: ComparisonDocument) -> Table:
    tags = letters(found)
    rows = []
    for one in by_letter(found):
        own = one.figures
        power, density = own["power_per_rate"], own["density"]
        rows.append((
            f"{tags[one.name]} {one.name}", one.devices, money(own["cost"].value, one.currency),
            _measured(power),
            _plain(own["rack_units"].value),
            _measured(density),
            _plain(own["endurance"].value, PB),
        ))  # fmt: skip
    judged = next((one.id for one in found.requirements if one.metric == PER_RATE), None)
    power_is = f" W per GB/s is the value that {judged} judges." if judged else ""
    return Table(
        ("Contender", "Drives", "Price", "W per GB/s", "Rack units", "GB/s per U", "Endurance, PB"), "ttnnnnn", tuple(rows),
        "Beside speed. "
        f"Power and throughput are measured, with their 95{THIN}% intervals; a single value (n = 1) has none. Price, rack units "
        f"and endurance are declared or published.{power_is}",
        "figures",
    )  # fmt: skip


def _measured(figure: ContenderFigure) -> str:
    if figure.value is None:
        return NONE
    alone = "" if figure.interval else " (n = 1)" if figure.n == 1 else " (no interval)"
    return _interval(figure.value, figure.interval) + alone


def figure_reasons(found: ComparisonDocument) -> Iterator[Part]:
    """Yields the sources of declared figures and the reasons for missing ones; each once for all that share it."""
    tags = letters(found)
    words_of = {**SHORT, "rack_units": "rack units"}
    bases: dict[tuple[str, str], list[str]] = {}
    missing: dict[tuple[str, str], list[str]] = {}
    for one in found.contenders:
        for key, what in words_of.items():
            figure = one.figures[key]
            kept = missing if figure.value is None else bases
            text = figure.reason if figure.value is None else figure.basis
            if text:
                kept.setdefault((what, text), []).append(tags[one.name])
    if bases:
        said = (f"{what[0].upper()}{what[1:]} of {', '.join(names)}: {text}." for (what, text), names in bases.items())
        yield "Declared or published, not measured. " + " ".join(said)
    for (what, text), names in missing.items():
        yield Lacking(f"{what} of {', '.join(names)}: {text}")


def scores(found: ComparisonDocument) -> Table:
    tags = letters(found)
    rows = tuple(
        (
            f"{tags[one.name]} {one.name}", place_text(one.place), significant(one.relative, 3),
            percent(100 * one.weight_share), NONE if one.chance_first is None else percent(100 * one.chance_first),
        )
        for one in found.scores
    )  # fmt: skip
    return Table(
        ("Contender", "Place", "Score", "Ahead, all weights", "Ahead, measured anew"), "ttnnn", rows,
        "Scores, relative to the one ahead. Only contenders that may be chosen.", "scores",
    )  # fmt: skip


def prices(found: ComparisonDocument) -> Table:
    tags, currency = letters(found), currency_of(found)
    rows = tuple(
        (
            f"{tags[one.name]} {one.name}", money(one.price, currency),
            "stays ahead up to" if one.name == found.decision.best else f"ahead of {tags[one.rival]} below",
            NONE if one.break_even is None else money(one.break_even, currency),
            NONE if one.change is None else change_text(one.change),
        )
        for one in found.prices
    )  # fmt: skip
    return Table(
        ("Contender", "Price", "Order", "Break-even price", "Change"), "tntnn", rows,
        "Break-even prices. At such a price the order of the scores changes, all else as it is: exact, for the mean values.", "prices",
    )  # fmt: skip


def unlike(found: ComparisonDocument) -> Iterator[Part]:
    """In what contenders are not alike, each with both sides and what is not compared for it."""
    if not found.unlike:
        yield "All contenders answered the same questions, with evidence of the same kind."
        return
    rows: list[tuple[str, ...]] = []
    for one in found.unlike:
        barred = ", ".join(one.concerns) or "everything"
        for index, (value, names) in enumerate(one.sides):
            rows.append((one.what if not index else "", value, ", ".join(names), barred if not index else ""))
    yield Table(
        ("Differs", "Value", "Of", "Not compared"), "tttt", tuple(rows),
        "Differences between runs. Where the question or the kind of evidence differs, values cannot be compared.", "unlike",
    )  # fmt: skip


def conditions(found: ComparisonDocument) -> Iterator[Part]:
    if not found.conditions:
        yield "The runs were made under the same recorded conditions: load, target, kernel, tools, tuning, firmware."
        return
    yield (
        "The following differs too and is marked. "
        "A difference between contenders cannot be told from the effect of such a condition."
    )
    tags = letters(found)
    own = {run.run_id: tags.get(run.contender, NONE) for run in found.runs}
    rows: list[tuple[str, ...]] = []
    marked = []
    for mark in found.conditions:
        if mark.between:
            marked.append(len(rows))
        for index, (value, run_ids) in enumerate(mark.values):
            kind = "between contenders" if mark.between else "between runs of one"
            rows.append((mark.what if not index else "", kind if not index else "", value, _runs_of(run_ids, own)))
    yield Table(
        ("Condition", "Differs", "Value", "Contender and its runs"),
        "tttt",
        tuple(rows),
        "Conditions that differ.",
        "conditions",
        frozenset(marked),
    )


def _runs_of(run_ids: list[str], own: dict[str, str]) -> str:
    counts: dict[str, int] = {}
    for run_id in run_ids:
        counts[own[run_id]] = counts.get(own[run_id], 0) + 1
    return ", ".join(f"{tag} ({number} run{'s' if number > 1 else ''})" for tag, number in counts.items())


def made_of(runs: Sequence[tuple[str, RunBehind]]) -> Table:
    """(tag, run) of every bundle that a document rests on. The caption says once what stands beside all of them."""
    rows = tuple(
        (tag, run.run_id, run.manifest_sha256 or "the bundle has no manifest", ", ".join(run.marks) or VOUCHED)
        for tag, run in runs
    )
    heads, said = ("Tag", "Run", "SHA-256 of its MANIFEST.sha256"), "The runs that this document rests on."
    if (marks := {row[-1] for row in rows}) and len(marks) == 1:
        return Table(heads, "ttc", tuple(row[:-1] for row in rows), f"{said} Each: {marks.pop()}.", "made-of-all")
    return Table((*heads, "Beside it"), "ttct", rows, said, "made-of")
