"""Tells how far the spool has been delivered: `cursor.json`, and `rejected.lp` for lines that the server refused
for good.

Promise: the cursor moves over whole lines only, and only once they are stored or put aside. It is replaced
atomically; a lost or impossible cursor means delivery from the start, which is harmless because InfluxDB
overwrites equal points. A full disk keeps it from being saved, not from moving: after a crash some points go twice.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from daq_bench.telemetry_agent.base.files import replace_json, utc_text

CURSOR_FILE = "cursor.json"
REJECTED_FILE = "rejected.lp"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_COUNTS = ("delivered_bytes_offset", "delivered_points", "rejected_points", "rejected_bytes_offset")


class Cursor:
    """The position and its counts: moved by the delivery thread, read by others, closed by the main one."""

    def __init__(self, directory: Path, spool_bytes: int, points_before: int | None = -1) -> None:
        """`points_before`: points in the spool before the saved offset, None when that is no line's end, -1: not counted."""
        self._path = directory / CURSOR_FILE
        self._rejected_path = directory / REJECTED_FILE
        self._lock = threading.Lock()
        self._closed = False
        self.note: str | None = None
        self._rejected_lines: set[bytes] | None = None
        self._saved = True
        counts = self._load(spool_bytes, points_before)
        self.offset = counts["delivered_bytes_offset"]
        self.delivered_points = counts["delivered_points"]
        self.rejected_points = counts["rejected_points"]
        self._rejected_bytes = counts["rejected_bytes_offset"]
        self._cut_rejected()

    def deliver(self, lines: list[bytes]) -> None:
        """These next lines are stored; comments among them are passed over."""
        self.advance(sum(map(len, lines)), sum([not line.startswith(b"#") for line in lines]))

    def advance(self, size: int, points: int) -> None:
        """The next `size` bytes, whole lines with so many points, are stored."""
        with self._lock:
            if self._closed:
                return
            self.offset += size
            self.delivered_points += points
            self._save()

    def reject(self, lines: list[bytes], reason: str) -> None:
        """These next lines will never be stored: keep them, with the server's reason as a comment, and go on."""
        text = f"# {utc_text()} {' '.join(reason.split())}\n".encode() + b"".join(lines)
        with self._lock:
            if self._closed:
                return
            with self._rejected_path.open("ab") as stream:
                stream.write(text)
            self._rejected_lines = None
            self._rejected_bytes += len(text)
            self.offset += sum(map(len, lines))
            self.rejected_points += len(lines)
            self._save()

    def rejected_lines(self) -> set[bytes]:
        """The lines put aside, which stay in the spool when it is thinned."""
        with self._lock:
            if self._rejected_lines is None:
                text = self._rejected_path.read_bytes() if self._rejected_path.exists() else b""
                self._rejected_lines = set(text.splitlines(keepends=True))
            return self._rejected_lines

    def forget(self, points: int) -> None:
        """So many delivered points were thinned: the spool has them no more."""
        with self._lock:
            self.delivered_points -= points
            if not self._closed:
                self._save()

    def close(self) -> None:
        """Save durably and stand still: a write answered after the end must not change the accounts."""
        with self._lock:
            self._closed = True
            self._save(durable=True)

    def _save(self, durable: bool = False) -> None:
        document: dict[str, object] = {"schema_version": 1}
        document.update(
            delivered_bytes_offset=self.offset,
            delivered_points=self.delivered_points,
            rejected_points=self.rejected_points,
            rejected_bytes_offset=self._rejected_bytes,
            updated_utc=utc_text(),
        )
        try:
            replace_json(self._path, document, durable)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            if self._saved:  # said once: delivery goes on, and an agent that starts again repeats these lines
                print(f"telemetry_agent: {self._path} cannot be saved: {error.strerror}", file=sys.stderr)
            self._saved = False
        else:
            self._saved = True

    def _load(self, spool_bytes: int, points_before: int | None) -> dict[str, int]:
        nothing = dict.fromkeys(_COUNTS, 0)
        counts = read_counts(self._path)
        if counts is None:
            if self._path.exists():
                self.note = f"{self._path} is unreadable: delivering from the start"
            return nothing
        if counts["delivered_bytes_offset"] > spool_bytes:
            self.note = f"{self._path} points beyond the spool's {spool_bytes} bytes: delivering from the start"
            return nothing
        if points_before is None:
            self.note = f"{self._path} points into the middle of a line: delivering from the start"
            return nothing
        if points_before >= 0:  # what was thinned just before a crash counts no more
            counts["delivered_points"] = max(0, points_before - counts["rejected_points"])
        return counts

    def _cut_rejected(self) -> None:
        """Drop what a crash left in rejected.lp beyond the cursor: those lines come again."""
        if self._rejected_path.exists() and self._rejected_path.stat().st_size > self._rejected_bytes:
            os.truncate(self._rejected_path, self._rejected_bytes)


def read_counts(path: Path) -> dict[str, int] | None:
    """The counts of a cursor file, or None when it is missing or not a cursor."""
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
        counts = {name: document[name] for name in _COUNTS}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if any(type(value) is not int or value < 0 for value in counts.values()):
        return None
    return counts
