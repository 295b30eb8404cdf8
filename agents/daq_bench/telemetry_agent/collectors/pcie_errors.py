"""PCIe errors by advanced error reporting: of each drive, storage adapter and network card, and of the ports above it,
every few seconds.

Promise: the kernel's own counters since boot. An error is often counted by the port that saw it and not by the device
that made it: so the ports on the way to the processor are reported with each device that they lead to (tag `function`
tells whose counter it is). Firmware that handles the errors itself keeps them from the kernel.
"""

from __future__ import annotations

from pathlib import Path

from daq_bench.telemetry_agent.base.point import FieldValue, Point
from daq_bench.telemetry_agent.reading.attributes import excerpt, read_present, reading_of, table_lines, whole_number
from daq_bench.telemetry_agent.reading.collector import OfRoot, Reading
from daq_bench.telemetry_agent.reading.pci import bridges_above, functions_by_name

KINDS = {"correctable": "COR", "nonfatal": "NONFATAL", "fatal": "FATAL"}
TOTAL = "TOTAL_ERR_"


def parse_errors(text: str, kind: str, function: str) -> tuple[int, dict[str, int]]:
    """(total, counters above zero by name) of one of the three tables. Raises ValueError."""
    where = f"{function}/aer_dev_{kind}"
    total, found = None, {}
    for line in table_lines(text, where):
        name, _, value = line.strip().rpartition(" ")
        number = whole_number(value, f"{where}: {name}")
        if name == TOTAL + KINDS[kind]:
            total = number
        elif not name or name.startswith(TOTAL):
            raise ValueError(f"{where}: {excerpt(line)} is not understood")
        elif number:
            found[name] = number
    if total is None:
        raise ValueError(f"{where}: no line {TOTAL}{KINDS[kind]} in {excerpt(text)}")
    return total, found


class PcieErrors(OfRoot):
    """Collector of the measurement `pcie_errors`."""

    name = "pcie_errors"
    period_s_min = 5.0

    def read(self) -> Reading:
        """Texts hold one table each, by "address kind", and in "address devices" the devices that it concerns."""
        files: dict[str, Path] = {}
        concerns: dict[str, list[str]] = {}
        for device, function in sorted(functions_by_name(self._root).items()):
            for at in (function, *bridges_above(function)):
                concerns.setdefault(at.name, []).append(device)
                for kind in KINDS:
                    files[f"{at.name} {kind}"] = at / f"aer_dev_{kind}"
        texts, faults = read_present(files)
        for address in {key.partition(" ")[0] for key in texts}:
            texts[f"{address} devices"] = "\n".join(concerns[address])
        nothing = "no aer_dev_correctable at any drive, network card or port above (a kernel without AER, or the firmware keeps it)"
        return reading_of(texts, faults, nothing)

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per device and function."""
        points = []
        for address in sorted({key.partition(" ")[0] for key in reading.texts}):
            fields: dict[str, FieldValue] = {}
            kinds: dict[str, int] = {}
            for kind in KINDS:
                text = reading.texts.get(f"{address} {kind}")
                if text is not None:
                    fields[kind], found = parse_errors(text, kind, address)
                    kinds.update({f"{kind} {name}": number for name, number in found.items()})
            if kinds:
                fields["kinds"] = ", ".join(f"{name} {number}" for name, number in sorted(kinds.items()))
            for device in reading.texts[f"{address} devices"].split("\n"):
                tags = (("device", device), ("function", address))
                points.append(Point("pcie_errors", tags, fields, reading.time_ns))
        return points
