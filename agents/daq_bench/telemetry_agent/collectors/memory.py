"""Memory from /proc/meminfo: what is available, and what waits to be written back.

Promise: bytes (meminfo's "kB" are KiB). A missing line is an error naming it, never a zero; those about huge pages are
reported where the kernel was built with them.
"""

from __future__ import annotations

from collections.abc import Mapping
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


def parse_meminfo(
    text: str, where: str = "/proc/meminfo", needed: Mapping[str, str] = FIELDS, more: Mapping[str, str] = HUGE_PAGES
) -> dict[str, FieldValue]:
    """The fields `needed`, and of `more` those that are there, also of a node's lines ("Node 0 MemFree:  15303800 kB").

    Raises ValueError on a line that is missing or not understood."""
    fields: dict[str, FieldValue] = {}
    wanted = {**needed, **more}
    for line in table_lines(text, where):
        words, _, rest = line.partition(":")
        name = words.rpartition(" ")[2]
        if name in wanted:
            value, _, unit = rest.strip().partition(" ")
            if unit not in ("", "kB"):
                raise ValueError(f"{where}: unknown unit in {excerpt(line)}")
            fields[wanted[name]] = whole_number(value, f"{where}: {name}") * (1024 if unit else 1)
    require_lines(fields, needed, where, text)
    return fields


def require_lines(fields: Mapping[str, FieldValue], needed: Mapping[str, str], where: str, text: str) -> None:
    """Raises ValueError that names the lines for which there are no fields."""
    missing = [name for name, field in needed.items() if field not in fields]
    if missing:
        raise ValueError(f"{where}: no line {', '.join(missing)} in {excerpt(text)}")


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
