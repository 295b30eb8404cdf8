"""The spool: `points.lp`, a file of whole lines that only grows, and the source of truth of a run.

Promise: a point handed over is in the file (in the kernel's hands, safe from SIGKILL) within a second and never in part: a
torn last line left by a crash is cut off at the next opening, and a write that fails is taken back. Handing over never
waits for the disk. The file stays within its limits: when they or the disk are reached, fast samples go, the oldest
first, and every one of them is counted; other points wait in memory for room. One process at a time owns a spool, by a
lock on the file.
"""

from __future__ import annotations

import fcntl
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from daq_bench.telemetry_agent.base.priority import raise_own
from daq_bench.telemetry_agent.spool.cursor import CURSOR_FILE, NO_ROOM, Cursor, read_counts
from daq_bench.telemetry_agent.spool.recovery import recover
from daq_bench.telemetry_agent.spool.room import Limits, Room
from daq_bench.telemetry_agent.spool.tally import Ledger, Thinned, measurement_of, together
from daq_bench.telemetry_agent.spool.thinner import Fence, Thinner
from daq_bench.telemetry_agent.spool.thinning import Journal, comment_of, redo, write_at

POINTS_FILE = "points.lp"
# An hour of a large server's slow points, a minute of all: beyond it the disk is gone, and memory must not follow.
QUEUE_BYTES_MAX = 16 * 1024 * 1024
GROUP_BYTES = 256 * 1024  # of a backlog in memory, so much is written at a time
REGIONS_PER_WRITE_MAX = 40  # thinning in one go must not take seconds
RETRY_S = 1.0
WRITE_S = 1.0  # nothing waits longer for its turn to be written; each waking of the thread costs more than the write
FULL = "the disk is full"


class SpoolBusy(Exception):  # noqa: N818 - a state, not an error
    """Another process owns the spool."""


class Batch(NamedTuple):
    """Lines that came together. `fast`: they may be thinned."""

    text: str
    counts: Mapping[str, int]
    fast: bool
    time_ns: int


def lock_spool(directory: Path) -> int:
    """Open `points.lp` (creating it) and own it until the descriptor closes; raises SpoolBusy."""
    path = directory / POINTS_FILE
    # Without O_APPEND, under which Linux appends even what thinning writes into the middle: one thread writes, and knows where.
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise SpoolBusy(f"{path} is in use by another telemetry_agent: stop that one first") from None
    return fd


class Spool:
    """An owned spool. `put` may be called by any thread; one thread of its own writes.

    `limits` None: only looked at and closed again (replay), nothing will be put in."""

    def __init__(
        self, directory: Path, workload_measurements: Sequence[str] = (), limits: Limits | None = None
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.path = directory / POINTS_FILE
        self._fd = lock_spool(directory)
        self._journal = Journal(directory)
        redo(self._fd, self._journal, os.fstat(self._fd).st_size)
        saved = read_counts(directory / CURSOR_FILE)
        self.recovery = recover(self.path, workload_measurements, saved["delivered_bytes_offset"] if saved else 0)
        if self.recovery.torn_bytes:
            os.ftruncate(self._fd, self.recovery.size_bytes)
        self.size_bytes = self.recovery.size_bytes
        self.ledger = Ledger()
        self.ledger.recover(self.recovery.spooled, self.recovery.thinned)
        self.fence = Fence()
        self.last_error: str | None = None
        self._protected = frozenset(workload_measurements)
        self._room = Room(self._fd, limits or Limits())
        self._thinner = Thinner(self._fd, self._journal, self.fence, self._note_thinned)
        self._written_bytes = 0  # by the last write
        self._credit_bytes = 0  # given back by thinning and not used yet
        self._left_out: list[Thinned] = []  # the sum of new points without room: the file says so once it takes more
        self._warned: set[str] = set()
        self._queue: list[Batch] = []
        self._held: list[Batch] = []  # by the writing thread, for want of room
        self._queued_bytes = 0
        self._closing = False
        self._changed = threading.Condition()
        if limits is not None:
            self._reserve()
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)
        self._thread.start()

    @property
    def collected_points(self) -> int:
        """Handed over, with what an earlier agent left."""
        return self.ledger.collected_points

    @property
    def spooled_points(self) -> int:
        """In the file."""
        return self.ledger.spooled_points

    @property
    def unspooled_points(self) -> int:
        """Collected, but not in the file (yet), and not thinned."""
        found = self.ledger.totals()
        return found["collected"] - found["spooled"] - found["thinned"]

    def watch(self, cursor: Cursor) -> None:
        """From now on the points that `cursor` delivered are thinned with the others."""
        self._thinner.cursor = cursor

    def put(self, lines: Sequence[str], fast: bool = False) -> None:
        """Hand over encoded lines; returns at once."""
        counts = Counter(measurement_of(line.encode()) for line in lines)
        self.put_batch("".join(lines), counts, fast)
        self.wake()

    def put_batch(self, text: str, counts: Mapping[str, int], fast: bool) -> None:
        """Hand over lines with their counts by measurement; `fast` holds not for the workload's, which are few and cannot be had
        again. After `close` nothing is taken (nor counted) any more."""
        with self._changed:
            if self._closing:
                return
            self.ledger.collect(counts)
            batch = Batch(text, counts, fast and self._protected.isdisjoint(counts), time.time_ns())
            if self._queued_bytes + len(text) > QUEUE_BYTES_MAX:
                self._drop(batch, "the disk has not kept up")
                return
            self._queued_bytes += len(text)
            self._queue.append(batch)

    def wake(self) -> None:
        """Have what was put written."""
        with self._changed:
            self._changed.notify()

    def close(self, timeout_s: float = 10.0) -> bool:
        """Write what is queued and sync; False when the disk did not let it finish in time."""
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

    def summary(self) -> dict[str, Any]:
        """The `spool` section of summary.json."""
        return {
            "bytes": self.size_bytes,
            "bytes_on_disk": 512 * self.path.stat().st_blocks,
            "recovered_points": self.recovery.points,
            "torn_bytes": self.recovery.torn_bytes,
            "last_error": self.last_error,
            "thinnings": self.ledger.thinnings(),
        }

    def _reserve(self) -> None:
        try:
            self._journal.reserve()
        except OSError as error:
            self._thinner.obstacle = f"no room for its journal: {error.strerror}"

    def _run(self) -> None:
        raise_own(real_time=False)
        while True:
            with self._changed:
                if self._held and not self._closing:
                    self._changed.wait_for(lambda: self._closing, RETRY_S)
                elif not self._closing:
                    self._changed.wait(WRITE_S)
                closing, batches = self._closing, self._held + self._queue
                self._queue, self._held = [], []
            if not batches:
                if closing:
                    break
                continue
            self._append(batches)
            if closing and self._held:
                break
            with self._changed:
                self._queued_bytes = sum([len(batch.text) for batch in self._held + self._queue])
        for batch in self._held:
            self._drop(batch, FULL)
        if self._left_out and self._write(comment_of(self._left_out[0]) + b"\n"):
            self.size_bytes += self._written_bytes
        self._finish()

    def _append(self, batches: list[Batch]) -> None:
        """Write in groups; what finds no room now is held, but for fast points, which are left out."""
        while batches:
            size = count = 0
            while count < len(batches) and (not count or size + len(batches[count].text) <= GROUP_BYTES):
                size += len(batches[count].text)
                count += 1
            group, batches = batches[:count], batches[count:]
            data = "".join([batch.text for batch in group]).encode("utf-8")
            try:
                shortage = self._take(data)
                if shortage is None:
                    self._settle(group)
                    continue
                rest = [batch for batch in group if not batch.fast]
                self._leave_out([batch for batch in group if batch.fast], shortage)
                data = "".join([batch.text for batch in rest]).encode("utf-8")
                # The others may use the space that is kept free for the machine, but neither the bound nor a full disk.
                if rest and not self._room.over_bound(len(data)) and self._write(data):
                    self._settle(rest)
                elif rest:
                    self._report(f"{self.path}: {shortage}: points that must not be thinned wait in memory")
                    self._leave_out([batch for batch in batches if batch.fast], shortage)
                    self._held = rest + [batch for batch in batches if not batch.fast]
                    return
            except OSError as error:
                count = sum([sum(batch.counts.values()) for batch in group])
                self._report(f"{self.path}: {error.strerror}, {count} points lost")

    def _take(self, data: bytes) -> str | None:
        """Write, with thinning if need be; None when it is written, else why there is no room."""
        if self._left_out:
            data = comment_of(self._left_out[0]) + b"\n" + data
        shortage = self._room.shortage(len(data))
        if shortage is not None and not self._thin(len(data), shortage):
            return shortage
        if not self._write(data) and (not self._thin(len(data), FULL) or not self._write(data)):
            return FULL
        self._left_out = []
        return None

    def _thin(self, size: int, reason: str) -> bool:
        """Give back what the next write of `size` bytes needs; False when that is not to be had (at once)."""
        for _ in range(REGIONS_PER_WRITE_MAX):
            # The bound is ours alone to keep. Free space is everybody's: there only as much is given back as is taken, or a
            # neighbour that fills the disk would cost the whole history.
            if self._credit_bytes >= size and not self._room.over_bound(size):
                self._credit_bytes -= size
                return True
            freed = self._thinner.step(self.size_bytes, reason)
            if freed is None:
                return False
            self._credit_bytes += freed
        return False

    def _write(self, data: bytes) -> bool:
        """False when the disk is full. The file holds whole lines only: what was written in part is taken back."""
        try:
            write_at(self._fd, data, self.size_bytes)
        except OSError as error:
            os.ftruncate(self._fd, self.size_bytes)
            if error.errno in NO_ROOM:
                return False
            raise
        self._written_bytes = len(data)
        return True

    def _settle(self, batches: Iterable[Batch]) -> None:
        # In this order: delivery reads up to size_bytes, and must never be ahead of the count.
        for batch in batches:
            self.ledger.spool(batch.counts)
            if batch.fast:
                self._thinner.fast.update(batch.counts)
        self.size_bytes += self._written_bytes

    def _leave_out(self, batches: Sequence[Batch], reason: str) -> None:
        """New fast points without room."""
        for batch in batches:
            why = f"{reason}; {self._thinner.obstacle or 'nothing older was left to thin'}"
            thinned = Thinned(batch.counts, {}, batch.time_ns, batch.time_ns, why)
            self._left_out = [together((*self._left_out, thinned), why)]
            self.ledger.thin(thinned, from_file=False)
            self._warn_thinning(why)

    def _note_thinned(self, thinned: Thinned) -> None:
        self.ledger.thin(thinned, from_file=True)
        self._warn_thinning(thinned.reason)

    def _warn_thinning(self, reason: str) -> None:
        if reason not in self._warned:
            self._warned.add(reason)
            print(
                f"telemetry_agent: warning: {self.path}: {reason}: thinning fast samples", file=sys.stderr, flush=True
            )

    def _drop(self, batch: Batch, why: str) -> None:
        """Beyond what memory may hold."""
        if batch.fast:
            self.ledger.thin(Thinned(batch.counts, {}, batch.time_ns, batch.time_ns, why), from_file=False)
            self._warn_thinning(why)
        else:
            self._report(f"{self.path}: {why}, {sum(batch.counts.values())} points lost")

    def _finish(self) -> None:
        try:
            # Only at the end: syncing while sampling would add writes to the drive under test.
            os.fsync(self._fd)
            self._journal.remove()
        except OSError as error:
            self._report(f"{self.path}: fsync: {error.strerror}")

    def _report(self, text: str) -> None:
        if self.last_error is None:
            print(f"telemetry_agent: warning: {text}", file=sys.stderr, flush=True)
        self.last_error = text
