"""A slow disk on purpose: a file system on a loop device whose reads the kernel holds back (cgroup blkio or io).

It stands in a mount namespace of this process: the mount ends with the process, however that ends, and the loop device, which is marked for
it, with the mount. The loop reads its image with O_DIRECT, so that no page cache stands in for the disk.
It is held to a disk's average rates; it knows no position of a head."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from daq_bench.analysis_reader.errors import ReaderError

V1, V2 = Path("/sys/fs/cgroup/blkio"), Path("/sys/fs/cgroup")
GROUP = "daq-bench-analysis-"
CLONE_NEWNS = 0x20000  # unshare(2)


@dataclass(frozen=True)
class Limits:
    """`read_iops`: requests per second; `read_bytes_per_s`: B/s."""

    read_iops: int
    read_bytes_per_s: int


def _tool(*argv: str) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ReaderError(f"{argv[0]}: {error.strerror}. Install it (util-linux, e2fsprogs)") from None
    if done.returncode != 0:
        raise ReaderError(
            f"{' '.join(argv)}: {done.stderr.strip() or 'failed'}. A slow disk needs root and loop devices"
        )
    return done.stdout


def _own_namespace() -> None:
    """Gives this process a mount namespace of its own: mounts from now on end with it."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        raise ReaderError(
            f"a mount namespace: {os.strerror(ctypes.get_errno())}. A slow disk needs root and loop devices"
        )
    _tool("mount", "--make-rprivate", "/")


@contextmanager
def slow_disk(image: Path, size_bytes: int) -> Iterator[tuple[str, Path]]:
    """(kernel name of the loop device, folder on it), not held back yet: `held` does that.

    Raises ReaderError for what this machine does not offer; the image is removed in any case."""
    _room(image, size_bytes)
    _own_namespace()
    folder, device = image.with_suffix(".mount"), ""
    try:
        with image.open("xb") as file:
            os.posix_fallocate(file.fileno(), 0, size_bytes)
        device = _tool("losetup", "--find", "--show", "--direct-io=on", str(image)).strip()
        found = json.loads(_tool("losetup", "--json", "--list", "--output", "NAME,DIO", device))["loopdevices"][0]
        if str(found["dio"]) not in ("1", "True", "true"):
            raise ReaderError(
                f"{device}: O_DIRECT is not possible on {image}, so that memory would stand in for the disk"
            )
        _tool("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", device)
        folder.mkdir()
        _tool("mount", "-o", "noatime", device, str(folder))
        _tool("losetup", "--detach", device)  # lazily: with the last that uses it, which is the mount
        yield Path(device).name, folder
    finally:
        subprocess.run(["umount", str(folder)], capture_output=True, check=False)
        if device:
            subprocess.run(["losetup", "--detach", device], capture_output=True, check=False)
        with suppress(OSError):
            folder.rmdir()
        image.unlink(missing_ok=True)


def _room(image: Path, size_bytes: int) -> None:
    free = shutil.disk_usage(image.parent).free
    if free < size_bytes:
        raise ReaderError(
            f"{image.parent}: the slow disk needs {size_bytes} B, {free} B are free. Make room, or make it smaller"
        )


@contextmanager
def held(device: str, limits: Limits) -> Iterator[str]:
    """Holds this process and its children to `limits` when they read from `device`; yields the controller that does it (blkio, io)."""
    number = Path(f"/sys/block/{device}/dev").read_text(encoding="ascii").strip()
    version_2 = not (V1 / "blkio.throttle.read_iops_device").exists()
    parent = V2 if version_2 else V1
    _remove_left_behind(parent)
    group, own = parent / f"{GROUP}{os.getpid()}", _own_group(version_2)
    try:
        if version_2:
            (parent / "cgroup.subtree_control").write_text("+io", encoding="ascii")
        group.mkdir()
        for name, line in _settings(version_2, number, limits):
            (group / name).write_text(line, encoding="ascii")
        (group / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
    except OSError as error:
        _leave(group, parent / own)
        raise ReaderError(
            f"{group}: {error.strerror}: this machine cannot hold a device back. Run as root, with the cgroup controller blkio or io"
        ) from None
    try:
        yield "io" if version_2 else "blkio"
    finally:
        _leave(group, parent / own)


def _settings(version_2: bool, number: str, limits: Limits) -> list[tuple[str, str]]:
    if version_2:
        return [("io.max", f"{number} rbps={limits.read_bytes_per_s} riops={limits.read_iops}")]
    return [
        ("blkio.throttle.read_bps_device", f"{number} {limits.read_bytes_per_s}"),
        ("blkio.throttle.read_iops_device", f"{number} {limits.read_iops}"),
    ]


def _own_group(version_2: bool) -> str:
    """This process' group, relative to the controller's root."""
    for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, path = line.split(":", 2)
        if (version_2 and not controllers) or (not version_2 and "blkio" in controllers.split(",")):
            return path.lstrip("/")
    return ""


def _leave(group: Path, home: Path) -> None:
    with suppress(OSError):
        (home / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
    with suppress(OSError):
        group.rmdir()


def _remove_left_behind(parent: Path) -> None:
    """Removes the groups of processes that were killed outright."""
    for group in parent.glob(f"{GROUP}*"):
        if not Path(f"/proc/{group.name[len(GROUP) :]}").exists():
            with suppress(OSError):
                group.rmdir()
