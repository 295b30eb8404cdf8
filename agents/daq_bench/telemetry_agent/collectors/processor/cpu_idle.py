"""Tells how deep the processors sleep: the share of time in each C-state, per package, every 10 s.

Promise: the kernel's cpuidle counters of every CPU that both readings know, summed over the CPUs of a package, so that
the number of series is sockets times states (8 for two sockets and four states) and not that of 128 cores. The kernel
counts a sleep when it ends: of CPUs that slept through a whole interval a share may be too low in one sample and too
high in the next.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from daq_bench.telemetry_agent.base.point import Point
from daq_bench.telemetry_agent.collectors.processor.cpu_throttle import CPUS, packages
from daq_bench.telemetry_agent.reading.attributes import read_present, reading_of, whole_number
from daq_bench.telemetry_agent.reading.collector import (
    SLOW_PERIOD_S,
    OfRoot,
    Reading,
    Unsupported,
    rate_interval_s,
    read_optional,
)

TIME, ENTRIES = "time", "usage"


class CpuIdle(OfRoot):
    """Collector of the measurement `cpu_idle`."""

    name = "cpu_idle"
    period_s_min = SLOW_PERIOD_S

    def read(self) -> Reading:
        """Texts hold one counter each, by "package|state|cpu|file"."""
        if not self._files:
            self._files = self._find_files()
        texts, faults = read_present(self._files)
        return reading_of(texts, faults, f"no {self._root / CPUS}/cpu*/cpuidle/state* can be read any more")

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per package and state."""
        interval_s = rate_interval_s(reading, previous, self.period_s)
        if previous is None or interval_s is None:
            return []
        grown: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        for key in [key for key in reading.texts if key.endswith(TIME)]:
            package, state = key.split("|")[:2]
            now, before = _counters(reading, key), _counters(previous, key)
            if now and before and now[0] >= before[0] and now[1] >= before[1]:
                grown[package, state].append((now[0] - before[0], now[1] - before[1]))
        points = []
        for (package, state), growth in sorted(grown.items()):
            times_us, entries = zip(*growth)
            fields = {
                "residency_fraction": sum(times_us) / 1e6 / interval_s / len(growth),
                "entries_per_s": sum(entries) / interval_s,
            }
            points.append(Point("cpu_idle", (("package", package), ("state", state)), fields, reading.time_ns))
        return points

    def _find_files(self) -> dict[str, Path]:
        files = {}
        for cpu, package in packages(self._root / CPUS).items():
            for folder in sorted((self._root / CPUS / f"cpu{cpu}/cpuidle").glob("state[0-9]*")):
                state = (read_optional(folder / "name") or folder.name).replace("|", "/")
                for name in (TIME, ENTRIES):
                    files[f"{package}|{state}|{cpu}|{name}"] = folder / name
        if not files:
            raise Unsupported(
                f"no {self._root / CPUS}/cpu*/cpuidle/state* (no cpuidle driver: idle=poll, or a virtual machine)"
            )
        return files


def _counters(reading: Reading, key: str) -> tuple[int, int] | None:
    """(microseconds, entries) of one CPU's state, or None where the reading has not both."""
    keys = (key, key[: -len(TIME)] + ENTRIES)
    if not all(one in reading.texts for one in keys):
        return None
    time_us, entries = (whole_number(reading.texts[one], f"cpuidle {one}") for one in keys)
    return time_us, entries
