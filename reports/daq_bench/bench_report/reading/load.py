"""Reads one run bundle.

Promise: run.json must be there and sound; any other file may be missing, and then the bundle says in plain words
which part of the report that costs. A file that is there but broken is an error that names it: a report never papers
over damaged evidence. The verdict is judged again: the bundle's stored one is only compared with that.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec.structs import replace as replace_fields

from daq_bench.bench_model.bundle.files import (
    find_struct,
    plain_file,
    read_json,
    read_structs,
    refuse_no_bundle,
    require_sound,
)
from daq_bench.bench_model.bundle.telemetry_files import SPOOLS, SUMMARY_FILE
from daq_bench.bench_model.documents.events import Event
from daq_bench.bench_model.documents.facts import Setting, Tuning
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.profiles.published import FOLDER, load_published
from daq_bench.bench_model.verdict.advice import grounds_of
from daq_bench.bench_model.verdict.judging import VERDICT, Again, judged_again
from daq_bench.bench_model.workloads.block_scan import BlockScan
from daq_bench.bench_model.workloads.snb_record import SnbRecord
from daq_bench.bench_report.reading import telemetry
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.reading.dataset.machine import Smart
from daq_bench.bench_report.reading.dataset.record import RECORD
from daq_bench.bench_report.reading.dataset.telemetry import Accounting
from daq_bench.bench_report.reading.load_smart import Devices, smart_of
from daq_bench.bench_report.reading.provenance import provenance_of

EVENTS_FILE = "events.jsonl"
BLOCK_SCAN = "results/block_scan.json"
LACKING = {
    VERDICT: "the outcome and the requirement table",
    BLOCK_SCAN: "throughput against block size",
    RECORD: "the record: rates, backlog, latency, read-back",
    "facts/tuning.json": "the tuning table",
    "facts/tuning-after.json": "whether the tuning still held after the run",
    "facts/smart-before.json": "the drives' health before the run",
    "facts/smart-after.json": "the drives' health after the run",
    "telemetry/points.lp": "drive, CPU and temperature during the run",
    "telemetry/summary.json": "the telemetry accounting",
    EVENTS_FILE: "events and phases",
}
WORKLOAD_FILES = frozenset({BLOCK_SCAN, RECORD})


def run_of(root: Path) -> Run:
    """The bundle's run.json. Raises BenchError where there is none, and for a damaged one."""
    if not root.is_dir():
        refuse_no_bundle(root)
    require_sound(root)
    run = find_struct(root, "run.json", Run)
    if run is None:
        refuse_no_bundle(root)
    return run


def load(root: Path) -> Bundle:
    run = run_of(root)
    workload = telemetry.workload_points(root)
    # Without its newline the last line is an interrupted run's torn end, which no reader takes.
    events = tuple(sorted(read_structs(root, EVENTS_FILE, Event), key=lambda event: event.time))
    again = _judged_again(root)
    scan, record = find_struct(root, BLOCK_SCAN, BlockScan), find_struct(root, RECORD, SnbRecord)
    if again and again.contradicts:  # the run's statement of its own outcome counts as little as its stored verdict
        events = tuple(event for event in events if event.kind != "verdict")
    return Bundle(
        run=run,
        verdict=again.verdict if again else None,
        again=again,
        results=_results(root),
        published=load_published(root / "profiles" / FOLDER),
        block_scan=_in_order(scan) if scan else None,
        repetitions=tuple(record.repetitions) if record else (),
        live_series=telemetry.live_series(workload),
        tuning=_settings(root, "facts/tuning.json"),
        tuning_after=_settings(root, "facts/tuning-after.json"),
        smart_before=_smart(root, "facts/smart-before.json"),
        smart_after=_smart(root, "facts/smart-after.json"),
        events=events,
        phases=telemetry.phases(events, workload, run.started, run.finished),
        host=telemetry.host_series(root, run.started),
        accounting=_accounting(root),
        missing=tuple((name, lack) for name, lack in _expected(run).items() if not (root / name).is_file()),
        provenance=provenance_of(root, run),
        grounds=grounds_of(root, run),
        files=frozenset(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()),
    )


def _in_order(scan: BlockScan) -> BlockScan:
    """The scans of all tools, their points by size."""
    points = sorted(scan.points, key=lambda point: point.block_bytes)
    return replace_fields(scan, points=points, others=[_in_order(one) for one in scan.scans[1:]])


def _judged_again(root: Path) -> Again | None:
    """Judges again; None without a stored verdict. A field that the stored one lacks, or states otherwise, is listed as contradicted."""
    if plain_file(root, VERDICT) is None:
        return None
    read_json(root, VERDICT)  # of a damaged one there is no report, as of any other damaged file
    return judged_again(root)


def _accounting(root: Path) -> Accounting | None:
    """The candidate's agent's account, and the collectors of the one that read the BMC over the network."""
    own, bmc = (telemetry.accounting_of(root, f"{spool}/{SUMMARY_FILE}") for spool in SPOOLS)
    if own is None or bmc is None:
        return own
    known = {collector.name for collector in own.collectors}
    return replace(own, collectors=own.collectors + tuple(one for one in bmc.collectors if one.name not in known))


def _expected(run: Run) -> dict[str, str]:
    """Returns the files that this run's bundle should hold, each with the part that the report lacks without it."""
    own = {f"results/{name}.json": f"the results of {name.replace('_', ' ')}" for name in run.scenario.workloads}
    others = {name: lack for name, lack in LACKING.items() if name not in WORKLOAD_FILES or name in own}
    return {**own, **others}


def _results(root: Path) -> dict[str, Any]:
    names = sorted(path.stem for path in (root / "results").glob("*.json"))
    return {name: read_json(root, f"results/{name}.json") for name in names}


def _settings(root: Path, name: str) -> tuple[Setting, ...] | None:
    found = find_struct(root, name, Tuning)
    return tuple(found.settings) if found else None


def _smart(root: Path, name: str) -> tuple[Smart, ...] | None:
    found = find_struct(root, name, Devices)
    return smart_of(found) if found else None
