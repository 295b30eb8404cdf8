#!/usr/bin/python
"""Describe the candidate: kernel, system, processor, memory, NUMA, firmware, services."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_host_facts
short_description: Describe the candidate's kernel, system, processor, memory, NUMA nodes and firmware
description:
  - Reads /proc, /sys and /etc/os-release. Writes nothing.
  - A fact that the machine does not tell is null.
options:
  sysfs_root:
    description: Where sysfs is mounted.
    type: path
    default: /sys
  processes:
    description: Names of processes whose presence is reported.
    type: list
    elements: str
    default: []
  nics:
    description: Names of the network interfaces that are described. One that is not there fails the task.
    type: list
    elements: str
    default: []
author:
  - The daq-storage-bench authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Describe the candidate
  bench_host_facts:
    processes: [irqbalance]
"""

RETURN = r"""
host:
  description: The candidate.
  returned: always
  type: dict
  sample:
    hostname: readout-01
    kernel: 6.1.0-18-amd64
    os: Debian GNU/Linux 12 (bookworm)
    os_family: [debian]
    cpu_model: AMD EPYC 7302
    cpus: 32
    memory_bytes: 549755813888
    numa_nodes: 2
"""

import glob
import os
import platform
import socket
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.bench_cpu_model import cpu_model
from ansible.module_utils.bench_host import firmware_tables, ipmi_device, memory_bytes, numa, turbo_control
from ansible.module_utils.bench_pci import placed
from ansible.module_utils.bench_sysfs import text_of

EXECUTABLE_DIRECTORIES = ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin")


def os_release(text: str) -> dict[str, str]:
    """Parse /etc/os-release."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {key.strip(): value.strip().strip("\"'") for key, _equals, value in pairs}


def running(names: list[str]) -> dict[str, bool]:
    """Say of each name whether a process of that name runs. Processes that end meanwhile do not count."""
    found = set()
    for path in glob.glob("/proc/[0-9]*/comm"):
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                found.add(stream.read().strip())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return {name: name[:15] in found for name in names}  # the kernel keeps 15 characters


def describe_nics(sysfs_root: str, names: list[str]) -> list[dict[str, Any]]:
    """Describe network interfaces; ValueError where one is not there."""
    directory = os.path.join(sysfs_root, "class/net")
    missing = [name for name in names if not os.path.exists(os.path.join(directory, name))]
    if missing:
        there = ", ".join(sorted(os.listdir(directory))) if os.path.isdir(directory) else "none"
        raise ValueError(f"tuning.nic names {', '.join(missing)}, which this machine does not have (it has: {there})")
    return [placed({"name": name}, os.path.join(directory, name, "device"), sysfs_root) for name in names]


def describe_host(sysfs_root: str, processes: list[str], nics: list[str]) -> dict[str, Any]:
    """Put the parts together."""
    release = os_release(text_of("/etc/os-release") or "")
    nodes = numa(sysfs_root)
    return {
        "hostname": socket.gethostname(),
        "kernel": platform.release(),
        "os": release.get("PRETTY_NAME"),
        "os_family": [release.get("ID", ""), *release.get("ID_LIKE", "").split()],
        "architecture": platform.machine(),
        "cpu_model": cpu_model(text_of("/proc/cpuinfo") or ""),
        "cpus": os.cpu_count(),
        "cpus_online": text_of(os.path.join(sysfs_root, "devices/system/cpu/online")),
        "turbo_control": turbo_control(sysfs_root),
        "memory_bytes": memory_bytes(text_of("/proc/meminfo") or ""),
        "numa_nodes": len(nodes),
        "numa": nodes,
        "dmi": firmware_tables(sysfs_root),
        "processes": running(processes),
        "nics": describe_nics(sysfs_root, nics),
        "ipmitool": any(os.access(os.path.join(d, "ipmitool"), os.X_OK) for d in EXECUTABLE_DIRECTORIES),
        "ipmi_device": ipmi_device(),
    }


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "sysfs_root": {"type": "path", "default": "/sys"},
            "processes": {"type": "list", "elements": "str", "default": []},
            "nics": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    try:
        host = describe_host(module.params["sysfs_root"], module.params["processes"], module.params["nics"])
    except ValueError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, host=host)


if __name__ == "__main__":
    main()
