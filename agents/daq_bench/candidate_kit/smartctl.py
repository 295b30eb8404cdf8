"""The answer of `smartctl -j`: how it is asked for, where its document begins, which of its values are counts, and what is no drive.

Promise: one rule for all who ask smartctl. Ansible's modules import this file as `ansible.module_utils.bench_smartctl`,
so that it imports no other of the kit.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

# devstat is an ATA log, which -a leaves out; smartctl ignores the option for other drives.
ARGUMENTS = ("-j", "-a", "-l", "devstat")
# smartctl 7.1 ends no line before the document of some SAS drives ("Pending defect count:{", prometheus-community/smartctl_exporter#233).
BEGIN = re.compile(r'\{\s*"json_format_version"|^[ \t]*\{', re.MULTILINE)
COMMAND_LINE_OR_OPEN_FAILED = 0b11  # smartctl(8): the exit status' two lowest bits; all others come with data
COMMAND_FAILED = 0b100  # smartctl(8): some command to the drive failed; which one it does not say
VOLUME = "a volume of a RAID controller or bridge, whose disks are not seen through it, or a drive without SMART"
NVME_HEALTH, ATA_ATTRIBUTES = "nvme_smart_health_information_log", "ata_smart_attributes"
EXACT_FLOAT_MAX, INT64_MAX = 2**53, 2**63 - 1
# With three decimals, which some users' languages have after a comma (smartctl 7.3 of a YADRO SAS drive, henrygd/beszel's test data).
GIGABYTES, MEGABYTE = re.compile(r"(\d{1,12})[.,](\d{3})"), 10**6
# ATA device statistics by page and offset: Percentage Used Endurance Indicator, Logical Sectors Written, Number of Reported Uncorrectable
# Errors (ATA8-ACS, 9.4)
WEAR_STATISTIC, WRITTEN_STATISTIC, UNCORRECTABLE_STATISTIC = (7, 8), (1, 24), (4, 8)

# Names of smartctl's drive database that state what is counted and in which unit.
ATA_DATA = re.compile(
    r"(?P<what>Host|NAND|Flash|Lifetime|Total|Total_NAND)_(?P<way>Writes|Reads)_(?P<number>[1-9]\d{0,2})?(?P<unit>MiB|GiB|GB)"
)
UNITS = {"MiB": 2**20, "GiB": 2**30, "GB": 10**9}
# ATA attributes that count errors: (the part of the name without which the number means something else, the count's name). Makers word
# them differently (Uncorrectable_Error_Cnt, CRC_Error_Count); every name of 5 (Retired_Block_Count, Grown_Failing_Block_Ct) means it.
ATA_ERRORS = {
    5: ("", "reallocated_sectors"),
    187: ("uncorrect", "reported_uncorrectable"),
    197: ("pending", "pending_sectors"),
    198: ("uncorrect", "offline_uncorrectable"),
    199: ("crc", "interface_crc_errors"),
}
NAND_NAMES = ("NAND", "Flash", "Total_NAND")
AGREE_FRACTION, AGREE_BYTES = 0.05, 2**30  # of two counts of one drive's data; the coarsest unit is a GiB


def split(text: str) -> tuple[str, list[str]]:
    """The document in smartctl's output, and the lines that it printed before it (a syntax error in the user's drive database)."""
    begin = BEGIN.search(text)
    before = text[: begin.start()] if begin else ""
    return text[len(before) :], [line.strip() for line in before.splitlines() if line.strip()]


def document_of(text: str) -> dict[str, Any] | None:
    """The document; None where there is none. NaN and what is beyond all floats are null: no document of a bundle may hold them."""
    try:
        document = json.loads(split(text)[0], parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError):  # RecursionError: it nests without end
        return None
    return document if isinstance(document, dict) else None


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def table(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    """An object of the answer; empty for another type."""
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def rows(document: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """A list of objects of the answer, without whatever else stands in it."""
    value = document.get(key)
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def error_count(number: object, name: str) -> str:
    """The name of the errors that an ATA attribute counts, of which a drive with more stands worse; empty for another attribute."""
    needed, count = ATA_ERRORS.get(number if isinstance(number, int) else 0, ("", ""))
    return count if needed in name.lower() else ""


def is_volume(document: Mapping[str, Any], exit_status: object) -> bool:
    """Is it what a RAID controller shows in place of its disks? Whatever health it reports is nobody's."""
    if NVME_HEALTH in document or ATA_ATTRIBUTES in document:
        return False
    if table(document, "smart_support").get("available") is False:
        return True
    # smartctl before 7.3 has no smart_support: a failed command, and 0 degrees C for want of a temperature.
    failed = isinstance(exit_status, int) and bool(exit_status & COMMAND_FAILED)
    return failed and table(document, "temperature").get("current") == 0


def stated(value: object) -> object:
    """A count without smartctl's double form {"n": ..., "s": ...}: the digits, or else the number."""
    return value.get("s", value.get("n")) if isinstance(value, dict) else value


def whole_number(value: object, name: str, factor: int = 1) -> int:
    """A count as smartctl's versions write it: a number, its digits, or both. Raises ValueError for anything else."""
    value = stated(value)
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT_FLOAT_MAX:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value * factor <= INT64_MAX:
        raise ValueError(f"{name} is {str(value)[:40]!r}, which is no credible count")
    return value * factor


def gigabytes(value: object, name: str) -> int:
    """Bytes of a SAS drive's `gigabytes_processed`, in steps of a MB. Raises ValueError for anything else."""
    match = GIGABYTES.fullmatch(str(value))
    if match is None:
        raise ValueError(f"{name} is {str(value)[:40]!r}, expected GB with three decimals")
    return whole_number(int(match[1] + match[2]), name, MEGABYTE)


def written(document: Mapping[str, Any]) -> tuple[str, int, int] | None:
    """(the log: scsi or ata, bytes, its step in bytes): what a host wrote, as a drive that is not NVMe counts it itself; None where it
    has no such count, or contradicts it by an attribute whose name states the unit. 0 is a count that nobody keeps."""
    try:
        if table(document, "device").get("protocol") == "SCSI":
            told = table(table(document, "scsi_error_counter_log"), "write").get("gigabytes_processed")
            found = ("scsi", gigabytes(told, "write.gigabytes_processed"), MEGABYTE)
        else:
            sector = whole_number(document.get("logical_block_size"), "logical_block_size")
            found = ("ata", whole_number(statistics(document).get(WRITTEN_STATISTIC), "sectors", sector), sector)
            host = (whole_number(value, name, unit) for name, value, unit in named_writes(document, nand=False))
            if not all(agree(found[1], stated) for stated in host):
                return None
    except ValueError:
        return None
    return found if found[1] else None


def named_writes(document: Mapping[str, Any], nand: bool) -> list[tuple[str, object, int]]:
    """(name, raw value, unit in bytes) of each attribute that is named after what was written and its unit: onto the NAND, or by a host."""
    found = ((ATA_DATA.fullmatch(str(row.get("name"))), row) for row in rows(table(document, ATA_ATTRIBUTES), "table"))
    return [
        (data.group(), table(row, "raw").get("value"), int(data["number"] or 1) * UNITS[data["unit"]])
        for data, row in found
        if data and data["way"] == "Writes" and (data["what"] in NAND_NAMES) is nand
    ]


def agree(one: int, other: int) -> bool:
    """Are two counts of one drive's data the same, but for their units and a moment between?"""
    return abs(one - other) <= AGREE_BYTES + AGREE_FRACTION * max(one, other)


def statistics(document: Mapping[str, Any]) -> dict[tuple[int, int], object]:
    """Valid values of the ATA device statistics by page and offset."""
    places = (
        (page.get("number"), row.get("offset"), row)
        for page in rows(table(document, "ata_device_statistics"), "pages")
        for row in rows(page, "table")
    )
    return {
        (page, offset): row.get("value")
        for page, offset, row in places
        if isinstance(page, int)
        and isinstance(offset, int)
        and table(row, "flags").get("valid") is True
        and "value" in row
    }


def used_percent(document: Mapping[str, Any]) -> object:
    """Returns the used endurance that a drive states, in percent, unchecked; None where it says nothing.

    `endurance_used` of an ATA drive counts only with the device statistic behind it: without one, smartctl 7.5 guesses it from the
    normalized value of an attribute that is named after wear (ataprint.cpp: "Guess available spare and endurance")."""
    summed_up = table(document, "endurance_used").get("current_percent")
    if table(document, "device").get("protocol") == "ATA" or ATA_ATTRIBUTES in document:
        return statistics(document).get(WEAR_STATISTIC)
    if NVME_HEALTH in document:
        return table(document, NVME_HEALTH).get("percentage_used", summed_up)
    found = document.get("scsi_percentage_used_endurance_indicator")
    return summed_up if found is None else found
