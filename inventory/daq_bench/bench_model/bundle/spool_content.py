"""Tells which points a spool (telemetry/points.lp) holds: series by series, how many lines and how many different times.

Promise: exact, whatever the order of the lines; eight bytes a point, so that a day at 10 Hz fits into memory. InfluxDB keeps one
point per series and time, so that `points` is what a database can hold of `lines`."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from daq_bench.bench_model.bundle.files import byte_lines

# In measurement and tags a separator counts unless a backslash stands before it; quotes mean nothing there.
HEAD = re.compile(rb"[^ ].*?(?<!\\)(?= )")
BACKSLASH = ord("\\")
COMMA, EQUALS, ESCAPED = re.compile(r"(?<!\\),"), re.compile(r"(?<!\\)="), re.compile(r"\\([,= ])")
Series = tuple[str, tuple[tuple[str, str], ...]]  # measurement, its tags in the order of their keys


@dataclass(frozen=True)
class Content:
    """`times_ns` by series: of all whole lines, and of those before the byte that was asked for."""

    all: dict[Series, array[int]] = field(default_factory=dict)
    before: dict[Series, array[int]] = field(default_factory=dict)

    def lines(self) -> Counter[str]:
        """Lines by measurement."""
        found: Counter[str] = Counter()
        for (measurement, _), times in self.all.items():
            found[measurement] += len(times)
        return found

    def points_by_series(self) -> dict[Series, int]:
        return {series: different(times) for series, times in self.all.items()}

    def points(self) -> Counter[str]:
        """Points of different series or time by measurement."""
        return _by_measurement(self.points_by_series())

    def points_before(self) -> Counter[str]:
        """The same of the lines before the byte that was asked for."""
        return _by_measurement({series: different(times) for series, times in self.before.items()})

    def points_older_than(self, time_ns: int) -> Counter[str]:
        """Points whose time lies before `time_ns`."""
        older = {
            series: int(np.unique(values[values < time_ns]).size)
            for series, times in self.all.items()
            if (values := np.frombuffer(times, dtype=np.int64)).size
        }
        return _by_measurement(older)


def different(times: array[int]) -> int:
    return int(np.unique(np.frombuffer(times, dtype=np.int64)).size)


def _by_measurement(counts: dict[Series, int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for (measurement, _), number in counts.items():
        found[measurement] += number
    return found


def read_content(path: Path, before_bytes: int = 0, content: Content | None = None) -> Content:
    """The content of the spool at `path`, on top of `content`; `before_bytes` as far as it is delivered. A last line without its
    newline is not counted, and a comment (it stands where points were thinned out) is no point.

    Raises ValueError that names file and line."""
    content = content if content is not None else Content()
    times_of: dict[bytes, tuple[array[int], Series]] = {}
    offset = 0
    for number, line in enumerate(byte_lines(path), start=1):
        if line[-1:] != b"\n":
            break
        offset += len(line)
        if line[:1] == b"#":
            continue
        try:
            head = _head(line)
            known = times_of.get(head)
            if known is None:
                series = _series(head)
                known = times_of[head] = (content.all.setdefault(series, array("q")), series)
            time_ns = int(line.rpartition(b" ")[2])
            known[0].append(time_ns)
        except (ValueError, IndexError, OverflowError) as error:
            raise ValueError(f"{path}:{number}: not line protocol: {error}") from error
        if offset <= before_bytes:
            content.before.setdefault(known[1], array("q")).append(time_ns)
    return content


def _head(line: bytes) -> bytes:
    """Measurement and tags, as they are written."""
    end = line.index(b" ")
    if end > 0 and line[end - 1] != BACKSLASH:
        return line[:end]
    found = HEAD.match(line)
    if not found:
        raise ValueError("no measurement")
    return found.group()


def _series(head: bytes) -> Series:
    measurement, *pairs = COMMA.split(head.decode("utf-8"))
    tags = []
    for pair in pairs:
        name, value = EQUALS.split(pair, maxsplit=1)
        tags.append((_plain(name), _plain(value)))
    return _plain(measurement), tuple(sorted(tags))


def _plain(text: str) -> str:
    return ESCAPED.sub(r"\1", text)
