"""Values that a device, its kernel or its BMC states for want of a reading, in the shapes in which they are met."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daq_bench.telemetry_agent.collectors.block_device import disk_lines, drive_counters
from daq_bench.telemetry_agent.collectors.processor.rapl import Rapl
from daq_bench.telemetry_agent.collectors.temperature import Temperature
from daq_bench.telemetry_agent.devices import ipmi_text, nvme_pages, redfish_inlet, smartctl_json


def put(root: Path, files: dict[str, Any]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")


def health_page(composite_k: int = 310, sensor_k: int = 0, **bytes_at: int) -> bytearray:
    """A health log of a drive in use (NVMe base specification 2.0, figure 207)."""
    page = bytearray(512)
    page[1:3] = composite_k.to_bytes(2, "little")
    page[3], page[4], page[5] = bytes_at.get("spare", 100), bytes_at.get("threshold", 10), bytes_at.get("used", 3)
    page[48] = 9
    page[128:132] = bytes_at.get("hours", 900).to_bytes(4, "little")
    page[200:202] = sensor_k.to_bytes(2, "little")
    return page


# 0 of drivetemp and acpitz; 273 K less 273.15 of the kernel's nvme
@pytest.mark.parametrize("unread", [0, -150, -273150])
def test_the_kernels_zero_is_no_temperature(tmp_path: Path, unread: int) -> None:
    put(tmp_path, {"sys/class/hwmon/hwmon0/name": "nvme", "sys/class/hwmon/hwmon0/temp1_input": unread})
    put(tmp_path, {"sys/class/thermal/thermal_zone0/type": "acpitz", "sys/class/thermal/thermal_zone0/temp": unread})
    put(tmp_path, {"sys/class/hwmon/hwmon1/name": "nvme", "sys/class/hwmon/hwmon1/temp1_input": -5150})
    collector = Temperature(1.0, tmp_path)
    reading = collector.read()
    assert [point.fields for point in collector.parse(reading, None)] == [{"temperature_degc": -5.15}]
    assert [fault.split(":")[0] for fault in reading.faults] == ["hwmon0/temp1", "thermal_zone0"]


@pytest.mark.parametrize("limit", [0, -5150, -273150, 65261850])
def test_the_kernels_limit_of_zero_or_below_is_none(tmp_path: Path, limit: int) -> None:
    sensor = "sys/class/hwmon/hwmon0/temp1"
    put(tmp_path, {f"{sensor}_input": 31000, f"{sensor}_max": limit, f"{sensor}_crit": 84850})
    collector = Temperature(1.0, tmp_path)
    (point,) = collector.parse(collector.read(), None)
    assert point.fields == {"temperature_degc": 31.0, "critical_degc": 84.85}


def test_the_drives_own_273_k_is_no_temperature() -> None:
    faults: list[str] = []
    fields = nvme_pages.health_fields(bytes(health_page(273, 273)), faults)
    assert "temperature_degc" not in fields and fields["data_written_bytes"] == 9 * 512_000
    assert [fault.split(" is ")[0] for fault in faults] == ["health log: composite", "health log: sensor_1"]
    assert nvme_pages.temperatures(bytes(health_page(272, 274))) == {"composite": -1.0, "sensor_1": 1.0}


def test_the_drives_own_limit_of_zero_or_below_is_none() -> None:
    for stated, expected in ((0, None), (273, None), (200, None), (0xFFFF, None), (343, 70.0)):
        page = bytearray(4096)
        page[266:268] = page[268:270] = stated.to_bytes(2, "little")
        identity = nvme_pages.identity(bytes(page))
        assert (identity.warning_degc, identity.critical_degc) == (expected, expected)
        kept = {} if expected is None else {"thermal_management_1_degc": 70.0}
        assert nvme_pages.thermal_limits(stated << 16) == kept
        faults: list[str] = []
        threshold = {"nvme_composite_temperature_threshold": {"warning": stated - 273 if stated else 0}}
        assert smartctl_json.limits(threshold, faults) == ({} if expected is None else {"warning_degc": 70.0})
        assert len(faults) == (stated in (200, 0xFFFF))


def test_a_server_of_many_wrong_marks_has_the_inlet_in_front() -> None:
    """NVIDIA's DGX H100 (libredfish, mockup nvidia_viking): all are marked, also those of the GPU baseboard and the mainboard."""
    rows = [
        {"Name": name, "PhysicalContext": "Intake", "ReadingCelsius": degc}
        for name, degc in (
            *(("TEMP_GB1_INLET1", 31), ("TEMP_GB1_INLET2", 31), ("TEMP_MB_INLET", 25), ("TEMP_AMBIENT", 22)),
            *(("TEMP_GB_HSC5", 29), ("TEMP_VR_CPU0", 46), ("TEMP_NIC_QSFP1", None)),
        )
    ]
    found, faults = redfish_inlet.of_thermal({"Temperatures": rows})
    assert found == [("TEMP_AMBIENT", 22.0)] and "are not believed" in faults[0]


def test_the_mainboards_inlet_counts_where_it_is_the_only_one() -> None:
    rows = [{"Name": name, "ReadingCelsius": degc} for name, degc in (("MB_INLET_TEMP", 24), ("HBA Ambient", 50))]
    assert redfish_inlet.of_thermal({"Temperatures": rows}) == ([("MB_INLET_TEMP", 24.0)], [])


@pytest.mark.parametrize(
    ("line", "kept", "faults"),
    [
        ("P1 DTS Therm Mgn,-70,degrees C,ok,3.1,Processor,Temperature,x", False, 0),  # Intel's server boards
        ("P1 DTS Therm Mgn,0,degrees C,ok,3.1,Processor,Temperature,x", False, 0),
        ("CPU1 DTS,-63,degrees C,ok,3.1,Processor,Temperature,x", False, 0),
        ("Agg Therm Mgn 1,-21,degrees C,ok,7.1,System Board,Temperature,x", False, 0),
        ("P1 Therm Margin,-50,degrees C,ok,3.1,Processor,Temperature,x", False, 0),
        ("CPU0_DTS,60,degrees C,ok,3.1,Processor,Temperature,x", True, 0),  # Gigabyte's is a temperature
        ("CPU0_DTS,0,degrees C,ok,3.1,Processor,Temperature,x", False, 1),
        ("Mgnt Temp,41,degrees C,ok,7.1,System Board,Temperature,x", True, 0),
        ("CPU Temp,-70,degrees C,ok,3.1,Processor,Temperature,x", False, 1),
    ],
)
def test_a_margin_is_no_temperature_and_no_fault(line: str, kept: bool, faults: int) -> None:
    found, said = ipmi_text.parse_sensors(line + "\n")
    measured = [ipmi_text.kind_and_field(one) for one in found]
    assert [one for one in measured if one] == ([("temperature", "temperature_degc")] if kept else [])
    assert len(said) == faults


ENVIRONMENT = "scsi_environmental_reports"  # smartctl 7.5, smart-scsi-sas-env-temp


@pytest.mark.parametrize(
    ("answer", "degrees", "faults"),
    [
        ({"temperature": {"current": 0}, ENVIRONMENT: {"temperature_1": {"parameter_code": 0, "current": 38}}}, 38.0, 0),
        ({ENVIRONMENT: {"temperature_1": {"parameter_code": 0, "current": None}, "temperature_2": {"current": 31}}}, 31.0, 0),
        ({ENVIRONMENT: {"temperature_1": {"current": 255}, "temperature_2": {"current": 31}}}, 31.0, 0),
        ({ENVIRONMENT: {"temperature_1": None, "temperature_2": {"current": 31}}}, 31.0, 0),
        ({"temperature": {"current": 29}, ENVIRONMENT: {"temperature_1": {"current": 38}}}, 29.0, 0),
        ({"temperature": None, ENVIRONMENT: {"temperature_1": {"current": 38}}}, 38.0, 0),
        ({"temperature": {"current": 0}, ENVIRONMENT: {"temperature_1": {"current": 0}}}, None, 2),
        ({"temperature": {"current": 0}}, None, 1),
    ],
)  # fmt: skip
def test_the_first_temperature_that_can_be_one_holds(
    answer: dict[str, Any], degrees: float | None, faults: int
) -> None:
    said: list[str] = []
    assert smartctl_json.temperatures(answer, said).get("drive") == degrees and len(said) == faults


def test_the_device_statistics_have_what_the_summary_has_not() -> None:
    row = {"offset": 8, "value": 31, "flags": {"valid": True}}
    answer = {"temperature": {"current": 0}, "ata_device_statistics": {"pages": [{"number": 5, "table": [row]}]}}
    assert smartctl_json.temperatures(answer) == {"drive": 31.0}


IDLE = "0 0 0 0 0 0 0 0 0 0 0"


@pytest.mark.parametrize(
    ("head", "paths", "written_sectors"),
    [
        ("3 0 24 1 0 0 0 0 0 0 0", ["1 0 8 9 900 0 94000 80 0 400 170"], 94000),
        (IDLE, ["1 0 8 9 900 0 94000 80 0 400 170", "1 0 8 9 500 0 64000 80 0 400 170"], 158000),
        ("9 0 80 1 900 0 94000 80 0 400 170", ["9 0 80 1 905 0 94040 80 0 400 170"], 94000),  # both count
        ("9 0 80 1 900 0 94000 80 0 400 170", [IDLE], 94000),  # the head alone, and a path that came back
        ("9 0 80 1 900 0 94000 80 0 400 170", [], 94000),
    ],
)
def test_a_multipath_head_that_counts_a_few_requests_is_not_believed(
    head: str, paths: list[str], written_sectors: int
) -> None:
    rows = [f"259 {n} nvme0c{n}n1 {path}\n" for n, path in enumerate(paths)]
    lines = disk_lines("".join([*rows, f"259 9 nvme0n1 {head}\n"]))
    assert drive_counters("nvme0n1", lines).written_bytes == written_sectors * 512


LOG = "nvme_smart_health_information_log"
SOUND = {"critical_warning": 0, "available_spare": 100, "available_spare_threshold": 10, "percentage_used": 1}


@pytest.mark.parametrize(
    ("key", "value", "field"),
    [
        ("available_spare", 255, "available_spare_percent"),
        ("available_spare", 200, "available_spare_percent"),
        ("available_spare_threshold", 255, "available_spare_threshold_percent"),
        ("percentage_used", 300, "percentage_used_percent"),
    ],
)
def test_a_percentage_beyond_its_range_is_none(key: str, value: int, field: str) -> None:
    faults: list[str] = []
    fields = smartctl_json.health_fields({LOG: {**SOUND, "data_units_written": 2, key: value}}, faults)
    assert field not in fields and fields["data_written_bytes"] == 1_024_000
    name = "the percentage used of its endurance" if key == "percentage_used" else key
    assert faults == [f"{name} is {value}, which is beyond {255 if value == 300 else 100} and no reading"]


def test_hours_beyond_a_century_are_none() -> None:
    faults: list[str] = []
    answer = {"power_on_time": {"hours": 4294967295}, "power_cycle_count": 7}
    assert smartctl_json.health_fields(answer, faults) == {"power_cycles": 7} and len(faults) == 1
    fields = nvme_pages.health_fields(bytes(health_page(spare=200, used=250, hours=0xFFFFFFFF)), faults)
    assert "available_spare_percent" not in fields and "power_on_hours" not in fields and len(faults) == 3
    assert fields["percentage_used_percent"] == 250 and fields["available_spare_threshold_percent"] == 10
    assert nvme_pages.health_fields(bytes(health_page(hours=90_000)))["power_on_hours"] == 90_000


@pytest.mark.parametrize("bit", [0, 255])
def test_a_health_log_of_one_bit_is_no_log(bit: int) -> None:
    log = {**dict.fromkeys(SOUND, bit), "data_units_written": bit, "temperature_sensors": [bit], "nsid": -1}
    answer = {
        "smartctl": {"exit_status": 0},
        **{LOG: log, "power_on_time": {"hours": 0}, "power_cycle_count": 0, "temperature": {"current": 0}},
    }
    faults: list[str] = []
    assert smartctl_json.health_fields(answer, faults) == {}
    assert any("same bit" in fault for fault in faults) and smartctl_json.answer_fault(answer)


def test_a_new_drive_is_no_blank_log() -> None:
    log = {**dict.fromkeys(SOUND, 0), "available_spare": 100, "data_units_written": 0, "power_cycles": 1}
    assert smartctl_json.health_fields({LOG: log})["available_spare_percent"] == 100


def test_a_domain_without_its_range_costs_no_other(tmp_path: Path) -> None:
    zones = "sys/class/powercap/intel-rapl:"
    put(tmp_path, {f"{zones}0/name": "package-0", f"{zones}0/energy_uj": 500, f"{zones}0/max_energy_range_uj": 10**9})
    put(tmp_path, {f"{zones}1/name": "psys", f"{zones}1/energy_uj": 700})
    collector = Rapl(1.0, tmp_path)
    reading = collector.read()
    (point,) = collector.parse(reading, None)
    assert dict(point.tags) == {"domain": "package-0"} and point.fields["energy_uj"] == 500
    assert len(reading.faults) == 1 and reading.faults[0].startswith("psys: max_energy_range_uj")


@pytest.mark.parametrize(
    ("before", "after", "power_w"),
    [(262_143_000_000, 100_000_000, 100.3), (190_000_000_000, 50_000_000, None)],
    ids=["goes round", "is set back"],
)
def test_an_energy_counter_that_is_set_back_is_no_power(
    tmp_path: Path, before: int, after: int, power_w: float | None
) -> None:
    """262144 J is a package's range by its 32 bits of 61 uJ (Intel SDM 3B, 16.10)."""
    zone, whole = "sys/class/powercap/intel-rapl:0", 262_143_328_850
    collector, readings = Rapl(1.0, tmp_path), []
    for nth, energy in enumerate((before, after)):
        put(tmp_path, {f"{zone}/name": "package-0", f"{zone}/energy_uj": energy, f"{zone}/max_energy_range_uj": whole})
        readings.append(collector.read()._replace(monotonic_s=float(nth)))
    (point,) = collector.parse(readings[1], readings[0])
    assert point.fields.get("power_w") == (pytest.approx(power_w, abs=0.1) if power_w else None)


SAMSUNG_H, SAMSUNG_LBAS = 10106, 652_566_252  # MZ7L3240HCHQ in smartctl_exporter's test data: 334 GB, 32 GB a day


@pytest.mark.parametrize(
    ("lbas", "more", "written_bytes"),
    [
        (30_000_000, {"power_on_time": {"hours": 10_000}, "user_capacity": {"bytes": 1_920 * 10**9}}, None),  # 1007 TB
        (1_234_567, {"power_on_time": {"hours": 900}, "user_capacity": {"bytes": 1_920 * 10**9}}, None),  # 41.4 TB
        (1_234_567, {"user_capacity": {"bytes": 1_920 * 10**9}}, None),
        (30_000_000, {"power_on_time": {"hours": 10_000}}, None),
        (1_234_567, {}, None),
        (SAMSUNG_LBAS, {"power_on_time": {"hours": SAMSUNG_H}, "user_capacity": {"bytes": 240 * 10**9}}, SAMSUNG_LBAS * 512),
        (SAMSUNG_LBAS, {"power_on_time": {"hours": 0}, "user_capacity": {"bytes": 240 * 10**9}}, SAMSUNG_LBAS * 512),
        (0, {"power_on_time": {"hours": 10_000}}, 0),
        (30_000_000, {"power_on_time": {"hours": 10_000}, "rotation_rate": 7200}, 15_360_000_000),
    ],
)  # fmt: skip
def test_a_count_whose_unit_is_not_known_is_left_out(
    lbas: int, more: dict[str, Any], written_bytes: int | None
) -> None:
    row = {"id": 241, "name": "Total_LBAs_Written", "raw": {"value": lbas, "string": str(lbas)}}
    answer = {"in_smartctl_database": True, "ata_smart_attributes": {"table": [row]}, "rotation_rate": 0, **more}
    faults: list[str] = []
    assert smartctl_json.health_fields(answer, faults).get("data_written_bytes") == written_bytes
    assert len(faults) == (written_bytes is None)


def test_the_device_statistics_tell_the_unit() -> None:
    """Page 1, offset 24: Logical Sectors Written (ATA8-ACS)."""
    row = {"id": 241, "name": "Total_LBAs_Written", "raw": {"value": 30_000_000, "string": "30000000"}}
    told = {"offset": 24, "value": 30_000_000 * 65536, "flags": {"valid": True}}
    answer = {
        "in_smartctl_database": True,
        "power_on_time": {"hours": 10_000},
        "ata_smart_attributes": {"table": [row]},
        "ata_device_statistics": {"pages": [{"number": 1, "table": [told]}]},
    }
    assert smartctl_json.health_fields(answer)["data_written_bytes"] == 30_000_000 * 2**25
