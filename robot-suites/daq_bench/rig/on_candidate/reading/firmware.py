"""The firmware of the machine's drives, BIOS, network cards and, with `bmc`, its BMC asked in band: `firmware.py [bmc]`. Changes nothing.

Prints {result: [{kind, name, version, source}]}. `version` is null where a part is there and does not tell; a part that is not there has no
row. A drive is asked by smartctl, since the kernel keeps what it read when it found the drive; sysfs is second."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

from daq_bench.candidate_kit.lsblk import serial_of
from daq_bench.candidate_kit.nvme_paths import drive_of_path
from daq_bench.candidate_kit.smartctl import document_of
from daq_bench.candidate_kit.sysfs import text_of
from daq_bench.candidate_kit.tools import ask

TOOL_S_MAX = 60
BMC_TRIES, BMC_PAUSE_S = 3, 10.0  # a BMC that is busy answers a little later
IPMI_DEVICES = ("dev/ipmi0", "dev/ipmi/0", "dev/ipmidev/0")
NO_DRIVES = re.compile(r"loop|ram|zram|dm-|md|sr|fd|nbd")
UNTOLD = ("", "N/A", "n/a")
SAS_REVISION = ("scsi_revision", "revision")  # of smartctl 7.3 and newer, and of older ones


def said(*words: str) -> str:
    answer = ask(*words, timeout_s=TOOL_S_MAX)
    return answer.text if answer else ""


def drives(root: Path) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    folder = root / "sys/block"
    for name in sorted(os.listdir(folder)) if folder.is_dir() else ():
        device = folder / name / "device"
        if NO_DRIVES.match(name) or drive_of_path(name) or not device.exists():
            continue
        serial, version, source = asked(name)
        if version is None:
            version, source = text_of(device / "firmware_rev") or text_of(device / "rev"), "sysfs"
        serial = serial or serial_of(folder / name) or text_of(device / "wwid") or name
        found.setdefault(serial, part("drive", serial, version, source))  # namespaces of one drive share its firmware
    return list(found.values())


def asked(name: str) -> tuple[str | None, str | None, str]:
    """(serial, firmware, source) by the drive itself."""
    serial, version = told(said("smartctl", "-j", "-i", f"/dev/{name}") or "{}")
    return serial, version, "smartctl"


def told(text: str) -> tuple[str | None, str | None]:
    """(serial, firmware) of smartctl's JSON."""
    document = document_of(text) or {}

    def first(*keys: str) -> str | None:
        texts = (document.get(key) for key in keys)
        return next((one.strip() for one in texts if isinstance(one, str) and one.strip()), None)

    return first("serial_number"), first("firmware_version", *SAS_REVISION)


def bios(root: Path) -> list[dict[str, Any]]:
    folder = root / "sys/class/dmi/id"
    if not folder.is_dir():
        return []
    told = [text_of(folder / name) for name in ("bios_vendor", "bios_version", "bios_date", "ec_firmware_release")]
    return [part("bios", "system", " ".join(one for one in told if one) or None, "dmi")]


def cards(root: Path) -> list[dict[str, Any]]:
    """By PCI address and port: an interface may be renamed."""
    found = []
    folder = root / "sys/class/net"
    for name in sorted(os.listdir(folder)) if folder.is_dir() else ():
        device = folder / name / "device"
        if not device.exists():
            continue
        lines = said("ethtool", "-i", name).splitlines()
        version = next((line.partition(":")[2].strip() for line in lines if line.startswith("firmware-version:")), "")
        where = f"{device.resolve().name} port {text_of(folder / name / 'phys_port_name') or text_of(folder / name / 'dev_port') or 0}"
        found.append(part("nic", where, None if version in UNTOLD else version, "ethtool"))
    return found


def bmc(root: Path) -> list[dict[str, Any]]:
    if not any((root / device).exists() for device in IPMI_DEVICES):
        return []
    for left in reversed(range(BMC_TRIES)):
        version = bmc_version(said("ipmitool", "-I", "open", "mc", "info"))
        if version or not left:
            break
        time.sleep(BMC_PAUSE_S)
    return [part("bmc", "system", version, "ipmitool")]


def bmc_version(text: str) -> str | None:
    """Revision and auxiliary revision, which makers use for the build, of `ipmitool mc info`."""
    revision = re.search(r"^Firmware Revision\s*:\s*(\S+)", text, re.MULTILINE)
    if revision is None:
        return None
    _, _, rest = text.partition("Aux Firmware Rev Info")
    extra = re.findall(r"^\s+(0x[0-9a-fA-F]{2})\s*$", rest, re.MULTILINE)
    return " ".join([revision.group(1), *extra])


def part(kind: str, name: str, version: str | None, source: str) -> dict[str, Any]:
    return {"kind": kind, "name": name, "version": version, "source": source}


def firmware(with_bmc: bool, root: Path = Path("/")) -> list[dict[str, Any]]:
    return [*drives(root), *bios(root), *cards(root), *(bmc(root) if with_bmc else [])]


if __name__ == "__main__":
    print(json.dumps({"result": firmware("bmc" in sys.argv[1:])}))
