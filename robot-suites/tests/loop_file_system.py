"""An ext4 of a test's own on a loop device, whose drive can be taken away below it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MIB = 2**20
SIZE_BYTES = 1536 * MIB


def run(*argv: str | Path) -> str:
    return subprocess.run([str(word) for word in argv], check=True, capture_output=True, text=True, timeout=60).stdout


@dataclass(frozen=True)
class LoopDrive:
    """`folder`: where it is mounted. `device`: the kernel's name."""

    image: Path
    folder: Path
    device: str

    def written_bytes(self) -> int:
        return int(Path(f"/sys/block/{self.device}/stat").read_text(encoding="ascii").split()[6]) * 512

    def pull(self) -> None:
        """The file system stays, and behind its first MiB the drive is gone."""
        os.truncate(self.image, MIB)
        run("losetup", "--set-capacity", f"/dev/{self.device}")


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
