"""Readings that public reports show to be silently wrong in many tools: each with its source, and the value that is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daq_bench.candidate_kit import smartctl, sysfs
from daq_bench.candidate_kit.nic_statistics import pauses_of
from daq_bench.telemetry_agent.collectors.block_device import DISK_KEY, BlockDevice
from daq_bench.telemetry_agent.collectors.network_link import NetworkLink, parse_statistics
from daq_bench.telemetry_agent.collectors.pcie_link import PcieLink
from daq_bench.telemetry_agent.collectors.processor.cpu_throttle import CpuThrottle
from daq_bench.telemetry_agent.collectors.processor.rapl import Rapl
from daq_bench.telemetry_agent.collectors.smart import drive_points
from daq_bench.telemetry_agent.collectors.temperature import Temperature
from daq_bench.telemetry_agent.devices import nvme_pages, redfish_inlet, smartctl_json
from daq_bench.telemetry_agent.devices.drive_questions import FEATURE_LINE, HEALTH, SMARTCTL
from daq_bench.telemetry_agent.devices.ipmi_text import kind_and_field, parse_sensors
from daq_bench.telemetry_agent.reading.collector import Reading

SECOND_NS = 1_000_000_000


def put(root: Path, texts: dict[str, object]) -> None:
    for name, text in texts.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")


def diskstats(paths: dict[str, str]) -> str:
    return "".join(f"259 {number} {name} {counters}\n" for number, (name, counters) in enumerate(paths.items()))


IDLE = "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"


@pytest.mark.parametrize(
    ("before", "after", "written_per_s", "busy"),
    [
        # sysstat/sysstat#341, axboe/fio#1890: the head counts nothing
        (
            {"nvme0c0n1": "1000 0 8000 90 500 0 64000 80 0 400 170 0 0 0 0 0 0", "nvme0n1": IDLE},
            {"nvme0c0n1": "2000 0 16000 180 1000 0 128000 160 0 800 340 0 0 0 0 0 0", "nvme0n1": IDLE},
            64000 * 512,
            0.4,
        ),
        # two paths: their sum; both at work the whole time is not twice the time
        (
            {"nvme0c0n1": "0 0 0 0 5 0 10 1 0 0 0", "nvme0c1n1": "0 0 0 0 7 0 30 1 0 0 0", "nvme0n1": IDLE},
            {"nvme0c0n1": "0 0 0 0 9 0 110 1 0 1000 0", "nvme0c1n1": "0 0 0 0 9 0 230 1 0 900 0", "nvme0n1": IDLE},
            300 * 512,
            1.0,
        ),
        # a kernel that counts at the head: the head, and not twice
        (
            {"nvme0c0n1": "0 0 0 0 5 0 10 1 0 0 0", "nvme0n1": "0 0 0 0 5 0 10 1 0 0 0"},
            {"nvme0c0n1": "0 0 0 0 9 0 110 1 0 500 0", "nvme0n1": "0 0 0 0 9 0 110 1 0 500 0"},
            100 * 512,
            0.5,
        ),
        # another drive's paths are not this one's
        ({"nvme1c0n1": "0 0 0 0 5 0 10 1 0 0 0", "nvme0n1": IDLE}, {"nvme1c0n1": "0 0 0 0 9 0 99 1 0 9 0", "nvme0n1": IDLE}, 0, 0.0),
    ],
)  # fmt: skip
def test_a_multipath_drive_is_counted_where_its_kernel_counts(
    tmp_path: Path, before: dict[str, str], after: dict[str, str], written_per_s: float, busy: float
) -> None:
    serial = {DISK_KEY + "nvme0n1": "X1"}
    first = Reading(0, 0.0, {"diskstats": diskstats(before), **serial})
    second = Reading(SECOND_NS, 1.0, {"diskstats": diskstats(after), **serial})
    (point,) = BlockDevice(1.0, tmp_path).parse(second, first)
    assert point.fields["written_bytes_per_s"] == pytest.approx(written_per_s)
    assert point.fields["busy_fraction"] == pytest.approx(busy)


def test_zero_kelvin_is_no_temperature(tmp_path: Path) -> None:
    sensors = "sys/class/hwmon"
    put(tmp_path, {f"{sensors}/hwmon0/name": "nvme", f"{sensors}/hwmon0/temp1_input": -273150})
    put(tmp_path, {f"{sensors}/hwmon1/name": "nvme", f"{sensors}/hwmon1/temp1_input": 41850})
    put(tmp_path, {f"{sensors}/hwmon1/temp1_max": 65261850, f"{sensors}/hwmon1/temp1_crit": 84850})
    collector = Temperature(1.0, tmp_path)
    reading = collector.read()
    (point,) = collector.parse(reading, None)
    assert point.fields == {"temperature_degc": 41.85, "critical_degc": 84.85}
    assert len(reading.faults) == 1 and reading.faults[0].startswith("hwmon0/temp1: temperature is -273.15 degrees C")


def test_the_threads_of_a_core_show_one_count(tmp_path: Path) -> None:
    """prometheus/node_exporter#659: cores 0 (threads 0, 2) and 1 (threads 1, 3); core 0 was throttled three times."""

    def at(counts: dict[str, tuple[int, int]]) -> None:
        for core, (count, time_ms) in counts.items():
            for cpu in (int(core), int(core) + 2):
                folder = f"sys/devices/system/cpu/cpu{cpu}"
                put(tmp_path, {f"{folder}/topology/physical_package_id": 0, f"{folder}/topology/core_id": core})
                put(tmp_path, {f"{folder}/thermal_throttle/core_throttle_count": count})
                put(tmp_path, {f"{folder}/thermal_throttle/core_throttle_total_time_ms": time_ms})

    collector = CpuThrottle(5.0, tmp_path)
    at({"0": (61, 610), "1": (3, 30)})
    first = collector.read()
    at({"0": (64, 640), "1": (3, 30)})
    (point,) = collector.parse(collector.read(), first)
    assert point.fields == {"core_throttle_count": 67, "core_throttled_time_ms": 670, "throttled_cores": 1}


def test_two_rapl_zones_of_one_name_are_both_counted(tmp_path: Path) -> None:
    """intel/powertelemetry#3, sustainable-computing-io/kepler#2183."""
    for zone, name, energy_uj in (("0", "package-0", 500), ("1", "psys", 1000), ("3", "psys", 9000)):
        folder = f"sys/class/powercap/intel-rapl:{zone}"
        put(
            tmp_path, {f"{folder}/name": name, f"{folder}/energy_uj": energy_uj, f"{folder}/max_energy_range_uj": 10**9}
        )
    collector = Rapl(1.0, tmp_path)
    points = collector.parse(collector.read(), None)
    counted = {dict(point.tags)["domain"]: point.fields["energy_uj"] for point in points}
    assert counted == {"package-0": 500, "psys": 1000, "psys (intel-rapl:3)": 9000}


@pytest.mark.parametrize(
    ("line", "values", "faults"),
    [
        ("System Temp,0,degrees C,ok,7.1,System Board,Temperature,Threshold", [], 1),
        ("System Temp,127,degrees C,ok,7.1,System Board,Temperature,Threshold", [127.0], 0),
        ("CPU Temp,255,degrees C,ok,3.1,Processor,Temperature,Threshold", [], 1),
        ("CPU Temp,-128,degrees C,ok,3.1,Processor,Temperature,Threshold", [], 1),
        ("P1 Therm Margin,0,degrees C,ok,3.1,Processor,Temperature,Threshold", [0.0], 0),
        ("P1 Therm Margin,-70,degrees C,ok,3.1,Processor,Temperature,Threshold", [-70.0], 0),
        ("FAN1,0,RPM,Lower Critical,29.1,Fan Device,Fan,", [0.0], 0),
    ],
)
def test_a_temperature_that_was_not_read_is_none(line: str, values: list[float], faults: int) -> None:
    readings, said = parse_sensors(line + "\n")
    assert [one.value for one in readings] == values
    assert len(said) == faults


@pytest.mark.parametrize(
    ("line", "is_collected", "faults"),
    [
        # RackHD/RackHD#772, Intel S2600: how far memory is from its limit. -46 was taken for degrees, -57 for a fault of every sample.
        ("DIMM Thrm Mrgn 2,-57,degrees C,ok,32.2,Memory Device,Temperature,", False, 0),
        ("Mem P1 Thrm Mrgn,-46,degrees C,ok,8.1,Memory Module,Temperature,", False, 0),
        ("Agg Therm Mgn 1,-25,degrees C,ok,7.1,System Board,Temperature,", False, 0),
        # tigerblue77/Dell_iDRAC_fan_controller_Docker#294, PowerEdge R710: its processors' sensors have no name that says so
        ("Temp,-68,degrees C,ok,3.1,Processor,Temperature,", False, 0),
        ("Temp,-40,degrees C,ok,3.2,Processor,Temperature,", False, 0),
        ("Temp,50,degrees C,ok,3.2,Processor,Temperature,", True, 0),
        ("Temp,34,degrees C,ok,10.1,Power Supply,Temperature,", True, 0),
        ("Ambient Temp,-5,degrees C,ok,7.1,System Board,Temperature,", True, 0),  # a container in winter
        ("DIMM Temp,-57,degrees C,ok,32.2,Memory Device,Temperature,", False, 1),
    ],
)
def test_a_margin_is_no_temperature_and_no_fault(line: str, is_collected: bool, faults: int) -> None:
    readings, said = parse_sensors(line + "\n")
    assert [kind_and_field(one) for one in readings if kind_and_field(one)] == (
        [("temperature", "temperature_degc")] * is_collected
    )
    assert len(said) == faults


NVME = {
    "smartctl": {"exit_status": 0},
    "device": {"protocol": "NVMe"},
    "temperature": {"current": 41},
    "nvme_smart_health_information_log": {
        "critical_warning": 0,
        "available_spare": 100,
        "percentage_used": 7,
        "data_units_written": 1_000_000,
        "media_errors": 3,
    },
}


@pytest.mark.parametrize("bit", [0x00, 0xFF])
def test_a_blank_health_page_is_no_page(bit: int) -> None:
    page = bytes([bit]) * nvme_pages.PAGE_BYTES
    with pytest.raises(ValueError, match="same bit"):
        nvme_pages.health_fields(page)
    point = drive_points("nvme0n1", {SMARTCTL: json.dumps(NVME), HEALTH: page.hex()}, 0)[0]
    wanted = {
        "available_spare_percent": 100,
        "percentage_used_percent": 7,
        "data_written_bytes": 512 * 10**9,
        "media_errors": 3,
    }
    assert {name: point.fields[name] for name in wanted} == wanted


def test_a_page_with_an_impossible_temperature_keeps_its_counts() -> None:
    page = bytearray(nvme_pages.PAGE_BYTES)
    page[1:3], page[3], page[200:202] = (5).to_bytes(2, "little"), 100, (310).to_bytes(2, "little")
    faults: list[str] = []
    fields = nvme_pages.health_fields(bytes(page), faults)
    assert fields["available_spare_percent"] == 100 and "temperature_degc" not in fields
    assert nvme_pages.temperatures(bytes(page)) == {"sensor_1": 37.0}
    assert len(faults) == 1 and "composite is -268 degrees C" in faults[0]


def test_a_sas_drive_may_tell_its_temperature_in_the_environmental_reports_alone() -> None:
    document = {
        "device": {"protocol": "SCSI"},
        "scsi_environmental_reports": {"temperature_1": {"parameter_code": 0, "current": 38}},
    }
    assert smartctl_json.temperatures(document) == {"drive": 38.0}
    assert smartctl_json.temperatures({**document, "temperature": {"current": 40}}) == {"drive": 40.0}


@pytest.mark.parametrize(
    ("lbas", "hours", "written"),
    [
        (1_233_123, 30_000, None),  # Toshiba's HK4R, which counts 32 MiB
        (1_233_123, 10, 1_233_123 * 512),  # a new drive
        (80_846_000_000, 30_000, 80_846_000_000 * 512),
        (0, 30_000, 0),  # nothing, whatever the unit
    ],
)
def test_lbas_that_are_too_few_for_the_hours_are_no_sectors(lbas: int, hours: int, written: int | None) -> None:
    row = {"id": 241, "name": "Total_LBAs_Written", "raw": {"value": lbas, "string": str(lbas)}}
    document = {
        "in_smartctl_database": True,
        "logical_block_size": 512,
        "power_on_time": {"hours": hours},
        "ata_smart_attributes": {"table": [row]},
    }
    faults: list[str] = []
    assert smartctl_json.health_fields(document, faults).get("data_written_bytes") == written
    assert len(faults) == (written is None)


@pytest.mark.parametrize("degrees", [-93, 300, 1e400, -273])
def test_a_drive_is_not_as_cold_or_hot_as_that(degrees: float) -> None:
    faults: list[str] = []
    assert smartctl_json.temperatures({"temperature": {"current": degrees}}, faults) == {}
    assert len(faults) == 1 and "which no part of a server that runs has" in faults[0]


def test_lines_before_smartctls_document_are_told_and_cost_nothing() -> None:
    warning = "smartctl: /etc/smart_drivedb.h(12): Syntax error, preset rejected"
    text, said = smartctl.split(f'{warning}\n\n{{"temperature": {{"current": 30}}}}\n')
    assert json.loads(text) == {"temperature": {"current": 30}} and said == [warning]
    assert smartctl.split('{"a": 1}') == ('{"a": 1}', [])
    assert smartctl.split("no document") == ("no document", [])
    assert smartctl.document_of(f'{warning}\n{{"a": NaN, "b": -1e999, "c": 1.5}}') == {"a": None, "b": None, "c": 1.5}
    for text in ("no document", "[1]", '{"a": 1} {"a": 2}', '{"a":' * 100_000):
        assert smartctl.document_of(text) is None


def test_a_volume_is_known_by_its_words_or_by_a_cold_failure() -> None:
    """Nonsense in place of an object is no word for it, and a boolean is no exit status bit."""
    cold = {"temperature": {"current": 0}}
    assert smartctl.is_volume({"smart_support": {"available": False}}, 0) and smartctl.is_volume(cold, 4)
    for document, status in ((cold, 0), (cold, None), (cold, "4"), ({"temperature": 0}, 4), ({"smart_support": 0}, 4)):
        assert not smartctl.is_volume(document, status)
    assert not smartctl.is_volume({**cold, "ata_smart_attributes": {}}, 4)


def thermal(*rows: tuple[str, str | None, float]) -> dict[str, Any]:
    return {
        "Temperatures": [
            {"Name": name, "PhysicalContext": context, "ReadingCelsius": degc} for name, context, degc in rows
        ]
    }


@pytest.mark.parametrize(
    ("document", "inlets"),
    [
        # Gigabyte: every sensor is marked Intake
        (thermal(("P0_TEMP", "Intake", 41), ("P1_DTS", "Intake", 57), ("VR_A_TEMP", "Intake", 38), ("BOARD_TEMP1", "Intake", 36)), {}),
        (thermal(("P0_TEMP", "Intake", 41), ("INLET_AMBIENT", "Intake", 23)), {"INLET_AMBIENT": 23.0}),
        # iDRAC 9, Intel, Lenovo: named and not marked
        (thermal(("System Board Inlet Temp", "SystemBoard", 22), ("CPU1 Temp", "CPU", 50)), {"System Board Inlet Temp": 22.0}),
        (thermal(("Ambient Temp", None, 21), ("PSU1 Inlet Temp", "PowerSupply", 30)), {"Ambient Temp": 21.0}),
        (thermal(("PSU1 Inlet Temp", "SystemBoard", 30), ("NVMe Ambient", "Chassis", 33)), {}),
        (thermal(("Front", "Intake", 24), ("Inlet of the card", "SystemBoard", 40)), {"Front": 24.0}),
    ],
)  # fmt: skip
def test_the_inlet_is_the_servers(document: dict[str, Any], inlets: dict[str, float]) -> None:
    found, _ = redfish_inlet.of_thermal(document)
    assert {one.sensor: one.degc for one in found} == inlets


def test_a_document_may_begin_in_the_middle_of_a_line() -> None:
    """smartctl 7.1 of a Seagate ST4000NM025B (prometheus-community/smartctl_exporter#233): no line's end before it."""
    text = '  Pending defect count:{\n  "json_format_version": [\n    1,\n    0\n  ],\n  "messages": [\n    {"string": "x"}\n  ]\n}\n'
    assert smartctl.document_of(text) == {"json_format_version": [1, 0], "messages": [{"string": "x"}]}
    assert smartctl.split(text)[1] == ["Pending defect count:"]


@pytest.mark.parametrize(
    ("told", "written"),
    [("2124,590", 2_124_590_000_000), ("2124.590", 2_124_590_000_000), ("2124", None), ("2.124,590", None), ("2,12", None), (3.5, None)],
)  # fmt: skip
def test_gigabytes_after_a_users_decimal_comma_are_read(told: object, written: int | None) -> None:
    """smartctl 7.3 of a YADRO WUH721414AL4204 in such a language: henrygd/beszel, agent/test-data/smart/scsi.json."""
    faults: list[str] = []
    document = {"device": {"protocol": "SCSI"}, "scsi_error_counter_log": {"write": {"gigabytes_processed": told}}}
    assert smartctl_json.health_fields(document, faults).get("data_written_bytes") == written
    assert len(faults) == (written is None)


def test_the_thermal_management_is_read_by_smartctls_own_names() -> None:
    """smartmontools/smartmontools#583; it leaves them out where all four are 0."""
    counts = {
        "thermal_mgmt_temperature_1_transition_count": 15,
        "thermal_mgmt_temperature_1_total_time": 40,
        "thermal_mgmt_temperature_2_transition_count": 0,
        "thermal_mgmt_temperature_2_total_time": 0,
    }
    log = {**NVME["nvme_smart_health_information_log"], **counts}
    found = smartctl_json.health_fields({**NVME, "nvme_smart_health_information_log": log})
    assert (found["thermal_management_1_transitions"], found["thermal_management_1_time_s"]) == (15, 40)
    assert (found["thermal_management_2_transitions"], found["thermal_management_2_time_s"]) == (0, 0)


def endurance(valid: bool) -> dict[str, Any]:
    row = {"offset": 8, "value": 20, "flags": {"valid": valid}}
    return {
        "device": {"protocol": "ATA"},
        "endurance_used": {"current_percent": 4},
        "ata_smart_attributes": {"table": [{"id": 177, "name": "Wear_Leveling_Count", "value": 96}]},
        "ata_device_statistics": {"pages": [{"number": 7, "table": [row]}]},
    }


def test_a_guess_of_smartctl_is_no_word_of_the_drive_about_its_endurance() -> None:
    """smartctl 7.5, ataprint.cpp: "Guess available spare and endurance from normalized value"; a device statistic takes its place."""
    assert smartctl_json.health_fields(endurance(True))["percentage_used_percent"] == 20
    assert "percentage_used_percent" not in smartctl_json.health_fields(endurance(False))
    assert smartctl.used_percent({"endurance_used": {"current_percent": 4}, "device": {"protocol": "SCSI"}}) == 4
    for nonsense in (
        {"endurance_used": 4},
        {"device": [], "ata_device_statistics": {"pages": [{"table": 3}, None]}},
        {},
    ):
        assert smartctl.used_percent(nonsense) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            "get-feature:0x10 (Host Controlled Thermal Management), Current value:0x1600164\n",
            0x01600164,
        ),  # nvme-cli 1.12, nvme.c
        ("get-feature:0x10 (Host Controlled Thermal Management), Current value:00000000\n", 0),
        ("get-feature:0x10 (Host Controlled Thermal Management), Current value:0x01600164\n", 0x01600164),
        ("get-feature:0x10 (Host Controlled Thermal Management), Current value:0x0160016", None),  # cut off
        ("get-feature:0x04 (Temperature Threshold), Current value:0x000161\n", None),
    ],
)
def test_a_feature_is_read_as_each_nvme_cli_writes_it(text: str, value: int | None) -> None:
    match = FEATURE_LINE.fullmatch(text)
    assert (int(match[1], 16) if match else None) == value


def test_a_reading_that_its_chip_marks_as_faulty_is_none(tmp_path: Path) -> None:
    """The kernel's Documentation/hwmon/sysfs-interface.rst, temp[1-*]_fault; statically 89 to 127 degrees C: netdata/netdata#23673."""
    chip = "sys/class/hwmon/hwmon0"
    put(tmp_path, {f"{chip}/name": "nct6793", f"{chip}/temp1_input": 127000, f"{chip}/temp1_fault": 1})
    put(tmp_path, {f"{chip}/temp2_input": 41000, f"{chip}/temp2_fault": 0})
    collector = Temperature(1.0, tmp_path)
    reading = collector.read()
    assert [point.fields["temperature_degc"] for point in collector.parse(reading, None)] == [41.0]
    assert reading.faults == ("hwmon0/temp1: temperature: the chip marks it as faulty, it reads '127000'",)
    put(tmp_path, {f"{chip}/temp1_fault": 0, f"{chip}/temp1_input": 40000})
    assert len(collector.parse(collector.read(), None)) == 2


@pytest.mark.parametrize(
    ("speed", "width", "link"),
    [
        ("16.0 GT/s PCIe", "4", (16.0, 4)),
        ("8 GT/s", "16", (8.0, 16)),
        ("Unknown", "4", None),
        ("2.5 GT/s PCIe", "63", None),  # all ones, of a drive that was pulled
        ("Unknown speed", "255", None),
    ],
)
def test_one_rule_tells_a_pcie_link(speed: str, width: str, link: tuple[float, int] | None) -> None:
    assert sysfs.link_of(speed, width) == link
    for other in ("", "fast", "16.0 GT/s CXL", "-8.0 GT/s PCIe"):
        with pytest.raises(ValueError, match="not understood"):
            sysfs.link_of(other, "4")


@pytest.mark.parametrize(
    ("speed", "width", "said"),
    [
        # Extended speed modes are of no generation (ovis-hpc/ldms#1383).
        ("20.0 GT/s PCIe", "4", "20.0 GT/s PCIe is the speed of no generation"),
        ("fast", "4", "speed 'fast' with width '4' is not understood"),
        ("16.0 GT/s PCIe", "x4", "width 'x4' is not understood"),
        ("16.0 GT/s PCIe", "-4", "width '-4' is not understood"),
        ("", "4", "speed '' with width '4' is not understood"),
    ],
)
def test_a_link_that_is_not_understood_costs_no_other_its_point(
    tmp_path: Path, speed: str, width: str, said: str
) -> None:
    for number, (its_speed, its_width) in enumerate((("16.0 GT/s PCIe", "4"), (speed, width))):
        function = f"sys/devices/pci0000:00/0000:0{number + 1}:00.0"
        put(tmp_path, {f"{function}/current_link_speed": its_speed, f"{function}/current_link_width": its_width})
        (tmp_path / f"sys/block/nvme{number}n1").mkdir(parents=True)
        (tmp_path / f"sys/block/nvme{number}n1/device").symlink_to(tmp_path / function)
    collector = PcieLink(5.0, tmp_path)
    reading = collector.read()
    assert [dict(point.tags)["device"] for point in collector.parse(reading, None)] == ["nvme0n1"]
    (fault,) = reading.faults
    assert "nvme1n1, current: PCIe link: " in fault and said in fault


def nic(counters: dict[str, int]) -> str:
    return "NIC statistics:\n" + "".join(f"     {name}: {value}\n" for name, value in counters.items())


@pytest.mark.parametrize(
    ("counters", "fields"),
    [
        # Linux, mlx5/counters.rst: the duration is in microseconds, and the global pauses are the port's once more
        (
            {
                "rx_pause_ctrl_phy": 0, "tx_pause_ctrl_phy": 1266552, "rx_global_pause": 0, "rx_global_pause_duration": 0,
                "tx_global_pause": 1266552, "tx_global_pause_duration": 555665182, "rx_global_pause_transition": 0,
                "tx_pause_storm_warning_events": 0, "rx_prio3_pause": 5, "rx_prio3_pause_duration": 900, "rx_prio4_pause": 2,
            },
            {"pause_received_frames": 0, "pause_transmitted_frames": 1266552, "priority_pause_received_frames": 7},
        ),
        # isc-projects/ethq#19: sfc
        (
            {"rx_noskb_drops": 0, "port_tx_pause": 3, "port_rx_pause": 4, "port_rx_overflow": 5, "port_rx_nodesc_drops": 6},
            {"pause_received_frames": 4, "pause_transmitted_frames": 3, "missed_frames": 5, "no_buffer_frames": 6},
        ),
        # isc-projects/ethq#7: be2net
        (
            {"rx_pause_frames": 1, "tx_pauseframes": 2, "rx_priority_pause_frames": 0, "rx_drops_no_pbuf": 9},
            {"pause_received_frames": 1, "pause_transmitted_frames": 2, "no_buffer_frames": 9},
        ),
        # i40e
        ({"port.link_xon_rx": 8, "port.link_xoff_rx": 7, "port.link_xoff_tx": 6},
         {"pause_received_frames": 7, "pause_transmitted_frames": 6}),
        # isc-projects/ethq#6: bnx2x has them by queue, and sums
        ({"[0]: rx_discards": 4, "rx_discards": 4, "rx_pause_frames": 0}, {"pause_received_frames": 0, "discarded_frames": 4}),
    ],
)  # fmt: skip
def test_a_card_s_pauses_are_frames_each_counted_once(counters: dict[str, int], fields: dict[str, int]) -> None:
    assert parse_statistics(nic(counters), "eth0") == fields
    paused = sum(value for name, value in fields.items() if "pause" in name)
    assert sum(counters[name] for name in pauses_of(counters)) == paused


def test_a_gb200_takes_its_air_in_at_the_front_s_board() -> None:
    """NVIDIA/libredfish (MIT), mockups/nvidia_gb200: no sensor is marked or named an intake; the inlets of its modules are warmed air."""
    readings = [
        {"DeviceName": "Chassis_0_Front_IO_Temp_0", "Reading": 27.312},
        {"DeviceName": "HGX_ProcessorModule_1_Inlet_Temp_0", "PhysicalContext": "GPUSubsystem", "Reading": 37.56},
        {"DeviceName": "BMC_0_DCSCM_Temp_0", "Reading": 33.875},
    ]
    assert redfish_inlet.of_metrics({"TemperatureReadingsCelsius": readings}) == (
        [("Chassis_0_Front_IO_Temp_0", 27.312)],
        [],
    )
    sensor = {"Name": "Chassis 0 Front IO Temp 0", "Reading": 27.375, "ReadingUnits": "Cel"}
    assert redfish_inlet.of_sensor(sensor) == ([("Chassis 0 Front IO Temp 0", 27.375)], [])


@pytest.mark.parametrize(
    ("speed", "stored"), [("25000", 3_125_000_000), ("-1", None), ("0", None), ("65535", None), ("4294967295", None)]
)
def test_a_link_of_unknown_speed_has_none(tmp_path: Path, speed: str, stored: int | None) -> None:
    """prometheus/node_exporter#1967, safchain/ethtool#21: a port of a bond at 65535, which would be 65.5 Gbit/s."""
    reading = Reading(0, 0.0, {"ens1|carrier": "1\n", "ens1|speed": f"{speed}\n"})
    (point,) = NetworkLink(2.0, tmp_path).parse(reading, None)
    assert point.fields.get("speed_bytes_per_s") == stored
