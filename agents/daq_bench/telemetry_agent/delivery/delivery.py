"""Delivers the spool to InfluxDB, in batches, behind a cursor.

Promise: never blocks collection (it only reads the spool's file); never moves past a line that is neither
stored nor put into rejected.lp; retries what may pass, with a bounded back-off; splits a refused batch until
the lines at fault stand alone; records every outage with its times and its first error; holds one batch in memory,
however long the backlog.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from daq_bench.candidate_kit.influx_answers import WRITE_TIMEOUT_S
from daq_bench.telemetry_agent.base.files import utc_text
from daq_bench.telemetry_agent.base.priority import raise_own
from daq_bench.telemetry_agent.delivery.influx import SET_UP_RETRY_S, Rejected, Retryable, TooLarge, Writer
from daq_bench.telemetry_agent.spool.cursor import Cursor
from daq_bench.telemetry_agent.spool.thinner import Fence

BATCH_LINES_MAX = 5000
BATCH_BYTES_MIN, BATCH_BYTES_MAX = 32 * 1024, 1024 * 1024
FLUSH_S = 1.0
BACKOFF_S_MIN = 0.5
BACKOFF_S_MAX = 10.0
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
            warn(f"InfluxDB does not take points: {error}; they stay in the spool")
        self.reachable = False

    def end(self) -> None:
        """A write was answered."""
        if self.reachable is False:
            if self.count == len(self.entries):
                self.entries[-1]["to_utc"] = utc_text()
            warn("InfluxDB takes points again")
        self.reachable = True

    def summary(self) -> dict[str, Any]:
        """Part of summary.json's `influx`."""
        return {
            "reachable_at_end": bool(self.reachable),
            "last_error": self.last_error,
            "outage_count": self.count,
            "outages": [dict(entry) for entry in self.entries],
        }


def warn(text: str) -> None:
    """One line on stderr."""
    print(f"telemetry_agent: warning: {text}", file=sys.stderr, flush=True)


class Delivery:
    """Moves `cursor` to the spool's end, in its own thread (`start`, `stop`) or the caller's (`drain`)."""

    def __init__(
        self,
        spool_path: Path,
        cursor: Cursor,
        writer: Writer,
        committed_bytes: Callable[[], int],
        fence: Fence | None = None,
    ) -> None:
        """`fence` keeps what is on its way from being thinned."""
        self.cursor = cursor
        self._fence = fence or Fence()
        self.outages = Outages()
        self._writer = writer
        self._committed_bytes = committed_bytes
        self._fd = os.open(spool_path, os.O_RDONLY | os.O_CLOEXEC)
        self._more = False  # the last batch was full: do not wait before the next
        self._not_before_s = 0.0  # the server has asked for a pause until then
        self._largest_bytes = BATCH_BYTES_MAX  # less, once a proxy has taken no body of this size
        self._batch_bytes = BATCH_BYTES_MAX  # halved at each failure: a slow server may manage less within the time-out
        self._until_s: float | None = None  # set once draining: the monotonic time to give up at
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="delivery", daemon=True)
        if cursor.note:
            warn(cursor.note)

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
        raise_own(real_time=False)
        backoff_s = BACKOFF_S_MIN
        while True:
            sent = 0
            try:
                sent = self.deliver_batch()
            except Retryable as error:
                self.outages.begin(str(error))
                if error.asked:
                    self._not_before_s = time.monotonic() + error.after_s
                self._batch_bytes = max(BATCH_BYTES_MIN, self._batch_bytes // 2)
                pause_s, backoff_s = max(backoff_s, error.after_s), min(2 * backoff_s, BACKOFF_S_MAX)
            except OSError as error:  # the cursor or rejected.lp cannot be written
                self.outages.begin(f"spool: {error}")
                pause_s, backoff_s = backoff_s, min(2 * backoff_s, BACKOFF_S_MAX)
            else:
                pause_s, backoff_s = FLUSH_S, BACKOFF_S_MIN
                if sent:
                    self.outages.end()
                    self._batch_bytes = min(self._largest_bytes, 2 * self._batch_bytes)
                elif self._until_s is not None:
                    return  # draining, and the end of the spool is reached
            if not self._pause(0.0 if sent and self._more else pause_s, sent):
                return

    def _pause(self, pause_s: float, sent: int) -> bool:
        """Wait; False when draining has run out of time."""
        if self._until_s is None:
            self._wake.wait(pause_s)
            if self._until_s is None:
                return True
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            return False
        # A server that asked for a pause gets it; else attempts come close, for time is short now.
        asked_s = self._not_before_s - time.monotonic()
        if asked_s > 0 or not sent:
            time.sleep(min(asked_s if asked_s > 0 else BACKOFF_S_MIN, left_s))
        return True

    def deliver_batch(self) -> int:
        """Send the next lines; returns how many were settled. The cursor follows from left to right."""
        # Not to the file's end: what stands behind the committed bytes may still be taken back (disk full).
        size = min(BATCH_BYTES_MAX, max(0, self._committed_bytes() - self.cursor.offset))
        with self._fence.claim(self.cursor.offset, size):
            data = self._read(size)
            if data:
                self._deliver(data)
        return data.count(b"\n")

    def _read(self, available: int) -> bytes:
        """Whole lines."""
        data = os.pread(self._fd, min(available, self._batch_bytes), self.cursor.offset)
        if b"\n" not in data:  # what thinning left may be longer than a small batch
            data = os.pread(self._fd, available, self.cursor.offset)
        self._more = len(data) < available or available == BATCH_BYTES_MAX
        return data[: data.rfind(b"\n") + 1]

    def _deliver(self, data: bytes) -> None:
        points = data.count(b"\n")
        if points <= BATCH_LINES_MAX and not data.startswith(b"#") and b"\n#" not in data:
            try:
                self._writer.write(data, self._timeout_s())
            except Rejected as refusal:
                self._divide(data.splitlines(keepends=True), refusal)
            else:
                self.cursor.advance(len(data), points)
            return
        lines = data.splitlines(keepends=True)
        for start in range(0, len(lines), BATCH_LINES_MAX):
            self._send(lines[start : start + BATCH_LINES_MAX])

    def _send(self, lines: list[bytes]) -> None:
        """Lines with or without comments among them (what thinning left), which are passed over."""
        points = [line for line in lines if not line.startswith(b"#")]
        try:
            if points:
                self._writer.write(b"".join(points), self._timeout_s())
        except Rejected as refusal:
            self._divide(lines, refusal)
        else:
            self.cursor.advance(sum(map(len, lines)), len(points))

    def _divide(self, lines: list[bytes], refusal: Rejected) -> None:
        """These were refused. InfluxDB has stored the good ones among them, but does not say which: halves tell."""
        if isinstance(refusal, TooLarge):
            self._largest_bytes = max(BATCH_BYTES_MIN, sum(map(len, lines)) // 2)
            if len(lines) == 1:
                raise Retryable(str(refusal), SET_UP_RETRY_S)
        commented = any(line.startswith(b"#") for line in lines)
        if not commented and (len(lines) == 1 or refusal.dropped == len(lines)):
            self.cursor.reject(lines, str(refusal))
            return
        middle = len(lines) // 2
        if middle == 0 or commented:
            self._apart(lines)
            return
        self._send(lines[:middle])
        self._send(lines[middle:])

    def _apart(self, lines: list[bytes]) -> None:
        """Comments on their own, so that what is refused is nothing but points."""
        start = 0
        for end in range(1, len(lines) + 1):
            if end == len(lines) or lines[end].startswith(b"#") != lines[start].startswith(b"#"):
                self._send(lines[start:end])
                start = end

    def _timeout_s(self) -> float:
        if self._until_s is None:
            return WRITE_TIMEOUT_S
        return min(WRITE_TIMEOUT_S, max(0.1, self._until_s - time.monotonic()))
