"""Steady state by SNIA SSS PTS 2.0.2: purge, workload-independent preconditioning, then rounds until the tracking variable is steady.

A test that does not reach steady state has a result too: its metrics are null, with the reason, and judge nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import convert

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.base.units import decimal_label, in_digits
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.workloads.model import RUNTIME_MIN
from daq_bench.bench_model.workloads.plan import DEVICE_SHARE_MIN
from daq_bench.bench_model.workloads.preconditioning import PRECONDITIONED
from daq_bench.bench_model.workloads.steady_state.document import SteadyState
from daq_bench.bench_model.workloads.steady_state.document import Window as SteadyWindow
from daq_bench.bench_model.workloads.steady_state.rounds import RULE, WINDOW_ROUNDS, Window, steady_window, why_not
from daq_bench.bench_model.workloads.steady_state.summary import figures_of, summary_of
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.candidate.load_target import LoadTarget
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.shared.base import Report, Workload
from daq_bench.rig.workloads.shared.conditioning import Conditioner, conditioning_step
from daq_bench.rig.workloads.shared.fio import direction, ended_well, jobs_of, version_on
from daq_bench.rig.workloads.shared.fio_job import JobFiles
from daq_bench.rig.workloads.shared.plan import Ground, Step
from daq_bench.rig.workloads.shared.site import WRITTEN_SECTORS, counted_bytes
from daq_bench.rig.workloads.steady_state.tests import Test, round_file, round_values, shortcomings, tests_of, untracked

NAME = "steady_state"
FILE = "steady-state.bin"
ROUNDS_EXPECTED = 8  # [P] of a drive that gets steady; the standard's window has five
START_S = 1.0  # overhead of a job besides its time
STANDARD = "SNIA SSS PTS 2.0.2"


@dataclass(frozen=True)
class SteadyPlan:
    """The workload's plan for a run. `device`: kernel name of the drive, for its own counter."""

    parameters: dict[str, Any]
    seed: int
    target: LoadTarget
    device: str | None
    capacity_bytes: int | None
    jobs: JobFiles

    @property
    def span_bytes(self) -> int:
        asked: int | None = self.parameters.get("span_size")
        if asked is None and self.capacity_bytes is None:
            raise BenchError("steady_state has no span_size, and the target's capacity is not known. Give span_size")
        return asked or self.capacity_bytes or 0


def plan(scenario: Scenario, ground: Ground) -> list[Step]:
    """Each test: purge, preconditioning, and its rounds, of which a test that gets steady needs about eight."""
    parameters = scenario.workloads[NAME]
    asked: int | None = parameters.get("span_size")
    span = asked or ground.capacity_bytes
    room = "the steady-state tests take the whole drive"
    if asked:
        room = f"the steady-state tests' span_size of {decimal_label(asked)} ({asked} B)"
    seconds, found = parameters["seconds_per_point"], list[Step]()
    rounds = min(ROUNDS_EXPECTED, parameters["rounds_max"])
    for test in tests_of(parameters, 512):
        found.append(conditioning_step(PRECONDITIONED, span, ground, f"{test.title}: ", asked or 0, room))
        written = sum(ground.written(seconds) * one.written_share for one in test.points)
        length = len(test.points) * (seconds + START_S)
        found.append(Step(f"{test.title}: rounds", length, written, asked or 0, room, times=rounds))
    return found


def _check(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    parameters = scenario.workloads[NAME]
    if "span_size" not in parameters and not candidate.target.is_raw:
        raise RefusedError(
            f"{scenario.file}: workloads.{NAME} has no span_size, so that it takes a whole drive, but the target of {candidate.name} is a "
            "folder. Choose a raw-device target; a copy with span_size runs here, too, and decides nothing"
        )
    for text in untracked(parameters):
        raise RefusedError(f"{scenario.file}: workloads.{NAME}.{text}, by which the standard judges steadiness. Add it")


def _limits(scenario: Scenario) -> list[str]:
    return shortcomings(scenario.workloads[NAME])


def run(context: RunContext, report: Report) -> dict[str, Any]:
    """results/steady_state.json of this run."""
    device = context.bundle.run.target.device
    plan = SteadyPlan(
        parameters=context.scenario.workloads[NAME],
        seed=context.scenario.seed,
        target=context.load_target(FILE),
        device=context.device,
        capacity_bytes=device.size_bytes if device else None,
        jobs=JobFiles.of(context),
    )
    return run_steady_state(context.machine, plan, report)


def every_test_should_have_been_preconditioned(context: RunContext, result: SteadyState) -> None:
    """Fails when less was written before a test than twice its span, up to whole 128 KiB blocks."""
    for test in result.tests:
        done = test.conditioning.preconditioning
        if done is None:
            raise AssertionError(f"{test.name}: nothing was written before it")
        wanted = done.passes * (result.span_bytes // done.block_bytes * done.block_bytes)
        if done.bytes_written < wanted:
            raise AssertionError(f"{test.name}: {done.bytes_written} B of {wanted} B were written before it")


def every_round_should_have_all_of_its_points(context: RunContext, result: SteadyState) -> None:
    """Fails when rounds of a test differ in what they measured; a masked point is there, with its reason."""
    for test in result.tests:
        measured = {tuple(point.name for point in one.points) for one in test.rounds}
        if len(measured) != 1:
            raise AssertionError(f"{test.name}: its rounds measured different points: {sorted(measured)}")


def tests_that_are_not_steady_should_say_why(context: RunContext, result: SteadyState) -> None:
    """Fails when the result claims another steadiness than its rounds have."""
    for test in result.tests:
        found = steady_window([one.value for one in test.rounds])
        if (found is not None) != test.steady or bool(test.reason) == test.steady:
            raise AssertionError(f"{test.name}: its {WINDOW_ROUNDS}-round windows say otherwise than its result")


WORKLOAD = Workload(
    NAME,
    plan,
    run,
    action="write_until_drive_is_steady",
    check=_check,
    limits=_limits,
    raw=True,
    checks=(
        every_test_should_have_been_preconditioned,
        every_round_should_have_all_of_its_points,
        tests_that_are_not_steady_should_say_why,
    ),
)


def run_steady_state(machine: Machine, plan: SteadyPlan, report: Report) -> dict[str, Any]:
    """Runs every test of the scenario; returns results/steady_state.json. `report` gets (text, step, steps, seconds)."""
    version = version_on(machine)
    logical = logical_block_bytes(machine, plan.device)
    tests = []
    try:
        for test in tests_of(plan.parameters, logical):
            tests.append(_run_test(machine, plan, test, report))
            plan.target.remove()  # the next test begins fresh
    finally:
        plan.target.remove()
    return document(version, plan, logical, tests)


def document(version: str, plan: SteadyPlan, logical: int, tests: list[dict[str, Any]]) -> dict[str, Any]:
    """results/steady_state.json of the tests that were run."""
    limits = [text for test in tests for text in test["conditioning"]["limits"]]
    summary = summary_of(tests, plan.parameters["rounds_max"])
    return {
        "schema_version": 1,
        "tool": "fio",
        "tool_version": version,
        "standard": STANDARD,
        "rule": RULE,
        "span_bytes": plan.span_bytes,
        "capacity_bytes": plan.capacity_bytes,
        "logical_block_bytes": logical,
        "seconds_per_point": plan.parameters["seconds_per_point"],
        "rounds_max": plan.parameters["rounds_max"],
        "tests": tests,
        "summary": summary.values,
        "samples": summary.samples,
        "intervals": summary.intervals,
        "reasons": summary.reasons,
        "limits": list(dict.fromkeys(limits)),
    }


def logical_block_bytes(machine: Machine, device: str | None) -> int:
    """Returns the logical block size of the drive under the target; 4 KiB, which every drive takes, where no single drive is known."""
    if device is None:
        return 4096
    return int(machine.read_text(Path(f"/sys/block/{device}/queue/logical_block_size")))


def _run_test(machine: Machine, plan: SteadyPlan, test: Test, report: Report) -> dict[str, Any]:
    steps = plan.parameters["rounds_max"]

    def announce(text: str, seconds: float) -> None:
        report(f"{test.title}: {text}", 0, steps, seconds)

    conditioner = Conditioner(
        plan.target, plan.span_bytes, plan.capacity_bytes, plan.parameters["purge"], plan.jobs, announce
    )
    conditioning = conditioner.bring_to(PRECONDITIONED, f"steady-{test.name}")
    rounds: list[dict[str, Any]] = []
    window: Window | None = None
    while window is None and len(rounds) < steps:
        number = len(rounds) + 1
        seconds = len(test.points) * (plan.parameters["seconds_per_point"] + START_S)
        report(f"{test.title}: round {number}", number, steps, seconds)
        rounds.append(_run_round(machine, plan, test, number))
        window = steady_window([one["value"] for one in rounds])
    return test_document(test, conditioning, rounds, window)


def test_document(
    test: Test, conditioning: dict[str, Any], rounds: list[dict[str, Any]], window: Window | None
) -> dict[str, Any]:
    """One test of results/steady_state.json. Steadiness was judged by the rounds' values, and can be again."""
    values = [one["value"] for one in rounds]
    return {
        "name": test.name,
        "kind": test.kind,
        "title": test.title,
        "tracking": test.tracking,
        "unit": test.unit,
        "io_depth": test.io_depth,
        "threads": test.threads,
        "notes": list(test.notes),
        "conditioning": conditioning,
        "rounds": rounds,
        "steady": window is not None,
        "reason": None if window else why_not(values),
        "window": as_document(convert(window, SteadyWindow, from_attributes=True)) if window else None,
    }


def _run_round(machine: Machine, plan: SteadyPlan, test: Test, number: int) -> dict[str, Any]:
    seconds = plan.parameters["seconds_per_point"]
    job, values = round_file(test, plan.span_bytes), round_values(test, seconds, plan.seed + number)
    before = counted_bytes(machine, plan.device, WRITTEN_SECTORS)
    name, timeout_s = f"steady-{test.name}-round-{number}", 120 + 3 * len(test.points) * (seconds + 5)
    completed = plan.jobs.run(job, name, plan.target, values, timeout_s)
    (plan.jobs.raw / f"{name}.json").write_text(completed.stdout, encoding="utf-8")
    what = f"round {number} of {test.name}"
    ended_well(completed, f"fio in {what}")
    device_bytes = counted_bytes(machine, plan.device, WRITTEN_SECTORS, since=before)
    return round_document(test, number, seconds, completed.stdout, device_bytes)


def round_document(test: Test, number: int, seconds: float, output: str, device_bytes: int | None) -> dict[str, Any]:
    """One round from fio's JSON. `value` is null, and `reason` says why, when its tracked point does not count."""
    jobs = {job["jobname"]: job for job in jobs_of(output, f"round {number} of {test.name}")}
    points = []
    for point in test.points:
        if point.name not in jobs:
            raise BenchError(
                f"fio's output of round {number} of {test.name} lacks the job {point.name}; it is kept in results/raw"
            )
        points.append(_point(point.name, point.block_bytes, point.read_percent, jobs[point.name], seconds))
    written = sum(side["bytes"] for one in points if (side := one["write"]))
    tracked = next(one for one in points if one["name"] == test.tracked)
    reason = tracked["reason"]
    if device_bytes is not None and device_bytes < DEVICE_SHARE_MIN * written:
        reason = f"the device counted {device_bytes} B of the {written} B that fio says it wrote"
    return {
        "round": number,
        "value": tracked[test.quantity] if reason is None else None,
        "reason": reason,
        "device_bytes_written": device_bytes,
        "points": points,
    }


def _point(
    name: str, block_bytes: int | None, read_percent: int, job: dict[str, Any], seconds: float
) -> dict[str, Any]:
    read, write = direction(job, "read"), direction(job, "write")
    sides = [side for side in (read, write) if side["latency_us"]]
    figures = figures_of(sides)
    runtime_s, reason = figures["runtime_s"] or 0.0, None
    if not sides:
        reason = "no operation was completed"
    elif runtime_s < RUNTIME_MIN * seconds:
        reason = f"ran for {runtime_s:.2f} s of {in_digits(seconds, 9)} s"
    return {
        "name": name,
        "block_bytes": block_bytes,
        "read_percent": read_percent,
        **figures,
        "read": read if read["latency_us"] else None,
        "write": write if write["latency_us"] else None,
        "admissible": reason is None,
        "reason": reason,
    }
