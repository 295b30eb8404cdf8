"""Reads InfluxDB line protocol, the form of telemetry/*.lp in a run bundle.

Promise: a record is read completely or refused; nothing is guessed. Only the measurements asked for are decoded,
since a spool can hold a million lines of which a reader wants a few."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from daq_bench.bench_model.bundle.files import DIGITS_MAX, LINE_MAX, text_lines

# A separator counts only when it is not escaped, and among the fields outside of quotes. In names and tags a quote is a
# character like another: a BMC may call a drive bay `5" Bay`.
SPLITTERS = {mark: re.compile(rf'((?:[^{mark}"\\]|\\.|"(?:[^"\\]|\\.)*")+)') for mark in ", ="}
TAG_SPLITTERS = {mark: re.compile(rf"((?:[^{mark}\\]|\\.|\\$)+)") for mark in ", ="}
ESCAPED = re.compile(r"\\([,= \\])")

FieldValue = float | int | bool | str
TRUE, FALSE = ("t", "T", "true", "True", "TRUE"), ("f", "F", "false", "False", "FALSE")

# Values as agents write them. `parse_line` takes all others: a text with a quote in it, a number near a limit.
ALIKE: dict[type[FieldValue], str] = {
    int: r"{}-?\d{{1,18}})i",
    float: r"{}-?\d{{1,18}}(?:\.\d{{1,24}})?(?:[eE][-+]?\d{{1,2}})?)",
    str: r'"{}[^"\\]*)"',
    bool: f"{{}}{'|'.join(TRUE + FALSE)})",
}
VALUE_OF: dict[type[FieldValue], Callable[[str], FieldValue]] = {
    int: int,
    float: float,
    str: str,
    bool: TRUE.__contains__,
}
KEPT, SKIPPED = "(", "(?:"
ALIKE_STAMP = r"(-?\d{1,18}|[1-8]\d{18})"
SERIES_MAX = 4096

INT64, UINT64 = range(-(1 << 63), 1 << 63), range(1 << 64)


class Point(NamedTuple):
    """One record; `time_ns` counts from 1970 UTC."""

    measurement: str
    tags: dict[str, str]
    fields: dict[str, FieldValue]
    time_ns: int


def parse_line(line: str) -> Point:
    """One record; ValueError says what is wrong with it."""
    if len(line) >= LINE_MAX:  # escapes and quotes are looked for with memory that grows with the line
        raise ValueError(f"a line of {len(line)} characters")
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
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    if "_" in text or not text.isascii() or not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is no number of InfluxDB's")
    return number


def _integer(text: str, known: range) -> int:
    if len(text) > DIGITS_MAX or "_" in text or not text.isascii() or (number := int(text)) not in known:
        raise ValueError(f"{text[:DIGITS_MAX]} is no integer of 64 bits")
    return number


@dataclass(frozen=True)
class _Form:
    """Describes how the fields of one record look; those of the next record of its series mostly look the same."""

    names: tuple[str, ...]
    values: tuple[Callable[[str], FieldValue], ...]
    whole: re.Pattern[str]


@lru_cache(maxsize=1024)
def _form_of(names: tuple[str, ...], kinds: tuple[type[FieldValue], ...], wanted: frozenset[str] | None) -> _Form:
    known = [(name, kind, wanted is None or name in wanted) for name, kind in zip(names, kinds, strict=True)]
    body = ",".join(f"{re.escape(name)}={ALIKE[kind].format(KEPT if kept else SKIPPED)}" for name, kind, kept in known)
    whole = re.compile(f"{body} {ALIKE_STAMP}", re.ASCII)
    return _Form(tuple(one[0] for one in known if one[2]), tuple(VALUE_OF[one[1]] for one in known if one[2]), whole)


NEW: tuple[str, dict[str, str], _Form | None] = ("", {}, None)


@dataclass
class AlikeLines:
    """Reads lines as `parse_line` does, several times faster where many are alike: each series' tags and the form of its fields are
    taken apart once. A line that looks otherwise than the last of its series is read by `parse_line`."""

    wanted: frozenset[str] | None = None  # fields that points are to have of those that lines have; None: all
    _known: dict[str, tuple[str, dict[str, str], _Form | None]] = field(default_factory=dict)

    def point(self, line: str) -> Point:
        """ValueError says what is wrong with the line."""
        head = _head(line)
        measurement, tags, form = self._known.get(head, NEW)
        found = form.whole.fullmatch(line, len(head) + 1) if form else None
        if not form or not found:
            return self._learnt(head, line)
        *texts, stamp = found.groups()
        fields = {name: value(text) for name, value, text in zip(form.names, form.values, texts, strict=True)}
        return Point(measurement, dict(tags), fields, int(stamp))

    def _learnt(self, head: str, line: str) -> Point:
        point = parse_line(line)
        kinds = tuple(type(value) for value in point.fields.values())
        if len(self._known) >= SERIES_MAX:  # a spool of as many series as lines must not fill the memory
            self._known.clear()
        form = _form_of(tuple(point.fields), kinds, self.wanted)
        self._known[head] = (point.measurement, dict(point.tags), form)
        if self.wanted is None:
            return point
        kept = {name: value for name, value in point.fields.items() if name in self.wanted}
        return Point(point.measurement, point.tags, kept, point.time_ns)


def _head(line: str) -> str:
    """Measurement and tags, as they are written."""
    end = line.find(" ")
    if end > 0 and line[end - 1] != "\\":
        return line[:end]
    found = TAG_SPLITTERS[" "].match(line)
    return found[0] if found else ""


def points_of(path: Path, measurements: Collection[str], fields: Collection[str] | None = None) -> Iterator[Point]:
    """The points of the wanted measurements in the order of the file, with the wanted `fields` only (None: all). A last line
    without its newline is still being written and is left out. Raises ValueError that names file and line."""
    wanted = tuple(measurement + mark for measurement in measurements for mark in ", ")
    read = AlikeLines(None if fields is None else frozenset(fields)).point
    for number, line in enumerate(text_lines(path), start=1):
        if line.startswith(wanted) and line.endswith("\n"):
            try:
                yield read(line.rstrip("\r\n"))
            except ValueError as error:
                raise ValueError(f"{path}:{number}: not line protocol: {error}") from error
