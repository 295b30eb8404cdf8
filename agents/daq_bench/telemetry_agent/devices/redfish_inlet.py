"""The temperature of the air that a server takes in, in the documents of Redfish (DMTF DSP0268, DSP8010). Pure.

The older tree is `Thermal` (Temperatures, by PhysicalContext), the newer one `ThermalMetrics` (TemperatureSummaryCelsius, and readings
by PhysicalContext). `EnvironmentMetrics` has a TemperatureCelsius of the resource as a whole: it counts only where the sensor that it
names measures the air that comes in. A reading is a number in degrees Celsius; text, null and impossible values are rejected, and named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Callable, NamedTuple

from daq_bench.candidate_kit.inlet_names import is_named_inlet, is_of_a_part, without_mainboard
from daq_bench.telemetry_agent.devices.kernel_text import visible

AIR = ("Intake", "Room")  # PhysicalContext
NOWHERE = (None, "", "SystemBoard", "Chassis", "Front")  # contexts that leave open what is measured there
SUMMARIES = ("Intake", "Ambient")  # of TemperatureSummaryCelsius
WORKS = (None, "Enabled")  # Status.State; a BMC that leaves it out says nothing against the sensor
CELSIUS = (
    None,
    "Cel",
    "C",
)  # Sensor.ReadingUnits, by UCUM; Lenovo's XCC says C, which is coulomb there and no unit of air
# [P] A server switches itself off before 60 degrees C at its inlet. 64 and more is a room's air in Fahrenheit, 290 in kelvin.
DEGC_MIN, DEGC_MAX = -40.0, 60.0
SENSORS_MAX = 16  # of one document
NAME_CHARACTERS_MAX = 100
# Chassis.ChassisType of what holds drives, parts or several servers.
NOT_THE_SERVER = {
    *("StorageEnclosure", "IPBasedDrive", "Card", "Module", "Component", "Cartridge", "Expansion", "Sidecar"),
    *("HeatExchanger", "PowerStrip", "ImmersionTank", "Rack", "RackGroup", "Row", "Pod", "Zone"),
}


class Inlet(NamedTuple):
    """One sensor's reading."""

    sensor: str
    degc: float


Found = tuple[list[Inlet], list[str]]


def is_server(chassis: Mapping[str, Any]) -> bool:
    """Says whether a chassis can be the server itself, and is there."""
    return str(chassis.get("ChassisType")) not in NOT_THE_SERVER and _state(chassis) != "Absent"


def of_thermal(document: Mapping[str, Any]) -> Found:
    """The intakes in `Thermal`."""
    rows, faults = _intakes(_objects(document.get("Temperatures")), "Name", "MemberId")
    found, said = _read((_name(one, "Name", "MemberId"), one.get("ReadingCelsius"), _state(one)) for one in rows)
    return found, [*faults, *said]


def _intakes(rows: list[Mapping[str, Any]], *keys: str) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The rows of the air at the inlet, and why marks are not believed.

    Gigabyte's BMCs mark every sensor Intake: where a marked one is named after a part, names decide. Some (iDRAC 9, Lenovo, Intel) mark
    none and name them."""
    marked = [one for one in rows if one.get("PhysicalContext") in AIR]
    wrong = [_name(one, *keys) for one in marked if is_of_a_part(_name(one, *keys))]
    if marked and not wrong:
        return marked, []
    places = (*NOWHERE, *(AIR if wrong else ()))
    named = [one for one in rows if one.get("PhysicalContext") in places and is_named_inlet(_name(one, *keys))]
    kept = without_mainboard(_name(one, *keys) for one in named)
    named = [one for one in named if _name(one, *keys) in kept]
    faults = [f"the marks Intake and Room are not believed, {', '.join(wrong[:3])} has one"] if wrong else []
    return named, faults


def of_metrics(document: Mapping[str, Any]) -> Found:
    """The summary in `ThermalMetrics`; where it has neither, the readings that are of an intake."""
    summary = document.get("TemperatureSummaryCelsius")
    summary = summary if isinstance(summary, Mapping) else {}
    named = [(name, summary[name]) for name in SUMMARIES if isinstance(summary.get(name), Mapping)]
    faults: list[str] = []
    if not named:
        rows, faults = _intakes(_objects(document.get("TemperatureReadingsCelsius")), "DeviceName", "DataSourceUri")
        named = [(_name(one, "DeviceName", "DataSourceUri"), one) for one in rows]
    found, said = _read((name, one.get("Reading"), None) for name, one in named)
    return found, [*faults, *said]


def of_sensor(document: Mapping[str, Any]) -> Found:
    """The one reading of a `Sensor`, if it is of an intake."""
    rows, faults = _intakes([document], "Name", "Id")
    if not rows:
        return [], faults
    name, units = _name(document, "Name", "Id"), document.get("ReadingUnits")
    if units not in CELSIUS:
        return [], [f"{name}: its unit is {_shown(units)} and not Cel"]
    return _read([(name, document.get("Reading"), _state(document))])


READERS: Mapping[str, Callable[[Mapping[str, Any]], Found]] = {
    "Thermal": of_thermal,
    "ThermalMetrics": of_metrics,
    "EnvironmentMetrics": of_sensor,
}


def _read(rows: Iterator[tuple[str, Any, Any]] | list[tuple[str, Any, Any]]) -> Found:
    found: dict[str, float] = {}
    faults: list[str] = []
    for name, value, state in rows:
        if state not in WORKS:
            continue
        if len(found) + len(faults) == SENSORS_MAX:
            faults.append(f"more than {SENSORS_MAX} sensors of the air at the inlet; the others are not read")
            break
        fault = _fault(value)
        if fault:
            faults.append(f"{name}: {fault}")
        else:
            found[_free(name, found)] = float(value)
    return [Inlet(*one) for one in found.items()], faults


def _fault(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return f"its reading is {_shown(value)} and no number"
    if not DEGC_MIN < value < DEGC_MAX or (isinstance(value, float) and not math.isfinite(value)):
        return f"its reading {_shown(value)} degC is of no air that a server can take in (a wrong unit?)"
    return "its reading is 0 degC, which BMCs state for a sensor that they have not read" if value == 0 else ""


def _free(name: str, taken: Mapping[str, float]) -> str:
    number = 2
    free = name
    while free in taken:
        free, number = f"{name}#{number}", number + 1
    return free


def _state(document: Mapping[str, Any]) -> Any:
    status = document.get("Status")
    return status.get("State") if isinstance(status, Mapping) else None


def _name(document: Mapping[str, Any], *keys: str) -> str:
    texts = (document.get(key) for key in keys)
    text = next((one for one in texts if isinstance(one, str) and one.strip()), "unnamed")
    return visible(text.strip())[:NAME_CHARACTERS_MAX].rstrip("\\ ") or "unnamed"


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _shown(value: Any) -> str:
    return visible(repr(value))[:60]
