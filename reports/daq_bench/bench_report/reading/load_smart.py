"""Reads facts/smart-*.json: smartctl's report on each drive, flattened to readings that can be compared.

Promise: a reading is taken over in the drive's own unit and words; only values that are numbers, texts or flags become readings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from daq_bench.bench_model.documents.struct import Struct
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.reading.dataset.machine import Smart
from daq_bench.candidate_kit import plausible
from daq_bench.candidate_kit.smartctl import ATA_ATTRIBUTES, error_count, rows, table

IDENTITY = ("model_name", "serial_number", "firmware_version")
SCSI_LOG = "scsi_error_counter_log"
SCSI_COUNTS = ("total_uncorrected_errors", "total_errors_corrected", "gigabytes_processed")
SCSI_ERRORS = tuple(f"{way} {SCSI_COUNTS[0]}" for way in ("read", "write", "verify"))
LEADING = re.compile(r"\d+")
SCSI = ("scsi_grown_defect_list", "scsi_percentage_used_endurance_indicator")


class Device(Struct, frozen=True):
    """One drive's answer; `data` is smartctl's document."""

    device: str
    status: str
    detail: str | None = None
    data: dict[str, Any] | None = None


class Devices(Struct, frozen=True):
    """facts/smart-before.json, facts/smart-after.json."""

    devices: list[Device]


def smart_of(answers: Devices) -> tuple[Smart, ...]:
    return tuple(
        Smart(
            one.device, one.status, one.detail or None,
            *((tuple(dict(_readings(one.data)).items()), _errors(one.data)) if one.data is not None else ()),
        )
        for one in answers.devices
    )  # fmt: skip


def _readings(data: dict[str, Any]) -> Iterator[tuple[str, float | str]]:
    for key in IDENTITY:
        yield from _plain(key, data.get(key))
    for name, degrees in _plain("temperature", table(data, "temperature").get("current")):
        if isinstance(degrees, float) and plausible.is_running_degrees(degrees):
            yield name, degrees
    yield from _plain("power_on_hours", plausible.power_on_hours(data))
    yield from _plain("self_assessment_passed", table(data, "smart_status").get("passed"))
    for key, value in plausible.health_log(data).items():
        yield from _plain(key, value)
    for row in rows(table(data, ATA_ATTRIBUTES), "table"):
        yield from _attribute(row)
    for key in SCSI:
        yield from _plain(key, data.get(key))
    for way in ("read", "write", "verify"):
        for key in SCSI_COUNTS:
            yield from _plain(f"{way} {key}", table(table(data, SCSI_LOG), way).get(key))


def _attribute(row: dict[str, Any]) -> Iterator[tuple[str, float | str]]:
    """Yields the attribute's count; where the 48 bits hold more than one number, the text begins with it: `31 (Min/Max 19/45)`."""
    text = table(row, "raw").get("string")
    if match := LEADING.match(text) if isinstance(text, str) else None:
        yield _name(row), float(match[0])
    else:
        yield from _plain(_name(row), table(row, "raw").get("value") if "raw" in row else row.get("value"))


def _name(row: dict[str, Any]) -> str:
    if not isinstance(name := row.get("name"), str):
        raise BundleError("facts/smart-*.json", f"an attribute of the drive has no name: {str(row)[:80]}")
    return name


def _errors(data: dict[str, Any]) -> frozenset[str]:
    own = [(row.get("id"), _name(row)) for row in rows(table(data, ATA_ATTRIBUTES), "table")]
    return frozenset([*SCSI_ERRORS, *(name for number, name in own if error_count(number, name))])


def _plain(name: str, value: object) -> Iterator[tuple[str, float | str]]:
    if isinstance(value, bool):
        yield name, "yes" if value else "no"
    elif isinstance(value, int | float):
        yield name, float(value)
    elif isinstance(value, str):
        yield name, value
