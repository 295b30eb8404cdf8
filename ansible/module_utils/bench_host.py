"""Facts of a machine that provisioning and `make discover` both ask for: the firmware's tables, its IPMI device, its turbo switch.

Reads only. Runs on the candidate: Python 3.9, standard library only.
"""

from __future__ import annotations

import glob
import os
import re
from typing import Any

from ansible.module_utils.bench_sysfs import text_of

IPMI_DEVICES = ("/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0")  # where ipmitool's `open` interface looks
DMI_FIELDS = ("sys_vendor", "product_name", "board_name", "bios_vendor", "bios_version", "bios_date")


def firmware_tables(sysfs_root: str) -> dict[str, str | None]:
    """Return who made the machine and its firmware, as the firmware's tables (DMI) say."""
    return {name: text_of(os.path.join(sysfs_root, "class/dmi/id", name)) for name in DMI_FIELDS}


def ipmi_device() -> str | None:
    """Return the device of the machine's own way to its BMC; None where it has none."""
    return next((path for path in IPMI_DEVICES if os.path.exists(path)), None)


def turbo_control(sysfs_root: str) -> str | None:
    """Return which of the kernel's two switches for turbo frequencies this machine has."""
    cpu = os.path.join(sysfs_root, "devices/system/cpu")
    if os.path.exists(os.path.join(cpu, "intel_pstate/no_turbo")):
        return "no_turbo"
    return "boost" if os.path.exists(os.path.join(cpu, "cpufreq/boost")) else None


def memory_bytes(meminfo: str) -> int | None:
    """Return MemTotal, which the kernel gives in KiB."""
    found = re.search(r"MemTotal:\s+(\d+) kB", meminfo)
    return int(found.group(1)) * 1024 if found else None


def numa(sysfs_root: str) -> list[dict[str, Any]]:
    """Return each NUMA node with its CPUs and memory; empty where the kernel has no NUMA support."""
    nodes = []
    for directory in glob.glob(os.path.join(sysfs_root, "devices/system/node/node[0-9]*")):
        nodes.append(
            {
                "node": int(os.path.basename(directory)[len("node") :]),
                "cpus": text_of(os.path.join(directory, "cpulist")) or "",
                "memory_bytes": memory_bytes(text_of(os.path.join(directory, "meminfo")) or ""),
            }
        )
    return sorted(nodes, key=lambda node: node["node"])
