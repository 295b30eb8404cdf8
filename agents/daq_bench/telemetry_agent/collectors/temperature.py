"""Temperatures from /sys/class/hwmon and /sys/class/thermal, with the device's own warning and critical
limits.

Promise: degrees Celsius as the kernel reports them; limits (`temp*_max`, `temp*_crit`; for NVMe the
controller's WCTEMP and CCTEMP) are the device's, never ours. A drive's sensor carries the block device's
name, so that it joins with `block_device`. A reading that the chip itself marks as faulty (`temp*_fault`) does not count.
Sensors are found anew where a chip came or went, since its name may pass to another drive's; one that only fails is a fault of
every sample. Once a second at most, in a thread of its own: an NVMe drive's sensor is a command to the drive that waits behind
its queue, a thermal zone may be a program of the firmware.
"""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path
from typing import NamedTuple

from daq_bench.candidate_kit import plausible
from daq_bench.candidate_kit.nvme_paths import drives_of_controller
from daq_bench.telemetry_agent.base.point import FieldValue, Point, Tags
from daq_bench.telemetry_agent.reading.attributes import excerpt
from daq_bench.telemetry_agent.reading.collector import (
    Every,
    HeldFile,
    Reading,
    Unsupported,
    read_optional,
    reading_now,
)

PERIOD_S_MIN = 1.0
LOOK_EVERY_S = 10.0
FOUND_KEPT = 100  # times that sensors were found: for readings that are not parsed yet
CHIPS = ("sys/class/hwmon/hwmon*", "sys/class/thermal/thermal_zone*")
MILLIDEGREES = re.compile(r"-?[0-9]{1,9}")


class Sensor(NamedTuple):
    """One temperature input. Limits are in degrees Celsius."""

    tags: Tags
    limits: dict[str, float]
    file: HeldFile
    fault: HeldFile | None = None

    def close(self) -> None:
        """Close its files."""
        self.file.close()
        if self.fault:
            self.fault.close()


def find_sensors(root: Path) -> dict[str, Sensor]:
    """All sensors of the machine by a short key such as "hwmon1/temp1"."""
    sensors = {}
    for path in sorted(root.glob("sys/class/hwmon/hwmon*/temp*_input")):
        prefix = path.name[: -len("_input")]
        sensors[f"{path.parent.name}/{prefix}"] = _hwmon_sensor(path, prefix)
    for path in sorted(root.glob("sys/class/thermal/thermal_zone*/temp")):
        zone = path.parent.name
        tags = (("chip", read_optional(path.parent / "type") or zone), ("sensor", zone))
        sensors[zone] = Sensor(tags, {}, HeldFile(path))
    return sensors


def _hwmon_sensor(path: Path, prefix: str) -> Sensor:
    directory = path.parent
    tags = {
        "chip": read_optional(directory / "name") or directory.name,
        "sensor": f"{directory.name}/{prefix}",
    }
    label = read_optional(directory / f"{prefix}_label")
    device = block_device_behind(directory / "device")
    if label:
        tags["label"] = label
    if device:
        tags["device"] = device
    limits = {}
    for suffix, field in (("max", "warning_degc"), ("crit", "critical_degc")):
        text = read_optional(directory / f"{prefix}_{suffix}")
        if text is not None:
            with contextlib.suppress(ValueError):  # 0 and less, 0xFFFF K and the like say that there is no limit
                limits[field] = plausible.limit_celsius(_celsius(text), "limit")
    fault = directory / f"{prefix}_fault"
    return Sensor(
        tuple(sorted(tags.items())), limits, HeldFile(path), HeldFile(fault, True) if fault.exists() else None
    )


def block_device_behind(device: Path) -> str | None:
    """The drive a sensor sits on: `device` is an NVMe controller (nvme0n1) or a SCSI device (block/sda).

    Under native multipath a controller lists its path (nvme1c1n1), which is no block device: the drive is nvme1n1."""
    names = drives_of_controller(device) or sorted(path.name for path in device.glob("block/*"))
    return names[0] if names else None


def degrees_celsius(text: str) -> float:
    """The kernel's millidegrees. Raises ValueError on anything else, and on what is no temperature of a part (0 K, 273 K)."""
    return plausible.degrees_of_a_running_part(_celsius(text), "temperature")


def _celsius(text: str) -> float:
    if not MILLIDEGREES.fullmatch(text.strip()):
        raise ValueError(f"temperature: millidegrees are expected, not {excerpt(text)}")
    return int(text) / 1000.0


class Temperature:
    """Collector of the measurement `temperature`."""

    name = "temperature"
    pace = "slow"

    def __init__(self, period_s: float, root: Path = Path("/")) -> None:
        self.period_s = max(PERIOD_S_MIN, period_s)
        self._root = root
        self._sensors: dict[str, Sensor] = {}
        self._chips: dict[Path, int] = {}  # inodes: sysfs gives a chip that comes anew another one
        self._times_found = 0
        self._found: dict[int, dict[str, Sensor]] = {}
        self._failed = False
        self._look = Every(LOOK_EVERY_S)

    def read(self) -> Reading:
        """Read every sensor; one that fails is reported as a fault and the others still count."""
        if self._look.due(time.monotonic()) or self._failed or not self._sensors:
            self._look_for_sensors()
        if not self._sensors:
            raise Unsupported(f"no sensor in {self._root / 'sys/class/hwmon'} or {self._root / 'sys/class/thermal'}")
        texts, faults = {}, []
        self._failed = False
        for key, sensor in self._sensors.items():
            try:
                text = sensor.file.text()
                degrees_celsius(text)
                if sensor.fault and sensor.fault.text().strip() != "0":
                    raise ValueError(f"temperature: the chip marks it as faulty, it reads {excerpt(text.strip())}")
            except OSError as error:
                self._failed = True
                faults.append(f"{key}: {error.strerror}")
            except ValueError as error:
                faults.append(f"{key}: {error}")
            else:
                texts[f"{self._times_found} {key}"] = text
        if not texts:
            raise OSError("no temperature sensor can be read: " + "; ".join(faults))
        return reading_now(texts, tuple(faults))

    def _look_for_sensors(self) -> None:
        chips: dict[Path, int] = {}
        for path in (path for pattern in CHIPS for path in self._root.glob(pattern)):
            with contextlib.suppress(OSError):  # it went meanwhile
                chips[path] = path.stat().st_ino
        if chips == self._chips and self._sensors:
            return
        for sensor in self._sensors.values():
            sensor.close()
        self._chips, self._sensors = chips, find_sensors(self._root)
        self._times_found += 1
        self._found[self._times_found] = self._sensors
        self._found.pop(self._times_found - FOUND_KEPT, None)

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per sensor."""
        points = []
        for key, text in reading.texts.items():
            found, _, name = key.partition(" ")  # a reading may be parsed after the next one was taken
            sensor = self._found[int(found)][name]
            fields: dict[str, FieldValue] = {"temperature_degc": degrees_celsius(text), **sensor.limits}
            points.append(Point("temperature", sensor.tags, fields, reading.time_ns))
        return points
