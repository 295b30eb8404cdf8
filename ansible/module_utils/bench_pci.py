"""Reads the facts of a PCIe device from sysfs: its interrupts, its NUMA node, and the links between it and its root port.

Reads only. Runs on the candidate: Python 3.9, standard library only.
"""

from __future__ import annotations

import glob
import os
import re
from typing import Any

from ansible.module_utils.bench_sysfs import ADDRESS, text_of
from ansible.module_utils.bench_sysfs import link_of as told_link


def text_in(directory: str, name: str) -> str:
    """Return the text of one sysfs file; empty where there is none, or where the driver refuses to tell."""
    return text_of(os.path.join(directory, name)) or ""


def pci_directories(directory: str) -> list[str]:
    """Return the PCI devices from a device's own up to its root port; an NVMe drive of several paths has its first controller's."""
    for start in (directory, os.path.join(directory, "device"), *controllers(directory)):
        path, found = os.path.realpath(start), []
        while len(path) > 1:
            if ADDRESS.fullmatch(os.path.basename(path)):
                found.append(path)
            path = os.path.dirname(path)
        if found:
            return found
    return []


def controllers(directory: str) -> list[str]:
    """Return the controllers of an NVMe drive of several paths, whose block device hangs below none; else nothing."""
    return [path for path in sorted(glob.glob(os.path.join(directory, "device", "nvme[0-9]*"))) if os.path.islink(path)]


def request_queues(name: str, sysfs_root: str) -> list[str]:
    """Return the block devices whose queues hold a drive's requests: of an NVMe drive of several paths, the paths (nvme0c1n1)."""
    head = re.fullmatch(r"(nvme\d+)(n\d+)", name)
    paths = glob.glob(os.path.join(sysfs_root, "block", f"{head[1]}c[0-9]*{head[2]}")) if head else []
    return sorted(map(os.path.basename, paths)) or [name]


def interrupts(directory: str) -> list[int]:
    """Return the numbers of a PCI device's interrupts: message-signalled ones, or else its wire."""
    messages = os.path.join(directory, "msi_irqs")
    if os.path.isdir(messages):
        return sorted(int(name) for name in os.listdir(messages) if name.isdigit())
    wire = text_in(directory, "irq")
    return [int(wire)] if wire.isdigit() and int(wire) > 0 else []


def link_of(directory: str, which: str) -> dict[str, Any]:
    """Return one end's `current` or `max` link: GT/s per lane, and lanes; zeros where it is not told."""
    try:
        found = told_link(*(text_in(directory, f"{which}_link_{name}") for name in ("speed", "width")))
    except ValueError:
        found = None
    return {"gt_per_s": found[0], "lanes": found[1]} if found else {"gt_per_s": 0.0, "lanes": 0}


def describe_link(directory: str) -> dict[str, Any]:
    """Return what one device negotiated and what it can do."""
    current, maximum = link_of(directory, "current"), link_of(directory, "max")
    return {"address": os.path.basename(directory), "current": current, "max": maximum}


def node_of(directory: str) -> int | None:
    """Return a PCI device's NUMA node; None where the kernel names none (it says -1)."""
    text = text_in(directory, "numa_node")
    return int(text) if text.isdigit() else None


def node_cpus(sysfs_root: str, node: int | None) -> str:
    """Return the CPUs of a NUMA node; all, where the machine has none or only one; empty where the node is unknown or not there."""
    nodes = glob.glob(os.path.join(sysfs_root, "devices/system/node/node[0-9]*"))
    if not nodes or (node is None and len(nodes) == 1):
        return text_in(os.path.join(sysfs_root, "devices/system/cpu"), "online")
    return text_in(os.path.join(sysfs_root, f"devices/system/node/node{node}"), "cpulist")


def describe_pci(directory: str) -> dict[str, Any] | None:
    """Describe the PCI device that a sysfs directory belongs to; None where it belongs to none."""
    path = pci_directories(directory)
    if not path:
        return None
    # The interrupts of a drive's further controllers on the same node go to the same CPUs.
    others = {steps[0] for steps in map(pci_directories, controllers(directory)) if steps} - {path[0]}
    near = [path[0], *(other for other in sorted(others) if node_of(other) == node_of(path[0]))]
    return {
        "address": os.path.basename(path[0]),
        "numa_node": node_of(path[0]),
        "interrupts": sorted(number for function in near for number in interrupts(function)),
        "links": [describe_link(step) for step in path],
    }


def placed(device: dict[str, Any], directory: str, sysfs_root: str) -> dict[str, Any]:
    """Add to a device's description where it hangs: PCI device, NUMA node and that node's CPUs."""
    pci = describe_pci(directory)
    node = device.get("numa_node")
    if node is None and pci is not None:
        node = pci["numa_node"]
    return {**device, "pci": pci, "numa_node": node, "node_cpus": node_cpus(sysfs_root, node)}
