"""Plants a template that would run a command in the text fields of a candidate's entry. The fields come from its JSON schema."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daq_bench.bench_model.profiles.yaml_source import load_schema

SCHEMA = load_schema("candidate")
FieldPath = tuple[str | int, ...]
SAMPLES = (
    "s1",
    "1GiB",
    "EUR",
    "2026-01-01",
    "2-7",
    "NAME",
    "10.0.0.1",
    "00" * 32,
)  # one for each pattern of the schema


@dataclass(frozen=True)
class Field:
    """One text field of the schema's fullest document."""

    path: FieldPath
    is_choice: bool  # the schema lists its values


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """Follow a reference within the schema."""
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    return SCHEMA["$defs"][name] if name else schema


def left_out(schema: dict[str, Any]) -> set[str]:
    """Name the keys that the last alternative of the object excludes: `pbw` beside `dwpd`, `target` beside `targets`."""
    alternatives = [set(one["required"]) for one in schema.get("oneOf", []) if "required" in one]
    excluded = set().union(*alternatives[:-1]) - alternatives[-1] if alternatives else set()
    return excluded | ({"target"} if "targets" in schema["properties"] else set())


def fullest(schema: dict[str, Any]) -> Any:
    """Return a document with every field that the schema knows; each choice is the first that allows nothing."""
    schema = resolved(schema)
    kind = schema.get("type") or ("choice" if "enum" in schema else "either")
    if kind == "object":
        keys = schema.get("properties", {"x100": schema.get("additionalProperties")})
        omitted = left_out(schema) if "properties" in schema else set()
        return {key: fullest(one) for key, one in keys.items() if key not in omitted}
    if kind == "array":
        items = resolved(schema["items"])
        return [fullest(one) for one in items.get("oneOf", [items])]
    if kind == "either":
        return fullest(schema["oneOf"][0])
    if kind == "string":
        return next(one for one in SAMPLES if re.search(schema.get("pattern", ""), one))
    values = {"boolean": False, "integer": schema.get("minimum", 1), "number": 1.0}
    return next(one for one in schema["enum"] if one != "allowed") if kind == "choice" else values[kind]


def fields_of(node: Any, schema: dict[str, Any], at: FieldPath = ()) -> Iterator[Field]:
    """Yield every text field of a document that `fullest` has made."""
    schema = resolved(schema)
    if isinstance(node, str):
        yield Field(at, "enum" in schema)
    elif isinstance(node, dict):
        objects = [one for one in schema.get("oneOf", []) if one.get("type") == "object"]
        known = {**schema.get("properties", {}), **(objects[0]["properties"] if objects else {})}
        for key, value in node.items():
            yield from fields_of(value, known.get(key, schema.get("additionalProperties")), (*at, key))
    elif isinstance(node, list):
        items = resolved(schema["items"])
        for index, value in enumerate(node):
            yield from fields_of(value, items.get("oneOf", [items] * len(node))[index], (*at, index))


class Planted:
    """Planted templates: each would make a file of its own in `folder`."""

    def __init__(self, folder: Path) -> None:
        """Find every text field."""
        self.folder = folder
        self.document: dict[str, Any] = fullest(SCHEMA)
        self.fields = list(fields_of(self.document, SCHEMA))

    def text(self, name: str) -> str:
        """Return the template that makes the file `name`."""
        return "{{ lookup('pipe', 'touch " + str(self.folder / f"made-by-{name}") + "') }}"

    def name(self, field: Field) -> str:
        """Return the name of a field's file."""
        return "-".join(map(str, field.path))

    def into(self, *fields: Field) -> dict[str, Any]:
        """Return the fullest document with the template in these fields."""
        document = copy.deepcopy(self.document)
        for field in fields:
            node: Any = document
            for key in field.path[:-1]:
                node = node[key]
            node[field.path[-1]] = self.text(self.name(field))
        return document

    def made(self) -> list[str]:
        """Return the files that the templates have made."""
        return sorted(path.name for path in self.folder.glob("made-by-*"))
