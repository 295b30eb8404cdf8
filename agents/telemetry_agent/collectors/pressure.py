"""Pressure stall information from /proc/pressure: how long tasks stood waiting for CPU, I/O or memory.

Promise: the kernel's cumulative stall time (microseconds) and the share of the last interval spent stalled, 0
to 1. Kernels without PSI, or booted with psi=0, make the collector unsupported.
"""

from __future__ import annotations

import errno
from pathlib import Path

from telemetry_agent.collector import FAST, HeldFile, Reading, Unsupported, per_second, rate_interval_s, reading_now
from telemetry_agent.point import FieldValue, Point

RESOURCES = ("cpu", "io", "memory")


def parse_pressure(text: str) -> dict[str, dict[str, str]]:
    """{"some": {"avg10": "0.00", ..., "total": "123"}, "full": {...}}; old kernels have no "full" for cpu."""
    table = {}
    for line in text.splitlines():
        kind, *pairs = line.split()
        values = dict(pair.split("=", 1) for pair in pairs)
        if "total" not in values or "avg10" not in values:
            raise ValueError(f"/proc/pressure: {line!r} lacks avg10 or total")
        table[kind] = values
    return table


class Pressure:
    """Collector of the measurement `pressure`."""

    name = "pressure"
    pace = FAST

    def __init__(self, period_s: float, root: Path = Path("/")) -> None:
        self.period_s = period_s
        self._directory = root / "proc/pressure"
        self._files = {resource: HeldFile(self._directory / resource, at_once=True) for resource in RESOURCES}

    def read(self) -> Reading:
        """Read the three files."""
        try:
            return reading_now({resource: file.text() for resource, file in self._files.items()})
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EOPNOTSUPP):
                raise Unsupported(f"{self._directory}: {error.strerror} (kernel without PSI, or psi=0)") from None
            raise

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per resource and kind."""
        interval_s = rate_interval_s(reading, previous, self.period_s)
        points = []
        for resource, text in reading.texts.items():
            before = parse_pressure(previous.texts[resource]) if previous else {}
            for kind, values in parse_pressure(text).items():
                total_us = int(values["total"])
                fields: dict[str, FieldValue] = {
                    "stalled_us": total_us,
                    "avg10_percent": float(values["avg10"]),
                }
                earlier_us = int(before[kind]["total"]) if kind in before else None
                rate = per_second(total_us, earlier_us, interval_s)
                if rate is not None:
                    fields["stalled_fraction"] = rate / 1e6
                tags = (("kind", kind), ("resource", resource))
                points.append(Point("pressure", tags, fields, reading.time_ns))
        return points
