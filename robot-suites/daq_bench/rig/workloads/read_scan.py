"""The read scan: sequential and random O_DIRECT reads by block size, depth and jobs, with fio and with `daqwriter read`.

Each job reads a part of the file of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.documents.tools.synthetic import Read
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.workloads.read_scan import (
    Key,
    Latency,
    Point,
    ReadScan,
    Scan,
    chosen,
    grid,
    name_of,
    point_of,
    result,
)
from daq_bench.bench_model.workloads.scan import SAMPLE_S
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.workloads.shared import fio, scan
from daq_bench.rig.workloads.shared.base import Report, Workload
from daq_bench.rig.workloads.shared.fio_job import Value
from daq_bench.rig.workloads.shared.plan import Ground, Need, Step
from daq_bench.rig.workloads.shared.scan import FIO, At, FileScan, Parameters
from daq_bench.rig.workloads.shared.site import Site

FIO_PATTERN = {"sequential": "read", "random": "randread"}


def _measure(site: Site, tool: str, key: Key, own: Parameters, suffix: str) -> Point:
    pattern, block, depth, jobs = key
    name = f"{tool}-{pattern}-read-{block}-{depth}-{jobs}{suffix}"
    what = f"{'fio' if tool == FIO else 'daqwriter read'}, {name_of(key)}"
    at = At(site, own, SCAN.file, name, what, site.device_read_bytes)
    return point_of(key, own["seconds_per_point"], *(_with_fio if tool == FIO else _with_daqwriter)(at, key))


SCAN = FileScan("read scan", "workload-read-scan.bin", _measure, name_of)


def plan(scenario: Scenario, ground: Ground) -> list[Step]:
    """Each point with each tool. The first tool's best points are measured again."""
    own, found = scenario.workloads["read_scan"], list[Step]()
    for place, tool in enumerate(own["tools"]):
        points = len(grid(own)) + (0 if place else len(own["patterns"]) * scenario.repetitions)
        found += SCAN.steps(tool, own["file_size"], ground, [("reads", scan.point_s(own), points)], writing=False)
    return found


def _memory(scenario: Scenario) -> Need:
    own = scenario.workloads["read_scan"]
    size = max(own["jobs"]) * max(own["io_depths"]) * max(own["block_sizes"])
    return Need(size, f"the read scan: jobs x io_depth x block size is {size} B at most")


def _check(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    scan.ascending(scenario, "read_scan", "io_depths", "jobs")
    own = scenario.workloads["read_scan"]
    least = max(own["block_sizes"]) * max(own["jobs"])
    if own["file_size"] < least:
        raise RefusedError(
            f"{scenario.file}: workloads.read_scan.file_size: {own['file_size']} B hold no block for each job. Make it {least} B or more"
        )


def run(context: RunContext, report: Report) -> dict[str, Any]:
    """results/read_scan.json of this run."""
    site, own = Site.of(context), context.scenario.workloads["read_scan"]
    numbers = range(1, context.scenario.repetitions + 1)
    first, *_ = own["tools"]

    def again(tool: str, points: Sequence[Point]) -> list[tuple[int, Key]]:
        return [(number, key) for key in chosen(points) for number in numbers] if tool == first else []

    found = SCAN.run(site, own, report, grid(own), again, len(own["patterns"]) * len(numbers))
    scans = [Scan(one.tool, one.version, one.points) for one in found]
    return result(own, SAMPLE_S, scans, [point for _, point in found[0].again])


# bytes that were read, s, samples in B/s, latency, bytes that the device counted
Measured = tuple[int, float, list[float], Latency, int | None]


def _with_fio(at: At, key: Key) -> Measured:
    pattern, block, depth, jobs = key
    values: dict[str, Value] = {
        "NAME": at.name,
        "PATTERN": FIO_PATTERN[pattern],
        "BLOCK_BYTES": block,
        "SIZE_BYTES": at.own["file_size"] // jobs // block * block,
        "IO_DEPTH": depth,
        "JOBS": jobs,
    }
    output, log, device_bytes = at.with_fio("read-scan", values)
    side = fio.direction(fio.jobs_of(output, name_of(key))[0], "read")
    if side["latency_us"] is None:
        raise BenchError(f"fio read nothing at {name_of(key)}; its output is kept in results/raw")
    samples = fio.bandwidth_samples(log, SAMPLE_S * 1000, side["runtime_s"] * 1000, side["bytes"], jobs)
    latency = Latency(*(float(side["latency_us"][name]) for name in Latency.__struct_fields__))
    return side["bytes"], side["runtime_s"], samples, latency, device_bytes


def _with_daqwriter(at: At, key: Key) -> Measured:
    pattern, block, depth, jobs = key
    options = [f"--pattern={pattern}", f"--block-size={block}", f"--io-depth={depth}", f"--threads={jobs}"]
    said, device_bytes = at.with_daqwriter("read", Read, options, block * jobs)
    intervals = scan.after_ramp(said.series.t_s, said.series.read_bytes, at.own["ramp_s"])
    bytes_read, runtime_s = sum(count for _, _, count in intervals), sum(end - begin for begin, end, _ in intervals)
    us = said.latency_us
    latency = Latency(us.mean, us.p50, us.p99, us.p99_9, us.max)
    return bytes_read, runtime_s, scan.samples_of(intervals), latency, device_bytes


def every_point_should_have_been_measured(context: RunContext, scan: ReadScan) -> None:
    """Fails when a point of a tool's grid is missing; a masked point is there, with its reason."""
    for one in scan.scans:
        found = {point.key for point in one.points}
        missing = [name_of(key) for key in grid(context.scenario.workloads["read_scan"]) if key not in found]
        if missing:
            raise AssertionError(f"{one.tool} did not measure {'; '.join(missing)}")


WORKLOAD = Workload(
    "read_scan",
    plan,
    run,
    action="scan_reads",
    memory=_memory,
    check=_check,
    raw=True,
    checks=(every_point_should_have_been_measured, scan.at_least_half_of_the_points_should_be_admissible),
)
