"""Reads the line protocol of telemetry/*.lp.

Promise: a record is read completely or refused with its file and line number. Only the measurements asked for
are decoded, since a spool can hold a million lines of which a report draws a few. A last line without its
newline is the torn end of an interrupted spool: it is left out and reported, never guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from .errors import BundleError

# A separator counts only outside of quotes and when it is not escaped.
SPLITTERS = {mark: re.compile(rf'((?:[^{mark}"\\]|\\.|"(?:[^"\\]|\\.)*")+)') for mark in ", ="}
ESCAPED = re.compile(r"\\([,= \\])")

FieldValue = float | int | bool | str


@dataclass(frozen=True)
class Point:
    measurement: str
    tags: dict[str, str]
    fields: dict[str, FieldValue]
    time_ns: int


@dataclass(frozen=True)
class Spool:
    """What one file held: the points asked for, all lines counted, and whether its end was torn."""

    points: tuple[Point, ...]
    lines: int
    torn: bool


def parse_line(line: str) -> Point:
    """One record; ValueError says what is wrong with it."""
    head, body, stamp = _split3(line)
    name, *tag_texts = _pieces(head, ",")
    fields = dict(_field(text) for text in _pieces(body, ","))
    if not fields:
        raise ValueError("no field")
    return Point(_plain(name), dict(_tag(text) for text in tag_texts), fields, int(stamp))


def _pieces(text: str, mark: str) -> list[str]:
    if "\\" not in text and '"' not in text:  # the common case, many times faster
        return text.split(mark)
    return SPLITTERS[mark].findall(text)


def _split3(line: str) -> tuple[str, str, str]:
    parts = _pieces(line, " ")
    if len(parts) != 3:
        raise ValueError("expected 'measurement,tags fields time_ns'")
    return parts[0], parts[1], parts[2]


def _plain(text: str) -> str:
    return ESCAPED.sub(r"\1", text) if "\\" in text else text


def _pair(text: str) -> tuple[str, str]:
    parts = _pieces(text, "=")
    if len(parts) != 2 or not parts[0]:
        raise ValueError(f"'{text}' is not name=value")
    return parts[0], parts[1]


def _tag(text: str) -> tuple[str, str]:
    name, value = _pair(text)
    return _plain(name), _plain(value)


def _field(text: str) -> tuple[str, FieldValue]:
    name, value = _pair(text)
    return _plain(name), _value(value)


def _value(text: str) -> FieldValue:
    if text.startswith('"'):
        if len(text) < 2 or not text.endswith('"'):
            raise ValueError(f"text {text} is not closed")
        return re.sub(r'\\(["\\])', r"\1", text[1:-1])
    if text[-1:] in "iu" and text[:-1]:
        return int(text[:-1])
    if text in ("t", "T", "true", "True", "TRUE"):
        return True
    if text in ("f", "F", "false", "False", "FALSE"):
        return False
    return float(text)


def read_spool(root: Path, name: str, measurements: Collection[str]) -> Spool | None:
    """The points of the wanted measurements, or None when the bundle holds no such file."""
    wanted = tuple(measurement + mark for measurement in measurements for mark in ", ")
    points: list[Point] = []
    lines = 0
    torn = False
    try:
        with (root / name).open(encoding="utf-8") as stream:
            for number, line in enumerate(stream, start=1):
                if not line.endswith("\n"):
                    torn = True
                    break
                lines += 1
                if line.startswith(wanted):
                    points.append(_located(line.rstrip("\r\n"), name, number))
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise BundleError(name, f"after line {lines}: byte {error.start} is not UTF-8") from error
    except OSError as error:
        raise BundleError(name, f"cannot be read: {error.strerror}") from error
    return Spool(tuple(points), lines, torn)


def _located(line: str, name: str, number: int) -> Point:
    try:
        return parse_line(line)
    except ValueError as error:
        raise BundleError(f"{name}: line {number}", f"not line protocol: {error}") from error
