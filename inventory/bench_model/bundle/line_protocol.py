"""Reads InfluxDB line protocol, the form of telemetry/*.lp in a run bundle.

Promise: a record is read completely or refused; nothing is guessed. Only the measurements asked for are decoded,
since a spool can hold a million lines of which a reader wants a few."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench_model.bundle.files import DIGITS_MAX, text_lines

# A separator counts only when it is not escaped, and among the fields outside of quotes. In names and tags a quote is a
# character like another: a BMC may call a drive bay `5" Bay`.
SPLITTERS = {mark: re.compile(rf'((?:[^{mark}"\\]|\\.|"(?:[^"\\]|\\.)*")+)') for mark in ", ="}
TAG_SPLITTERS = {mark: re.compile(rf"((?:[^{mark}\\]|\\.|\\$)+)") for mark in ", ="}
ESCAPED = re.compile(r"\\([,= \\])")

INT64, UINT64 = range(-(1 << 63), 1 << 63), range(1 << 64)

FieldValue = float | int | bool | str


@dataclass(frozen=True)
class Point:
    """One record; `time_ns` counts from 1970 UTC."""

    measurement: str
    tags: dict[str, str]
    fields: dict[str, FieldValue]
    time_ns: int


def parse_line(line: str) -> Point:
    """One record; ValueError says what is wrong with it."""
    head, body, stamp = _split3(line)
    name, *tag_texts = _pieces(head, ",", TAG_SPLITTERS)
    fields = dict(_field(text) for text in _pieces(body, ","))
    if not fields:
        raise ValueError("no field")
    return Point(_plain(name), dict(_tag(text) for text in tag_texts), fields, _integer(stamp, INT64))


def _pieces(text: str, mark: str, splitters: Mapping[str, re.Pattern[str]] = SPLITTERS) -> list[str]:
    if "\\" not in text and '"' not in text:  # the common case, many times faster
        return text.split(mark)
    return splitters[mark].findall(text)


def _split3(line: str) -> tuple[str, str, str]:
    if "\\" not in line and '"' not in line:
        parts = line.split(" ")
    else:
        head = TAG_SPLITTERS[" "].match(line)
        parts = [head[0], *_pieces(line[head.end() + 1 :], " ")] if head else []
    if len(parts) != 3:
        raise ValueError("expected 'measurement,tags fields time_ns'")
    return parts[0], parts[1], parts[2]


def _plain(text: str) -> str:
    return ESCAPED.sub(r"\1", text) if "\\" in text else text


def _pair(text: str, splitters: Mapping[str, re.Pattern[str]] = SPLITTERS) -> tuple[str, str]:
    parts = _pieces(text, "=", splitters)
    if len(parts) != 2 or not parts[0]:
        raise ValueError(f"'{text}' is not name=value")
    return parts[0], parts[1]


def _tag(text: str) -> tuple[str, str]:
    name, value = _pair(text, TAG_SPLITTERS)
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
        return _integer(text[:-1], INT64 if text[-1] == "i" else UINT64)
    if text in ("t", "T", "true", "True", "TRUE"):
        return True
    if text in ("f", "F", "false", "False", "FALSE"):
        return False
    if "_" in text or not text.isascii() or not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is no number of InfluxDB's")
    return number


def _integer(text: str, known: range) -> int:
    if len(text) > DIGITS_MAX or "_" in text or not text.isascii() or (number := int(text)) not in known:
        raise ValueError(f"{text[:DIGITS_MAX]} is no integer of 64 bits")
    return number


def points_of(path: Path, measurements: Collection[str]) -> Iterator[Point]:
    """The points of the wanted measurements in the order of the file. A last line without its newline is still being
    written and is left out. Raises ValueError that names file and line."""
    wanted = tuple(measurement + mark for measurement in measurements for mark in ", ")
    for number, line in enumerate(text_lines(path), start=1):
        if line.endswith("\n") and line.startswith(wanted):
            try:
                yield parse_line(line.rstrip("\r\n"))
            except ValueError as error:
                raise ValueError(f"{path}:{number}: not line protocol: {error}") from error
