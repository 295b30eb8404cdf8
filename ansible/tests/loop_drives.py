"""Loop devices that play drives: real block devices of our own, with serials that only an lsblk of our own tells.

They are mounted in a mount namespace of the test's own. One that another test makes meanwhile, for a container or by `ip netns exec`,
starts as a copy of the system's mounts, and would keep a drive busy that was mounted there."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

SIZE_BYTES = 400 * 2**20  # mkfs.xfs wants 300 MiB or more; the files are sparse
CLONE_NEWNS = 0x20000  # unshare(2)

# Stands in front of lsblk on PATH: its list is real, but for the identity of our own loop devices.
LISTER = """#!{python}
import json, subprocess, sys
done = subprocess.run([{lsblk!r}, *sys.argv[1:]], capture_output=True, text=True, check=False)
if done.returncode or "--json" not in sys.argv:
    sys.stdout.write(done.stdout); sys.stderr.write(done.stderr); sys.exit(done.returncode)
rows = json.loads(done.stdout)
for row in rows["blockdevices"]:
    row.update(json.load(open({drives!r})).get(row.get("path"), {{}}))
print(json.dumps(rows))
"""


def can_use_loop_devices() -> bool:
    """Return whether this machine lets us make loop devices and file systems."""
    needed = ("losetup", "lsblk", "wipefs", "blkdiscard", "mkfs.xfs", "mkfs.ext4")
    return os.geteuid() == 0 and Path("/dev/loop-control").exists() and all(shutil.which(name) for name in needed)


@contextmanager
def own_mounts() -> Iterator[None]:
    """Give this thread, and the processes that it starts meanwhile, a mount namespace of its own."""
    kernel, before, folder = ctypes.CDLL(None, use_errno=True), os.open("/proc/self/ns/mnt", os.O_RDONLY), Path.cwd()
    try:
        _done(kernel.unshare(CLONE_NEWNS), "unshare")
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        try:
            yield
        finally:
            _done(kernel.setns(before, CLONE_NEWNS), "setns")
            os.chdir(folder)  # setns leaves the process in the root
    finally:
        os.close(before)


def _done(status: int, call: str) -> None:
    if status != 0:
        raise OSError(ctypes.get_errno(), f"{call}: {os.strerror(ctypes.get_errno())}")


class LoopDrives:
    """Drives by serial; each a sparse file below `root`. Leaves nothing behind."""

    def __init__(self, root: Path) -> None:
        self.root, self.bin = root / "drives", root / "bin"
        self.listing = self.bin / "drives.json"
        self.paths: dict[str, str] = {}
        self._mounts = own_mounts()

    def __enter__(self) -> LoopDrives:
        self._mounts.__enter__()
        self.root.mkdir()
        self.bin.mkdir()
        self.listing.write_text("{}")
        lister = self.bin / "lsblk"
        lister.write_text(LISTER.format(python=sys.executable, lsblk=shutil.which("lsblk"), drives=str(self.listing)))
        lister.chmod(0o755)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for path in self.paths.values():
            for mounted in mounts_of(path):
                subprocess.run(["umount", mounted], check=True)
            subprocess.run(["losetup", "--detach", path], check=True)
        self._mounts.__exit__(kind, error, trace)

    def add(self, serial: str, size_bytes: int = SIZE_BYTES, sector: int = 512) -> str:
        """Plug a drive in and return its device file."""
        backing = self.root / f"{serial}.img"
        with backing.open("wb") as file:
            file.truncate(size_bytes)
        command = ["losetup", "--find", "--show", f"--sector-size={sector}", str(backing)]
        path = subprocess.run(command, check=True, text=True, capture_output=True).stdout.strip()
        self.paths[serial] = path
        self.tell()
        return path

    def tell(self, **changes: str) -> None:
        """Let the lister give each of our devices its serial; `changes` apply to all of them."""
        identity = {"type": "disk", "model": "Loop Drive", **changes}
        listing = {path: {"serial": serial, **identity} for serial, path in self.paths.items()}
        self.listing.write_text(json.dumps(listing))

    def environment(self) -> dict[str, str]:
        """Return the PATH on which our lister comes first."""
        return {"PATH": f"{self.bin}:{os.environ['PATH']}"}


def mounts_of(path: str) -> list[str]:
    """Return where a device is mounted."""
    found = []
    for line in Path("/proc/self/mounts").read_text().splitlines():
        source, directory = line.split()[:2]
        if source == path:
            found.append(directory)
    return found


def signatures(path: str) -> list[str]:
    """Return the signatures on a device."""
    done = subprocess.run(["wipefs", "--no-act", "--json", path], check=True, text=True, capture_output=True)
    found = json.loads(done.stdout)["signatures"] if done.stdout.strip() else []
    return [entry["type"] for entry in found]
