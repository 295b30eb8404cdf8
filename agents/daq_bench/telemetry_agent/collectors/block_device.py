"""Block devices from /proc/diskstats: whole disks and md arrays, with their serial where the kernel knows it.

Promise: counters are the kernel's own, in bytes (a diskstats sector is 512 B whatever the drive's block
size); rates, mean latencies and the mean queue are derived from two readings with the monotonic clock.
Partitions, loop, zram, dm and optical devices are left out. Where the kernel counts the requests of a multipath
NVMe drive at its paths alone (nvme0c0n1; the head tells of far fewer bytes), the drive's counters are its paths' sums.
Discards and flushes are reported where the kernel counts them (4.18 and 5.5 on); a latency is that of the requests
which finished in the interval, so it is absent where none did.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from daq_bench.candidate_kit.lsblk import serial_of
from daq_bench.candidate_kit.nvme_paths import drive_of_path, head_tells
from daq_bench.telemetry_agent.base.point import INT64_MAX, FieldValue, Point
from daq_bench.telemetry_agent.reading.attributes import excerpt, table_lines, whole_numbers
from daq_bench.telemetry_agent.reading.collector import (
    FAST,
    Every,
    HeldFile,
    Reading,
    Unsupported,
    rate_interval_s,
    reading_now,
)

WHERE = "/proc/diskstats"
SECTOR_BYTES = 512
LOOK_EVERY_S = 1.0  # for a disk that came, or took the name of another one
DISKS_CACHED_MAX = 1024
DISK_KEY = "disk:"  # texts["disk:nvme0n1"] holds the serial of a whole disk, "" when it has none
_NOT_DISKS = ("sr", "fd", "loop", "ram", "zram", "dm-")


class DiskCounters(NamedTuple):
    """One diskstats line, in the units of the metrics; what an older kernel does not count is None."""

    read_ios: int
    read_bytes: int
    write_ios: int
    written_bytes: int
    in_flight: int
    io_time_ms: int
    read_time_ms: int
    write_time_ms: int
    queue_time_ms: int
    discard_ios: int | None = None
    discarded_bytes: int | None = None
    discard_time_ms: int | None = None
    flush_ios: int | None = None
    flush_time_ms: int | None = None


# These serve to derive, and are not reported themselves.
_DERIVED_FROM = ("read_time_ms", "write_time_ms", "queue_time_ms", "discard_time_ms", "flush_time_ms")
_REPORTED = tuple((place, name) for place, name in enumerate(DiskCounters._fields) if name not in _DERIVED_FROM)
_LATENCIES = (
    ("read_latency_s", "read_ios", "read_time_ms"),
    ("write_latency_s", "write_ios", "write_time_ms"),
    ("discard_latency_s", "discard_ios", "discard_time_ms"),
    ("flush_latency_s", "flush_ios", "flush_time_ms"),
)


@lru_cache(maxsize=2)  # this reading's text is the next one's `previous`
def disk_lines(text: str) -> dict[str, str]:
    """Lines by device name; one with fewer than the 14 classic columns raises ValueError."""
    table = {}
    for line in table_lines(text, WHERE):
        columns = line.split()
        if len(columns) < 14:
            raise ValueError(f"{WHERE}: {len(columns)} columns in {excerpt(line)}, at least 14 are expected")
        table[columns[2]] = line
    return table


@lru_cache(maxsize=DISKS_CACHED_MAX)  # a reading's line is looked at again as the next one's `previous`
def disk_counters(line: str) -> DiskCounters:
    """One line's counters. Raises ValueError where a column is no count."""
    columns = line.split()
    n = whole_numbers(columns[3:20], f"{WHERE}: {columns[2]}")
    discards = (n[11], n[13] * SECTOR_BYTES, n[14]) if len(n) >= 15 else (None, None, None)
    flushes = (n[15], n[16]) if len(n) >= 17 else (None, None)
    read_bytes, written_bytes = n[2] * SECTOR_BYTES, n[6] * SECTOR_BYTES
    if max(read_bytes, written_bytes, discards[1] or 0) > INT64_MAX:
        raise ValueError(f"{WHERE}: more bytes than a point can hold in {excerpt(line)}")
    return DiskCounters(n[0], read_bytes, n[4], written_bytes, n[8], n[9], n[3], n[7], n[10], *discards, *flushes)


def drive_counters(name: str, lines: Mapping[str, str]) -> DiskCounters:
    """A drive's counters, or the sums of its paths' where only these tell what a multipath NVMe drive carried (`head_tells`)."""
    head = disk_counters(lines[name])
    if not name.startswith("nvme"):
        return head
    paths = [disk_counters(line) for path, line in lines.items() if drive_of_path(path) == name]
    if not paths:
        return head
    total = summed(paths)
    return head if head_tells(_told(head), _told(total)) else total


def _told(counters: DiskCounters) -> int:
    return counters.read_bytes + counters.written_bytes + (counters.discarded_bytes or 0)


def summed(paths: Sequence[DiskCounters]) -> DiskCounters:
    """Sums over the paths of one drive; what one of them does not count is not known of the drive."""
    columns: list[Any] = [None if None in column else sum(column) for column in zip(*paths)]
    return DiskCounters(*columns)


def is_whole_disk(sys_block: Path, name: str) -> bool:
    """A disk has hardware behind it (`device`); an md array has none but is what the bench writes to.

    A path of a multipath NVMe drive (nvme1c1n1) is no device of its own: nvme1n1 stands for all of them."""
    if name.startswith(_NOT_DISKS) or drive_of_path(name):
        return False
    return name.startswith("md") or (sys_block / name / "device").exists()


class BlockDevice:
    """Collector of the measurement `block_device`."""

    name = "block_device"
    pace = FAST

    def __init__(self, period_s: float, root: Path = Path("/")) -> None:
        self.period_s = period_s
        self._diskstats = HeldFile(root / "proc/diskstats")
        self._sys_block = root / "sys/block"
        self._look = Every(max(LOOK_EVERY_S, period_s))
        self._devices = -1
        self._serials: dict[str, str | None] = {}  # None: looked at, not a whole disk

    def read(self) -> Reading:
        """Read diskstats; sysfs when their number has changed, else once a second, and what it says only of new ones."""
        texts = {"diskstats": self._diskstats.text()}
        devices = texts["diskstats"].count("\n")
        if devices != self._devices or self._look.due(time.monotonic()):
            self._devices = devices
            self._look_for_disks()
        for name, serial in self._serials.items():
            if serial is not None:
                texts[DISK_KEY + name] = serial
        if len(texts) == 1:
            raise Unsupported(f"{self._sys_block}: no whole disk and no md array")
        return reading_now(texts)

    def _look_for_disks(self) -> None:
        present = os.listdir(self._sys_block)
        for name in set(self._serials).difference(present):
            del self._serials[name]  # the name may come back as another drive
        for name in present:
            if name not in self._serials:
                whole = is_whole_disk(self._sys_block, name)
                self._serials[name] = serial_of(self._sys_block / name) if whole else None

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per disk."""
        now = disk_lines(reading.texts["diskstats"])
        before = disk_lines(previous.texts["diskstats"]) if previous else {}
        interval_s = rate_interval_s(reading, previous, self.period_s)
        points = []
        for key in sorted(reading.texts):
            name = key[len(DISK_KEY) :]
            if not key.startswith(DISK_KEY) or name not in now:
                continue
            serial = reading.texts[key]
            tags = (("device", name), ("serial", serial)) if serial else (("device", name),)
            counters = drive_counters(name, now)
            fields: dict[str, FieldValue] = {
                field: value for place, field in _REPORTED if (value := counters[place]) is not None
            }
            if name in before and interval_s is not None:
                fields.update(_derived(counters, drive_counters(name, before), interval_s))
                if "busy_fraction" in fields and counters != disk_counters(now[name]):
                    fields["busy_fraction"] = min(1.0, float(fields["busy_fraction"]))  # paths work at the same time
            points.append(Point("block_device", tags, fields, reading.time_ns))
        return points


def _derived(now: DiskCounters, before: DiskCounters, interval_s: float) -> dict[str, FieldValue]:
    """Rates, latencies and the queue; none where a counter fell: it is another drive, or one that was reset."""
    read_ios, read_bytes, write_ios, written_bytes = before[:4]
    if now[0] < read_ios or now[1] < read_bytes or now[2] < write_ios or now[3] < written_bytes:
        return {}
    fields: dict[str, FieldValue] = {
        "read_bytes_per_s": (now.read_bytes - before.read_bytes) / interval_s,
        "written_bytes_per_s": (now.written_bytes - before.written_bytes) / interval_s,
        "busy_fraction": _milliseconds(now.io_time_ms, before.io_time_ms) / 1000.0 / interval_s,
    }
    # An array of an older kernel counts requests and never their time: no latency, which is not a latency of zero.
    if now.queue_time_ms or not now.read_ios + now.write_ios:
        fields["queue_depth"] = _milliseconds(now.queue_time_ms, before.queue_time_ms) / 1000.0 / interval_s
    for field, ios, time_ms in _LATENCIES:
        done, earlier = getattr(now, ios), getattr(before, ios)
        if done is not None and earlier is not None and done > earlier and getattr(now, time_ms):
            spent_ms = _milliseconds(getattr(now, time_ms), getattr(before, time_ms))
            fields[field] = spent_ms / 1000.0 / (done - earlier)
    return fields


def _milliseconds(now: int, before: int) -> int:
    """Growth of one of diskstats' times, which have 32 bits: with 100 requests queued they are full after 12 hours."""
    return (now - before) % 2**32
