"""One measured point and its InfluxDB line-protocol text.

Promise: what `Encoder.encode` returns is exactly one line which InfluxDB reads back as the same measurement,
tags, field names, field *types* and values. Whatever line protocol cannot carry (NaN, a newline, a trailing
backslash in a tag, an integer beyond 64 bits) raises `PointError` naming the offender; nothing is altered to
make it fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Union

FieldValue = Union[bool, int, float, str]
Tags = tuple[tuple[str, str], ...]

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)
# A run has some hundred series (cores, drives, sensors); the bound is against a tag that keeps varying.
SERIES_CACHED_MAX = 8192
SHOWN_MAX = 300  # characters of an error


class PointError(ValueError):
    """A point (or a line) that line protocol cannot express; its text shows the beginning of a long value."""

    def __init__(self, text: str) -> None:
        super().__init__(text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}...")


class Point(NamedTuple):
    """A measurement at one instant. `tags` are pairs; `fields` keep their Python type on the wire."""

    measurement: str
    tags: Tags
    fields: Mapping[str, FieldValue]
    time_ns: int


def _check_name(text: str, role: str) -> None:
    if not text:
        raise PointError(f"empty {role}")
    if "\n" in text or "\r" in text:
        raise PointError(f"{role} {text!r} contains a line break")
    if text.endswith("\\"):
        raise PointError(f"{role} {text!r} ends with a backslash, which line protocol cannot express")


def _check_plain_name(text: str, role: str) -> None:
    """Checks the name of a measurement or field: there (not in tags) InfluxDB misreads a backslash before a separator."""
    _check_name(text, role)
    if any("\\" + separator in text for separator in ",= "):
        raise PointError(f"{role} {text!r} has a backslash before a comma, space or '='")


def _escape(text: str, special: str) -> str:
    for character in special:
        if character in text:
            text = text.replace(character, "\\" + character)
    return text


def check_tag(key: str, value: str) -> None:
    """Raise `PointError` when the pair cannot be a tag."""
    _check_name(key, "tag name")
    _check_name(value, f"value of tag {key!r}")
    if key == "time":
        raise PointError("a tag cannot be named 'time': InfluxDB reserves it")


@lru_cache(maxsize=1024)
def _field_key(key: str) -> str:
    _check_plain_name(key, "field name")
    if key == "time":
        raise PointError("a field cannot be named 'time': InfluxDB reserves it")
    return _escape(key, ",= ")


def encode_field(value: FieldValue) -> str:
    """One field value; bool first, because Python's bool is an int and InfluxDB's is not."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if not INT64_MIN <= value <= INT64_MAX:
            raise PointError(f"integer {value} does not fit into 64 bits")
        return f"{value}i"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise PointError(f"{value} is not a number that InfluxDB can store")
        return repr(value)
    if isinstance(value, str):
        if "\n" in value or "\r" in value:
            # InfluxDB would take it, but the spool's invariant is one line per point.
            raise PointError(f"string value {value!r} contains a line break")
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    raise PointError(f"a field cannot hold {type(value).__name__} {value!r}")


@lru_cache(maxsize=1024)
def _number_form(keys: tuple[str, ...], kinds: tuple[type, ...]) -> str | None:
    """Format of a point's fields when all of them are plain numbers, as those that come often are; else None."""
    marks = {int: "=%di", float: "=%r"}
    if not all(kind in marks for kind in kinds):
        return None
    names = [_field_key(key).replace("%", "%%") for key in keys]
    return ",".join([name + marks[kind] for name, kind in zip(names, kinds)])


def _all_within_64_bits(values: tuple[Any, ...]) -> bool:
    """False for NaN, infinities and whatever needs a closer look."""
    for value in values:  # noqa: SIM110 - the generator of all() costs three times as much
        if not INT64_MIN <= value <= INT64_MAX:
            return False
    return True


class Encoder:
    """Encodes points, adding the run's common tags; a point's own tag wins over a common one."""

    def __init__(self, common_tags: Mapping[str, str]) -> None:
        for key, value in common_tags.items():
            check_tag(key, value)
        self._common: dict[str, str] = dict(common_tags)
        # The same series come back ten times a second: escape and sort their tags only once.
        self._head = lru_cache(maxsize=SERIES_CACHED_MAX)(self._make_head)

    def encode(self, point: Point) -> str:
        """The point's line, with its newline."""
        measurement, tags, fields, time_ns = point
        if not fields:
            raise PointError(f"point of {measurement!r} has no fields")
        values = tuple(fields.values())
        form = _number_form(tuple(fields), tuple(map(type, values)))
        if form is not None and _all_within_64_bits(values):
            text = form % values
        else:
            text = ",".join([_field_key(key) + "=" + encode_field(value) for key, value in fields.items()])
        return f"{self._head(measurement, tags)} {text} {time_ns:d}\n"

    def _make_head(self, measurement: str, tags: Tags) -> str:
        _check_plain_name(measurement, "measurement name")
        if measurement.startswith("#"):
            raise PointError(f"measurement {measurement!r} would read as a comment")
        merged = {**self._common, **dict(tags)}
        parts = [_escape(measurement, ", ")]
        for key in sorted(merged):  # InfluxDB stores series by sorted tags and asks clients to sort
            check_tag(key, merged[key])
            parts.append(_escape(key, ",= ") + "=" + _escape(merged[key], ",= "))
        return ",".join(parts)
