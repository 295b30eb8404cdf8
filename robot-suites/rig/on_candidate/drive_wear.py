"""What drives say of the writing that they have taken: counters and health, all drives in one reading. Reads only.

`drive_wear.py NAME ...` (kernel names); prints {result: {boot_id, drives: [...]}} or {error}. A field that a drive does
not report is null. NAND writes come from the OCP data-centre SSD log page (0xC0), recognised by its GUID."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

TOOL_S_MAX = 20
SECTOR_BYTES = 512  # of /sys/block/*/stat, whatever the device's block size
NVME_DATA_UNIT_BYTES = 512_000  # NVMe base specification: thousands of 512 B, rounded up
OCP_LOG, OCP_LOG_BYTES = "0xc0", 512
OCP_GUID = bytes.fromhex(
    "c5af1028eabff2a49c4f6f7cc914d5af"
)  # OCP Datacenter NVMe SSD specification, SMART-20, as the drive sends it
HEALTH = (
    "percentage_used",
    "available_spare",
    "available_spare_threshold",
    "media_errors",
    "power_cycles",
    "unsafe_shutdowns",
)


def tool(name: str) -> str | None:
    return shutil.which(name, path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")


def smart_document(name: str) -> dict[str, Any]:
    """smartctl's JSON for one drive; empty where there is no tool or no answer in time."""
    program = tool("smartctl")
    if program is None:
        return {}
    try:
        # its exit status is a bit mask, which is not 0 for a good answer about an ailing drive
        done = subprocess.run(
            [program, "-j", "-a", f"/dev/{name}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=TOOL_S_MAX,
            check=False,
        )
        document: dict[str, Any] = json.loads(done.stdout)
        return document
    except (subprocess.TimeoutExpired, ValueError):
        return {}


def nand_bytes(page: bytes) -> int | None:
    """Physical media bytes written, of an OCP SMART page; None when the page is another vendor's."""
    if len(page) < OCP_LOG_BYTES or page[496:512] not in (OCP_GUID, OCP_GUID[::-1]):
        return None
    return int.from_bytes(page[0:16], "little")


def ocp_page(name: str) -> bytes:
    program = tool("nvme")
    if program is None or not name.startswith("nvme"):
        return b""
    argv = [program, "get-log", f"/dev/{name}", f"--log-id={OCP_LOG}", f"--log-len={OCP_LOG_BYTES}", "--raw-binary"]
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=TOOL_S_MAX, check=False)
    except subprocess.TimeoutExpired:
        return b""
    return done.stdout if done.returncode == 0 else b""


def reading_of(name: str) -> dict[str, Any]:
    """One drive. `written_bytes` is the drive's own count where it keeps one, else the kernel's of this boot."""
    fields = Path(f"/sys/block/{name}/stat").read_text(encoding="ascii").split()
    log = smart_document(name).get("nvme_smart_health_information_log", {})
    units = log.get("data_units_written")
    own = units is not None
    return {
        "name": name,
        "counter": "nvme" if own else "kernel",
        "written_bytes": units * NVME_DATA_UNIT_BYTES if own else int(fields[6]) * SECTOR_BYTES,
        "step_bytes": NVME_DATA_UNIT_BYTES if own else SECTOR_BYTES,
        "nand_bytes": nand_bytes(ocp_page(name)),
        **{key: log.get(key) for key in HEALTH},
    }


def main(names: list[str]) -> dict[str, Any]:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return {"result": {"boot_id": boot, "drives": [reading_of(name) for name in names]}}
    except (OSError, IndexError) as error:
        return {"error": f"the drives' counters cannot be read: {error}"}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
