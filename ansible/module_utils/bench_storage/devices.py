"""Finds what uses the machine's block devices, from the list of lsblk. It parses text and touches nothing.

Runs on the candidate: Python 3.9, standard library only.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible.module_utils.bench_lsblk import Device, devices_of
from ansible.module_utils.bench_storage.errors import StorageError


def parse_lsblk(output: str, sys_block: Path | None = None) -> list[Device]:
    """Return the devices at the roots of lsblk's tree; StorageError where it is no tree, and so hides what is in use."""
    try:
        roots = devices_of(output, sys_block)
    except ValueError as error:
        raise StorageError(str(error)) from None
    strays = [root.name for root in roots if root.type == "part"]
    if strays:
        raise StorageError(f"lsblk lists {', '.join(strays)} outside of any drive: install util-linux 2.34 or newer")
    return roots


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
