"""Delivers the spool to InfluxDB, in batches, behind a cursor.

Promise: never blocks collection (it only reads the spool's file); never moves past a line that is neither
stored nor put into rejected.lp; retries what may pass, with a bounded back-off; splits a refused batch until
the lines at fault stand alone; records every outage with its times and its first error.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from telemetry_agent.cursor import Cursor
from telemetry_agent.files import utc_text
from telemetry_agent.influx import Rejected, Retryable, Writer

BATCH_LINES_MAX = 5000
BATCH_BYTES_MAX = 1024 * 1024
FLUSH_S = 1.0
BACKOFF_S_MIN = 0.5
BACKOFF_S_MAX = 10.0
WRITE_TIMEOUT_S = 5.0
OUTAGES_KEPT_MAX = 200


class Outages:
    """Times during which the server did not take what was sent."""

    def __init__(self) -> None:
        self.entries: list[dict[str, str | None]] = []
        self.count = 0
        self.last_error: str | None = None
        self.reachable: bool | None = None  # None: nothing was sent yet

    def begin(self, error: str) -> None:
        """A write failed; the first failure of an outage is warned about and opens its entry."""
        self.last_error = error
        if self.reachable is not False:
            self.count += 1
            if len(self.entries) < OUTAGES_KEPT_MAX:
                self.entries.append({"from_utc": utc_text(), "to_utc": None, "error": error})
            _warn(f"InfluxDB does not take points: {error}; they stay in the spool")
        self.reachable = False

    def end(self) -> None:
        """A write was answered."""
        if self.reachable is False:
            if self.count == len(self.entries):
                self.entries[-1]["to_utc"] = utc_text()
            _warn("InfluxDB takes points again")
        self.reachable = True

    def summary(self) -> dict[str, Any]:
        """Part of summary.json's `influx`."""
        return {
            "reachable_at_end": bool(self.reachable),
            "last_error": self.last_error,
            "outage_count": self.count,
            "outages": [dict(entry) for entry in self.entries],
        }


def _warn(text: str) -> None:
    print(f"telemetry_agent: warning: {text}", file=sys.stderr, flush=True)


class Delivery:
    """Moves `cursor` to the spool's end, in its own thread (`start`, `stop`) or the caller's (`drain`)."""

    def __init__(self, spool_path: Path, cursor: Cursor, writer: Writer, committed_bytes: Callable[[], int]) -> None:
        self.cursor = cursor
        self.outages = Outages()
        self._writer = writer
        self._committed_bytes = committed_bytes
        self._fd = os.open(spool_path, os.O_RDONLY | os.O_CLOEXEC)
        self._more = False  # the last batch was full: do not wait before the next
        self._until_s: float | None = None  # set once draining: the monotonic time to give up at
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="delivery", daemon=True)
        if cursor.note:
            _warn(cursor.note)

    def start(self) -> None:
        """Deliver in the background."""
        self._thread.start()

    def stop(self, drain_s: float) -> None:
        """Deliver what is left, for `drain_s` seconds at most; the rest stays for `replay`."""
        self._until_s = time.monotonic() + drain_s
        self._wake.set()
        self._thread.join(drain_s + 1.0)

    def drain(self, patience_s: float) -> None:
        """Deliver here and now; gives up after `patience_s` seconds without progress."""
        while True:
            self._until_s = time.monotonic() + patience_s
            before = self.cursor.offset
            self._run()
            if self.cursor.offset == before:
                return

    def _run(self) -> None:
        backoff_s = BACKOFF_S_MIN
        while True:
            sent = 0
            try:
                sent = self.deliver_batch()
            except Retryable as error:
                self.outages.begin(str(error))
                pause_s, backoff_s = backoff_s, min(2 * backoff_s, BACKOFF_S_MAX)
            except OSError as error:  # the cursor or rejected.lp cannot be written, e.g. the disk is full
                self.outages.begin(f"spool: {error}")
                pause_s, backoff_s = backoff_s, min(2 * backoff_s, BACKOFF_S_MAX)
            else:
                pause_s, backoff_s = FLUSH_S, BACKOFF_S_MIN
                if sent:
                    self.outages.end()
                elif self._until_s is not None:
                    return  # draining, and the end of the spool is reached
            if not self._pause(0.0 if sent and self._more else pause_s, sent):
                return

    def _pause(self, pause_s: float, sent: int) -> bool:
        """Wait; False when draining has run out of time."""
        if self._until_s is None:
            self._wake.wait(pause_s)
            return True
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            return False
        if not sent:
            time.sleep(min(BACKOFF_S_MIN, left_s))
        return True

    def deliver_batch(self) -> int:
        """Send the next lines; returns how many were settled. The cursor follows from left to right."""
        batch = self._read_batch()
        pending = [batch] if batch else []
        while pending:
            chunk = pending.pop()
            try:
                self._writer.write(b"".join(chunk), self._timeout_s())
            except Rejected as refusal:
                if len(chunk) == 1:
                    self.cursor.reject(chunk[0], str(refusal))
                else:
                    middle = len(chunk) // 2
                    pending += [chunk[middle:], chunk[:middle]]  # the left half is next
            else:
                self.cursor.deliver(chunk)
        return len(batch)

    def _read_batch(self) -> list[bytes]:
        # Not to the file's end: what stands behind the committed bytes may still be taken back (disk full).
        available = max(0, self._committed_bytes() - self.cursor.offset)
        data = os.pread(self._fd, min(BATCH_BYTES_MAX, available), self.cursor.offset)
        end = data.rfind(b"\n") + 1
        lines = data[:end].splitlines(keepends=True)
        self._more = len(data) == BATCH_BYTES_MAX or len(lines) > BATCH_LINES_MAX
        return lines[:BATCH_LINES_MAX]

    def _timeout_s(self) -> float:
        if self._until_s is None:
            return WRITE_TIMEOUT_S
        return min(WRITE_TIMEOUT_S, max(0.1, self._until_s - time.monotonic()))
