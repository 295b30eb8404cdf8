"""The names that inventory/metrics.yml declares for each measurement: a query may use no others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.profiles.yaml_source import METRICS, text_of, without_lines

NUMBERS = ("integer", "float")
NOT_BY_THE_MINUTE = "run"  # the tag that values of a minute have not got


@dataclass(frozen=True)
class Measurement:
    """One measurement: its tags, and the type of each field."""

    name: str
    tags: frozenset[str]
    fields: dict[str, str]

    def by_the_minute(self) -> Measurement:
        """Returns what the server makes of it each minute: `mean_` and `max_` of numbers, `last_` of everything."""
        numbers = {name for name, kind in self.fields.items() if kind in NUMBERS}
        made = {f"mean_{name}": "float" for name in numbers} | {f"max_{name}": self.fields[name] for name in numbers}
        made |= {f"last_{name}": kind for name, kind in self.fields.items()}
        return Measurement(f"{self.name} by the minute", self.tags - {NOT_BY_THE_MINUTE}, made)

    def require_tags(self, names: Iterable[str], query: str) -> None:
        for name in names:
            if name not in self.tags:
                raise BenchError(f"{query}: {self.name} has no tag {name!r}; declared are {_listed(self.tags)}")

    def require_field(self, name: str, query: str, number: bool) -> None:
        """Raises BenchError unless the field is declared; with `number` it must hold numbers."""
        kind = self.fields.get(name)
        if kind is None:
            raise BenchError(f"{query}: {self.name} has no field {name!r}; declared are {_listed(self.fields)}")
        if number and kind not in NUMBERS:
            raise BenchError(f"{query}: field {name!r} of {self.name} is of type {kind}, and the query needs numbers")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


@dataclass(frozen=True)
class Declared:
    """All measurements by name."""

    measurements: dict[str, Measurement]

    @staticmethod
    def load(file: Path = METRICS) -> Declared:
        """Raises BenchError (ProfileError) for a file that is absent or not YAML."""
        found: dict[str, Any] = without_lines(file, text_of(file)).data["measurements"]
        return Declared(
            {
                name: Measurement(
                    name,
                    frozenset(entry["tags"]),
                    {field: str(said["type"]) for field, said in entry["fields"].items()},
                )
                for name, entry in found.items()
            }
        )

    def measurement(self, name: str, query: str, by_the_minute: bool = False) -> Measurement:
        """Raises BenchError for one that is not declared."""
        if name not in self.measurements:
            raise BenchError(f"{query}: measurement {name!r} is not declared in inventory/metrics.yml")
        found = self.measurements[name]
        return found.by_the_minute() if by_the_minute else found
