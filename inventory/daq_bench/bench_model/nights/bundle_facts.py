"""The facts that a run's bundle states about its machine, flat, so that two runs can be compared by them.

Drives are named by their serials: a kernel's name may pass to another drive at a reboot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from daq_bench.bench_model.bundle.files import find_document, find_struct
from daq_bench.bench_model.bundle.telemetry_files import SPOOLS, SUMMARY_FILE
from daq_bench.bench_model.documents.facts import Tuning
from daq_bench.bench_model.documents.run import Run, TargetOfRun
from daq_bench.bench_model.documents.telemetry import TelemetrySummary

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


def facts_of(bundle: Path, run: Run) -> Facts:
    """The facts of the bundle whose run.json is `run`. A document that the run never wrote gives no facts.

    Raises BenchError or AttributeError where a document is not as the bench writes it."""
    found: Facts = dict(_machine(run))
    found.update(_drives(run.target))
    found.update(_software(run))
    found.update(_bios(find_document(bundle, "facts/host.json") or {}))
    for name in ("facts/tuning-verified.json", "facts/tuning.json"):
        if tuning := find_struct(bundle, name, Tuning):
            found.update(_tuning(tuning))
            break
    for spool in SPOOLS:
        if summary := find_struct(bundle, f"{spool}/{SUMMARY_FILE}", TelemetrySummary):
            found.update(((SENSORS, one.name), one.status) for one in summary.collectors)
    return found


def differences(before: Facts, after: Facts) -> list[Change]:
    """Returns the facts that differ, the likeliest reason for another performance first."""
    keys = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    keys.sort(key=lambda key: (GROUPS.index(key[0]), key[1]))
    return [Change(*key, before.get(key), after.get(key)) for key in keys]


def _machine(run: Run) -> Iterator[tuple[Key, str]]:
    for name in ("hostname", "os", "architecture", "cpu_model", "cpus", "memory_bytes", "numa_nodes"):
        if (told := getattr(run.candidate, name)) is not None:
            yield (MACHINE, name), str(told)
    if run.candidate.kernel:
        yield (KERNEL, "release"), run.candidate.kernel
    if run.git and run.git.commit:
        yield (BENCH, "commit"), run.git.commit[:12]


def _drives(target: TargetOfRun) -> Iterator[tuple[Key, str]]:
    for drive in target.drives or filter(None, (target.device,)):
        who = drive.serial or drive.name
        yield (DRIVES, who), ", ".join(filter(None, (drive.model, drive.pcie_link))) or "present"
        if drive.firmware:
            yield (FIRMWARE, f"of {who}"), drive.firmware
    if target.filesystem:
        yield (MACHINE, "file system of the target"), target.filesystem
    if target.device and target.device.raid_level:
        yield (MACHINE, "RAID of the target"), target.device.raid_level


def _software(run: Run) -> Iterator[tuple[Key, str]]:
    for name, version in (run.versions or {}).items():
        if name != "kernel":
            yield (BENCH if name in OF_THE_BENCH else SOFTWARE, name), str(version)


def _bios(host: Mapping[str, Any]) -> Iterator[tuple[Key, str]]:
    for name, value in (host.get("dmi") or {}).items():
        if value:
            yield (BIOS if name.startswith("bios") else MACHINE, name), str(value)


def _tuning(document: Tuning) -> Iterator[tuple[Key, str]]:
    for setting in document.settings:
        name = f"{setting.id} ({setting.subject})" if setting.subject else setting.id
        yield (TUNING, name), setting.read_back or setting.applied or setting.status
