"""The one table of parts: each name, in the order in which they run, and the module and object that are the part.

Names instead of imports: the rounds know no part, and a part lies beside what it measures. A module that is missing stops every command,
so that nobody takes a bench without it for the whole."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_rounds.part import Part

TABLE = {
    "write": "daq_bench.writer_bench.write:PART",
    "minidaq": "daq_bench.writer_bench.minidaq:PART",
    "null-sink": "daq_bench.writer_bench.null_sink:PART",
    "budget": "daq_bench.writer_bench.budget:PART",
    "streams": "daq_bench.writer_bench.streams:PART",
    "agent": "daq_bench.telemetry_bench.agent:PART",
    "ingest": "daq_bench.telemetry_bench.ingest:PART",
    "memory": "daq_bench.writer_bench.memory:PART",
    "hot_store": "daq_bench.hot_store_bench.hot_store:PART",
    "hot_store_embedded": "daq_bench.hot_store_bench.hot_store_matrix:EMBEDDED",
    "hot_store_served": "daq_bench.hot_store_bench.hot_store_matrix:SERVED",
    "report": "daq_bench.reporting_bench.report:PART",
    "history": "daq_bench.reporting_bench.history:PART",
    "fleet": "daq_bench.fleet_bench.fleet:PART",
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
