"""Filters that turn the candidate's facts about its drives and NICs into settings and records. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

ROLE = "numa_irq"


def label_of(device: dict[str, Any]) -> str:
    """Return a drive's serial, since kernel names change places at every boot, or a NIC's name."""
    return str(device.get("serial") or device["name"])


def affinity_settings(devices: list[dict[str, Any]], kind: str, asked: str) -> list[dict[str, Any]]:
    """Settings for bench_kernel_settings that put the interrupts of each device on the CPUs of its own NUMA node."""
    if asked not in ("local-node", "keep"):
        raise AnsibleFilterError(f"{kind}_irq_affinity is {asked!r}; known: local-node, keep")
    if asked == "keep":
        return []
    settings = [affinity_setting(device, kind) for device in devices]
    return settings or [nothing_there(kind)]


def affinity_setting(device: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return one device's setting."""
    cpus, interrupts = device["node_cpus"], (device["pci"] or {}).get("interrupts", [])
    missing = "the kernel names no NUMA node for it" if interrupts else "it has no interrupt of its own"
    return {
        "id": f"{kind}-irq-affinity-{label_of(device)}",
        "subject": f"{len(interrupts)} interrupts of {device['name']} (NUMA node {device['numa_node']})",
        "root": "procfs",
        "paths": [f"irq/{number}/smp_affinity_list" for number in interrupts] if cpus else [],
        "value": cpus or "0",
        "asked": f"local-node (CPUs {cpus or 'unknown'})",
        "comparison": "cpus_within",
        "effective_file": "effective_affinity_list",
        "absent": missing,
    }


def nothing_there(kind: str) -> dict[str, Any]:
    """Return the setting that says that the request concerns no device."""
    what = {"nvme": "the target lies on no NVMe drive", "nic": "tuning.nic names no interface"}[kind]
    return {
        "id": f"{kind}-irq-affinity",
        "subject": kind,
        "paths": [],
        "value": "0",
        "asked": "local-node",
        "absent": what,
    }


def link_text(link: dict[str, Any]) -> str:
    """Return one link in words for people."""
    return f"{link['gt_per_s']:g} GT/s x{link['lanes']}" if link["lanes"] and link["gt_per_s"] else ""


def capacity(link: dict[str, Any]) -> float:
    """Return rate times lanes, which decides which link is the narrowest."""
    return float(link["gt_per_s"]) * int(link["lanes"])


def narrowest(links: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the device with the least capacity on the way to the root port; None where none states one."""
    told = [link for link in links if capacity(link["max"])]
    return min(told, key=lambda link: capacity(link["max"])) if told else None


def pcie_link_record(device: dict[str, Any], asked: str) -> dict[str, str]:
    """Return the record of one device's link: the negotiated one against the device's best."""
    links = (device["pci"] or {}).get("links", [])
    own = links[0] if links else {"current": {"gt_per_s": 0, "lanes": 0}, "max": {"gt_per_s": 0, "lanes": 0}}
    current, best = link_text(own["current"]), link_text(own["max"])
    record = {
        "id": f"pcie-link-{label_of(device)}", "role": ROLE, "subject": f"{device['name']}, PCIe link",
        "asked": "keep" if asked == "keep" else f"full ({best or 'unknown'})",
        "before": current, "applied": "", "read_back": current, "status": "unchanged", "detail": "",
    }  # fmt: skip
    least = narrowest(links)
    limit = ""
    if least is not None and capacity(least["max"]) < capacity(own["max"]):
        limit = f"{least['address']} on the way to the root port can do {link_text(least['max'])} at most"
    if not current or not best:
        record["detail"] = "the device tells no PCIe link (usual on a virtual machine)"
        record["status"] = "unchanged" if asked == "keep" else "unsupported"
    elif current != best:
        record["detail"] = f"negotiated {current}, can do {best}" + (f"; {limit}" if limit else "")
        record["status"] = "unchanged" if asked == "keep" else "mismatch"
    else:
        record["detail"] = limit
    return record


def pcie_link_records(devices: list[dict[str, Any]], asked: str) -> list[dict[str, str]]:
    """Return the records of all devices; nothing is written, so there is nothing to restore."""
    return [pcie_link_record(device, asked) for device in devices]


def writer_cpus_record(drives: list[dict[str, Any]]) -> dict[str, str]:
    """Return the record of the CPUs near the target's drives, those of their NUMA nodes: a writer's place."""
    cpus = list(dict.fromkeys(drive["node_cpus"] for drive in drives if drive["node_cpus"]))
    nodes = {drive["numa_node"] for drive in drives}
    found = ", ".join(cpus)
    detail = "" if found else "the kernel names no NUMA node for the target"
    if len(nodes) > 1:
        detail = f"the drives lie on {len(nodes)} NUMA nodes: a writer on one of them reaches the others' drives across"
    return {
        "id": "writer-cpus", "role": ROLE, "subject": "CPUs of the NUMA node of the target's drives", "asked": "",
        "before": found, "applied": "", "read_back": found, "status": "unchanged", "detail": detail,
    }  # fmt: skip


class FilterModule:
    """The class that Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filters."""
        return {
            "affinity_settings": affinity_settings,
            "pcie_link_records": pcie_link_records,
            "writer_cpus_record": writer_cpus_record,
        }
