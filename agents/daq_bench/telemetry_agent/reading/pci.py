"""Finds the PCI function that carries each drive or network interface, by the links of sysfs.

Promise: a function goes by the name that the rest of the telemetry uses for what it carries (nvme0n1, eth0), or by
its address where it carries several (the disks of one host adapter). A further port of a drive with native multipath goes by
its path (nvme0c1n1).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from daq_bench.candidate_kit.nvme_paths import NAMESPACE, drive_of_path
from daq_bench.candidate_kit.sysfs import ADDRESS
from daq_bench.telemetry_agent.reading.attributes import readable_name

_PORT, _MPT = re.compile(r"ata\d+|\d+:\d+:\d+:\d+"), re.compile(r"mpt[23]sas")
_NO_DISKS = re.compile(r"sr\d|fd\d|loop\d|ram\d|zram\d|dm-|md")


def is_nvme(name: str) -> bool:
    """Says whether this is the name of an NVMe drive or of a path to one."""
    return NAMESPACE.fullmatch(name) is not None


def function_of(device: Path) -> Path | None:
    """The PCI function behind a `device` link of sysfs, or None."""
    # A drive with native multipath hangs on a subsystem, which links to its controllers.
    for start in (device, *sorted(device.glob("nvme[0-9]*"))):
        path = Path(os.path.realpath(start))
        for at in (path, *path.parents):
            if ADDRESS.fullmatch(at.name):
                return at
    return None


def disks_behind(root: Path) -> dict[str, list[str]]:
    """SCSI and ATA disks by each name that the kernel's log may have for what they hang on: the function's address, an ATA port
    (`ata3`), their own SCSI address (`6:0:3:0`), and an adapter of Broadcom's (`mpt3sas_cm0`: its host's `unique_id`, mpt3sas_scsih.c)."""
    found: dict[str, list[str]] = {}
    hosts = {host.name: host for host in (root / "sys/class/scsi_host").glob("host*")}
    for disk in sorted((root / "sys/block").glob("sd*")):
        parts = Path(os.path.realpath(disk / "device")).parts
        names = [one for one in parts if ADDRESS.fullmatch(one)][-1:]
        names += [one for one in parts if _PORT.fullmatch(one)]
        names += [adapter for one in parts if one in hosts and (adapter := _adapter(hosts[one]))]
        for name in names:
            found.setdefault(name, []).append(readable_name(disk.name))
    return found


def _adapter(host: Path) -> str:
    try:
        driver, number = ((host / name).read_text(encoding="ascii").strip() for name in ("proc_name", "unique_id"))
    except (OSError, ValueError):
        return ""
    return f"{driver}_cm{number}" if _MPT.fullmatch(driver) else ""


def bridges_above(function: Path) -> list[Path]:
    """The ports between a function and the processor, the nearest first."""
    return [parent for parent in function.parents if ADDRESS.fullmatch(parent.name)]


def functions_by_name(root: Path) -> dict[str, Path]:
    """PCI functions that carry drives or network interfaces, by name."""
    carried: dict[Path, list[str]] = {}
    for folder in (root / "sys/block", root / "sys/class/net"):
        names = os.listdir(folder) if folder.is_dir() else ()
        for name in sorted(names, key=lambda one: (drive_of_path(one) is not None, one)):
            if _NO_DISKS.match(name) and folder.name == "block":
                continue
            function = function_of(folder / name / "device")
            if function is not None and not (drive_of_path(name) and _drive_named(carried.get(function))):
                carried.setdefault(function, []).append(readable_name(name))
    return {_name(function, names): function for function, names in carried.items()}


def _drive_named(names: list[str] | None) -> bool:
    return any(drive_of_path(name) is None for name in names or ())


def _name(function: Path, names: list[str]) -> str:
    return names[0] if len(names) == 1 or all(map(is_nvme, names)) else function.name
