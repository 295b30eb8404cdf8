"""The links of the network interfaces: carrier, speed, and every 10 s what the card itself counts (`ethtool -S`).

Promise: speed and carrier as the kernel has them. Each card names its statistics differently: of those names that are
known to mean pauses and receive losses the first that a card has is reported under the name common to all, and nothing
else of its hundreds. Without ethtool the links are reported alone, which is said once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

from daq_bench.candidate_kit.nic_statistics import names_of
from daq_bench.telemetry_agent.base.point import FieldValue, Point
from daq_bench.telemetry_agent.collectors.network import interfaces
from daq_bench.telemetry_agent.reading.attributes import excerpt, read_present, reading_of, whole_number
from daq_bench.telemetry_agent.reading.collector import SLOW_PERIOD_S, Every, Reading

PERIOD_S_MIN = 2.0
ETHTOOL_TIMEOUT_S = 5.0
FILES = ("carrier", "carrier_changes", "speed")
STATISTICS = "ethtool"
# What drivers state for want of a speed, as ethtool has it (netlink/settings.c; safchain/ethtool#21): 0, and -1 in 16 or 32 bits.
SPEED_UNKNOWN = ("-1", "0", "65535", "4294967295")
BYTES_PER_S_OF_MBIT = 125_000


def parse_statistics(text: str, interface: str) -> dict[str, FieldValue]:
    """The known statistics of `ethtool -S`; a priority's pauses are summed. Raises ValueError on other output."""
    where = f"ethtool -S {interface}"
    lines = text.splitlines()
    if not lines or not lines[0].startswith("NIC statistics"):
        raise ValueError(f"{where}: not understood: {excerpt(text)}")
    counters = {}
    for line in lines[1:]:
        name, colon, value = line.rpartition(":")
        if not colon:
            raise ValueError(f"{where}: not understood: {excerpt(line)}")
        counters[name.strip()] = value
    return {
        field: sum(whole_number(counters[name], f"{where}: {name}") for name in names)
        for field, names in names_of(counters).items()
    }


class NetworkLink:
    """Collector of the measurement `network_link`."""

    name = "network_link"
    pace = "slow"

    def __init__(self, period_s: float, root: Path = Path("/"), timeout_s: float = ETHTOOL_TIMEOUT_S) -> None:
        self.period_s = max(PERIOD_S_MIN, period_s)
        self._root = root
        self._timeout_s = timeout_s
        self._statistics = Every(max(SLOW_PERIOD_S, period_s))
        self._without: set[str] = set()  # interfaces that have told that they have no statistics; "" is for no ethtool

    def read(self) -> Reading:
        """Texts hold one attribute each, by "interface|attribute"."""
        found = interfaces(self._root)
        texts, faults = read_present({f"{name}|{file}": at / file for name, at in found.items() for file in FILES})
        # An interface that is down has no carrier and no speed, and says EINVAL.
        faults = [fault for fault in faults if not fault.endswith(os.strerror(22))]
        if self._statistics.due(time.monotonic()):
            for name, at in found.items():
                if name not in self._without and (at / "device").exists():
                    self._ask(name, texts, faults)
        return reading_of(
            texts, faults, f"{self._root / 'sys/class/net'}: no interface with a device, and no bond, bridge or VLAN"
        )

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per interface."""
        found: dict[str, dict[str, FieldValue]] = {}
        for key, text in reading.texts.items():
            interface, _, name = key.rpartition("|")
            fields = found.setdefault(interface, {})
            value = text.strip()
            if name == STATISTICS:
                fields.update(parse_statistics(text, interface))
            elif name == "carrier":
                fields["carrier"] = whole_number(value, f"{interface}/carrier") != 0
            elif name == "carrier_changes":
                fields[name] = whole_number(value, f"{interface}/{name}")
            elif value not in SPEED_UNKNOWN:
                fields["speed_bytes_per_s"] = whole_number(value, f"{interface}/speed") * BYTES_PER_S_OF_MBIT
        return [
            Point("network_link", (("interface", interface),), fields, reading.time_ns)
            for interface, fields in found.items()
            if fields
        ]

    def _ask(self, interface: str, texts: dict[str, str], faults: list[str]) -> None:
        """Add the card's statistics, or the fault; a card without any, or a machine without ethtool, is told of once."""
        program = shutil.which("ethtool", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        if program is None:
            if "" not in self._without:
                faults.append("ethtool is not installed (package ethtool): no pause frames and no losses of the cards")
            self._without.add("")
            return
        try:
            done = subprocess.run(
                [program, "-S", interface],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=self._timeout_s,
                env={**os.environ, "LC_ALL": "C"},
                check=False,
            )
        except subprocess.TimeoutExpired:
            faults.append(f"ethtool -S {interface}: no answer within {self._timeout_s:g} s")
            return
        if done.returncode == 0:
            texts[f"{interface}|{STATISTICS}"] = done.stdout
            return
        faults.append(f"ethtool -S {interface}: {done.stderr.strip() or f'exit status {done.returncode}'}")
        if "no stats available" in done.stderr or "Operation not supported" in done.stderr:
            self._without.add(interface)
