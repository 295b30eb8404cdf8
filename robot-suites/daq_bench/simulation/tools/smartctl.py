"""Prints what smartctl and nvme-cli say of a modelled drive: `smartctl -j -a`, and the health log page of 512 bytes."""

from __future__ import annotations

from typing import Any

from daq_bench.simulation.physics.drive import Drive, DriveSpec

HOURS = 1000
UNIT_BYTES = 512_000  # of the data units


def document(spec: DriveSpec, drive: Drive, degc: int) -> dict[str, Any]:
    if spec.transport == "sas":
        return _of_sas(spec, drive, degc)
    return {
        "json_format_version": [1, 0],
        "smartctl": {"version": [7, 4], "argv": ["smartctl", "-j", "-a", f"/dev/{spec.name}"], "exit_status": 0},
        "device": {"name": f"/dev/{spec.name}", "info_name": f"/dev/{spec.name}", "type": "nvme", "protocol": "NVMe"},
        "model_name": spec.model,
        "serial_number": spec.serial,
        "firmware_version": spec.firmware,
        "nvme_composite_temperature_threshold": {"warning": spec.warning_degc, "critical": spec.critical_degc},
        "smart_status": {"passed": True, "nvme": {"value": 0}},
        "nvme_smart_health_information_log": {
            "nsid": -1,
            "critical_warning": 2 if degc >= spec.warning_degc else 0,
            "temperature": degc,
            "available_spare": 100,
            "available_spare_threshold": 10,
            "percentage_used": drive.percentage_used,
            "data_units_read": int(drive.read_bytes // UNIT_BYTES),
            "data_units_written": int(drive.written_bytes // UNIT_BYTES),
            "power_cycles": 23,
            "power_on_hours": HOURS,
            "unsafe_shutdowns": 2,
            "media_errors": 0,
            "num_err_log_entries": 0,
            "warning_temp_time": drive.warning_s // 60,
            "critical_comp_time": 0,
        },
        "temperature": {"current": degc},
        "power_on_time": {"hours": HOURS},
    }


def _of_sas(spec: DriveSpec, drive: Drive, degc: int) -> dict[str, Any]:
    """A SAS drive states one limit: the temperature up to which it works continuously."""
    return {
        "json_format_version": [1, 0],
        "smartctl": {"version": [7, 4], "argv": ["smartctl", "-j", "-a", f"/dev/{spec.name}"], "exit_status": 0},
        "device": {"name": f"/dev/{spec.name}", "info_name": f"/dev/{spec.name}", "type": "scsi", "protocol": "SCSI"},
        "scsi_vendor": "SIM",
        "scsi_model_name": spec.model,
        "serial_number": spec.serial,
        "scsi_revision": spec.firmware,
        "smart_status": {"passed": True},
        "temperature": {"current": degc, "drive_trip": spec.critical_degc},
        "power_on_time": {"hours": HOURS},
        "scsi_grown_defect_list": 0,
        "scsi_percentage_used_endurance_indicator": drive.percentage_used,
        "scsi_error_counter_log": {
            way: {"gigabytes_processed": f"{size / 1e9:.3f}", "total_uncorrected_errors": 0}
            for way, size in (("read", drive.read_bytes), ("write", drive.written_bytes))
        },
    }


def health_page(drive: Drive, degc: int) -> str:
    """Log page 02h in hexadecimal (NVMe base specification, figure "SMART / Health Information Log Page")."""
    page = bytearray(512)

    def put(first: int, size: int, value: int) -> None:
        page[first : first + size] = int(value).to_bytes(size, "little")

    put(0, 1, 2 if degc >= drive.spec.warning_degc else 0)
    put(1, 2, degc + 273)
    page[3:6] = bytes((100, 10, 1))
    put(32, 16, int(drive.read_bytes // UNIT_BYTES))
    put(48, 16, int(drive.written_bytes // UNIT_BYTES))
    put(112, 16, 23)
    put(128, 16, HOURS)
    put(144, 16, 2)
    put(192, 4, drive.warning_s // 60)
    put(216, 4, drive.transitions[0])
    put(220, 4, drive.transitions[1])
    put(224, 4, drive.throttled_s[0])
    put(228, 4, drive.throttled_s[1])
    return page.hex()
