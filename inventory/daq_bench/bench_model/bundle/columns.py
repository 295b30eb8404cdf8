"""Reads a spool (telemetry/points.lp) into columns, some ten times faster than point by point: a spool may hold ten million points.

Promise: the same values as `line_protocol.parse_line` gives, in the order of the file, or the same refusal with file and line. Records of
one series are alike; where a block of them matches the form of its first one to the last character, its numbers are read at once, and
otherwise record by record. Memory: 8 B for each value and for each time (times are shared by the fields of a record)."""

from __future__ import annotations

import multiprocessing
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.files import LINE_MAX, REMEDY, SPOOL_BYTES_MAX, open_file, text_lines
from daq_bench.bench_model.bundle.line_protocol import AlikeLines, Point, parse_line, points_of

Times = NDArray[np.int64]
Values = NDArray[np.float64]
Fields = Mapping[str, Collection[str] | None]  # by measurement those that are wanted; None: all
Tags = tuple[tuple[str, str], ...]
Name = tuple[str, Tags, str]  # measurement, tags, field

BLOCK_BYTES = 1 << 25
PARALLEL_FROM_BYTES = 4 * BLOCK_BYTES  # below, starting processes costs more than it saves
STAMP_DIGITS = 19  # of ns since 1970, from 2001 to 2286
POWERS = 10 ** np.arange(STAMP_DIGITS - 1, -1, -1, dtype=np.int64)
ALIKE_MIN = 8  # records; fewer are read one by one
NUMBERS = {"i": rb"-?\d{1,18}i", "": rb"[-+.0-9eE]+"}


@dataclass(frozen=True)
class Column:
    """The samples of one field of one series, in the order of the file. `flag`: true and false, as 1 and 0."""

    times_ns: Times
    values: Values
    flag: bool = False


@dataclass(frozen=True)
class Columns:
    """`lines`: all whole ones of the file, wanted or not. `torn`: its last one lacks its newline and is left out."""

    found: dict[Name, Column] = field(default_factory=dict)
    lines: int = 0
    torn: bool = False


@dataclass
class _Block:
    parts: dict[Name, list[Column]] = field(default_factory=lambda: defaultdict(list))
    lines: int = 0


class _OddError(Exception):
    """The fast reader leaves the file to the careful one, which finds what is wrong with it, or reads it."""


def read_columns(path: Path, wanted: Fields, workers: int | None = None) -> Columns:
    """The wanted fields of the spool at `path`. Raises ValueError that names file and line, UnicodeDecodeError, OSError."""
    size = path.stat().st_size
    count = min(2, os.cpu_count() or 1) if workers is None else workers
    spans = list(_spans(path, size))
    read = partial(_read_span, path, dict(wanted))
    try:
        if count > 1 and size >= PARALLEL_FROM_BYTES:
            with ProcessPoolExecutor(count, multiprocessing.get_context("fork")) as pool:
                blocks = list(pool.map(read, spans))
        else:
            blocks = [read(span) for span in spans]
    except _OddError:
        return _read_carefully(path, wanted)
    whole = spans[-1][1] if spans else 0
    return Columns(_joined(blocks), sum(block.lines for block in blocks), torn=whole < size)


def _spans(path: Path, size: int) -> Iterator[tuple[int, int]]:
    """Byte ranges of whole lines, each of about a block."""
    with open_file(path.parent, path.name, SPOOL_BYTES_MAX) as stream:
        start = 0
        while start < size:
            end = _line_end(stream, min(start + BLOCK_BYTES, size), start)
            if end - start > BLOCK_BYTES + LINE_MAX or (end == start and size - start > LINE_MAX):
                raise BenchError(f"{path}: has a line of more than {LINE_MAX} characters. {REMEDY}")
            if end == start:
                return
            yield start, end
            start = end


def _line_end(stream: object, at: int, start: int) -> int:
    """Behind the newline that is the last before `at`, or else the first after it; `start` when there is none."""
    seek, read = stream.seek, stream.read  # type: ignore[attr-defined]
    back = start
    for reach in (1 << 16, at - start):
        back = max(start, at - reach)
        seek(back)
        found = read(at - back).rfind(b"\n")
        if found >= 0:
            return int(back + found + 1)
    seek(at)
    while piece := read(1 << 20):
        found = piece.find(b"\n")
        if found >= 0:
            return int(at + found + 1)
        at += len(piece)
    return start


def _read_span(path: Path, wanted: Fields, span: tuple[int, int]) -> _Block:
    with open_file(path.parent, path.name, SPOOL_BYTES_MAX) as stream:
        stream.seek(span[0])
        text = stream.read(span[1] - span[0])
    if b"\r" in text or not _is_utf8(text):
        raise _OddError
    series: dict[bytes, list[bytes]] = defaultdict(list)
    for line in text[:-1].split(b"\n"):
        head, _, rest = line.partition(b" ")
        series[head].append(rest)
    block = _Block(lines=text.count(b"\n"))
    measurements = {name.encode() for name in wanted}
    for head, records in series.items():
        if head.partition(b",")[0] in measurements:
            try:
                _add_records(block, head, records, wanted)
            except ValueError as error:
                raise _OddError from error
    return block


def _is_utf8(text: bytes) -> bool:
    try:
        return text.isascii() or bool(text.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _add_records(block: _Block, head: bytes, records: list[bytes], wanted: Fields) -> None:
    """The records of one series. Its form changes now and then: an agent's first reading has no rates yet."""
    text, odd = b"\n" + b"\n".join(records), list[bytes]()
    at = start = 0
    while at < len(records):
        form = None if b"\\" in head else _form(records[at].rpartition(b" ")[0])
        end = form.end_of_alike(text, start) if form else start
        count = text.count(b"\n", start, end)
        read = _at_once(form, text[start:end], count) if form and count >= ALIKE_MIN else None
        if read:
            _add_odd(block, head, odd, wanted)
            odd = []
            _add_alike(block, parse_line(f"{head.decode()} {records[at].decode()}"), read, wanted)
        else:
            count = max(1, count)
            odd += records[at : at + count]
        start += count + sum(map(len, records[at : at + count]))
        at += count
    _add_odd(block, head, odd, wanted)


def _add_odd(block: _Block, head: bytes, records: list[bytes], wanted: Fields) -> None:
    read = AlikeLines().point
    _add_points(block, (read(f"{head.decode()} {record.decode()}") for record in records), wanted)


def _add_alike(block: _Block, first: Point, read: tuple[Times, Values], wanted: Fields) -> None:
    times, table = read
    chosen, tags = _chosen(first, wanted), tuple(first.tags.items())
    for place, name in enumerate(first.fields):
        if chosen is None or name in chosen:
            block.parts[first.measurement, tags, name].append(Column(times, np.ascontiguousarray(table[:, place])))


def _chosen(point: Point, wanted: Fields) -> Collection[str] | None:
    return wanted.get(point.measurement, ())


@dataclass(frozen=True)
class _Form:
    """Describes how the records of a series look: `whole` matches any number of them, `marks` are what stands around their numbers."""

    whole: re.Pattern[bytes]
    first_key: bytes
    other_keys: tuple[bytes, ...]

    def end_of_alike(self, text: bytes, start: int) -> int:
        """Says where the records from `start` on cease to look so."""
        found = self.whole.match(text, start)
        return found.end() if found else start


@lru_cache(maxsize=1024)
def _form_of(keys: tuple[bytes, ...], kinds: tuple[str, ...]) -> _Form:
    one = b",".join(re.escape(key) + b"=" + NUMBERS[kind] for key, kind in zip(keys, kinds, strict=True))
    whole = re.compile(rb"(?:\n" + one + rb" \d{%d}(?=\n|\Z))++" % STAMP_DIGITS)
    return _Form(whole, b"\n" + keys[0] + b"=", tuple(b"," + key + b"=" for key in keys[1:]))


def _form(body: bytes) -> _Form | None:
    """None where a record holds more than plain numbers."""
    if b'"' in body or b"\\" in body:
        return None
    pairs = [pair.partition(b"=") for pair in body.split(b",")]
    keys = tuple(key for key, _, _ in pairs)
    kinds = tuple("i" if value.endswith(b"i") else "" for _, _, value in pairs)
    if not all(keys) or len(set(keys)) < len(keys):
        return None
    return _form_of(keys, kinds)


def _at_once(form: _Form, text: bytes, count: int) -> tuple[Times, Values] | None:
    """Times (n) and values (n x fields) of so many records that are all alike; None where a number in one of them is odd."""
    raw = np.frombuffer(text + b"\n", dtype=np.uint8)
    ends = np.flatnonzero(raw == 10)[1:]
    digits = raw[ends[:, None] + np.arange(-STAMP_DIGITS, 0)].astype(np.int64) - 48
    if (digits[:, 0] == 9).any():  # may be beyond 64 bits
        return None
    plain = text.replace(form.first_key, b"\n")
    for key in form.other_keys:
        plain = plain.replace(key, b" ")
    width = len(form.other_keys) + 2
    numbers = np.fromstring(plain.replace(b"i ", b" "), dtype=np.float64, sep=" ")
    if numbers.size != width * count or not np.isfinite(numbers).all():
        return None
    return digits @ POWERS, numbers.reshape(-1, width)[:, :-1]


def _add_points(block: _Block, points: Iterable[Point], wanted: Fields) -> None:
    """Record by record; a text is no column."""
    samples: dict[Name, tuple[list[int], list[float], bool]] = {}
    for point in points:
        chosen = _chosen(point, wanted)
        for name, value in point.fields.items():
            if not isinstance(value, str) and (chosen is None or name in chosen):
                key = (point.measurement, tuple(point.tags.items()), name)
                times, values, _ = samples.setdefault(key, ([], [], isinstance(value, bool)))
                times.append(point.time_ns)
                values.append(float(value))
    for key, (times, values, flag) in samples.items():
        block.parts[key].append(Column(np.array(times, dtype=np.int64), np.array(values, dtype=np.float64), flag))


def _joined(blocks: list[_Block]) -> dict[Name, Column]:
    parts: dict[Name, list[Column]] = defaultdict(list)
    for block in blocks:
        for name, columns in block.parts.items():
            parts[name] += columns
    shared: dict[tuple[int, ...], Times] = {}
    found = {}
    for name, columns in parts.items():
        key = tuple(id(column.times_ns) for column in columns)
        if key not in shared:
            shared[key] = np.concatenate([column.times_ns for column in columns])
        values = np.concatenate([column.values for column in columns])
        found[name] = Column(shared[key], values, any(column.flag for column in columns))
    return found


def _read_carefully(path: Path, wanted: Fields) -> Columns:
    """Record by record, by the reader that says where a file is wrong."""
    block = _Block()
    _add_points(block, points_of(path, wanted.keys()), wanted)
    lines, torn = 0, False
    for line in text_lines(path):
        torn = not line.endswith("\n")
        lines += not torn
    return Columns(_joined([block]), lines, torn)
