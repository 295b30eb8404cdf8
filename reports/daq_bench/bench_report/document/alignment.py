"""Aligns the numbers of a column by their decimal points.

Promise: the text of a cell is not touched; a cell only learns how much room it needs on its right so that its point stands where those of
its column stand. A column that holds anything but quantities, or quantities of several kinds, is left alone: nobody compares their digits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from matplotlib import get_data_path
from matplotlib.font_manager import get_font

from daq_bench.bench_report.base.units import NONE
from daq_bench.bench_report.document.table import Table

QUANTITY = re.compile(r"^([+\u2212\u00d7-]?\d[\d\u202f]*?)((?:\.\d+)?(?:\u202f(?:\u00d7\u202f10\S+|[^\d\s]\S*))*)$")
FRACTION = re.compile(r"^(\.\d+)?(\u202f\u00d7\u202f10\S+)?")
SIZE = 1000.0  # pixels per em for measuring; a thousandth of an em is far below a hair
LEAST_EM = 0.01


@dataclass(frozen=True)
class Filled:
    """A cell's text, and the room to its right in em."""

    text: str
    room_em: float = 0.0


def filled(table: Table) -> tuple[tuple[Filled, ...], ...]:
    if not table.rows:
        return ()
    columns = [
        _column(list(column), kind) for column, kind in zip(zip(*table.rows, strict=True), table.kinds, strict=True)
    ]
    return tuple(zip(*columns, strict=True))


def _column(texts: list[str], kind: str) -> list[Filled]:
    tails = [_tail(text) for text in texts] if kind == "n" else [None]
    if any(tail is None for tail in tails):
        return [Filled(text) for text in texts]
    kinds = {
        FRACTION.sub("", tail or "") for tail, text in zip(tails, texts, strict=True) if text not in (NONE, "", "0")
    }
    if len(kinds) > 1:
        return [Filled(text) for text in texts]
    widths = [_width(tail or "") for tail in tails]
    most = max(widths, default=0.0)
    rooms = (round(most - width, 2) for width in widths)
    return [
        Filled(text, room if room >= LEAST_EM and text != NONE else 0.0)
        for text, room in zip(texts, rooms, strict=True)
    ]


def _tail(text: str) -> str | None:
    """Returns the text behind the last whole digit; None for a text that is no quantity."""
    if text in (NONE, ""):
        return ""
    found = QUANTITY.match(text)
    return None if found is None else found[2]


@cache
def _width(text: str) -> float:
    """Returns the width in em of the report's face, DejaVu Sans, whose digits are all of one width."""
    if not text:
        return 0.0
    face = get_font(str(Path(get_data_path()) / "fonts/ttf/DejaVuSans.ttf"))
    face.set_size(SIZE, 72)
    return float(sum(face.load_char(ord(character)).linearHoriAdvance for character in text)) / 65536 / SIZE
