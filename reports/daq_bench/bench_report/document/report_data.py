"""Everything that a report states, for machines: each text and cell as it is set, each plotted point.

Promise: it is taken from the very content that is rendered, so that no number of the report can be missing here."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

from daq_bench.bench_model.documents.struct import Struct, as_document
from daq_bench.bench_report.base.marks import CONTROLS, Numbers
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.document import Document, Laid, Placed
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.document.traces import Trace

SCHEMA_VERSION = 1


def document_data(
    document: Document, laid: Laid, front: Mapping[str, Any], made_by: Mapping[str, str]
) -> dict[str, Any]:
    """The whole document as JSON takes it: what stands on its first page, its sections in their order; not a number is null."""
    return {
        "schema_version": SCHEMA_VERSION,
        "made_by": dict(made_by),
        "document": {
            name: plain(getattr(document, name))
            for name in ("kind", "title", "subject", "keywords", "running_left", "running_right", "seal", "finished")
        },
        "front": plain(front, laid.numbers.plain),
        "front_tables": [_part(one, laid.numbers) for one in laid.front],
        "sections": [
            {
                "number": one.number, "name": one.name, "title": one.title,
                "parts": [_part(placed, laid.numbers) for placed in one.parts],
            }
            for one in (*laid.sections, *laid.attached)
        ],
    }  # fmt: skip


def to_text(data: Mapping[str, Any]) -> str:
    """Returns the JSON text with control characters escaped: a machine reads the exact text, a terminal that prints it obeys nothing."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return CONTROLS.sub(lambda found: json.dumps(found[0])[1:-1], text) + "\n"


def _part(placed: Placed, numbers: Numbers) -> dict[str, Any]:
    part = placed.part
    if isinstance(part, Table):
        stated: Any = {
            "name": part.name, "caption": numbers.plain(part.caption), "heads": list(part.heads),
            "rows": [[numbers.plain(cell) for cell in row] for row in part.rows], "marked": sorted(part.marked),
        }  # fmt: skip
    elif isinstance(part, Figure):
        stated = {
            "name": part.name, "title": part.title, "see": numbers.plain(part.see), "caption": numbers.plain(part.caption),
            "alt": part.alt, "traces": [_trace(trace) for trace in part.data],
        }  # fmt: skip
    else:
        stated = plain(part, numbers.plain)
    return {"kind": placed.kind, "label": placed.label, "content": stated}


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


def plain(value: Any, words: Callable[[str], str] = str) -> Any:
    """The value in JSON's types, each text as `words` gives it. Raises TypeError for what has no such form."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return words(str.__str__(value))
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Struct):
        return plain(as_document(value), words)
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name), words) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(one, words) for key, one in value.items()}
    if isinstance(value, Set):
        return sorted((plain(one, words) for one in value), key=str)
    if isinstance(value, Iterable):
        return [plain(one, words) for one in value]
    raise TypeError(f"{type(value).__name__} cannot stand in a report's data")


def values_in(data: Any) -> int:
    """Says how many texts and numbers it holds."""
    if isinstance(data, Mapping):
        return sum(values_in(one) for one in data.values())
    return sum(values_in(one) for one in data) if isinstance(data, list) else int(data is not None)


def traces_in(data: Any) -> int:
    """Says how many plotted values it holds."""
    if isinstance(data, Mapping):
        return sum(values_in(one) if key == "traces" else traces_in(one) for key, one in data.items())
    return sum(traces_in(one) for one in data) if isinstance(data, list) else 0
