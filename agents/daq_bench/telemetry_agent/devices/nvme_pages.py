"""NVMe's own data structures as the drive sends them: SMART / Health log (02h), Identify Controller, supported log pages.

They are the same for every version of nvme-cli, whose printed names, units and number formats differ (percent_used and
percentage_used, K and degrees C, 128-bit counts as numbers, strings or 1e+21). Layout: NVMe base specification 2.0.
Temperatures are K - 273 degrees C, as smartctl and nvme-cli print them.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from daq_bench.candidate_kit import plausible
from daq_bench.candidate_kit.nand_pages import PAGE_BYTES, demand_bytes
from daq_bench.telemetry_agent.base.point import INT64_MAX, FieldValue

IDENTIFY_BYTES = 4096
SUPPORTED_PAGES_BYTES = 1024
DATA_UNIT_BYTES = 512_000  # thousands of 512 B
KELVIN = 273
SENSORS_AT, SENSORS = 200, 8
COMPOSITE = "composite"

# Field -> (first byte, bytes, factor)
HEALTH_FIELDS = {
    "critical_warning": (0, 1, 1),
    "available_spare_percent": (3, 1, 1),
    "available_spare_threshold_percent": (4, 1, 1),
    "percentage_used_percent": (5, 1, 1),
    "endurance_group_warning": (6, 1, 1),
    "data_read_bytes": (32, 16, DATA_UNIT_BYTES),
    "data_written_bytes": (48, 16, DATA_UNIT_BYTES),
    "read_commands": (64, 16, 1),
    "write_commands": (80, 16, 1),
    "controller_busy_min": (96, 16, 1),
    "power_cycles": (112, 16, 1),
    "power_on_hours": (128, 16, 1),
    "unsafe_shutdowns": (144, 16, 1),
    "media_errors": (160, 16, 1),
    "error_log_entries": (176, 16, 1),
    "warning_temperature_time_min": (192, 4, 1),
    "critical_temperature_time_min": (196, 4, 1),
    "thermal_management_1_transitions": (216, 4, 1),
    "thermal_management_2_transitions": (220, 4, 1),
    "thermal_management_1_time_s": (224, 4, 1),
    "thermal_management_2_time_s": (228, 4, 1),
}


ENDURANCE_PAGE, ENDURANCE_GROUPS_MAX = 0x09, 16
ESTIMATE = "endurance_estimate_bytes"  # zero: the drive states none
BILLION = 10**9  # the unit of its bytes, rounded up
ENDURANCE_GROUPS = 1 << 4  # of CTRATT: the controller has endurance groups
LOGS_EVENTS = 0x14  # of LPA, bits 4 and 2: a persistent event log; parts of a page by offset and length
ENDURANCE_FIELDS = {
    "critical_warning": (0, 1, 1),
    "available_spare_percent": (3, 1, 1),
    "available_spare_threshold_percent": (4, 1, 1),
    "percentage_used_percent": (5, 1, 1),
    "endurance_estimate_bytes": (32, 16, BILLION),
    "data_read_bytes": (48, 16, BILLION),
    "data_written_bytes": (64, 16, BILLION),
    "media_written_bytes": (80, 16, BILLION),
    "media_errors": (128, 16, 1),
    "error_log_entries": (144, 16, 1),
}


class Identity(NamedTuple):
    """The facts from Identify Controller; a temperature is None where the drive states none."""

    vendor: int
    serial: str
    model: str
    lists_pages: bool
    sets_thermal_limits: bool
    warning_degc: float | None
    critical_degc: float | None
    endurance_groups: int = 0  # the highest identifier; 0: the drive has none
    logs_events: bool = False  # it keeps a persistent event log, and gives parts of a page


def count(page: bytes, first: int, size: int, factor: int = 1) -> int:
    """A little-endian count. Raises ValueError where it fits no integer field."""
    value = int.from_bytes(page[first : first + size], "little") * factor
    if value > INT64_MAX:
        raise ValueError(f"bytes {first} to {first + size - 1}: {value} is no credible count")
    return value


def is_blank(page: bytes) -> bool:
    """Is every bit the same? Controllers and emulations answer so for a page that they do not have."""
    return not any(page) or all(one == 0xFF for one in page)


def demand_page(name: str, page: bytes) -> bytes:
    """A log page. Raises ValueError for another size, and for one that is blank."""
    if is_blank(demand_bytes(name, page, PAGE_BYTES)):
        raise ValueError(f"{name}: all of it is the same bit, which is no page")
    return page


def health_fields(page: bytes, faults: list[str] | None = None) -> dict[str, FieldValue]:
    """Fields of the measurement `smart`. Raises ValueError for a page that is not sound; an implausible temperature is left out and
    named in `faults`."""
    demand_page("health log", page)
    fields: dict[str, FieldValue] = {}
    for field, (first, size, factor) in HEALTH_FIELDS.items():
        try:
            value = count(page, first, size, factor)
            fields[field] = plausible.within(plausible.HIGHEST.get(field), value, f"health log: {field}")
        except ValueError as error:
            if field not in plausible.HIGHEST:
                raise
            if faults is not None:
                faults.append(str(error))
    composite = temperatures(page, faults).get(COMPOSITE)
    if composite is not None:
        fields["temperature_degc"] = composite
    return fields


def temperatures(page: bytes, faults: list[str] | None = None) -> dict[str, float]:
    """Degrees C by sensor. A sensor that the drive has not (0 K) is left out; so is an implausible one, which is named in `faults`."""
    raw = {COMPOSITE: count(page, 1, 2)}
    for number in range(SENSORS):
        raw[f"sensor_{number + 1}"] = count(page, SENSORS_AT + 2 * number, 2)
    found = {}
    for name, kelvin in raw.items():
        if kelvin:
            try:
                found[name] = plausible.degrees_of_a_running_part(float(kelvin - KELVIN), f"health log: {name}")
            except ValueError as error:
                if faults is not None:
                    faults.append(str(error))
    return found


def identity(page: bytes) -> Identity:
    """Raises ValueError when it is no such structure."""
    demand_bytes("Identify Controller", page, IDENTIFY_BYTES)
    warning, critical = struct.unpack_from("<2H", page, 266)
    return Identity(
        vendor=count(page, 0, 2),
        serial=page[4:24].decode("ascii", "replace").strip("\0 "),
        model=page[24:64].decode("ascii", "replace").strip("\0 "),
        lists_pages=bool(page[261] & 0x20),
        sets_thermal_limits=bool(page[322] & 1),
        warning_degc=_limit(warning),
        critical_degc=_limit(critical),
        endurance_groups=count(page, 340, 2) if count(page, 96, 4) & ENDURANCE_GROUPS else 0,
        logs_events=page[261] & LOGS_EVENTS == LOGS_EVENTS,
    )


def supported_pages(page: bytes) -> frozenset[int]:
    """Log page identifiers that the drive has (log page 00h)."""
    demand_bytes("list of log pages", page, SUPPORTED_PAGES_BYTES)
    return frozenset(number for number in range(256) if page[4 * number] & 1)


def endurance_fields(page: bytes) -> dict[str, FieldValue]:
    """Fields of the measurement `smart_endurance` (log page 09h of one group). Raises ValueError for a page that is not sound."""
    demand_page("endurance group log", page)
    found = {
        name: count(page, *place) for name, place in ENDURANCE_FIELDS.items() if name != ESTIMATE or any(page[32:48])
    }
    return {name: value for name, value in found.items() if value <= plausible.HIGHEST.get(name, value)}


def thermal_limits(value: int) -> dict[str, FieldValue]:
    """The temperatures that the host has set (feature 10h): fields by name; 0 K means not set."""
    found = {"thermal_management_1_degc": value >> 16 & 0xFFFF, "thermal_management_2_degc": value & 0xFFFF}
    return {name: limit for name, kelvin in found.items() if (limit := _limit(kelvin)) is not None}


def _limit(kelvin: int) -> float | None:
    """Degrees C; None for what states no limit (0 K, 273 K, 0xFFFF)."""
    return float(kelvin - KELVIN) if plausible.is_limit(float(kelvin - KELVIN)) else None
