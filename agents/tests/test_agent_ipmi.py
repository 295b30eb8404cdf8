"""The BMC's sensors: over recorded answers of ipmitool 1.8.19, over a scripted ipmitool, and over a real BMC simulator.

tests/fixtures/ipmi was recorded from the real ipmitool against the real ipmi_sim, over LAN."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_helpers import FIXTURES, T0_NS, by_tag, fake_program, undeclared, wait_for

from daq_bench.telemetry_agent.base.line_parser import parse_line
from daq_bench.telemetry_agent.base.point import Encoder, Point
from daq_bench.telemetry_agent.collectors.ipmi import LOG, LOG_NOW, LOG_SINCE, POWER, SENSORS, Ipmi, lan_interface
from daq_bench.telemetry_agent.devices.ipmi_text import (
    LogEntry,
    LogState,
    PowerReading,
    added_entries,
    bmc_seconds,
    full_records,
    parse_log,
    parse_log_state,
    parse_power,
    parse_sensors,
)
from daq_bench.telemetry_agent.reading.collector import Reading, Unsupported, reading_now
from daq_bench.telemetry_agent.scheduling.scheduler import Scheduler
from daq_bench.virtual_candidate import processes
from daq_bench.virtual_candidate.bmc.simulator import Bmc
from daq_bench.virtual_candidate.ports import free_ports

RECORDED = FIXTURES / "ipmi"
SDR, DCMI = (RECORDED / "sdr_full.csv").read_text(), (RECORDED / "dcmi_power.txt").read_text()
LAN = ("-I", "lanplus", "-H", "bmc", "-U", "admin", "-E")
SEL_INFO = (RECORDED / "sel_info.txt").read_text()
# Sensor data records as `sdr dump` writes them: 17 full ones, and one of another type.
RECORDS = b"".join(bytes([number, 0, 0x51, 1, 43]) + bytes(43) for number in range(17)) + b"\x20\0\x51\x12\x02ab"
# Answers as recorded; every call is noted in the file `calls`.
ANSWERING = f"""
cd "$(dirname "$0")"; echo "$*" >>calls
case "$*" in
    *"sdr dump"*) for path; do :; done; cp records "$path" ;;
    *"sdr elist full"*) cat {RECORDED}/sdr_full.csv ;;
    *"dcmi power reading"*) cat {RECORDED}/dcmi_power.txt ;;
    *"sel info"*) cat info ;;
    *"sel elist last"*) cat entries ;;
    *) echo "unexpected: $*" >&2; exit 2 ;;
esac
"""
REFUSING_DCMI = f"""case "$*" in *dcmi*) cat {RECORDED}/dcmi_refused.txt >&2; exit 1 ;; esac\n"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is first on PATH, with an ipmitool that answers."""
    monkeypatch.setenv("PATH", fake_program(tmp_path / "bin", "ipmitool", ANSWERING))
    (tmp_path / "bin" / "records").write_bytes(RECORDS)
    (tmp_path / "bin" / "info").write_text(SEL_INFO)
    return tmp_path / "bin"


def points_of(sensors: str = SDR, power: str = "") -> list[Point]:
    """Returns the points that the collector makes of these texts."""
    return Ipmi(1.0).parse(reading_now({SENSORS: sensors, POWER: power}), None)


def sensors_of(points: list[Point]) -> dict[tuple[str, str], dict[str, Any]]:
    """Fields by sensor and entity."""
    keys = [dict(point.tags) for point in points if point.measurement == "ipmi_sensor"]
    fields = [dict(point.fields) for point in points if point.measurement == "ipmi_sensor"]
    return {(key["sensor"], key["entity"]): value for key, value in zip(keys, fields, strict=True)}


def unread(points: list[Point]) -> list[str]:
    """Why the power was not read, as the points say."""
    return [str(point.fields["unread"]) for point in points if "unread" in point.fields]


def powers(points: list[Point]) -> list[float]:
    """DCMI's readings."""
    found = [point.fields for point in points if point.measurement == "ipmi_power"]
    return [float(fields["power_w"]) for fields in found if "unread" not in fields]


def test_every_kind_of_sensor_has_its_unit_state_and_entity() -> None:
    """Two sensors of one name differ by entity; a name may hold a comma; HPE's fans state percent."""
    assert sensors_of(points_of()) == {
        ("Inlet Temp", "55.1"): {"temperature_degc": 24.0, "state": "ok", "severity": 0},
        ("Temp", "3.1"): {"temperature_degc": 90.0, "state": "upper non-critical", "severity": 1},
        ("Temp", "3.2"): {"temperature_degc": 47.0, "state": "ok", "severity": 0},
        ("NVMe1 Temp", "15.1"): {"temperature_degc": 81.0, "state": "upper critical", "severity": 2},
        ("Fan1", "29.1"): {"speed_rpm": 6000.0, "state": "ok", "severity": 0},
        ("Fan2", "29.2"): {"speed_rpm": 0.0, "state": "lower critical", "severity": 2},
        ("Fan 3 DutyCycle", "29.3"): {"duty_percent": 19.6, "state": "ok", "severity": 0},
        ("Pwr Consumption", "21.1"): {"power_w": 420.0, "state": "ok", "severity": 0},
        ("12v Rail", "7.1"): {"voltage_v": 12.12, "state": "ok", "severity": 0},
        ("Rail, 3.3v", "7.2"): {"voltage_v": 3.3, "state": "ok", "severity": 0},
        ("Current 1", "10.1"): {"current_a": 1.0, "state": "ok", "severity": 0},
        ("PSU 1 Input", "10.1"): {"power_w": 0.0, "state": "ok", "severity": 0},
        ("Fan1 #2", "29.1"): {"speed_rpm": 6100.0, "state": "ok", "severity": 0},
        ("Coolant Temp", "55.2"): {"temperature_degc": 18.0, "state": "ok", "severity": 0},
    }
    kinds = by_tag(points_of(), "kind")
    assert sorted(kinds) == ["current", "fan", "power", "temperature", "voltage"]


def test_what_has_no_reading_or_another_quantity_gives_no_point() -> None:
    """A disabled drive sensor, a supply's discrete states, an airflow: understood, so no fault either."""
    readings, faults = parse_sensors(SDR)
    assert faults == []
    assert {"NVMe2 Temp", "PSU 2 Status"}.isdisjoint(reading.sensor for reading in readings)
    assert "Airflow" not in [dict(point.tags)["sensor"] for point in points_of()]


def test_a_percentage_is_a_fan_only_where_the_bmc_says_so() -> None:
    """Dell's CPU usage is a percentage too."""
    assert points_of("CPU Usage,12,percent,ok,7.1,System Board,Other,,,,,,,,,,0.000,100.000\n") == []


TAIL = ",System Board,Other,,,,,,,,,,"
# Rows of public outputs of `ipmitool sensor` and `sdr`, in the form that is asked for; what each measures, by hand.
# StarlingX' hardware monitor (Wind River, ipmiClient.h): each sensor is flagged as a percentage.
# HPE: an E930t's iLO 6, a DL380 G7's (collectd/collectd#819). Intel: an S2600's BMC, whose margins are kelvin to a limit.
# In degrees F and K no public output was found: these rows are composed after IPMI 2.0, table 43-15 (sensor unit types 2 and 3).
# Supermicro's X11DPH-T: a fan at 25500 (khorton/nas_fan_control#7: "this is wrong"); SPARC T3-1 (ipmitool/ipmitool#228).
ROWS: dict[str, tuple[str, str, float] | str | None] = {
    "Temp_CPU0,54,% degrees C,ok,3.1": ("temperature", "temperature_degc", 54.0),
    "Fan_SYS0_2,4700,% RPM,ok,29.1": ("fan", "speed_rpm", 4700.0),
    "Fan_SYS0_3,0,% RPM,Lower Critical,29.2": ("fan", "speed_rpm", 0.0),
    "Fan_SYS0_4,43.512,% RPM,ok,29.3": ("fan", "duty_percent", 43.512),
    "PSU2 Input,0,% Watts,Lower Critical,10.2": ("power", "power_w", 0.0),
    "PS1 Curr Out %,12,% Amps,ok,10.1": None,
    "Ambient Temp,71.600,degrees F,ok,12.1": ("temperature", "temperature_degc", 22.0),
    "Front Temp,77,% degrees F,ok,12.2": ("temperature", "temperature_degc", 25.0),
    "Chassis Temp,295.150,degrees K,ok,23.1": ("temperature", "temperature_degc", 22.0),
    "Ambient Temp,0,degrees F,ok,12.1": "Ambient Temp is 0 degrees C, which is no reading of what is in use",
    "Ambient Temp,0,degrees K,ok,12.1": "Ambient Temp is 0 degrees C, which is no reading of what is in use",
    "Ambient Temp,400,degrees F,ok,12.1": "Ambient Temp is 204.444 degrees C, which no part of a server that runs has (-55 to 150)",
    "System Airflow,0,CFM,ok,7.1": None,
    "CPU Utilization,7,unspecified,ok,7.1": None,
    "MTT CPU1,3,percent,ok,3.1": None,
    "PS1 Curr Out %,0,percent,ok,10.1": None,
    "P1 Therm Ctrl %,0,percent,ok,3.1": None,
    "Agg Therm Mgn 1,-16,degrees C,ok,7.1": None,
    "Fan 1 DutyCycle,21.952,percent,ok,7.1": ("fan", "duty_percent", 21.952),
    "Fan Block 1,21.560,percent,ok,7.1": ("fan", "duty_percent", 21.56),
    "15.2-PCI 1-SFP28,41,degrees C,ok,11.3": ("temperature", "temperature_degc", 41.0),
    "FB/FM0/F0/TACH,5000,RPM,ok,29.1": ("fan", "speed_rpm", 5000.0),
    "PS_Curr_In_01,0.300,Amps,ok,10.1": ("current", "current_a", 0.3),
    "PVDDQ_AB,1.231,Volts,ok,7.1": ("voltage", "voltage_v", 1.231),
    "Node Energy,1200,Joules,ok,7.1": None,
}


@pytest.mark.parametrize("row", ROWS)
def test_each_unit_is_read_as_what_it_measures(row: str) -> None:
    """In no case is a value taken for another quantity; what cannot be is a fault."""
    wanted = ROWS[row]
    line = f"{row}{TAIL}\n"
    assert parse_sensors(line)[1] == ([f"ipmitool sdr: {wanted}"] if isinstance(wanted, str) else [])
    found = [
        (
            dict(point.tags)["kind"],
            *((key, value) for key, value in point.fields.items() if key not in ("state", "severity")),
        )
        for point in points_of(line)
    ]
    assert found == ([(wanted[0], (wanted[1], wanted[2]))] if isinstance(wanted, tuple) else [])


@pytest.mark.parametrize(
    ("row", "reading"),
    [
        ("FAN1,25500,RPM,ok,29.1,Fan Device,Fan,,,,,,,,300.000,500.000,0.000,25500.000", False),
        ("FAN1,25400,RPM,ok,29.1,Fan Device,Fan,,,,,,,,300.000,500.000,0.000,25500.000", True),
        ("fan8,10100,RPM,ok,29.8,Fan Device,Fan,,,,,,,,,,0.000,10100.000", True),  # its own highest speed: no 255 steps
        ("PS 2 Input,2550,Watts,ok,10.2,Power Supply,Other,,,,,,,,,,0.000,2550.000", False),
        ("PS 1 Input,150,Watts,ok,10.1,Power Supply,Other,,,,,,,,,,0.000,2550.000", True),
        ("PSU 1 Input,0,Watts,ok,10.1,Power Supply,Other,,,,,,,,,,0.000,0.000", True),
        ("Fan 1 DutyCycle,99.960,percent,ok,29.1,Fan Device,Fan,,,,,,,,,,0.000,99.960", True),  # HPE: at full speed
    ],
)
def test_all_ones_are_no_speed_and_no_power(row: str, reading: bool) -> None:
    readings, faults = parse_sensors(f"{row}\n")
    assert (len(readings), len(faults)) == ((1, 0) if reading else (0, 1))
    assert reading or "which is the sensor's highest value and no reading" in faults[0]


def test_no_running_server_draws_0_w() -> None:
    """A BMC that is active and says so has no reading, or a power requirement would be met by nothing."""
    nothing = DCMI.replace("420 Watts", "0 Watts")
    assert nothing != DCMI
    with pytest.raises(ValueError, match="0 W while it measures, which is no reading"):
        parse_power(nothing)
    with pytest.raises(ValueError, match="65535 W, which is the field's highest value"):
        parse_power(DCMI.replace("420 Watts", "65535 Watts"))


def test_a_twin_keeps_its_name_when_the_first_falls_silent() -> None:
    """Otherwise its values would continue the other one's series."""
    lines = SDR.replace("Fan1,6000,RPM,ok,29.1,", "Fan1,,,ns,29.1,", 1)
    assert ("Fan1 #2", "29.1") in sensors_of(points_of(lines))
    assert ("Fan1", "29.1") not in sensors_of(points_of(lines))


@pytest.mark.parametrize(
    "line",
    [
        "Fan9,6000,RPM",  # torn
        "Fan9,nan,RPM,ok,29.9,Fan Device,Fan",
        "Fan9,6000,RPM,perfect,29.9,Fan Device,Fan",
        "Get SDR 0012 command failed: Timeout",
        "Fan9            | 6000 RPM          | ok",
        "\ufffd\ufffd,,",
    ],
)
def test_a_malformed_line_is_a_fault_and_the_others_count(line: str) -> None:
    """The fault shows the line; nothing is guessed from it."""
    readings, faults = parse_sensors(f"{line}\n{SDR}")
    assert faults == [f"ipmitool sdr: line not understood: {line!r}"]
    assert readings == parse_sensors(SDR)[0]


def test_dcmi_power_is_read_with_the_time_that_the_bmc_states() -> None:
    """Debian's ipmitool prints no line break after the time, others do; a BMC may have no time."""
    recorded = parse_power(DCMI)
    assert recorded == PowerReading(420.0, "11/21/26 16:03:35 UTC")
    assert parse_power(DCMI.replace("    Sampling", "\n    Sampling")) == recorded
    assert parse_power(DCMI.replace("11/21/26 16:03:35 UTC", "Unspecified")) == PowerReading(420.0, "")
    for unset in (
        "Thu Jan  1 00:00:00 1970",
        "01/01/1970 00:00:00 UTC",
        "01/01/70 00:00:00 UTC",
    ):  # openbmc/openbmc#3257
        assert parse_power(DCMI.replace("11/21/26 16:03:35 UTC", unset)) == PowerReading(420.0, "")


def test_dcmi_without_measurement_gives_no_point() -> None:
    """Its 0 W mean "not measured"."""
    inactive = (RECORDED / "dcmi_inactive.txt").read_text()
    assert parse_power(inactive) is None
    assert powers(points_of(power=inactive)) == []
    # OpenBMC measures beside that state (openbmc/openbmc#3257).
    measuring = inactive.replace(
        "Instantaneous power reading:                     0", "Instantaneous power reading: 131"
    )
    assert parse_power(measuring) == PowerReading(131.0, "11/21/26 16:03:37 UTC")
    with pytest.raises(ValueError, match="not understood: 'Segmentation"):
        parse_power("Segmentation fault\n")


def test_a_power_reading_that_the_bmc_repeats_is_not_repeated() -> None:
    """Same time and value: stale. Without a time it cannot be known, and it counts."""
    collector = Ipmi(1.0)

    def second(power: str, before: str = DCMI) -> list[float]:
        older = Reading(T0_NS, 100.0, {SENSORS: SDR, POWER: before})
        return powers(collector.parse(Reading(T0_NS + 5, 105.0, {SENSORS: SDR, POWER: power}), older))

    assert second(DCMI) == []
    assert second(DCMI.replace("16:03:35", "16:03:40")) == [420.0]
    assert second(DCMI.replace("420 Watts", "424 Watts")) == [424.0]
    timeless = DCMI.replace("11/21/26 16:03:35 UTC", "Unspecified")
    assert second(timeless, timeless) == [420.0]


def test_it_runs_at_five_seconds_at_most() -> None:
    """ipmitool takes seconds."""
    assert Ipmi(1.0).period_s == 5.0
    assert Ipmi(60.0).period_s == 60.0


def test_unsupported_says_what_is_missing(tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No device, a device that is closed to the user, no program."""
    with pytest.raises(Unsupported, match=r"no .*/dev/ipmi0: no BMC, or ipmi_si and ipmi_devintf are not loaded"):
        Ipmi(1.0, tmp_path).read()
    device = tmp_path / "dev/ipmi/0"
    device.parent.mkdir(parents=True)
    device.touch()
    monkeypatch.setattr(os, "access", lambda path, mode: path != device)
    with pytest.raises(Unsupported, match=r"dev/ipmi/0 is not open to this user: run the agent as root"):
        Ipmi(1.0, tmp_path).read()
    monkeypatch.setattr(shutil, "which", lambda program, path: None)
    with pytest.raises(Unsupported, match="package ipmitool"):
        Ipmi(1.0, tmp_path).read()


def test_in_band_and_over_lan_are_asked_alike(tools: Path, tmp_path: Path) -> None:
    """The sensor data records are read once only; the arguments that name a BMC replace the device."""
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/ipmi0").touch()
    for interface, words in (((), "-I open -d 0"), (LAN, "-I lanplus -H bmc -U admin -E")):
        (tools / "calls").unlink(missing_ok=True)
        collector = Ipmi(1.0, tmp_path, interface)
        for _ in range(2):
            reading = collector.read()
            assert reading.faults == ()
            assert reading.texts == {SENSORS: SDR, POWER: DCMI, LOG: ""}
        calls = (tools / "calls").read_text().splitlines()
        assert [call.split()[-3:] for call in calls].count(["dcmi", "power", "reading"]) == 2
        assert sum("sdr dump" in call for call in calls) == 1
        assert all(call.startswith(words) for call in calls)


def test_a_bmc_without_dcmi_is_said_once(tools: Path) -> None:
    """And then no longer asked: that is how the machine is, and no fault of each sample."""
    fake_program(tools, "ipmitool", REFUSING_DCMI + ANSWERING)
    collector = Ipmi(1.0, interface=LAN)
    assert collector.read().faults == (
        "ipmitool dcmi power reading: DCMI request failed because: Invalid command (c1); not asked again",
    )
    later = collector.read()
    assert later.faults == ()
    assert powers(collector.parse(later, None)) == []


def test_dcmi_that_is_lost_is_a_fault_and_the_sensors_count(tools: Path) -> None:
    """A query that answered once is asked again; its last value is not repeated."""
    collector = Ipmi(1.0, interface=LAN)
    first = collector.read()
    assert powers(collector.parse(first, None)) == [420.0]
    fake_program(tools, "ipmitool", REFUSING_DCMI + ANSWERING)
    for _ in range(2):
        lost = collector.read()
        assert lost.faults == ("ipmitool dcmi power reading: DCMI request failed because: Invalid command (c1)",)
        assert powers(collector.parse(lost, first)) == []
        assert unread(collector.parse(lost, first)) == [
            "'ipmitool dcmi power reading: DCMI request failed because: Invalid command (c1)'"
        ]
        assert len(sensors_of(collector.parse(lost, first))) == 14


@pytest.mark.parametrize(
    ("watts", "state", "said"),
    [
        ("0", "activated", "0 W while it measures"),
        ("65535", "activated", "highest value and no reading"),
        ("0", "deactivated", "does not measure power any more"),
    ],
)
def test_a_power_that_was_read_and_is_not_any_more_leaves_a_point_that_says_so(
    tools: Path, watts: str, state: str, said: str
) -> None:
    """The sensors go on, so that no gap shows it; the last watts would seem to hold to the end of the record."""
    collector = Ipmi(1.0, interface=LAN)
    first = collector.read()
    assert unread(collector.parse(first, None)) == []
    answer = DCMI.replace("420 Watts", f"{watts} Watts").replace("activated", state)
    (tools / "power").write_text(answer)
    fake_program(tools, "ipmitool", 'case "$*" in *dcmi*) cat "$(dirname "$0")/power"; exit 0;; esac\n' + ANSWERING)
    later = collector.read()
    points = collector.parse(later, first)
    (text,) = unread(points)
    assert said in text
    assert (powers(points), len(sensors_of(points))) == ([], 14)


def test_a_bmc_that_never_measured_power_leaves_no_such_point(tools: Path) -> None:
    (tools / "power").write_text((RECORDED / "dcmi_inactive.txt").read_text())
    fake_program(tools, "ipmitool", 'case "$*" in *dcmi*) cat "$(dirname "$0")/power"; exit 0;; esac\n' + ANSWERING)
    collector = Ipmi(1.0, interface=LAN)
    assert unread(collector.parse(collector.read(), None)) == []


def test_an_exit_status_beside_good_readings_is_a_fault(tools: Path) -> None:
    """One record of many could not be read."""
    broken = (
        f'case "$*" in *elist*) cat {RECORDED}/sdr_full.csv; echo "Get SDR 0012 command failed" >&2; exit 1;; esac\n'
    )
    fake_program(tools, "ipmitool", broken + ANSWERING)
    reading = Ipmi(1.0, interface=LAN).read()
    assert reading.faults == ("ipmitool sdr: Get SDR 0012 command failed",)
    assert reading.texts[SENSORS] == SDR


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("echo 'Error: Unable to establish session' >&2; exit 1", "Error: Unable to establish session"),
        ("exit 3", "exit status 3"),
        ("echo 'Fan1,,,ns,29.1,Fan Device,Fan,'", "none has a value"),
        ("echo garbage", "none has a value; ipmitool sdr: line not understood: 'garbage'"),
        ("true", "none has a value"),
    ],
)
def test_no_reading_at_all_is_a_failure(tools: Path, answer: str, reason: str) -> None:
    """A BMC that died in band leaves every sensor at "ns" with exit status 0; the records are read anew after it."""
    fake_program(tools, "ipmitool", f'case "$*" in *elist*) {answer}; exit 0;; esac\n' + ANSWERING)
    collector = Ipmi(1.0, interface=LAN)
    with pytest.raises(OSError, match="no sensor can be read") as raised:
        collector.read()
    assert str(raised.value) == f"ipmitool sdr: no sensor can be read: {reason}"
    fake_program(tools, "ipmitool", ANSWERING)
    assert collector.read().texts[SENSORS] == SDR
    assert (tools / "calls").read_text().count("sdr dump") == 2


def test_a_hanging_bmc_is_given_up(tools: Path) -> None:
    """Bounded, and the message names neither host nor user."""
    fake_program(tools, "ipmitool", 'case "$*" in *elist*) exec sleep 300;; esac\n' + ANSWERING)
    started_s = time.monotonic()
    with pytest.raises(TimeoutError, match=r"^ipmitool sdr elist full: no answer within 0\.2 s$"):
        Ipmi(1.0, interface=LAN, timeout_s=0.2).read()
    assert time.monotonic() - started_s < 100  # of the 300 s that it hangs


def test_a_bmc_that_stops_answering_fails_alone_and_recovers(tools: Path) -> None:
    """Nothing is sampled meanwhile, another collector misses nothing, and then it goes on."""
    fake_program(tools, "ipmitool", 'test -e "$(dirname "$0")/dead" && exec sleep 300\n' + ANSWERING)
    points: list[Point] = []
    bmc, other = Ipmi(1.0, interface=LAN, timeout_s=0.3), Other()
    bmc.period_s = 0.1
    scheduler = Scheduler(points.extend)
    scheduler.add(bmc)
    scheduler.add(other)

    def entry(number: int) -> dict[str, Any]:
        return scheduler.summary()[number]

    scheduler.start()
    try:
        wait_for(lambda: entry(0)["collected_samples"] > 0, "the first sample")
        (tools / "dead").touch()
        wait_for(lambda: entry(0)["status"] == "failing", "the failure")
        assert entry(0)["detail"] == "TimeoutError: ipmitool sdr elist full: no answer within 0.3 s"
        before = len(points)
        time.sleep(0.5)
        assert len(points) == before
        (tools / "dead").unlink()
        wait_for(lambda: entry(0)["status"] == "ok" and len(points) > before, "the recovery")
    finally:
        scheduler.stop(2.0)
    assert entry(0)["missed_samples"] >= 4
    assert entry(1)["missed_samples"] <= 1 + entry(1)["expected_samples"] // 3  # a busy machine may be late


def test_a_slow_bmc_delays_nobody_and_is_read_at_its_own_pace(tools: Path) -> None:
    """Each reading takes ten periods: the ones in between are missed, and shown as such; the other collector misses none."""
    fake_program(tools, "ipmitool", 'case "$*" in *elist*full) sleep 1;; esac\n' + ANSWERING)
    points: list[Point] = []
    bmc, other = Ipmi(1.0, interface=LAN), Other()
    bmc.period_s = 0.1
    scheduler = Scheduler(points.extend)
    scheduler.add(bmc)
    scheduler.add(other)
    scheduler.start()
    try:
        wait_for(lambda: scheduler.summary()[0]["collected_samples"] >= 2, "two readings")
        state = scheduler.snapshot()["ipmi_lan"]
        assert state["success"] is True
        assert state["duration_s"] > 1.0
        assert state["missed_samples"] > 10
    finally:
        scheduler.stop(5.0)
    entry = scheduler.summary()[1]
    assert entry["missed_samples"] <= entry["expected_samples"] // 2  # nine of ten, if it had to wait


class Other:
    """A collector that must not notice anything."""

    name, period_s = "other", 0.1

    def read(self) -> Reading:
        """Nothing."""
        return reading_now({})

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """No point."""
        return []


@pytest.mark.parametrize("vendor", ["supermicro", "dell", "hpe"])
def test_each_makers_sensors_give_exactly_the_expected_points(vendor: str) -> None:
    """Whole: names with commas, quotes and UTF-8, percentages that are fans and such that are not, silent sensors, events."""
    entries = (RECORDED / "sel_entries.csv").read_text() if vendor == "supermicro" else ""
    texts = {SENSORS: (RECORDED / f"sdr_{vendor}.csv").read_text(), POWER: DCMI, LOG: entries}
    points = Ipmi(1.0).parse(Reading(T0_NS, 1.0, texts), None)
    lines = "".join(map(Encoder({}).encode, points))
    assert lines == (RECORDED / f"expected_{vendor}.lp").read_text()
    assert [parse_line(line) for line in lines.splitlines()] == points
    assert parse_sensors(texts[SENSORS])[1] == []
    assert [undeclared(point) for point in points] == [[]] * len(points)


@pytest.mark.parametrize("eighths", range(8))
def test_a_list_that_is_cut_off_is_an_error_and_never_fewer_sensors(tools: Path, eighths: int) -> None:
    """Within a line or behind one, with exit status 0; the records are read again then, should sensors be gone."""
    collector = Ipmi(1.0, interface=LAN)
    collector.read()
    for cut in (SDR[: len(SDR) * eighths // 8], "".join(SDR.splitlines(keepends=True)[: 17 * eighths // 8])):
        (tools / "cut").write_text(cut)
        fake_program(tools, "ipmitool", f'case "$*" in *elist*full) cat {tools}/cut; exit 0;; esac\n' + ANSWERING)
        with pytest.raises(OSError, match=r"cut off after|no sensor can be read"):
            collector.read()
        fake_program(tools, "ipmitool", ANSWERING)
        assert collector.read().faults == ()


def test_a_first_list_that_is_shorter_than_the_records_is_a_fault(tools: Path) -> None:
    """There is nothing else yet to compare it with; said once."""
    (tools / "records").write_bytes(RECORDS + bytes([99, 0, 0x51, 1, 1, 0]))
    collector = Ipmi(1.0, interface=LAN)
    assert collector.read().faults == ("ipmitool sdr: 17 sensors listed, the BMC describes 18",)
    assert collector.read().faults == ()


def test_sensors_that_are_gone_after_a_change_of_the_records_are_gone(tools: Path) -> None:
    """One failed sample, in which the records are found to have changed, and then the rest counts."""
    collector = Ipmi(1.0, interface=LAN)
    collector.read()
    fewer = "".join(SDR.splitlines(keepends=True)[:16])
    (tools / "cut").write_text(fewer)
    (tools / "records").write_bytes(RECORDS[: 16 * 48])
    fake_program(tools, "ipmitool", f'case "$*" in *elist*full) cat {tools}/cut; exit 0;; esac\n' + ANSWERING)
    with pytest.raises(OSError, match="cut off after 16 of 17 sensors"):
        collector.read()
    assert collector.read().faults == ()


@pytest.mark.parametrize("cut", range(1, 8))
def test_records_and_power_that_are_cut_off_are_errors(cut: int) -> None:
    """Their form says where they end."""
    torn = RECORDS[: len(RECORDS) * cut // 8]
    if len(torn) % 48:
        with pytest.raises(ValueError, match="is cut off"):
            full_records(torn)
    with pytest.raises(ValueError, match="not understood"):
        parse_power(DCMI.strip()[: len(DCMI.strip()) * cut // 8])
    with pytest.raises(ValueError, match="not understood"):
        parse_log_state(SEL_INFO[: SEL_INFO.index("Last Add") * cut // 8])
    entries = (RECORDED / "sel_entries.csv").read_text()
    with pytest.raises(ValueError, match=r"cut off|not understood"):
        parse_log(entries[: len(entries) * cut // 8])
    assert full_records(RECORDS) == 17


@pytest.mark.parametrize(
    "name", ["Fan\\", "\\", "9" * 400 + ",1", "Fan\x00", '5" Bay', "a=b", "Lüfter, 1", "\u202efan", "x" * 4000, " "]
)
def test_a_hostile_name_spoils_no_other_sensor(tools: Path, name: str) -> None:
    """Either a whole point, which reads back unchanged, or a fault that shows the line."""
    line = f"{name},6000,RPM,ok,29.9,Fan Device,Fan\n"
    readings, faults = parse_sensors(line + SDR)
    assert len(readings) + len(faults) == len(parse_sensors(SDR)[0]) + 1
    points = points_of(line + SDR)
    assert [parse_line(Encoder({}).encode(point).rstrip("\n")) for point in points] == points


def test_a_value_beyond_all_numbers_is_a_fault() -> None:
    """Line protocol has no infinity, and one sensor's nonsense would cost all of the sample."""
    readings, faults = parse_sensors(f"Fan9,{'9' * 400},RPM,ok,29.9,Fan Device,Fan\n")
    assert readings == []
    assert faults[0].startswith("ipmitool sdr: line not understood: 'Fan9,999")
    assert len(faults[0]) < 250


def test_new_entries_of_the_log_are_events_and_old_ones_are_not(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listed only when the log has grown: listing reads all of it."""
    monkeypatch.setattr("daq_bench.telemetry_agent.collectors.ipmi.LOG_PERIOD_S", 0.0)
    collector = Ipmi(1.0, interface=LAN)
    assert collector.read().texts[LOG] == ""
    assert collector.read().texts[LOG] == ""
    assert "sel elist" not in (tools / "calls").read_text()
    (tools / "info").write_text(SEL_INFO.replace(": 41", ": 45").replace("08:15:02", "16:04:01"))
    (tools / "entries").write_text((RECORDED / "sel_entries.csv").read_text())
    reading = collector.read()
    assert reading.faults == ("ipmitool sel time get: unexpected: -I lanplus -H bmc -U admin -E sel time get",)
    events = [point for point in collector.parse(reading, None) if point.measurement == "ipmi_event"]
    assert [point.fields["record"] for point in events] == [42, 43, 44, 45]
    assert len({point.time_ns for point in events}) == 4
    assert (tools / "calls").read_text().splitlines()[-2].endswith("sel elist last 4")
    assert collector.read().texts[LOG] == ""
    (tools / "info").write_text("garbage\n")
    assert collector.read().faults == ("ipmitool sel info: not understood: 'garbage'",)


def test_the_log_is_asked_at_its_own_pace(tools: Path) -> None:
    """Every 30 s, whatever the sensors' period."""
    collector = Ipmi(1.0, interface=LAN)
    for _ in range(3):
        collector.read()
    assert (tools / "calls").read_text().count("sel info") == 1


@pytest.mark.parametrize(
    ("before", "now", "added"),
    [
        (LogState(3, "a"), LogState(3, "a"), 0),
        (LogState(3, "a"), LogState(5, "b"), 2),
        (LogState(512, "a"), LogState(512, "b"), 1),  # full: it writes over its oldest
        (LogState(40, "a"), LogState(1, "b"), 1),  # emptied, which is an entry itself
        (LogState(40, "a"), LogState(0, "Not Available"), 0),
    ],
)
def test_how_many_entries_are_new(before: LogState, now: LogState, added: int) -> None:
    """By number and by the time of the latest."""
    assert added_entries(before, now) == added


def test_an_entry_is_read_as_the_bmc_wrote_it() -> None:
    """Also one of a form of its own."""
    entry = LogEntry(45, "11/21/2026 16:04:01", "OEM record c0", "OEM record c0, 000137, 0a0b", None)
    line = "2d,11/21/2026,16:04:01,OEM record c0,000137,0a0b\n"
    assert parse_log(line) == ([entry], [])
    assert parse_log("SEL has no entries\n") == (
        [],
        ["ipmitool sel elist: the log has no entries any more: those that were new are lost"],
    )
    # A line of another form costs itself.
    assert parse_log(f"garbage\n{line}")[0] == [entry] and len(parse_log(f"garbage\n{line}")[1]) == 1
    # Forms of ipmitool for entries without a time, and for the kernel's panic.
    entries, faults = parse_log(
        "2e,,,OEM record e0,0102\n2f,,,Linux kernel panic: oops\n30, Pre-Init ,0000001815,Fan #0x31,x,Asserted\n"
    )
    assert faults == [] and [one.time for one in entries] == ["", "", "Pre-Init 0000001815"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("11/21/2026 16:03:37", 1795277017.0),
        ("11/21/26 16:03:37 UTC", 1795277017.0),  # ipmitool 1.8.19
        ("S+ 00:30:20", 1820.0),
        ("S+ 70/002 00:00:01", 86401.0),
        ("Pre-Init 0000001820", 1820.0),
        ("Unspecified", None),
        ("13/41/2026 16:03:37", None),
        ("11/21/2026 99:03:37", None),
        ("", None),
    ],
)
def test_a_bmcs_time_is_read_in_each_form_or_not_at_all(text: str, seconds: float | None) -> None:
    assert bmc_seconds(text) == seconds


@pytest.mark.parametrize(
    ("now", "age_s", "earlier_s"),
    [
        ("11/21/2026 16:03:47\n", 10.0, 2.0),  # 10 s ago by the BMC's clock
        ("11/21/2026 16:03:36\n", 0.0, 2.0),  # its clock is read a second before it is written
        ("11/21/2026 16:13:47\n", 0.0, 30.0),  # 10 min ago: not since the last look, so its clock was set
        ("11/21/2019 16:13:47\n", 0.0, 30.0),  # before it was
        (None, 0.0, 30.0),  # it does not say
    ],
)
def test_an_event_is_dated_by_the_bmcs_own_clock_where_that_fits(
    now: str | None, age_s: float, earlier_s: float
) -> None:
    texts = {SENSORS: SDR, LOG: "2a,11/21/2026,16:03:37,Fan Fan1,Lower Critical,Asserted\n", LOG_SINCE: "30"}
    points = Ipmi(1.0).parse(Reading(T0_NS, 1.0, texts | ({LOG_NOW: now} if now else {})), None)
    event = points[-1]
    assert event.measurement == "ipmi_event"
    assert (T0_NS - event.time_ns) / 1e9 == age_s and event.fields["earlier_s"] == earlier_s


def test_an_event_is_dated_also_by_a_bmc_that_is_slow_to_tell_its_time(
    tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its entries and its time cross a slow bus: the event is 3 s old when the time comes, and the log was read 2.5 s before."""
    monkeypatch.setattr("daq_bench.telemetry_agent.collectors.ipmi.LOG_PERIOD_S", 0.0)
    slow = 'case "$*" in *"sel time get"*) sleep 2.5; echo "11/21/2026 16:03:40"; exit 0 ;; esac\n'
    fake_program(tools, "ipmitool", slow + ANSWERING)
    collector = Ipmi(1.0, interface=LAN)
    assert collector.read().texts[LOG] == ""
    (tools / "info").write_text(SEL_INFO.replace(": 41", ": 42").replace("08:15:02", "16:03:37"))
    (tools / "entries").write_text("2a,11/21/2026,16:03:37,Fan Fan1,Lower Critical,Asserted\n")
    reading = collector.read()
    (event,) = [point for point in collector.parse(reading, None) if point.measurement == "ipmi_event"]
    assert event.fields["earlier_s"] == 2.0  # the error of its clock, not all the time since the log was read
    assert 2.5e9 <= reading.time_ns - event.time_ns <= 3e9


def test_a_bmc_without_a_log_is_said_once(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one without DCMI."""
    monkeypatch.setattr("daq_bench.telemetry_agent.collectors.ipmi.LOG_PERIOD_S", 0.0)
    refusing = (
        'case "$*" in *"sel info"*) echo "Get SEL Info command failed: Invalid command (c1)" >&2; exit 1 ;; esac\n'
    )
    fake_program(tools, "ipmitool", refusing + ANSWERING)
    collector = Ipmi(1.0, interface=LAN)
    reason = "ipmitool sel info: Get SEL Info command failed: Invalid command (c1); not asked again"
    assert collector.read().faults == (reason,)
    assert collector.read().faults == ()


def test_the_password_is_in_no_argument() -> None:
    """-E takes it from the environment."""
    words = lan_interface("10.0.0.9", 623, "admin", 17)
    assert words == (
        "-I",
        "lanplus",
        "-H",
        "10.0.0.9",
        "-p",
        "623",
        "-U",
        "admin",
        "-C",
        "17",
        "-N",
        "2",
        "-R",
        "3",
        "-E",
    )
    assert (Ipmi(1.0).name, Ipmi(1.0, interface=words).name) == ("ipmi", "ipmi_lan")


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bmc]:
    """A BMC of its own: ipmi_sim on 127.0.0.1."""
    with Bmc(tmp_path_factory.mktemp("bmc") / "state", *free_ports(3)) as bmc:
        yield bmc


@pytest.fixture
def collector(simulated: Bmc, monkeypatch: pytest.MonkeyPatch) -> Ipmi:
    """The collector, asking that BMC over LAN."""
    monkeypatch.setenv("IPMI_PASSWORD", simulated.password)
    address = ("-H", "127.0.0.1", "-p", str(simulated.ipmi_port))
    return Ipmi(1.0, interface=("-I", "lanplus", "-C", "3", *address, "-U", simulated.user, "-E"), timeout_s=10.0)


def settled(collector: Ipmi, sensor: str, field: str, value: float) -> dict[str, Any]:
    """The sensor's fields once the BMC has taken the value over (it polls its sensors)."""
    found: dict[str, Any] = {}

    def arrived() -> bool:
        found.update(by_tag(collector.parse(collector.read(), None)[:-1], "sensor")[sensor])
        return bool(found[field] == value)

    wait_for(arrived, f"{sensor} at {value:g}")
    return found


needs_simulator = pytest.mark.skipif(
    shutil.which("ipmi_sim") is None, reason="ipmi_sim is not installed (Debian package openipmi)"
)


@needs_simulator
def test_a_real_bmc_is_read_whole(simulated: Bmc, collector: Ipmi) -> None:
    """Real ipmitool, real ipmi_sim: fans, temperatures and power as set, a stopped fan and a hot inlet as judged."""
    simulated.sensors.write("Inlet Temp", 33)
    assert settled(collector, "Inlet Temp", "temperature_degc", 33.0) == {
        "temperature_degc": 33.0, "state": "ok", "severity": 0,
    }  # fmt: skip
    reading = collector.read()
    assert reading.faults == ()
    points = collector.parse(reading, None)
    assert [undeclared(point) for point in points] == [[]] * len(points)
    assert powers(points) == [420.0]
    rpm = {key: fields["speed_rpm"] for key, fields in by_tag(points[:-1], "sensor").items() if "speed_rpm" in fields}
    assert rpm == {name: float(simulated.sensors.read(name)) for name in ("Fan1", "Fan2", "FanA", "FanB")}
    assert by_tag(points[:-1], "sensor")["Pwr Consumption"]["power_w"] == 420.0
    line = Encoder({"host": "h", "run": "r"}).encode(points[0])
    assert line.startswith(
        r"ipmi_sensor,entity=55.1,host=h,kind=temperature,run=r,sensor=Inlet\ Temp temperature_degc=33.0,"
    )
    simulated.sensors.stop_fan("Fan1")
    simulated.sensors.write("Inlet Temp", 42)
    try:
        assert settled(collector, "Fan1", "speed_rpm", 0.0)["state"] == "lower critical"
        assert settled(collector, "Inlet Temp", "temperature_degc", 42.0)["severity"] == 1
    finally:
        simulated.sensors.start_fan("Fan1")
        simulated.sensors.release("Inlet Temp")


@needs_simulator
def test_a_real_bmc_that_freezes_is_a_failure_and_is_read_again(simulated: Bmc, collector: Ipmi) -> None:
    """As one that restarts, for whatever reason."""
    collector.read()
    identity = processes.running(simulated.directory / "ipmi_sim.process.json")
    assert identity is not None
    os.kill(identity.pid, signal.SIGSTOP)
    try:
        with pytest.raises(TimeoutError, match=r"no answer within 10 s"):
            collector.read()
    finally:
        os.kill(identity.pid, signal.SIGCONT)
    assert len(collector.parse(collector.read(), None)) == 13


@needs_simulator
def test_a_real_bmcs_new_event_arrives(simulated: Bmc, collector: Ipmi, monkeypatch: pytest.MonkeyPatch) -> None:
    """A supply that fails, as an entry of the log that is added while the agent runs; what was there before is no event."""
    monkeypatch.setattr("daq_bench.telemetry_agent.collectors.ipmi.LOG_PERIOD_S", 0.0)

    def add(sensor_type: str, number: str, what: str) -> None:
        head = ("0", "0", "2", "0", "0", "0", "0", "0x20", "0", "4")  # record, type, time, generator, revision
        simulated.ipmitool("raw", "0x0a", "0x44", *head, sensor_type, number, "0x6f", what, "0xff", "0xff")

    add("8", "0x60", "0")
    assert collector.read().texts[LOG] == ""
    add("8", "0x61", "1")
    reading = collector.read()
    assert reading.faults == ()
    events = [point for point in collector.parse(reading, None) if point.measurement == "ipmi_event"]
    assert len(events) == 1
    assert events[0].tags == (("sensor", "Power Supply #0x61"),)
    assert str(events[0].fields["text"]).startswith("Power Supply #0x61, Failure detected")
    assert events[0].fields["asserted"] is True
    assert 0 <= reading.time_ns - events[0].time_ns <= 60e9 and events[0].fields["earlier_s"] == 2.0  # by its own clock
    assert undeclared(events[0]) == []


@needs_simulator
def test_a_wrong_password_is_named_and_not_shown(
    simulated: Bmc, collector: Ipmi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ipmitool's own reason."""
    monkeypatch.setenv("IPMI_PASSWORD", "mistaken")
    with pytest.raises(OSError, match=r"sdr dump: .*Unable to establish IPMI v2") as raised:
        collector.read()
    assert "mistaken" not in str(raised.value)
