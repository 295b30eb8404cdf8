"""Puts on one page what decides: the matrix of candidates and requirements, and price against margin.

Promise: each column is one candidate, each cell all of its runs that are used; what the page cannot hold stands in a section."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from daq_bench.bench_model.base.direction import Comparison, Severity
from daq_bench.bench_model.documents.comparison import ComparisonDocument, Pareto, Standing, UnrankedRow
from daq_bench.bench_model.tender.contenders import Series, estimate
from daq_bench.bench_model.tender.tender import TIED
from daq_bench.bench_report.base.marks import see_section
from daq_bench.bench_report.base.units import NONE, SIDES, SPELLED, THIN, quantity, significant
from daq_bench.bench_report.comparison import words
from daq_bench.bench_report.comparison.figures import (
    Bound,
    ParetoPoint,
    ValueRow,
    pareto_figure,
    value_figure,
)
from daq_bench.bench_report.comparison.tables import SIGNS, money
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.direct_labels import shortened
from daq_bench.bench_report.document.table import Table

COLUMNS_MAX, ROWS_MAX = 6, 12  # candidates and requirements on the first page
TEXT_MAX, NAME_MAX, NAMED_MAX = 62, 16, 4
PLOT_MM = 58.0
RANK = {"missed": 0, "undecided": 1, None: 2, "met": 3}  # what decides stands first
RULE = (
    "One column is one candidate. All its runs that count are pooled: a value is their mean (geometric where all lie above zero), and what "
    "one run missed is missed, whatever later runs met. No run is chosen. Runs that do not count are named in the first row and are in no "
    "value."
)
RULE_UNRANKED = (
    "One column is one candidate. All its runs that measured something are pooled: a value is their mean, and what one run missed is "
    "missed. No run is chosen. No run counts as evidence, so nothing is ranked."
)


def matrix(found: ComparisonDocument, columns: Sequence[str], table: str, rows_max: int | None = None) -> Table:
    """The candidates of `columns` against the requirements, those that decide first."""
    tags, pooled = words.letters(found), _pooled(found)
    asked = sorted(_asked(found), key=lambda one: _weight(one, pooled, list(tags)))
    shown = asked[:rows_max]
    rows = [
        ("Runs and outcomes", *(outcomes(found, name) for name in columns)),
        ("May be chosen", *(_choice(found, name) for name in columns)),
        ("Price", *(_price(found, name) for name in columns)),
        *((_requirement(one), *(_cell(pooled[name].get(one.id)) for name in columns)) for one in shown),
    ]
    left = len(asked) - len(shown)
    caption = f"Compliance. {SIGNS['met']} met, {SIGNS['missed']} missed, {SIGNS['undecided']} undecided, {NONE} not measured."
    if left:
        caption += f" {left} more requirements: {see_section('ranking')}."
    if len(columns) < len(tags) and rows_max:
        caption += f" {len(tags) - len(columns)} more candidates: {see_section('ranking')}."
    heads = ("Requirement", *(f"{tags[name]} {shortened(name, NAME_MAX)}" for name in columns))
    return Table(heads, "t" * len(heads), tuple(rows), caption, table)


def front_matrix(found: ComparisonDocument) -> Table:
    return matrix(found, list(words.letters(found))[:COLUMNS_MAX], "matrix", ROWS_MAX)


def further_matrices(found: ComparisonDocument) -> Iterator[Table]:
    """Whatever the first page had no room for."""
    names = list(words.letters(found))
    if len(_asked(found)) > ROWS_MAX:
        yield matrix(found, names[:COLUMNS_MAX], "matrix-all")
    if len(names) > COLUMNS_MAX:
        yield matrix(found, names[COLUMNS_MAX:], "matrix-more")


def rule(found: ComparisonDocument) -> str:
    return RULE if found.contenders else RULE_UNRANKED


def outcomes(found: ComparisonDocument, name: str) -> str:
    """`3 PASS, 1 FAIL; 1 INADMISSIBLE not used`."""
    own = [run for run in found.runs if run.contender == name or found.kind == "configurations"]
    used = [run.word for run in own if run.ranked or not found.contenders]
    left = [run.word for run in own if not run.ranked and found.contenders]
    said = [_counts(used)] if used else []
    if left:
        said.append(f"{_counts(left)} not used")
    return "; ".join(said) or "none"


def _counts(outcomes: Sequence[str]) -> str:
    return ", ".join(f"{outcomes.count(one)}{THIN}{one}" for one in dict.fromkeys(outcomes))


def _choice(found: ComparisonDocument, name: str) -> str:
    if name in found.not_ranked:
        return "no: no run counts"
    one = next(one for one in found.contenders if one.name == name)
    if one.barred:
        return "no: missed" if _missed(found, name) else "no: not all met"
    decision = found.decision
    if decision.best == name and decision.kind != TIED:
        return "yes, chosen"
    return "yes"


def _missed(found: ComparisonDocument, name: str) -> bool:
    cells = (each for one in found.requirements for each in one.contenders if one.severity == "mandatory")
    failed = any(run.outcome == "FAIL" for run in found.runs if run.contender == name and run.ranked)
    return failed or any(each.name == name and each.decision == "missed" for each in cells)


def _price(found: ComparisonDocument, name: str) -> str:
    one = next((one for one in found.contenders if one.name == name), None)
    return NONE if one is None else money(one.figures["cost"].value, one.currency)


@dataclass(frozen=True)
class _Cell:
    """A contender in a requirement, in its unit, over all runs that are used."""

    value: float | None
    decision: str | None
    unit: str


@dataclass(frozen=True)
class _Row:
    """A requirement. `standings`: of contenders that are ranked. `bound`, `severity`: None where nobody knows them."""

    id: str
    text: str
    unit: str
    comparison: Comparison
    bound: float | str | None
    severity: Severity | None = None
    compared: bool = True
    standings: Sequence[Standing] = ()


def _asked(found: ComparisonDocument) -> list[_Row]:
    """The requirements; without any run that counts those that were asked, with the bound of their run."""
    if found.requirements:
        return [
            _Row(
                one.id,
                one.text,
                one.unit,
                one.comparison,
                one.bound,
                one.severity,
                not one.not_compared,
                one.contenders,
            )
            for one in found.requirements
        ]
    rows = {row.id: row for one in found.unranked for row in one.rows}
    return [
        _Row(one.id, one.text, rows[one.id].unit, one.comparison, rows[one.id].bound)
        for one in found.asked
        if one.id in rows
    ]


def _pooled(found: ComparisonDocument) -> dict[str, dict[str, _Cell]]:
    """By candidate and requirement: value, decision and unit of all runs that are used."""
    made: dict[str, dict[str, _Cell]] = {name: {} for name in words.letters(found)}
    for one in found.requirements:
        for each in one.contenders:
            made[each.name][one.id] = _Cell(each.value, each.decision, one.unit)
    if found.contenders:
        return made
    for name in made:
        own = [row for one in found.unranked if one.name == name for row in one.rows]
        for key in dict.fromkeys(row.id for row in own):
            rows = [row for row in own if row.id == key and row.measured is not None]
            unit = next(row.unit for row in own if row.id == key)
            value = estimate(Series(tuple(row.measured for row in rows)), unit)[0] if rows else None
            made[name][key] = _Cell(value, _all(rows), unit)
    return made


def _all(rows: Sequence[UnrankedRow]) -> str | None:
    """One decision of several runs: a miss stays a miss."""
    said = {row.decision for row in rows}
    return "missed" if "missed" in said else "met" if said == {"met"} else "undecided" if said else None


def _weight(one: _Row, pooled: dict[str, dict[str, _Cell]], names: Sequence[str]) -> tuple[int, int]:
    cells = (pooled[name].get(one.id) for name in names)
    worst = min(RANK.get(cell.decision if cell else None, 2) for cell in cells)
    return (0 if one.severity in ("mandatory", None) else 1, worst)


def _requirement(one: _Row) -> str:
    unit = SPELLED.get(one.unit, one.unit)
    advisory = ", advisory" if one.severity == "advisory" else ""
    bound = one.bound
    if bound is None:
        return f"{one.id} {_cut(one.text, TEXT_MAX)} ({unit}{advisory})"
    if isinstance(bound, str):  # a field of the candidate's own entry
        return f"{one.id} {_cut(one.text, TEXT_MAX)} ({unit}, {SIDES[one.comparison]} what it declares{advisory})"
    told = quantity(bound, one.unit, trim=True)
    return f"{one.id} {_cut(one.text, TEXT_MAX)} ({SIDES[one.comparison]} {told}{advisory})"


def _cell(cell: _Cell | None) -> str:
    if cell is None or cell.value is None:
        return f"{NONE} {SIGNS['missed']}" if cell and cell.decision == "missed" else NONE
    return f"{SIGNS.get(cell.decision or '', '')} {significant(cell.value, 4, trim=True)}".strip()


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}\u2026"


def margin_figure(found: ComparisonDocument) -> Figure | None:
    """Price (else power) against the margin of the throughput over what is asked; the margin alone where neither is known."""
    speed = next((one for one in _asked(found) if one.id == found.speed), None)
    if speed is None or speed.bound is None or isinstance(speed.bound, str) or speed.bound <= 0:
        return None
    if found.pareto:
        return _against_price(found, found.pareto, speed, speed.bound)
    return _margins_alone(found, speed, speed.bound)


def _over(value: float, bound: float) -> float:
    return 100 * (value / bound - 1)


def _floor(speed: _Row, bound: float) -> Bound:
    return Bound(0.0, f"asked: at least {quantity(bound, speed.unit, trim=True)}", "at_least")


def _against_price(found: ComparisonDocument, pareto: Pareto, speed: _Row, bound: float) -> Figure:
    tags = words.letters(found)
    named = len(pareto.points) <= NAMED_MAX
    points = [
        ParetoPoint(
            (words.label(found, one.name) if named else tags[one.name]) + (" (barred)" if one.barred else ""),
            (one.x[0], one.x[1], one.x[2]), (_over(one.y[0], bound), _over(one.y[1], bound), _over(one.y[2], bound)), one.kind,
        )
        for one in pareto.points
    ]  # fmt: skip
    priced = pareto.x == "cost"
    across = f"price ({words.currency_of(found) or 'currency as declared'})" if priced else "W per GB/s"
    beaten = [f"{tags[one.name]} by {', '.join(tags[name] for name in one.by)}" for one in pareto.points if one.by]
    caption = (
        f"Best is above and to the left. Margin: of {speed.id}, over {quantity(bound, speed.unit, trim=True)}; boxes: its "
        f"95{THIN}% intervals. Dominated (no better in either, worse in one): {'; '.join(beaten) or 'none'}."
        + (
            " Barred: may not be chosen, so that it dominates nothing."
            if any(one.barred for one in pareto.points)
            else ""
        )
        + ("" if priced else f" {_unpriced(found)}: power stands in the price's place.")
    )
    title = "Price against margin" if priced else "Power per throughput against margin"
    return pareto_figure(
        "pareto",
        title,
        caption,
        points,
        across,
        "margin over what is asked (%)",
        floor=_floor(speed, bound),
        height_mm=PLOT_MM,
    )


def _unpriced(found: ComparisonDocument) -> str:
    lacking = any(one.figures["cost"].value is None for one in found.contenders if not one.barred)
    return "Not all have a price" if lacking else "The prices are in different currencies"


def _margins_alone(found: ComparisonDocument, speed: _Row, bound: float) -> Figure | None:
    """A row for each candidate; its price, if any, stands beside its name."""
    if not speed.compared:
        return None
    rows = list[ValueRow]()
    for name in words.letters(found):
        values, interval = _values(found, speed, name)
        if not values:
            continue
        price = _price(found, name)
        label = words.label(found, name) + (f", {price}" if price != NONE else "")
        ends = (_over(interval[0], bound), _over(interval[1], bound)) if interval else None
        one = next((one for one in found.contenders if one.name == name), None)
        hollow = one is None or bool(one.barred)
        rows.append(
            ValueRow(label, tuple(_over(each, bound) for each in values), _over(fmean(values), bound), ends, hollow)
        )
    if not rows:
        return None
    caption = (
        f"Margin of {speed.id} over {quantity(bound, speed.unit, trim=True)}. More is better. Bar: 95{THIN}% interval. "
        + (f"{_unpriced(found)}, so that no axis has it." if found.contenders else "This run only: nothing is ranked.")
    )
    return value_figure(
        "margins", "Margin over the throughput asked for", caption, rows, "margin (%)", _floor(speed, bound)
    )


def _values(found: ComparisonDocument, speed: _Row, name: str) -> tuple[list[float], list[float] | None]:
    for each in speed.standings:
        if each.name == name:
            return [value for value in each.values if value is not None], each.interval
    rows = (row for one in found.unranked if one.name == name for row in one.rows)
    return [row.measured for row in rows if row.id == speed.id and row.measured is not None], None


def first_reasons(reasons: Sequence[str], most: int = 3) -> tuple[str, ...]:
    """The first of them, and where the others stand."""
    if len(reasons) <= most:
        return tuple(reasons)
    return (*reasons[: most - 1], f"{len(reasons) - most + 1} more: {see_section('ranking')}.")
