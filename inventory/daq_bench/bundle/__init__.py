"""Reads a run bundle: `from daq_bench import Bundle` (docs/reading-a-bundle.md).

Nothing of the bundle is executed or followed: a link, a pipe or an invalid document raises BenchError with file and field."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, overload

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle import files
from daq_bench.bench_model.bundle.line_protocol import FieldValue
from daq_bench.bench_model.bundle.telemetry_files import points_of_bundle
from daq_bench.bench_model.documents.events import Event
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Kind, Struct, read
from daq_bench.bench_model.documents.verdict import Judgement, Verdict
from daq_bench.bench_model.evidence.schemas import TYPES
from daq_bench.bench_model.verdict.conclusion import conclude
from daq_bench.bench_model.verdict.judging import judge_bundle, standing_of

__all__ = ["BenchError", "Bundle", "Event", "Judgement", "Run", "Table", "Verdict"]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIME = "time"


@dataclass(frozen=True)
class Table:
    """Telemetry by column: `time` (UTC), the tags, the fields. All columns are of one length; None: the point has no such value."""

    columns: dict[str, list[Any]]

    def __len__(self) -> int:
        return len(self.columns[TIME])

    def __getitem__(self, name: str) -> list[Any]:
        """Raises KeyError that names the columns that there are."""
        if name not in self.columns:
            raise KeyError(f"no column {name!r}; there are {', '.join(self.columns)}")
        return self.columns[name]

    def rows(self, **tags: str) -> Table:
        """The rows with these values, such as device="nvme0n1"."""
        kept = [at for at in range(len(self)) if all(self[name][at] == value for name, value in tags.items())]
        return Table({name: [column[at] for at in kept] for name, column in self.columns.items()})


class Bundle:
    """The run bundle in the folder `path`. Raises BenchError where there is none, or where a file is not what the bench writes."""

    def __init__(self, path: str | Path) -> None:
        if not str(path):
            raise BenchError("the name of the run bundle is empty. Name one such as runs/latest")
        self.path = Path(os.path.realpath(path))  # resolve() raises for a link to itself
        files.require_sound(self.path)
        found = files.find_struct(self.path, "run.json", Run)
        if found is None:
            files.refuse_no_bundle(self.path)
        self.run: Run = found

    def __repr__(self) -> str:
        """What a notebook shows: which run this is. `conclusion` says how it ended."""
        return (
            f"<Bundle {self.run.run_id}: {self.run.candidate.name}, scenario {self.run.scenario.id}, {self.run.state}>"
        )

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict that follows from the evidence, computed anew. `standing` says whether the stored one agrees."""
        return judge_bundle(self.path)

    @cached_property
    def standing(self) -> str:
        """`sealed`, or why nobody should rest on this bundle: it was altered, is not sealed, or contradicts itself."""
        found = standing_of(self.path)
        return f"{found.state}: {found.reason}" if found.reason else found.state

    @property
    def conclusion(self) -> str:
        """The verdict in one line, as terminal and report say it."""
        return conclude(self.verdict).line

    def requirement(self, identifier: str) -> Judgement:
        """One row of the verdict. Raises KeyError that names the rows that there are."""
        rows = {one.id: one for one in self.verdict.requirements}
        if identifier not in rows:
            raise KeyError(f"no requirement {identifier!r}; there are {', '.join(rows)}")
        return rows[identifier]

    @cached_property
    def events(self) -> list[Event]:
        """The run's events, in the order of time."""
        return files.read_structs(self.path, "events.jsonl", Event)

    @property
    def results(self) -> list[str]:
        """The names that `result` and `document` take: the files of results/, without .json."""
        return sorted(file.stem for file in (self.path / "results").glob("*.json"))

    def document(self, name: str) -> dict[str, Any]:
        """A result as it stands in JSON. Raises KeyError that names the results that there are."""
        found = files.find_document(self.path, f"results/{name}.json")
        if found is None:
            raise KeyError(f"no result {name!r}; there are {', '.join(self.results)}")
        return found

    @overload
    def result(self, name: str) -> Struct: ...

    @overload
    def result(self, name: str, kind: type[Kind]) -> Kind: ...

    def result(self, name: str, kind: type[Struct] | None = None) -> Struct:
        """A result as its type; `kind` says which, for a type checker. Raises BenchError for a document that is not of its type."""
        file = f"results/{name}.json"
        known = kind or TYPES.get(file)
        if known is None:
            raise KeyError(f"{file} has no type: read it with document({name!r})")
        return read(self.document(name), known, file)

    def telemetry(self, measurement: str, fields: Collection[str] | None = None) -> Table:
        """All points of a measurement of inventory/metrics.yml. An empty table: nothing was collected."""
        points = list(points_of_bundle(self.path, {measurement}, fields))
        tags = dict.fromkeys(name for point in points for name in point.tags)
        values = dict.fromkeys(name for point in points for name in point.fields)
        columns: dict[str, list[Any]] = {
            TIME: [EPOCH + timedelta(microseconds=point.time_ns / 1000) for point in points]
        }
        columns |= {name: [point.tags.get(name) for point in points] for name in tags}
        fields_of: dict[str, list[FieldValue | None]] = {
            name: [point.fields.get(name) for point in points] for name in values
        }
        return Table({**columns, **fields_of})
