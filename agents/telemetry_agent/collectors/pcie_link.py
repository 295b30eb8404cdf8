"""The PCIe link of each NVMe drive: generation, lanes and what they can carry, every few seconds.

Promise: what the kernel reads from the link's status register, now; a link that has retrained to less shows at
the next sample. The bandwidth is that of one direction after the line code and before packet headers.
"""

from __future__ import annotations

import re
from pathlib import Path

from telemetry_agent.collector import Reading, Unsupported, read_optional, reading_now
from telemetry_agent.point import Point

PERIOD_S_MIN = 5.0
SPEED = re.compile(r"(?P<gt>[0-9.]+) GT/s")  # "16.0 GT/s PCIe", older kernels "8 GT/s"
# Giga-transfers per second and lane -> (generation, share of the bits that is payload; 6.0 counts as 128b/130b does)
GENERATIONS = {
    2.5: (1, 8 / 10),
    5.0: (2, 8 / 10),
    8.0: (3, 128 / 130),
    16.0: (4, 128 / 130),
    32.0: (5, 128 / 130),
    64.0: (6, 242 / 256),
}


def link_fields(speed: str, width: str) -> dict[str, float | int] | None:
    """Fields of one link; None where the kernel does not know it ("Unknown", width 0)."""
    match = SPEED.match(speed)
    if match is None or not width.isdigit() or int(width) == 0 or float(match["gt"]) not in GENERATIONS:
        return None
    gt_per_s, lanes = float(match["gt"]), int(width)
    generation, payload = GENERATIONS[gt_per_s]
    return {
        "generation": generation,
        "lanes": lanes,
        "bandwidth_bytes_per_s": gt_per_s * 1e9 * payload / 8 * lanes,
    }


class PcieLink:
    """Collector of the measurement `pcie_link`."""

    name = "pcie_link"

    def __init__(self, period_s: float, root: Path = Path("/")) -> None:
        self.period_s = max(PERIOD_S_MIN, period_s)
        self._sys_block = root / "sys/block"

    def read(self) -> Reading:
        """Texts hold "speed|width" by drive."""
        texts = {}
        for path in sorted(self._sys_block.glob("nvme*n*")):
            function = path / "device" / "device"  # the controller's PCI function
            speed, width = (read_optional(function / f"current_link_{what}") for what in ("speed", "width"))
            if speed and width:
                texts[path.name] = f"{speed}|{width}"
        if not texts:
            raise Unsupported(f"{self._sys_block}: no NVMe drive that shows its PCIe link")
        return reading_now(texts)

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per link that the kernel knows."""
        points = []
        for name, text in reading.texts.items():
            speed, _, width = text.partition("|")
            fields = link_fields(speed, width)
            if fields:
                points.append(Point("pcie_link", (("device", name),), fields, reading.time_ns))
        return points
