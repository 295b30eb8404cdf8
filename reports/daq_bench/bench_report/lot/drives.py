"""Run bundles as drives of a lot: each drive's reports of itself, and its measurements in runs where it was alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from daq_bench.bench_model.base.nearest import nearest
from daq_bench.bench_model.base.units import decimal_label
from daq_bench.bench_model.bundle.files import find_struct
from daq_bench.bench_model.bundle.telemetry_files import points_of_bundle
from daq_bench.bench_model.documents.lot import Outcome
from daq_bench.bench_model.documents.run import Drive as DriveOfRun
from daq_bench.bench_model.documents.struct import read
from daq_bench.bench_model.tender.buyer_files import Weights
from daq_bench.bench_model.workloads.raid_vs_3dxp.document import RaidVs3Dxp, Target
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.comparison.bundles import Source
from daq_bench.bench_report.comparison.configurations import configurations, is_comparison, names_of
from daq_bench.bench_report.reading.load_smart import Devices
from daq_bench.candidate_kit import plausible
from daq_bench.candidate_kit.smartctl import NVME_HEALTH, whole_number

PASSED: Final = "passed"
FAILED: Final = "failed"
UNTESTED: Final = "not tested"
FIRMWARE = "firmware"
OCP_LOG, NAND_LOG = "fields that its OCP log keeps", "log that its NAND writes are from"


@dataclass
class Drive:
    """`values`: by requirement, each repetition or round of a run in which the drive was alone; a run that has none leaves a decision
    without values. `identity`: each value, with its runs."""

    serial: str
    model: str
    runs: list[str] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)  # of runs of its own that count
    unresolved: list[str] = field(default_factory=list)  # runs of its own that do not count
    values: dict[str, list[float]] = field(default_factory=dict)
    decisions: dict[str, list[str | None]] = field(default_factory=dict)  # by requirement: one for each run of its own
    identity: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    @property
    def outcome(self) -> Outcome:
        return UNTESTED if not self.outcomes else FAILED if "FAIL" in self.outcomes else PASSED

    def of(self, what: str) -> str:
        """Returns the drive's report of `what`; the last of several values."""
        return list(self.identity.get(what, {"not reported": []}))[-1]

    def add(self, later: Drive) -> None:
        """Takes in what a later run says of the same drive."""
        self.runs += later.runs
        self.outcomes += later.outcomes
        self.unresolved += later.unresolved
        for mine, theirs in ((self.values, later.values), (self.decisions, later.decisions)):
            for key, own in theirs.items():
                mine.setdefault(key, []).extend(own)  # type: ignore[arg-type]  # values of both are lists of one kind
        for what, values in later.identity.items():
            for value, runs in values.items():
                self.identity.setdefault(what, {}).setdefault(value, []).extend(runs)

    def report(self, what: str, value: str | None, run_id: str) -> None:
        if value is not None:
            self.identity.setdefault(what, {}).setdefault(value, []).append(run_id)


def drives_in(source: Source) -> dict[str, Drive]:
    """Returns the drives of one run by serial, with what it says of each. Raises BenchError for a damaged bundle."""
    nodes = list(_members(source))
    members = {serial: node for node in nodes if (serial := (node.serial or "").strip())}
    found = {serial: Drive(serial, node.model or "unnamed model") for serial, node in members.items()}
    for serial, node in members.items():
        found[serial].runs.append(source.run.run_id)
        _identify(found[serial], node, source.run.run_id)
    _identify_by_smart(found, members, source)
    _identify_by_logs(found, members, source)
    nameless = any(not (node.serial or "").strip() for node in nodes)
    _measure(found, [] if nameless else list(members), source)
    return found


def drives_of(runs: Iterable[tuple[Path, Sequence[Drive]]], model: str | None) -> list[Drive]:
    """Returns the drives of all runs, each run with its bundle, by serial. Raises BundleError for runs without drives, for a serial of two
    models, and for drives of several models where none is chosen."""
    found: dict[str, Drive] = {}
    for root, drives in runs:
        for drive in drives:
            known = found.setdefault(drive.serial, Drive(drive.serial, drive.model))
            if drive.model != known.model:
                raise BundleError(
                    f"{root}/run.json", f"drive {drive.serial} is a {drive.model} here and a {known.model} in run {known.runs[0]}",
                    "A serial names one drive: leave out the run that is wrong",
                )  # fmt: skip
            known.add(drive)
    return _of_one_model(found, model)


def _of_one_model(found: dict[str, Drive], model: str | None) -> list[Drive]:
    if not found:
        raise BundleError("lot", "no run names the serial of a drive", "Name runs on drives that report one")
    models = sorted({drive.model for drive in found.values()})
    if model is None and len(models) > 1:
        raise BundleError(
            "lot", f"the runs have drives of {len(models)} models: {', '.join(models)}", "Choose one with --model"
        )
    if model is not None and model not in models:
        raise BundleError("--model", f"no run has a drive of model {model!r}", nearest(model, models))
    wanted = model or models[0]
    return [found[serial] for serial in sorted(found) if found[serial].model == wanted]


def _members(source: Source) -> Iterator[DriveOfRun]:
    """Yields the drives beneath the run's target, and those of each target that it compared."""
    if is_comparison(source):
        for name, own in _targets(source).items():
            where = f"results/raid_vs_3dxp.json: targets.{name}.drives"
            yield from (read(one, DriveOfRun, where) for one in own.drives)
    else:
        yield from source.run.target.drives


def _targets(source: Source) -> dict[str, Target]:
    found = source.result("raid_vs_3dxp", RaidVs3Dxp)
    return found.targets if found else {}


def _identify(drive: Drive, node: DriveOfRun, run_id: str) -> None:
    drive.report(FIRMWARE, node.firmware, run_id)
    drive.report("capacity", _size(node.size_bytes), run_id)
    drive.report("PCIe link", node.pcie_link, run_id)
    drive.report("transport", node.transport, run_id)


def _identify_by_smart(found: dict[str, Drive], members: dict[str, DriveOfRun], source: Source) -> None:
    """Notes what smartctl read before the run: PCI ids, controller, sector format, spare."""
    answers = find_struct(source.root, "facts/smart-before.json", Devices)
    for one in answers.devices if answers else ():
        data = one.data or {}
        serial = str(data.get("serial_number"))
        for what, value in _reported(data) if serial in members else ():
            found[serial].report(what, value, source.run.run_id)


def _reported(data: dict[str, Any]) -> Iterator[tuple[str, str | None]]:
    pci, version = _table(data, "nvme_pci_vendor"), _table(data, "nvme_version").get("string")
    health = plausible.health_log({NVME_HEALTH: _table(data, NVME_HEALTH)})
    yield "PCI vendor id", _hexadecimal(_count(pci, "id"))
    yield "PCI subsystem vendor id", _hexadecimal(_count(pci, "subsystem_id"))
    yield "IEEE OUI", _hexadecimal(_count(data, "nvme_ieee_oui_identifier"))
    yield "NVMe version", version if isinstance(version, str) else None
    yield "controller id", _plain(_count(data, "nvme_controller_id"))
    yield "namespaces supported", _plain(_count(data, "nvme_number_of_namespaces"))
    yield "total NVM capacity", _size(_count(data, "nvme_total_capacity"))
    yield "logical block size, B", _plain(_count(data, "logical_block_size"))
    yield "spare threshold, %", _plain(_count(health, "available_spare_threshold"))


def _table(data: dict[str, Any], key: str) -> dict[str, Any]:
    """An object of the answer, empty where the drive gives none. Raises BundleError for another type, of which no count can be read."""
    value = data.get(key)
    if value is not None and not isinstance(value, dict):
        raise BundleError("facts/smart-before.json", f"{key} is {str(value)[:40]!r}, and no table")
    return value or {}


def _count(data: dict[str, Any], key: str) -> int | None:
    try:
        return None if data.get(key) is None else whole_number(data[key], key)
    except ValueError as error:
        raise BundleError("facts/smart-before.json", str(error)) from error


def _hexadecimal(value: int | None) -> str | None:
    return None if value is None else f"0x{value:04x}"


def _size(size_bytes: int | None) -> str | None:
    """`256 GB`, with the exact number behind it where the words leave some of it out: two drives that differ never read alike."""
    if size_bytes is None:
        return None
    label = decimal_label(size_bytes)
    return label if float(f"{size_bytes:.4g}") == size_bytes else f"{label} ({size_bytes} B)"


def _plain(value: int | None) -> str | None:
    return None if value is None else str(value)


def _identify_by_logs(found: dict[str, Drive], members: dict[str, DriveOfRun], source: Source) -> None:
    """Notes from the telemetry which counters of the OCP log the drive keeps, and which log counts its NAND writes."""
    kept: dict[str, set[str]] = {}
    try:
        for point in points_of_bundle(source.root, {"smart_ocp", "smart"}):
            serial = point.tags.get("serial", "")
            if serial not in members:
                continue
            if point.measurement == "smart_ocp":
                kept.setdefault(serial, set()).update(point.fields)
            elif "nand_source" in point.fields:
                found[serial].report(NAND_LOG, str(point.fields["nand_source"]), source.run.run_id)
    except ValueError as error:
        raise BundleError(str(source.root / "telemetry"), str(error)) from error
    for serial, fields in kept.items():
        found[serial].report(OCP_LOG, ", ".join(sorted(fields)), source.run.run_id)


def _measure(found: dict[str, Drive], members: list[str], source: Source) -> None:
    """Takes values of runs that count and had one drive alone: an array's rate, or one beside a nameless drive, belongs to no drive."""
    if is_comparison(source):
        if source.counts:
            _measure_targets(found, source)
    elif len(members) == 1 and not source.counts:
        found[members[0]].unresolved.append(source.run.run_id)
    elif len(members) == 1 and source.verdict is not None:
        drive = found[members[0]]
        drive.outcomes.append(source.outcome)
        for row in source.verdict.requirements:
            own = source.values(row)
            drive.values.setdefault(row.id, []).extend(own)
            drive.decisions.setdefault(row.id, []).append(row.decision if own else None)


def _measure_targets(found: dict[str, Drive], source: Source) -> None:
    contenders, _ = configurations(source, None, Weights())
    for name, contender in zip(names_of(source), contenders, strict=True):
        drives = _targets(source)[name].drives
        serial = (drives[0].get("serial") or "").strip() if len(drives) == 1 else ""
        if not serial:
            continue
        found[serial].outcomes.append("FAIL" if contender.barred else "PASS")
        for key, series in contender.series.items():
            if "-" in key:  # requirements; other series are the contender's own
                found[serial].values.setdefault(key, []).extend(series.known)
                decision = None if series.has_holes else contender.decisions.get(key)
                found[serial].decisions.setdefault(key, []).append(decision)
