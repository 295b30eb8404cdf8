"""Tells how much more the spool may take: its own bound, and the space that stays free for everybody else."""

from __future__ import annotations

import os
from typing import NamedTuple

MIB, GIB = 2**20, 2**30


class Limits(NamedTuple):
    """Bytes: the spool's bound on the disk, and the free space that it leaves."""

    max_bytes: int = 8 * GIB
    keep_free_bytes: int = 64 * MIB


class Room:
    """Asks the file system each time: others write to it too."""

    def __init__(self, fd: int, limits: Limits) -> None:
        self._fd, self._limits = fd, limits

    def shortage(self, size: int) -> str | None:
        """None when `size` more bytes fit within both limits, else which one they would break."""
        if self.over_bound(size):
            return f"the spool has reached its bound of {self._limits.max_bytes} bytes (--spool-max)"
        found = os.fstatvfs(self._fd)
        if found.f_bavail * found.f_frsize - size < self._limits.keep_free_bytes:
            return f"the disk has less than {self._limits.keep_free_bytes} bytes free (--spool-keep-free)"
        return None

    def over_bound(self, size: int) -> bool:
        """Would the spool's own bound be broken? Holes in the file do not count."""
        return 512 * os.fstat(self._fd).st_blocks + size > self._limits.max_bytes
