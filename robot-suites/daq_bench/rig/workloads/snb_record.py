"""The supernova-burst record: `daqwriter minidaq` writes it, `daqwriter verify` reads all of it back, then the file goes.

Where the scenario names conditions, every repetition is made in each of them: fresh before each record, preconditioned once, since
a record leaves a drive that has been written twice as preconditioned as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, in_words
from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.base.units import GB, decimal_label
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.documents.tools.daqwriter import Verify, is_of_drive
from daq_bench.bench_model.documents.tools.minidaq import Minidaq
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.verdict.sequential import Stopping
from daq_bench.rig.base.shell import Completed
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.load_target import LoadTarget, RawDevice
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.shared.base import Need, Note, Report, Workload
from daq_bench.rig.workloads.shared.conditioning import FRESH, PRECONDITIONED, Conditioner, seconds_for
from daq_bench.rig.workloads.shared.site import Said, daqwriter_answer

# daqwriter's exit statuses (native-writer/README.md)
COMPLETE, FAILED, REFUSED, DAMAGED, INTERRUPTED = 0, 1, 2, 3, 130
DRAIN_S_MAX = 600.0
READ_BYTES_PER_S_MIN = 20e6  # slower than any drive that one would qualify: bounds the wait for the read-back


@dataclass(frozen=True)
class RecordPlan:
    """Everything that one record needs besides its repetition number. `work` is on the candidate, `raw` in the bundle.

    `load` gives the load's target by its name. `capacity_bytes`: of the drive or array, where there is one. `dedicated`: nothing but the
    bench's files is on it."""

    daqwriter: Path
    parameters: dict[str, Any]
    demand: Demand
    seed: int
    load: Callable[[str], LoadTarget]
    capacity_bytes: int | None
    dedicated: bool
    work: Path
    raw: Path
    line_protocol: Path
    tags: dict[str, str]
    begin: Callable[[], None] = lambda: None  # returns when a record shall begin


def estimated_s(scenario: Scenario) -> float:
    """Expected duration in s: each record, and its read-back at a GB/s; bringing the target into its conditions."""
    demand, parameters = scenario.demand, scenario.workloads["snb_record"]
    conditions = parameters.get("conditions", [])
    each = scenario.repetitions * (demand.duration_s + demand.record_bytes / 1e9 + 2.0)
    span = parameters.get("precondition_size", demand.record_bytes)
    return max(1, len(conditions)) * each + sum(seconds_for(condition, span) for condition in conditions)


def _need(scenario: Scenario) -> Need:
    """Preconditioning's file goes before the record comes: the larger of the two."""
    demand, parameters = scenario.demand, scenario.workloads["snb_record"]
    size = demand.record_bytes
    span = parameters.get("precondition_size", 0) if PRECONDITIONED in parameters.get("conditions", []) else 0
    if span > size:
        return Need(span, f"preconditioning over precondition_size = {decimal_label(span)} ({span} B)")
    return Need(
        size,
        f"the record of {demand.offered_bytes_per_s / GB:.4g} GB/s ({demand.links} links x {demand.superchunk_rate_hz:g} Hz x "
        f"{demand.superchunk_bytes} B x scale {demand.scale:g}) x {demand.duration_s:g} s = {decimal_label(size)} ({size} B)",
    )


def _rings(scenario: Scenario) -> Need:
    links, each = (scenario.workloads["snb_record"][key] for key in ("links", "ring_size"))
    return Need(links * each, f"ring_size: {links} rings of {each} B need {links * each} B")


def run(context: RunContext, report: Report) -> dict[str, Any]:
    """results/snb_record.json of this run."""
    run, parameters = context.bundle.run, context.scenario.workloads["snb_record"]
    plan = RecordPlan(
        daqwriter=context.daqwriter,
        parameters=parameters,
        demand=context.demand,
        seed=context.scenario.seed,
        load=context.load_target,
        capacity_bytes=run.target.device.size_bytes if run.target.device else None,
        dedicated=context.candidate.target.storage is not None,
        work=context.places.raw,
        raw=context.raw,
        line_protocol=context.places.workload_file,
        tags={"host": run.candidate.name, "run": context.bundle.id},
        **({"begin": context.facilities.begin} if context.facilities else {}),
    )
    return run_record(
        context.machine, plan, context.stopping("snb_record", stages=len(conditions_of(parameters))), report
    )


def _busy(record: dict[str, Any]) -> Iterator[Note]:
    for number, repetition in enumerate(record["repetitions"], start=1):
        for episode in repetition["minidaq"]["busy"]["episodes"]:
            text = (
                f"Dataflow is BUSY for {episode['duration_s']:.3f} s from {episode['start_s']:.3f} s of record {number}"
            )
            yield text, {"repetition": number, **episode}


def every_superchunk_should_be_accounted_for(context: RunContext, record: dict[str, Any]) -> None:
    """Fails unless offered = stored + lost in every repetition: a superchunk that nobody counted is the bench's fault."""
    for number, repetition in enumerate(record["repetitions"], start=1):
        counts = repetition["minidaq"]["superchunks"]
        if repetition["minidaq"]["status"] == "complete" and counts["offered"] != counts["stored"] + counts["lost"]:
            raise AssertionError(
                f"repetition {number}: offered {counts['offered']}, but stored + lost = {counts['stored'] + counts['lost']}"
            )


def read_back_should_cover_the_whole_record(context: RunContext, record: dict[str, Any]) -> None:
    """Fails when the read-back expected another number of superchunks than the writer says it stored."""
    for number, repetition in enumerate(record["repetitions"], start=1):
        stored = repetition["minidaq"]["superchunks"]["stored"]
        expected = repetition["verify"]["superchunks"]["expected"]
        if repetition["verify"]["complete_trailer"] and stored != expected:
            raise AssertionError(
                f"repetition {number}: stored {stored} superchunks, but the record's trailer says {expected}"
            )


WORKLOAD = Workload(
    "snb_record",
    estimated_s,
    _need,
    run,
    memory=_rings,
    raw=True,
    checks=(every_superchunk_should_be_accounted_for, read_back_should_cover_the_whole_record),
    notes=_busy,
)


def run_record(machine: Machine, plan: RecordPlan, stopping: Stopping, report: Report) -> dict[str, Any]:
    """Records in each condition until `stopping` has enough of it, or a drive fails; returns results/snb_record.json.

    Raises BenchError when daqwriter breaks by anything but a drive."""
    done: list[dict[str, Any]] = []
    conditioning: list[dict[str, Any]] = []
    conditions = conditions_of(plan.parameters)
    total, failed = len(conditions) * stopping.most, False
    for condition in conditions:
        of_this: list[dict[str, Any]] = []
        for repetition in range(1, stopping.most + 1):
            number = len(done) + 1
            if condition == FRESH or (condition is not None and repetition == 1):
                conditioning.append(_condition(plan, condition, number, total, report))
            minidaq, verify = _record(machine, plan, number, total, report, f" ({condition})" if condition else "")
            of_this.append(repetition_document(minidaq, verify, condition))
            done.append(of_this[-1])
            failed = is_of_drive(minidaq) or is_of_drive(verify)
            if failed or stopping.enough(repetition, {"repetitions": of_this}, condition):
                break
        if failed:
            break
    limits = list(dict.fromkeys(text for one in conditioning for text in one["limits"]))
    return {
        "schema_version": 1,
        "repetitions": done,
        "conditioning": conditioning,
        "limits": limits,
        "stopping": stopping.record(),
    }


def conditions_of(parameters: dict[str, Any]) -> list[str | None]:
    """Returns the target's conditions to record in; a scenario that names none records in the one that it finds."""
    return [*parameters.get("conditions", [])] or [None]


def _condition(plan: RecordPlan, condition: str, number: int, total: int, report: Report) -> dict[str, Any]:
    """Evidence of the condition before record `number`. A raw drive is conditioned whole, a file system by a file that then goes."""
    target = plan.load("precondition.bin")
    raw = isinstance(target, RawDevice)
    span = (
        plan.capacity_bytes
        if raw and plan.capacity_bytes
        else plan.parameters.get("precondition_size", plan.demand.record_bytes)
    )

    def announce(text: str, seconds: float) -> None:
        report(f"before record {number}: {text}", number, total, seconds)

    purge = plan.parameters.get("purge", "discard")
    conditioner = Conditioner(target, span, plan.capacity_bytes, purge, plan.raw, announce, plan.dedicated)
    try:
        return conditioner.bring_to(condition, f"record-{number}-{condition}")
    finally:
        target.remove()


def _record(
    machine: Machine, plan: RecordPlan, number: int, total: int, report: Report, said: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns daqwriter's documents of record `number` and of its read-back."""
    target, failed = plan.load(f"snb-record-{number}.daq"), False
    try:
        plan.begin()
        report(f"record {number} of {total}{said}", number, total, plan.demand.duration_s)
        minidaq = _minidaq(machine, plan, target, number)
        failed = is_of_drive(minidaq)
        report(f"read-back {number} of {total}{said}", number, total, plan.demand.record_bytes / 1e9)
        verify = _verify(machine, plan, target, number, minidaq)
        failed = failed or is_of_drive(verify)
        return minidaq, verify
    finally:
        try:
            target.remove()
        except (BenchError, OSError) as error:
            if not failed:
                raise
            report(f"record {number} stays on the target that failed: {in_words(error)}", number, total, 0.0)


def minidaq_arguments(plan: RecordPlan, target: LoadTarget, number: int) -> list[str]:
    """daqwriter's command line for one record."""
    parameters = plan.parameters
    return [
        str(plan.daqwriter),
        "minidaq",
        f"--target={target.path}",
        *target.daqwriter_options,
        f"--duration={plan.demand.duration_s}",
        f"--links={parameters['links']}",
        f"--superchunk-bytes={parameters['superchunk_bytes']}",
        f"--superchunk-rate={parameters['superchunk_rate_hz']}",
        f"--scale={plan.demand.scale}",
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


def _minidaq(machine: Machine, plan: RecordPlan, target: LoadTarget, number: int) -> dict[str, Any]:
    # FAILED with a document is an I/O error of the drive: evidence about the candidate, not a broken bench.
    completed = machine.run(minidaq_arguments(plan, target, number), timeout_s=plan.demand.duration_s + DRAIN_S_MAX)
    said = _document(machine, completed, plan, f"minidaq-{number}", Minidaq, (COMPLETE, FAILED))
    if said["status"] == "failed" and said.get("errno") and not is_of_drive(said):
        raise BenchError(f"record {number} failed, and not by a drive: {said['error']}")
    return said


def _verify(
    machine: Machine, plan: RecordPlan, target: LoadTarget, number: int, minidaq: dict[str, Any]
) -> dict[str, Any]:
    """The read-back's document; also one that failed, where it is the drive that failed."""
    argv = [
        *(str(plan.daqwriter), "verify", f"--target={target.path}"),
        *_sought(minidaq),
        *_common(plan, f"verify-{number}"),
    ]
    completed = machine.run(argv, timeout_s=60 + plan.demand.record_bytes / READ_BYTES_PER_S_MIN)
    said = _document(machine, completed, plan, f"verify-{number}", Verify, (COMPLETE, DAMAGED, FAILED))
    if said["status"] == "failed" and not (is_of_drive(said) or is_of_drive(minidaq)):
        completed.check("daqwriter verify")
    other = said.get("other_record")
    if other and other["started_utc"] >= minidaq["started_utc"]:
        raise BenchError(
            f"{target.path}: record {other['record_id']} was begun there at {other['started_utc']}, after record {number} of this run "
            f"({minidaq['started_utc']}): somebody else writes to this target, so that nothing can be said of what it lost"
        )
    return said


def _sought(minidaq: dict[str, Any]) -> list[str]:
    """The options by which verify knows what was written; none of a writer that failed before it had a record."""
    record_id = minidaq["parameters"]["record_id"]
    if not int(record_id, 16):
        return []
    return [f"--record-id={record_id}", f"--superchunks={minidaq['superchunks']['stored']}"]


def _document(
    machine: Machine, completed: Completed, plan: RecordPlan, name: str, kind: type[Said], accepted: tuple[int, ...]
) -> dict[str, Any]:
    what = f"daqwriter {completed.argv[1]}"
    return as_document(daqwriter_answer(machine, completed, what, plan.work, plan.raw, name, kind, accepted))


def repetition_document(
    minidaq: dict[str, Any], verify: dict[str, Any], condition: str | None = None
) -> dict[str, Any]:
    """One repetition of results/snb_record.json: both documents and what follows from the two together.

    `condition`: the target's, which the bench brought about; None: taken as it was. `verified_fraction` is superchunks read back
    intact over those *offered*, so that a lost superchunk counts against it."""
    counts = verify["superchunks"]
    kinds = ("missing", "duplicated", "out_of_order", "corrupt", "torn", "stale")
    offered = minidaq["superchunks"]["offered"]
    damaged = sum(counts[kind] for kind in kinds)
    if verify["record_id"] != minidaq["parameters"]["record_id"]:
        raise BenchError(f"read back record {verify['record_id']} instead of {minidaq['parameters']['record_id']}")
    return {
        "condition": condition,
        "minidaq": minidaq,
        "verify": verify,
        "damaged_superchunks": damaged,
        "verified_fraction": counts["present"] / offered if offered else None,
    }
