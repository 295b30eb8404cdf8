"""The machine's block devices as lsblk lists them, and what uses them. Pure: parses text, touches nothing.

Runs on the candidate: Python 3.9, standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ansible.module_utils.bench_storage.errors import StorageError

# Without NAME lsblk prints a flat list, in which no drive has anything on it.
COLUMNS = "NAME,KNAME,PATH,MAJ:MIN,TYPE,SIZE,MODEL,SERIAL,WWN,RO,FSTYPE,LABEL,UUID,PARTUUID,PARTLABEL"


@dataclass(frozen=True)
class Device:
    """One block device and what lies on it (partitions, arrays, mapped devices)."""

    name: str
    path: str
    number: str  # MAJOR:MINOR
    type: str
    size_bytes: int
    model: str = ""
    serial: str = ""
    wwn: str = ""
    read_only: bool = False
    filesystem: str = ""
    label: str = ""
    uuid: str = ""
    partition_uuid: str = ""
    partition_label: str = ""
    children: tuple[Device, ...] = ()

    def tree(self) -> list[Device]:
        """The device and everything below it, each once."""
        found = {self.name: self}
        for child in self.children:
            for device in child.tree():
                found.setdefault(device.name, device)
        return list(found.values())

    def __str__(self) -> str:
        return f"{self.serial or 'no serial'} ({self.model or 'no model'}, {self.path}, {self.size_bytes / 1e9:.1f} GB)"


def device_of(row: dict[str, Any]) -> Device:
    """Build a device from one row of lsblk's JSON; older versions print numbers and flags as text."""

    def text(key: str) -> str:
        return str(row.get(key) or "").strip()

    return Device(
        name=text("kname"),
        path=text("path") or f"/dev/{text('kname')}",
        number=text("maj:min"),
        type=text("type"),
        size_bytes=int(row.get("size") or 0),
        model=text("model"),
        serial=text("serial"),
        wwn=text("wwn"),
        read_only=row.get("ro") in (True, "1", 1),
        filesystem=text("fstype"),
        label=text("label"),
        uuid=text("uuid"),
        partition_uuid=text("partuuid"),
        partition_label=text("partlabel"),
        children=tuple(device_of(child) for child in row.get("children") or []),
    )


UNREADABLE = (ValueError, RecursionError, LookupError, TypeError, AttributeError, OverflowError)


def parse_lsblk(output: str) -> list[Device]:
    """Return the devices at the roots of lsblk's tree; StorageError where it is no tree, and so hides what is in use."""
    try:
        roots = [device_of(row) for row in json.loads(output)["blockdevices"]]
    except UNREADABLE as error:
        raise unreadable_lsblk(error) from None
    strays = [root.name for root in roots if root.type == "part"]
    if strays:
        raise StorageError(f"lsblk lists {', '.join(strays)} outside of any drive: install util-linux 2.34 or newer")
    return roots


def unreadable_lsblk(error: Exception) -> StorageError:
    """Return the refusal of what lsblk printed; `error` is one of UNREADABLE."""
    said = f"{type(error).__name__}: {str(error)[:200]}"
    return StorageError(f"lsblk's list of drives cannot be read ({said}); install util-linux 2.34 or newer")


def parse_wipefs(output: str) -> list[dict[str, Any]]:
    """Return the signatures that wipefs lists; some versions print nothing for a device without any. StorageError for anything else."""
    try:
        found = json.loads(output)["signatures"] if output.strip() else []
        if not all(isinstance(one["type"], str) and "uuid" in one for one in found):
            raise TypeError("a signature without type and uuid")
    except (ValueError, RecursionError, LookupError, TypeError) as error:
        raise StorageError(
            f"wipefs' list of signatures cannot be read ({type(error).__name__}: {str(error)[:200]})"
        ) from None
    return list(found)


def everything(roots: Iterable[Device]) -> dict[str, Device]:
    """Return every device of the machine by MAJOR:MINOR."""
    return {device.number: device for root in roots for device in root.tree()}


@dataclass(frozen=True)
class Mount:
    """One mounted file system."""

    number: str
    directory: str
    filesystem: str
    options: tuple[str, ...]
    source: str = ""


def unescape(field: str) -> str:
    """Undo the octal escapes of mountinfo, fstab and swaps."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, character)
    return field


def parse_mountinfo(text: str) -> list[Mount]:
    """Parse /proc/self/mountinfo, proc(5)."""
    mounts = []
    for line in text.splitlines():
        left, _dash, right = line.partition(" - ")
        fields, tail = left.split(" "), right.split(" ")  # a source may be empty, between two blanks
        if len(fields) < 6 or len(tail) < 3:
            raise StorageError(
                f"/proc/self/mountinfo: {line[:200]!r} is not understood, so that a mounted drive may be hidden"
            )
        options = fields[5].split(",")
        options += [option for option in tail[2].split(",") if option not in options]
        mounts.append(Mount(fields[2], unescape(fields[4]), tail[0], tuple(options), unescape(tail[1])))
    return mounts


def parse_swaps(text: str) -> list[str]:
    """Return the device files of /proc/swaps."""
    return [unescape(line.split()[0]) for line in text.splitlines()[1:] if line.strip()]


def parse_fstab(text: str) -> list[tuple[str, str]]:
    """Return (device as it is written, mount point) of each line of fstab(5)."""
    lines = (line.split() for line in text.splitlines() if not line.lstrip().startswith("#"))
    return [(unescape(fields[0]), unescape(fields[1])) for fields in lines if len(fields) >= 2]


def parse_root(command_line: str) -> str:
    """Return the root= of the kernel's command line, or an empty string."""
    roots = [word[len("root=") :] for word in command_line.split() if word.startswith("root=")]
    return roots[-1] if roots else ""


def is_named(device: Device, text: str, real_path: str) -> bool:
    """Says whether `text` (of fstab or root=) names the device; `real_path` is the text's path with links followed."""
    key, equals, value = text.partition("=")
    if not equals:
        return text.startswith("/dev/") and real_path == device.path
    held = {
        "UUID": device.uuid,
        "LABEL": device.label,
        "PARTUUID": device.partition_uuid,
        "PARTLABEL": device.partition_label,
    }.get(key.upper(), "")
    return bool(held) and held.lower() == value.strip('"').lower()
