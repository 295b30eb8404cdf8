"""Finds what a folder or block device rests on at last: `memory_beneath` says where that is RAM, through every layer between.

Followed: partitions, device mapper, md (their slaves in /sys/block), loop devices (their backing file), overlays (their upper folder) and
file systems without a device of their own (btrfs). Reads /proc and /sys only, changes nothing."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

IN_MEMORY = ("tmpfs", "ramfs", "hugetlbfs", "rootfs", "devtmpfs")
RAM_DEVICE = re.compile(r"(zram|ram|nullb)\d+")
GONE = " (deleted)"  # how the kernel ends the name of a backing file that somebody removed
DEPTH_MAX = 16
ESCAPED = re.compile(r"\\([0-7]{3})")


def memory_beneath(path: Path, root: Path = Path("/")) -> str:
    """The way to RAM beneath a folder or block device, such as `loop1 < file /dev/shm/x < tmpfs`; empty where none is known to be there."""
    found = path.stat()
    number = found.st_rdev if stat.S_ISBLK(found.st_mode) else found.st_dev
    return _of_number(os.major(number), os.minor(number), path, root, 0)


def _of_number(major: int, minor: int, path: Path, root: Path, depth: int) -> str:
    folder = root / f"sys/dev/block/{major}:{minor}"
    if folder.exists():
        return _of_device(folder.resolve(), root, depth)
    return _of_mount(f"{major}:{minor}", path, root, depth)


def _of_device(folder: Path, root: Path, depth: int) -> str:
    name = folder.name
    if RAM_DEVICE.fullmatch(name):
        return name
    if depth > DEPTH_MAX:
        return f"{name} < more than {DEPTH_MAX} layers, which nobody can follow"
    for below in _layers(folder, root, depth):
        if below:
            return f"{name} < {below}"
    return ""


def _layers(folder: Path, root: Path, depth: int) -> Iterator[str]:
    if (folder / "partition").exists():
        yield _of_device(folder.parent, root, depth + 1)
    slaves = folder / "slaves"
    for slave in sorted(slaves.iterdir()) if slaves.is_dir() else ():
        yield _of_device(slave.resolve(), root, depth + 1)
    backing = folder / "loop" / "backing_file"
    if backing.exists():
        yield _of_file(backing.read_text(encoding="utf-8", errors="surrogateescape").rstrip("\n"), root, depth + 1)


def _of_file(name: str, root: Path, depth: int) -> str:
    """Behind a loop device's file. A removed file lies where its folder does; where that is gone too, nobody can tell."""
    file = Path(name[: -len(GONE)] if name.endswith(GONE) else name)
    at = root / file.relative_to("/") if file.is_absolute() else file
    if not at.exists():
        at = at.parent
    try:
        found = at.stat()
    except OSError:
        return f"file {name}, which is out of sight: nobody can tell what it lies on"
    number = found.st_rdev if stat.S_ISBLK(found.st_mode) else found.st_dev
    below = _of_number(os.major(number), os.minor(number), at, root, depth)
    return f"file {name} < {below}" if below else ""


def _of_mount(number: str, path: Path, root: Path, depth: int) -> str:
    """Behind a file system that has no block device by its own number."""
    for kind, source, options in _mounts(number, root):
        if kind in IN_MEMORY:
            return kind
        if depth > DEPTH_MAX:
            return f"{kind} < more than {DEPTH_MAX} layers, which nobody can follow"
        upper = next((one.partition("=")[2] for one in options.split(",") if one.startswith("upperdir=")), "")
        beneath = upper if kind == "overlay" else source if source.startswith("/dev/") else ""
        if not beneath:
            continue
        try:
            found = (root / beneath.lstrip("/")).stat()
        except OSError:
            continue  # the upper folder of a container lies out of its sight: preflight refuses overlays by their kind
        below = found.st_rdev if stat.S_ISBLK(found.st_mode) else found.st_dev
        if told := _of_number(os.major(below), os.minor(below), path, root, depth + 1):
            return f"{kind} < {told}"
    return ""


def _mounts(number: str, root: Path) -> Iterator[tuple[str, str, str]]:
    """(kind, source, options of the file system) of each mount with this device number, from mountinfo (proc(5))."""
    try:
        text = (root / "proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    for line in text.splitlines():
        own, dash, rest = line.partition(" - ")
        if dash and own.split()[2] == number:
            kind, source, options = [*rest.split(" "), "", ""][:3]
            yield kind, _plain(source), _plain(options)


def _plain(text: str) -> str:
    return ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)
