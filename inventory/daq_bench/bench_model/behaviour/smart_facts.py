"""The growth of the drives' own counters of heat between facts/smart-before.json and facts/smart-after.json.

smartctl's JSON has the minutes above the warning and the critical temperature and, after 7.5, the transitions and times of the thermal
management; an ATA drive may have an attribute whose name says throttle."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.bundle.files import find_json
from daq_bench.bench_model.documents.run import Drive
from daq_bench.candidate_kit import plausible
from daq_bench.candidate_kit.smartctl import ATA_ATTRIBUTES, rows, table

BEFORE, AFTER = "facts/smart-before.json", "facts/smart-after.json"
NVME = {
    "thermal_mgmt_temperature_1_transition_count": (
        "thermal_management_1_transitions",
        "transitions to light throttling (TMT1)",
    ),
    "thermal_mgmt_temperature_2_transition_count": (
        "thermal_management_2_transitions",
        "transitions to heavy throttling (TMT2)",
    ),
    "thermal_mgmt_temperature_1_total_time": ("thermal_management_1_time_s", "seconds of light throttling (TMT1)"),
    "thermal_mgmt_temperature_2_total_time": ("thermal_management_2_time_s", "seconds of heavy throttling (TMT2)"),
    "warning_temp_time": ("warning_temperature_time_min", "minutes above the warning temperature"),
    "critical_comp_time": ("critical_temperature_time_min", "minutes above the critical temperature"),
}

# smartctl leaves these out where all of them are 0 (smartmontools/smartmontools#583).
SHOWN_ABOVE_ZERO = "thermal_mgmt_temperature_"
# Intel's and Solidigm's Thermal_Throttle_Status (raw24/raw32 in smartctl's drive database): percent now / times so far.
STATUS_AND_COUNT = re.compile(r"\d+/(\d+)")


@dataclass(frozen=True)
class Health:
    """The health counters of one drive: those that grew as (name in the telemetry, growth, words), and why others say nothing."""

    grown: tuple[tuple[str, float, str], ...] = ()
    broken: tuple[str, ...] = ()


Facts = dict[str, Health]  # by kernel name


def of_bundle(bundle: Path, drives: list[Drive]) -> Facts:
    """Returns the facts of each of the target's drives whose health was read before and after the run."""
    return {name: compared(*pair) for name, pair in pairs_of(bundle, drives).items() if pair != (None, None)}


def pairs_of(bundle: Path, drives: list[Drive]) -> dict[str, tuple[dict[str, Any] | None, dict[str, Any] | None]]:
    """smartctl's documents (before, after) of each drive, by kernel name; none where one of the two files is not there."""
    before, after = (_devices(bundle, name) for name in (BEFORE, AFTER))
    if before is None or after is None:
        return {}
    return {drive.name: (_find(before, drive), _find(after, drive)) for drive in drives}


def compared(before: dict[str, Any] | None, after: dict[str, Any] | None) -> Health:
    """One drive's smartctl documents."""
    if before is None or after is None:
        return Health(broken=(f"its health was read only {'after' if before is None else 'before'} the run",))
    grown, broken = [], []
    for name, words, first, last in _counters(before, after):
        if not (_is_count(first) and _is_count(last)):
            broken.append(f"its counter of {words} is {first!r} before the run and {last!r} after it")
        elif last > first:
            grown.append((name, float(last - first), f"{in_digits(last - first, 15)} more {words}"))
        elif last < first and not name.startswith("ata_"):  # an attribute may be a status that ends
            broken.append(
                f"its counter of {words} went back from {in_digits(first, 15)} before the run to {in_digits(last, 15)} after it"
            )
    return Health(tuple(grown), tuple(broken))


def _counters(before: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[str, str, Any, Any]]:
    """(name, words, value before, value after); where only one of the two has a counter, the other value is None."""
    logs = [plausible.health_log(document) for document in (before, after)]
    for key, (name, words) in NVME.items():
        if any(key in log for log in logs):
            unshown = 0 if all(logs) and key.startswith(SHOWN_ABOVE_ZERO) and _same_smartctl(before, after) else None
            yield name, words, logs[0].get(key, unshown), logs[1].get(key, unshown)
    attributes = [_throttle_attributes(document) for document in (before, after)]
    for key in sorted(attributes[0].keys() | attributes[1].keys()):
        yield f"ata_{key}", f"of its attribute {key}", attributes[0].get(key), attributes[1].get(key)


def _same_smartctl(before: dict[str, Any], after: dict[str, Any]) -> bool:
    versions = [table(document, "smartctl").get("version") for document in (before, after)]
    return versions[0] is not None and versions[0] == versions[1]


def _throttle_attributes(document: dict[str, Any]) -> dict[str, Any]:
    return {
        str(row["name"]): _count_of(table(row, "raw"))
        for row in rows(table(document, ATA_ATTRIBUTES), "table")
        if "throttl" in str(row.get("name")).lower()
    }


def _count_of(raw: dict[str, Any]) -> Any:
    packed = STATUS_AND_COUNT.fullmatch(str(raw.get("string")))
    return int(packed[1]) if packed else raw.get("value")


def _is_count(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _devices(bundle: Path, name: str) -> list[dict[str, Any]] | None:
    """None where there is no such file."""
    document = find_json(bundle, name)
    if document is None:
        return None
    return rows(document, "devices") if isinstance(document, dict) else []


def _find(devices: list[dict[str, Any]], drive: Drive) -> dict[str, Any] | None:
    """smartctl's document of a drive: by its serial number, and among several with it by its name or that of its NVMe controller; else by
    that name alone."""
    known = [(Path(str(one.get("device"))).name, one["data"]) for one in devices if isinstance(one.get("data"), dict)]
    serial, name = drive.serial, drive.name
    named = [data for device, data in known if device == name or name.startswith(f"{device}n")]
    # A disk with two actuators is two devices of one serial.
    for data in (*named, *(data for _, data in known)):
        if serial and data.get("serial_number") == serial:
            return data  # type: ignore[no-any-return]
    return next((data for data in named if not (serial and data.get("serial_number"))), None)
