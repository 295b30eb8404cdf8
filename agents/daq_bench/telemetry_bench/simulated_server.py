"""/proc and /sys of a large server, laid out as files and moving from step to step, and the agent's own collectors' readings of them.

Written by hand after the kernel's formats, since no such server is at hand: 64 logical CPUs at changing load, 8 NVMe drives with two
partitions each, their sensors, two packages. Values move at random (always the same for one seed): constant ones would be stored
in next to nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from daq_bench.telemetry_agent.base.point import Point
from daq_bench.telemetry_agent.collectors import system_collectors
from daq_bench.telemetry_agent.reading import collector as agent_collector
from daq_bench.telemetry_agent.reading.collector import Collector, Reading

CORES, DRIVES, PACKAGES = 64, 8, 2
PERIOD_S = 1.0
TICKS_PER_STEP = 100
SECTORS_PER_STEP = 8_000_000  # about 4 GB/s
# Collectors whose files are laid out here. smart and ipmi run tools, and the agent reports itself only while it runs.
SIMULATED = ("block_device", "cpu", "cpu_frequency", "memory", "pressure", "temperature")


class SimulatedServer:
    """Files below `root`; `advance` moves them by one second."""

    def __init__(self, root: Path, seed: int) -> None:
        self._root, self._random, self._step = root, random.Random(seed), 0
        self._ticks = [[0] * 8 for _ in range(CORES)]
        self._drives = [[0] * 11 for _ in range(DRIVES)]
        self._stalled_us = [0] * 5
        self._lay_names()

    def advance(self) -> None:
        self._step += 1
        self._write("proc/stat", self._stat())
        self._write("proc/diskstats", self._diskstats())
        self._write("proc/meminfo", self._meminfo())
        self._lay_pressure()
        for core in range(CORES):
            path = f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq"
            self._write(path, f"{self._random.randint(2_000_000, 3_700_000)}\n")
        for number in range(DRIVES + PACKAGES):
            for sensor in (1, 2):
                self._write(f"sys/class/hwmon/hwmon{number}/temp{sensor}_input", f"{self._random.randint(38, 68)}850\n")

    def _write(self, path: str, text: str) -> None:
        file = self._root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="ascii")

    def _lay_names(self) -> None:
        for number in range(DRIVES):
            name, hwmon = f"nvme{number}n1", f"sys/class/hwmon/hwmon{number}"
            self._write(f"sys/block/{name}/device/serial", f"SIM{number:09d}\n")
            self._write(f"sys/block/{name}/size", "7501476528\n")
            self._write(f"{hwmon}/name", "nvme\n")
            self._write(f"{hwmon}/device/{name}/size", "7501476528\n")
            for sensor, label in ((1, "Composite"), (2, "Sensor 1")):
                self._write(f"{hwmon}/temp{sensor}_label", f"{label}\n")
                self._write(f"{hwmon}/temp{sensor}_max", "69850\n")
            self._write(f"{hwmon}/temp1_crit", "76850\n")
        for package in range(PACKAGES):
            self._write(f"sys/class/hwmon/hwmon{DRIVES + package}/name", "k10temp\n")

    def _stat(self) -> str:
        for ticks in self._ticks:
            user = self._random.randint(5, 60)
            system, iowait, softirq = (self._random.randint(0, most) for most in (20, 10, 5))
            for column, spent in ((0, user), (2, system), (4, iowait), (6, softirq)):
                ticks[column] += spent
            ticks[3] += TICKS_PER_STEP - user - system - iowait - softirq
        total = [sum(column) for column in zip(*self._ticks, strict=True)]
        rows = [("cpu ", total), *((f"cpu{core}", ticks) for core, ticks in enumerate(self._ticks))]
        lines = [f"{name} {' '.join(map(str, ticks))} 0 0" for name, ticks in rows]
        return "\n".join([*lines, "intr 1 0", "ctxt 1", "btime 1", "processes 1", ""])

    def _diskstats(self) -> str:
        lines = []
        for number, counters in enumerate(self._drives):
            written = self._random.randint(SECTORS_PER_STEP // 2, SECTORS_PER_STEP)
            moved = [10, 0, 160, 2, written // 256, 0, written, written // 1000, 0, 1000, written // 1000]
            counters[:] = [before + more for before, more in zip(counters, moved, strict=True)]
            counters[8] = self._random.randint(0, 64)  # in flight: a level, not a count
            columns = " ".join(map(str, counters))
            for minor, name in enumerate((f"nvme{number}n1", f"nvme{number}n1p1", f"nvme{number}n1p2")):
                lines.append(f" 259 {3 * number + minor} {name} {columns} 0 0 0 0 0 0")
        return "\n".join([*lines, ""])

    def _meminfo(self) -> str:
        free = self._random.randint(100_000_000, 400_000_000)
        values = {
            "MemTotal": 527_942_784,
            "MemFree": free,
            "MemAvailable": free + 50_000_000,
            "Buffers": 100_000,
            "Cached": 70_000_000,
            "SwapCached": 0,
            "Dirty": self._random.randint(0, 2_000_000),
            "Writeback": self._random.randint(0, 500_000),
        }
        return "".join(f"{name + ':':15} {kib:>9} kB\n" for name, kib in values.items()) + "HugePages_Total:       0\n"

    def _lay_pressure(self) -> None:
        self._stalled_us = [before + self._random.randint(0, 200_000) for before in self._stalled_us]
        shown = iter(self._stalled_us)
        for resource, kinds in (("cpu", ("some",)), ("io", ("some", "full")), ("memory", ("some", "full"))):
            lines = [f"{kind} avg10=1.50 avg60=1.00 avg300=0.50 total={next(shown)}\n" for kind in kinds]
            self._write(f"proc/pressure/{resource}", "".join(lines))


def readings(root: Path, steps: int, seed: int) -> list[list[Point]]:
    """The points of `steps` seconds, by the real collectors; those of the second before, which gives no rates, are left out."""
    server = SimulatedServer(root, seed)
    collectors = [one for one in system_collectors(PERIOD_S, root) if one.name in SIMULATED]
    before: dict[str, Reading] = {}
    found: list[list[Point]] = []
    for step in range(steps + 1):
        server.advance()
        # The server's time passes by steps: work that collectors do once a second is due at each of them.
        clock = SimpleNamespace(monotonic=partial(float, step * PERIOD_S))
        with patch.object(agent_collector, "time", clock):
            found.append([point for collector in collectors for point in _sample(collector, before)])
    return found[1:]


def _sample(collector: Collector, before: dict[str, Reading]) -> Sequence[Point]:
    reading = collector.read()
    points = collector.parse(reading, before.get(collector.name))
    before[collector.name] = reading
    return points
