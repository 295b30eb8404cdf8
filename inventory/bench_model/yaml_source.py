"""Reads a user's YAML and checks it against a JSON schema; every complaint names file, line, field and remedy."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from referencing import Registry, Resource
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from bench_model.errors import Place, ProfileError

SCHEMAS = Path(__file__).resolve().parent.parent / "schemas"

Key = str | int


@dataclass(frozen=True)
class YamlSource:
    """A parsed YAML file that still knows on which line each field stands."""

    file: Path
    data: Any

    def line_of(self, path: Sequence[Key]) -> int:
        """Line (from 1) of the field at `path`, or of its nearest parent that has one; 0 in an empty file."""
        node, line = self.data, 1 if self.data is not None else 0
        for key in path:
            try:
                if isinstance(node, CommentedMap):
                    line = node.lc.key(key)[0] + 1
                elif isinstance(node, CommentedSeq):
                    line = node.lc.item(key)[0] + 1
                node = node[key]
            except (KeyError, IndexError, TypeError):
                break
        return line

    def error(self, path: Sequence[Key], problem: str, remedy: str, more: int = 0) -> ProfileError:
        return ProfileError(Place(self.file, self.line_of(path), dotted(path)), problem, remedy, more)


def dotted(path: Iterable[Key]) -> str:
    """`requirements[2].bound` for ("requirements", 2, "bound")."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
    return text


def read_yaml(file: Path) -> YamlSource:
    """Parses `file`. Raises ProfileError for a file that is absent, not YAML, or has a key twice."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ProfileError(Place(file, 0, ""), "there is no such file", _files_beside(file)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(Place(file, 0, ""), f"cannot be read: {error}", "Make it a readable UTF-8 file") from None
    try:
        return YamlSource(file, YAML(typ="rt").load(text))
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise ProfileError(Place(file, line, ""), f"is not valid YAML: {error.problem}", "Mend this line") from None
    except YAMLError as error:
        raise ProfileError(Place(file, 0, ""), f"is not valid YAML: {error}", "Mend the file") from None


def _files_beside(file: Path) -> str:
    names = sorted(path.stem for path in file.parent.glob("*.yml")) if file.parent.is_dir() else []
    return f"Known here: {', '.join(names)}" if names else f"{file.parent} holds no .yml file"


def load_schema(name: str) -> dict[str, Any]:
    """The JSON schema `inventory/schemas/<name>.schema.json`."""
    schema: dict[str, Any] = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    return schema


def _validator(name: str) -> Draft202012Validator:
    """A schema may refer to another by its file's name: `{"$ref": "workload-block-scan.schema.json"}`."""

    def retrieve(uri: str) -> Resource[Any]:
        return Resource.from_contents(load_schema(uri.removesuffix(".schema.json")))

    return Draft202012Validator(load_schema(name), registry=Registry(retrieve=retrieve))  # type: ignore[call-arg]


def check(source: YamlSource, schema_name: str, at: Sequence[Key] = ()) -> None:
    """Raises ProfileError for the first field (by line) below `at` that breaks the schema."""
    node = source.data
    for key in at:
        node = node[key]
    validator = _validator(schema_name)
    problems = [_explain(error, at) for error in _leaves(validator.iter_errors(node))]
    if problems:
        # An unknown key first: a misspelt key also makes the right one seem missing, on an earlier line.
        path, problem, remedy = min(
            problems, key=lambda it: (not it[1].startswith("unknown key"), source.line_of(it[0]))
        )
        raise source.error(path, problem, remedy, more=len(problems) - 1)


def check_document(document: object, schema_name: str, name: str) -> None:
    """Raises ProfileError when a JSON document that a tool wrote does not keep to its schema; `name` is its file."""
    errors = list(_leaves(_validator(schema_name).iter_errors(document)))
    if errors:
        path, problem, _ = _explain(errors[0], ())
        place = Place(Path(name), 0, dotted(path))
        raise ProfileError(
            place, problem, f"It must keep to inventory/schemas/{schema_name}.schema.json", len(errors) - 1
        )


def _leaves(errors: Iterable[ValidationError]) -> Iterable[ValidationError]:
    """Schema errors with the alternatives of `oneOf` replaced by the alternative that came nearest."""
    for error in errors:
        if error.context:
            deepest = max(len(child.absolute_path) for child in error.context)
            nearest = [child for child in error.context if len(child.absolute_path) == deepest]
            if deepest > len(error.absolute_path):
                yield nearest[0]
                continue
        yield error


def _explain(error: ValidationError, at: Sequence[Key]) -> tuple[list[Key], str, str]:
    """(path, problem, remedy) in words for a YAML author rather than for a schema author."""
    path: list[Key] = [*at, *error.absolute_path]
    schema: dict[str, Any] = error.schema if isinstance(error.schema, dict) else {}
    rule: Any = error.validator_value
    instance: Any = error.instance
    properties: dict[str, Any] = schema.get("properties", {})
    meaning = f" It is: {schema['description']}" if "description" in schema else ""
    if error.validator == "additionalProperties":
        unknown = next(str(key) for key in instance if key not in properties)
        near = difflib.get_close_matches(unknown, properties, n=1)
        remedy = f"Did you mean {near[0]!r}?" if near else f"Allowed here: {', '.join(properties)}"
        return [*path, unknown], f"unknown key {unknown!r}", remedy
    if error.validator == "required":
        missing = next(key for key in rule if key not in instance)
        return path, f"key {missing!r} is missing", f"Add it: {properties.get(missing, {}).get('description', missing)}"
    if error.validator == "enum":
        return path, f"value {instance!r} is not known", f"Use one of {', '.join(map(str, rule))}"
    if error.validator == "type":
        return path, f"value {instance!r} is not of type {rule}", f"Correct it.{meaning}"
    if error.validator in ("oneOf", "pattern"):
        return path, f"value {instance!r} is not allowed", f"Correct it.{meaning}"
    return path, error.message, f"Correct it.{meaning}"
