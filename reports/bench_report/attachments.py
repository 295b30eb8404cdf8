"""What a report carries for machines: the verdict as it was judged, the requirement table, the plotted numbers of every figure.

Promise: the numbers are those of the figures' own `data` and of the tables' own cells; nothing is computed here. The same
document gives the same bytes.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .document import Document, Laid
from .figures.canvas import Figure
from .figures.traces import Trace
from .tables import LINE, Table

REQUIREMENTS, FIGURES_JSON, FIGURES_CSV = "requirements.csv", "figure-data.json", "figure-data.csv"
DESCRIPTIONS = {
    "verdict.json": "The verdict as it was judged",
    REQUIREMENTS: "The requirement table",
    FIGURES_JSON: "Every plotted number of every figure, with labels and units",
    FIGURES_CSV: "The same without rasters, one row for each point",
}
POINT_HEADS = ("figure", "panel", "series", "kind", "x_label", "y_label", "x", "y", "low", "high")


def attachments_of(document: Document, laid: Laid) -> dict[str, bytes]:
    found = dict(document.attachments)
    table = next(
        (one.part for one in laid.tables if isinstance(one.part, Table) and one.part.name == "requirements"), None
    )
    if isinstance(table, Table):
        found[REQUIREMENTS] = _csv([table.heads, *([cell.replace(LINE, "; ") for cell in row] for row in table.rows)])
    figures = document_data(laid)["figures"]
    if figures:
        found[FIGURES_JSON] = json.dumps(
            {"schema_version": 1, "figures": figures}, ensure_ascii=False, indent=1
        ).encode()
        found[FIGURES_CSV] = figures_csv(laid)
    return found


def document_data(laid: Laid) -> dict[str, list[dict[str, Any]]]:
    """All tables' cells and all figures' plotted series, as JSON takes them; not a number is null."""
    tables: list[dict[str, Any]] = [
        {
            "label": one.label, "name": one.part.name, "caption": laid.numbers.plain(one.part.caption), "heads": list(one.part.heads),
            "rows": [[laid.numbers.plain(cell) for cell in row] for row in one.part.rows],
        }
        for one in laid.tables if isinstance(one.part, Table)
    ]  # fmt: skip
    figures: list[dict[str, Any]] = [
        {
            "label": one.label, "name": one.part.name, "title": one.part.title, "caption": laid.numbers.plain(one.part.caption),
            "traces": [_trace(trace) for trace in one.part.data],
        }
        for one in laid.figures if isinstance(one.part, Figure)
    ]  # fmt: skip
    return {"tables": tables, "figures": figures}


def _trace(trace: Trace) -> dict[str, object]:
    numbers = {key: _finite(getattr(trace, key)) for key in ("x", "y", "low", "high")}
    names = {key: [list(pair) for pair in getattr(trace, key)] for key in ("x_names", "y_names")}
    own: dict[str, object] = {
        "panel": trace.panel, "series": trace.series, "kind": trace.kind, "x_label": trace.x_label, "y_label": trace.y_label,
    }  # fmt: skip
    grid = {"grid": [_finite(row) for row in trace.grid]} if trace.grid else {}
    return own | {key: value for key, value in (numbers | names).items() if value} | grid


def _finite(values: Sequence[float]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values]


def figures_csv(laid: Laid) -> bytes:
    rows = (row for one in laid.figures if isinstance(one.part, Figure) for row in figure_rows(one.label, one.part))
    return _csv([POINT_HEADS, *rows])


def figure_rows(label: str, figure: Figure) -> Iterator[tuple[str, ...]]:
    """One row for each point; a raster is left to the JSON."""
    for trace in figure.data:
        if trace.grid:
            continue
        columns = [trace.x, trace.y, trace.low, trace.high]
        for place in range(max(len(column) for column in columns)):
            numbers = (
                repr(column[place]) if place < len(column) and math.isfinite(column[place]) else ""
                for column in columns
            )
            yield (label, trace.panel, trace.series, trace.kind, trace.x_label, trace.y_label, *numbers)


def _csv(rows: Iterable[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
