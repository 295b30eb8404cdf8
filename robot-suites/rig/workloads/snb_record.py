"""The supernova-burst record: `daqwriter minidaq` writes it, `daqwriter verify` reads all of it back, then the file goes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_model.errors import BenchError, InterruptedRunError
from bench_model.load import Demand
from bench_model.profiles import Scenario
from bench_model.sequential import Stopping
from bench_model.units import GB, decimal_label
from bench_model.yaml_source import check_document
from rig.machine import Machine
from rig.shell import Completed
from rig.workloads.base import Need, Report, Workload

# daqwriter's exit statuses (native-writer/README.md)
COMPLETE, FAILED, REFUSED, DAMAGED, INTERRUPTED = 0, 1, 2, 3, 130
DRAIN_S_MAX = 600.0
READ_BYTES_PER_S_MIN = 20e6  # slower than any drive that one would qualify: bounds the wait for the read-back


@dataclass(frozen=True)
class RecordPlan:
    """Everything that one record needs besides its repetition number. `work` is on the candidate, `raw` in the bundle."""

    daqwriter: Path
    parameters: dict[str, Any]
    demand: Demand
    seed: int
    scratch: Path
    work: Path
    raw: Path
    line_protocol: Path
    tags: dict[str, str]


def estimated_s(scenario: Scenario) -> float:
    """Expected duration in s: each record, and its read-back at a GB/s."""
    demand = scenario.demand
    return scenario.repetitions * (demand.duration_s + demand.record_bytes / 1e9 + 2.0)


def _need(scenario: Scenario) -> Need:
    demand = scenario.demand
    size = demand.record_bytes
    return Need(
        size,
        f"the record of {demand.offered_bytes_per_s / GB:.4g} GB/s ({demand.links} links x {demand.superchunk_rate_hz:g} Hz x "
        f"{demand.superchunk_bytes} B x scale {demand.scale:g}) x {demand.duration_s:g} s = {decimal_label(size)} ({size} B)",
    )


def _rings(scenario: Scenario) -> Need:
    links, each = (scenario.workloads["snb_record"][key] for key in ("links", "ring_size"))
    return Need(links * each, f"ring_size: {links} rings of {each} B need {links * each} B")


WORKLOAD = Workload("snb_record", estimated_s, _need, memory=_rings)


def run_record(machine: Machine, plan: RecordPlan, stopping: Stopping, report: Report) -> dict[str, Any]:
    """Records until `stopping` has enough; returns results/snb_record.json. Raises BenchError when daqwriter itself breaks."""
    done: list[dict[str, Any]] = []
    repetitions = stopping.most
    for number in range(1, repetitions + 1):
        target = plan.scratch / f"snb-record-{number}.daq"
        try:
            report(f"record {number} of {repetitions}", number, repetitions, plan.demand.duration_s)
            minidaq = _minidaq(machine, plan, target, number)
            report(f"read-back {number} of {repetitions}", number, repetitions, plan.demand.record_bytes / 1e9)
            verify = _verify(machine, plan, target, number)
        finally:
            machine.remove(target)
        done.append(repetition_document(minidaq, verify))
        if stopping.enough(number, {"repetitions": done}):
            break
    return {"schema_version": 1, "repetitions": done, "stopping": stopping.record()}


def minidaq_arguments(plan: RecordPlan, target: Path, number: int) -> list[str]:
    """daqwriter's command line for one record."""
    parameters = plan.parameters
    return [
        str(plan.daqwriter),
        "minidaq",
        f"--target={target}",
        f"--duration={plan.demand.duration_s:g}",
        f"--links={parameters['links']}",
        f"--superchunk-bytes={parameters['superchunk_bytes']}",
        f"--superchunk-rate={parameters['superchunk_rate_hz']:g}",
        f"--scale={plan.demand.scale:g}",
        f"--ring-size={parameters['ring_size']}",
        f"--block-size={parameters['block_size']}",
        f"--io-depth={parameters['io_depth']}",
        f"--checksum={parameters['checksum']}",
        f"--seed={plan.seed + number - 1}",
        *_common(plan, f"minidaq-{number}"),
    ]


def _common(plan: RecordPlan, name: str) -> list[str]:
    tags = [f"--tag={key}={value}" for key, value in plan.tags.items()]
    return [f"--json={plan.work / name}.json", f"--line-protocol={plan.line_protocol}", *tags]


def _minidaq(machine: Machine, plan: RecordPlan, target: Path, number: int) -> dict[str, Any]:
    # FAILED with a document is an I/O error of the drive: evidence about the candidate, not a broken bench.
    completed = machine.run(minidaq_arguments(plan, target, number), timeout_s=plan.demand.duration_s + DRAIN_S_MAX)
    if completed.returncode == INTERRUPTED:
        raise InterruptedRunError("the record was interrupted")
    return _document(machine, completed, plan, f"minidaq-{number}.json", "daqwriter-minidaq", {COMPLETE, FAILED})


def _verify(machine: Machine, plan: RecordPlan, target: Path, number: int) -> dict[str, Any]:
    argv = [str(plan.daqwriter), "verify", f"--target={target}", *_common(plan, f"verify-{number}")]
    completed = machine.run(argv, timeout_s=60 + plan.demand.record_bytes / READ_BYTES_PER_S_MIN)
    if completed.returncode == INTERRUPTED:
        raise InterruptedRunError("the read-back was interrupted")
    return _document(machine, completed, plan, f"verify-{number}.json", "daqwriter-verify", {COMPLETE, DAMAGED})


def _document(
    machine: Machine, completed: Completed, plan: RecordPlan, name: str, schema: str, accepted: set[int]
) -> dict[str, Any]:
    """The result that daqwriter left, brought into the bundle. Raises BenchError when there is none that can be used."""
    if completed.returncode not in accepted:
        completed.check(f"daqwriter {completed.argv[1]}")
        raise BenchError(f"daqwriter {completed.argv[1]} ended with unexpected exit status {completed.returncode}")
    file = plan.raw / name
    try:
        machine.fetch(plan.work / name, file)
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (BenchError, OSError, ValueError) as error:
        completed.check(f"daqwriter {completed.argv[1]}")
        raise BenchError(f"daqwriter {completed.argv[1]} left no readable result in {file}: {error}") from None
    check_document(document, schema, str(file))
    return document


def repetition_document(minidaq: dict[str, Any], verify: dict[str, Any]) -> dict[str, Any]:
    """One repetition of results/snb_record.json: both documents and what follows from the two together.

    `verified_fraction` is what read back intact over what was *offered*, so that a lost superchunk counts against it."""
    counts = verify["superchunks"]
    kinds = ("missing", "duplicated", "out_of_order", "corrupt", "torn", "stale")
    offered = minidaq["superchunks"]["offered"]
    damaged = sum(counts[kind] for kind in kinds)
    if verify["record_id"] != minidaq["parameters"]["record_id"]:
        raise BenchError(f"read back record {verify['record_id']} instead of {minidaq['parameters']['record_id']}")
    return {
        "minidaq": minidaq,
        "verify": verify,
        "damaged_superchunks": damaged,
        "verified_fraction": counts["present"] / offered if offered else None,
    }
