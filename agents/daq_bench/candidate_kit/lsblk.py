"""The block devices that `lsblk --json` lists, and what lies on each.

Promise: one reader, and one refusal, for the guard of drives, provisioning, the purge and the survey. Ansible's modules import this file
as `ansible.module_utils.bench_lsblk`, so that it imports no other of the kit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Without NAME lsblk prints a flat list, in which no drive has anything on it.
COLUMNS = "NAME,KNAME,PATH,MAJ:MIN,TYPE,SIZE,MODEL,SERIAL,REV,WWN,RO,ROTA,TRAN,PKNAME,FSTYPE,LABEL,UUID,PARTUUID,PARTLABEL,MOUNTPOINT"
COMMAND = ("lsblk", "--json", "--bytes", "--output", COLUMNS)
SYS_BLOCK = Path("/sys/block")
SERIAL_PAGE, PAGE_HEADER_BYTES = (
    0x80,
    4,
)  # SPC-4, 7.8.17, Unit Serial Number: its number is the second byte, its length the next two


@dataclass(frozen=True)
class Device:
    """One block device and what lies on it (partitions, arrays, mapped devices). A text that lsblk does not know is empty."""

    name: str
    path: str
    number: str  # MAJOR:MINOR
    type: str
    size_bytes: int
    model: str = ""
    serial: str = ""
    firmware: str = ""
    wwn: str = ""
    read_only: bool = False
    rotational: bool = False
    transport: str = ""
    parent: str = ""  # one of the devices below; which one of several lsblk does not promise
    filesystem: str = ""
    label: str = ""
    uuid: str = ""
    partition_uuid: str = ""
    partition_label: str = ""
    mount_point: str = ""
    children: tuple[Device, ...] = ()

    def tree(self) -> list[Device]:
        """The device and everything below it, each once."""
        return list(everything([self]).values())

    def __str__(self) -> str:
        return f"{self.serial or 'no serial'} ({self.model or 'no model'}, {self.path}, {self.size_bytes / 1e9:.1f} GB)"


def devices_of(output: str, sys_block: Path | None) -> list[Device]:
    """The devices at the roots of lsblk's tree. Raises ValueError, in words for the user, where it is something else.

    A serial that lsblk lacks is the kernel's, of `sys_block` (None: for a list of another machine): lsblk asks udev alone, which has no
    data in a container, and not always elsewhere (util-linux/util-linux#2653)."""
    try:
        return [_device(row, sys_block) for row in json.loads(output)["blockdevices"]]
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError, OverflowError) as error:
        said = f"{type(error).__name__}: {str(error)[:200]}"
        raise ValueError(f"lsblk's list of drives cannot be read ({said}); install util-linux 2.34 or newer") from None


def _device(row: dict[str, Any], sys_block: Path | None) -> Device:
    """Older versions print numbers and flags as text."""

    def text(key: str) -> str:
        return str(row.get(key) or "").strip()

    return Device(
        name=row["kname"].strip(),
        path=text("path") or f"/dev/{row['kname']}",
        number=row["maj:min"].strip(),
        type=row["type"].strip(),
        size_bytes=int(row.get("size") or 0),
        model=text("model"),
        serial=text("serial") or (serial_of(sys_block / row["kname"].strip()) if sys_block else ""),
        firmware=text("rev"),
        wwn=text("wwn"),
        read_only=row.get("ro") in (True, "1", 1),
        rotational=row.get("rota") in (True, "1", 1),
        transport=text("tran"),
        parent=text("pkname"),
        filesystem=text("fstype"),
        label=text("label"),
        uuid=text("uuid"),
        partition_uuid=text("partuuid"),
        partition_label=text("partlabel"),
        mount_point=text("mountpoint"),
        children=tuple(_device(child, sys_block) for child in row.get("children") or []),
    )


def serial_of(block: Path) -> str:
    """The serial in a device's folder of /sys/block, where virtio, NVMe and SCSI or ATA each have it; empty where none has."""
    for name in ("serial", "device/serial"):
        with suppress(OSError):
            if text := (block / name).read_text("utf-8", "replace").strip("\0 \n\t"):
                return text
    with suppress(OSError):
        page = (block / "device" / "vpd_pg80").read_bytes()
        end = PAGE_HEADER_BYTES + int.from_bytes(page[2:PAGE_HEADER_BYTES], "big")
        if page[1:2] == bytes([SERIAL_PAGE]) and len(page) >= end:
            return page[PAGE_HEADER_BYTES:end].decode("ascii", "replace").strip("\0 \n\t")
    return ""


def everything(roots: Iterable[Device]) -> dict[str, Device]:
    """Every device by MAJOR:MINOR; one below several others (the members of an array) is listed below each of them."""
    found: dict[str, Device] = {}
    for device in roots:
        for one in (device, *everything(device.children).values()):
            found.setdefault(one.number, one)
    return found
