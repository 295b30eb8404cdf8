"""Reads facts/smart-*.json: what smartctl reported of each drive, flattened to readings that can be compared.

Promise: a reading is taken over in the drive's own unit and words; only values that are numbers, texts or flags become readings.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench_report.base.fields import Node
from bench_report.reading.dataset import Smart

IDENTITY = ("model_name", "serial_number", "firmware_version")
NVME_LOG = "nvme_smart_health_information_log"
ATA_TABLE = "ata_smart_attributes"
FURTHER = (
    ("temperature", "current", "temperature"),
    ("power_on_time", "hours", "power_on_hours"),
    ("smart_status", "passed", "self_assessment_passed"),
)
SCSI = ("scsi_grown_defect_list", "scsi_percentage_used_endurance_indicator")


def smart_of(node: Node) -> tuple[Smart, ...]:
    return tuple(
        Smart(
            item.at("device").as_text(), item.at("status").as_text(), item.text("detail") or None,
            tuple(dict(_readings(data)).items()) if (data := item.find("data")) and isinstance(data.value, dict) else (),
        )
        for item in node.at("devices").items()
    )  # fmt: skip


def _readings(data: Node) -> Iterator[tuple[str, float | str]]:
    for key in IDENTITY:
        yield from _plain(key, data.find(key))
    for group, key, name in FURTHER:
        found = data.find(group)
        yield from _plain(name, found.find(key) if found and isinstance(found.value, dict) else None)
    log = data.find(NVME_LOG)
    for key, value in log.entries() if log else ():
        yield from _plain(key, value)
    table = data.find(ATA_TABLE)
    for row in table.list("table") if table else ():
        raw = row.find("raw")
        yield from _plain(row.at("name").as_text(), raw.find("value") if raw else row.find("value"))
    for key in SCSI:
        yield from _plain(key, data.find(key))


def _plain(name: str, node: Node | None) -> Iterator[tuple[str, float | str]]:
    value = node.value if node else None
    if isinstance(value, bool):
        yield name, "yes" if value else "no"
    elif isinstance(value, int | float):
        yield name, float(value)
    elif isinstance(value, str):
        yield name, value
