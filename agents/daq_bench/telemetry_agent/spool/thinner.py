"""Decides which region of the spool is thinned next, and keeps out of the delivery's way.

Promise: regions end at the delivery's cursor and never overlap what is on its way to InfluxDB, so that a line is either
delivered or not when it goes, and the counts say which.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from daq_bench.telemetry_agent.spool.cursor import Cursor
from daq_bench.telemetry_agent.spool.tally import Thinned
from daq_bench.telemetry_agent.spool.thinning import LEVELS_S, REGION_BYTES, Journal, Kept, comment_of, rewrite, thin

WORTHWHILE_BYTES = 8 * 1024  # a region that would give back less is left as it is


class Fence:
    """Keeps the range that delivery reads and sends from being thinned meanwhile."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.start = self.end = 0

    @contextmanager
    def claim(self, start: int, length: int) -> Iterator[None]:
        """For as long as the bytes are on their way."""
        with self.lock:
            self.start, self.end = start, start + length
        try:
            yield
        finally:
            with self.lock:
                self.start = self.end = 0


class Thinner:
    """Thins `points.lp` region by region; `done` is told what went, after it went."""

    def __init__(self, fd: int, journal: Journal, fence: Fence, done: Callable[[Thinned], None]) -> None:
        self._fd, self._journal, self._fence, self._done = fd, journal, fence, done
        self.cursor: Cursor | None = None
        self.fast: set[str] = set()
        self._at = [0] * len(LEVELS_S)  # how far each level has got
        self._checked = False
        self.obstacle: str | None = None

    def step(self, size_bytes: int, reason: str) -> int | None:
        """Thin the next region; bytes given back, or None when nothing is left to thin."""
        if not self._checked:
            self._checked = True
            self.obstacle = self.obstacle or self._journal.can_punch()
        if self.obstacle:
            return None
        for level, start in enumerate(self._at):
            limit = size_bytes if level == 0 else self._at[level - 1]
            if limit - start >= REGION_BYTES:
                return self._thin(level, reason)
        return None

    def _thin(self, level: int, reason: str) -> int:
        with self._fence.lock:
            start, end = self._region(level)
            data = os.pread(self._fd, end - start, start)
            data = data[: data.rfind(b"\n") + 1]
            end = start + len(data)
            delivered = self.cursor is not None and start < self.cursor.offset
            keep = self.cursor.rejected_lines() if self.cursor is not None and delivered else set()
            kept = thin(data, self.fast, LEVELS_S[level], keep, delivered, reason)
            self._at[level] = end
            if not data or not kept.new.points:
                self._at[level] = max(end, start + REGION_BYTES if not data else end)
                return 0
            freed = self._rewrite(start, end, kept)
            if freed is None:
                return 0
            if delivered and self.cursor is not None:
                self.cursor.forget(kept.new.total)
            self._done(kept.new)
            return freed

    def _region(self, level: int) -> tuple[int, int]:
        """The next lines of this level; the caller holds the fence's lock."""
        start = self._at[level]
        end = start + REGION_BYTES
        if self._fence.start < end and start < self._fence.end:
            if start < self._fence.start:
                end = self._fence.start
            else:
                start, end = self._fence.end, self._fence.end + REGION_BYTES
        if self.cursor is not None and start < self.cursor.offset < end:
            end = self.cursor.offset
        return start, end

    def _rewrite(self, start: int, end: int, kept: Kept) -> int | None:
        """Bytes given back; None when it is not worth while and nothing was done."""
        head = kept.lines + comment_of(kept.ever) + b" "
        if len(head) + WORTHWHILE_BYTES > end - start:
            return None
        before = os.fstat(self._fd).st_blocks
        self._journal.write(start, end, head)
        rewrite(self._fd, start, end, head)
        self._journal.clear()
        return 512 * max(0, before - os.fstat(self._fd).st_blocks)
