"""The PCIe link of a device, in the words of sysfs (`current_link_speed`, `max_link_width` and so on).

Promise: one rule for the agent, Ansible's modules and the survey of a machine. Ansible's modules import this file as
`ansible.module_utils.bench_pcie_link`, so that it imports no other of the kit.
"""

from __future__ import annotations

import re

SPEED = re.compile(r"([0-9]{1,3}(?:\.[0-9])?) GT/s(?: PCIe)?")  # "16.0 GT/s PCIe", older kernels "8 GT/s"
UNKNOWN_LANES = ("0", "63", "255")  # 63: all ones are read of a device that was unplugged


def link_of(speed: str, width: str) -> tuple[float, int] | None:
    """(GT/s of a lane, lanes); None where the kernel says that it knows none. Raises ValueError for other texts."""
    if speed.startswith("Unknown") or width in UNKNOWN_LANES:
        return None
    match = SPEED.fullmatch(speed)
    if match is None or not width.isdigit():
        raise ValueError(f"PCIe link: speed {speed[:80]!r} with width {width[:80]!r} is not understood")
    return float(match[1]), int(width)
