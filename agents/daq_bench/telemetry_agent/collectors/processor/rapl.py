"""Power of processors and their memory by RAPL (Intel's and AMD's, through powercap), every second.

Promise: the kernel's energy counter of each domain as it is, with the range at which it begins again, and the mean
power since the reading before with that taken into account. It is what processors and memory take, and not the server.
Since 2020 the counters are open to root alone; the refusal is named.
"""

from __future__ import annotations

from pathlib import Path

from daq_bench.telemetry_agent.base.point import FieldValue, Point
from daq_bench.telemetry_agent.reading.attributes import read_present, reading_of, whole_number
from daq_bench.telemetry_agent.reading.collector import Reading, Unsupported, rate_interval_s, read_optional

PERIOD_S_MIN = 1.0
# [P] Processors end at 1 kW; `psys`, a whole server, at a few. More says that the counter was set back, not that it went round.
POWER_W_MAX = 20_000.0


class Rapl:
    """Collector of the measurement `rapl`."""

    name = "rapl"
    pace = "slow"

    def __init__(self, period_s: float, root: Path = Path("/")) -> None:
        self.period_s = max(PERIOD_S_MIN, period_s)
        self._powercap = root / "sys/class/powercap"
        self._files: dict[str, Path] = {}
        self._ranges: dict[str, str] = {}

    def read(self) -> Reading:
        """Texts hold "energy|range" in microjoules by domain, such as "package-0" and "package-0/dram"."""
        if not self._files:
            self._files, self._ranges = self._find_domains()
        if not self._files:
            raise Unsupported(
                f"no {self._powercap}/intel-rapl:* (module intel_rapl_msr is not loaded, or a virtual machine)"
            )
        texts, faults = read_present(self._files)
        if not texts and faults and all(fault.endswith("Permission denied") for fault in faults):
            raise Unsupported(f"{faults[0]}: RAPL is open to root alone, run the agent as root")
        joined, faults = {}, list(faults)
        for domain, text in texts.items():
            try:
                whole_number(self._ranges[domain], f"{domain}: max_energy_range_uj")
            except ValueError as error:  # of this domain alone
                faults.append(str(error))
            else:
                joined[domain] = f"{text.strip()}|{self._ranges[domain]}"
        return reading_of(joined, faults, f"{self._powercap}: every RAPL domain is gone")

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per domain."""
        interval_s = rate_interval_s(reading, previous, self.period_s)
        points = []
        for domain, text in reading.texts.items():
            energy_uj, range_uj = _counter(text, domain)
            fields: dict[str, FieldValue] = {"energy_uj": energy_uj, "energy_range_uj": range_uj}
            if previous and interval_s is not None and domain in previous.texts:
                spent_uj = energy_uj - _counter(previous.texts[domain], domain)[0]
                if spent_uj < 0:
                    spent_uj += range_uj
                if 0 <= spent_uj <= POWER_W_MAX * 1e6 * interval_s:
                    fields["power_w"] = spent_uj / 1e6 / interval_s
            points.append(Point("rapl", (("domain", domain),), fields, reading.time_ns))
        return points

    def _find_domains(self) -> tuple[dict[str, Path], dict[str, str]]:
        # Not intel-rapl-mmio, which counts a package's energy a second time.
        zones = sorted(self._powercap.glob("intel-rapl:*"))
        names = {zone.name: read_optional(zone / "name") or zone.name for zone in zones}
        files, ranges = {}, {}
        for zone in zones:
            parent = zone.name.rpartition(":")[0]
            domain = f"{names[parent]}/{names[zone.name]}" if parent in names else names[zone.name]
            if domain in files:  # two zones of one name, told apart by the zone
                domain = f"{domain} ({zone.name})"
            files[domain] = zone / "energy_uj"
            ranges[domain] = read_optional(zone / "max_energy_range_uj") or ""
        return files, ranges


def _counter(text: str, domain: str) -> tuple[int, int]:
    energy, _, whole = text.partition("|")
    return whole_number(energy, f"{domain}: energy_uj"), whole_number(whole, f"{domain}: max_energy_range_uj")
