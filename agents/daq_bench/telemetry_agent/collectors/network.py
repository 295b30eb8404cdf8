"""Traffic of the network interfaces from /proc/net/dev: bytes, packets, errors and drops.

Promise: the kernel's counters and rates derived with the monotonic clock, of every interface with a device behind it
and of bonds, bridges and VLANs. Left out are lo and other virtual ones, above all the pairs (veth) that containers come
and go with: their traffic passes a device or a bridge as well, or never leaves the machine.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from daq_bench.telemetry_agent.base.point import FieldValue, Point
from daq_bench.telemetry_agent.reading.attributes import excerpt, readable_name, table_lines, whole_numbers
from daq_bench.telemetry_agent.reading.collector import (
    FAST,
    HeldFile,
    Reading,
    Unsupported,
    per_second,
    rate_interval_s,
    read_optional,
    reading_now,
)

WHERE = "/proc/net/dev"
HEADER_LINES = 2
HEADER = "|bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop"
COLUMNS = 16
KINDS = ("bond", "bridge", "vlan")  # DEVTYPE in an interface's uevent
INTERFACES = "interfaces"


class Traffic(NamedTuple):
    """Counters of one interface since it came up."""

    received_bytes: int
    received_packets: int
    receive_errors: int
    receive_drops: int
    transmitted_bytes: int
    transmitted_packets: int
    transmit_errors: int
    transmit_drops: int


RATES = {
    "received_bytes": "received_bytes_per_s",
    "transmitted_bytes": "transmitted_bytes_per_s",
    "received_packets": "received_packets_per_s",
    "transmitted_packets": "transmitted_packets_per_s",
}


@lru_cache(maxsize=2)
def interface_lines(text: str) -> dict[str, list[str]]:
    """The columns by interface. Raises ValueError on anything else than the kernel's table."""
    lines = table_lines(text, WHERE)
    if len(lines) < HEADER_LINES or HEADER not in lines[1]:
        raise ValueError(f"{WHERE}: no table in {excerpt(text)}")
    table = {}
    for line in lines[HEADER_LINES:]:
        name, colon, rest = line.rpartition(":")
        columns = rest.split()
        if not colon or len(columns) < COLUMNS:
            raise ValueError(f"{WHERE}: {len(columns)} columns in {excerpt(line)}, {COLUMNS} are expected")
        table[name.strip()] = columns
    return table


def traffic_of(columns: list[str], name: str) -> Traffic:
    """One interface's counters."""
    numbers = whole_numbers(columns[:12], f"{WHERE}: {name}")
    return Traffic(*numbers[:4], *numbers[8:12])


def interfaces(root: Path) -> dict[str, Path]:
    """The interfaces that are worth watching, by name, with their folder in sysfs."""
    folder = root / "sys/class/net"
    found = {}
    for name in sorted(os.listdir(folder)) if folder.is_dir() else ():
        at = folder / name
        kind = [line for line in (read_optional(at / "uevent") or "").splitlines() if line.startswith("DEVTYPE=")]
        if name != "lo" and ((at / "device").exists() or (kind and kind[0][len("DEVTYPE=") :] in KINDS)):
            found[readable_name(name)] = at
    return found


class Network:
    """Collector of the measurement `network`."""

    name = "network"
    pace = FAST

    def __init__(self, period_s: float, root: Path = Path("/")) -> None:
        self.period_s = period_s
        self._root = root
        self._dev = HeldFile(root / "proc/net/dev")
        self._names: tuple[str, ...] = ()
        self._watched = ""

    def read(self) -> Reading:
        """Read the counters; sysfs only when there are other interfaces than before."""
        try:
            text = self._dev.text()
        except FileNotFoundError:
            raise Unsupported(f"no {self._dev.path}: a kernel without a network") from None
        names = tuple(interface_lines(text))
        if names != self._names:
            self._watched = "\n".join(interfaces(self._root))
            self._names = names
        if not self._watched:
            raise Unsupported(
                f"{self._root / 'sys/class/net'}: no interface with a device, and no bond, bridge or VLAN"
            )
        return reading_now({"dev": text, INTERFACES: self._watched})

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per interface."""
        now = interface_lines(reading.texts["dev"])
        before = interface_lines(previous.texts["dev"]) if previous else {}
        interval_s = rate_interval_s(reading, previous, self.period_s)
        points = []
        for name in reading.texts[INTERFACES].split("\n"):
            if name not in now:
                continue
            traffic = traffic_of(now[name], name)
            fields: dict[str, FieldValue] = dict(traffic._asdict())
            earlier = traffic_of(before[name], name) if name in before else None
            for counter, field in RATES.items():
                rate = per_second(getattr(traffic, counter), getattr(earlier, counter, None), interval_s)
                if rate is not None:
                    fields[field] = rate
            points.append(Point("network", (("interface", name),), fields, reading.time_ns))
        return points
