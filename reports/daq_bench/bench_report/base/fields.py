"""Reads a bundle's texts and JSON documents.

Promise: a document is of the type asked for, or a `BundleError` says which file and field held what instead. Nothing is guessed, nothing
is converted silently.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle import files as bundle_files
from daq_bench.bench_model.bundle.files import REMEDY, strict
from daq_bench.bench_model.documents.struct import Kind, read
from daq_bench.bench_report.base.errors import BundleError


@dataclass(frozen=True)
class Node:
    """A JSON document, and the place that it was read from: its file, and the field where it is a part of one."""

    value: object
    where: str

    def typed(self, kind: type[Kind]) -> Kind:
        """Returns the whole document as its type."""
        try:
            return read(self.value, kind, self.where)
        except BenchError as error:
            raise BundleError(self.where, str(error).removeprefix(f"{self.where}: ")) from error


def parse_document(text: str, name: str) -> Node:
    try:
        return Node(strict(text), name)
    except json.JSONDecodeError as error:
        raise BundleError(
            name, f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}. {REMEDY}"
        ) from error
    except ValueError as error:
        raise BundleError(name, f"not JSON: {error}. {REMEDY}") from error


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
