"""OCP's extended health log as fields: what NVMe's standard log leaves out, above all the writes onto the NAND.

Which page is OCP's, and Intel's page: candidate_kit.nand_pages.
"""

from __future__ import annotations

from daq_bench.candidate_kit.nand_pages import GUID_AT, is_ocp
from daq_bench.telemetry_agent.base.point import FieldValue
from daq_bench.telemetry_agent.devices.nvme_pages import count

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
