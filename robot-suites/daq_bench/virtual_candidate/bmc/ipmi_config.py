"""The files that OpenIPMI's ipmi_sim runs from. Pure: values in, text out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from daq_bench.virtual_candidate.hardware import DEFAULT_FAN_MODE, FAN_MODES, FANS, POWER, RPM_PER_DUTY, SENSORS, Sensor
from daq_bench.virtual_candidate.vendors import Vendor

NAME = "virtual"  # ipmi_sim keeps its state in <state>/ipmi_sim/<NAME>
POLL_MS = 250  # how often a sensor file is read

# IPMI 2.0, table 42-3, sensor types; the thresholds in the order of ipmi_sim's bit mask, highest bit first.
_TYPE_CODES = {"Temperature": 0x01, "Current": 0x03, "Fan": 0x04}
_THRESHOLDS = ("unr", "uc", "unc", "lnr", "lc", "lnc")
_ALL_EVENTS = "000111111111111"


@dataclass(frozen=True)
class IpmiAddress:
    """The BMC's ports on 127.0.0.1: `lan` is UDP for everybody, `system` TCP for the virtual machine's KCS interface."""

    lan: int
    system: int


def lan_conf(address: IpmiAddress, user: str, password: str, chassis: Path, plugin: Path, directory: Path) -> str:
    """ipmi_sim's configuration. Holds the password: the file must be readable by its owner only."""
    levels = "\n".join(f"    allowed_auths_{level} md5" for level in ("callback", "user", "operator", "admin"))
    return f"""\
name "{NAME}"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {address.lan}
    priv_limit admin
{levels}
    guid a123456789abcdefa123456789abcdef
  endlan
  serial 15 127.0.0.1 {address.system} codec VM
  chassis_control "{chassis}"
  user 2 true "{user}" "{password}" admin 10 md5
loadlib "{plugin}" "{directory}"
"""


def emulator_commands(vendor: Vendor, sensors_directory: Path) -> str:
    """The commands that ipmi_sim executes at its start: one management controller with its event log and sensors."""
    lines = [
        "mc_setbmc 0x20",
        # Device id, no device SDRs, revision, firmware 1.0, device support, manufacturer, product.
        f"mc_add 0x20 0 no-device-sdrs 0x23 1 0 0x9f {vendor.iana:#x} 0xf02 persist_sdr",
        "sel_enable 0x20 200 0x0a",
    ]
    for sensor in SENSORS:
        lines.extend(_sensor_commands(sensor, sensors_directory))
    return "\n".join([*lines, "mc_enable 0x20", ""])


def _sensor_commands(sensor: Sensor, folder: Path) -> list[str]:
    place = f"0x20 0 {sensor.number}"
    file = f'file "{folder / sensor.file}"'
    lines = [f"sensor_add {place} {_TYPE_CODES[sensor.kind]} 0x01 poll {POLL_MS} {file} div={sensor.step}"]
    if sensor.thresholds:
        mask = "".join("1" if name in sensor.thresholds else "0" for name in _THRESHOLDS)
        values = " ".join(str(sensor.thresholds.get(name, 0) // sensor.step) for name in _THRESHOLDS)
        lines.append(f"sensor_set_threshold {place} settable {mask} {values}")
    # Without `scanning` a sensor reads as disabled.
    lines.append(f"sensor_set_event_support {place} enable scanning per-state {' '.join([_ALL_EVENTS] * 4)}")
    return lines


def sdr_source() -> str:
    """The sensor data records, for OpenIPMI's sdrcomp."""
    controller = """\
sdr type 18
 device_slave_address 0x20
 device_channel_number 0
 chassis true
 fru_inventory true
 sel true
 sdr true
 sensor true
 entity_id system_board
 entity_instance 1
 id_string "BMC"
endsdr
"""
    seen: dict[int, int] = {}
    records = []
    for sensor in SENSORS:
        seen[sensor.entity] = seen.get(sensor.entity, 0) + 1
        records.append(_full_record(sensor, seen[sensor.entity]))
    return "\n".join([controller, *records])


def _full_record(sensor: Sensor, instance: int) -> str:
    """An SDR of type 1: the raw reading times `step` is the value in the sensor's unit."""
    fields = {
        "sensor_owner_id": "0x20",
        "sensor_owner_lun": 0,
        "channel_number": 0,
        "sensor_number": sensor.number,
        "entity_id": sensor.entity,
        "entity_instance": instance,
        "init_scanning": "true",
        "init_events": "true",
        "init_thresholds": "true",
        "init_sensor_type": "true",
        "default_event_gen_on": "true",
        "default_sensor_scan_on": "true",
        "sensor_auto_rearm": "true",
        "sensor_threshold_access": "settable",
        "sensor_event_msg_ctrl": "per_state",
        "sensor_type": sensor.kind,
        "event_reading_type_code": 1,
        **{f"return_{name}": "true" for name in sensor.thresholds},
        "analog_data_format": "unsigned",
        "rate_unit": "none",
        "modifier_unit": "none",
        "percentage": "false",
        "base_unit": sensor.unit,
        "modifier_unit_code": "unspecified",
        "linearization": "linear",
        "m": sensor.step,
        "tolerance": 0,
        "b": 0,
        "accuracy": 1,
        "accuracy_exp": 0,
        "sensor_direction": "input",
        "r_exp": 0,
        "b_exp": 0,
        "sensor_maximum": 255,
        "sensor_minimum": 0,
        **{f"{name}_fthresh": value for name, value in sensor.thresholds.items()},
        "id_string": f'"{sensor.name}"',
    }
    return "\n".join(["sdr type 1", *(f" {name} {value}" for name, value in fields.items()), "endsdr", ""])


def plugin_conf(vendor: Vendor) -> str:
    """The C plug-in's configuration: the vendor whose commands it takes, the fans with their zones, the modes with their duties."""
    modes = {mode.name: mode for mode in FAN_MODES}
    lines = [
        f"vendor {vendor.key}",
        f"power_sensor {POWER.replace(' ', '_')}",
        f"rpm_per_duty {RPM_PER_DUTY}",
        f"full_mode {modes['full'].code}",
        f"automatic_mode {DEFAULT_FAN_MODE.code}",
        *(f"fan {fan.name} {fan.zone}" for fan in FANS),
    ]
    # Behind the codes that name them: the plug-in checks them when it has read everything.
    lines.extend(f"mode {mode.code} {mode.duties[0]} {mode.duties[1]}" for mode in FAN_MODES)
    return "\n".join([*lines, ""])
