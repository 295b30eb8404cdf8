"""Line protocol text back to a `Point`: used to check what a workload hands over, and by the tests.

Promise: accepts what InfluxDB 1.8 accepts on one line with a timestamp (a separator counts as escaped exactly
when the character before it is a backslash); anything else raises `PointError` saying what is wrong. Nothing
is guessed.
"""

from __future__ import annotations

from typing import Callable

from daq_bench.telemetry_agent.base.point import INT64_MAX, INT64_MIN, FieldValue, Point, PointError, encode_field

_TRUE = frozenset(("t", "T", "true", "True", "TRUE"))
_FALSE = frozenset(("f", "F", "false", "False", "FALSE"))
_FLOAT_CHARACTERS = frozenset("0123456789+-.eE")


def parse_line(line: str) -> Point:
    """Parse one line (without its newline)."""
    head_end = _find_bare(line, 0, " ")
    if head_end is None:
        raise PointError("no fields: a line is 'measurement,tags fields timestamp'")
    fields_end = _find_outside_quotes(line, head_end + 1, " ")
    if fields_end is None:
        raise PointError("no timestamp after the fields")
    measurement, tags = _parse_head(line[:head_end])
    fields = _parse_fields(line[head_end + 1 : fields_end])
    return Point(measurement, tags, fields, _parse_integer(line[fields_end + 1 :], "timestamp"))


def _find_bare(text: str, start: int, separator: str) -> int | None:
    index = text.find(separator, start)
    while index > 0 and text[index - 1] == "\\":
        index = text.find(separator, index + 1)
    return None if index < 0 else index


def _find_outside_quotes(text: str, start: int, separator: str) -> int | None:
    """`start` is a field's start. A quote opens a string only after the '=': names may contain quotes."""
    if '"' not in text and "\\" not in text:  # the common case, many times faster
        found = text.find(separator, start)
        return None if found < 0 else found
    quoted = after_equals = False
    index = start
    while index < len(text):
        character = text[index]
        if character == "\\" and index + 1 < len(text):
            # In a string every backslash shields its successor; elsewhere only separators can be shielded.
            index += 2 if quoted or text[index + 1] in ",= " else 1
            continue
        if character == '"' and after_equals:
            quoted = not quoted
        elif character == separator and not quoted:
            return index
        elif not quoted and character in "=,":
            after_equals = character == "="
        index += 1
    if quoted:
        raise PointError("a string value is not closed by a quote")
    return None


def _split(text: str, separator: str, find: Callable[[str, int, str], int | None]) -> list[str]:
    parts, start = [], 0
    while (end := find(text, start, separator)) is not None:
        parts.append(text[start:end])
        start = end + 1
    return [*parts, text[start:]]


def _unescape(text: str, special: str) -> str:
    for character in special:
        text = text.replace("\\" + character, character)
    return text


def _parse_head(head: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    parts = _split(head, ",", _find_bare)
    if not parts[0] or parts[0].startswith("#"):
        raise PointError("no measurement name")
    tags: dict[str, str] = {}
    for part in parts[1:]:
        key, value = _split_pair(part, "tag")
        if not value:
            raise PointError(f"tag {key!r} has no value")
        if key in tags:
            raise PointError(f"tag {key!r} is given twice")
        tags[key] = _unescape(value, ",= ")
    return _unescape(parts[0], ", "), tuple(sorted(tags.items()))


def _split_pair(text: str, role: str) -> tuple[str, str]:
    equals = _find_bare(text, 0, "=")
    if not equals:
        raise PointError(f"{role} {text!r} is not 'name=value'")
    return _unescape(text[:equals], ",= "), text[equals + 1 :]


def _parse_fields(text: str) -> dict[str, FieldValue]:
    fields: dict[str, FieldValue] = {}
    for part in _split(text, ",", _find_outside_quotes):
        key, value = _split_pair(part, "field")
        if key in fields:
            raise PointError(f"field {key!r} is given twice")
        fields[key] = _parse_value(key, value)
    return fields


def _parse_value(key: str, text: str) -> FieldValue:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if text.startswith('"'):
        if len(text) < 2 or not text.endswith('"'):
            raise PointError(f"field {key!r}: string {text} is not closed")
        return _unescape_string(text[1:-1])
    if text.endswith("i"):
        return _parse_integer(text[:-1], f"field {key!r}")
    if not text or not _FLOAT_CHARACTERS.issuperset(text):  # float() alone would also take 'nan' and '1_0'
        raise PointError(f"field {key!r}: {text!r} is not a value")
    try:
        number = float(text)
    except ValueError:
        raise PointError(f"field {key!r}: {text!r} is not a number") from None
    encode_field(number)  # refuses what overflowed to infinity
    return number


def _parse_integer(text: str, role: str) -> int:
    digits = text[1:] if text.startswith("-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise PointError(f"{role}: {text!r} is not an integer")
    number = int(text)
    if not INT64_MIN <= number <= INT64_MAX:
        raise PointError(f"{role}: {text} does not fit into 64 bits")
    return number


def _unescape_string(text: str) -> str:
    out, index = [], 0
    while index < len(text):
        if text[index] == "\\" and text[index + 1 : index + 2] in ('"', "\\"):
            index += 1
        out.append(text[index])
        index += 1
    return "".join(out)
