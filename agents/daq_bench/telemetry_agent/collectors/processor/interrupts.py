"""The CPUs that take the interrupts of each drive, storage adapter and network card: /proc/interrupts, every second.

Promise: sums all vectors of a device: the interrupts per second, the number of CPUs that take them, and the share on
CPUs of another NUMA node than the device's (`remote_fraction`; absent where the device has no node). One point per
device names its busiest CPU and the rates of its `CORES_REPORTED` busiest in fields: 28 devices give 28 points in a
second and 28 series, however many CPUs and vectors there are. The tag `core` says "total" in each, as it did when
points of single CPUs stood beside it: queries and bundles of before have both.

Once a second and not faster: on 256 CPUs the table has a line of 3 kB per vector. Only lines that changed are taken
apart, since most vectors of a large machine are silent.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from functools import lru_cache
from itertools import compress
from operator import ne
from pathlib import Path
from typing import NamedTuple

from daq_bench.telemetry_agent.base.point import FieldValue, Point
from daq_bench.telemetry_agent.reading.attributes import excerpt, table_lines, whole_numbers
from daq_bench.telemetry_agent.reading.collector import (
    SLOW_PERIOD_S,
    Every,
    HeldFile,
    Reading,
    Unsupported,
    rate_interval_s,
    read_optional,
    reading_now,
)
from daq_bench.telemetry_agent.reading.pci import functions_by_name

WHERE = "/proc/interrupts"
PERIOD_S_MIN = 1.0
CORES_REPORTED = 8
DEVICE_KEY = "device:"


class Table(NamedTuple):
    """/proc/interrupts, its lines not yet taken apart: the CPUs of the columns, and the rest of the line by vector."""

    cpus: tuple[str, ...]
    lines: dict[str, str]


@lru_cache(maxsize=2)
def parse_table(text: str) -> Table:
    """The table. Raises ValueError on anything else."""
    header, *lines = table_lines(text, WHERE)
    cpus = header.split()
    if not cpus or not all(cpu.startswith("CPU") and cpu[3:].isdigit() for cpu in cpus):
        raise ValueError(f"{WHERE}: no heading of CPUs in {excerpt(header)}")
    found = {}
    for line in lines:
        vector, colon, rest = line.partition(":")
        if not colon:
            raise ValueError(f"{WHERE}: no vector in {excerpt(line)}")
        found[vector.strip()] = rest
    return Table(tuple([cpu[3:] for cpu in cpus]), found)


@lru_cache(maxsize=1024)  # a later line of now is an earlier one of the next reading; at most 15 MB with 256 CPUs
def counts(line: str, cpus: int) -> list[str]:
    """The columns of one vector's line, one per CPU."""
    columns = line.split(None, cpus)[:cpus]
    if len(columns) < cpus:
        raise ValueError(f"{WHERE}: {len(columns)} of {cpus} counts in {excerpt(line)}")
    return columns


def grown(now: Table, before: Table, vector: str) -> dict[str, int] | None:
    """Interrupts since the reading before by CPU; None for a vector that came or went, or whose counts began again."""
    line, line_before = now.lines.get(vector), before.lines.get(vector)
    if line == line_before:  # also of a vector without a handler, which has no line
        return {}
    if line is None or line_before is None:
        return None
    later, former = counts(line, len(now.cpus)), counts(line_before, len(before.cpus))
    cpus = now.cpus
    if now.cpus != before.cpus:  # one went offline or came back
        both = [cpu for cpu in now.cpus if cpu in before.cpus]
        later = [later[now.cpus.index(cpu)] for cpu in both]
        former = [former[before.cpus.index(cpu)] for cpu in both]
        cpus = tuple(both)
    changed = list(compress(range(len(cpus)), map(ne, later, former)))
    if not changed:
        return {}
    where = f"{WHERE}: vector {vector}"
    numbers = whole_numbers([later[at] for at in changed], where)
    earlier = whole_numbers([former[at] for at in changed], where)
    growth = {cpus[at]: number - first for at, number, first in zip(changed, numbers, earlier)}
    return growth if min(growth.values()) > 0 else None


def cpus_of(cpulist: str) -> frozenset[str]:
    """CPU numbers of a list such as "0-15,32-47"."""
    found: set[str] = set()
    for part in cpulist.split(",") if cpulist else ():
        first, _, last = part.partition("-")
        found.update(str(cpu) for cpu in range(int(first), int(last or first) + 1))
    return frozenset(found)


class Interrupts:
    """Collector of the measurement `interrupts`."""

    name = "interrupts"
    pace = "slow"

    def __init__(self, period_s: float, root: Path = Path("/")) -> None:
        self.period_s = max(PERIOD_S_MIN, period_s)
        self._root = root
        self._table = HeldFile(root / "proc/interrupts")
        self._look = Every(max(SLOW_PERIOD_S, period_s))
        self._names: list[str] = []
        self._devices: dict[str, str] = {}

    def read(self) -> Reading:
        """Texts hold the table, and "driver|node|the node's CPUs|vectors" by device, looked up every 10 s."""
        names = [name for folder in ("sys/block", "sys/class/net") for name in _listed(self._root / folder)]
        if self._look.due(time.monotonic()) or names != self._names:
            self._devices = self._find_devices()
            self._names = names
        if not self._devices:
            raise Unsupported(
                f"{self._root / 'sys'}: no drive or network interface with interrupt vectors of its own (msi_irqs)"
            )
        return reading_now({"interrupts": self._table.text(), **self._devices})

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per device."""
        now = parse_table(reading.texts["interrupts"])
        interval_s = rate_interval_s(reading, previous, self.period_s)
        if previous is None or interval_s is None:
            return []
        before = parse_table(previous.texts["interrupts"])
        points = []
        for key, text in reading.texts.items():
            if not key.startswith(DEVICE_KEY):
                continue
            driver, node, cpulist, vectors = text.split("|")
            growth = [grown(now, before, vector) for vector in vectors.split()]
            if None in growth:
                continue  # the driver began anew: a sum of the others would be too small
            total: Counter[str] = Counter()
            for counts_by_cpu in growth:
                total.update(counts_by_cpu)
            tags = (("core", "total"), ("device", key[len(DEVICE_KEY) :]), ("driver", driver))
            fields = _fields(total, cpus_of(cpulist) if node else None, interval_s)
            fields["vectors"] = len(vectors.split())
            points.append(Point("interrupts", tags, fields, reading.time_ns))
        return points

    def _find_devices(self) -> dict[str, str]:
        devices = {}
        for name, function in functions_by_name(self._root).items():
            vectors = sorted(_listed(function / "msi_irqs"), key=int) or [read_optional(function / "irq") or "0"]
            node = read_optional(function / "numa_node") or "-1"
            cpulist = read_optional(self._root / f"sys/devices/system/node/node{node}/cpulist")
            driver = Path(os.path.realpath(function / "driver")).name
            if vectors != ["0"]:
                devices[DEVICE_KEY + name] = f"{driver}|{node if cpulist else ''}|{cpulist or ''}|{' '.join(vectors)}"
        return devices


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # there is none, or the device was unplugged
        return []


def _fields(total: Counter[str], local: frozenset[str] | None, interval_s: float) -> dict[str, FieldValue]:
    """Fields of a device. They name its CPUs only where there was an interrupt."""
    whole = sum(total.values())
    fields: dict[str, FieldValue] = {"interrupts_per_s": whole / interval_s, "cores": len(total)}
    if not whole:
        return fields
    ordered = sorted(total.items(), key=lambda one: (-one[1], int(one[0])))[:CORES_REPORTED]
    busiest, count = ordered[0]
    fields["busiest_core"] = int(busiest)
    fields["busiest_core_interrupts_per_s"] = count / interval_s
    fields["busiest_cores"] = " ".join(f"{cpu}={count / interval_s:.6g}" for cpu, count in ordered)
    if local is not None:
        fields["busiest_core_remote"] = busiest not in local
        fields["remote_fraction"] = sum(count for cpu, count in total.items() if cpu not in local) / whole
    return fields
