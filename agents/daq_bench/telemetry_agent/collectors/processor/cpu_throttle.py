"""Thermal throttling of the processors: how often and for how long, per package, every few seconds.

Promise: Intel's own counters since boot. A core's are summed over the package's cores, so that the number of series
is that of the sockets; each thread of a core tells the core's count (they may differ by what came between two readings), and each
CPU of a package tells the package's, so of those the largest stands.
AMD's kernel driver has no such counter: there the frequency tells.
"""

from __future__ import annotations

from pathlib import Path

from daq_bench.telemetry_agent.base.point import FieldValue, Point
from daq_bench.telemetry_agent.reading.attributes import read_present, reading_of, whole_number
from daq_bench.telemetry_agent.reading.collector import OfRoot, Reading, Unsupported, read_optional

CPUS = "sys/devices/system/cpu"
# File -> field, and whether it is the core's (else the package's). The times are there from Linux 5.6 on.
COUNTERS = {
    "core_throttle_count": ("core_throttle_count", True),
    "core_throttle_total_time_ms": ("core_throttled_time_ms", True),
    "package_throttle_count": ("package_throttle_count", False),
    "package_throttle_total_time_ms": ("package_throttled_time_ms", False),
}
CORE_COUNT = "core_throttle_count"
PLACE = ("physical_package_id", "die_id", "core_id")  # a core's number is its own within a die of a package


def places(cpus: Path) -> dict[str, tuple[str, str]]:
    """(package, core) by CPU number, of all CPUs that are online and say where they sit. One that does not tell its core is a core."""
    found = {}
    for path in cpus.glob("cpu[0-9]*/topology"):
        package, die, core = (read_optional(path / name) for name in PLACE)
        if package is not None:
            number = path.parent.name[3:]
            found[number] = (package, f"{die or 0}.{core}" if core is not None else f"cpu{number}")
    return found


def packages(cpus: Path) -> dict[str, str]:
    """Package by CPU number."""
    return {cpu: package for cpu, (package, _) in places(cpus).items()}


class CpuThrottle(OfRoot):
    """Collector of the measurement `cpu_throttle`."""

    name = "cpu_throttle"
    period_s_min = 5.0

    def read(self) -> Reading:
        """Texts hold one counter each, by "package core cpu file"."""
        if not self._files:
            self._files = {
                f"{package} {core} {cpu} {name}": self._root / CPUS / f"cpu{cpu}/thermal_throttle/{name}"
                for cpu, (package, core) in places(self._root / CPUS).items()
                if (self._root / CPUS / f"cpu{cpu}/thermal_throttle").is_dir()
                for name in COUNTERS
            }
        nothing = f"no {self._root / CPUS}/cpu*/thermal_throttle (only Intel's processors count it, and no virtual one)"
        if not self._files:
            raise Unsupported(nothing)
        texts, faults = read_present(self._files)
        return reading_of(texts, faults, nothing)

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per package."""
        largest: dict[tuple[str, str, str], int] = {}  # by package, file, and core ("" for the package's own)
        throttled: dict[str, set[str]] = {}  # cores by package
        for key, text in reading.texts.items():
            package, core, cpu, name = key.split(" ")
            number = whole_number(text, f"cpu{cpu}/thermal_throttle/{name}")
            where = (package, name, core if COUNTERS[name][1] else "")
            largest[where] = max(number, largest.get(where, 0))
            if name == CORE_COUNT and previous and key in previous.texts:
                cores = throttled.setdefault(package, set())
                if number > whole_number(previous.texts[key], key):
                    cores.add(core)
        found: dict[str, dict[str, FieldValue]] = {}
        for (package, name, _), number in largest.items():
            fields = found.setdefault(package, {})
            field = COUNTERS[name][0]
            fields[field] = int(fields.get(field, 0)) + number
        for package, cores in throttled.items():
            found[package]["throttled_cores"] = len(cores)
        return [
            Point("cpu_throttle", (("package", package),), fields, reading.time_ns)
            for package, fields in sorted(found.items())
        ]
