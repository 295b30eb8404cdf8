"""Reads facts/smart-*.json: smartctl's report on each drive, flattened to readings that can be compared.

Promise: a reading is taken over in the drive's own unit and words; only values that are numbers, texts or flags become readings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from daq_bench.bench_model.behaviour.smart_facts import counts_errors
from daq_bench.bench_report.base.fields import Node
from daq_bench.bench_report.reading.dataset.machine import Smart

IDENTITY = ("model_name", "serial_number", "firmware_version")
NVME_LOG = "nvme_smart_health_information_log"
ATA_TABLE = "ata_smart_attributes"
FURTHER = (
    ("power_on_time", "hours", "power_on_hours"),
    ("smart_status", "passed", "self_assessment_passed"),
)
SCSI_LOG = "scsi_error_counter_log"
SCSI_COUNTS = ("total_uncorrected_errors", "total_errors_corrected", "gigabytes_processed")
SCSI_ERRORS = tuple(f"{way} {SCSI_COUNTS[0]}" for way in ("read", "write", "verify"))
LEADING = re.compile(r"\d+")
SCSI = ("scsi_grown_defect_list", "scsi_percentage_used_endurance_indicator")


def smart_of(node: Node) -> tuple[Smart, ...]:
    return tuple(
        Smart(
            item.at("device").as_text(), item.at("status").as_text(), item.text("detail") or None,
            *((tuple(dict(_readings(data)).items()), _errors(data))
              if (data := item.find("data")) and isinstance(data.value, dict) else ()),
        )
        for item in node.at("devices").items()
    )  # fmt: skip


def _readings(data: Node) -> Iterator[tuple[str, float | str]]:
    for key in IDENTITY:
        yield from _plain(key, data.find(key))
    temperature = data.find("temperature")
    current = temperature.find("current") if temperature and isinstance(temperature.value, dict) else None
    if current and current.value != 0:  # values that tools and controllers give when they have no temperature
        yield from _plain("temperature", current)
    for group, key, name in FURTHER:
        found = data.find(group)
        yield from _plain(name, found.find(key) if found and isinstance(found.value, dict) else None)
    log = data.find(NVME_LOG)
    for key, value in log.entries() if log else ():
        yield from _plain(key, value)
    table = data.find(ATA_TABLE)
    for row in table.list("table") if table else ():
        yield from _attribute(row)
    for key in SCSI:
        yield from _plain(key, data.find(key))
    counters = data.find(SCSI_LOG)
    for way in ("read", "write", "verify") if counters and isinstance(counters.value, dict) else ():
        table = counters.find(way) if counters else None
        for key in SCSI_COUNTS if table and isinstance(table.value, dict) else ():
            yield from _plain(f"{way} {key}", table.find(key) if table else None)


def _attribute(row: Node) -> Iterator[tuple[str, float | str]]:
    """Yields the attribute's count; where the 48 bits hold more than one number, the text begins with it: `31 (Min/Max 19/45)`."""
    raw, name = row.find("raw"), row.at("name").as_text()
    text = raw.find("string") if raw else None
    match = LEADING.match(text.value) if text and isinstance(text.value, str) else None
    if match:
        yield name, float(match[0])
    else:
        yield from _plain(name, raw.find("value") if raw else row.find("value"))


def _errors(data: Node) -> frozenset[str]:
    table = data.find(ATA_TABLE)
    rows = [(row.find("id"), row.at("name").as_text()) for row in (table.list("table") if table else ())]
    return frozenset([*SCSI_ERRORS, *(name for number, name in rows if number and counts_errors(number.value, name))])


def _plain(name: str, node: Node | None) -> Iterator[tuple[str, float | str]]:
    value = node.value if node else None
    if isinstance(value, bool):
        yield name, "yes" if value else "no"
    elif isinstance(value, int | float):
        yield name, float(value)
    elif isinstance(value, str):
        yield name, value
