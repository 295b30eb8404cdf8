"""Parses `smartctl -j -a -l devstat` of a drive (ATA, SAS and NVMe) into fields of the measurement `smart`.

Promise: only what has one meaning for every maker. ATA attributes count where number and name agree, data units where
the name that smartctl's drive database gives states the unit (Host_Writes_32MiB), which wins over one that is counted in
sectors. A value of the wrong kind or size, and one that no drive in use can have (0 degrees C), costs that value alone and
is named in `faults`. A controller's volume is no drive: its answer gives no fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from daq_bench.candidate_kit import plausible
from daq_bench.candidate_kit.smartctl import (
    ATA_ATTRIBUTES,
    ATA_DATA,
    COMMAND_LINE_OR_OPEN_FAILED,
    NAND_NAMES,
    NVME_HEALTH,
    UNITS,
    VOLUME,
    agree,
    error_count,
    gigabytes,
    is_volume,
    rows,
    statistics,
    table,
    used_percent,
    whole_number,
)
from daq_bench.telemetry_agent.base.point import FieldValue
from daq_bench.telemetry_agent.devices.nvme_pages import COMPOSITE, DATA_UNIT_BYTES

DRIVE = "drive"  # the sensor of a drive that names none

# NVMe health log -> (field, factor)
NVME_FIELDS = {
    "critical_warning": ("critical_warning", 1),
    "available_spare": ("available_spare_percent", 1),
    "available_spare_threshold": ("available_spare_threshold_percent", 1),
    "data_units_read": ("data_read_bytes", DATA_UNIT_BYTES),
    "data_units_written": ("data_written_bytes", DATA_UNIT_BYTES),
    "host_reads": ("read_commands", 1),
    "host_writes": ("write_commands", 1),
    "controller_busy_time": ("controller_busy_min", 1),
    "power_cycles": ("power_cycles", 1),
    "unsafe_shutdowns": ("unsafe_shutdowns", 1),
    "media_errors": ("media_errors", 1),
    "num_err_log_entries": ("error_log_entries", 1),
    "warning_temp_time": ("warning_temperature_time_min", 1),
    "critical_comp_time": ("critical_temperature_time_min", 1),
    # smartctl after 7.5; left out where all four are 0 (smartmontools/smartmontools#583)
    "thermal_mgmt_temperature_1_transition_count": ("thermal_management_1_transitions", 1),
    "thermal_mgmt_temperature_2_transition_count": ("thermal_management_2_transitions", 1),
    "thermal_mgmt_temperature_1_total_time": ("thermal_management_1_time_s", 1),
    "thermal_mgmt_temperature_2_total_time": ("thermal_management_2_time_s", 1),
}
# Losses of power without notice: only where the name says so; most drives count at 192 every retraction of their heads.
ATA_POWER_LOSS_IDS = (174, 192)
ATA_POWER_LOSS = re.compile(r"unexp|unsafe_shutdown|unclean_shutdown", re.IGNORECASE)
ATA_SECTORS = {"Total_LBAs_Written": "data_written_bytes", "Total_LBAs_Read": "data_read_bytes"}
# [P] A drive that runs in a machine writes more than this, if only the machine's log; the units that makers use instead of a sector (MiB to
# GiB) make a count thousands of times too small.
USED_H, USED_BYTES_PER_H = 1000, 1e6
# The other unit in which SSDs count under these names, and what none writes on average: 10 times its capacity a day is the most that makers
# guarantee (write-intensive SSDs), for five years; SATA carries 600 MB/s.
OTHER_UNIT_BYTES, CAPACITIES_PER_DAY_MAX, LIFE_H, LINK_BYTES_PER_H = 32 * 2**20, 10, 5 * 365 * 24, 600e6 * 3600
# ATA8-ACS device statistics: (page, offset) -> field; sectors are logical ones.
SECTOR_STATISTICS = {(1, 24): "data_written_bytes", (1, 40): "data_read_bytes"}
REFERENCE_TABLES = ("temperature", "scsi_temperature")
TEMPERATURE, TEMPERATURE_MAX = (5, 8), (5, 88)
SAS_COUNTS = {"total_errors_corrected": "corrected_errors", "total_uncorrected_errors": "uncorrected_errors"}


def answer_fault(document: Mapping[str, Any]) -> str | None:
    """Why this answer holds no health data, or None when it does."""
    smartctl = table(document, "smartctl")
    messages = "; ".join(str(message.get("string", "")) for message in rows(smartctl, "messages"))
    status = smartctl.get("exit_status")
    if not isinstance(status, int) or status & COMMAND_LINE_OR_OPEN_FAILED:
        return messages or f"smartctl exit status {status}"
    if is_volume(document, status):
        return messages or "no health data: " + VOLUME
    if not health_fields(document):
        return messages or "smartctl reports no health data"
    return None


def reading(value: object, name: str) -> float:
    """The temperature of a drive that runs: 0 is what tools and controllers say for want of one."""
    return plausible.degrees_of_a_running_part(_number(value, name), name)


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{name} is {str(value)[:40]!r}, which is no temperature")
    return float(value)


def identity(document: Mapping[str, Any]) -> dict[str, str]:
    """Serial and model as tags; a SAS drive's model comes in two parts before smartctl 7.3."""
    model = document.get("model_name") or document.get("scsi_model_name") or document.get("scsi_product")
    found = {"serial": document.get("serial_number"), "model": model}
    return {tag: str(value).strip() for tag, value in found.items() if value and str(value).strip()}


def health_fields(document: Mapping[str, Any], faults: list[str] | None = None) -> dict[str, FieldValue]:
    """Fields of one drive; only those that it reports. An invalid value is left out and named in `faults`."""
    fields: dict[str, FieldValue] = {}
    faults = [] if faults is None else faults
    with _Sound(faults):
        status = _table(document, "smart_status")
        if "passed" in status:
            if not isinstance(status["passed"], bool):
                raise ValueError(f"smart_status.passed is {str(status['passed'])[:40]!r}, neither true nor false")
            fields["passed"] = status["passed"]
    blank = False  # then smartctl has the hours and cycles from it, too
    with _Sound([]):
        blank = plausible.is_blank_health(_table(document, NVME_HEALTH))
    current = temperatures(document).get(_sensor(document))
    if current is not None:
        fields["temperature_degc"] = current
    stated = {
        "power_on_hours": (_hours, "power_on_time.hours"),
        "percentage_used_percent": (used_percent, "the percentage used of its endurance"),
    }
    for field, (ask, name) in stated.items():
        with _Sound(faults):
            value = ask(document)
            if value is not None and not blank:
                fields[field] = _within(field, whole_number(value, name), name)
    with _Sound(faults):
        if "power_cycle_count" in document and not blank:
            fields["power_cycles"] = whole_number(document["power_cycle_count"], "power_cycle_count")
    for part in (_nvme_fields, _ata_fields, _sas_fields):
        with _Sound(faults):
            fields.update(part(document, faults))
    return fields


class _Sound:
    """A part of an answer: what is wrong with it is named in `faults` and costs nothing else."""

    def __init__(self, faults: list[str]) -> None:
        self._faults = faults

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, ValueError):
            return False
        self._faults.append(str(error))
        return True


def _hours(document: Mapping[str, Any]) -> object:
    return _table(document, "power_on_time").get("hours")


def temperatures(document: Mapping[str, Any], faults: list[str] | None = None) -> dict[str, float]:
    """Degrees C by sensor: of an NVMe drive `composite` and sensor_1 to sensor_8, of another `drive`."""
    found: dict[str, float] = {}
    faults = [] if faults is None else faults
    refused: list[str] = []
    for value, name in _stated_temperatures(document, refused):
        with _Sound(refused):
            found[_sensor(document)] = reading(value, name)
            break
    else:
        faults += refused
    with _Sound(faults):
        sensors = _table(document, NVME_HEALTH).get("temperature_sensors") or []
        if not isinstance(sensors, list):
            raise ValueError(f"temperature_sensors is {str(sensors)[:40]!r}, expected a list")
        for number, value in enumerate(sensors, start=1):
            with _Sound(faults):
                if value is not None:
                    found[f"sensor_{number}"] = reading(value, f"temperature_sensors[{number - 1}]")
    return found


def _stated_temperatures(document: Mapping[str, Any], faults: list[str]) -> Iterator[tuple[object, str]]:
    """(value, name) of each place where an answer states the drive's temperature; the first that can be one holds.

    A SAS drive may state it in its environmental reports alone (log page 0Dh, subpage 01h), beside a 0 in smartctl's summary."""
    with _Sound(faults):
        stated = _table(document, "temperature")
        if "current" in stated:
            yield stated["current"], "temperature.current"
    if _sensor(document) != DRIVE:
        return
    with _Sound(faults):
        found = statistics(document)
        if TEMPERATURE in found:
            yield found[TEMPERATURE], "device statistics: Current Temperature"
    with _Sound(faults):
        reports = _table(document, "scsi_environmental_reports")
        for key in sorted(reports):
            if key.startswith("temperature"):
                with _Sound(faults):
                    current = _table(reports, key).get("current")
                    if current is not None:
                        yield current, f"scsi_environmental_reports.{key}.current"


def limits_of_load(document: Mapping[str, Any]) -> dict[str, FieldValue]:
    """Returns `limits` as a load is held against them: the one that a SAS drive states is its warning limit as well.

    It is the reference temperature (log page 0Dh): the most at which the drive works continuously within its maker's limits (SPC-4;
    Seagate, SCSI Commands Reference Manual, Rev. J, 5.2.23), as NVMe says it of the warning temperature. smartctl calls it a trip."""
    found = limits(document)
    if "critical_degc" in found and any(table(document, key).get("drive_trip") for key in REFERENCE_TABLES):
        return {"warning_degc": found["critical_degc"], **found}
    return found


def limits(document: Mapping[str, Any], faults: list[str] | None = None) -> dict[str, FieldValue]:
    """Returns the limits that the drive itself states for its main sensor: warning_degc, critical_degc. 0 states nothing."""
    faults = [] if faults is None else faults
    stated: list[tuple[str, object, str]] = []
    # SAS: the reference temperature of the temperature log page, whose place depends on smartctl's version.
    for key in REFERENCE_TABLES:
        with _Sound(faults):
            stated.append(("critical_degc", _table(document, key).get("drive_trip"), f"{key}.drive_trip"))
    with _Sound(faults):
        name = "device statistics: Specified Maximum Operating Temperature"
        stated.append(("warning_degc", statistics(document).get(TEMPERATURE_MAX), name))
    with _Sound(faults):
        threshold = _table(document, "nvme_composite_temperature_threshold")
        for key in ("warning", "critical"):
            stated.append((f"{key}_degc", threshold.get(key), f"nvme_composite_temperature_threshold.{key}"))
    found: dict[str, FieldValue] = {}
    for field, value, name in stated:
        with _Sound(faults):
            if value is not None and value != 0:
                found[field] = plausible.limit_celsius(_number(value, name), name)
    return found


def _within(field: str, value: int, name: str) -> int:
    """The count. Raises ValueError where its quantity cannot be as large."""
    return plausible.within(plausible.HIGHEST.get(field), value, name)


def _nvme_fields(document: Mapping[str, Any], faults: list[str]) -> dict[str, FieldValue]:
    log = _table(document, NVME_HEALTH)
    fields: dict[str, FieldValue] = {}
    if plausible.is_blank_health(log):
        raise ValueError("nvme_smart_health_information_log: all of it is the same bit, which is no page")
    for key, (field, factor) in NVME_FIELDS.items():
        with _Sound(faults):
            if key in log:
                # Beside a number that JavaScript cannot hold, smartctl puts its digits.
                fields[field] = _within(field, whole_number(log.get(f"{key}_s", log[key]), key, factor), key)
    return fields


def _ata_fields(document: Mapping[str, Any], faults: list[str]) -> dict[str, FieldValue]:
    fields: dict[str, FieldValue] = {}
    in_stated_unit: set[str] = set()
    counts_sectors = document.get("in_smartctl_database") is True and not _counts_in_stated_unit(document)
    sector_bytes = 0
    with _Sound(faults):
        sector_bytes = whole_number(document.get("logical_block_size", 512), "logical_block_size")
    hours = table(document, "power_on_time").get("hours")
    shown = _shows_sectors(document, sector_bytes)
    for row in _rows(_table(document, ATA_ATTRIBUTES), "table", faults):
        number, name = row.get("id"), str(row.get("name", ""))
        field = error_count(number, name)
        data = ATA_DATA.fullmatch(name)
        with _Sound(faults):
            if field:
                fields[field] = _raw(row, name)
            elif number in ATA_POWER_LOSS_IDS and ATA_POWER_LOSS.match(name):
                fields["unsafe_shutdowns"] = _raw(row, name)
            elif data:
                unit = int(data["number"] or 1) * UNITS[data["unit"]]
                medium = "nand" if data["what"] in NAND_NAMES else "data"
                way = "written" if data["way"] == "Writes" else "read"
                fields[f"{medium}_{way}_bytes"] = whole_number(_raw(row, name), name, unit)
                in_stated_unit.add(f"{medium}_{way}_bytes")
                if (medium, way) == ("nand", "written"):
                    fields["nand_source"] = f"ATA attribute {name}"
            elif ATA_SECTORS.get(name, name) in in_stated_unit:
                pass  # the unit that a name states wins
            elif name in ATA_SECTORS and counts_sectors and sector_bytes:
                # For a drive that smartctl does not know, this name is only the usual one.
                fields[ATA_SECTORS[name]] = _in_sectors(_raw(row, name), name, sector_bytes, hours, shown)
    told = statistics(document)
    for place, field in SECTOR_STATISTICS.items():
        with _Sound(faults):
            if place in told and sector_bytes:
                value = whole_number(told[place], f"device statistics {place[0]}:{place[1]}", sector_bytes)
                stated = fields.get(field)
                if field not in in_stated_unit or not isinstance(stated, int) or agree(value, stated):
                    fields[field] = value
                else:
                    faults.append(
                        f"{field}: device statistics say {value}, the attribute whose name states its unit says"
                        f" {stated}, which is taken"
                    )
    return fields


def _in_sectors(sectors: int, name: str, sector_bytes: int, hours: object, shown: bool) -> int:
    """Bytes. Raises ValueError where nothing shows that the drive counts in sectors, as the attribute's name says, or too few are
    counted for its hours: Toshiba's HK4R counts 32 MiB, which makes 41 TB look like 0.6 GB."""
    count = whole_number(sectors, name, sector_bytes)
    if count and isinstance(hours, int) and hours >= USED_H and count / hours < USED_BYTES_PER_H:
        raise ValueError(
            f"{name} is {sectors}: {count} bytes in {hours} hours, so that its unit is not {sector_bytes} B"
        )
    if count and not shown:
        raise ValueError(
            f"{name} is {sectors} in a unit that is not known: {sector_bytes} B, or 32 MiB as some SSDs count it"
        )
    return count


def _shows_sectors(document: Mapping[str, Any], sector_bytes: int) -> bool:
    """Does a drive count its LBAs in sectors? A disk that turns does. An SSD does where one of its counts, taken in 32 MiB, makes more than
    it can have carried in its hours, or agrees in sectors with the device statistics or an attribute whose name states its unit."""
    rpm, hours = document.get("rotation_rate"), table(document, "power_on_time").get("hours")
    if isinstance(rpm, int) and rpm > 0:
        return True
    capacity = table(document, "user_capacity").get("bytes")
    per_h = CAPACITIES_PER_DAY_MAX * capacity / 24 if isinstance(capacity, int) and capacity > 0 else LINK_BYTES_PER_H
    most = per_h * (hours if isinstance(hours, int) and hours > 0 else LIFE_H)
    told, known, counted = statistics(document), set[tuple[str, int]](), list[tuple[str, int]]()
    for place, field in SECTOR_STATISTICS.items():
        with _Sound([]):
            known.add((field, whole_number(told.get(place), "", sector_bytes)))
    for row in rows(table(document, ATA_ATTRIBUTES), "table"):
        name = str(row.get("name", ""))
        data = ATA_DATA.fullmatch(name)
        with _Sound([]):  # what is wrong with it is told where it is read
            if data and data["what"] not in NAND_NAMES:
                field = "data_written_bytes" if data["way"] == "Writes" else "data_read_bytes"
                known.add((field, _raw(row, name) * int(data["number"] or 1) * UNITS[data["unit"]]))
            elif name in ATA_SECTORS:
                counted.append((ATA_SECTORS[name], _raw(row, name)))
    return any(
        sectors * OTHER_UNIT_BYTES > most
        or any(one == field and sectors and agree(value, sectors * sector_bytes) for one, value in known)
        for field, sectors in counted
    )


def _counts_in_stated_unit(document: Mapping[str, Any]) -> bool:
    """Does a drive that gives one number as Host_Writes_32MiB and as Total_LBAs_Written count its LBAs in 32 MiB too?

    Then no attribute of it that is named after LBAs counts sectors, also the one that has no such twin (Intel's S3520 as Dell
    sells it: writes twice, Total_LBAs_Read once)."""
    stated, sectors = set[object](), set[object]()
    for row in rows(table(document, ATA_ATTRIBUTES), "table"):
        name, value = str(row.get("name", "")), table(row, "raw").get("value")
        if isinstance(value, int) and value > 0:
            data = ATA_DATA.fullmatch(name)
            if data and data["what"] not in NAND_NAMES:
                stated.add((data["way"] == "Writes", value))
            elif name in ATA_SECTORS:
                sectors.add((name == "Total_LBAs_Written", value))
    return bool(stated & sectors)


def _raw(row: Mapping[str, Any], name: str) -> int:
    """The attribute's count; its text leads with it where the 48 bits hold more than one number."""
    raw = _table(row, "raw")
    match = re.match(r"\d+", str(raw.get("string", "")))
    return whole_number(match[0] if match else raw.get("value"), name)


def _sas_fields(document: Mapping[str, Any], faults: list[str]) -> dict[str, FieldValue]:
    fields: dict[str, FieldValue] = {}
    with _Sound(faults):
        if "scsi_grown_defect_list" in document:
            fields["grown_defects"] = whole_number(document["scsi_grown_defect_list"], "scsi_grown_defect_list")
    log = _table(document, "scsi_error_counter_log")
    for way in ("read", "write", "verify"):
        for key, ending in SAS_COUNTS.items():
            with _Sound(faults):
                counts = _table(log, way)
                if key in counts:
                    fields[f"{way}_{ending}"] = whole_number(counts[key], f"scsi_error_counter_log.{way}.{key}")
    for way, field in (("read", "data_read_bytes"), ("write", "data_written_bytes")):
        with _Sound(faults):
            processed = _table(log, way).get("gigabytes_processed")
            if processed is not None:
                fields[field] = gigabytes(processed, f"{way}.gigabytes_processed")
    return fields


def _sensor(document: Mapping[str, Any]) -> str:
    return COMPOSITE if NVME_HEALTH in document else DRIVE


def _table(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key, {})
    if not isinstance(value, dict):
        raise ValueError(f"{key} is {str(value)[:40]!r}, expected an object")
    return value


def _rows(document: Mapping[str, Any], key: str, faults: list[str]) -> Iterator[Mapping[str, Any]]:
    """The objects of a list. `faults` names whatever else stands among them, which costs no other row. Raises ValueError for no list."""
    value = document.get(key, [])
    if not isinstance(value, list):
        raise ValueError(f"{key} is {str(value)[:40]!r}, expected a list of objects")
    for number, row in enumerate(value):
        if isinstance(row, dict):
            yield row
        elif row is not None:
            faults.append(f"{key}[{number}] is {str(row)[:40]!r}, expected an object")
