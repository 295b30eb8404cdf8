"""The thread scan: sequential O_DIRECT writes by 1 ... 10 threads with several block sizes (DUNE paper, figure 2).

Each thread writes a part of the file of its own."""

from __future__ import annotations

from itertools import product
from typing import Any

from msgspec import structs

from daq_bench.bench_model.base.units import binary_label, decimal_label
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.workloads.scan import SAMPLE_S
from daq_bench.bench_model.workloads.thread_scan import ThreadPoint, ThreadScan, result, scan_of
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.workloads.shared import scan
from daq_bench.rig.workloads.shared.base import Report, Workload
from daq_bench.rig.workloads.shared.plan import Ground, Need, Step
from daq_bench.rig.workloads.shared.scan import FileScan, Parameters
from daq_bench.rig.workloads.shared.site import Site
from daq_bench.rig.workloads.shared.write_point import measure_write

Key = tuple[int, int]  # block size, threads


def _measure(site: Site, tool: str, key: Key, own: Parameters, suffix: str) -> ThreadPoint:
    block, threads = key
    point = measure_write(site, tool, SCAN.file, block, own, f"{block}-{threads}-threads{suffix}", threads)
    return ThreadPoint(threads=threads, **structs.asdict(point))


def _label(key: Key) -> str:
    return f"{key[1]} thread{'s' if key[1] > 1 else ''}, block size {binary_label(key[0])}"


SCAN = FileScan("thread scan", "thread-scan.bin", _measure, _label)


def _grid(own: Parameters) -> list[Key]:
    return list(product(own["block_sizes"], own["threads"]))


def plan(scenario: Scenario, ground: Ground) -> list[Step]:
    own = scenario.workloads["thread_scan"]
    asked = [("points", scan.point_s(own), len(_grid(own)))]
    return [step for tool in own["tools"] for step in SCAN.steps(tool, own["file_size"], ground, asked)]


def _memory(scenario: Scenario) -> Need:
    own = scenario.workloads["thread_scan"]
    threads, block, depth = max(own["threads"]), max(own["block_sizes"]), own["io_depth"]
    size = threads * block * depth
    return Need(
        size, f"io_depth: {threads} threads x {depth} blocks of {binary_label(block)} need {decimal_label(size)}"
    )


def _check(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    scan.ascending(scenario, "thread_scan", "threads")
    scan.check_sizes(scenario, "thread_scan", max(scenario.workloads["thread_scan"]["threads"]))


def run(context: RunContext, report: Report) -> dict[str, Any]:
    """results/thread_scan.json of this run."""
    return run_thread_scan(Site.of(context), context.scenario.workloads["thread_scan"], report)


def run_thread_scan(site: Site, own: Parameters, report: Report) -> dict[str, Any]:
    """Runs every tool's points; the metrics are those of the first tool."""
    found = SCAN.run(site, own, report, _grid(own))
    return result(own, SAMPLE_S, [scan_of(one.tool, one.version, one.condition, one.points) for one in found])


def every_number_of_threads_should_have_been_measured(context: RunContext, scan: ThreadScan) -> None:
    """Fails when a point of a tool's grid is missing; a masked point is there, with its reason."""
    asked = set(_grid(context.scenario.workloads["thread_scan"]))
    for one in scan.scans:
        missing = asked - {(point.block_bytes, point.threads) for point in one.points}
        if missing:
            raise AssertionError(f"{one.tool} did not measure (block size in B, threads): {sorted(missing)}")


WORKLOAD = Workload(
    "thread_scan",
    plan,
    run,
    action="scan_numbers_of_threads",
    memory=_memory,
    check=_check,
    raw=True,
    checks=(
        every_number_of_threads_should_have_been_measured,
        scan.at_least_half_of_the_points_should_be_admissible,
    ),
)
