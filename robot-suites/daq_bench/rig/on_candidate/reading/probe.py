"""A Linux machine's account of itself: identity, drives, target folder. Reads /proc, /sys and lsblk; changes nothing.

Prints {host, devices, target}; `target` is null when no folder was named or it is not there."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import socket
import stat
import sys
import time
from pathlib import Path
from typing import Any

from daq_bench.candidate_kit.cpu_model import cpu_model
from daq_bench.candidate_kit.lsblk import COMMAND, SYS_BLOCK, Device, devices_of, everything
from daq_bench.candidate_kit.sysfs import place_of, text_of
from daq_bench.candidate_kit.tools import said
from daq_bench.rig.on_candidate.reading.backing import memory_beneath

UDEV = Path("/run/udev/data")
LAYERS = ("part", "crypt", "lvm", "mpath")  # lsblk's types of what may lie on one device


def host_facts() -> dict[str, Any]:
    """hostname, kernel, os, architecture, cpu_model, cpus, memory_bytes, numa_nodes of this machine."""
    return {
        "hostname": socket.gethostname(),
        "kernel": platform.release(),
        "os": os_name(Path("/etc/os-release").read_text(encoding="utf-8")),
        "architecture": platform.machine(),
        "cpu_model": cpu_model(Path("/proc/cpuinfo").read_text(encoding="utf-8")) or "unknown",
        "cpus": os.cpu_count() or 1,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "numa_nodes": max(1, len(list(Path("/sys/devices/system/node").glob("node[0-9]*")))),
    }


def os_name(os_release: str) -> str:
    match = re.search(r'^PRETTY_NAME="?([^"\n]*)', os_release, re.MULTILINE)
    return match.group(1) if match else "unknown"


def block_devices() -> dict[str, Device]:
    """Every block device that lsblk lists, by MAJOR:MINOR."""
    try:
        return everything(devices_of(said(*COMMAND), SYS_BLOCK))
    except ValueError as error:
        raise SystemExit(str(error)) from None


def device_of(path: Path, known: dict[str, Device], sys_block: Path = SYS_BLOCK) -> Device | None:
    """The whole drive, or what several carry (an array, a volume over two drives, the paths to one), under the file system of `path` or
    `path` itself; None where there is none (network, memory).

    `parent` names one of the layers below a device, whichever lsblk comes upon first: a device with several is as far as it leads."""
    status = path.stat()
    number = status.st_rdev if stat.S_ISBLK(status.st_mode) else status.st_dev
    by_name = {device.name: device for device in known.values()}
    node = known.get(f"{os.major(number)}:{os.minor(number)}")
    while node is not None and node.parent and len(members_of(node, sys_block)) < 2 and node.type in LAYERS:
        node = by_name.get(node.parent)
    return node


def members_of(node: Device, sys_block: Path) -> list[str]:
    slaves = sys_block / node.name / "slaves"
    return sorted(member.name for member in slaves.iterdir()) if slaves.is_dir() else []


def revision_of(node: Device, udev: Path = UDEV) -> str:
    """A drive's whole firmware revision: of a SATA drive's eight characters the kernel keeps four, which is all that lsblk shows before
    util-linux 2.39 (util-linux/util-linux#1972)."""
    lines = (text_of(udev / f"b{node.number}") or "").splitlines()
    whole = next((line.partition("=")[2].strip() for line in lines if line.startswith("E:ID_REVISION=")), "")
    return whole if node.firmware and node.firmware in whole else node.firmware


def describe(node: Device, sys_block: Path = SYS_BLOCK) -> dict[str, Any]:
    """`node` of lsblk together with what sysfs tells of its place in the machine; null where it says nothing."""
    folder = sys_block / node.name
    numa_node, pcie_link = place_of(folder)
    return {
        "name": node.name,
        "model": node.model or None,
        "serial": node.serial or None,
        "firmware": revision_of(node) or text_of(folder / "device" / "firmware_rev"),
        "wwn": node.wwn or None,
        "size_bytes": node.size_bytes,
        "numa_node": numa_node,
        "rotational": node.rotational,
        "transport": node.transport or None,
        "pcie_link": pcie_link,
        "raid_level": text_of(folder / "md" / "level"),
        "members": members_of(node, sys_block),
    }


def listed(node: Device, sys_block: Path = SYS_BLOCK) -> dict[str, Any]:
    named = {"kname": node.name, "path": node.path, "type": node.type, "pkname": node.parent or None}
    return {**named, "description": describe(node, sys_block)}


def filesystem_of(path: Path) -> str:
    """Type of the file system that holds `path`, such as `ext4`."""
    # df looks at the very mount that a write would reach; findmnt lists every mount that is stacked there.
    name = said("df", "--output=fstype", str(path)).splitlines()[-1].strip()
    if name != "-":
        return name
    # In a chroot whose root is no mount point df finds none; stat asks the file system itself.
    return said("stat", "--file-system", "--format=%T", str(path)).strip()


def target_facts(path: Path, known: dict[str, Device]) -> dict[str, Any] | None:
    """{filesystem, free_bytes, device} of a folder or of a whole drive, which has no file system; None when it is not there."""
    if path.is_block_device():
        node = device_of(path, known)
        if node is None:
            return None
        whole = {"filesystem": None, "free_bytes": node.size_bytes, "device": describe(node)}
        return {**whole, "memory": memory_beneath(path)}
    if not path.is_dir():
        return None
    node = device_of(path, known)
    return {
        "filesystem": filesystem_of(path),
        "free_bytes": shutil.disk_usage(path).free,
        "device": describe(node) if node else None,
        "memory": memory_beneath(path),
    }


def probe(target: str | None) -> dict[str, Any]:
    """The whole survey; `target` is a folder, a whole drive or None."""
    known = block_devices()
    return {
        "host": host_facts(),
        "devices": [listed(one) for one in known.values()],
        "target": target_facts(Path(target), known) if target else None,
        "clock_s": time.time(),
    }


if __name__ == "__main__":
    print(json.dumps(probe(sys.argv[1] if len(sys.argv) > 1 else None)))
