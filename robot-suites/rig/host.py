"""What a Linux machine says of itself: identity, target device, free space. Reading (/proc, /sys, lsblk) apart from judging."""

from __future__ import annotations

import json
import os
import platform
import re
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench_model.errors import BenchError
from bench_model.profiles import Candidate
from bench_model.units import binary_label, parse_size
from rig.shell import Shell

LSBLK = [
    "lsblk",
    "--json",
    "--bytes",
    "--output",
    "NAME,PATH,KNAME,TYPE,SIZE,MODEL,SERIAL,REV,WWN,ROTA,TRAN,PKNAME,MAJ:MIN",
]


@dataclass(frozen=True)
class Device:
    """A whole drive. None: the device does not report it (virtual disks often report neither model nor serial)."""

    name: str
    model: str | None
    serial: str | None
    firmware: str | None
    wwn: str | None
    size_bytes: int
    numa_node: int | None
    rotational: bool
    transport: str | None
    pcie_link: str | None


def host_facts() -> dict[str, Any]:
    """hostname, kernel, os, architecture, cpu_model, cpus, memory_bytes, numa_nodes of this machine."""
    return {
        "hostname": socket.gethostname(),
        "kernel": platform.release(),
        "os": os_name(Path("/etc/os-release").read_text(encoding="utf-8")),
        "architecture": platform.machine(),
        "cpu_model": cpu_model(Path("/proc/cpuinfo").read_text(encoding="utf-8")),
        "cpus": os.cpu_count() or 1,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "numa_nodes": max(1, len(list(Path("/sys/devices/system/node").glob("node[0-9]*")))),
    }


def os_name(os_release: str) -> str:
    match = re.search(r'^PRETTY_NAME="?([^"\n]*)', os_release, re.MULTILINE)
    return match.group(1) if match else "unknown"


def cpu_model(cpuinfo: str) -> str:
    """The CPU's model name; "unknown" where the kernel gives none (some ARM machines)."""
    match = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return match.group(1).strip() if match else "unknown"


def block_devices(shell: Shell) -> list[dict[str, Any]]:
    """Every block device as lsblk gives it, flattened."""
    devices: list[dict[str, Any]] = []
    pending = json.loads(shell.run(LSBLK, timeout_s=20).check("lsblk").stdout)["blockdevices"]
    while pending:
        device = pending.pop(0)
        pending.extend(device.pop("children", []))
        devices.append(device)
    return devices


def device_of(path: Path, devices: list[dict[str, Any]]) -> Device | None:
    """The whole drive under the file system of `path`; None where there is no single one (network, memory, RAID of many)."""
    number = path.stat().st_dev
    by_name = {device["kname"]: device for device in devices}
    node = next((d for d in devices if d["maj:min"] == f"{os.major(number)}:{os.minor(number)}"), None)
    while node is not None and node["pkname"] and node["type"] != "disk":
        node = by_name.get(node["pkname"])
    return describe(node) if node else None


def describe(node: dict[str, Any], sys_block: Path = Path("/sys/block")) -> Device:
    """`node` of lsblk together with what sysfs tells of its place in the machine."""
    device = (sys_block / node["kname"] / "device").resolve()
    return Device(
        name=node["kname"],
        model=_text(node["model"]),
        serial=_text(node["serial"]),
        firmware=_text(node["rev"]) or _sysfs(device / "firmware_rev"),
        wwn=_text(node["wwn"]),
        size_bytes=int(node["size"]),
        numa_node=_numa_node(device),
        rotational=bool(node["rota"]),
        transport=_text(node["tran"]),
        pcie_link=_pcie_link(device),
    )


def _text(value: str | None) -> str | None:
    return (value or "").strip() or None


def _sysfs(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip() or None
    except OSError:
        return None


def _numa_node(device: Path) -> int | None:
    for folder in (device, *device.parents):
        text = _sysfs(folder / "numa_node")
        if text is not None:
            return int(text) if int(text) >= 0 else None
    return None


def _pcie_link(device: Path) -> str | None:
    """`8.0 GT/s PCIe x4` of the nearest PCIe function above the device."""
    for folder in (device, *device.parents):
        speed, width = _sysfs(folder / "current_link_speed"), _sysfs(folder / "current_link_width")
        if speed and width:
            return f"{speed} x{width}"
    return None


def filesystem_of(path: Path, shell: Shell) -> str:
    """Type of the file system that holds `path`, such as `ext4`."""
    # df looks at the very mount that a write would reach; findmnt lists every mount that is stacked there.
    argv: list[str | Path] = ["df", "--output=fstype", path]
    name = shell.run(argv, timeout_s=20).check("df").stdout.splitlines()[-1].strip()
    if name != "-":
        return name
    # In a chroot whose root is no mount point df finds none; stat asks the file system itself.
    return shell.run(["stat", "--file-system", "--format=%T", path], timeout_s=20).check("stat").stdout.strip()


def check_identity(
    candidate: Candidate, host: dict[str, Any], devices: list[dict[str, Any]], target: Device | None
) -> list[dict[str, Any]]:
    """One {subject, declared, found, ok} for everything that the inventory declares of the candidate."""
    declared = candidate.identity
    checks: list[dict[str, Any]] = []

    def add(subject: str, wanted: str, found: str, ok: bool) -> None:
        checks.append({"subject": subject, "declared": wanted, "found": found, "ok": ok})

    if "architectures" in declared:
        names = declared["architectures"]
        add("architecture", " or ".join(names), host["architecture"], host["architecture"] in names)
    if "cpu_model" in declared:
        add("CPU model", declared["cpu_model"], host["cpu_model"], declared["cpu_model"] in host["cpu_model"])
    if "cpus_min" in declared:
        add("CPUs", f"at least {declared['cpus_min']}", str(host["cpus"]), host["cpus"] >= declared["cpus_min"])
    if "memory_min" in declared:
        least = parse_size(declared["memory_min"])
        found = f"{host['memory_bytes'] / 2**30:.1f} GiB"
        add("memory", f"at least {binary_label(least)}", found, host["memory_bytes"] >= least)
    for drive in declared.get("drives", []):
        checks.extend(_check_drive(drive, devices))
    if candidate.drive_serial:
        serial = (target.serial if target else None) or "no drive with a serial"
        add("drive under the target folder", candidate.drive_serial, serial, serial == candidate.drive_serial)
    return checks


def differences(checks: list[dict[str, Any]]) -> str:
    """One phrase per check that does not hold; empty when all do."""
    wrong = [check for check in checks if not check["ok"]]
    return "; ".join(f"{check['subject']}: declared {check['declared']}, found {check['found']}" for check in wrong)


def _check_drive(drive: dict[str, str], devices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    serial = drive["serial"]
    node = next((device for device in devices if _text(device["serial"]) == serial), None)
    checks = [
        {
            "subject": f"drive {serial}",
            "declared": "present",
            "found": node["path"] if node else "absent",
            "ok": node is not None,
        }
    ]
    found = asdict(describe(node)) if node else {"model": None, "firmware": None}
    if "model" in drive:
        model = found["model"] or "not reported"
        checks.append(
            {"subject": f"model of {serial}", "declared": drive["model"], "found": model, "ok": drive["model"] in model}
        )
    if "firmware" in drive:
        firmware = found["firmware"] or "not reported"
        checks.append(
            {
                "subject": f"firmware of {serial}",
                "declared": drive["firmware"],
                "found": firmware,
                "ok": firmware == drive["firmware"],
            }
        )
    return checks


def require_target_directory(path: Path) -> None:
    """Creates the folder of a scratch target. Raises BenchError when that is not possible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BenchError(
            f"target directory {path} cannot be made: {error.strerror}. Correct target.directory in the inventory"
        ) from None
