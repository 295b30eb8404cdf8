"""A table as a value: a heading and rows of equal length; and the columns that make one of any rows.

Promise: what is not known (None) is a dash in every table that is made of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from daq_bench.bench_report.base.units import in_one_unit, known

LINE = "\n"  # within a cell: what follows explains the value before it
PAIRED = "tchc"  # two columns of pairs side by side
MOST_PAIRS_IN_ONE_COLUMN = 4
WELL = frozenset({"applied", "unchanged", "read", "ok", "intact", "complete"})


@dataclass(frozen=True)
class Table:
    """`kinds` tells the template how to set each column: n for numbers, t for text, c for code, s for a status, o for an
    outcome, h for names of what stands to their right.

    Further lines of a cell explain its first one. `caption` begins with what the table is about. A column of numbers reads in one
    unit where theirs differ by powers of ten."""

    heads: tuple[str, ...]
    kinds: str
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    name: str = ""
    marked: frozenset[int] = field(default_factory=frozenset)  # rows to set apart

    def __post_init__(self) -> None:
        columns = zip(self.kinds, zip(*self.rows, strict=True), strict=True) if self.rows else ()
        alike = [_numbers_alike(cells) if kind == "n" else cells for kind, cells in columns]
        object.__setattr__(self, "rows", tuple(zip(*alike, strict=True)))


Row = TypeVar("Row", contravariant=True)


@dataclass(frozen=True)
class Column(Generic[Row]):
    """`of` finds the value of a row, `form` writes it; a `form` other than `str` writes a number, unless `kind` says otherwise."""

    head: str
    of: Callable[[Row], Any]  # None: not known
    form: Callable[[Any], str] = str
    kind: str = ""

    def cell(self, row: Row) -> str:
        return known(self.of(row), self.form)


Columns = tuple[Column[Row], ...]


def table(
    rows: Iterable[Row],
    columns: Columns[Row],
    name: str,
    caption: str,
    odd: Callable[[Row], object] = lambda _: False,
    *last: tuple[str, ...],
) -> Table:
    """Returns a row for each of `rows`, and the `last` ones such as a sum; rows that are `odd` are set apart."""
    shown = tuple(rows)
    return Table(
        tuple(column.head for column in columns),
        "".join(column.kind or ("t" if column.form is str else "n") for column in columns),
        (*(tuple(column.cell(row) for column in columns) for row in shown), *last),
        caption, name, frozenset(index for index, row in enumerate(shown) if odd(row)),
    )  # fmt: skip


class Evidence(Protocol):
    """Something measured that may not count, for a reason."""

    @property
    def admissible(self) -> bool: ...

    @property
    def reason(self) -> str | None: ...


def masked(one: Evidence) -> bool:
    return not one.admissible


def _or_why(word: str, no: str) -> Callable[[Evidence], str]:
    return lambda one: word if one.admissible else f"{no}: {one.reason or 'no reason recorded'}"


IN_FIGURE: Column[Evidence] = Column("In the figure", _or_why("drawn", "not drawn"))
COUNTS: Column[Evidence] = Column("Evidence", _or_why("counts", "does not count"))


def _numbers_alike(cells: tuple[str, ...]) -> tuple[str, ...]:
    firsts = in_one_unit(tuple(cell.partition(LINE)[0] for cell in cells))
    return tuple(first + "".join(cell.partition(LINE)[1:]) for first, cell in zip(firsts, cells, strict=True))


def plain_words(name: str) -> str:
    return name.replace(".", ": ").replace("_", " ")


def pairs_table(heads: tuple[str, str], pairs: Sequence[tuple[str, str]], caption: str, name: str) -> Table | None:
    """Pairs in two columns side by side, to be read down the left one first."""
    if not pairs:
        return None
    if len(pairs) < MOST_PAIRS_IN_ONE_COLUMN:
        return Table((*heads, "", ""), PAIRED, tuple((*pair, "", "") for pair in pairs), caption, name)
    half = (len(pairs) + 1) // 2
    right = [*pairs[half:], *[("", "")] * (2 * half - len(pairs))]
    rows = tuple((*first, *second) for first, second in zip(pairs[:half], right, strict=True))
    return Table(heads * 2, PAIRED, rows, caption, name)
