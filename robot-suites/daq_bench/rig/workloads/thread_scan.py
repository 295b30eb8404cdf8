"""The thread scan: sequential O_DIRECT writes by 1 ... 10 threads with several block sizes (DUNE paper, figure 2).

Each thread writes a part of the file of its own. fio's file is written once before the first point, daqwriter's before each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_model.base.units import binary_label, decimal_label
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.workloads.thread_scan import FEW_THREADS, MANY_THREADS, result
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.workloads import block_scan
from daq_bench.rig.workloads.shared import fio
from daq_bench.rig.workloads.shared.base import Report, Workload, at_least_half
from daq_bench.rig.workloads.shared.plan import START_S, Ground, Need, Step
from daq_bench.rig.workloads.shared.site import Site
from daq_bench.rig.workloads.shared.write_point import SAMPLE_S, measure_write, version_of

FILE = "thread-scan.bin"
PAPER_THREADS, PAPER_BLOCK_BYTES = (FEW_THREADS, MANY_THREADS), (8 * 2**10, 4 * 2**20)


def _parameters(scenario: Scenario) -> dict[str, Any]:
    return scenario.workloads["thread_scan"]


def plan(scenario: Scenario, ground: Ground) -> list[Step]:
    """Each point; the file once for fio, and before each point for daqwriter."""
    parameters = _parameters(scenario)
    points, size = len(parameters["threads"]) * len(parameters["block_sizes"]), parameters["file_size"]
    each_s, room = (
        parameters["seconds_per_point"] + parameters["ramp_s"],
        f"the thread scan's file of {decimal_label(size)}",
    )
    found = []
    for tool in parameters["tools"]:
        before = 0 if tool == "fio" else size
        if not before:
            found.append(Step("laying out the thread scan's file", ground.seconds(size), size, size, room))
        length = each_s + START_S + (ground.seconds(before) or 0)
        found.append(Step(f"points with {tool}", length, ground.written(each_s) + before, size, room, times=points))
    return found


def _memory(scenario: Scenario) -> Need:
    parameters = _parameters(scenario)
    threads, block, depth = max(parameters["threads"]), max(parameters["block_sizes"]), parameters["io_depth"]
    size = threads * block * depth
    return Need(size, f"io_depth: {threads} threads x {depth} blocks of {binary_label(block)} need {size} B")


def _check(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    parameters = _parameters(scenario)
    if parameters["threads"] != sorted(set(parameters["threads"])):
        raise RefusedError(
            f"{scenario.file}: workloads.thread_scan.threads: is not ascending. Sort it, each number once"
        )
    block_scan.check_sizes(scenario, "thread_scan", max(parameters["threads"]))


def run(context: RunContext, report: Report) -> dict[str, Any]:
    """results/thread_scan.json of this run."""
    return run_thread_scan(Site.of(context), _parameters(context.scenario), report)


def every_number_of_threads_should_have_been_measured(context: RunContext, scan: dict[str, Any]) -> None:
    """Fails when a point of a tool's grid is missing; a masked point is there, with its reason."""
    parameters = context.scenario.workloads["thread_scan"]
    asked = {(block, threads) for block in parameters["block_sizes"] for threads in parameters["threads"]}
    for one in scan["scans"]:
        missing = asked - {(point["block_bytes"], point["threads"]) for point in one["points"]}
        if missing:
            raise AssertionError(f"{one['tool']} did not measure (block size in B, threads): {sorted(missing)}")


def at_least_half_of_the_points_should_be_admissible(context: RunContext, scan: dict[str, Any]) -> None:
    """Fails when the device or a tool let most points down, so that no curves can be drawn."""
    for one in scan["scans"]:
        at_least_half(f"points of {one['tool']}", one["points"])


WORKLOAD = Workload(
    "thread_scan",
    plan,
    run,
    action="scan_numbers_of_threads",
    memory=_memory,
    check=_check,
    raw=True,
    checks=(every_number_of_threads_should_have_been_measured, at_least_half_of_the_points_should_be_admissible),
)


def run_thread_scan(site: Site, parameters: dict[str, Any], report: Report) -> dict[str, Any]:
    """Runs every tool's points; returns results/thread_scan.json, whose metrics are those of the first tool."""
    steps = len(parameters["tools"]) * len(parameters["threads"]) * len(parameters["block_sizes"])
    scans: list[dict[str, Any]] = []
    for tool in parameters["tools"]:
        done = sum(len(scan["points"]) for scan in scans)

        def announce(step: int, text: str, done: int = done) -> None:
            report(text, done + step, steps, parameters["seconds_per_point"] + parameters["ramp_s"])

        run = _with_fio if tool == "fio" else _with_daqwriter
        version, condition, points = run(site, parameters, announce)
        scans.append({"tool": tool, "tool_version": version, "condition": condition, "points": points})
    return result(parameters, SAMPLE_S, scans)


Announce = Callable[[int, str], None]
Measured = tuple[str, str, list[dict[str, Any]]]


def _with_fio(site: Site, parameters: dict[str, Any], announce: Announce) -> Measured:
    version, points = fio.version_on(site.machine), []
    with site.removed_afterwards(FILE):
        announce(0, "laying out the thread scan's file")
        fio.lay_out(site.jobs, "thread-scan", site.target(FILE), parameters["file_size"])
        for step, (block, threads) in enumerate(_grid(parameters), start=1):
            announce(step, _text(block, threads, "fio"))
            point = block_scan.measure(site, FILE, block, parameters, f"fio-{block}-{threads}-threads", threads)
            points.append({"threads": threads, **as_document(point)})
    return version, "overwrite of a file that was written once before the scan", points


def _with_daqwriter(site: Site, parameters: dict[str, Any], announce: Announce) -> Measured:
    points = []
    for step, (block, threads) in enumerate(_grid(parameters), start=1):
        announce(step, _text(block, threads, "daqwriter"))
        point = measure_write(site, block, threads, parameters, f"daqwriter-write-{block}-{threads}-threads")
        points.append({"threads": threads, **as_document(point)})
    return version_of(site), "overwrite of a file that was written once before each point", points


def _grid(parameters: dict[str, Any]) -> list[tuple[int, int]]:
    return [(block, threads) for block in parameters["block_sizes"] for threads in parameters["threads"]]


def _text(block_bytes: int, threads: int, tool: str) -> str:
    return f"{threads} thread{'s' if threads > 1 else ''}, block size {binary_label(block_bytes)}, {tool}"
