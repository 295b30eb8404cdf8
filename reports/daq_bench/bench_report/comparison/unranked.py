"""Measurements of runs that do not count, side by side: they compare, rank and decide nothing.

Promise: a run stands here because its evidence does not count, and each row says so; the values are those of its own verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.documents.comparison import ComparisonDocument, Unranked, UnrankedRow
from daq_bench.bench_model.tender.buyer_files import Weights
from daq_bench.bench_model.tender.contenders import Question
from daq_bench.bench_model.verdict import conclusion
from daq_bench.bench_model.verdict.conclusion import state
from daq_bench.bench_report.base.units import NONE, SIDES, quantity
from daq_bench.bench_report.comparison.bundles import COUNTS, Source
from daq_bench.bench_report.comparison.configurations import configurations
from daq_bench.bench_report.document.section import Part
from daq_bench.bench_report.document.table import LINE, Table

COLUMNS_MAX = 5
REHEARSAL, NOT_EVIDENCE, NOT_VOUCHED = (
    f"{conclusion.REHEARSAL}, UNRANKED",
    "NOT EVIDENCE, UNRANKED",
    "NOT VOUCHED FOR, UNRANKED",
)


def unranked_runs(sources: Sequence[Source], questions: Sequence[Question]) -> list[Unranked]:
    """One entry for each run that does not count and measured something, with a row for each requirement that it was asked."""
    found = []
    for source in sources:
        if source.counts or source.verdict is None:
            continue
        rows = [
            UnrankedRow(
                row.id, row.scaled_bound, row.measured, row.n, row.unit, None if row.measured is None else state(row)
            )
            for row in source.verdict.requirements
        ]
        found.append(_entry(source, source.name, rows))
    known = {one.id for one in questions}
    shown = [one for one in found if any(row.measured is not None and row.id in known for row in one.rows)]
    return sorted(shown, key=lambda one: (one.name, one.run_id))  # a candidate's runs beside each other


def unranked_configurations(source: Source) -> list[Unranked]:
    """Returns an entry for each target of a run that does not count. An ERROR run's remains are too incomplete to tell targets apart."""
    if (
        source.counts
        or source.outcome not in (*COUNTS, "INADMISSIBLE")
        or source.profile is None
        or source.candidate is None
    ):
        return []
    made, questions = configurations(source, None, Weights())
    found = []
    for one in made:
        rows = list[UnrankedRow]()
        for question in questions:
            asked = source.row(question.id)
            values = [value for value in one.series[question.id].values if value is not None]
            bound = asked.scaled_bound if asked and not isinstance(question.bound, str) else None
            measured = sum(values) / len(values) if values else None
            decision = one.decisions.get(question.id) if values else None
            rows.append(UnrankedRow(question.id, bound, measured, len(values), question.unit, decision))
        found.append(_entry(source, one.name, rows))
    return found


def _entry(source: Source, name: str, rows: list[UnrankedRow]) -> Unranked:
    return Unranked(name, source.run.run_id, source.outcome, source.word, source.run.scenario.scale, rows)


def mark(found: ComparisonDocument) -> str:
    """Returns the mark for every page; empty where each candidate has runs that count. It is no mark of those that are ranked."""
    shown, left = found.unranked, found.not_ranked
    if found.contenders and left:
        return f"{len(left)} OF {len(found.contenders) + len(left)} NOT RANKED"
    if not shown or found.contenders:
        return ""
    if all(one.word in COUNTS for one in shown):
        return NOT_VOUCHED
    rehearsal = any(one.word in (conclusion.REHEARSAL, conclusion.REHEARSAL_FAILED) for one in shown)
    return REHEARSAL if rehearsal else NOT_EVIDENCE


def side_by_side(found: ComparisonDocument) -> Iterator[Part]:
    yield (
        "These runs do not count as evidence, or did not pass the door of check-bundle. Their values stand side by side as "
        "measured. They rank nothing: a "
        "difference between two of them may be chance, and does not say which candidate to buy. Each cell says whether the numbers of "
        "that run met the bound that was asked of it."
    )
    shown = found.unranked
    for at in range(0, len(shown), COLUMNS_MAX):
        part = shown[at : at + COLUMNS_MAX]
        span = f"{at + 1} to {at + len(part)} of {len(shown)}" if len(shown) > COLUMNS_MAX else f"all {len(shown)}"
        yield _table(found, part, f"unranked-{at // COLUMNS_MAX + 1}", f"Measured by runs that do not count, {span}.")


def _table(found: ComparisonDocument, shown: Sequence[Unranked], name: str, caption: str) -> Table:
    questions = {one.id: one for one in found.asked}
    rows = []
    for key, question in questions.items():
        cells = [next((row for row in one.rows if row.id == key), None) for one in shown]
        rows.append((f"{key} {question.text}", *(_cell(cell, question.comparison) for cell in cells)))
    heads = [
        f"{one.name}: {one.word}" + (f", {in_digits(one.scale, 6)} of the load" if (one.scale or 1.0) < 1 else "")
        for one in shown
    ]
    return Table(("Requirement", *heads), "t" * (len(shown) + 1), tuple(rows), caption, name)


def _cell(cell: UnrankedRow | None, comparison: str) -> str:
    if cell is None:
        return NONE
    if cell.measured is None:
        return "not measured"
    only = "this run only (n = 1)" if cell.n == 1 else f"n = {cell.n}"
    asked = "" if cell.bound is None else f", asked {SIDES[comparison]} {quantity(cell.bound, cell.unit, trim=True)}"
    return f"{quantity(cell.measured, cell.unit)}{LINE}{cell.decision or 'not judged'}{asked}{LINE}{only}"
