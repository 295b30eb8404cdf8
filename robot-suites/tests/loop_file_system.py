"""An ext4 of a test's own on a loop device, whose drive can be taken away below it."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MIB = 2**20
SIZE_BYTES = 1536 * MIB
SECTOR_BYTES = 512  # the kernel's unit, whatever the drive's
LOOP_SET_CAPACITY = 0x4C07  # linux/loop.h


def run(*argv: str | Path) -> str:
    return subprocess.run([str(word) for word in argv], check=True, capture_output=True, text=True, timeout=60).stdout


@dataclass(frozen=True)
class LoopDrive:
    """`folder`: where it is mounted. `device`: the kernel's name."""

    image: Path
    folder: Path
    device: str

    def written_bytes(self) -> int:
        return int(Path(f"/sys/block/{self.device}/stat").read_text(encoding="ascii").split()[6]) * SECTOR_BYTES

    def pull(self) -> None:
        """The file system stays, and behind its first MiB the drive is gone. A request that is on its way makes the image longer again, and
        the capacity follows the image: so it is asked for until it is that MiB."""
        with Path(f"/dev/{self.device}").open("rb") as drive:
            while self._capacity_bytes() != MIB:
                os.truncate(self.image, MIB)
                fcntl.ioctl(drive, LOOP_SET_CAPACITY)

    def _capacity_bytes(self) -> int:
        return int(Path(f"/sys/block/{self.device}/size").read_text(encoding="ascii")) * SECTOR_BYTES


@contextmanager
def mounted_loop(disk: Path) -> Iterator[LoopDrive]:
    image, folder = disk / "image", disk / "mounted"
    with image.open("wb") as file:
        file.truncate(SIZE_BYTES)
    run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", image)
    folder.mkdir()
    device = run("losetup", "--find", "--show", "--direct-io=on", image).strip()
    try:
        run("mount", device, folder)
        try:
            yield LoopDrive(image, folder, Path(device).name)
        finally:
            run("umount", folder)
    finally:
        run("losetup", "--detach", device)
