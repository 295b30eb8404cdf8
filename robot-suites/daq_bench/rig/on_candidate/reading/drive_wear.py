"""Reads drives' own accounts of the data written to them: counters and health, all drives in one reading. Changes nothing.

`drive_wear.py NAME ...` (kernel names); prints {result: {boot_id, drives: [...]}} or {error}. A field that a drive does
not report is null; so is one of which it reports nonsense, which `faults` of that drive names with its serial. NAND
writes come from the OCP data-centre SSD log page (C0h), recognised by its GUID; from Intel's and Solidigm's log page CAh,
whose unit is proven by its count of host writes; or from an ATA attribute whose name states the unit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from daq_bench.candidate_kit import nand_pages, plausible
from daq_bench.candidate_kit.nand_pages import (
    INTEL_PAGE,
    INTEL_UNIT_BYTES,
    INTEL_VENDORS,
    OCP_PAGE,
    PAGE_BYTES,
    is_ocp,
)
from daq_bench.candidate_kit.smartctl import (
    ARGUMENTS,
    NVME_HEALTH,
    UNCORRECTABLE_STATISTIC,
    document_of,
    named_writes,
    stated,
    statistics,
    table,
    used_percent,
    whole_number,
    written,
)
from daq_bench.candidate_kit.tools import ask
from daq_bench.rig.on_candidate.reading import disk_counters

TRIES = 2
TOOL_S_MAX = 120  # ends a hang: a drive answers late while it is written to
SECTOR_BYTES = disk_counters.SECTOR_BYTES
NVME_DATA_UNIT_BYTES = 512_000  # NVMe base specification: thousands of 512 B, rounded up
HEALTH = (
    "percentage_used",
    "available_spare",
    "available_spare_threshold",
    "media_errors",
    "power_cycles",
    "unsafe_shutdowns",
)


def smart_document(name: str) -> dict[str, Any]:
    """smartctl's JSON for one drive; empty where there is no tool or no answer in time."""
    # its exit status is a bit mask, which is not 0 for a good answer about an ailing drive
    answer = ask("smartctl", *ARGUMENTS, f"/dev/{name}", timeout_s=TOOL_S_MAX)
    return (document_of(answer.text) if answer else None) or {}


def told_document(name: str) -> dict[str, Any]:
    """The same, asked again where the answer lacks an NVMe drive's health log: a log that fails once is no drive without one."""
    document: dict[str, Any] = {}
    for _ in range(TRIES if name.startswith("nvme") else 1):
        document = smart_document(name)
        if not document or plausible.health_log(document):  # no second wait for a tool that does not answer
            break
    return document


def nand_bytes(page: bytes) -> int | None:
    """Physical media bytes written, of an OCP SMART page; None when the page is another vendor's, or counts none.

    A number whose bits are all ones is no count: it never grows, as if no data were ever written onto the NAND."""
    if len(page) != PAGE_BYTES or not is_ocp(page) or page[0:16] == b"\xff" * 16:
        return None
    return int.from_bytes(page[0:16], "little")


def intel_nand_bytes(page: bytes, host_bytes: int) -> int | None:
    """Returns NAND writes from Intel's page; None where it counts none, or in a unit that is not known."""
    try:
        return nand_pages.intel_nand_bytes(page, host_bytes)
    except ValueError:
        return None


def ata_nand_bytes(document: dict[str, Any], faults: list[str]) -> tuple[int, int] | None:
    """(bytes, step) of the attribute whose name, given by smartctl's drive database, states the unit."""
    for name, value, unit in named_writes(document, nand=True):
        written = count(value, name, faults, unit)
        return None if written is None else (written, unit)
    return None


def count(value: Any, name: str, faults: list[str], factor: int = 1) -> int | None:
    """A count; None where there is none, and for nonsense, which is named in `faults`: it costs this value alone."""
    try:
        return None if stated(value) is None else whole_number(value, name, factor)
    except ValueError as error:
        faults.append(str(error))
        return None


def health(log: dict[str, Any], faults: list[str]) -> dict[str, int | None]:
    """The drive's account of its health; null for what it does not state, and for what cannot be."""
    found = {key: count(log.get(key), key, faults) for key in HEALTH}
    most = plausible.HIGHEST
    return {key: None if one is None or one > most.get(f"{key}_percent", one) else one for key, one in found.items()}


def other_logs(document: dict[str, Any], faults: list[str]) -> dict[str, Any]:
    """The words of a drive that is not NVMe about the same, under NVMe's names: the life that is used (ATA device statistics; SBC-4,
    Solid State Media log page 11h), how often it was switched on, and reads and writes that it could not correct (ATA device statistics;
    SPC-4, error counter pages 02h and 03h)."""
    if NVME_HEALTH in document:
        return {}
    found: dict[str, Any] = {
        "percentage_used": used_percent(document),
        "power_cycles": document.get("power_cycle_count"),
    }
    if table(document, "device").get("protocol") != "SCSI":
        return {**found, "media_errors": statistics(document).get(UNCORRECTABLE_STATISTIC)}
    log = table(document, "scsi_error_counter_log")
    errors = [table(log, way).get("total_uncorrected_errors") for way in ("read", "write")]
    known = [count(one, "total_uncorrected_errors", faults) for one in errors]
    if None not in known:
        found["media_errors"] = sum(one for one in known if one is not None)
    return found


def log_page(name: str, number: int) -> bytes:
    if not name.startswith("nvme"):
        return b""
    words = ("get-log", f"/dev/{name}", f"--log-id={number:#x}", f"--log-len={PAGE_BYTES}", "--raw-binary")
    answer = ask("nvme", *words, timeout_s=TOOL_S_MAX)
    return answer.output if answer and answer.status == 0 else b""


def nand_writes(name: str, document: dict[str, Any], host_bytes: int | None, faults: list[str]) -> dict[str, Any]:
    """Returns `nand_bytes`, its unit, and the log that it is from; all null where no log counts it."""
    found: tuple[int | None, int | None, str | None] = (None, None, None)
    written = nand_bytes(log_page(name, OCP_PAGE))
    by_ata = ata_nand_bytes(document, faults)
    if written is not None:
        found = (written, 1, "OCP log page C0h")
    elif by_ata:
        found = (*by_ata, "ATA attribute")
    elif host_bytes is not None and table(document, "nvme_pci_vendor").get("id") in INTEL_VENDORS:
        written = intel_nand_bytes(log_page(name, INTEL_PAGE), host_bytes)
        found = (written, INTEL_UNIT_BYTES, "Intel log page CAh") if written is not None else found
    return dict(zip(("nand_bytes", "nand_step_bytes", "nand_source"), found))


def reading_of(name: str) -> dict[str, Any]:
    """One drive. `written_bytes` is the drive's own count where it keeps a credible one, else the kernel's of this boot."""
    fields = disk_counters.counters(name)
    document = told_document(name)
    log = plausible.health_log(document)
    faults: list[str] = []
    units = log.get("data_units_written_s", log.get("data_units_written"))
    host_bytes = count(units, "data_units_written", faults, NVME_DATA_UNIT_BYTES)
    of_kernel = ("kernel", fields[disk_counters.WRITTEN_SECTORS] * SECTOR_BYTES, SECTOR_BYTES)
    of_nvme = None if host_bytes is None else ("nvme", host_bytes, NVME_DATA_UNIT_BYTES)
    told = of_nvme or (None if NVME_HEALTH in document else written(document)) or of_kernel
    row = {
        "name": name,
        **dict(zip(("counter", "written_bytes", "step_bytes"), told)),
        **nand_writes(name, document, host_bytes, faults),
        **health(log or other_logs(document, faults), faults),
    }
    who = f"{name} (serial {document.get('serial_number') or 'unknown'})"
    return {**row, "faults": [f"{who}: {fault}" for fault in faults]} if faults else row


def main(names: list[str]) -> dict[str, Any]:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return {"result": {"boot_id": boot, "drives": [reading_of(name) for name in names]}}
    except (OSError, ValueError) as error:
        return {"error": f"the drives' counters cannot be read: {error}"}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
