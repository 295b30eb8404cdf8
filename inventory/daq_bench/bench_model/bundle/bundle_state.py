"""Tells what a bundle looked like when it was read: a digest that differs as soon as any file of the evidence did.

It holds the manifest itself and, of every other file, what the kernel says of it: inode, mode, size, and the times of the last change to
content and to the entry. The last of these cannot be set by a program; only who sets the machine's clock, or writes to the disk beneath
the file system, escapes it. `daq-bench check-bundle` hashes everything."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.files import ENTRIES_MAX, read_bytes
from daq_bench.bench_model.bundle.provenance import MANIFEST, is_evidence

SETTLED_NS = (
    2_000_000_000  # the coarsest times that file systems in use keep: within them a second change leaves no trace
)


@dataclass(frozen=True)
class State:
    """`changed_ns`: the newest change of an entry, by the file system's clock."""

    digest: str
    changed_ns: int

    def settled(self, now_ns: int) -> bool:
        """Whether a change after `now_ns`, the same clock's present, cannot go unseen."""
        return self.changed_ns + SETTLED_NS < now_ns


def state_of(bundle: Path) -> State | None:
    """None for a bundle without a manifest, and for one that cannot be looked at: such a one is read."""
    try:
        hashed = hashlib.sha256(read_bytes(bundle, MANIFEST))
        newest = 0
        for name, found in sorted(_entries(bundle)):
            if is_evidence(name) or name == MANIFEST:
                newest = max(newest, found.st_ctime_ns)
                told = (found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
                hashed.update(f"\0{name}\0{told}".encode("utf-8", "surrogateescape"))
    except (OSError, BenchError):
        return None
    return State(hashed.hexdigest(), newest)


def _entries(bundle: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Every entry below the bundle but its folders; links are not followed. Raises BenchError for more than a bundle can hold."""
    folders, seen = [""], 0
    root = os.fspath(bundle)
    while folders:
        at = folders.pop()
        with os.scandir(f"{root}/{at}") as entries:
            for entry in entries:
                seen += 1
                name = f"{at}{entry.name}"
                found = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    folders.append(f"{name}/")
                else:
                    yield name, found
        if seen > ENTRIES_MAX:
            raise BenchError(f"{bundle}: holds more than {ENTRIES_MAX} files")
