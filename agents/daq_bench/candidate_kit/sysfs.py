"""Reads what sysfs tells of a device: a file's text, its PCIe link and its place in the machine.

Promise: one rule serves the agent, Ansible's modules and the survey of a machine. Ansible's modules import this file as
`ansible.module_utils.bench_sysfs`, so that it imports no other of the kit.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")  # of a PCI function
SPEED = re.compile(r"([0-9]{1,3}(?:\.[0-9])?) GT/s(?: PCIe)?")  # "16.0 GT/s PCIe", older kernels "8 GT/s"
UNKNOWN_LANES = ("0", "63", "255")  # 63: all ones are read of a device that was unplugged


def text_of(path: str | os.PathLike[str]) -> str | None:
    """The text of a file; None where it is empty or not there, or where the driver refuses to tell."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip("\x00 \n\t") or None
    except OSError:
        return None


def link_of(speed: str, width: str) -> tuple[float, int] | None:
    """(GT/s of a lane, lanes); None where the kernel says that it knows none. Raises ValueError for other texts."""
    if speed.startswith("Unknown") or width in UNKNOWN_LANES:
        return None
    match = SPEED.fullmatch(speed)
    if match is None or not width.isdigit():
        raise ValueError(f"PCIe link: speed {speed[:80]!r} with width {width[:80]!r} is not understood")
    return float(match[1]), int(width)


def place_of(block: Path) -> tuple[int | None, str | None]:
    """(NUMA node, `8.0 GT/s PCIe x4`) of a block device, from the nearest folder above it that tells; None where the kernel knows none."""
    device = (block / "device").resolve()
    # A drive of native NVMe multipath hangs on a virtual subsystem, which links to its controllers.
    hardware = next((one.resolve() for one in sorted(device.glob("nvme[0-9]*")) if one.is_symlink()), device)
    above = (hardware, *hardware.parents)
    node = next(filter(None, (text_of(folder / "numa_node") for folder in above)), "-1")
    links = ([text_of(folder / f"current_link_{end}") or "" for end in ("speed", "width")] for folder in above)
    speed, width = next(filter(all, links), ("Unknown", ""))
    try:
        link = f"{speed} x{width}" if link_of(speed, width) else None
    except ValueError:
        link = None
    return int(node) if node.isdigit() else None, link
