"""Proves that a purge took a drive's data away: marks are written all over the drive before it and looked for after it.

A drive's own word that a sanitize or format is complete is not a look at the medium. No device promises what reads
after a discard: a mark that is left there is told, and no failure.
Runs on the candidate: Python 3.9, standard library only.
"""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Iterator

from ansible.module_utils.bench_storage.errors import StorageError

MARKS, MARK_BYTES = 64, 4096
SEED_BYTES = 32
BUSY_S_MAX = 2.0  # for an instant's look by another program; who uses the drive holds it longer


def places(size_bytes: int) -> list[int]:
    """Return where the marks lie: from the first block to the last, in whole blocks."""
    last = size_bytes // MARK_BYTES - 1
    return sorted({number * last // (MARKS - 1) * MARK_BYTES for number in range(MARKS)}) if last >= 0 else []


def open_exclusively(path: str, access: int, wait_s: float) -> int:
    """Open a drive that nothing else may hold, and ask again for at most wait_s where something does; return the descriptor."""
    until = time.monotonic() + wait_s
    while True:
        try:
            return os.open(path, access | os.O_EXCL | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() >= until:
                raise
        time.sleep(0.05)


def plant(path: str) -> tuple[bytes, int]:
    """Write the marks to a drive whose data is to go, and flush them; return the seed and the drive's size."""
    seed = os.urandom(SEED_BYTES)
    handle = open_exclusively(path, os.O_RDWR, BUSY_S_MAX)
    try:
        size = os.lseek(handle, 0, os.SEEK_END)
        for place in places(size):
            if os.pwrite(handle, _mark(seed, place), place) != MARK_BYTES:
                raise StorageError(f"{path}: a mark at byte {place} was not written whole")
        os.fsync(handle)
        if _missing(handle, path, seed, size):
            raise StorageError(f"{path}: does not read back what was just written, so that no purge can be proved")
    finally:
        os.close(handle)
    return seed, size


def surviving(path: str, seed: bytes, size: int) -> tuple[int, int]:
    """Return (marks that still read, marks that were looked for): of a drive that has shrunk, those within it."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        looked = [place for place in places(size) if place + MARK_BYTES <= os.lseek(handle, 0, os.SEEK_END)]
        missing = _missing(handle, path, seed, size)
        return len([place for place in looked if place not in missing]), len(looked)
    finally:
        os.close(handle)


def _missing(handle: int, path: str, seed: bytes, size: int) -> set[int]:
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)  # from the medium, not from memory
    return {place for place, data in _read(handle, path, size) if data != _mark(seed, place)}


def _read(handle: int, path: str, size: int) -> Iterator[tuple[int, bytes]]:
    for place in places(size):
        try:
            yield place, os.pread(handle, MARK_BYTES, place)
        except OSError as error:
            raise StorageError(f"{path}: cannot be read at byte {place}: {error.strerror}") from error


def _mark(seed: bytes, place: int) -> bytes:
    return hashlib.shake_128(seed + place.to_bytes(8, "little")).digest(MARK_BYTES)
