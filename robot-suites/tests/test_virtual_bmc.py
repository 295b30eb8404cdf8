"""The virtual BMC on its own: what it is told over IPMI and Redfish has its effect on the one set of sensors, and is logged."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.virtual_candidate import processes
from daq_bench.virtual_candidate.bmc.simulator import Bmc
from daq_bench.virtual_candidate.testing import bios_path, fan_readings, settings_path, wait_for_fans
from daq_bench.virtual_candidate.vendors import VENDORS, Vendor

StartBmc = Callable[..., Bmc]


def any_tag(vendor: Vendor) -> dict[str, str]:
    """The header by which a client names whatever state the settings have, where the vendor's firmware demands one."""
    return {"If-Match": "*"} if vendor.tag_demanded else {}


def test_supermicro_fan_mode_and_duty_move_the_fans_and_are_logged(start_bmc: StartBmc) -> None:
    bmc = start_bmc()
    assert fan_readings(bmc) == [5000] * 4
    bmc.ipmitool("raw", "0x30", "0x45", "0x01", "0x01")
    wait_for_fans(bmc, [10000] * 4)
    bmc.ipmitool("raw", "0x30", "0x70", "0x66", "0x01", "0x01", "0x28")
    wait_for_fans(bmc, [10000, 10000, 4000, 4000])
    assert bmc.ipmitool("raw", "0x30", "0x70", "0x66", "0x00", "0x01").split() == ["28"]
    bmc.ipmitool("raw", "0x30", "0x45", "0x01", "0x00")
    wait_for_fans(bmc, [5000] * 4)
    assert bmc.ipmitool("raw", "0x30", "0x45", "0x00").split() == ["00"]
    told = [(line["command"], line["data"], line["completion"]) for line in bmc.commands()]
    assert told == [
        ("0x45", "0x01 0x01", "0x00"),
        ("0x70", "0x66 0x01 0x01 0x28", "0x00"),
        ("0x70", "0x66 0x00 0x01", "0x00"),
        ("0x45", "0x01 0x00", "0x00"),
        ("0x45", "0x00", "0x00"),
    ]


def test_a_duty_without_full_mode_is_taken_back_by_the_automatic_control(start_bmc: StartBmc) -> None:
    bmc = start_bmc()
    bmc.ipmitool("raw", "0x30", "0x70", "0x66", "0x01", "0x00", "0x64")
    assert bmc.sensors.read("Fan1") == 5000


@pytest.mark.parametrize("data", [["0x01", "0x63"], ["0x01"], []])
def test_a_wrong_fan_command_is_refused_and_changes_nothing(start_bmc: StartBmc, data: list[str]) -> None:
    bmc = start_bmc()
    with pytest.raises(BenchError, match="raw"):
        bmc.ipmitool("raw", "0x30", "0x45", *data)
    assert bmc.sensors.read("Fan1") == 5000
    assert bmc.commands()[0]["completion"] != "0x00"


def test_another_vendors_fan_command_is_refused_and_logged(start_bmc: StartBmc) -> None:
    bmc = start_bmc(vendor="dell")
    with pytest.raises(BenchError, match="0xc1"):
        bmc.ipmitool("raw", "0x30", "0x45", "0x01", "0x01")
    bmc.ipmitool("raw", "0x30", "0x30", "0x01", "0x00")
    bmc.ipmitool("raw", "0x30", "0x30", "0x02", "0xff", "0x50")
    assert bmc.sensors.read("FanA") == 8000
    bmc.ipmitool("raw", "0x30", "0x30", "0x01", "0x01")
    assert bmc.sensors.read("FanA") == 5000
    assert [line["completion"] for line in bmc.commands()] == ["0xc1", "0x00", "0x00", "0x00"]


def test_a_stopped_fan_stays_stopped_until_it_is_released(start_bmc: StartBmc) -> None:
    bmc = start_bmc()
    bmc.sensors.stop_fan("Fan2")
    bmc.ipmitool("raw", "0x30", "0x45", "0x01", "0x01")
    wait_for_fans(bmc, [10000, 0, 10000, 10000])
    thermal = bmc.redfish("/redfish/v1/Chassis/1/Thermal")[1]
    assert [(fan["Reading"], fan["Status"]["Health"]) for fan in thermal["Fans"]][1] == (0, "Critical")
    bmc.sensors.start_fan("Fan2")
    wait_for_fans(bmc, [10000] * 4)


def test_ipmi_and_redfish_show_the_same_power_and_temperatures(start_bmc: StartBmc) -> None:
    bmc = start_bmc()
    bmc.sensors.write("Inlet Temp", 41)
    power = bmc.redfish("/redfish/v1/Chassis/1/Power")[1]
    assert power["PowerControl"][0]["PowerConsumedWatts"] == 420
    assert "420 Watts" in bmc.ipmitool("dcmi", "power", "reading")
    thermal = bmc.redfish("/redfish/v1/Chassis/1/Thermal")[1]
    inlet = next(entry for entry in thermal["Temperatures"] if entry["Name"] == "Inlet Temp")
    assert (inlet["ReadingCelsius"], inlet["Status"]["Health"]) == (41, "Warning")


def test_chassis_control_and_redfish_turn_the_same_switch(start_bmc: StartBmc) -> None:
    bmc = start_bmc()
    bmc.ipmitool("chassis", "power", "off")
    assert bmc.redfish("/redfish/v1/Systems/1")[1]["PowerState"] == "Off"
    reset = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset"
    assert bmc.redfish(reset, "POST", {"ResetType": "On"})[0] == 204
    assert "is on" in bmc.ipmitool("chassis", "power", "status")
    bmc.ipmitool("chassis", "power", "reset")
    assert bmc.power.actions() == ["off", "on", "reset"]


def test_a_wrong_password_is_refused_by_both(start_bmc: StartBmc) -> None:
    bmc = start_bmc()
    right, bmc.password = bmc.password, "wrong"
    assert bmc.redfish("/redfish/v1/Systems/1")[0] == 401
    with pytest.raises(BenchError, match="session"):
        bmc.ipmitool("mc", "info")
    bmc.password = right
    assert bmc.redfish("/redfish/v1/Systems/1")[0] == 200


def test_the_certificate_is_only_trusted_with_the_instances_own_authority(start_bmc: StartBmc) -> None:
    bmc = start_bmc()
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        urllib.request.urlopen(f"{bmc.redfish_url}/redfish/v1/", timeout=5)


@pytest.mark.parametrize("vendor", VENDORS.values(), ids=VENDORS)
def test_bios_attributes_are_pending_until_the_reset(start_bmc: StartBmc, vendor: Vendor) -> None:
    bmc = start_bmc(vendor=vendor.key)
    attribute = vendor.attributes[0]
    value = next(value for value in attribute.values if value != attribute.default)
    body = {"Attributes": {attribute.name: value}, "@Redfish.SettingsApplyTime": {"ApplyTime": "OnReset"}}
    settings = settings_path(bmc, vendor)
    assert bmc.redfish(settings, "PATCH", body, **any_tag(vendor))[0] == 200
    assert bmc.redfish(settings)[1]["Attributes"][attribute.name] == value
    assert bmc.redfish(bios_path(vendor))[1]["Attributes"][attribute.name] == attribute.default
    bmc.ipmitool("chassis", "power", "reset")
    assert bmc.redfish(bios_path(vendor))[1]["Attributes"][attribute.name] == value
    assert bmc.commands()[-1]["body"] == body


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"NoSuchAttribute": "x"}, "PropertyUnknown"),
        ({"TurboMode": "Perhaps"}, "PropertyValueNotInList"),
        ({"TurboMode": 1}, "PropertyValueTypeError"),
        ({"BMCFirmwareRevision": "2.0"}, "PropertyNotWritable"),
    ],
)
def test_a_wrong_bios_attribute_is_refused_and_nothing_becomes_pending(
    start_bmc: StartBmc, attributes: dict[str, Any], message: str
) -> None:
    bmc = start_bmc()
    settings = settings_path(bmc, VENDORS["supermicro"])
    status, document = bmc.redfish(settings, "PATCH", {"Attributes": {"CPUC6Report": "Disable", **attributes}})
    assert status == 400
    (entry,) = document["error"]["@Message.ExtendedInfo"]
    assert entry["MessageId"].endswith(message)
    assert entry["RelatedProperties"] == [f"#/Attributes/{next(iter(attributes))}"]
    assert bmc.bios.waiting() == {}


def test_dell_applies_settings_only_with_a_job(start_bmc: StartBmc) -> None:
    bmc = start_bmc(vendor="dell")
    settings = settings_path(bmc, VENDORS["dell"])
    bmc.redfish(settings, "PATCH", {"Attributes": {"SysProfile": "PerfOptimized"}})
    bmc.power.reset()
    assert bmc.bios.current()["SysProfile"] == "PerfPerWattOptimizedDapc"
    jobs = "/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/Jobs"
    status, document = bmc.redfish(jobs, "POST", {"TargetSettingsURI": settings})
    assert status == 202
    assert bmc.redfish(document["@odata.id"])[1]["JobState"] == "Scheduled"
    bmc.power.reset()
    assert bmc.bios.current()["SysProfile"] == "PerfOptimized"
    assert bmc.bios.current()["ProcCStates"] == "Disabled"  # settings that the profile brings with it
    assert bmc.redfish(document["@odata.id"])[1]["JobState"] == "Completed"


def test_hpe_cooling_attribute_turns_the_fans_up_after_the_reset(start_bmc: StartBmc) -> None:
    bmc = start_bmc(vendor="hpe")
    settings = settings_path(bmc, VENDORS["hpe"])
    bmc.redfish(settings, "PATCH", {"Attributes": {"ThermalConfig": "MaxCooling"}})
    assert bmc.sensors.read("Fan1") == 5000
    bmc.power.reset()
    assert bmc.sensors.read("Fan1") == 10000


def test_a_change_on_top_of_an_outdated_reading_is_refused(start_bmc: StartBmc) -> None:
    bmc = start_bmc()
    settings = settings_path(bmc, VENDORS["supermicro"])
    body = {"Attributes": {"TurboMode": "Disable"}}
    assert bmc.redfish(settings, "PATCH", body, **{"If-Match": '"outdated"'})[0] == 412
    assert bmc.bios.waiting() == {}


def test_the_registry_names_every_attribute_with_its_values(start_bmc: StartBmc) -> None:
    bmc = start_bmc(vendor="lenovo")
    file = bmc.redfish("/redfish/v1/Registries")[1]["Members"][0]["@odata.id"]
    location = bmc.redfish(file)[1]["Location"][0]["Uri"]
    entries = bmc.redfish(location)[1]["RegistryEntries"]["Attributes"]
    assert {entry["AttributeName"] for entry in entries} == set(bmc.bios.current())


@pytest.mark.parametrize(
    ("vendor", "held", "holder", "free"),
    [
        ("dell", {"ProcCStates": "Disabled"}, "SysProfile", "Custom"),
        ("hpe", {"MinProcIdlePower": "NoCStates"}, "WorkloadProfile", "Custom"),
        ("lenovo", {"Processors_TurboMode": "Disable"}, "OperatingModes_ChooseOperatingMode", "CustomMode"),
        ("supermicro", {"PowerPerformanceTuning": "BIOS Controls EPB"}, "PowerTechnology", "Custom"),
    ],
)
def test_what_the_registry_says_is_held_is_refused(
    start_bmc: StartBmc, vendor: str, held: dict[str, str], holder: str, free: str
) -> None:
    """Registry and service tell one story: an attribute that depends on another is read-only until that one has its value."""
    bmc = start_bmc(vendor=vendor)
    file = bmc.redfish("/redfish/v1/Registries")[1]["Members"][0]["@odata.id"]
    location = bmc.redfish(file)[1]["Location"][0]["Uri"]
    (name,) = held
    rules = bmc.redfish(location)[1]["RegistryEntries"]["Dependencies"]
    (rule,) = [one["Dependency"] for one in rules if one["DependencyFor"] == name]
    assert (rule["MapToAttribute"], rule["MapToProperty"], rule["MapToValue"]) == (name, "ReadOnly", True)
    source = {"MapFromAttribute": holder, "MapFromProperty": "CurrentValue"}
    assert rule["MapFrom"] == [{**source, "MapFromCondition": "NEQ", "MapFromValue": free}]
    settings = settings_path(bmc, VENDORS[vendor])
    tag = any_tag(VENDORS[vendor])
    status, document = bmc.redfish(settings, "PATCH", {"Attributes": held}, **tag)
    assert status == 400 and "PropertyNotWritable" in json.dumps(document) and bmc.bios.waiting() == {}
    assert bmc.redfish(settings, "PATCH", {"Attributes": {holder: free, **held}}, **tag)[0] in (200, 202)
    assert bmc.bios.waiting() == {holder: free, **held}


def test_stop_leaves_neither_process_nor_file(start_bmc: StartBmc) -> None:
    bmc = start_bmc()
    assert bmc.running() == {"ipmi_sim": True, "redfish": True}
    bmc.stop()
    assert not bmc.directory.exists()
    assert processes.strays(bmc.directory) == []


def test_a_taken_port_is_named_with_its_remedy(start_bmc: StartBmc, tmp_path: Path) -> None:
    first = start_bmc()
    second = Bmc(tmp_path / "second", first.ipmi_port, 1, 2)
    with pytest.raises(BenchError, match=rf"port {first.ipmi_port}/udp .* --ipmi-port"):
        second.start()
    assert not second.directory.exists()


def test_the_password_is_on_no_command_line(start_bmc: StartBmc) -> None:
    bmc = start_bmc()
    lines = [Path(f"/proc/{each.pid}/cmdline").read_text() for each in processes.strays(bmc.directory)]
    assert len(lines) == 2
    assert not any(bmc.password in line for line in lines)
    assert (bmc.directory / "lan.conf").stat().st_mode & 0o077 == 0
