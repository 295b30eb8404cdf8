"""The supernova-burst record: `daqwriter minidaq` writes it, `daqwriter verify` reads all of it back, then the file goes.

Where the scenario names conditions, every repetition is made in each of them: fresh before each record, preconditioned once, since
a record leaves a drive that has been written twice as preconditioned as before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, RefusedError, in_words
from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.base.units import GB, decimal_label, in_digits
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.documents.tools.daqwriter import Verify, is_of_drive
from daq_bench.bench_model.documents.tools.minidaq import Minidaq
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.verdict.sequential import Stopping
from daq_bench.bench_model.workloads.preconditioning import (
    FRESH,
    PRECONDITIONED,
    WRITTEN_SHARE,
    Room,
    shortfall,
    span_of,
)
from daq_bench.bench_model.workloads.snb_record import SnbRecord
from daq_bench.rig.base.shell import Completed
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.candidate.load_target import LoadTarget, RawDevice
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.shared.base import Note, Report, Workload
from daq_bench.rig.workloads.shared.conditioning import Conditioner, conditioning_step, discarded_bytes
from daq_bench.rig.workloads.shared.fio_job import JobFiles
from daq_bench.rig.workloads.shared.plan import UNIT_BYTES_PER_S, Ground, Need, Step, rings
from daq_bench.rig.workloads.shared.site import Said, daqwriter_answer

# daqwriter's exit statuses (native-writer/README.md)
COMPLETE, FAILED, REFUSED, DAMAGED, INTERRUPTED = 0, 1, 2, 3, 130
DRAIN_S_MAX = 600.0
START_S = 2.0  # a record's preparation, and its draining
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
    device: str | None = None  # kernel name of the drive or array
    begin: Callable[[], None] = lambda: None  # returns when a record shall begin


def plan(scenario: Scenario, ground: Ground) -> list[Step]:
    """In each condition: the way into it, then the records with their read-back. At most: a decided one may end earlier.

    Preconditioning's file goes before the record comes."""
    demand, parameters = scenario.demand, scenario.workloads["snb_record"]
    size, most, found = demand.record_bytes, scenario.repetitions_max, list[Step]()
    room = (
        f"the record of {in_digits(demand.offered_bytes_per_s / GB)} GB/s ({demand.links} links x "
        f"{in_digits(demand.superchunk_rate_hz, 9)} Hz x "
        f"{demand.superchunk_bytes} B x scale {in_digits(demand.scale, 9)}) x "
        f"{in_digits(demand.duration_s, 9)} s = {decimal_label(size)} ({size} B)"
    )
    for condition in conditions_of(parameters):
        said = f" ({condition})" if condition else ""
        if condition == FRESH:
            found.append(replace(conditioning_step(condition, size, ground), times=most))
        elif condition == PRECONDITIONED:
            span, asked = condition_span(parameters, demand, ground), parameters.get("precondition_size", 0)
            taken, text = size, room
            if asked > size:
                taken, text = asked, f"preconditioning over precondition_size = {decimal_label(asked)} ({asked} B)"
            found.append(
                conditioning_step(condition, span, ground, room_bytes=taken, room=text, written_share=WRITTEN_SHARE)
            )
        found.append(Step(f"record{said}", demand.duration_s + START_S, size, size, room, times=most))
        found.append(Step(f"read-back{said}", ground.seconds(size), 0.0, size, room, times=most))
    return found


def condition_span(parameters: dict[str, Any], demand: Demand, ground: Ground) -> int | None:
    """The part of the target that will be conditioned; None where its room is not known."""
    free = ground.room_bytes or ground.capacity_bytes
    asked = parameters.get("precondition_size")
    if free is None:
        return asked
    return span_of(asked, _planned_room(free, ground), demand.record_bytes)


def _planned_room(free_bytes: int, ground: Ground) -> Room:
    """Space that is not free counts as full: at the load the file system is asked."""
    dedicated = ground.candidate is not None and ground.candidate.target.storage is not None
    used = max(0, (ground.capacity_bytes or free_bytes) - free_bytes)
    return Room(ground.capacity_bytes, free_bytes, used, ground.raw, dedicated)


def _check(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    """Refuses a full-scale run whose target cannot become a preconditioned one: it would take hours, and never pass."""
    target, parameters = found.target, scenario.workloads["snb_record"]
    if target is None or candidate.virtual or scenario.scale < 1:
        return
    ground = Ground(
        capacity_bytes=(target.device.size_bytes if target.device else None),
        room_bytes=target.free_bytes,
        raw=candidate.target.is_raw,
        candidate=candidate,
    )
    why = shortfall(parameters, _planned_room(target.free_bytes, ground), scenario.demand.record_bytes)
    if why:
        raise RefusedError(f"{scenario.file}: workloads.snb_record.conditions: {why}. Nothing was written")


def _rings(scenario: Scenario) -> Need:
    own = scenario.workloads["snb_record"]
    return rings("ring_size", own["links"], own["ring_size"])


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
        device=context.device,
        **({"begin": context.facilities.begin} if context.facilities else {}),
    )
    return run_record(
        context.machine, plan, context.stopping("snb_record", stages=len(conditions_of(parameters))), report
    )


def _busy(record: SnbRecord) -> Iterator[Note]:
    for number, repetition in enumerate(record.repetitions, start=1):
        for episode in repetition.minidaq.busy.episodes:
            text = f"Dataflow is BUSY for {in_digits(episode.duration_s)} s from {in_digits(episode.start_s)} s of record {number}"
            yield text, {"repetition": number, **as_document(episode)}


def every_superchunk_should_be_accounted_for(context: RunContext, record: SnbRecord) -> None:
    """Fails unless offered = stored + lost in every repetition: a superchunk that nobody counted is the bench's fault."""
    for number, repetition in enumerate(record.repetitions, start=1):
        counts = repetition.minidaq.superchunks
        if repetition.minidaq.status == "complete" and counts.offered != counts.stored + counts.lost:
            raise AssertionError(
                f"repetition {number}: offered {counts.offered}, but stored + lost = {counts.stored + counts.lost}"
            )


def read_back_should_cover_the_whole_record(context: RunContext, record: SnbRecord) -> None:
    """Fails when the read-back expected another number of superchunks than the writer says it stored."""
    for number, repetition in enumerate(record.repetitions, start=1):
        stored = repetition.minidaq.superchunks.stored
        expected = repetition.verify.superchunks.expected
        if repetition.verify.complete_trailer and stored != expected:
            raise AssertionError(
                f"repetition {number}: stored {stored} superchunks, but the record's trailer says {expected}"
            )


WORKLOAD = Workload(
    "snb_record",
    plan,
    run,
    action="record_burst",
    memory=_rings,
    check=_check,
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
    total, failed, discarded = len(conditions) * stopping.most, False, None
    for condition in conditions:
        of_this: list[dict[str, Any]] = []
        for repetition in range(1, stopping.most + 1):
            number = len(done) + 1
            if condition == FRESH or (condition is not None and repetition == 1):
                evidence, discarded = _condition(machine, plan, condition, number, total, report)
                conditioning.append(evidence)
            minidaq, verify = _record(machine, plan, number, total, report, f" ({condition})" if condition else "")
            of_this.append(repetition_document(minidaq, verify, condition))
            done.append(of_this[-1])
            failed = is_of_drive(minidaq) or is_of_drive(verify)
            if failed or stopping.enough(repetition, {"repetitions": of_this}, condition):
                break
        if condition == PRECONDITIONED:
            since, now = discarded, discarded_bytes(machine, plan.device)
            conditioning[-1]["discarded_bytes"] = None if since is None or now is None else now - since
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


def _condition(
    machine: Machine, plan: RecordPlan, condition: str, number: int, total: int, report: Report
) -> tuple[dict[str, Any], int | None]:
    """Evidence of the condition before record `number`, and the device's count of discarded bytes once the target was full."""
    target = plan.load("precondition.bin")
    room = _room(plan, target)
    span = min(span_of(plan.parameters.get("precondition_size"), room, plan.demand.record_bytes), room.writable_bytes)

    def announce(text: str, seconds: float) -> None:
        report(f"before record {number}: {text}", number, total, seconds)

    conditioner = Conditioner(
        target,
        span,
        plan.capacity_bytes,
        plan.parameters.get("purge", "discard"),
        JobFiles(machine, plan.work, plan.raw),
        announce,
        plan.dedicated,
        device=plan.device,
        written_share=WRITTEN_SHARE,
        judged=True,
        used_bytes=room.used_bytes,
    )
    discarded: list[int | None] = []
    try:
        evidence = conditioner.bring_to(
            condition,
            f"record-{number}-{condition}",
            filled=lambda: discarded.append(discarded_bytes(machine, plan.device)),
        )
        return evidence, discarded[0] if discarded else None
    finally:
        target.remove()


def _room(plan: RecordPlan, target: LoadTarget) -> Room:
    """The target's room now, by the file system's own words where it has one."""
    if isinstance(target, RawDevice):
        size = plan.capacity_bytes or target.size_bytes()
        return Room(size, size, raw=True)
    words = ["df", "--block-size=1", "--output=used,avail", str(target.path.parent)]
    said = target.machine.run(words, timeout_s=60).check("df").stdout
    used, free = (int(one) for one in said.splitlines()[-1].split())
    return Room(plan.capacity_bytes, free, used, dedicated=plan.dedicated)


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
        report(f"read-back {number} of {total}{said}", number, total, plan.demand.record_bytes / UNIT_BYTES_PER_S)
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
    """The options by which verify knows what was written; empty for a writer that failed before it had a record."""
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

    `condition`: the target's, which the bench brought about; None: taken as found. `verified_fraction` is superchunks read back
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
