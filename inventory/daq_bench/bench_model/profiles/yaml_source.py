"""Reads a user's YAML and checks it against a JSON schema; every complaint names file, line, field and remedy.

A profile may also come out of somebody else's run bundle: no file, whatever is in it, takes long to be refused, and no number of
a document is infinite or not a number, which every comparison would answer wrongly."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
from jsonschema import Draft202012Validator, ValidationError
from referencing import Registry, Resource
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.composer import Composer, ComposerError
from ruamel.yaml.constructor import ConstructorError, RoundTripConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent

from daq_bench.bench_model.base.errors import BenchError, Place, ProfileError, in_words
from daq_bench.bench_model.base.nearest import nearest
from daq_bench.bench_model.base.places import REPOSITORY

SCHEMAS = REPOSITORY / "inventory" / "schemas"
METRICS = REPOSITORY / "inventory" / "metrics.yml"

Key = str | int

BYTES_MAX = 2**19  # an inventory of 150 servers has some 200 kB
ENTRIES_MAX = (
    20_000  # commas and lines: four times as many as inventory/metrics.yml has; the parser takes seconds for these
)
DEPTH_MAX = 40  # the deepest of ours is at 14
ALIASES_MAX = 32

# Characters that a reader does not see, or that turn the reading direction round: they have no business in a name.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class _Composer(Composer):
    """Refuses what would be deep or large only when it is unfolded."""

    _depth = _aliases = _anchors = _anchored = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.parser.peek_event()
        if isinstance(event, AliasEvent):
            self._aliases += 1
            if self._anchored or self._aliases > ALIASES_MAX:
                problem = f"has an alias within an anchored part, or more than {ALIASES_MAX} aliases"
                raise ComposerError(None, None, problem, event.start_mark)
        anchored = bool(getattr(event, "anchor", None)) and not isinstance(event, AliasEvent)
        self._anchors += anchored
        if self._anchors > ALIASES_MAX:
            raise ComposerError(None, None, f"has more than {ALIASES_MAX} anchors", event.start_mark)
        self._depth, self._anchored = self._depth + 1, self._anchored + anchored
        if self._depth > DEPTH_MAX:
            raise ComposerError(None, None, f"is nested more than {DEPTH_MAX} deep", event.start_mark)
        node = super().compose_node(parent, index)
        self._depth, self._anchored = self._depth - 1, self._anchored - anchored
        return node


class _Constructor(RoundTripConstructor):
    """Names the line of a value that looks like a date or a number but is text."""

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, ArithmeticError, TypeError, LookupError, AttributeError) as error:
            raise ConstructorError(None, None, f"{error} (value {_short(node.value)})", node.start_mark) from None

    def construct_yaml_bool(self, node: Any) -> bool:
        """Also of an anchored one, which would be an integer."""
        return bool(super().construct_yaml_bool(node))


_Constructor.add_constructor("tag:yaml.org,2002:bool", _Constructor.construct_yaml_bool)


@dataclass(frozen=True)
class YamlSource:
    """A parsed YAML file that still knows on which line each field stands, unless it was read `without_lines`."""

    file: Path
    data: Any

    @property
    def has_lines(self) -> bool:
        return not isinstance(self.data, dict) or isinstance(self.data, CommentedMap)

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


KEPT_MAX = 8  # texts, of at most BYTES_MAX each
_kept: dict[str, Any] = {}


def read_yaml(file: Path) -> YamlSource:
    """Parses `file`. Raises ProfileError for a file that is absent, not YAML, has a key twice, or holds what no profile may."""
    return parsed(file, text_of(file))


def read_shared_yaml(file: Path) -> YamlSource:
    """The same for readers that change nothing in it: a text that was just parsed, in whichever file, is not parsed again. An inventory
    of hundreds of candidates is asked for each of them, and thousands of bundles hold the same scenario."""
    text = text_of(file)
    if text in _kept:
        return YamlSource(file, _kept[text])
    source = parsed(file, text)
    for old in list(_kept)[: max(0, len(_kept) - KEPT_MAX + 1)]:
        _kept.pop(old, None)
    _kept[text] = source.data
    return source


def parsed(file: Path, text: str) -> YamlSource:
    """Parses `text`, which text_of read from `file`."""
    yaml = YAML(typ="rt")
    yaml.Composer, yaml.Constructor = _Composer, _Constructor
    try:
        source = YamlSource(file, yaml.load(text))
    except RecursionError:
        raise ProfileError(Place(file, 1, ""), "is nested too deep", "Write it flat") from None
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise ProfileError(
            Place(file, line, ""), f"is not valid YAML: {_short_problem(error.problem)}", "Mend this line"
        ) from None
    except YAMLError as error:
        line = text.count("\n", 0, getattr(error, "position", 0)) + 1
        raise ProfileError(
            Place(file, line, ""), f"is not valid YAML: {_short_problem(error)}", "Mend the file"
        ) from None
    for path, problem in _strange(source.data, ()):
        raise source.error(path, problem, "Correct it")
    return source


def without_lines(file: Path, text: str) -> YamlSource:
    """Parses `text` as `parsed` does, for readers that change nothing in it and need no lines.

    Our own metrics.yml takes `parsed` half a second, at each start of a command, and libyaml a twentieth of that. It does not
    know the limits above, so that somebody else's text is not for it; what it takes for wrong, the other one says in words."""
    if file.name == METRICS.name and text == text_of(METRICS):
        from yaml import CSafeLoader
        from yaml import YAMLError as LibyamlError

        class Unique(CSafeLoader):  # type: ignore[misc]
            """Refuses a key that stands twice."""

            def construct_mapping(self, node: Any, deep: bool = False) -> Any:
                found = super().construct_mapping(node, deep)
                if len(found) != len(node.value):
                    raise LibyamlError("a key stands twice")
                return found

        with suppress(LibyamlError):
            source = YamlSource(file, Unique(text).get_data())
            if not any(_strange(source.data, ())):
                return source
    return parsed(file, text)


def text_of(file: Path) -> str:
    """Reads a file that is small enough to be parsed."""
    if file.exists() and not file.is_file():
        raise ProfileError(Place(file, 0, ""), "is not a regular file", "Name a YAML file")
    try:
        with file.open("rb") as stream:
            text = stream.read(BYTES_MAX + 1).decode("utf-8")
    except FileNotFoundError:
        raise ProfileError(Place(file, 0, ""), "there is no such file", _meant(file)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(
            Place(file, 0, ""), f"cannot be read: {in_words(error)}", "Make it a readable UTF-8 file"
        ) from None
    entries = text.count(",") + text.count("\n")
    if len(text) > BYTES_MAX or entries > ENTRIES_MAX:
        limit = f"{BYTES_MAX} characters or {ENTRIES_MAX} lines and commas"
        raise ProfileError(Place(file, text.count("\n") + 1, ""), f"is larger than {limit}", "Split it into several")
    for number, line in enumerate(text.splitlines(), start=1):
        # The parser looks ahead to the line's end at every bracket, which takes seconds for some thousands of them.
        if line.count("[") + line.count("{") > DEPTH_MAX and _brackets_open(line) > DEPTH_MAX:
            raise ProfileError(Place(file, number, ""), f"is nested more than {DEPTH_MAX} deep", "Write it flat")
    return text


def _brackets_open(line: str) -> int:
    """Says how many brackets of one line are open at once, at most."""
    deepest = depth = 0
    for character in line:
        depth += (character in "[{") - (character in "]}")
        deepest = max(deepest, depth)
    return deepest


def _strange(node: Any, path: tuple[Key, ...]) -> Iterator[tuple[tuple[Key, ...], str]]:
    """Says where a document holds an invalid number, or text that shows as something else."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _strange(key, (*path, key))
            yield from _strange(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _strange(value, (*path, index))
    elif isinstance(node, str) and _UNSEEN.search(node):
        yield path, f"value {node!a} has a character that is not shown"
    elif isinstance(node, int | float) and not finite(node):
        yield path, f"value {_short(node)} is no finite number"


def finite(value: float) -> bool:
    """Says whether it is a number that can be reckoned with."""
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False


def _short(value: object) -> str:
    try:
        text = str(value)
    except ValueError:  # an integer of thousands of digits
        return "of thousands of digits"
    return text if len(text) <= 40 else f"{text[:40]}..."


def _short_problem(problem: object) -> str:
    """The parser's words, which may repeat a line of the file."""
    text = str(problem)
    return text if len(text) <= 400 else f"{text[:400]}..."


def _meant(file: Path) -> str:
    names = sorted(path.stem for path in file.parent.glob("*.yml")) if file.parent.is_dir() else []
    listed = (
        f"daq-bench list {file.parent.name}" if file.parent.parent == REPOSITORY / "inventory" else f"ls {file.parent}"
    )
    if names:
        return nearest(file.stem, names, listed)
    here = "this folder" if file.parent == Path() else file.parent
    return f"Name a YAML file that is there; {here} holds no .yml file"


def load_schema(name: str) -> dict[str, Any]:
    """The JSON schema `inventory/schemas/<name>.schema.json`. Raises BenchError where it is missing."""
    file = SCHEMAS / f"{name}.schema.json"
    try:
        schema: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BenchError(
            f"{file} is missing. `make schemas` writes the schemas of documents; git has the others"
        ) from None
    return schema


@cache
def _named(name: str) -> Draft202012Validator:
    return _validator(load_schema(name))


def _validator(schema: Mapping[str, Any]) -> Draft202012Validator:
    """A schema may refer to another by its file's name: `{"$ref": "workload-block-scan.schema.json"}`."""

    def retrieve(uri: str) -> Resource[Any]:
        return Resource.from_contents(load_schema(uri.removesuffix(".schema.json")))

    return Draft202012Validator(schema, registry=Registry(retrieve=retrieve))  # type: ignore[call-arg]


def check(source: YamlSource, schema: str | Mapping[str, Any], at: Sequence[Key] = ()) -> None:
    """Raises ProfileError for the first field (by line) below `at` that breaks the schema: one by name, or one that was made."""
    node = source.data
    for key in at:
        node = node[key]
    if source.data is None:
        what = f"a {schema} (inventory/schemas/{schema}.schema.json)" if isinstance(schema, str) else "its fields"
        raise source.error((), "is empty", f"Write {what} into it, or name another file")
    validator = _named(schema) if isinstance(schema, str) else _validator(schema)
    problems = [_explain(error, at) for error in _leaves(validator.iter_errors(node))]
    if problems:
        # An unknown key first: a misspelt key also makes the right one seem missing, on an earlier line.
        path, problem, remedy = min(
            problems, key=lambda it: (not it[1].startswith("unknown key"), source.line_of(it[0]))
        )
        raise source.error(path, problem, remedy, more=len(problems) - 1)


def check_document(document: object, schema_name: str, name: str) -> None:
    """Raises ProfileError when a JSON document that a tool wrote does not keep to its schema; `name` is its file."""
    if _sound(schema_name, document):
        return
    errors = list(_leaves(_named(schema_name).iter_errors(document)))
    if errors:
        path, problem, _ = _explain(errors[0], ())
        place = Place(Path(name), 0, dotted(path))
        raise ProfileError(
            place, problem, f"It must keep to inventory/schemas/{schema_name}.schema.json", len(errors) - 1
        )


@cache
def _compiled(schema_name: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(
        load_schema(schema_name), retriever=lambda uri: load_schema(uri.rpartition("/")[2].removesuffix(".schema.json"))
    )


def _sound(schema_name: str, document: object) -> bool:
    """Whether the document keeps to its schema, a hundred times as fast as the validator that says in words why one does not."""
    try:
        return _compiled(schema_name).is_valid(document)
    except ValueError:  # what it cannot read at all is for the other one to say
        return False


def _leaves(errors: Iterable[ValidationError]) -> Iterable[ValidationError]:
    """Schema errors with the alternatives of `oneOf` replaced by the alternative that came nearest."""
    for error in errors:
        if error.context:
            deepest = max(len(child.absolute_path) for child in error.context)
            nearest = [child for child in error.context if len(child.absolute_path) == deepest]
            keys = [child for child in error.context if child.validator in ("additionalProperties", "required")]
            found = nearest if deepest > len(error.absolute_path) else keys
            if found:
                yield found[0]
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
        return [*path, unknown], f"unknown key {unknown!r}", nearest(unknown, properties)
    if error.validator == "required":
        missing = next(key for key in rule if key not in instance)
        return path, f"key {missing!r} is missing", f"Add it: {properties.get(missing, {}).get('description', missing)}"
    if error.validator == "enum":
        return path, f"value {instance!r} is not known", nearest(str(instance), rule)
    if error.validator == "dependentRequired":
        key, missing = next((key, one) for key in rule if key in instance for one in rule[key] if one not in instance)
        said = properties.get(missing, {}).get("description", missing)
        return path, f"key {missing!r} is missing, which {key!r} needs", f"Add it: {said}"
    if error.validator == "type" and instance is None:
        return path, "has no value", f"Write one, or remove the key.{meaning}"
    problem, remedy = _broken(str(error.validator), rule, instance)
    return path, problem, f"{remedy}.{meaning}"


KINDS = {
    "array": "a list", "boolean": "true or false", "integer": "a whole number", "null": "null", "number": "a number",
    "object": "a group of keys", "string": "text",
}  # fmt: skip
FORMS = {"^[a-z0-9][a-z0-9-]*$": "lower-case letters, digits and hyphens, a hyphen not first"}
# Rules that bound a number or a length: what is wrong, and what to write.
BOUNDS = {
    "minimum": ("value {it} is too small", "Write at least {rule}"),
    "maximum": ("value {it} is too large", "Write at most {rule}"),
    "exclusiveMinimum": ("value {it} is too small", "Write a number above {rule}"),
    "exclusiveMaximum": ("value {it} is too large", "Write a number below {rule}"),
    "minItems": ("has too few entries ({size})", "Write at least {rule}"),
    "maxItems": ("has too many entries ({size})", "Write at most {rule}"),
    "minLength": ("has too few characters ({size})", "Write at least {rule}"),
    "maxLength": ("has too many characters ({size})", "Write at most {rule}"),
    "minProperties": ("has too few keys ({size})", "Write at least {rule}"),
    "maxProperties": ("has too many keys ({size})", "Write at most {rule}"),
}


def _broken(validator: str, rule: Any, instance: Any) -> tuple[str, str]:
    """(problem, remedy) of a value that breaks one rule, each without its full stop."""
    if validator in BOUNDS:
        size = len(instance) if isinstance(instance, Sized) else 0
        problem, remedy = (text.format(it=_short(instance), rule=rule, size=size) for text in BOUNDS[validator])
        return problem, remedy
    if validator == "type":
        wanted = " or ".join(KINDS[one] for one in ([rule] if isinstance(rule, str) else rule))
        return f"value {instance!r} is not {wanted}", f"Write {wanted}"
    if validator == "pattern":
        return f"value {instance!r} is not allowed", f"Write {FORMS.get(rule, f'it in the form {rule}')}"
    if validator == "uniqueItems":
        twice = next(one for place, one in enumerate(instance) if one in instance[:place])
        return f"has {twice!r} twice", "Remove one"
    if validator == "not" and "required" in rule:
        return f"has {' and '.join(rule['required'])}, which exclude each other", "Remove one"
    if validator == "const":
        return f"value {instance!r} is not allowed", f"Write {rule!r}"
    return f"value {instance!r} is not allowed", "Correct it"
