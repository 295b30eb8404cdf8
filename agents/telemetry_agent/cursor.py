"""How far the spool has been delivered: `cursor.json`, and `rejected.lp` for lines that the server refused
for good.

Promise: the cursor moves over whole lines only, and only once they are stored or put aside. It is replaced
atomically; a lost or impossible cursor means delivery from the start, which is harmless because InfluxDB
overwrites equal points.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

from telemetry_agent.files import replace_json, utc_text

CURSOR_FILE = "cursor.json"
REJECTED_FILE = "rejected.lp"
_COUNTS = ("delivered_bytes_offset", "delivered_points", "rejected_points", "rejected_bytes_offset")


class Cursor:
    """The position and its counts: moved by the delivery thread, read by others, closed by the main one."""

    def __init__(self, directory: Path, spool_bytes: int) -> None:
        self._path = directory / CURSOR_FILE
        self._rejected_path = directory / REJECTED_FILE
        self._lock = threading.Lock()
        self._closed = False
        self.note: str | None = None
        counts = self._load(spool_bytes)
        self.offset = counts["delivered_bytes_offset"]
        self.delivered_points = counts["delivered_points"]
        self.rejected_points = counts["rejected_points"]
        self._rejected_bytes = counts["rejected_bytes_offset"]
        self._cut_rejected()

    def deliver(self, lines: list[bytes]) -> None:
        """These next lines are stored."""
        with self._lock:
            if self._closed:
                return
            self.offset += sum(map(len, lines))
            self.delivered_points += len(lines)
            self._save()

    def reject(self, line: bytes, reason: str) -> None:
        """This next line will never be stored: keep it, with the server's reason as a comment, and go on."""
        text = f"# {utc_text()} {' '.join(reason.split())}\n".encode() + line
        with self._lock:
            if self._closed:
                return
            with self._rejected_path.open("ab") as stream:
                stream.write(text)
            self._rejected_bytes += len(text)
            self.offset += len(line)
            self.rejected_points += 1
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
        replace_json(self._path, document, durable)

    def _load(self, spool_bytes: int) -> dict[str, int]:
        nothing = dict.fromkeys(_COUNTS, 0)
        counts = read_counts(self._path)
        if counts is None:
            if self._path.exists():
                self.note = f"{self._path} is unreadable: delivering from the start"
            return nothing
        if counts["delivered_bytes_offset"] > spool_bytes:
            self.note = f"{self._path} points beyond the spool's {spool_bytes} bytes: delivering from the start"
            return nothing
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
