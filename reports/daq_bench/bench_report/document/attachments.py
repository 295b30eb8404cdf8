"""A PDF's attachments beside the document as JSON (see report_data): the requirement table, and the plotted numbers of every figure.

Promise: the numbers are those of the figures' own `data` and of the tables' own cells; nothing is computed here. The same
document gives the same bytes.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence

from daq_bench.bench_report.base.marks import visible
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.document import Laid
from daq_bench.bench_report.document.table import LINE, Table

REQUIREMENTS, FIGURES_CSV = "requirements.csv", "figure-data.csv"
DESCRIPTIONS = {
    "verdict.json": "The verdict",
    REQUIREMENTS: "The requirement table",
    FIGURES_CSV: "Every plotted number of every figure except rasters, one row for each point",
}
POINT_HEADS = ("figure", "panel", "series", "kind", "x_label", "y_label", "x", "y", "low", "high")


def document_attachments(laid: Laid) -> dict[str, bytes]:
    """The requirement table and the plotted points, in a form that a spreadsheet opens."""
    found: dict[str, bytes] = {}
    table = next(
        (one.part for one in laid.tables if isinstance(one.part, Table) and one.part.name == "requirements"), None
    )
    if isinstance(table, Table):
        found[REQUIREMENTS] = _csv([table.heads, *([cell.replace(LINE, "; ") for cell in row] for row in table.rows)])
    if laid.figures:
        found[FIGURES_CSV] = figures_csv(laid)
    return found


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
    csv.writer(text, lineterminator="\n").writerows([[visible(cell) for cell in row] for row in rows])
    return text.getvalue().encode()
