"""The block-size scan: sequential O_DIRECT writes with fio and, where asked for, daqwriter; one point per block size
(DUNE paper, figure 1). Its fio points also serve the thread scan.

fio's file is written once before the first point, so that every point overwrites allocated blocks and none pays for the
file system's allocation. Evidence that a point's bytes reached the device is the device's own write counter.

A short point draws the curve and decides nothing. With `confirm` every large block size is measured again, several times and for
longer; the throughput of large blocks is judged by these repetitions (docs/scenarios-scans.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.base.units import binary_label, decimal_label
from daq_bench.bench_model.documents.results import WriteLatency, WritePoint
from daq_bench.bench_model.documents.struct import checked
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.statistics.plateau import LARGE_BLOCK_BYTES, RULE, deciding_point, find_plateau, is_large
from daq_bench.bench_model.workloads.block_scan import BlockScan, LargeBlocks, LargeRepetition, Plateau
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.workloads.shared import fio
from daq_bench.rig.workloads.shared.base import Report, Workload, at_least_half
from daq_bench.rig.workloads.shared.fio_job import Value
from daq_bench.rig.workloads.shared.plan import START_S, UNIT_BYTES_PER_S, Ground, Step
from daq_bench.rig.workloads.shared.site import Site
from daq_bench.rig.workloads.shared.write_point import measure_write, version_of, why_masked

SAMPLE_MS = 250  # averaging window of the throughput samples that the report's spread comes from

PLATEAU_METRICS = ("block_scan.plateau_throughput", "block_scan.plateau_block_size")
FILE = "block-scan.bin"
LARGE_BLOCK_METRIC = "block_scan.large_block_throughput"


def plan(scenario: Scenario, ground: Ground) -> list[Step]:
    """Its file, then each point: daqwriter writes a file of its own before each of them."""
    parameters = scenario.workloads["block_scan"]
    size, found = parameters["file_size"], list[Step]()
    room = f"the block scan's file of {decimal_label(size)}"
    for tool in _tools(parameters):
        before = 0 if tool == "fio" else size
        if not before:
            found.append(Step("laying out the scan's file", ground.seconds(size), size, size, room))
        asked = [
            (parameters, len(parameters["block_sizes"]), "points"),
            (_longer(parameters), len(turns(parameters)), "repetitions"),
        ]
        for own, times, word in asked:
            seconds, name = _point_s(own), f"{word} with {tool}"
            length = seconds + START_S + (ground.seconds(before) or 0)
            found.append(Step(name, length, ground.written(seconds) + before, size, room, times=times))
    return found


def turns(parameters: dict[str, Any]) -> list[tuple[int, int]]:
    """Returns (repetition, block size) of the points that `confirm` measures again, in order. The sizes take turns: a size's repetitions
    then lie apart in time, so that one slow spell of the drive does not hit all of them."""
    large = [size for size in parameters["block_sizes"] if is_large(size)]
    count = parameters["confirm"]["repetitions"] if "confirm" in parameters else 0
    return [(number, size) for number in range(1, count + 1) for size in large]


def _longer(parameters: dict[str, Any]) -> dict[str, Any]:
    """Returns the parameters with which a repetition is measured."""
    plan = parameters.get("confirm", {})
    return {**parameters, "seconds_per_point": plan.get("seconds_per_repetition", parameters["seconds_per_point"])}


def _tools(parameters: dict[str, Any]) -> list[str]:
    """Returns the tools, fio first: the document's own figures are those of its scan."""
    return list(parameters.get("tools", ["fio"]))


def check_sizes(scenario: Scenario, workload: str, threads: int = 1) -> None:
    """Raises RefusedError when a thread's part of the file cannot hold a block of the largest size."""
    parameters = scenario.workloads[workload]
    largest, part = max(parameters["block_sizes"]), parameters["file_size"] // threads
    if largest > part:
        parts = f" shared out among {threads} threads" if threads > 1 else ""
        raise RefusedError(
            f"{scenario.file}: workloads.{workload}.file_size: {parameters['file_size']} B{parts} hold no block of {largest} B. "
            f"Make it {largest * threads} B or more, or leave the largest block sizes out"
        )


def _check(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    check_sizes(scenario, "block_scan")
    parameters = scenario.workloads["block_scan"]
    listed = parameters.get(
        "yields", ["block_scan.daqwriter_large_block_throughput"]
    )  # left out: all of the workload's metrics
    asked = [metric for metric in listed if metric.startswith("block_scan.daqwriter_")]
    if asked and "daqwriter" not in _tools(parameters):
        raise RefusedError(
            f"{scenario.file}: workloads.block_scan.yields: {asked[0]} needs daqwriter, which `tools` does not name. "
            "Write tools: [fio, daqwriter], or list yields without it"
        )
    if "confirm" in parameters and not turns(parameters):
        raise RefusedError(
            f"{scenario.file}: workloads.block_scan.confirm: no entry of block_sizes is {binary_label(LARGE_BLOCK_BYTES)} or more, so "
            "there is nothing to measure again. Add such a block size, or leave `confirm` out"
        )


def run(context: RunContext, report: Report) -> dict[str, Any]:
    """results/block_scan.json of this run."""
    return run_tools(Site.of(context), context.scenario.workloads["block_scan"], report)


def every_block_size_should_have_been_measured(context: RunContext, scan: dict[str, Any]) -> None:
    """Fails when a point of the scan is missing; a masked point is there, with its reason."""
    asked = context.scenario.workloads["block_scan"]["block_sizes"]
    for one in (scan, *scan["others"]):
        measured = [point["block_bytes"] for point in one["points"]]
        if measured != asked:
            raise AssertionError(f"asked for block sizes {asked} B, measured {measured} B with {one['tool']}")


def every_large_block_size_should_have_been_repeated(context: RunContext, scan: dict[str, Any]) -> None:
    """Fails when a repetition of a large block size is missing; one that does not count is there, with its reason."""
    asked = turns(context.scenario.workloads["block_scan"])
    for one in (scan, *scan["others"]):
        found = [(again["repetition"], again["block_bytes"]) for again in one["large_blocks"]["repetitions"]]
        if asked and found != asked:
            raise AssertionError(f"asked for the repetitions {asked} (number, B), measured {found} with {one['tool']}")


def at_least_half_of_the_points_should_be_admissible(context: RunContext, scan: dict[str, Any]) -> None:
    """Fails when the device or a tool let most points down, so that no curve can be drawn."""
    for one in (scan, *scan["others"]):
        at_least_half(f"points of {one['tool']}", one["points"])


WORKLOAD = Workload(
    "block_scan",
    plan,
    run,
    action="scan_block_sizes",
    check=_check,
    raw=True,
    checks=(
        every_block_size_should_have_been_measured,
        every_large_block_size_should_have_been_repeated,
        at_least_half_of_the_points_should_be_admissible,
    ),
)


def run_tools(site: Site, parameters: dict[str, Any], report: Report) -> dict[str, Any]:
    """results/block_scan.json: fio's scan, with those of the other tools that the scenario names in `others`."""
    tools = _tools(parameters)
    scan = run_scan(site, parameters, report)
    others = [_run_daqwriter(site, parameters, report)] if "daqwriter" in tools else []
    reasons = {
        name.replace("block_scan.", f"block_scan.{other['tool']}_"): why
        for other in others
        for name, why in other["reasons"].items()
    }
    return {**scan, "others": others, "reasons": scan["reasons"] | reasons}


def _run_daqwriter(site: Site, parameters: dict[str, Any], report: Report) -> dict[str, Any]:
    def measure_one(block_bytes: int, asked: dict[str, Any], suffix: str) -> WritePoint:
        return measure_write(site, block_bytes, 1, asked, f"daqwriter-write-{block_bytes}{suffix}")

    points, again = _points(parameters, measure_one, report, " with daqwriter")
    condition = "overwrite of a file that was written once before each point"
    return document(version_of(site), parameters, points, again, "daqwriter", condition)


# (block size, parameters, suffix of the output's name) -> point
Measure = Callable[[int, dict[str, Any], str], WritePoint]


def _points(
    parameters: dict[str, Any], measure_one: Measure, report: Report, said: str = ""
) -> tuple[list[WritePoint], list[LargeRepetition]]:
    """Returns one tool's points, and the repetitions of `confirm`. `said`: the tool's words for the progress display."""
    sizes, asked, longer = parameters["block_sizes"], turns(parameters), _longer(parameters)
    steps, points, again = len(sizes) + len(asked), [], []
    for step, size in enumerate(sizes, start=1):
        report(f"block size {binary_label(size)}{said}", step, steps, _point_s(parameters))
        points.append(measure_one(size, parameters, ""))
    for step, (number, size) in enumerate(asked, start=len(sizes) + 1):
        text = f"block size {binary_label(size)}{said}, repetition {number} of {parameters['confirm']['repetitions']}"
        report(text, step, steps, _point_s(longer))
        again.append(repetition_of(measure_one(size, longer, f"-repetition-{number}"), number))
    return points, again


def _point_s(parameters: dict[str, Any]) -> float:
    return float(parameters["seconds_per_point"] + parameters["ramp_s"])


def repetition_of(point: WritePoint, number: int) -> LargeRepetition:
    """Returns a point's entry among the repetitions. One that does not count keeps its place, as a hole with its reason."""
    return LargeRepetition(
        repetition=number,
        throughput_bytes_per_s=point.throughput_bytes_per_s if point.admissible else None,
        block_bytes=point.block_bytes,
        throughput_bytes_per_s_samples=point.throughput_bytes_per_s_samples,
        bytes_written=point.bytes_written,
        runtime_s=point.runtime_s,
        device_bytes_written=point.device_bytes_written,
        admissible=point.admissible,
        reason=point.reason,
    )


def run_scan(site: Site, parameters: dict[str, Any], report: Report) -> dict[str, Any]:
    """fio's scan: all points on a file. `report` gets (text, step, steps, seconds)."""
    version = fio.version_on(site.machine)

    def measure_one(block_bytes: int, asked: dict[str, Any], suffix: str) -> WritePoint:
        return measure(site, FILE, block_bytes, asked, f"fio-{block_bytes}{suffix}")

    with site.removed_afterwards(FILE):
        steps = len(parameters["block_sizes"]) + len(turns(parameters))
        report("laying out the scan's file", 0, steps, parameters["file_size"] / UNIT_BYTES_PER_S)
        fio.lay_out(site.jobs, "block-scan", site.target(FILE), parameters["file_size"])
        points, again = _points(parameters, measure_one, report)
    return document(version, parameters, points, again)


def document(
    version: str,
    parameters: dict[str, Any],
    points: list[WritePoint],
    again: list[LargeRepetition] | None = None,
    tool: str = "fio",
    condition: str = "overwrite of a file that was written once before the scan",
) -> dict[str, Any]:
    """Returns one tool's scan from its points; a value that it does not show is null, and `reasons` says why by metric.

    `again`: the repetitions that large blocks are judged by. Without any, the scan's lowest large point stands there alone."""
    plateau = find_plateau([(one.block_bytes, one.throughput_bytes_per_s) for one in points if one.admissible])
    deciding = deciding_point(points)
    lowest = repetition_of(deciding, 1) if deciding else None
    repetitions = again or ([lowest] if lowest else [])
    reasons: dict[str, str] = {}
    if plateau is None:
        reasons |= dict.fromkeys(
            PLATEAU_METRICS, "throughput does not level out within the scan, so there is no plateau"
        )
    if why := _why_not_judged(repetitions):
        reasons[LARGE_BLOCK_METRIC] = why
    return checked(
        BlockScan(
            schema_version=1,
            tool=tool,
            tool_version=version,
            io_depth=parameters["io_depth"],
            threads=1,
            seconds_per_point=parameters["seconds_per_point"],
            ramp_s=parameters["ramp_s"],
            sample_s=SAMPLE_MS / 1000,
            file_bytes=parameters["file_size"],
            direct=True,
            condition=condition,
            points=points,
            plateau=Plateau(
                plateau.throughput_bytes_per_s if plateau else None, plateau.from_block_bytes if plateau else None, RULE
            ),
            large_blocks=LargeBlocks(
                throughput_bytes_per_s=lowest.throughput_bytes_per_s if lowest else None,
                throughput_bytes_per_s_samples=lowest.throughput_bytes_per_s_samples if lowest else [],
                from_block_bytes=LARGE_BLOCK_BYTES,
                seconds_per_repetition=_longer(parameters)["seconds_per_point"],
                repetitions=repetitions,
            ),
            reasons=reasons,
        )
    )


def _why_not_judged(repetitions: list[LargeRepetition]) -> str:
    """Returns why large blocks have no throughput; empty where every repetition counts."""
    if not repetitions:
        return "no block size of at least 8 MiB was measured"
    holes = [
        f"{binary_label(one.block_bytes)}, repetition {one.repetition}, {one.reason}"
        for one in repetitions
        if not one.admissible
    ]
    return f"a measurement of large blocks does not count: {'; '.join(holes)}" if holes else ""


def measure(
    site: Site, file: str, block_bytes: int, parameters: dict[str, Any], name: str, threads: int = 1
) -> WritePoint:
    """One point with fio on `file` of the target. `name`: of its output, which no other point of the run has."""
    logged = f"{name}_bw.1.log" if threads == 1 else f"{name}_bw.log"
    job, many = ("block-scan", {}) if threads == 1 else ("thread-scan", {"THREADS": threads})
    values: dict[str, Value] = {
        "BLOCK_BYTES": block_bytes,
        "SIZE_BYTES": parameters["file_size"] // threads // block_bytes * block_bytes,
        "IO_DEPTH": parameters["io_depth"],
        "RUNTIME": fio.time_of(parameters["seconds_per_point"]),
        "RAMP_TIME": fio.time_of(parameters["ramp_s"]),
        "WINDOW_MS": SAMPLE_MS,
        **many,
    }
    before = site.device_written_bytes()
    timeout_s = 60 + 5 * (parameters["seconds_per_point"] + parameters["ramp_s"])
    completed = site.jobs.run(job, name, site.target(file), values, timeout_s)
    fio.ended_well(completed, f"fio at block size {binary_label(block_bytes)}")
    device_bytes = site.device_written_bytes(since=before)
    (site.raw / f"{name}.json").write_text(completed.stdout, encoding="utf-8")
    bandwidth = site.raw / logged
    site.machine.fetch(site.work / logged, bandwidth)
    log_text = bandwidth.read_text(encoding="ascii")
    return parse_point(completed.stdout, block_bytes, parameters["seconds_per_point"], log_text, device_bytes)


def parse_point(
    output: str, block_bytes: int, seconds: float, bandwidth_log: str, device_bytes: int | None
) -> WritePoint:
    """One point of results/block_scan.json from fio's JSON and its bandwidth log. Raises BenchError for fio's errors and for no writes."""
    what = f"block size {block_bytes} B"
    with fio.readable(what):
        job = fio.document_of(output, what)["jobs"][0]
        write = {name: fio.number(job["write"], name) for name in ("io_bytes", "runtime", "bw_bytes", "iops")}
        if job["error"] or not write["io_bytes"]:
            raise BenchError(f"fio at {what} ended with error {str(job['error'])[:40]} after {write['io_bytes']} B")
        latency, percentiles = job["write"]["lat_ns"], fio.percentiles_us(job["write"]["lat_ns"])
        runtime_s = write["runtime"] / 1000
        reason = why_masked("fio", runtime_s, seconds, write["io_bytes"], device_bytes)
        threads = int(job.get("job options", {}).get("numjobs", 0))
        samples = fio.bandwidth_samples(bandwidth_log, SAMPLE_MS, write["runtime"], write["io_bytes"], threads)
        return WritePoint(
            block_bytes=block_bytes,
            throughput_bytes_per_s=float(write["bw_bytes"]),
            iops=float(write["iops"]),
            bytes_written=fio.whole(job["write"], "io_bytes"),
            runtime_s=runtime_s,
            throughput_bytes_per_s_samples=samples,
            latency_us=WriteLatency(
                p50=percentiles[50.0],
                p99=percentiles[99.0],
                p99_9=percentiles[99.9],
                max=fio.number(latency, "max") / 1000,
                mean=fio.number(latency, "mean") / 1000,
            ),
            cpu_user_percent=float(fio.number(job, "usr_cpu")),
            cpu_system_percent=float(fio.number(job, "sys_cpu")),
            device_bytes_written=device_bytes,
            admissible=reason is None,
            reason=reason,
        )
