"""Thermal throttling of the processors: how often and for how long, per package, every few seconds.

Promise: Intel's own counters since boot. A core's are summed over the package's CPUs, so that the number of series
is that of the sockets; the package's own event is told to all of its CPUs, so of those the largest count stands.
AMD's kernel driver has no such counter: there the frequency tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Callable

from daq_bench.telemetry_agent.base.point import FieldValue, Point
from daq_bench.telemetry_agent.reading.attributes import read_present, reading_of, whole_number
from daq_bench.telemetry_agent.reading.collector import Reading, Unsupported, read_optional

PERIOD_S_MIN = 5.0
# File -> field and what makes one figure of those of a package's CPUs. The times are there from Linux 5.6 on.
COUNTERS: dict[str, tuple[str, Callable[[Iterable[int]], int]]] = {
    "core_throttle_count": ("core_throttle_count", sum),
    "core_throttle_total_time_ms": ("core_throttled_time_ms", sum),
    "package_throttle_count": ("package_throttle_count", max),
    "package_throttle_total_time_ms": ("package_throttled_time_ms", max),
}
CORE_COUNT = "core_throttle_count"


def packages(cpus: Path) -> dict[str, str]:
    """Package by CPU number, of all CPUs that are online and say where they sit."""
    found = {}
    for path in cpus.glob("cpu[0-9]*/topology/physical_package_id"):
        package = read_optional(path)
        if package is not None:
            found[path.parent.parent.name[3:]] = package
    return found


class CpuThrottle:
    """Collector of the measurement `cpu_throttle`."""

    name = "cpu_throttle"
    pace = "slow"

    def __init__(self, period_s: float, root: Path = Path("/")) -> None:
        self.period_s = max(PERIOD_S_MIN, period_s)
        self._cpus = root / "sys/devices/system/cpu"
        self._files: dict[str, Path] = {}

    def read(self) -> Reading:
        """Texts hold one counter each, by "package cpu file"."""
        if not self._files:
            self._files = {
                f"{package} {cpu} {name}": self._cpus / f"cpu{cpu}/thermal_throttle/{name}"
                for cpu, package in packages(self._cpus).items()
                if (self._cpus / f"cpu{cpu}/thermal_throttle").is_dir()
                for name in COUNTERS
            }
        nothing = f"no {self._cpus}/cpu*/thermal_throttle (only Intel's processors count it, and no virtual one)"
        if not self._files:
            raise Unsupported(nothing)
        texts, faults = read_present(self._files)
        return reading_of(texts, faults, nothing)

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per package."""
        found: dict[str, dict[str, list[int]]] = {}
        throttled: dict[str, int] = {}
        for key, text in reading.texts.items():
            package, cpu, name = key.split(" ")
            number = whole_number(text, f"cpu{cpu}/thermal_throttle/{name}")
            found.setdefault(package, {}).setdefault(name, []).append(number)
            if name == CORE_COUNT and previous and key in previous.texts:
                grew = number > whole_number(previous.texts[key], key)
                throttled[package] = throttled.get(package, 0) + grew
        points = []
        for package, counters in sorted(found.items()):
            fields: dict[str, FieldValue] = {}
            for name, numbers in counters.items():
                field, combine = COUNTERS[name]
                fields[field] = combine(numbers)
            if package in throttled:
                fields["throttled_cores"] = throttled[package]
            points.append(Point("cpu_throttle", (("package", package),), fields, reading.time_ns))
        return points
