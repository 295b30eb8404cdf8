"""Checks the inventory's request to the storage role and converts it to plain units. Pure.

Runs on the candidate: Python 3.9, standard library only.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import Any

from ansible.module_utils.bench_sizes import size_with_unit
from ansible.module_utils.bench_storage.errors import StorageError

PURGES = ("none", "discard", "format", "sanitize")
LABEL_CHARACTERS_MAX = {"xfs": 12, "ext4": 16}  # mkfs.xfs(8) -L, mke2fs(8) -L
ARRAY_NAME_CHARACTERS_MAX = 32  # set_name of the 1.2 superblock, md(4)
MEMBERS_MIN = {0: 2, 1: 2, 5: 3, 6: 4, 10: 2}
CHUNK_BYTES_DEFAULT = 512 * 1024  # as mdadm(8) --chunk
SYSTEM = (
    "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/media", "/mnt", "/opt", "/proc", "/root", "/run", "/sbin", "/srv",
    "/sys", "/tmp", "/usr", "/var", "/var/lib", "/var/log", "/var/tmp",
)  # fmt: skip


@dataclass(frozen=True)
class Wanted:
    """One drive asked for: its serial, and its WWN where one serial stands for several namespaces."""

    serial: str
    wwn: str = ""


@dataclass(frozen=True)
class Raid:
    """An md array; `chunk_bytes` is 0 for level 1, which has none."""

    level: int
    chunk_bytes: int

    def data_drives(self, members: int) -> int:
        """Says how many members' worth of data the array holds."""
        return {0: members, 1: 1, 5: members - 1, 6: members - 2}.get(self.level, members // 2)

    def __str__(self) -> str:
        return f"raid{self.level}" + (f", chunk {self.chunk_bytes // 1024} KiB" if self.chunk_bytes else "")


@dataclass(frozen=True)
class Layout:
    """The whole request for one target."""

    target: str
    directory: str
    drives: tuple[Wanted, ...]
    destroy: bool
    purge: str
    lba_bytes: int  # 0: as the drive is
    raid: Raid | None
    filesystem: str

    @property
    def array_name(self) -> str:
        """The md array's name."""
        return f"daq-{self.target}"

    @property
    def label(self) -> str:
        """The file system's label: the array's name as far as it fits."""
        return self.array_name[: LABEL_CHARACTERS_MAX[self.filesystem]]

    def fingerprint(self) -> dict[str, Any]:
        """Returns the properties in which an earlier build must equal this one; consent is no property of a build."""
        raid = {"level": self.raid.level, "chunk_bytes": self.raid.chunk_bytes} if self.raid else None
        return {
            "directory": self.directory,
            "drives": [{"serial": drive.serial, "wwn": drive.wwn} for drive in self.drives],
            "purge": self.purge,
            "lba_bytes": self.lba_bytes,
            "raid": raid,
            "filesystem": self.filesystem,
        }


def size_bytes(text: str, field: str) -> int:
    """Parse a size such as 128KiB; a bare k, M or G is refused."""
    try:
        return size_with_unit(str(text))
    except ValueError:
        raise StorageError(f"{field} is {text!r}; write a whole number and a unit, such as 128KiB") from None


def raid_of(options: dict[str, Any] | None, members: int) -> Raid | None:
    """Check the `raid:` block against the number of drives."""
    if options is None:
        if members > 1:
            raise StorageError(f"storage.drives names {members} drives without storage.raid; add raid: {{level: 0}}")
        return None
    level, chunk = int(options["level"]), options.get("chunk")
    if level not in MEMBERS_MIN:
        raise StorageError(f"storage.raid.level is {level}; known: {', '.join(map(str, MEMBERS_MIN))}")
    if members < MEMBERS_MIN[level]:
        raise StorageError(
            f"storage.raid.level {level} needs {MEMBERS_MIN[level]} drives or more; storage.drives names {members}"
        )
    if level == 1:
        if chunk:
            raise StorageError("storage.raid.chunk is given for level 1, which has no chunk; remove it")
        return Raid(1, 0)
    chunk_bytes = size_bytes(chunk, "storage.raid.chunk") if chunk else CHUNK_BYTES_DEFAULT
    if chunk_bytes < 4096 or chunk_bytes & (chunk_bytes - 1):
        raise StorageError(f"storage.raid.chunk is {chunk}; md takes powers of two from 4KiB on")
    return Raid(level, chunk_bytes)


def wanted_drives(items: list[Any]) -> tuple[Wanted, ...]:
    """Check the list of serials; an item is a serial, or a mapping with `serial` and `wwn`."""
    drives = []
    for item in items:
        fields = item if isinstance(item, dict) else {"serial": item}
        unknown = sorted(set(fields) - {"serial", "wwn"})
        serial, wwn = fields.get("serial"), fields.get("wwn") or ""
        if unknown or not isinstance(serial, str) or not serial.strip() or not isinstance(wwn, str):
            raise StorageError(
                f"storage.drives has {item!r}; give the drive's exact serial in quotes, or serial and wwn"
            )
        drives.append(Wanted(serial.strip(), wwn.strip()))
    if not drives:
        raise StorageError("storage.drives is empty; name the serial of every drive under test")
    twice = sorted({drive.serial for drive in drives if drives.count(drive) > 1})
    if twice:
        raise StorageError(f"storage.drives names {', '.join(twice)} twice")
    return tuple(drives)


def layout_of(target: str, directory: str, options: dict[str, Any]) -> Layout:
    """Build the layout from the module's options; StorageError names what is wrong."""
    drives = wanted_drives(options["drives"])
    name = target or "target"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) or len(f"daq-{name}") > ARRAY_NAME_CHARACTERS_MAX:
        raise StorageError(
            f"the target's name is {name!r}; as part of an array's name it takes letters, digits, . _ - and at most"
            f" {ARRAY_NAME_CHARACTERS_MAX - 4} characters"
        )
    if not directory.startswith("/") or directory.rstrip("/") == "":
        raise StorageError(f"the target's directory is {directory!r}; a mount point is an absolute path below /")
    plain = posixpath.normpath(directory)
    if plain != directory.rstrip("/"):
        raise StorageError(f"the target's directory is {directory!r}; write it as {plain}")
    if plain in SYSTEM:
        raise StorageError(
            f"the target's directory is {plain}, whose own content a file system would hide; name one below /srv"
        )
    lba_bytes = options.get("lba_bytes") or 0
    if lba_bytes and (lba_bytes < 512 or lba_bytes & (lba_bytes - 1)):
        raise StorageError(f"storage.lba_bytes is {lba_bytes}; logical blocks are powers of two, such as 512 or 4096")
    return Layout(
        target=name,
        directory=directory.rstrip("/"),
        drives=drives,
        destroy=options["destroy"],
        purge=options["purge"],
        lba_bytes=lba_bytes,
        raid=raid_of(options.get("raid"), len(drives)),
        filesystem=options["filesystem"],
    )
