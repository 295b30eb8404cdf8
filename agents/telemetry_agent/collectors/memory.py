"""Memory from /proc/meminfo: what is available, and what waits to be written back.

Promise: bytes (meminfo's "kB" are KiB). A missing line is an error naming it, never a zero.
"""

from __future__ import annotations

from pathlib import Path

from telemetry_agent.collector import HeldFile, Reading, reading_now
from telemetry_agent.point import FieldValue, Point

FIELDS = {
    "MemTotal": "total_bytes",
    "MemFree": "free_bytes",
    "MemAvailable": "available_bytes",
    "Cached": "cached_bytes",
    "Dirty": "dirty_bytes",
    "Writeback": "writeback_bytes",
}


def parse_meminfo(text: str) -> dict[str, FieldValue]:
    """The fields above."""
    fields: dict[str, FieldValue] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name in FIELDS:
            fields[FIELDS[name]] = int(rest.split()[0]) * 1024
    missing = [name for name, field in FIELDS.items() if field not in fields]
    if missing:
        raise ValueError(f"/proc/meminfo: no line {', '.join(missing)}")
    return fields


class Memory:
    """Collector of the measurement `memory`."""

    name = "memory"

    def __init__(self, period_s: float, root: Path = Path("/")) -> None:
        self.period_s = period_s
        self._meminfo = HeldFile(root / "proc/meminfo", at_once=True)

    def read(self) -> Reading:
        """Read /proc/meminfo."""
        return reading_now({"meminfo": self._meminfo.text()})

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point."""
        return [Point("memory", (), parse_meminfo(reading.texts["meminfo"]), reading.time_ns)]
