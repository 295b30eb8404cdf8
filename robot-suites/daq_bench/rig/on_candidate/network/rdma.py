"""The RDMA device of a network port, and its counters: a real card's RDMA traffic passes its interface's counters by."""

from __future__ import annotations

import contextlib
from pathlib import Path

INFINIBAND = Path("/sys/class/infiniband")
NET = Path("/sys/class/net")
COUNTERS = {"rdma_rx_bytes": "port_rcv_data", "rdma_tx_bytes": "port_xmit_data"}
WORD_BYTES = 4  # these two count octets divided by 4 (Linux, Documentation/ABI/stable/sysfs-class-infiniband)


def ports_of(interface: str) -> list[Path]:
    """Returns device ports with an address (GID) of this interface: card, bond, VLAN, soft RoCE. Each has up to 1024 to read."""
    found = set()
    for entry in INFINIBAND.glob("*/ports/*/gid_attrs/ndevs/*"):
        with contextlib.suppress(OSError):  # an entry without an address cannot be read
            if entry.read_text(encoding="ascii").strip() == interface:
                found.add(entry.parents[2])
    return sorted(found)


def devices_of(interface: str) -> list[str]:
    """Returns device names: those of the port's own PCI function, which may have no address yet, and those with an address of it."""
    own = NET / interface / "device" / "infiniband"
    there = {entry.name for entry in own.iterdir()} if own.is_dir() else set()
    return sorted(there | {port.parents[1].name for port in ports_of(interface)})


def bytes_of(port: Path | None) -> dict[str, int]:
    """Returns bytes so far through a device port; empty without one, and for one that does not count (soft RoCE)."""
    with contextlib.suppress(OSError, ValueError):
        if port is not None:
            folder = port / "counters"
            return {
                name: WORD_BYTES * int((folder / file).read_text(encoding="ascii")) for name, file in COUNTERS.items()
            }
    return {}
