"""Present frequency of each core, from cpufreq where the kernel offers it, else from /proc/cpuinfo.

Promise: whole hertz. Separate from the CPU time because on a large server asking for frequencies interrupts
every core and may be slow, which must not delay the busy fractions. The governor and its limits come every 10 s.
"""

from __future__ import annotations

import time
from pathlib import Path

from daq_bench.telemetry_agent.base.point import FieldValue, Point
from daq_bench.telemetry_agent.reading.attributes import excerpt, read_present, reading_of, whole_number
from daq_bench.telemetry_agent.reading.collector import PROMPT, SLOW_PERIOD_S, Every, HeldFile, Reading, Unsupported

CPUINFO = "cpuinfo"
PERIOD_S_MIN = 1.0
PRESENT = "scaling_cur_freq"
LIMITS = {"scaling_min_freq": "minimum_hz", "scaling_max_freq": "maximum_hz"}
GOVERNOR = "scaling_governor"


def parse_cpuinfo(text: str) -> dict[str, int]:
    """Hertz by core from x86's "cpu MHz" lines; empty on architectures that have none. Raises ValueError."""
    frequencies, core = {}, ""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "processor":
            core = value.strip()
        elif name.strip() == "cpu MHz":
            try:
                frequencies[core] = round(float(value) * 1e6)
            except (ValueError, OverflowError):
                raise ValueError(f"/proc/cpuinfo: no frequency in {excerpt(line)}") from None
    return frequencies


class CpuFrequency:
    """Collector of the measurement `cpu_frequency`."""

    name = "cpu_frequency"
    pace = PROMPT

    def __init__(self, period_s: float, root: Path = Path("/")) -> None:
        self.period_s = max(PERIOD_S_MIN, period_s)
        self._cpus = root / "sys/devices/system/cpu"
        self._cpuinfo = HeldFile(root / "proc/cpuinfo")
        self._cores: list[str] = []
        self._limits = Every(max(SLOW_PERIOD_S, period_s))

    def read(self) -> Reading:
        """Read every core's cpufreq attributes (kHz) into "0 scaling_cur_freq" and so on, or cpuinfo."""
        if not self._cores:
            self._cores = self._find_cores()
        if not self._cores:
            return reading_of({CPUINFO: self._cpuinfo.text()}, (), "")
        attributes = (PRESENT, *LIMITS, GOVERNOR) if self._limits.due(time.monotonic()) else (PRESENT,)
        files = {
            f"{core} {attribute}": self._cpus / f"cpu{core}/cpufreq" / attribute
            for core in self._cores
            for attribute in attributes
        }
        texts, faults = read_present(files)
        return reading_of(texts, faults, f"{self._cpus}: no core's frequency can be read")

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per core."""
        if CPUINFO in reading.texts:
            found: dict[str, dict[str, FieldValue]] = {
                core: {"frequency_hz": hertz} for core, hertz in parse_cpuinfo(reading.texts[CPUINFO]).items()
            }
        else:
            found = {}
            for key, text in reading.texts.items():
                core, _, attribute = key.partition(" ")
                fields = found.setdefault(core, {})
                if attribute == GOVERNOR:
                    fields["governor"] = text.strip()
                else:
                    where = f"cpu{core}/cpufreq/{attribute}"
                    fields[LIMITS.get(attribute, "frequency_hz")] = whole_number(text, where) * 1000
        return [Point("cpu_frequency", (("core", core),), fields, reading.time_ns) for core, fields in found.items()]

    def _find_cores(self) -> list[str]:
        cores = [path.parent.parent.name[3:] for path in sorted(self._cpus.glob(f"cpu[0-9]*/cpufreq/{PRESENT}"))]
        if not cores and not parse_cpuinfo(self._cpuinfo.text()):
            raise Unsupported(f"no {self._cpus}/cpu*/cpufreq/{PRESENT}, and no 'cpu MHz' in {self._cpuinfo.path}")
        return cores
