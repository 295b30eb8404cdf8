"""Reads the line protocol of telemetry/*.lp.

Promise: a record is read completely or refused with its file and line number. Only the measurements asked for
are decoded, since a spool can hold a million lines of which a report draws a few. A last line without its
newline is the torn end of an interrupted spool: it is left out and reported, never guessed at.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from daq_bench.bench_model.bundle.files import plain_file, text_lines
from daq_bench.bench_model.bundle.line_protocol import Point, parse_line
from daq_bench.bench_report.base.errors import BundleError

__all__ = ["Point", "Spool", "read_spool"]


@dataclass(frozen=True)
class Spool:
    """The content of one file: the points asked for, the number of all lines, and whether its end was torn."""

    points: tuple[Point, ...]
    lines: int
    torn: bool


def read_spool(root: Path, name: str, measurements: Collection[str]) -> Spool | None:
    """Returns the points of the wanted measurements, or None when the bundle holds no such file."""
    wanted = tuple(measurement + mark for measurement in measurements for mark in ", ")
    points: list[Point] = []
    lines = 0
    torn = False
    try:
        file = plain_file(root, name)
        for number, line in enumerate(text_lines(file) if file else (), start=1):
            if not line.endswith("\n"):
                torn = True
                break
            lines += 1
            if line.startswith(wanted):
                points.append(_located(line.rstrip("\r\n"), name, number))
    except UnicodeDecodeError as error:
        raise BundleError(name, f"after line {lines}: byte {error.start} is not UTF-8") from error
    except OSError as error:
        raise BundleError(name, f"cannot be read: {error.strerror}") from error
    return Spool(tuple(points), lines, torn) if file else None


def _located(line: str, name: str, number: int) -> Point:
    try:
        return parse_line(line)
    except ValueError as error:
        raise BundleError(f"{name}: line {number}", f"not line protocol: {error}") from error
