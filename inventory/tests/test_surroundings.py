"""The air at the inlet and the altitude: what a BMC and the inventory state, and nothing that they do not."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from daq_bench.audit.good.small_run import some_run
from jsonschema import Draft202012Validator

from daq_bench.bench_model.behaviour.surroundings import from_points, of_bundle
from daq_bench.bench_model.bundle.line_protocol import Point
from daq_bench.bench_model.evidence.soundness import fault_of
from daq_bench.bench_model.profiles.yaml_source import load_schema


def air(value: Any, sensor: str = "Inlet Temp", entity: str = "55.1", measurement: str = "ipmi_sensor") -> Point:
    return Point(
        measurement, {"sensor": sensor, "entity": entity, "kind": "temperature"}, {"temperature_degc": value}, 1
    )


def made(*points: Point, altitude_m: Any = 430) -> dict[str, Any]:
    document = from_points(points, altitude_m)
    assert fault_of("results/surroundings.json", json.loads(json.dumps(document, allow_nan=False))) == ""
    return document


def test_the_air_is_told_from_its_least_to_its_most() -> None:
    document = made(air(22.0), air(24.0), air(31.0), air(55.0, "CPU1 Temp", "3.1"))
    assert document["inlet_degC"] == {"min": 22, "median": 24, "max": 31} and document["altitude_m"] == 430
    assert document["inlet_sensors"] == {"Inlet Temp": 3} and document["reasons"] == {}


@pytest.mark.parametrize(
    ("sensor", "entity"),
    [
        ("01-Inlet Ambient", "64.1"),
        ("Ambient", "7.1"),
        ("System", "55.2"),
        ("Front Panel Temp", "12.1"),
        ("Fnt Pnl Temp", "12.1"),
    ],
)
def test_an_inlet_is_known_by_its_name_or_its_entity(sensor: str, entity: str) -> None:
    assert made(air(20.0, sensor, entity))["inlet_sensors"] == {sensor: 1}


@pytest.mark.parametrize("bad", [math.nan, math.inf, -60.0, 255.0, "22"])
def test_what_no_air_has_is_no_reading(bad: Any) -> None:
    assert made(air(bad), air(23.0))["inlet_degC"]["max"] == 23
    assert "no BMC told" in made(air(bad))["reasons"]["surroundings.inlet_temperature"]


def redfish(value: float, sensor: str = "Intake", resource: str = "ThermalMetrics") -> Point:
    tags = {"chassis": "1", "resource": resource, "sensor": sensor}
    return Point("redfish_sensor", tags, {"temperature_degc": value}, 1)


def test_redfish_alone_tells_the_same_and_is_named() -> None:
    document = made(redfish(24.5), redfish(26.0))
    assert document["inlet_degC"] == {"min": 24.5, "median": 25.25, "max": 26.0}
    assert document["inlet_sensors"] == {"Intake (Redfish, chassis 1, ThermalMetrics)": 2}


def test_ipmi_and_redfish_that_agree_are_one_account() -> None:
    document = made(air(24.0), air(30.0), redfish(25.0), redfish(30.5), redfish(44.0, "Rear", "Thermal"))
    assert document["inlet_degC"]["max"] == 44.0 and document["reasons"] == {}


@pytest.mark.parametrize(
    "other",
    [
        (36.0, 36.0),  # elsewhere
        (24.0, 24.0),  # it stands still while the air gets warm
    ],
)
def test_where_ipmi_and_redfish_contradict_neither_is_believed(other: tuple[float, float]) -> None:
    """Neither a bound from above nor one from below may be kept by the wrong one."""
    document = made(air(24.0), air(34.0), *map(redfish, other))
    assert document["inlet_degC"] is None
    reason = document["reasons"]["surroundings.inlet_temperature"]
    assert reason.startswith(
        "IPMI and Redfish contradict each other by more than 5 K: Inlet Temp 24 to 34 degC, Intake (Redfish"
    )
    assert set(document["inlet_sensors"].values()) == {2}


def test_what_nobody_states_is_null_with_its_reason() -> None:
    document = made(air(23.0, measurement="temperature"), altitude_m=None)
    assert document["inlet_degC"] is None and document["altitude_m"] is None
    assert set(document["reasons"]) == {"surroundings.inlet_temperature", "surroundings.altitude"}


def test_an_older_bundle_has_no_such_document(tmp_path: Path) -> None:
    assert of_bundle(tmp_path, some_run()) is None


@pytest.mark.parametrize(("value", "sound"), [(430, True), (-100.5, True), (9000, False), ("430", False)])
def test_the_inventory_declares_an_altitude_that_a_site_can_have(value: Any, sound: bool) -> None:
    form = load_schema("candidate")["properties"]["altitude_m"]
    assert Draft202012Validator(form).is_valid(value) == sound


@pytest.mark.parametrize(
    ("sensor", "entity"),
    [("PSU1 Inlet Temp", "10.1"), ("Inlet Temp", "10.2"), ("PS2 Ambient", "7.1"), ("GPU Ambient", "11.3")],
)
def test_the_inlet_of_a_part_is_not_the_servers(sensor: str, entity: str) -> None:
    document = made(air(21.0, "Inlet Temp", "7.1"), air(29.0, sensor, entity))
    assert document["inlet_degC"] == {"min": 21, "median": 21, "max": 21}
    assert document["inlet_sensors"] == {"Inlet Temp": 1}


# Names, and entities of IPMI 2.0, table 43-13: riser 16, drive backplane 15, fan 29, air inlet 55 and 64, system board 7.
OF_PARTS = """
Riser1 Inlet Temp 16.1|RISER_INLET 7.1|BMC Ambient 6.1|VR_Ambient 7.2|HBA Ambient 7.1|RAID Ambient 7.1|BP_Inlet 15.2|Backplane Ambient 15.1
PCH Ambient 7.1|Memory Ambient 7.1|Mem Ambient 7.1|Mezz Ambient 7.1|M.2 Ambient 7.1|Drive Inlet 7.1|HD Inlet 7.1|Exhaust Ambient 7.1
C1_DCSCM_Inlet 7.1|Front Panel PHY Temp 7.1|Front Panel 12 Temp 12.1
GPU Inlet 55.2|PSU1_Inlet 64.1|P/S 1 Inlet 55.1|Water Inlet 7.1|Coolant Inlet Temp 7.1|CDU Inlet 7.1|PDB Ambient 7.1|LOM Ambient 7.1
Battery Ambient 7.1|FPGA Inlet 7.1|Fan Inlet 29.1|TEMP_GB1_INLET1 7.1|P1_INLET 7.1|GPUInlet 7.1|NVMeAmbient 7.1|Sys Inlet Margin 55.1
"""


@pytest.mark.parametrize("named", OF_PARTS.replace("\n", "|").strip("|").split("|"))
def test_a_parts_inlet_is_not_the_servers(named: str) -> None:
    sensor, _, entity = named.rpartition(" ")
    assert made(air(21.0, "Inlet Temp", "7.1"), air(48.0, sensor, entity))["inlet_sensors"] == {"Inlet Temp": 1}
    assert made(air(48.0, sensor, entity))["inlet_degC"] is None


@pytest.mark.parametrize(
    "named",
    [
        "01-Inlet Ambient 64.1",
        "MB_INLET_TEMP 7.1",
        "BB Inlet Temp 7.1",
        "System Board Inlet Temp 7.1",
        "Ambient Temp 39.1",
        "Front Inlet 12.1",
        "Board Inlet 7.1",
    ],
)
def test_no_server_loses_its_inlet(named: str) -> None:
    sensor, _, entity = named.rpartition(" ")
    assert made(air(21.0, sensor, entity))["inlet_sensors"] == {sensor: 1}


def test_a_mainboards_inlet_is_the_servers_only_where_there_is_no_other() -> None:
    both = made(air(17.0, "01-Inlet Ambient", "64.1"), air(23.0, "14-Board Inlet", "66.1"))
    assert both["inlet_sensors"] == {"01-Inlet Ambient": 1}


def test_air_at_0_is_no_reading() -> None:
    assert made(air(0.0), air(23.0))["inlet_degC"]["min"] == 23
