"""The conditions of the runs: each difference is marked, run by run, so that a reader can judge whether it explains the values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.behaviour.surroundings import is_inlet
from daq_bench.bench_model.bundle.files import find_struct
from daq_bench.bench_model.bundle.telemetry_files import points_of_bundle
from daq_bench.bench_model.documents.comparison import Condition
from daq_bench.bench_model.documents.facts import Tuning
from daq_bench.bench_model.workloads.block_scan import BlockScan
from daq_bench.bench_model.workloads.snb_record import SnbRecord
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.comparison.bundles import Source

TOOLS = ("daqwriter", "hotstore", "fio", "mdadm", "nvme", "redis", "telemetry_agent")
AMBIENT_K = 3.0  # [P] air inlet temperatures that differ by less are alike
STORAGE_SETTINGS = ("storage-purge", "storage-lba", "storage-filesystem")  # others name the drives themselves
NOT_RECORDED = "not recorded"


def marks(sources: Sequence[Source]) -> list[Condition]:
    """Returns the conditions that differ between these runs, in a fixed order."""
    table = [dict(_conditions(source)) for source in sources]
    names = list(dict.fromkeys(name for row in table for name in row))
    found = []
    for name in names:
        # A model's firmware is a condition only of runs that have such drives.
        rows = [(source, row.get(name)) for source, row in zip(sources, table, strict=True)]
        if name.startswith("firmware of "):
            rows = [(source, value) for source, value in rows if value is not None]
        mark = _mark(name, [(source, value or NOT_RECORDED) for source, value in rows])
        if mark is not None:
            found.append(mark)
    ambient = _ambient(sources)
    return [*found, *([ambient] if ambient else [])]


def _mark(what: str, rows: Sequence[tuple[Source, str]]) -> Condition | None:
    values: dict[str, list[str]] = {}
    of_contender: dict[str, set[str]] = {}
    for source, value in rows:
        values.setdefault(value, []).append(source.run.run_id)
        of_contender.setdefault(source.name, set()).add(value)
    if len(values) < 2:
        return None
    between = len({frozenset(one) for one in of_contender.values()}) > 1
    return Condition(what, list(values.items()), between)


def _conditions(source: Source) -> Iterator[tuple[str, str | None]]:
    run = source.run
    yield "load, share of one readout unit", in_digits(run.scenario.scale, 6)
    duration = run.scenario.duration_s
    yield "duration of the record", None if duration is None else f"{in_digits(duration, 15)} s"
    yield "target", f"{run.target.kind} on {run.target.filesystem}"
    yield "state of the target (preconditioning)", _preconditioning(source)
    yield "kernel", run.candidate.kernel
    yield "operating system", run.candidate.os
    yield "bench's commit", run.git.commit if run.git else None
    versions = run.versions or {}
    yield from ((f"version of {tool}", versions[tool]) for tool in TOOLS if tool in versions)
    for device in run.target.devices:
        if device.model and device.firmware:
            yield f"firmware of {device.model}", device.firmware
    yield from _tuning(source)


def _preconditioning(source: Source) -> str | None:
    """Returns the target's condition as the workloads state it."""
    scan, record = source.result("block_scan", BlockScan), source.result("snb_record", SnbRecord)
    said = [f"block scan: {scan.condition}"] if scan else []
    conditions = dict.fromkeys(one.condition for one in record.repetitions) if record else {}
    said += [f"snb record: {one}" for one in conditions if one]
    return "; ".join(said) or None


def _tuning(source: Source) -> Iterator[tuple[str, str | None]]:
    tuning = find_struct(source.root, "facts/tuning.json", Tuning)
    for one in tuning.settings if tuning else ():
        if one.role == "storage" and one.id.startswith("storage-") and one.id not in STORAGE_SETTINGS:
            continue
        text = one.status if one.status == "unsupported" else f"reads back {one.read_back or 'nothing'}"
        yield f"tuning {one.id}", f"asked {one.asked or 'nothing'}, {text}"


def _ambient(sources: Sequence[Source]) -> Condition | None:
    """Marks the air inlet's mean temperature by the BMC, where it has such a sensor; values within AMBIENT_K are alike."""
    degrees = {source.run.run_id: inlet_temperature(source) for source in sources}
    known = [value for value in degrees.values() if value is not None]
    if not known or (len(known) == len(degrees) and max(known) - min(known) <= AMBIENT_K):
        return None
    rows = [(one, _shown(degrees[one.run.run_id])) for one in sources]
    return _mark("ambient temperature (air inlet, mean)", rows)


def _shown(degrees: float | None) -> str:
    return NOT_RECORDED if degrees is None else f"{degrees:.1f} degC"


def inlet_temperature(source: Source) -> float | None:
    """degC, mean over the run. The one place where a comparison reads telemetry."""
    try:
        found = [
            float(point.fields["temperature_degc"])
            for point in points_of_bundle(source.root, {"ipmi_sensor"})
            if is_inlet(point) and "temperature_degc" in point.fields
        ] or [float(point.fields["temperature_degc"]) for point in points_of_bundle(source.root, {"redfish_sensor"})]
    except ValueError as error:
        raise BundleError(str(source.root / "telemetry"), str(error)) from error
    return fmean(found) if found else None
