"""Block devices from /proc/diskstats: whole disks and md arrays, with their serial where the kernel knows it.

Promise: counters are the kernel's own, in bytes (a diskstats sector is 512 B whatever the drive's block
size); rates are derived from two readings with the monotonic clock. Partitions, loop, zram, dm and optical
devices are left out.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from telemetry_agent.collector import (
    FAST,
    HeldFile,
    Reading,
    Unsupported,
    per_second,
    rate_interval_s,
    read_optional,
    reading_now,
)
from telemetry_agent.point import FieldValue, Point

SECTOR_BYTES = 512
DISK_KEY = "disk:"  # texts["disk:nvme0n1"] holds the serial of a whole disk, "" when it has none
_NOT_DISKS = ("sr", "fd", "loop", "ram", "zram", "dm-")


class DiskCounters(NamedTuple):
    """One diskstats line, in the units of the metrics."""

    read_ios: int
    read_bytes: int
    write_ios: int
    written_bytes: int
    in_flight: int
    io_time_ms: int


@lru_cache(maxsize=2)  # this reading's text is the next one's `previous`
def parse_diskstats(text: str) -> dict[str, DiskCounters]:
    """Counters by device name; a line with fewer than the 14 classic columns raises ValueError."""
    table = {}
    for line in text.splitlines():
        columns = line.split()
        if len(columns) < 14:
            raise ValueError(f"/proc/diskstats: {len(columns)} columns in {line!r}, at least 14 are expected")
        table[columns[2]] = DiskCounters(
            read_ios=int(columns[3]),
            read_bytes=int(columns[5]) * SECTOR_BYTES,
            write_ios=int(columns[7]),
            written_bytes=int(columns[9]) * SECTOR_BYTES,
            in_flight=int(columns[11]),
            io_time_ms=int(columns[12]),
        )
    return table


def is_whole_disk(sys_block: Path, name: str) -> bool:
    """A disk has hardware behind it (`device`); an md array has none but is what the bench writes to."""
    if name.startswith(_NOT_DISKS):
        return False
    return name.startswith("md") or (sys_block / name / "device").exists()


def read_serial(sys_block: Path, name: str) -> str:
    """Serial from where virtio, NVMe and SCSI/ATA each publish it; "" when nobody does."""
    for attribute in ("serial", "device/serial"):
        serial = read_optional(sys_block / name / attribute)
        if serial:
            return serial
    try:
        page = (sys_block / name / "device" / "vpd_pg80").read_bytes()
    except OSError:
        return ""
    return page[4:].decode("ascii", "replace").strip(" \0\n")  # the page's first 4 bytes are its header


class BlockDevice:
    """Collector of the measurement `block_device`."""

    name = "block_device"
    pace = FAST

    def __init__(self, period_s: float, root: Path = Path("/")) -> None:
        self.period_s = period_s
        self._diskstats = HeldFile(root / "proc/diskstats")
        self._sys_block = root / "sys/block"
        self._serials: dict[str, str | None] = {}  # None: looked at, not a whole disk

    def read(self) -> Reading:
        """Read diskstats; sysfs only for devices not seen before."""
        texts = {"diskstats": self._diskstats.text()}
        present = os.listdir(self._sys_block)
        for name in set(self._serials).difference(present):
            del self._serials[name]  # the name may come back as another drive
        for name in present:
            if name not in self._serials:
                whole = is_whole_disk(self._sys_block, name)
                self._serials[name] = read_serial(self._sys_block, name) if whole else None
        for name, serial in self._serials.items():
            if serial is not None:
                texts[DISK_KEY + name] = serial
        if len(texts) == 1:
            raise Unsupported(f"{self._sys_block}: no whole disk and no md array")
        return reading_now(texts)

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per disk."""
        now = parse_diskstats(reading.texts["diskstats"])
        before = parse_diskstats(previous.texts["diskstats"]) if previous else {}
        interval_s = rate_interval_s(reading, previous, self.period_s)
        points = []
        for key in sorted(reading.texts):
            name = key[len(DISK_KEY) :]
            if not key.startswith(DISK_KEY) or name not in now:
                continue
            serial = reading.texts[key]
            tags = (("device", name), ("serial", serial)) if serial else (("device", name),)
            fields = _fields(now[name], before.get(name), interval_s)
            points.append(Point("block_device", tags, fields, reading.time_ns))
        return points


def _fields(now: DiskCounters, before: DiskCounters | None, interval_s: float | None) -> dict[str, FieldValue]:
    fields: dict[str, FieldValue] = dict(now._asdict())
    if before is None:
        return fields
    rates = {
        "read_bytes_per_s": per_second(now.read_bytes, before.read_bytes, interval_s),
        "written_bytes_per_s": per_second(now.written_bytes, before.written_bytes, interval_s),
        "io_time_ms_per_s": per_second(now.io_time_ms, before.io_time_ms, interval_s),
    }
    busy = rates.pop("io_time_ms_per_s")
    fields.update({name: rate for name, rate in rates.items() if rate is not None})
    if busy is not None:
        fields["busy_fraction"] = busy / 1000.0
    return fields
