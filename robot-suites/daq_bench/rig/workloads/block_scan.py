"""The block-size scan: sequential O_DIRECT writes with fio and, where asked for, daqwriter; one point per block size
(DUNE paper, figure 1).

A short point draws the curve and decides nothing. With `confirm` every large block size is measured again, several times and for
longer; the throughput of large blocks is judged by these repetitions (docs/scenarios-scans.md)."""

from __future__ import annotations

from typing import Any

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_model.base.units import binary_label
from daq_bench.bench_model.documents.results import WritePoint
from daq_bench.bench_model.documents.struct import checked
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.statistics.plateau import LARGE_BLOCK_BYTES, RULE, deciding_point, find_plateau, is_large
from daq_bench.bench_model.workloads.block_scan import BlockScan, LargeBlocks, LargeRepetition, Plateau
from daq_bench.bench_model.workloads.scan import SAMPLE_S
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.workloads.shared import scan
from daq_bench.rig.workloads.shared.base import Report, Workload
from daq_bench.rig.workloads.shared.plan import Ground, Step
from daq_bench.rig.workloads.shared.scan import FileScan, Parameters
from daq_bench.rig.workloads.shared.site import Site
from daq_bench.rig.workloads.shared.write_point import measure_write

PLATEAU_METRICS = ("block_scan.plateau_throughput", "block_scan.plateau_block_size")
LARGE_BLOCK_METRIC = "block_scan.large_block_throughput"


def _measure(site: Site, tool: str, size: int, own: Parameters, suffix: str) -> WritePoint:
    return measure_write(site, tool, SCAN.file, size, own, f"{size}{suffix}")


SCAN = FileScan("block scan", "block-scan.bin", _measure, lambda size: f"block size {binary_label(size)}")


def plan(scenario: Scenario, ground: Ground) -> list[Step]:
    own = scenario.workloads["block_scan"]
    asked = [
        ("points", scan.point_s(own), len(own["block_sizes"])),
        ("repetitions", scan.point_s(_longer(own)), len(turns(own))),
    ]
    return [step for tool in scan.tools_of(own) for step in SCAN.steps(tool, own["file_size"], ground, asked)]


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


def _check(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    scan.check_sizes(scenario, "block_scan")
    parameters = scenario.workloads["block_scan"]
    listed = parameters.get(
        "yields", ["block_scan.daqwriter_large_block_throughput"]
    )  # left out: all of the workload's metrics
    asked = [metric for metric in listed if metric.startswith("block_scan.daqwriter_")]
    if asked and "daqwriter" not in scan.tools_of(parameters):
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


def every_block_size_should_have_been_measured(context: RunContext, scan: BlockScan) -> None:
    """Fails when a point of the scan is missing; a masked point is there, with its reason."""
    asked = context.scenario.workloads["block_scan"]["block_sizes"]
    for one in scan.scans:
        measured = [point.block_bytes for point in one.points]
        if measured != asked:
            raise AssertionError(f"asked for block sizes {asked} B, measured {measured} B with {one.tool}")


def every_large_block_size_should_have_been_repeated(context: RunContext, scan: BlockScan) -> None:
    """Fails when a repetition of a large block size is missing; one that does not count is there, with its reason."""
    asked = turns(context.scenario.workloads["block_scan"])
    for one in scan.scans:
        found = [(again.repetition, again.block_bytes) for again in one.large_blocks.repetitions]
        if asked and found != asked:
            raise AssertionError(f"asked for the repetitions {asked} (number, B), measured {found} with {one.tool}")


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
        scan.at_least_half_of_the_points_should_be_admissible,
    ),
)


def run_tools(site: Site, own: Parameters, report: Report) -> dict[str, Any]:
    """results/block_scan.json: fio's scan, with those of the other tools that the scenario names in `others`."""
    again = turns(own)
    found = SCAN.run(
        site, own, report, own["block_sizes"], lambda *_: again, len(scan.tools_of(own)) * len(again), _longer(own)
    )
    first, *others = [
        document(
            one.version, own, one.points, [repetition_of(point, number) for number, point in one.again], one.tool,
            one.condition,
        )
        for one in found
    ]  # fmt: skip
    reasons = {
        name.replace("block_scan.", f"block_scan.{other['tool']}_"): why
        for other in others
        for name, why in other["reasons"].items()
    }
    return {**first, "others": others, "reasons": first["reasons"] | reasons}


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
            sample_s=SAMPLE_S,
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
