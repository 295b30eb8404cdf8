"""Pressure stall information from /proc/pressure: how long tasks stood waiting for CPU, I/O or memory, or lost
time to interrupts.

Promise: the kernel's cumulative stall time (microseconds) and the share of the last interval spent stalled, 0
to 1, of "some" and of "full" tasks as the kernel has them (cpu "full" from 5.13 on; irq, which has only "full", from
6.1 on where it accounts the time of interrupts). Kernels without PSI, or booted with psi=0, make the collector
unsupported.
"""

from __future__ import annotations

import errno
import re
from pathlib import Path

from daq_bench.telemetry_agent.base.point import FieldValue, Point
from daq_bench.telemetry_agent.reading.attributes import excerpt, table_lines, whole_number
from daq_bench.telemetry_agent.reading.collector import (
    PROMPT,
    SLOW_PERIOD_S_MIN,
    HeldFile,
    Reading,
    Unsupported,
    per_second,
    rate_interval_s,
    reading_now,
)

RESOURCES = ("cpu", "io", "memory")
OPTIONAL = "irq"
KINDS = ("some", "full")
AVERAGE = re.compile(r"[0-9]{1,3}\.[0-9]+")


def parse_pressure(text: str, resource: str) -> dict[str, tuple[float, int]]:
    """{"some": (average over 10 s in percent, total in us), "full": ...}. Raises ValueError."""
    where, table = f"/proc/pressure/{resource}", {}
    for line in table_lines(text, where):
        kind, _, rest = line.partition(" ")
        values = dict(pair.split("=", 1) for pair in rest.split() if "=" in pair)
        if kind not in KINDS or not AVERAGE.fullmatch(values.get("avg10", "")) or "total" not in values:
            raise ValueError(f"{where}: {excerpt(line)} lacks avg10 or total")
        table[kind] = (float(values["avg10"]), whole_number(values["total"], where))
    return table


class Pressure:
    """Collector of the measurement `pressure`."""

    name = "pressure"
    pace = PROMPT

    def __init__(self, period_s: float, root: Path = Path("/")) -> None:
        # Four files and six points: ten times a second they would cost as much as all that is fast.
        self.period_s = max(SLOW_PERIOD_S_MIN, period_s)
        self._directory = root / "proc/pressure"
        names = (*RESOURCES, OPTIONAL) if (self._directory / OPTIONAL).exists() else RESOURCES
        self._files = {resource: HeldFile(self._directory / resource, at_once=True) for resource in names}

    def read(self) -> Reading:
        """Read a file per resource."""
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
            before = parse_pressure(previous.texts[resource], resource) if previous else {}
            for kind, (average, total_us) in parse_pressure(text, resource).items():
                fields: dict[str, FieldValue] = {"stalled_us": total_us, "avg10_percent": average}
                earlier_us = before[kind][1] if kind in before else None
                rate = per_second(total_us, earlier_us, interval_s)
                if rate is not None:
                    fields["stalled_fraction"] = rate / 1e6
                tags = (("kind", kind), ("resource", resource))
                points.append(Point("pressure", tags, fields, reading.time_ns))
        return points
