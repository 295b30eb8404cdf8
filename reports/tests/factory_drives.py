"""The part of the bundle factory that makes drives and their health records. For tests only."""

from __future__ import annotations

from typing import Any

from factory_knobs import LONG, Knobs


def devices(knobs: Knobs, single: dict[str, Any]) -> dict[str, Any]:
    """The target's device, and the drives of its array where it is one."""
    if not knobs.drives:
        return {"device": single, "drives": [single]}
    array = {
        "name": "md127",
        "model": None,
        "serial": None,
        "raid_level": "raid0",
        "size_bytes": 7680 * 10**9 * knobs.drives,
        "rotational": False,
    }
    drives = [
        {
            "name": f"nvme{number}n1", "model": LONG if knobs.long_names else "SAMSUNG MZWLO7T6HBLA",
            "serial": f"S7Y1NX0W{number:06d}", "firmware": "OPPA4B5Q" if number else "OPPA3B5Q",
            "wwn": f"nvme.144d-{'5337593147583057' * 2}-{number:08d}", "size_bytes": 7680 * 10**9, "numa_node": number % 2,
            "rotational": False, "transport": "nvme", "pcie_link": "Gen5 x4 (32 GT/s)",
        }
        for number in range(knobs.drives)
    ]  # fmt: skip
    return {"device": array, "drives": drives}


def smart(knobs: Knobs, *, after: bool) -> dict[str, Any]:
    if not knobs.drives:
        return {"devices": [{"device": "vda", "status": "unsupported", "detail": "virtio has no SMART", "data": None}]}
    return {"devices": [_health(number, knobs, after) for number in range(knobs.drives)]}


def _health(number: int, knobs: Knobs, after: bool) -> dict[str, Any]:
    log = {
        "critical_warning": 0, "temperature": 61 if after else 38, "available_spare": 100, "available_spare_threshold": 10,
        "percentage_used": 1, "data_units_read": 2_000, "data_units_written": 10_000 + 2_000 * after, "media_errors": 0,
        "power_on_hours": 311, "unsafe_shutdowns": 2,
    }  # fmt: skip
    if knobs.smart_worse and number == 0 and after:
        log["media_errors"] = 3
    data = {"model_name": "SAMSUNG MZWLO7T6HBLA", "serial_number": f"S7Y1NX0W{number:06d}", "firmware_version": "OPPA4B5Q",
            "smart_status": {"passed": True}, "nvme_smart_health_information_log": log}  # fmt: skip
    return {"device": f"/dev/nvme{number}n1", "status": "read", "detail": "", "data": data}
