"""Memory from /proc/meminfo: what is available, and what waits to be written back.

Promise: bytes (meminfo's "kB" are KiB). A missing line is an error naming it, never a zero; those about huge pages are
reported where the kernel was built with them.
"""

from __future__ import annotations

from pathlib import Path

from daq_bench.telemetry_agent.base.point import FieldValue, Point
from daq_bench.telemetry_agent.reading.attributes import excerpt, table_lines, whole_number
from daq_bench.telemetry_agent.reading.collector import PROMPT, HeldFile, Reading, reading_now

FIELDS = {
    "MemTotal": "total_bytes",
    "MemFree": "free_bytes",
    "MemAvailable": "available_bytes",
    "Cached": "cached_bytes",
    "Dirty": "dirty_bytes",
    "Writeback": "writeback_bytes",
}


HUGE_PAGES = {
    "AnonHugePages": "anonymous_huge_bytes",
    "HugePages_Total": "huge_pages",
    "HugePages_Free": "huge_pages_free",
    "HugePages_Rsvd": "huge_pages_reserved",
    "Hugepagesize": "huge_page_bytes",
}
PERIOD_S_MIN = 1.0


def parse_meminfo(text: str) -> dict[str, FieldValue]:
    """The fields above. Raises ValueError on a line that is missing or not understood."""
    fields: dict[str, FieldValue] = {}
    wanted = {**FIELDS, **HUGE_PAGES}
    for line in table_lines(text, "/proc/meminfo"):
        name, _, rest = line.partition(":")
        if name in wanted:
            value, _, unit = rest.strip().partition(" ")
            if unit not in ("", "kB"):
                raise ValueError(f"/proc/meminfo: unknown unit in {excerpt(line)}")
            fields[wanted[name]] = whole_number(value, f"/proc/meminfo: {name}") * (1024 if unit else 1)
    missing = [name for name, field in FIELDS.items() if field not in fields]
    if missing:
        raise ValueError(f"/proc/meminfo: no line {', '.join(missing)}")
    return fields


class Memory:
    """Collector of the measurement `memory`."""

    name = "memory"
    pace = PROMPT

    def __init__(self, period_s: float, root: Path = Path("/")) -> None:
        self.period_s = max(PERIOD_S_MIN, period_s)
        self._meminfo = HeldFile(root / "proc/meminfo")

    def read(self) -> Reading:
        """Read /proc/meminfo."""
        return reading_now({"meminfo": self._meminfo.text()})

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point."""
        return [Point("memory", (), parse_meminfo(reading.texts["meminfo"]), reading.time_ns)]
