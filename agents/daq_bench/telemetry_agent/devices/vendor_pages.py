"""The counts that NVMe's standard health log leaves out, above all the writes onto the NAND: OCP's extended log and Intel's.

OCP: "Datacenter NVMe SSD Specification", SMART / Health Information Extended (log page C0h), trusted only where it
carries its GUID. Intel and Solidigm: log page CAh, whose counts F4h and F5h are in 32 MiB; trusted only where its count
of host writes agrees with the standard one. Other vendors' pages are not read: no public document states their units.
"""

from __future__ import annotations

from daq_bench.telemetry_agent.base.point import FieldValue
from daq_bench.telemetry_agent.devices.nvme_pages import PAGE_BYTES, count, demand_bytes

OCP_PAGE, INTEL_PAGE = 0xC0, 0xCA
OCP_GUID = 0xAFD514C97C6F4F9CA4F2BFEA2810AFC5  # stored little-endian, as every number of the page
GUID_AT = 496
INTEL_VENDORS = (0x8086, 0x025E)  # PCI vendors Intel and Solidigm
INTEL_ITEM_BYTES, INTEL_RAW_AT, INTEL_RAW_BYTES = 12, 5, 6
INTEL_NAND, INTEL_HOST = 0xF4, 0xF5
INTEL_UNIT_BYTES = 32 * 2**20
# The two counts of one drive are taken a moment apart and round differently.
AGREE_FRACTION, AGREE_BYTES = 0.02, 4 * INTEL_UNIT_BYTES

# Field -> (first byte, bytes); a number of ones only means that the drive does not count it.
OCP_FIELDS = {
    "nand_written_bytes": (0, 16),
    "nand_read_bytes": (16, 16),
    "bad_user_blocks": (32, 6),
    "bad_system_blocks": (40, 6),
    "xor_recoveries": (48, 8),
    "uncorrectable_reads": (56, 8),
    "soft_ecc_errors": (64, 8),
    "end_to_end_errors_detected": (72, 4),
    "end_to_end_errors_corrected": (76, 4),
    "system_data_used_percent": (80, 1),
    "refreshes": (81, 7),
    "erases_max": (88, 4),
    "erases_min": (92, 4),
    "thermal_throttling_events": (96, 1),
    "thermal_throttling_status": (97, 1),
    "pcie_correctable_errors": (104, 8),
    "incomplete_shutdowns": (112, 4),
    "free_blocks_percent": (120, 1),
    "capacitor_health_percent": (128, 2),
    "unaligned_ios": (136, 8),
}
# Reserved before the page's version 2 (Datacenter NVMe SSD Specification 2.0): zeros that count nothing.
OCP_LATER_FIELDS = {
    "power_loss_protection_starts": (160, 16),
    "pcie_link_retrainings": (192, 8),
}
VERSION_AT, LATER_VERSION = 494, 2


def is_ocp(page: bytes) -> bool:
    """Is it OCP's page, and not what another vendor keeps at the same place?"""
    return int.from_bytes(demand_bytes("log page C0h", page, PAGE_BYTES)[GUID_AT:], "little") == OCP_GUID


def ocp_fields(page: bytes) -> dict[str, FieldValue]:
    """Fields of the measurement `smart_ocp`. Raises ValueError for another vendor's page."""
    if not is_ocp(page):
        raise ValueError(f"log page C0h: no OCP GUID at its end but {page[GUID_AT:].hex()}")
    later = OCP_LATER_FIELDS if count(page, VERSION_AT, 2) >= LATER_VERSION else {}
    fields = {**OCP_FIELDS, **later}
    known = {name: place for name, place in fields.items() if any(b != 0xFF for b in page[place[0] : sum(place)])}
    if not known:
        raise ValueError("log page C0h: all of it is ones, which is no page")
    return {name: count(page, first, size) for name, (first, size) in known.items()}


def intel_nand_bytes(page: bytes, host_bytes: int) -> int | None:
    """Written onto the NAND, in steps of 32 MiB; None where the page does not count it.

    `host_bytes`: host writes by the standard health log. Raises ValueError where the page counts them otherwise."""
    demand_bytes("log page CAh", page, PAGE_BYTES)
    items: dict[int, int] = {}
    for first in range(0, PAGE_BYTES - INTEL_ITEM_BYTES + 1, INTEL_ITEM_BYTES):
        items.setdefault(page[first], count(page, first + INTEL_RAW_AT, INTEL_RAW_BYTES, INTEL_UNIT_BYTES))
    if INTEL_NAND not in items or INTEL_HOST not in items:
        return None
    if abs(items[INTEL_HOST] - host_bytes) > AGREE_BYTES + AGREE_FRACTION * host_bytes:
        raise ValueError(
            f"log page CAh: {items[INTEL_HOST]} B written by the host, the health log says {host_bytes} B: not in 32 MiB"
        )
    return items[INTEL_NAND]
