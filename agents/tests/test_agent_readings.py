"""What a device, its kernel or its BMC states for want of a reading, in the shapes in which it is met."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daq_bench.telemetry_agent.collectors.temperature import Temperature
from daq_bench.telemetry_agent.devices import nvme_pages, smartctl_json


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
