"""The device under the files: the bytes that were read from it by its counters, and how to empty the page cache before."""

from __future__ import annotations

import os
from pathlib import Path

from daq_bench.analysis_reader.errors import ReaderError
from daq_bench.candidate_kit.nvme_paths import head_tells, paths_of_drive

SECTOR_BYTES = 512  # unit of the counters in /sys/block/*/stat, whatever the device's block size
DROP = Path("/proc/sys/vm/drop_caches")
SYS_BLOCK = Path("/sys/block")


def read_bytes(names: list[str], root: Path = SYS_BLOCK) -> dict[str, int]:
    """Bytes read from each device since boot; where the paths of a multipath NVMe drive count them, theirs (`head_tells`).

    Raises ReaderError for one that is not there."""
    found = {}
    for name in names:
        paths = paths_of_drive(name, root)
        try:
            own, *others = [int((at / "stat").read_text(encoding="ascii").split()[2]) for at in (root / name, *paths)]
            found[name] = (own if head_tells(own, sum(others)) else sum(others)) * SECTOR_BYTES
        except (OSError, IndexError, ValueError):
            raise ReaderError(
                f"device {name}: {root / name / 'stat'} has no counters. Name a block device of this machine"
            ) from None
    return found


def forget(files: list[Path], everything: bool) -> None:
    """Takes `files` out of the page cache; `everything`: the whole cache too, metadata included, which needs root.

    Only the device's counters can say afterwards whether that worked."""
    for path in files:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # a page that is not written yet would stay
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
    if everything:
        try:
            DROP.write_text("3\n", encoding="ascii")
        except OSError as error:
            raise ReaderError(
                f"{DROP}: {error.strerror}. Run as root, or leave drop_caches out: each file is dropped by itself then"
            ) from None
