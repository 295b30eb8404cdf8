"""Gives disk space back by thinning the oldest fast samples of the spool, in place.

Promise: no byte of `points.lp` moves, so that the delivery's cursor and a mirror that follows the file's end stay right.
A comment line replaces the points that leave a region. It says how many points of which measurement went, when they
were taken and why; zero bytes follow it, whose blocks are given back to the file system (a hole). Slow, rare and event
points stay. The oldest region goes first: to one sample per second and series, when all are at that to one per 10 s, and
at last to none. Work that a crash interrupts is done again at the next opening, from a journal whose room was taken beforehand.
"""

from __future__ import annotations

import ctypes
import json
import os
import zlib
from collections import Counter
from collections.abc import Set
from pathlib import Path
from typing import Any, NamedTuple

from daq_bench.telemetry_agent.spool.tally import Thinned, measurement_of, together

REGION_BYTES = 256 * 1024
BLOCK_BYTES = 4096
JOURNAL_FILE = "thinning.journal"
# Each series keeps one sample in so many seconds; 0: none.
LEVELS_S = (1, 10, 0)
COMMENT = b"# thinned "
FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2


def comment_of(thinned: Thinned) -> bytes:
    """The comment line, without its newline."""
    document = {
        "points": thinned.total, "from_ns": thinned.from_ns, "to_ns": thinned.to_ns, "reason": thinned.reason,
        "measurements": {name: [count, thinned.delivered.get(name, 0)] for name, count in sorted(thinned.points.items())},
    }  # fmt: skip
    return COMMENT + json.dumps(document).encode()


def parse_comment(line: bytes) -> Thinned | None:
    """Returns the points that a comment of ours names; None for any other line."""
    if not line.startswith(COMMENT):
        return None
    document = json.loads(line[len(COMMENT) :].rstrip(b"\0\n"))
    counts = document["measurements"]
    return Thinned(
        {name: pair[0] for name, pair in counts.items()}, {name: pair[1] for name, pair in counts.items()},
        document["from_ns"], document["to_ns"], document["reason"],
    )  # fmt: skip


def series_of(line: bytes) -> bytes:
    """Measurement and tags: up to the first space that no backslash shields."""
    end = line.find(b" ")
    while end > 0 and line[end - 1] == 0x5C:
        end = line.find(b" ", end + 1)
    return line[:end]


class Kept(NamedTuple):
    """A region after thinning: the whole lines that stay, what went now, and what went altogether."""

    lines: bytes
    new: Thinned
    ever: Thinned


def thin(data: bytes, fast: Set[str], level_s: int, keep: Set[bytes], delivered: bool, reason: str) -> Kept:
    """`data` is whole lines. Lines of `fast` measurements go but for one per series and `level_s`; lines in `keep` stay."""
    lines: list[bytes] = []
    points: Counter[str] = Counter()
    times: list[int] = []
    earlier: list[Thinned] = []
    seen: set[tuple[bytes, int]] = set()
    for line in data.splitlines(keepends=True):
        name = measurement_of(line)
        if name not in fast or line in keep:
            comment = parse_comment(line)
            if comment is None:
                lines.append(line)
            else:
                earlier.append(comment)
            continue
        time_ns = int(line[line.rfind(b" ") + 1 :])
        if level_s:
            turn = (series_of(line), time_ns // (level_s * 1_000_000_000))
            if turn not in seen:
                seen.add(turn)
                lines.append(line)
                continue
        points[name] += 1
        times.append(time_ns)
    new = Thinned(points, points if delivered else {}, min(times, default=0), max(times, default=0), reason)
    return Kept(b"".join(lines), new, together([*earlier, new], reason))


def punch(fd: int, start: int, length: int) -> None:
    """Give a range's blocks back; it reads as zero bytes from now on. Raises OSError where that is not possible."""
    libc = ctypes.CDLL(None, use_errno=True)
    function = getattr(libc, "fallocate64", None) or libc.fallocate
    function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    if function(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start, length) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def write_at(fd: int, data: bytes, offset: int) -> None:
    """All of it."""
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, offset)
        view, offset = view[written:], offset + written


class Journal:
    """The one region that is being rewritten. Its blocks are taken at the start, for there are none once the disk is full."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / JOURNAL_FILE
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def reserve(self) -> None:
        """Take the room. Raises OSError when there is none."""
        os.posix_fallocate(self._fd, 0, REGION_BYTES + 2 * BLOCK_BYTES)

    def can_punch(self) -> str | None:
        """None, or why this file system gives no parts of a file back; tried on the journal's own last block."""
        try:
            punch(self._fd, REGION_BYTES + BLOCK_BYTES, BLOCK_BYTES)
        except (OSError, AttributeError) as error:
            return str(error)
        return None

    def write(self, start: int, end: int, head: bytes) -> None:
        """Before the region is touched."""
        document = {"start": start, "end": end, "bytes": len(head), "crc32": zlib.crc32(head)}
        write_at(self._fd, json.dumps(document).encode() + b"\n" + head, 0)

    def read(self) -> tuple[int, int, bytes] | None:
        """The last region written whole, or None."""
        data = os.pread(self._fd, REGION_BYTES + 2 * BLOCK_BYTES, 0)
        first, newline, rest = data.partition(b"\n")
        try:
            document: dict[str, Any] = json.loads(first)
            start, end, length, crc = (int(document[key]) for key in ("start", "end", "bytes", "crc32"))
        except (ValueError, KeyError, TypeError):
            return None
        head = rest[:length]
        return (start, end, head) if newline and len(head) == length and zlib.crc32(head) == crc else None

    def clear(self) -> None:
        """The region is done."""
        write_at(self._fd, b"\n", 0)

    def remove(self) -> None:
        """At the end of a run: nothing is under way."""
        os.close(self._fd)
        self.path.unlink()


def rewrite(fd: int, start: int, end: int, head: bytes) -> None:
    """Put `head` (kept lines and the comment) at the region's start; up to its newline all else becomes a hole."""
    write_at(fd, head, start)
    punch(fd, start + len(head), end - 1 - start - len(head))


def redo(fd: int, journal: Journal, size_bytes: int) -> bool:
    """Finish a region whose rewriting was cut short; False when there was none."""
    found = journal.read()
    if found is None or found[1] > size_bytes:
        return False
    start, end, head = found
    rewrite(fd, start, end, head)
    journal.clear()
    return True
