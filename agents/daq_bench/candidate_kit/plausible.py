"""Says which readings are possible at all, whichever tool or file states them.

Promise: one rule for each quantity. A value beyond it is what a device states for want of a reading (0 K, 273 K, 127 and -128 of a signed
byte, 0xFFFF), or is in another unit: no reading, and named. Whoever reads one has this rule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from daq_bench.candidate_kit.smartctl import NVME_HEALTH, table, whole_number

# Silicon is specified from -55 to 125 degrees C (the military range, and that of LM75 and its like); junctions are shut down before 150.
DEGC_MIN, DEGC_MAX = -55.0, 150.0
UNREAD_DEGC = (-0.15, 0.0)  # 273 K, less 273.15 as the kernel takes it or less 273 as tools do
# A century: no drive is older, and counters that are all ones (0xFFFFFFFF) are far beyond.
POWER_ON_H_MAX = 100 * 366 * 24
# The endurance used has a byte, exceeds 100 and ends at 254 or, in NVMe, at 255: what is beyond is no reading.
HIGHEST = {
    "available_spare_percent": 100,
    "available_spare_threshold_percent": 100,
    "percentage_used_percent": 255,
    "power_on_hours": POWER_ON_H_MAX,
}
BLANK_AT = {"available_spare": 255, "percentage_used": 255, "critical_warning": 255}


def degrees_celsius(value: float, name: str) -> float:
    """The temperature. Raises ValueError where no part of a server that runs has it."""
    if not math.isfinite(value) or not DEGC_MIN <= value <= DEGC_MAX:
        raise ValueError(
            f"{name} is {value:g} degrees C, which no part of a server that runs has ({DEGC_MIN:g} to {DEGC_MAX:g})"
        )
    return value


def degrees_of_a_running_part(value: float, name: str) -> float:
    """The same of a part that is never at 0: BMCs, controllers, drives and tools state 0 for a sensor that they have not read."""
    if UNREAD_DEGC[0] <= value <= UNREAD_DEGC[1]:
        raise ValueError(f"{name} is {value:g} degrees C, which is no reading of what is in use")
    return degrees_celsius(value, name)


def limit_celsius(value: float, name: str) -> float:
    """The limit of a part's temperature: above 0, which states that there is none."""
    if value <= 0:
        raise ValueError(f"{name} is {value:g} degrees C, which limits no part that runs")
    return degrees_celsius(value, name)


def is_running_degrees(value: float) -> bool:
    """Can a part that runs have this temperature?"""
    return math.isfinite(value) and DEGC_MIN <= value <= DEGC_MAX and not UNREAD_DEGC[0] <= value <= UNREAD_DEGC[1]


def is_limit(value: float) -> bool:
    """Can this limit the temperature of a part that runs?"""
    return math.isfinite(value) and 0 < value <= DEGC_MAX


def within(highest: int | None, value: int, name: str) -> int:
    """The count. Raises ValueError where it is beyond the highest of its quantity; None: it has none."""
    if highest is not None and value > highest:
        raise ValueError(f"{name} is {value}, which is beyond {highest} and no reading")
    return value


def health_log(document: Mapping[str, Any]) -> dict[str, Any]:
    """The health log of an NVMe drive in smartctl's document; empty where it is a page of zeros or of ones, which says nothing."""
    log = table(document, NVME_HEALTH)
    return {} if is_blank_health(log) else log


def power_on_hours(document: Mapping[str, Any]) -> int | None:
    """The hours that a drive counts; None where it states none, or what cannot be. smartctl has an NVMe drive's from its health log."""
    if NVME_HEALTH in document and not health_log(document):
        return None
    try:
        hours = whole_number(table(document, "power_on_time").get("hours"), "power_on_time.hours")
        return within(POWER_ON_H_MAX, hours, "power_on_time.hours")
    except ValueError:
        return None


def is_blank_health(log: Mapping[str, Any]) -> bool:
    """Does smartctl's NVMe health log show a page of zeros, or of ones? Controllers and emulations answer so for one that they have not.

    A drive in use has spare blocks, or says something else that is not 0."""
    values = [log[key] for key in log if key != "nsid"]
    zeros = log.get("available_spare") == 0 and not any(
        any(one) if isinstance(one, list) else str(one) != "0" for one in values
    )
    return zeros or all(log.get(key) == ones for key, ones in BLANK_AT.items())
