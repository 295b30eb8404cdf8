"""The one table of parts: each name, in the order in which they run, and the module and object that are the part.

Names instead of imports: the rounds know no part, and a part lies beside what it measures. A module that is missing stops every command,
so that nobody takes a bench without it for the whole."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from bench_model.base.errors import BenchError
from bench_rounds.part import Part

TABLE = {
    "write": "writer_bench.write:PART",
    "minidaq": "writer_bench.minidaq:PART",
    "null-sink": "writer_bench.null_sink:PART",
    "budget": "writer_bench.budget:PART",
    "streams": "writer_bench.streams:PART",
    "agent": "telemetry_bench.agent:PART",
    "ingest": "telemetry_bench.ingest:PART",
    "memory": "writer_bench.memory:PART",
    "hot_store": "hot_store_bench.hot_store:PART",
    "hot_store_embedded": "hot_store_bench.hot_store_matrix:EMBEDDED",
    "hot_store_served": "hot_store_bench.hot_store_matrix:SERVED",
    "report": "reporting_bench.report:PART",
    "history": "reporting_bench.history:PART",
    "fleet": "fleet_bench.fleet:PART",
}


@cache
def known_parts() -> Mapping[str, Part]:
    """All parts by name, in the order in which they run."""
    return load(TABLE)


def load(table: Mapping[str, str]) -> dict[str, Part]:
    """The parts of a table. BenchError, with the entry, where one leads nowhere or to a part of another name."""
    return {name: _part(name, place) for name, place in table.items()}


def _part(name: str, place: str) -> Part:
    module, _, attribute = place.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise BenchError(f"part {name}: {place} cannot be loaded: {error}. Its entry is in {__file__}") from error
    if not isinstance(found, Part) or found.name != name:
        said = f"the part {found.name}" if isinstance(found, Part) else f"of type {type(found).__name__}"
        raise BenchError(f"part {name}: {place} is {said}. Its entry is in {__file__}")
    return found
