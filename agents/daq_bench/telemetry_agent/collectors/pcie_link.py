"""The PCIe link of each drive, storage adapter and network card: generation, lanes, what they can carry and what both
ends of the link could, every few seconds.

Promise: what the kernel reads from the link's status register, now; a link that has retrained to less shows at
the next sample, one that never reached what its ends can shows as a fraction below 1. The bandwidth is that of one
direction after the line code and before packet headers.
"""

from __future__ import annotations

from daq_bench.candidate_kit.sysfs import link_of
from daq_bench.telemetry_agent.base.point import FieldValue, Point
from daq_bench.telemetry_agent.reading.attributes import read_present, reading_of
from daq_bench.telemetry_agent.reading.collector import OfRoot, Reading
from daq_bench.telemetry_agent.reading.pci import bridges_above, functions_by_name

# Giga-transfers per second and lane -> (generation, share of the bits that is payload; 6.0 counts as 128b/130b does)
GENERATIONS = {
    2.5: (1, 8 / 10),
    5.0: (2, 8 / 10),
    8.0: (3, 128 / 130),
    16.0: (4, 128 / 130),
    32.0: (5, 128 / 130),
    64.0: (6, 242 / 256),
}
PRESENT, OWN, PORT = "current", "max", "port max"


def bandwidth(generation: int, lanes: int) -> float:
    """Bytes per second of one direction."""
    gt_per_s, payload = next((gt, share) for gt, (number, share) in GENERATIONS.items() if number == generation)
    return gt_per_s * 1e9 * payload / 8 * lanes


def link_fields(speed: str, width: str) -> dict[str, float | int] | None:
    """Fields of one link; None where the kernel says that it knows none. Raises ValueError."""
    found = link_of(speed, width)
    if found is None:
        return None
    gt_per_s, lanes = found
    if gt_per_s not in GENERATIONS:
        raise ValueError(f"PCIe link: {speed} is the speed of no generation that is known")
    generation = GENERATIONS[gt_per_s][0]
    return {"generation": generation, "lanes": lanes, "bandwidth_bytes_per_s": bandwidth(generation, lanes)}


class PcieLink(OfRoot):
    """Collector of the measurement `pcie_link`."""

    name = "pcie_link"
    period_s_min = 5.0

    def read(self) -> Reading:
        """Texts hold one attribute each, by "device|whose|attribute"."""
        files = {}
        for device, function in functions_by_name(self._root).items():
            ends = [(PRESENT, function, "current"), (OWN, function, "max")]
            ends += [(PORT, port, "max") for port in bridges_above(function)[:1]]
            for whose, end, which in ends:
                for attribute in ("speed", "width"):
                    files[f"{device}|{whose}|{attribute}"] = end / f"{which}_link_{attribute}"
        texts, faults = read_present(files)
        for at in sorted({key.rpartition("|")[0] for key in texts}):
            pair = {name: texts[f"{at}|{name}"].strip() for name in ("speed", "width") if f"{at}|{name}" in texts}
            try:
                if len(pair) == 2:
                    link_fields(**pair)
            except ValueError as error:  # of this link alone
                faults.append(f"{at.replace('|', ', ')}: {error}")
                for name in pair:
                    del texts[f"{at}|{name}"]
        if not any(f"|{PRESENT}|" in key for key in texts):
            texts = {}
        return reading_of(texts, faults, f"{self._root / 'sys'}: no drive or network interface that shows a PCIe link")

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per link that the kernel knows."""
        ends: dict[str, dict[str, dict[str, str]]] = {}
        for key, text in reading.texts.items():
            device, whose, attribute = key.rsplit("|", 2)
            ends.setdefault(device, {}).setdefault(whose, {})[attribute] = text.strip()
        points = []
        for device, texts in ends.items():
            links = {whose: link_fields(**pair) for whose, pair in texts.items() if len(pair) == 2}
            present = links.pop(PRESENT, None)
            if present is None:
                continue
            fields: dict[str, FieldValue] = dict(present)
            possible = [link for link in links.values() if link is not None]
            if possible:
                generation, lanes = (min(int(link[name]) for link in possible) for name in ("generation", "lanes"))
                fields["maximum_generation"], fields["maximum_lanes"] = generation, lanes
                fields["bandwidth_fraction"] = present["bandwidth_bytes_per_s"] / bandwidth(generation, lanes)
            points.append(Point("pcie_link", (("device", device),), fields, reading.time_ns))
        return points
