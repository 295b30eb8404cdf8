"""Writes onto the NAND as NVMe drives count them outside of the standard health log.

OCP: "Datacenter NVMe SSD Specification", SMART / Health Information Extended (log page C0h), trusted only where it
carries its GUID. Intel and Solidigm: log page CAh, whose counts F4h and F5h are in 32 MiB; trusted only where its count
of host writes agrees with the standard one. Other vendors' pages are not read: no public document states their units.
"""

from __future__ import annotations

PAGE_BYTES = 512
OCP_PAGE, INTEL_PAGE = 0xC0, 0xCA
OCP_GUID = 0xAFD514C97C6F4F9CA4F2BFEA2810AFC5  # SMART-20; stored little-endian, as every number of the page
GUID_AT = 496
INTEL_VENDORS = (0x8086, 0x025E)  # PCI vendors Intel and Solidigm
INTEL_ITEM_BYTES, INTEL_RAW_AT, INTEL_RAW_BYTES = 12, 5, 6
INTEL_NAND, INTEL_HOST = 0xF4, 0xF5
INTEL_UNIT_BYTES = 32 * 2**20
# The two counts of one drive are taken a moment apart and round differently.
AGREE_FRACTION, AGREE_BYTES = 0.02, 4 * INTEL_UNIT_BYTES
INT64_MAX = 2**63 - 1


def demand_bytes(name: str, page: bytes, size: int = PAGE_BYTES) -> bytes:
    """The page. Raises ValueError when it has another size."""
    if len(page) != size:
        raise ValueError(f"{name}: {len(page)} B instead of {size} B: {bytes(page[:32])!r}")
    return page


def is_ocp(page: bytes) -> bool:
    """Is it OCP's page, and not what another vendor keeps at the same place?"""
    return int.from_bytes(demand_bytes("log page C0h", page)[GUID_AT:], "little") == OCP_GUID


def intel_nand_bytes(page: bytes, host_bytes: int) -> int | None:
    """Written onto the NAND, in steps of 32 MiB; None where the page does not count it.

    `host_bytes`: host writes by the standard health log. Raises ValueError where the page counts them otherwise, or what no drive writes.
    Its other items are no counts: of the erases (ADh) it packs least, most and mean into one."""
    demand_bytes("log page CAh", page)
    items: dict[int, int] = {}
    for first in range(0, PAGE_BYTES - INTEL_ITEM_BYTES + 1, INTEL_ITEM_BYTES):
        raw = page[first + INTEL_RAW_AT : first + INTEL_RAW_AT + INTEL_RAW_BYTES]
        items.setdefault(page[first], int.from_bytes(raw, "little") * INTEL_UNIT_BYTES)
    if INTEL_NAND not in items or INTEL_HOST not in items:
        return None
    nand, host = items[INTEL_NAND], items[INTEL_HOST]
    if abs(host - host_bytes) > AGREE_BYTES + AGREE_FRACTION * host_bytes:
        raise ValueError(
            f"log page CAh: {host} B written by the host, the health log says {host_bytes} B: not in 32 MiB"
        )
    if nand > INT64_MAX:
        raise ValueError(f"log page CAh: {nand} B written onto the NAND is no credible count")
    return nand
