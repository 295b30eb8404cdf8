"""A bundle's account of its run at the start, and the things that it must not hold."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from msgspec import structs

from daq_bench.bench_model.behaviour import drive_temperature
from daq_bench.bench_model.bundle.line_protocol import Point, parse_line
from daq_bench.bench_model.documents.run import Git
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.settings import Layout, Request, load_profiles
from daq_bench.rig.base.shell import LocalShell
from daq_bench.rig.candidate.host import Target, survey
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.candidate.provision import first_error
from daq_bench.rig.run.record import copy_profiles, first_run, git_state

LAYOUT = Layout()


def test_connection_details_stay_out_of_the_bundle(tmp_path: Path) -> None:
    inventory = tmp_path / "lab.yml"
    text = (LAYOUT.inventory / "lab.yml").read_text(encoding="utf-8")
    secrets = "          ansible_connection: local\n          ansible_become_password: hunter2\n          bmc_password: calvin\n"
    inventory.write_text(text.replace("          ansible_connection: local\n", secrets), encoding="utf-8")
    profiles = load_profiles(Request(inventory=inventory), LAYOUT)
    bundle = Bundle.create(tmp_path / "runs", "this-machine", "", "dune-snb")
    copy_profiles(bundle, profiles)
    written = "".join(file.read_text(encoding="utf-8") for file in bundle.path.rglob("*") if file.is_file())
    assert "hunter2" not in written
    assert "calvin" not in written
    copied = load_candidate(bundle.path / "profiles" / "lab.yml", "this-machine")
    assert copied.document == profiles.candidate.document


def test_run_json_says_what_was_scaled_down(tmp_path: Path) -> None:
    profiles = load_profiles(Request(scale=0.02, duration_s=3.0), LAYOUT)
    bundle = Bundle.create(tmp_path, "this-machine", "", "dune-snb")
    found = structs.replace(survey(LocalMachine()), target=Target("ext4", 10**12, None))
    document = first_run(bundle, profiles, found, tmp_path / "scratch", tmp_path)
    assert document.demand and document.demand.offered_bytes_per_s == pytest.approx(0.02 * 9.24288e9)
    assert document.scenario.duration_s == 3.0
    load, target, scenario, *workloads = document.scaled_down
    assert load == "The load is 0.02 of one readout unit: 0.1849 GB/s offered of 9.243 GB/s"
    assert target == "The target is a scratch file on ext4, not the candidate's own storage set aside for the record"
    shortened = "duration_s is 3.0 where at least 100 is demanded; repetitions is 1 where at least 3 is demanded"
    assert scenario.endswith(f"demands: {shortened}")
    assert [text.partition(" ")[0] for text in workloads] == ["block_scan", "snb_record"]


def test_a_folder_outside_of_git_has_no_commit(tmp_path: Path) -> None:
    assert git_state(LocalShell(), tmp_path) == Git(None, None)


def test_of_ansibles_output_the_first_error_is_quoted() -> None:
    output = "TASK [x] ****\nok: [m]\n[ERROR]: Task failed: m lacks fio: install fio\nOrigin: y\n[ERROR]: second\n"
    assert first_error(output) == "Task failed: m lacks fio: install fio"
    assert first_error("one\ntwo\n") == "one two"


LINES = [
    "temperature,device=nvme0n1,sensor=hwmon1/temp1 temperature_degc=61.0,warning_degc=70.0,critical_degc=80.0 1",
    "temperature,device=nvme0n1,sensor=hwmon1/temp1 temperature_degc=66.5,warning_degc=70.0,critical_degc=80.0 2",
    "temperature,device=nvme1n1,sensor=hwmon2/temp1 temperature_degc=69.9,warning_degc=70.0 3",
    "temperature,chip=k10temp,sensor=hwmon0/temp1 temperature_degc=91.0 4",
]


def test_the_headroom_is_the_target_drives_own() -> None:
    found = as_document(drive_temperature.from_points(map(parse_line, LINES), ["nvme0n1"]))
    assert (found["samples"], found["max_degC"], found["headroom_degC"], found["reasons"]) == (2, 66.5, 3.5, {})
    assert (found["critical_degC"], found["critical_headroom_degC"]) == (80.0, 13.5)


def test_a_drive_that_counts_minutes_above_its_warning_and_shows_none_has_no_headroom() -> None:
    """Its sensor lies, or hides what happens between its readings: that must not look like a cool drive."""
    minutes = [
        f"smart,device=nvme0n1 warning_temperature_time_min={count}i,temperature_degc=40.0 {count}" for count in (7, 8)
    ]
    still = [f"smart,device=nvme0n1 warning_temperature_time_min=7i {count}" for count in (1, 2)]
    found = as_document(drive_temperature.from_points(map(parse_line, LINES + minutes), ["nvme0n1"]))
    assert (found["headroom_degC"], found["critical_headroom_degC"], found["max_degC"]) == (None, None, None)
    assert "counted 1 minutes above its warning temperature" in found["reasons"][drive_temperature.METRIC]
    assert drive_temperature.from_points(map(parse_line, LINES + still), ["nvme0n1"]).headroom_degC == 3.5
    hot = [
        "temperature,device=nvme0n1 temperature_degc=71.0,warning_degc=70.0 9"
    ]  # its sensor shows it: a fact, which misses its bound
    assert drive_temperature.from_points(map(parse_line, LINES + hot + minutes), ["nvme0n1"]).headroom_degC == -1.0


def test_the_headroom_of_an_array_is_its_hottest_drives() -> None:
    found = as_document(drive_temperature.from_points(map(parse_line, LINES), ["nvme0n1", "nvme1n1"]))
    assert (found["device"], found["samples"], found["headroom_degC"]) == ("nvme0n1, nvme1n1", 3, pytest.approx(0.1))


def test_the_hottest_sensor_is_shown_and_the_limits_stay_with_the_composite() -> None:
    inner = ["temperature,device=nvme0n1,label=Sensor\\ 2,sensor=hwmon1/temp3 temperature_degc=84.0 2"]
    found = as_document(drive_temperature.from_points(map(parse_line, LINES + inner), ["nvme0n1"]))
    assert found["hottest_sensor"] == {"device": "nvme0n1", "sensor": "Sensor 2", "degC": 84.0}
    assert (found["max_degC"], found["headroom_degC"]) == (66.5, 3.5)


def test_a_drive_without_a_kernel_sensor_is_judged_by_its_own_health_log() -> None:
    own = [
        "smart_temperature,device=nvme0n1,sensor=composite temperature_degc=69.0,warning_degc=70.0 2",
        "smart_temperature,device=nvme2n1,sensor=composite temperature_degc=55.0,warning_degc=70.0,critical_degc=80.0 2",
        "smart_temperature,device=nvme2n1,sensor=sensor_1 temperature_degc=61.0 2",
    ]
    found = as_document(drive_temperature.from_points(map(parse_line, LINES + own), ["nvme0n1", "nvme2n1"]))
    assert (found["samples"], found["max_degC"], found["headroom_degC"]) == (3, 66.5, 3.5)
    assert found["hottest_sensor"]["sensor"] == "composite"
    alone = as_document(drive_temperature.from_points(map(parse_line, LINES + own), ["nvme2n1"]))
    assert (alone["headroom_degC"], alone["critical_headroom_degC"], alone["hottest_sensor"]["degC"]) == (
        15.0,
        25.0,
        61.0,
    )


@pytest.mark.parametrize("drives", [["vda"], [], ["vda", "vdb"]])
def test_a_drive_without_a_sensor_has_no_headroom_but_a_reason(drives: list[str]) -> None:
    found = as_document(drive_temperature.from_points(map(parse_line, LINES), drives))
    assert found["headroom_degC"] is None
    assert "no temperature together with" in found["reasons"]["snb_record.drive_temperature_headroom"]


def reading(device: str, degrees: float, warning: float | None = None) -> Point:
    """A point that no line protocol gives where a value is not finite: `parse_line` refuses such a line."""
    fields = {"temperature_degc": degrees, "warning_degc": warning}
    return Point(
        "temperature", {"device": device}, {name: value for name, value in fields.items() if value is not None}, 5
    )


@pytest.mark.parametrize(
    ("drives", "odd", "words"),
    [
        (["nvme0n1", "nvme3n1"], reading("sda", 40.0), "one or more of the drives"),
        (["nvme0n1"], reading("nvme0n1", math.nan, 70.0), "temperature_degc of drive nvme0n1 is nan"),
        (["nvme0n1"], reading("nvme0n1", 60.0, math.inf), "warning_degc of drive nvme0n1 is inf"),
    ],
)
def test_a_drive_that_is_missing_and_a_reading_that_is_no_number_leave_no_headroom(
    drives: list[str], odd: Point, words: str
) -> None:
    """The missing drive might be the hottest."""
    found = as_document(drive_temperature.from_points([*map(parse_line, LINES), odd], drives))
    assert (found["headroom_degC"], found["max_degC"]) == (None, None)
    assert words in found["reasons"]["snb_record.drive_temperature_headroom"]
