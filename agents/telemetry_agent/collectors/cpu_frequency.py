"""Present frequency of each core, from cpufreq where the kernel offers it, else from /proc/cpuinfo.

Promise: whole hertz. Separate from the CPU time because on a large server asking for frequencies interrupts
every core and may be slow, which must not delay the busy fractions.
"""

from __future__ import annotations

from pathlib import Path

from telemetry_agent.collector import HeldFile, Reading, Unsupported, reading_now
from telemetry_agent.point import Point

CPUINFO = "cpuinfo"


def parse_cpuinfo(text: str) -> dict[str, int]:
    """Hertz by core from x86's "cpu MHz" lines; empty on architectures that have none."""
    frequencies, core = {}, ""
    for line in text.splitlines():
        if line.startswith("processor"):
            core = line.split(":", 1)[1].strip()
        elif line.startswith("cpu MHz"):
            frequencies[core] = round(float(line.split(":", 1)[1]) * 1e6)
    return frequencies


class CpuFrequency:
    """Collector of the measurement `cpu_frequency`."""

    name = "cpu_frequency"

    def __init__(self, period_s: float, root: Path = Path("/")) -> None:
        self.period_s = period_s
        self._root = root
        self._files: dict[str, HeldFile] = {}

    def read(self) -> Reading:
        """Read every core's cpufreq attribute (kHz), or cpuinfo."""
        if not self._files:
            self._files = self._find_files()
        texts, faults = {}, []
        for core, file in self._files.items():
            try:
                texts[core] = file.text()
            except OSError as error:  # a core that was taken offline
                faults.append(f"{file.path}: {error.strerror}")
        if not texts:
            raise OSError(f"no core's frequency can be read: {faults[0]}")
        return reading_now(texts, tuple(faults))

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per core."""
        if CPUINFO in reading.texts:
            frequencies = parse_cpuinfo(reading.texts[CPUINFO])
        else:
            frequencies = {core: int(text) * 1000 for core, text in reading.texts.items()}
        return [
            Point("cpu_frequency", (("core", core),), {"frequency_hz": hertz}, reading.time_ns)
            for core, hertz in frequencies.items()
        ]

    def _find_files(self) -> dict[str, HeldFile]:
        cpus = self._root / "sys/devices/system/cpu"
        files = {}
        for path in sorted(cpus.glob("cpu[0-9]*/cpufreq/scaling_cur_freq")):
            files[path.parent.parent.name[3:]] = HeldFile(path)
        if files:
            return files
        cpuinfo = HeldFile(self._root / "proc/cpuinfo")
        if not parse_cpuinfo(cpuinfo.text()):
            raise Unsupported(f"no {cpus}/cpu*/cpufreq/scaling_cur_freq, and no 'cpu MHz' in {cpuinfo.path}")
        return {CPUINFO: cpuinfo}
