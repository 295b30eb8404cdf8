"""The interface of a collector, and the small tools that all collectors share.

Promise: reading (`read`, touches the system) is separate from parsing (`parse`, a function of two readings),
so every collector can be tested on recorded text. A collector that finds nothing to read raises
`Unsupported`; any other exception is a failure of that sample. Neither is ever swallowed: the scheduler
records both.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from daq_bench.telemetry_agent.base.clock import CLOCK
from daq_bench.telemetry_agent.base.point import Point

SLOW_PERIOD_S = 10.0
# A collector's `pace`. Fast ones follow --period and share one thread, so each must cost less than half a millisecond and
# never wait for a device; prompt ones are like that, but have a period of their own, and take turns in that thread behind the
# fast ones; slow ones (the default) have a thread each, and tools may take as long as they like.
FAST, PROMPT, SLOW = "fast", "prompt", "slow"
SLOW_PERIOD_S_MIN = 1.0
READ_CHUNK_BYTES = 65536
# The limit for one file; the largest that is read, /proc/interrupts of 256 CPUs and 1000 vectors, has 3 MB.
TEXT_BYTES_MAX = 8 * 2**20


class Unsupported(Exception):  # noqa: N818 - a state, not an error
    """This machine has nothing for the collector to read; the text says what was looked for."""


class Reading(NamedTuple):
    """Raw text as read, with both clocks: `time_ns` stamps the points, `monotonic_s` gives intervals."""

    time_ns: int
    monotonic_s: float
    texts: Mapping[str, str]
    # Parts that could not be read although the rest could, one sentence each ("hwmon2/temp1_input: EIO").
    faults: tuple[str, ...] = ()


class Collector(Protocol):
    """One subsystem's source of points. `read` is only ever called from one thread.

    An optional class attribute `pace` is "fast", "prompt" or "slow"; without it a collector is slow."""

    name: str
    period_s: float

    def read(self) -> Reading:
        """Read the raw texts now."""

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """Points of `reading`; `previous` (the last successful one) serves to derive rates."""


class OfRoot:
    """A collector, slow where it says nothing else, that reads files below `root`, once in `period_s_min` at most."""

    period_s_min = 1.0

    def __init__(self, period_s: float, root: Path = Path("/")) -> None:
        self.period_s, self._root = max(self.period_s_min, period_s), root
        self._files: dict[str, Path] = {}  # for those that look for their files once


def reading_now(texts: Mapping[str, str], faults: tuple[str, ...] = ()) -> Reading:
    """Stamp texts that were read just now."""
    return Reading(CLOCK.stamp_ns(), time.monotonic(), texts, faults)


class Every:
    """True at most once per period, at absolute multiples of it."""

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._turn = -1

    def due(self, monotonic_s: float) -> bool:
        """Is it the first look (by the monotonic clock) since a multiple of the period passed?"""
        turn = int(monotonic_s / self._period_s)
        if turn == self._turn:
            return False
        self._turn = turn
        return True


def rate_interval_s(reading: Reading, previous: Reading | None, period_s: float) -> float | None:
    """Seconds to divide a difference by, or None where a rate would mislead.

    A late sample followed by a punctual one (and the final sample) may be milliseconds apart; one 16 MiB
    write finishing in that instant would plot as a spike of many GB/s. The counters of such a sample are
    still reported.
    """
    if previous is None:
        return None
    elapsed_s = reading.monotonic_s - previous.monotonic_s
    return elapsed_s if elapsed_s >= 0.5 * period_s else None


def per_second(now: int, before: int | None, interval_s: float | None) -> float | None:
    """Rate of a counter, or None when there is no usable interval or the counter was reset."""
    if before is None or interval_s is None or now < before:
        return None
    return (now - before) / interval_s


class HeldFile:
    """A /proc or /sys file kept open, read from offset 0 each time (re-opening costs more than reading).

    `at_once`: the kernel makes this file's text in one piece (/proc/stat, /proc/meminfo, /proc/pressure, an attribute in
    /sys), so that a read shorter than asked for is all of it, and the one that would return nothing is saved."""

    def __init__(self, path: Path, at_once: bool = False) -> None:
        self.path = path
        self._at_once = at_once
        self._fd = -1

    def text(self) -> str:
        """The file's whole present text. Raises OSError; a device that went away is re-opened next time."""
        try:
            if self._fd < 0:
                self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            return self._read_all()
        except OSError:
            self.close()
            raise

    def _read_all(self) -> str:
        if self._at_once:
            whole = os.pread(self._fd, READ_CHUNK_BYTES, 0)
            if len(whole) < READ_CHUNK_BYTES:
                return whole.decode("utf-8", "replace")
        chunks: list[bytes] = []
        offset = 0
        while True:
            # seq_file returns whole records, so short reads happen before the end: only an empty one ends it.
            chunk = os.pread(self._fd, READ_CHUNK_BYTES, offset)
            if not chunk:
                return b"".join(chunks).decode("utf-8", "replace")
            chunks.append(chunk)
            offset += len(chunk)
            if offset > TEXT_BYTES_MAX:
                raise ValueError(f"{self.path}: more than {TEXT_BYTES_MAX} B, it begins with {chunks[0][:200]!r}")

    def close(self) -> None:
        """Close the handle if it is open."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def read_optional(path: Path) -> str | None:
    """Stripped text of a small attribute, or None when it does not exist or holds nothing."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    return text or None
