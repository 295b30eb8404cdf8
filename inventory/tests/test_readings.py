"""No reader of a bundle believes what no running drive can state, whoever wrote it there."""

from __future__ import annotations

import pytest

from daq_bench.bench_model.behaviour import drive_temperature, throttling, wear_of_run
from daq_bench.bench_model.bundle import telemetry_tracks
from daq_bench.bench_model.bundle.line_protocol import Point
from daq_bench.candidate_kit import plausible
from daq_bench.candidate_kit.smartctl import NVME_HEALTH

DRIVE_LIMITS = {"warning_degc": 70.0, "critical_degc": 80.0}


def points(measurement: str = "temperature", **fields: float) -> list[Point]:
    tags = {"device": "sda", "sensor": "drive" if measurement == "smart_temperature" else "hwmon0/temp1"}
    return [Point(measurement, tags, dict(fields), second * 10**9) for second in range(5)]


@pytest.mark.parametrize("unread", [0.0, -0.15, -273.15, 128.0 * 2])
@pytest.mark.parametrize("measurement", ["temperature", "smart_temperature"])
def test_a_drive_that_states_no_temperature_has_no_headroom(measurement: str, unread: float) -> None:
    found = drive_temperature.from_points(points(measurement, temperature_degc=unread, **DRIVE_LIMITS), ["sda"])
    assert found.headroom_degC is None and found.critical_headroom_degC is None and found.max_degC is None
    assert found.hottest_sensor is None
    assert "reports no temperature" in found.reasons[drive_temperature.METRIC]
    tracks = telemetry_tracks.from_points(points(measurement, temperature_degc=unread, **DRIVE_LIMITS))
    assert tracks.get(measurement, "sda", "temperature_degc") is None
    assert throttling.unanswered(tracks, ["sda"], {}, 0.0, 4.0)


@pytest.mark.parametrize("limit", [0.0, -5.15, -273.15, 65261.85])
def test_a_limit_that_is_none_condemns_no_drive(limit: float) -> None:
    none = points(temperature_degc=31.0, warning_degc=limit, critical_degc=limit)
    found = drive_temperature.from_points(none, ["sda"])
    assert found.headroom_degC is None and found.warning_degC is None and found.critical_degC is None
    assert telemetry_tracks.from_points(none).get("temperature", "sda", "warning_degc") is None
    own = points("smart_temperature", temperature_degc=33.0, **DRIVE_LIMITS)
    assert drive_temperature.from_points([*none, *own], ["sda"]).headroom_degC == 37.0


def test_what_a_running_drive_states_is_kept() -> None:
    """A cold hall in winter, and the hottest that silicon is specified for."""
    for degrees in (-5.0, 0.85, 1.0, 31.0, 125.0):
        found = drive_temperature.from_points(points(temperature_degc=degrees, **DRIVE_LIMITS), ["sda"])
        assert found.headroom_degC == pytest.approx(70.0 - degrees)


def test_the_rules_that_answer_and_those_that_raise_are_one() -> None:
    for value in (
        -273.15,
        -55.1,
        -55.0,
        -5.0,
        -0.2,
        -0.15,
        -0.1,
        0.0,
        0.1,
        31.0,
        150.0,
        150.1,
        float("nan"),
        float("inf"),
    ):
        for raises, answers in (
            (plausible.degrees_of_a_running_part, plausible.is_running_degrees),
            (plausible.limit_celsius, plausible.is_limit),
        ):
            try:
                accepted = raises(value, "x") == value
            except ValueError:
                accepted = False
            assert accepted is answers(value)


@pytest.mark.parametrize("spare", [101, 200, 255])
def test_a_spare_beyond_100_percent_is_no_margin(spare: int) -> None:
    log = {"available_spare": spare, "available_spare_threshold": 10, "percentage_used": 3, "data_units_written": 5}
    (row,) = wear_of_run.from_pairs({"nvme0n1": ({NVME_HEALTH: log}, {NVME_HEALTH: log})})["drives"]
    assert row["spare_margin_percent"] is None and row["used_percent"] == 3


@pytest.mark.parametrize("bit", [0, 255])
def test_a_health_log_of_one_bit_tells_no_wear(bit: int) -> None:
    log = dict.fromkeys(("critical_warning", "available_spare", "available_spare_threshold", "percentage_used"), bit)
    assert plausible.is_blank_health(log) and wear_of_run._used({NVME_HEALTH: log}) is None
