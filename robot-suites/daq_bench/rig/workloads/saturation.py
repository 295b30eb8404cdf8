"""The saturation run: a fresh target is written once from its begin to its end, as often as the scenario repeats it.

Where the rate falls, against bytes written, follows from the samples (bench_model.workloads.saturation.analysis). Every pass is reserved
in the account of the scenario's write budget before its first byte (ADR 13)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.base.units import decimal_label
from daq_bench.bench_model.documents.results import Counters, WearExperiment
from daq_bench.bench_model.documents.struct import as_document, read
from daq_bench.bench_model.documents.tools.synthetic import Write
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.workloads.preconditioning import FRESH
from daq_bench.bench_model.workloads.saturation import passes as saturation_passes
from daq_bench.bench_model.workloads.saturation.analysis import FILE as RESULT
from daq_bench.bench_model.workloads.saturation.document import Saturation
from daq_bench.bench_model.workloads.saturation.passes import asked_bytes
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.candidate.load_target import LoadTarget, RawDevice
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.shared.base import RESERVE_BYTES, Report, Workload
from daq_bench.rig.workloads.shared.conditioning import Conditioner
from daq_bench.rig.workloads.shared.plan import UNIT_BYTES_PER_S, WRITE_BYTES_PER_S_MIN, Ground, Need, Step
from daq_bench.rig.workloads.shared.scan import version_of
from daq_bench.rig.workloads.shared.site import Site
from daq_bench.rig.workloads.shared.wear_account import (
    Wear,
    Worn,
    account_of,
    begun,
    drives_of,
    lock_drives,
    open_ledger,
    others_wrote,
    require_left,
    reserved_bytes,
    shortfall,
    worn_by,
)
from daq_bench.rig.workloads.shared.wear_ledger import WearLedger

NAME, FILE = "saturation", "saturation.bin"
START_S = 5.0  # purge and start of a pass


@dataclass(frozen=True)
class SaturationPlan:
    """The workload's plan for a run.

    `dedicated`: the drive holds nothing but the bench's file system."""

    parameters: dict[str, Any]
    repetitions: int
    seed: int
    target: LoadTarget
    site: Site
    worn: Worn
    dedicated: bool
    line_protocol: Path
    tags: dict[str, str]

    @property
    def raw_drive(self) -> bool:
        return isinstance(self.target, RawDevice)


def plan(scenario: Scenario, ground: Ground) -> list[Step]:
    """The passes. Without span_size, over the whole drive, or a share of what is free."""
    parameters = scenario.workloads[NAME]
    room = ground.capacity_bytes if ground.raw else ground.room_bytes
    span = parameters.get("span_size")
    size = asked_bytes(parameters, room or 0) if span or room else None
    text = "the saturation run takes the whole drive, or a share of what is free"
    if span:
        text = f"the saturation run's span_size of {decimal_label(span)} ({span} B)"
    length = None if size is None else size / ground.rate_bytes_per_s + START_S
    return [Step("passes", length, size, span or 0, text, times=scenario.repetitions)]


def _memory(scenario: Scenario) -> Need:
    parameters = scenario.workloads[NAME]
    size = parameters["io_depth"] * parameters["block_size"]
    return Need(size, f"io_depth: the blocks in flight need {decimal_label(size)}")


def _reserve(raw_drive: bool, dedicated: bool, room: int) -> int:
    """Returns the room that stays free: none on a raw drive, at most a tenth of a file system that is the bench's own."""
    if raw_drive:
        return 0
    return min(RESERVE_BYTES, room // 10) if dedicated else RESERVE_BYTES


def check(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    """Refuses, before anything is written, a pass that has no size, fills somebody's file system, or exceeds the write budget."""
    parameters, at = scenario.workloads[NAME], f"{scenario.file}: workloads.{NAME}"
    if parameters["block_size"] % 4096:
        raise RefusedError(
            f"{at}.block_size: {parameters['block_size']} B is no multiple of 4 KiB, which O_DIRECT needs. Correct it"
        )
    if not candidate.target.is_raw and not parameters.keys() & {"span_size", "free_share"}:
        raise RefusedError(
            f"{at} has neither span_size nor free_share, so that it takes a whole drive, but the target of {candidate.name} is a folder. "
            "Choose a raw-device target; a copy with one of them runs here, too, and decides nothing"
        )
    serials, copies = drives_of(candidate, found)
    if found.target is None and "span_size" not in parameters:
        return  # provisioning is yet to build it: each pass looks again
    room = found.target.free_bytes if found.target else None
    asked = asked_bytes(parameters, room or 0)
    if room is not None:
        reserve = _reserve(candidate.target.is_raw, candidate.target.storage is not None, room)
        asked = _room_for(parameters, room, reserve)
        if asked < parameters["cliff_free_size"]:
            raise RefusedError(
                f"{at}: a pass of {decimal_label(asked)} cannot show that {decimal_label(parameters['cliff_free_size'])} (cliff_free_size) "
                "fit before the rate falls. Choose a larger drive, or lower cliff_free_size in a copy"
            )
    need, arithmetic = _needed(asked, scenario.repetitions, copies)
    account = account_of(WearExperiment(candidate.name, scenario.id, candidate.target.name, serials))
    require_left(scenario, NAME, account, parameters["write_budget"], need, arithmetic)


def _needed(asked: int, repetitions: int, copies: int) -> tuple[int, str]:
    """Returns the passes' need of the write budget, with the arithmetic."""
    need = repetitions * reserved_bytes(asked, copies)
    return (
        need,
        f"{repetitions} passes of {decimal_label(asked)} and what a file system adds need {decimal_label(need)} ({need} B)",
    )


def _room_for(parameters: dict[str, Any], capacity: int, reserve: int) -> int:
    """Bytes of one pass. Raises RefusedError where they are zero, or more than there is room for."""
    asked = asked_bytes(parameters, capacity)
    if not 0 < asked <= capacity - reserve:
        raise RefusedError(
            f"a saturation pass of {asked} B does not fit a target with {capacity} B, of which {reserve} B are to stay free. "
            "Nothing was written. Give span_size or free_share another value"
        )
    return asked


def run(context: RunContext, report: Report) -> dict[str, Any]:
    """results/saturation.json of this run, which is kept up to date as it goes."""
    worn = worn_by(context, NAME)
    target = context.load_target(FILE)
    plan = SaturationPlan(
        parameters=context.scenario.workloads[NAME],
        repetitions=context.scenario.repetitions,
        seed=context.scenario.seed,
        target=target,
        site=Site(
            context.machine, context.daqwriter, target.path.parent, context.places.raw, context.raw, context.device
        ),
        worn=worn,
        dedicated=context.candidate.target.storage is not None,
        line_protocol=context.places.workload_file,
        tags={"host": context.bundle.run.candidate.name, "run": context.bundle.id},
    )

    def keep(document: dict[str, Any]) -> None:
        read(document, Saturation, RESULT)
        context.bundle.write(RESULT, document)

    with ExitStack() as locks:
        context.machine.observe("the drives' locks", lambda: lock_drives(locks, worn, context.bundle.id))
        asked, _ = _sizes(plan)
        need = _needed(asked, plan.repetitions, worn.copies)
        ledger = open_ledger(context, worn, plan.parameters["write_budget"], need)
        return run_saturation(context.machine, plan, ledger, report, keep)


def every_sample_should_be_accounted_for(context: RunContext, saturation: Saturation) -> None:
    """Fails when the samples of a pass do not add up to what it wrote, or contradict one another."""
    for one in saturation.repetitions:
        wrong = list(saturation_passes.contradictions(as_document(one)))
        if wrong:
            raise AssertionError(f"pass {one.number}: {'; '.join(wrong)}")


def every_pass_should_be_charged_to_the_write_budget(context: RunContext, saturation: Saturation) -> None:
    """Fails when a pass is reserved and not settled, or the account charges less than what was written."""
    entries = [entry for entry in saturation.ledger if entry.run == context.bundle.id]
    unsettled = [entry.number for entry in saturation.ledger if entry.charged_bytes is None]
    written = sum(one.written_bytes for one in saturation.repetitions)
    charged = sum(entry.charged_bytes or 0 for entry in entries)
    if unsettled or charged < written:
        raise AssertionError(f"{written} B were written, {charged} B charged; not settled: {unsettled}")


WORKLOAD = Workload(
    NAME,
    plan,
    run,
    action="write_fresh_target_full",
    memory=_memory,
    check=check,
    raw=True,
    checks=(every_sample_should_be_accounted_for, every_pass_should_be_charged_to_the_write_budget),
)


def _capacity(plan: SaturationPlan) -> int:
    """Returns the capacity that the drive reports now; for a file, its file system's free room."""
    if isinstance(plan.target, RawDevice):
        return plan.target.size_bytes()
    argv: list[str | Path] = ["df", "--output=avail", "--block-size=1", plan.target.path.parent]
    said = plan.target.machine.run(argv, timeout_s=30).check("df").stdout
    return int(said.split()[-1])


def _sizes(plan: SaturationPlan) -> tuple[int, int]:
    """(bytes of a pass, capacity) of the target as it is now."""
    capacity = _capacity(plan)
    return _room_for(plan.parameters, capacity, _reserve(plan.raw_drive, plan.dedicated, capacity)), capacity


def run_saturation(
    machine: Machine,
    plan: SaturationPlan,
    ledger: WearLedger,
    report: Report,
    keep: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    """Every pass; `keep` gets the document after each. Returns results/saturation.json. The written data is removed."""
    version = version_of(plan.site, "daqwriter")
    wear = Wear(machine, plan.worn.drives, plan.worn.experiment.candidate)
    begun(wear, ledger)
    rows: list[dict[str, Any]] = []
    try:
        for number in range(1, plan.repetitions + 1):
            rows.append(_pass(plan, wear, ledger, number, report))
            keep(document(version, plan.parameters, ledger, [*rows]))
    finally:
        plan.target.remove()
    return document(version, plan.parameters, ledger, rows)


def _pass(plan: SaturationPlan, wear: Wear, ledger: WearLedger, number: int, report: Report) -> dict[str, Any]:
    """One pass over the purged target, charged to the account however it ends."""
    plan.target.remove()
    asked, capacity = _sizes(plan)

    def announce(text: str, seconds: float) -> None:
        report(f"before pass {number}: {text}", number, plan.repetitions, seconds)

    purge = plan.parameters["purge"]
    conditioner = Conditioner(plan.target, asked, capacity, purge, plan.site.jobs, announce, plan.dedicated)
    conditioning = conditioner.bring_to(FRESH, f"{NAME}-{number}")
    before, _ = wear.read()
    entry = ledger.reserve("pass", asked, reserved_bytes(asked, plan.worn.copies), before)
    report(
        f"pass {number} of {plan.repetitions}: {decimal_label(asked)}",
        number,
        plan.repetitions,
        asked / UNIT_BYTES_PER_S,
    )
    try:
        written = plan.site.run_daqwriter(
            "write",
            options(plan, asked, number),
            f"{NAME}-{number}",
            Write,
            300 + asked / WRITE_BYTES_PER_S_MIN,
        )
    except BaseException:  # a Ctrl-C, a lost candidate: the drives' counts now are better than the reservation
        with suppress(BenchError):
            ledger.settle_interrupted(entry, wear.read()[0])
        raise
    after: Counters = wear.read()[0]
    entry = ledger.settle(entry, written.written_bytes, after)
    return row(number, plan.raw_drive, capacity, asked, conditioning, written, entry.counted_bytes)


def options(plan: SaturationPlan, asked: int, number: int) -> list[str]:
    """daqwriter's options for pass `number`. It removes its file, and it stops at `asked` bytes."""
    parameters = plan.parameters
    return [
        f"--target={plan.target.path}",
        *plan.target.daqwriter_options,
        f"--bytes={asked}",
        f"--span={asked}",
        f"--block-size={parameters['block_size']}",
        "--threads=1",
        f"--io-depth={parameters['io_depth']}",
        "--pattern=sequential",
        "--condition=fresh",
        f"--interval={parameters['sample_s']:g}",
        f"--seed={plan.seed + number}",
        f"--line-protocol={plan.line_protocol}",
        *(f"--tag={key}={value}" for key, value in plan.tags.items()),
    ]


def row(
    number: int,
    raw_drive: bool,
    capacity: int,
    asked: int,
    conditioning: dict[str, Any],
    written: Write,
    counted: int | None,
) -> dict[str, Any]:
    """One pass of results/saturation.json from daqwriter's answer. `counted`: B by the drives' own counters."""
    reason = shortfall("daqwriter", "pass", asked, written.written_bytes, counted)
    return {
        "number": number,
        "target_kind": "raw-device" if raw_drive else "scratch-file",
        "capacity_bytes": capacity,
        "asked_bytes": asked,
        "conditioning": conditioning,
        "condition": written.parameters.condition,
        "status": written.status,
        "error": written.error,
        "ended_by": written.ended_by,
        "written_bytes": written.written_bytes,
        "write_s": written.time.write_s,
        "flush_s": written.time.flush_s,
        "device_bytes_written": counted,
        "series": as_document(written.series),
        "admissible": reason is None,
        "reason": reason,
    }


def document(
    version: str, parameters: dict[str, Any], ledger: WearLedger, rows: list[dict[str, Any]]
) -> dict[str, Any]:
    """results/saturation.json of the passes so far."""
    limits = [text for one in rows for text in one["conditioning"]["limits"]]
    overrun = -ledger.left_bytes
    return {
        "schema_version": 1,
        "tool": "daqwriter",
        "tool_version": version,
        "block_bytes": parameters["block_size"],
        "io_depth": parameters["io_depth"],
        "sample_s": parameters["sample_s"],
        "purge": parameters["purge"],
        "cliff_free_bytes": parameters["cliff_free_size"],
        "repetitions": rows,
        "limits": list(dict.fromkeys(limits)),
        "invalid": others_wrote(ledger, overrun) if overrun > 0 else [],
        **ledger.repeated(),
    }
