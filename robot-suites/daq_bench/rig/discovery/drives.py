"""Tells which drives of a server are free to be tested, and why the others are not.

Pure: accounts of `on_candidate/reading/discovery.py` in, reasons out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from daq_bench.bench_model.profiles.connection_entries import TEMPLATE_MARKS


@dataclass(frozen=True)
class FoundDrive:
    """One whole drive. `reasons`: why it cannot be tested as it is; none: it is free. Sizes in bytes."""

    path: str
    serial: str
    model: str
    firmware: str
    wwn: str
    size_bytes: int
    numa_node: int | None
    pcie_link: str
    facts: dict[str, Any] = field(repr=False)
    reasons: tuple[str, ...] = ()
    wwn_needed: bool = False  # its serial alone names several devices

    @property
    def is_free(self) -> bool:
        return not self.reasons

    @property
    def schedulers(self) -> list[str]:
        return list(self.facts.get("schedulers", []))

    @property
    def place(self) -> str:
        """PCIe address, negotiated link and NUMA node, as far as the kernel tells them."""
        pci = self.facts.get("pci") or {}
        address = f"PCIe {pci['address']}" if pci.get("address") else "no PCIe address told"
        node = "NUMA node not told" if self.numa_node is None else f"NUMA node {self.numa_node}"
        return ", ".join((address, *([self.pcie_link] if self.pcie_link else []), node))


def plain_text(text: str) -> bool:
    """Says whether an inventory can hold the text as it is: printable, and no template that Ansible would expand."""
    return bool(text) and text.isprintable() and not any(mark in text for mark in TEMPLATE_MARKS)


def judged(accounts: Sequence[dict[str, Any]]) -> list[FoundDrive]:
    """The server's whole drives, the free ones first, then by their paths."""
    names = [(one["description"] or {}) for one in accounts]
    serials = [str(one.get("serial") or "") for one in names]
    wwns = [str(one.get("wwn") or "").lower() for one in names]
    found = []
    for account, said, serial in zip(accounts, names, serials, strict=True):
        wwn = str(said.get("wwn") or "")
        several = bool(serial) and serials.count(serial) > 1
        alone = bool(wwn) and wwns.count(wwn.lower()) == 1
        drive = FoundDrive(
            path=account["path"],
            serial=serial,
            model=str(said.get("model") or ""),
            firmware=str(said.get("firmware") or ""),
            wwn=wwn,
            size_bytes=int(said.get("size_bytes") or 0),
            numa_node=said.get("numa_node"),
            pcie_link=str(said.get("pcie_link") or ""),
            facts=account,
            reasons=tuple(_reasons(account, serial, wwn, several and not alone)),
            wwn_needed=several,
        )
        found.append(drive)
    return sorted(found, key=lambda drive: (not drive.is_free, drive.path))


def _reasons(account: dict[str, Any], serial: str, wwn: str, ambiguous: bool) -> list[str]:
    """The guard's objections first: who uses a drive matters more than that it has no name."""
    said = []
    if account.get("fault"):
        said.append(f"cannot be probed: {account['fault']}")
    else:
        said += [*account["uses"], *account["sets"], *account["identity"]]
        if account["partitions"] or account["partition_tables"]:
            parts = ", ".join(account["partitions"]) or "no partition"
            table = "/".join(account["partition_tables"]) or "partition"
            said.append(f"is partitioned ({table} table: {parts}): if it may go, remove it yourself (wipefs --all)")
        if account["signatures"] and not said:
            said.append(f"holds {account['contents']}: if that may go, remove it yourself (wipefs --all)")
    if not serial:
        said.append("reports no serial, by which alone the bench names a drive")
    elif not plain_text(serial):
        said.append("its serial has characters that an inventory cannot hold")
    if ambiguous:
        said.append(
            "another device has the same serial and WWN: they are paths to one drive, and the bench tests a drive by one device. Use "
            "the kernel's native multipath (nvme_core.multipath=Y), or take away the other path"
            if wwn
            else "another device has the same serial, and no WWN of its own tells them apart"
        )
    elif wwn and not plain_text(wwn):
        said.append("its WWN has characters that an inventory cannot hold")
    return said
