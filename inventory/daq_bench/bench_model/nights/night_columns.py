"""Nights as columns of an Arrow table and back: a row for each bundle, with its verdict as JSON, facts and temperatures as lists.

Promise: `nights_of(table_of(found))` is equal to `found`. pyarrow is imported only where a table is made or read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from daq_bench.bench_model.documents.struct import decoder
from daq_bench.bench_model.documents.verdict import Judgement, Verdict
from daq_bench.bench_model.nights.bundle_facts import Facts
from daq_bench.bench_model.nights.night import LeftOut, Night

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
KEPT = ("id", "candidate", "target", "scenario", "scale", "duration_s", "requirement", "simulated")
TOLD = tuple(
    one.name for one in msgspec.structs.fields(Judgement) if one.name not in ("confidence_interval", "evidence")
)  # equal for many
NAME, STATE = "folder", "state_of_files"
ROWS_AT_ONCE = 1000  # whose texts are held beside what is made of them
Cells = dict[str, list[Any]]


@cache
def schema() -> Any:
    """The table's; `left_out` says why a bundle is in no history, and all behind it is empty then."""
    import pyarrow as pa

    text, number, moment = pa.string(), pa.float64(), pa.timestamp("us", "UTC")
    kinds = {"scale": number, "duration_s": number, "simulated": pa.bool_()}
    columns = {
        NAME: text, STATE: text, "left_out": text, "run_state": text, "started": moment, "finished": moment,
        **{name: kinds.get(name, text) for name in KEPT}, "outcome": text, "verdict": text,
        "facts": pa.list_(pa.struct([("group", text), ("name", text), ("value", text)])),
        "temperatures_degc": pa.list_(pa.struct([("name", text), ("value", number)])),
        "power_on_h": pa.list_(pa.struct([("serial", text), ("value", number)])),
    }  # fmt: skip
    return pa.schema(list(columns.items()))


def table_of(found: Sequence[Night | LeftOut], states: Sequence[str]) -> Any:
    """A row for each of `found`, in their order, with what `bundle_state` says of each."""
    import pyarrow as pa

    rows = [
        {STATE: state, **(_left_out(one) if isinstance(one, LeftOut) else _cells(one))}
        for one, state in zip(found, states, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=schema())


def _left_out(one: LeftOut) -> dict[str, Any]:
    return {NAME: one.name, "left_out": one.reason}


def _cells(night: Night) -> dict[str, Any]:
    return {
        NAME: night.path.name,
        "run_state": night.state,
        "started": night.started,
        "finished": night.finished,
        **{name: getattr(night, name) for name in KEPT},
        "outcome": night.outcome,  # for who asks the file itself
        "verdict": msgspec.json.encode(night.verdict).decode(),
        "facts": [{"group": group, "name": name, "value": value} for (group, name), value in night.facts.items()],
        "temperatures_degc": [{"name": name, "value": value} for name, value in night.temperatures.items()],
        "power_on_h": [{"serial": serial, "value": value} for serial, value in night.power_on_h.items()],
    }


def nights_of(table: Any, folder: Path) -> list[Night | LeftOut]:
    """The rows of the table as what they were made of, for bundles in `folder`."""
    words = _Words()
    found: list[Night | LeftOut] = []
    for at in range(0, len(table), ROWS_AT_ONCE):
        found += _rows(table.slice(at, ROWS_AT_ONCE), folder, words)
    return found


def _rows(table: Any, folder: Path, words: _Words) -> Iterator[Night | LeftOut]:
    cells: Cells = {name: table[name].to_pylist() for name in (NAME, "left_out", "run_state", "verdict", *KEPT)}
    moments = {name: _moments(table, name) for name in ("started", "finished")}
    lists = {name: _lists(table, name) for name in ("facts", "temperatures_degc", "power_on_h")}
    for at, name in enumerate(cells[NAME]):
        own = {key: next(iterator) for key, iterator in lists.items()}
        if cells["left_out"][at] is not None:
            yield LeftOut(name, cells["left_out"][at])
            continue
        yield Night(
            path=folder / name, state=words(cells["run_state"][at]), started=moments["started"][at], finished=moments["finished"][at],
            **{key: words(cells[key][at]) for key in KEPT}, verdict=words.verdict(cells["verdict"][at]),
            facts=words.facts(own["facts"]),
            temperatures=dict(own["temperatures_degc"]), power_on_h=dict(own["power_on_h"]),
        )  # fmt: skip


class _Words:
    """One object for all equal texts, and for all equal facts: thousands of runs say the same of their machines."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}
        self._facts: dict[Any, Facts] = {}
        self._verdicts = decoder(Verdict)

    def facts(self, entries: Sequence[tuple[str, str, str]]) -> Facts:
        told = tuple(entries)
        if told not in self._facts:
            self._facts[told] = {self((self(group), self(name))): self(value) for group, name, value in told}
        return self._facts[told]

    def verdict(self, told: str) -> Verdict:
        found = self._verdicts.decode(told)
        shared = [
            msgspec.structs.replace(row, **{name: self(getattr(row, name)) for name in TOLD})
            for row in found.requirements
        ]
        return msgspec.structs.replace(found, requirements=shared)

    def __call__(self, value: Any) -> Any:
        return self._known.setdefault(value, value) if isinstance(value, str | tuple) else value


def _moments(table: Any, name: str) -> list[Any]:
    """From whole microseconds: a time zone's data base is not asked."""
    import pyarrow as pa

    counted = table[name].cast(pa.int64()).to_pylist()
    return [None if one is None else EPOCH + one * MICROSECOND for one in counted]


def _lists(table: Any, name: str) -> Iterator[list[tuple[Any, ...]]]:
    """Returns each row's entries of the list, as tuples of their fields: some hundred times faster than row by row."""
    whole = table[name].combine_chunks()
    flat = whole.flatten()  # the lists one after the other, those of empty cells left out
    columns = [flat.field(at).to_pylist() for at in range(flat.type.num_fields)]
    entries = zip(*columns, strict=True)
    for length in whole.value_lengths().to_pylist():
        yield [next(entries) for _ in range(length or 0)]
