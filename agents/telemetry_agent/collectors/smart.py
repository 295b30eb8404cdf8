"""Drive health through `smartctl -j -a`, every 10 seconds at most; of NVMe drives also the thermal management
counters, which smartctl does not print, from the same log page through `nvme smart-log`, where nvme-cli is installed.

Promise: only reads; every call is bounded by a timeout; JSON that is not JSON is a failure, never an empty
result. A drive that does not answer is a fault; when none answers the collector is unsupported. NVMe data
units become bytes (1000 x 512 B each, NVMe base specification); vendor-specific ATA attributes whose unit
differs by maker are left out.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

from telemetry_agent.collector import SLOW_PERIOD_S, Reading, Unsupported, reading_now
from telemetry_agent.collectors.block_device import is_whole_disk
from telemetry_agent.point import FieldValue, Point

TIMEOUT_S = 5.0
NVME_DATA_UNIT_BYTES = 512_000
COMMAND_LINE_OR_OPEN_FAILED = 0b11  # smartctl(8): the exit status' two lowest bits
ATA_REALLOCATED_SECTORS = 5

THERMAL_KEY = "thermal:"  # texts["thermal:nvme0n1"] holds the drive's raw log page as hexadecimal digits
# NVMe base specification, SMART / Health Information log: four 32-bit counters from this byte on
THERMAL_AT_BYTE = 216
THERMAL_FIELDS = (
    "thermal_management_1_transitions",
    "thermal_management_2_transitions",
    "thermal_management_1_time_s",
    "thermal_management_2_time_s",
)
LOG_PAGE_BYTES = 512

# NVMe health log name -> (field, factor)
NVME_FIELDS = {
    "critical_warning": ("critical_warning", 1),
    "available_spare": ("available_spare_percent", 1),
    "percentage_used": ("percentage_used_percent", 1),
    "data_units_read": ("data_read_bytes", NVME_DATA_UNIT_BYTES),
    "data_units_written": ("data_written_bytes", NVME_DATA_UNIT_BYTES),
    "unsafe_shutdowns": ("unsafe_shutdowns", 1),
    "media_errors": ("media_errors", 1),
    "num_err_log_entries": ("error_log_entries", 1),
    "warning_temp_time": ("warning_temperature_time_min", 1),
    "critical_comp_time": ("critical_temperature_time_min", 1),
}


def answer_fault(document: dict[str, Any]) -> str | None:
    """Why this answer holds no health data, or None when it does."""
    status = document.get("smartctl", {}).get("exit_status")
    messages = [message.get("string", "") for message in document.get("smartctl", {}).get("messages", [])]
    if status is None or status & COMMAND_LINE_OR_OPEN_FAILED:
        return "; ".join(messages) or f"smartctl exit status {status}"
    if not health_fields(document):
        return "; ".join(messages) or "smartctl reports no health data"
    return None


def health_fields(document: dict[str, Any]) -> dict[str, FieldValue]:
    """Fields of one drive; only those that it reports."""
    fields: dict[str, FieldValue] = {}
    if "passed" in document.get("smart_status", {}):
        fields["passed"] = bool(document["smart_status"]["passed"])
    if "current" in document.get("temperature", {}):
        fields["temperature_degc"] = float(document["temperature"]["current"])
    if "hours" in document.get("power_on_time", {}):
        fields["power_on_hours"] = int(document["power_on_time"]["hours"])
    log = document.get("nvme_smart_health_information_log", {})
    for source, (field, factor) in NVME_FIELDS.items():
        if source in log:
            fields[field] = int(log[source]) * factor
    for attribute in document.get("ata_smart_attributes", {}).get("table", []):
        if attribute["id"] == ATA_REALLOCATED_SECTORS:
            fields["reallocated_sectors"] = int(attribute["raw"]["value"])
    return fields


def thermal_fields(page: bytes) -> dict[str, FieldValue]:
    """The thermal management counters of a raw log page."""
    if len(page) != LOG_PAGE_BYTES:
        raise ValueError(f"nvme smart-log: {len(page)} B, a log page has {LOG_PAGE_BYTES} B")
    return dict(zip(THERMAL_FIELDS, struct.unpack_from("<4I", page, THERMAL_AT_BYTE)))


class Smart:
    """Collector of the measurement `smart`."""

    name = "smart"

    def __init__(self, period_s: float, root: Path = Path("/"), timeout_s: float = TIMEOUT_S) -> None:
        self.period_s = max(SLOW_PERIOD_S, period_s)
        self._sys_block = root / "sys/block"
        self._timeout_s = timeout_s

    def read(self) -> Reading:
        """Ask every whole disk; texts hold the answers by device name."""
        program = shutil.which("smartctl", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        if program is None:
            raise Unsupported("smartctl is not installed (package smartmontools)")
        texts, faults = {}, []
        for name in self._drives():
            text, fault = self._ask(program, name)
            if fault:
                faults.append(f"{name}: {fault}")
            else:
                texts[name] = text
        nvme = shutil.which("nvme", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        if nvme is not None:
            for name in [name for name in texts if name.startswith("nvme")]:
                page, fault = self._ask_thermal(nvme, name)
                if fault:
                    faults.append(f"{name}: {fault}")
                else:
                    texts[THERMAL_KEY + name] = page
        if not texts:
            raise Unsupported("no drive answers SMART: " + ("; ".join(faults) or "no drive found"))
        return reading_now(texts, tuple(faults))

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per drive that answered."""
        points = []
        for name, text in reading.texts.items():
            if name.startswith(THERMAL_KEY):
                continue
            document = json.loads(text)
            tags = {"device": name}
            for source, tag in (("serial_number", "serial"), ("model_name", "model")):
                value = str(document.get(source, "")).strip()
                if value:
                    tags[tag] = value
            fields = health_fields(document)
            page = reading.texts.get(THERMAL_KEY + name)
            if page is not None:
                fields.update(thermal_fields(bytes.fromhex(page)))
            points.append(Point("smart", tuple(sorted(tags.items())), fields, reading.time_ns))
        return points

    def _drives(self) -> list[str]:
        try:
            names = sorted(path.name for path in self._sys_block.iterdir())
        except FileNotFoundError:
            return []
        return [name for name in names if is_whole_disk(self._sys_block, name) and not name.startswith("md")]

    def _ask(self, program: str, name: str) -> tuple[str, str | None]:
        try:
            done = subprocess.run(
                [program, "-j", "-a", f"/dev/{name}"],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=self._timeout_s,
                check=False,  # a bit mask, which is not 0 for a good answer about an ailing drive
            )
        except subprocess.TimeoutExpired:
            return "", f"smartctl gave no answer within {self._timeout_s:g} s"
        try:
            document = json.loads(done.stdout)
        except ValueError:
            head = (done.stdout or done.stderr)[:80]
            raise ValueError(f"smartctl -j -a /dev/{name}: not JSON: {head!r}") from None
        return done.stdout, answer_fault(document)

    def _ask_thermal(self, program: str, name: str) -> tuple[str, str | None]:
        try:
            done = subprocess.run(
                [program, "smart-log", "--raw-binary", f"/dev/{name}"],
                capture_output=True,
                timeout=self._timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "", f"nvme smart-log gave no answer within {self._timeout_s:g} s"
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip()
            return "", f"nvme smart-log: {said or f'exit status {done.returncode}'}"
        return done.stdout.hex(), None
