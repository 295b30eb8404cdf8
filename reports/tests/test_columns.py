"""Tables from declared columns: one rule for what is not known, for kinds, and for what is set apart."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from daq_bench.bench_report.base.units import NONE, THIN, count, latency, share, span, three, three_of_rate
from daq_bench.bench_report.document.table import COUNTS, IN_FIGURE, Column, Columns, masked, table


@dataclass(frozen=True)
class Point:
    name: str
    us: float | None
    admissible: bool = True
    reason: str | None = None


COLUMNS: Columns[Point] = (
    Column("Name", lambda one: one.name),
    Column("Latency", lambda one: one.us, latency),
    Column("State", lambda one: "ok", kind="s"),
    IN_FIGURE,
)


def test_heads_kinds_and_cells_follow_from_the_columns() -> None:
    made = table([Point("a", 1500.0), Point("b", 20.0)], COLUMNS, "points", "Points.")
    assert (made.heads, made.kinds) == (("Name", "Latency", "State", "In the figure"), "tnst")
    assert made.rows == (("a", f"1.50{THIN}ms", "ok", "drawn"), ("b", f"0.0200{THIN}ms", "ok", "drawn"))
    assert (made.name, made.caption, made.marked) == ("points", "Points.", frozenset())


def test_what_is_not_known_is_a_dash_and_zero_is_a_number() -> None:
    made = table([Point("a", None), Point("", 0.0)], COLUMNS, "points", "")
    assert [row[:2] for row in made.rows] == [("a", NONE), ("", f"0{THIN}µs")]


def test_odd_rows_are_set_apart_and_a_last_row_never_is() -> None:
    rows = (Point("a", 1.0), Point("b", 2.0, False, "lost"), Point("c", 3.0, False))
    made = table(iter(rows), COLUMNS, "points", "", masked, ("sum", "", "", ""))
    assert made.marked == frozenset({1, 2})
    assert [row[3] for row in made.rows] == ["drawn", "not drawn: lost", "not drawn: no reason recorded", ""]


def test_a_table_without_rows_keeps_its_heads() -> None:
    made = table([], COLUMNS, "points", "")
    assert made.rows == () and len(made.heads) == len(made.kinds) == 4


@pytest.mark.parametrize(
    ("point", "said"),
    [(Point("a", 1.0), "counts"), (Point("a", 1.0, False, "late"), "does not count: late")],
)
def test_evidence_counts_or_says_why_not(point: Point, said: str) -> None:
    assert COUNTS.cell(point) == said


def test_forms_of_numbers() -> None:
    assert (share(0.24), three(1.23456), three(0)) == (f"24{THIN}%", "1.23", "0")
    assert (three_of_rate(2.5e9), span((1.0, 12.0))) == (f"2.50{THIN}GB/s", "1 to 12")
    assert span((1, 20000), count) == f"1 to 20{THIN}000"
    with pytest.raises(ValueError, match="not a measurement"):
        three(float("nan"))
