"""Records of the running workload: tails the file that daqwriter and the bench's own events are written to.

Promise: every whole line is either passed on with its own timestamp, rejected with a reason, or (after a
restart of the agent) skipped as already spooled, and lines_seen is their sum. The file may appear late; a
last line without its newline waits for the rest. Only the fields below, with these types, are let through:
InfluxDB fixes a field's type for ever.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from daq_bench.telemetry_agent.base.line_parser import parse_line
from daq_bench.telemetry_agent.base.point import Point, PointError
from daq_bench.telemetry_agent.reading.collector import FAST, Reading, reading_now

KNOWN_FIELDS: Mapping[str, Mapping[str, type]] = {
    "daqwriter": {
        "offered_bytes": int,
        "stored_bytes": int,
        "backlog_bytes": int,
        "written_bytes": int,
        "busy_count": int,
        "lost_superchunks": int,
        "read_bytes": int,
        "elapsed_s": float,
        "total_s": float,
        "buffer_bytes": int,
    },
    "bench_event": {"text": str, "end_ms": int},
}
MEASUREMENTS = tuple(KNOWN_FIELDS)
READ_BYTES_MAX = 16 * 1024 * 1024
LINE_CHARACTERS_MAX = 64 * 1024  # delivery reads the spool in pieces that must hold a whole line
REASONS_KEPT_MAX = 5


def check_record(line: str) -> Point:
    """The line's point, or `PointError` saying why it is not a record of ours."""
    if len(line) > LINE_CHARACTERS_MAX:
        raise PointError(f"line of {len(line)} characters, at most {LINE_CHARACTERS_MAX} are allowed")
    point = parse_line(line)
    declared = KNOWN_FIELDS.get(point.measurement)
    if declared is None:
        raise PointError(f"measurement {point.measurement!r} is not one of {', '.join(MEASUREMENTS)}")
    for field, value in point.fields.items():
        expected = declared.get(field)
        if expected is None:
            raise PointError(f"field {field!r} is not declared for {point.measurement}")
        if type(value) is not expected:
            raise PointError(f"field {field!r} is {type(value).__name__}, declared {expected.__name__}")
    return point


class Workload:
    """Collector of the measurements `daqwriter` and `bench_event`.

    The spool holds the first `spooled` records (None: any number) up to the time `after_ns` already. Both are
    asked, for a clock that was set back gives new records old times, and a file that was replaced begins anew."""

    name = "workload"
    pace = FAST

    def __init__(self, period_s: float, path: Path, after_ns: int | None = None, spooled: int | None = None) -> None:
        self.period_s = period_s
        self.path = path
        self._after_ns, self._spooled = after_ns, spooled
        self._fd = -1
        self._inode = 0
        self._offset = 0
        self._rest = b""
        self._passed = self.rejected = self._skipped = 0
        self._reasons: list[str] = []

    def read(self) -> Reading:
        """The whole lines appended since the last reading."""
        replaced = self._follow()
        if self._fd < 0:
            return reading_now({"lines": ""})
        data = os.pread(self._fd, READ_BYTES_MAX, self._offset)
        self._offset += len(data)
        whole, newline, self._rest = (self._rest + data).rpartition(b"\n")
        if len(self._rest) > READ_BYTES_MAX:
            raise ValueError(f"{self.path}: no line break within {READ_BYTES_MAX} bytes")
        text = (whole + newline).decode("utf-8", "replace")
        faults = (f"{self.path} was replaced or truncated: reading it from its start",) if replaced else ()
        return reading_now({"lines": text}, faults)

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """Points of the good lines; counts the others."""
        points = []
        for line in reading.texts["lines"].split("\n"):
            if not line.strip() or line.startswith("#"):
                continue
            try:
                point = check_record(line)
            except PointError as error:
                self._reject(line, error)
                continue
            if self._is_spooled(point):
                self._skipped += 1
            else:
                self._passed += 1
                points.append(point)
        return points

    def _is_spooled(self, point: Point) -> bool:
        if self._after_ns is None or point.time_ns > self._after_ns:
            return False
        return self._spooled is None or self._skipped < self._spooled

    def summary(self) -> dict[str, Any]:
        """Accounting for summary.json."""
        return {
            "path": str(self.path),
            "present": self._fd >= 0,
            "lines_seen": self._passed + self.rejected + self._skipped,
            "lines_passed": self._passed,
            "lines_rejected": self.rejected,
            "lines_skipped_as_spooled": self._skipped,
            "unfinished_line_bytes": len(self._rest),
            "reasons": list(self._reasons),
        }

    def _reject(self, line: str, error: PointError) -> None:
        self.rejected += 1
        if len(self._reasons) < REASONS_KEPT_MAX:
            self._reasons.append(f"{error} in {line[:200]!r}")

    def _follow(self) -> bool:
        """Open the file once it is there; start over (and return True) when it was replaced or truncated."""
        try:
            present = self.path.stat()
        except FileNotFoundError:
            return False  # not yet written, or removed: what was open is read to its end
        if self._fd >= 0 and present.st_ino == self._inode and present.st_size >= self._offset:
            return False
        replaced = self._fd >= 0
        if replaced:
            os.close(self._fd)
        self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        self._inode, self._offset, self._rest = present.st_ino, 0, b""
        return replaced
