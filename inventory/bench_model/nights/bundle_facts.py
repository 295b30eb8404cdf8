"""The facts that a run's bundle states about its machine, flat, so that two runs can be compared by them.

Drives are named by their serials: a kernel's name may pass to another drive at a reboot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench_model.bundle.files import find_document
from bench_model.bundle.telemetry_files import SPOOLS, SUMMARY_FILE

FIRMWARE, DRIVES, KERNEL, BIOS = "drive firmware", "drive", "kernel", "BIOS"
SOFTWARE, TUNING, SENSORS, BENCH, MACHINE = "software", "tuning", "sensor", "bench", "machine"
# The likeliest reason for another performance first.
GROUPS = (FIRMWARE, DRIVES, KERNEL, BIOS, TUNING, SOFTWARE, SENSORS, MACHINE, BENCH)
OF_THE_BENCH = (
    "ansible-core",
    "influxdb",
    "influxdb-client",
    "matplotlib",
    "python",
    "robotframework",
    "scipy",
    "weasyprint",
)

Key = tuple[str, str]  # group, name
Facts = dict[Key, str]


@dataclass(frozen=True)
class Change:
    """A fact that differs; None: it was not stated."""

    group: str
    name: str
    before: str | None
    after: str | None

    @property
    def text(self) -> str:
        """`drive firmware of S1: 1.0 -> 1.1`."""
        before, after = (value if value is not None else "not stated" for value in (self.before, self.after))
        return f"{self.group} {self.name}: {before} \N{RIGHTWARDS ARROW} {after}"

    def document(self) -> dict[str, Any]:
        return asdict(self)


def facts_of(bundle: Path, run: Mapping[str, Any]) -> Facts:
    """The facts of the bundle whose run.json is `run`. A document that the run never wrote gives no facts.

    Raises ValueError, KeyError or TypeError where a document is not as the bench writes it."""
    found: Facts = dict(_machine(run))
    found.update(_drives(run.get("target") or {}))
    found.update(_software(run))
    found.update(_bios(find_document(bundle, "facts/host.json") or {}))
    tuning = find_document(bundle, "facts/tuning-verified.json") or find_document(bundle, "facts/tuning.json") or {}
    found.update(_tuning(tuning))
    for spool in SPOOLS:
        found.update(_sensors(find_document(bundle, f"{spool}/{SUMMARY_FILE}") or {}))
    return found


def differences(before: Facts, after: Facts) -> list[Change]:
    """Returns the facts that differ, the likeliest reason for another performance first."""
    keys = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    keys.sort(key=lambda key: (GROUPS.index(key[0]), key[1]))
    return [Change(*key, before.get(key), after.get(key)) for key in keys]


def _machine(run: Mapping[str, Any]) -> Iterator[tuple[Key, str]]:
    candidate = run["candidate"]
    for name in ("hostname", "os", "architecture", "cpu_model", "cpus", "memory_bytes", "numa_nodes"):
        if candidate.get(name) is not None:
            yield (MACHINE, name), str(candidate[name])
    if candidate.get("kernel"):
        yield (KERNEL, "release"), str(candidate["kernel"])
    commit = (run.get("git") or {}).get("commit")
    if commit:
        yield (BENCH, "commit"), str(commit)[:12]


def _drives(target: Mapping[str, Any]) -> Iterator[tuple[Key, str]]:
    device = target.get("device")
    drives = target.get("drives") or ([device] if device else [])
    for drive in drives:
        who = str(drive.get("serial") or drive.get("name"))
        described = [drive.get("model"), drive.get("pcie_link")]
        yield (DRIVES, who), ", ".join(str(one) for one in described if one) or "present"
        if drive.get("firmware"):
            yield (FIRMWARE, f"of {who}"), str(drive["firmware"])
    if target.get("filesystem"):
        yield (MACHINE, "file system of the target"), str(target["filesystem"])
    if device and device.get("raid_level"):
        yield (MACHINE, "RAID of the target"), str(device["raid_level"])


def _software(run: Mapping[str, Any]) -> Iterator[tuple[Key, str]]:
    for name, version in (run.get("versions") or {}).items():
        if name != "kernel":
            yield (BENCH if name in OF_THE_BENCH else SOFTWARE, str(name)), str(version)


def _bios(host: Mapping[str, Any]) -> Iterator[tuple[Key, str]]:
    for name, value in (host.get("dmi") or {}).items():
        if value:
            yield (BIOS if name.startswith("bios") else MACHINE, name), str(value)


def _tuning(document: Mapping[str, Any]) -> Iterator[tuple[Key, str]]:
    for setting in document.get("settings") or []:
        subject = setting.get("subject") or ""
        value = setting.get("read_back") or setting.get("applied") or ""
        yield (TUNING, f"{setting['id']} ({subject})" if subject else setting["id"]), value or str(setting["status"])


def _sensors(summary: Mapping[str, Any]) -> Iterator[tuple[Key, str]]:
    for collector in summary.get("collectors") or []:
        yield (SENSORS, str(collector["name"])), str(collector["status"])
