"""A table as a value: a heading and rows of equal length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from daq_bench.bench_report.base.units import in_one_unit

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
