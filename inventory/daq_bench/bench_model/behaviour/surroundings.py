"""Tells where the candidate stood while it was watched: the air at its inlet by its BMC, and its altitude as the inventory declares it.

A pure function of the bundle. Thin air cools less, so that temperatures of two sites compare only with both known. An unstated value is
null, with the reason. Where IPMI and Redfish contradict each other, neither is believed: the account says so, and shows both."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from daq_bench.bench_model.bundle.line_protocol import Point
from daq_bench.bench_model.bundle.telemetry_files import points_of_bundle
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.candidate_kit import plausible
from daq_bench.candidate_kit.inlet_names import MARGIN, is_named_inlet, is_of_a_part, without_mainboard

NAME = "results/surroundings.json"
# IPMI 2.0, table 43-13: parts with an inlet of their own: processor, disk, bay, memory, processor module, power supply, add-in card, power
# system, expansion board, processor board, power, drive bay, fan, module, battery, switch, I/O.
ENTITIES_OF_PARTS = {
    *("3", "4", "5", "8", "9", "10", "11", "14", "16", "18", "19", "20", "21", "26", "27", "28", "29"),
    *("31", "32", "40", "42", "43", "44", "45", "48", "49", "50", "51", "65"),
}
INLET_ENTITIES = frozenset({"55", "64"})  # the same: air inlet (37h, and 40h as older firmware has it)
DEGC_MIN, DEGC_MAX = -40.0, 100.0  # air beyond is no reading
REDFISH = "Redfish"
MEASUREMENTS = frozenset({"ipmi_sensor", "redfish_sensor"})
# [P] Two sensors at one front differ by some kelvin, and a BMC rounds to one.
ALIKE_K = 5.0


def of_bundle(bundle: Path, run: Run) -> Document | None:
    """results/surroundings.json; None for a bundle without an inventory of its own (it is older)."""
    file = bundle / "profiles" / "lab.yml"
    if not file.is_file():
        return None
    candidate = load_candidate(file, run.candidate.name)
    return from_points(
        points_of_bundle(bundle, MEASUREMENTS, ("temperature_degc",)), candidate.document.get("altitude_m")
    )


def from_points(points: Iterable[Point], altitude_m: Any = None) -> Document:
    """The document; `altitude_m` as declared."""
    values: dict[str, list[float]] = {}
    for point in points:
        value = point.fields.get("temperature_degc")
        if (
            is_inlet(point)
            and isinstance(value, int | float)
            and DEGC_MIN < value < DEGC_MAX
            and plausible.is_running_degrees(value)
        ):
            values.setdefault(_name(point), []).append(float(value))
    told = without_mainboard(values)
    values = {name: found for name, found in values.items() if name in told}
    reasons = {}
    contradiction = _contradiction(values)
    every = [] if contradiction else [one for found in values.values() for one in found]
    if contradiction:
        reasons["surroundings.inlet_temperature"] = contradiction
    elif not every:
        reasons["surroundings.inlet_temperature"] = "no BMC told the temperature of the air at the inlet"
    if altitude_m is None:
        reasons["surroundings.altitude"] = "the inventory does not declare altitude_m"
    return {
        "schema_version": 1,
        "inlet_degC": _range(every) if every else None,
        "inlet_sensors": {name: len(found) for name, found in sorted(values.items())},
        "altitude_m": altitude_m,
        "reasons": reasons,
    }


def is_inlet(point: Point) -> bool:
    """Says whether a point is of the air that the server takes in."""
    if point.measurement == "redfish_sensor":
        return True  # it holds nothing else
    if point.measurement != "ipmi_sensor":
        return False
    sensor, entity = point.tags.get("sensor", ""), point.tags.get("entity", "").partition(".")[0]
    if entity in INLET_ENTITIES:  # the name wins: some BMCs file a part's inlet there
        return not is_of_a_part(sensor) and not MARGIN.search(sensor)
    return is_named_inlet(sensor) and entity not in ENTITIES_OF_PARTS


def _name(point: Point) -> str:
    """The sensor's name; one that Redfish tells of is named with its resource."""
    name = point.tags.get("sensor", "unnamed")
    if point.measurement == "ipmi_sensor":
        return name
    tags = point.tags
    return f"{name} ({REDFISH}, chassis {tags.get('chassis', 'unnamed')}, {tags.get('resource', 'unnamed')})"


def _range(values: list[float]) -> dict[str, float]:
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def _contradiction(values: dict[str, list[float]]) -> str:
    """A sentence where no sensor of IPMI is like any of Redfish in its least, its median and its most, as one that stands still is not."""
    told = {name: _range(found) for name, found in values.items()}
    ipmi = {name: one for name, one in told.items() if f"({REDFISH}, " not in name}
    redfish = {name: one for name, one in told.items() if name not in ipmi}
    apart = [max(abs(a[key] - b[key]) for key in a) for a in ipmi.values() for b in redfish.values()]
    if not apart or min(apart) <= ALIKE_K:
        return ""
    said = ", ".join(f"{name} {one['min']:g} to {one['max']:g} degC" for name, one in sorted(told.items()))
    return f"IPMI and Redfish contradict each other by more than {ALIKE_K:g} K: {said}"
