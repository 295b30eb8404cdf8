"""Typed access to a JSON document that remembers where it is.

Promise: every value taken out of a document is of the type asked for, or a `BundleError` says which file and
field held what instead. Nothing is guessed, nothing is converted silently.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle import files as bundle_files
from daq_bench.bench_model.bundle.files import strict
from daq_bench.bench_model.documents.struct import Kind, read
from daq_bench.bench_report.base.errors import BundleError

SHOWN_CHARACTERS = 40


@dataclass(frozen=True)
class Node:
    """A value of a JSON document, with the file and the path that lead to it."""

    value: object
    file: str
    path: str = ""

    @property
    def where(self) -> str:
        return f"{self.file}: {self.path}" if self.path else self.file

    def _wrong(self, wanted: str) -> BundleError:
        shown = json.dumps(self.value, ensure_ascii=False, default=str)
        if len(shown) > SHOWN_CHARACTERS:
            shown = shown[:SHOWN_CHARACTERS] + "..."
        return BundleError(self.where, f"expected {wanted}, found {shown}")

    def find(self, key: str) -> Node | None:
        """The field, or None when it is absent or null."""
        if not isinstance(self.value, dict):
            raise self._wrong("an object")
        child = self.value.get(key)
        return None if child is None else Node(child, self.file, f"{self.path}.{key}".lstrip("."))

    def at(self, key: str) -> Node:
        found = self.find(key)
        if found is None:
            raise BundleError(self.where, f"field '{key}' is missing")
        return found

    def items(self) -> Iterator[Node]:
        if not isinstance(self.value, list):
            raise self._wrong("a list")
        for index, child in enumerate(self.value):
            yield Node(child, self.file, f"{self.path}[{index}]")

    def entries(self) -> Iterator[tuple[str, Node]]:
        if not isinstance(self.value, dict):
            raise self._wrong("an object")
        for key, child in self.value.items():
            yield str(key), Node(child, self.file, f"{self.path}.{key}".lstrip("."))

    def as_text(self) -> str:
        if not isinstance(self.value, str):
            raise self._wrong("a text")
        return self.value

    def as_number(self) -> float:
        # bool is an int in Python, never in a measurement
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self._wrong("a number")
        return float(self.value)

    def as_integer(self) -> int:
        number = self.as_number()
        if number != int(number):
            raise self._wrong("an integer")
        return int(number)

    def as_flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self._wrong("true or false")
        return self.value

    def as_numbers(self) -> tuple[float, ...]:
        return tuple(item.as_number() for item in self.items())

    def shown(self) -> str:
        """Returns the value as text, for a table that only shows it."""
        if isinstance(self.value, str):
            return self.value
        if isinstance(self.value, list) and all(isinstance(item, str | int | float) for item in self.value):
            return ", ".join(str(item) for item in self.value)
        return json.dumps(self.value, ensure_ascii=False)

    def typed(self, kind: type[Kind]) -> Kind:
        """Returns the whole document as its type."""
        try:
            return read(self.value, kind, self.where)
        except BenchError as error:
            raise BundleError(self.where, str(error).removeprefix(f"{self.where}: ")) from error

    # Shorthands for optional fields: absent and null are the same, a wrong type is still an error.
    def text(self, key: str) -> str | None:
        found = self.find(key)
        return None if found is None else found.as_text()

    def number(self, key: str) -> float | None:
        found = self.find(key)
        return None if found is None else found.as_number()

    def integer(self, key: str) -> int | None:
        found = self.find(key)
        return None if found is None else found.as_integer()

    def flag(self, key: str) -> bool | None:
        found = self.find(key)
        return None if found is None else found.as_flag()

    def numbers(self, key: str) -> tuple[float, ...]:
        found = self.find(key)
        return () if found is None else found.as_numbers()

    def list(self, key: str) -> tuple[Node, ...]:
        found = self.find(key)
        return () if found is None else tuple(found.items())

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(item.as_text() for item in self.list(key))


def parse_document(text: str, name: str) -> Node:
    try:
        return Node(strict(text), name)
    except json.JSONDecodeError as error:
        raise BundleError(name, f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from error
    except ValueError as error:
        raise BundleError(name, f"not JSON: {error}") from error


def read_text(root: Path, name: str) -> str | None:
    """The file's text, or None when the bundle does not hold it."""
    try:
        return bundle_files.read_text(root, name)
    except FileNotFoundError:
        return None
    except BenchError as error:
        raise BundleError(name, str(error).removeprefix(f"{root / name}: ")) from error


def read_document(root: Path, name: str) -> Node | None:
    text = read_text(root, name)
    return None if text is None else parse_document(text, name)
