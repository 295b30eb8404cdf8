"""The spool: `points.lp`, an append-only file of whole lines, and the source of truth of a run.

Promise: a point handed over is in the file (in the kernel's hands, safe from SIGKILL) within moments and
never in part: a torn last line left by a crash is cut off at the next opening, and a write that fails (disk
full) is taken back and counted. Handing over never waits for the disk. One process at a time owns a spool, by
a lock on the file.
"""

from __future__ import annotations

import fcntl
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

POINTS_FILE = "points.lp"
# Over 10 minutes of a large server's points: beyond it the disk is gone, and memory must not follow.
QUEUE_LINES_MAX = 300_000


class SpoolBusy(Exception):  # noqa: N818 - a state, not an error
    """Another process owns the spool."""


class Recovery(NamedTuple):
    """What opening found."""

    points: int
    size_bytes: int
    torn_bytes: int
    last_workload_line: bytes | None


def recover(path: Path, workload_measurements: Sequence[str]) -> Recovery:
    """Count the whole lines of a spool and measure its torn end."""
    prefixes = tuple((measurement + ",").encode() for measurement in workload_measurements)
    points = size = torn = 0
    last_workload_line = None
    with path.open("rb") as stream:
        for line in stream:
            if not line.endswith(b"\n"):
                torn = len(line)
                break
            points += 1
            size += len(line)
            if line.startswith(prefixes):
                last_workload_line = line.rstrip(b"\n")
    return Recovery(points, size, torn, last_workload_line)


def lock_spool(directory: Path) -> int:
    """Open `points.lp` (creating it) and own it until the descriptor closes; raises SpoolBusy."""
    path = directory / POINTS_FILE
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise SpoolBusy(f"{path} is in use by another telemetry_agent: stop that one first") from None
    return fd


class Spool:
    """An owned spool. `put` may be called by any thread; one thread of its own writes."""

    def __init__(self, directory: Path, workload_measurements: Sequence[str] = ()) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.path = directory / POINTS_FILE
        self._fd = lock_spool(directory)
        self.recovery = recover(self.path, workload_measurements)
        if self.recovery.torn_bytes:
            os.ftruncate(self._fd, self.recovery.size_bytes)
        self.size_bytes = self.recovery.size_bytes
        self.collected_points = self.spooled_points = self.recovery.points
        self.last_error: str | None = None
        self._queue: list[str] = []
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)
        self._thread.start()

    @property
    def unspooled_points(self) -> int:
        """Collected, but not in the file (yet)."""
        return self.collected_points - self.spooled_points

    def put(self, lines: Sequence[str]) -> None:
        """Hand over encoded lines; returns at once. After `close` nothing is taken (nor counted) any more."""
        with self._changed:
            if self._closing:
                return
            self.collected_points += len(lines)
            if len(self._queue) + len(lines) > QUEUE_LINES_MAX:
                self._report(f"{self.path}: the disk has not kept up, {len(lines)} points dropped")
                return
            self._queue.extend(lines)
            self._changed.notify()

    def close(self, timeout_s: float = 10.0) -> bool:
        """Write what is queued, sync, release the lock; False when the disk did not let it finish in time."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self._report(f"{self.path}: the disk did not take the last points within {timeout_s:g} s")
            return False
        return True

    def release(self) -> None:
        """Give up ownership (after `close`)."""
        if self._fd >= 0 and not self._thread.is_alive():
            os.close(self._fd)
            self._fd = -1

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._closing:
                    self._changed.wait()
                batch, self._queue = self._queue, []
            if not batch:
                self._sync()
                return
            self._append(batch)

    def _append(self, batch: list[str]) -> None:
        data = "".join(batch).encode("utf-8")
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            # Take the batch back: the file holds whole lines only.
            os.ftruncate(self._fd, self.size_bytes)
            self._report(f"{self.path}: {error.strerror}, {len(batch)} points lost")
            return
        # In this order: delivery reads up to size_bytes, and must never be ahead of the count.
        self.spooled_points += len(batch)
        self.size_bytes += len(data)

    def _sync(self) -> None:
        # Only at the end: syncing while sampling would add writes to the drive under test.
        try:
            os.fsync(self._fd)
        except OSError as error:
            self._report(f"{self.path}: fsync: {error.strerror}")

    def _report(self, text: str) -> None:
        if self.last_error is None:
            print(f"telemetry_agent: warning: {text}", file=sys.stderr, flush=True)
        self.last_error = text
