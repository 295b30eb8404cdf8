"""The scan over patterns, block sizes, depths and jobs of reads: its result's type, its summary, and what covers its plan."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Literal

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.units import binary_label
from daq_bench.bench_model.documents.struct import Document, Struct, as_document, read
from daq_bench.bench_model.workloads.model import RUNTIME_MIN, Count, Model, stated
from daq_bench.bench_model.workloads.plan import INVALIDATES, Plan, Problem, counting, follows, rows
from daq_bench.bench_model.workloads.scan import Tool, why_masked

AGREEING = 0.02  # [P] share by which a tool's own rate may differ from its bytes over its time
LATE_S = 0.01  # fio's allowance for a row of its log that comes early or late
BYTES_OFF = 0.1  # [P] share of the bytes that rounded rates may leave out
BY_TOOL = "the tool says it read"
RULE = (
    "Two points of the first tool, with the highest rate of sequential reads and with the most random reads of the smallest "
    "block per second, are measured again as often as the scenario repeats, and judged by these repetitions alone, since the highest of "
    "many is lucky; latency is the 99.9th percentile at the smallest depth with the fewest jobs"
)
METRICS = {key: f"read_scan.{key}" for key in ("sequential_throughput", "random_rate", "random_latency_p99_9")}
Pattern = Literal["sequential", "random"]
Key = tuple[Pattern, int, int, int]  # pattern, block size, depth, jobs


class Latency(Struct, frozen=True):
    """us"""

    mean: float
    p50: float
    p99: float
    p99_9: float
    max: float


class Point(Struct, frozen=True):
    """Reads of one pattern, with one block size and depth of each job. `reason`: why it does not count."""

    pattern: Pattern
    block_bytes: int
    io_depth: int
    jobs: int
    throughput_bytes_per_s: float
    iops: float
    bytes_read: int
    runtime_s: float
    samples_bytes_per_s: list[float]
    latency_us: Latency
    device_bytes_read: int | None
    reason: str | None

    @property
    def key(self) -> Key:
        return self.pattern, self.block_bytes, self.io_depth, self.jobs


class Scan(Struct, frozen=True):
    tool: Tool
    tool_version: str
    points: list[Point]


class Best(Struct, frozen=True):
    """The point of the grid that a metric is of. `value` in the metric's unit."""

    value: float
    block_bytes: int
    io_depth: int
    jobs: int


class ReadScan(Struct, frozen=True):
    """results/read_scan.json. `again`: the repetitions of the best sequential point, then those of the best random one."""

    schema_version: Literal[1]
    seconds_per_point: float
    ramp_s: float
    sample_s: float
    file_bytes: int
    scans: list[Scan]
    again: list[Point]
    rule: str
    sequential_throughput: Best | None
    random_rate: Best | None
    random_latency_p99_9: Best | None
    reasons: dict[str, str]


def grid(parameters: Document) -> list[Key]:
    """The points of each tool in their order; sizes in bytes."""
    return list(product(*(parameters[key] for key in ("patterns", "block_sizes", "io_depths", "jobs"))))


def name_of(key: Key) -> str:
    pattern, block, depth, jobs = key
    return f"{pattern} {binary_label(block)}, depth {depth}, {jobs} job{'s' if jobs > 1 else ''}"


def point_of(
    key: Key,
    seconds: float,
    bytes_read: int,
    runtime_s: float,
    samples: list[float],
    latency: Latency,
    device_bytes: int | None,
) -> Point:
    """A point from a tool's own counts. `seconds`: that it was asked to run for; `samples`: B/s."""
    rate = bytes_read / runtime_s if runtime_s else 0.0
    reason = why_masked(runtime_s, seconds, samples, BY_TOOL, bytes_read, device_bytes)
    return Point(*key, rate, rate / key[1], bytes_read, runtime_s, samples, latency, device_bytes, reason)


def chosen(points: Sequence[Point]) -> list[Key]:
    """Returns the points to measure again: the best one of each pattern."""
    best = _best(points)
    patterns: dict[Pattern, Best | None] = {"sequential": best["sequential_throughput"], "random": best["random_rate"]}
    return [(name, one.block_bytes, one.io_depth, one.jobs) for name, one in patterns.items() if one]


def result(parameters: Document, sample_s: float, scans: Sequence[Scan], again: Sequence[Point]) -> Document:
    """results/read_scan.json from the tools' points."""
    best = _best(scans[0].points)
    return as_document(
        ReadScan(
            schema_version=1,
            seconds_per_point=float(parameters["seconds_per_point"]),
            ramp_s=float(parameters["ramp_s"]),
            sample_s=sample_s,
            file_bytes=parameters["file_size"],
            scans=list(scans),
            again=list(again),
            rule=RULE,
            **best,
            reasons={METRICS[key]: "no point of this kind counts" for key, found in best.items() if found is None},
        )
    )


def _best(points: Sequence[Point]) -> dict[str, Best | None]:
    counted = [point for point in points if point.reason is None]
    sequential = [point for point in counted if point.pattern == "sequential"]
    smallest = min((point.block_bytes for point in points), default=0)
    random = [point for point in counted if point.pattern == "random" and point.block_bytes == smallest]
    fastest = max(sequential, key=lambda point: point.throughput_bytes_per_s, default=None)
    busiest = max(random, key=lambda point: point.iops, default=None)
    alone = next((point for point in random if point.key[2:] == min(one.key[2:] for one in points)), None)
    return {
        "sequential_throughput": _of(fastest, fastest.throughput_bytes_per_s) if fastest else None,
        "random_rate": _of(busiest, busiest.iops) if busiest else None,
        "random_latency_p99_9": _of(alone, alone.latency_us.p99_9) if alone else None,
    }


def _of(point: Point, value: float) -> Best:
    return Best(value, point.block_bytes, point.io_depth, point.jobs)


def coverage(plan: Plan, document: Document) -> Iterator[Problem]:
    """Every tool measured every point for its time, each point's figures agree, and the summary is the one of these points."""
    try:
        found = read(document, ReadScan, plan.file)
    except BenchError as error:
        yield str(error), INVALIDATES
        return
    own = plan.parameters
    yield from follows("the file's size", found.file_bytes, own["file_size"])
    yield from rows("the tool", own["tools"], [scan.tool for scan in found.scans])
    for scan in found.scans:
        what = f"{scan.tool}: the point"
        yield from rows(what, grid(own), [point.key for point in scan.points], name_of)
        yield from counting(what, [(name_of(point.key), as_document(point)) for point in scan.points])
        for point in scan.points:
            yield from _agrees(f"{what} {name_of(point.key)}", point, own["seconds_per_point"], found.sample_s)
    points = [*(point for scan in found.scans for point in scan.points), *found.again]
    if len({point.device_bytes_read is None for point in points}) > 1:
        yield "the device counted the bytes of some points and not of others", INVALIDATES
    if found.scans:
        yield from _again(plan, found)
        yield from follows("the result", document, result(own, found.sample_s, found.scans, found.again))


def _again(plan: Plan, found: ReadScan) -> Iterator[Problem]:
    planned = [(key, number) for key in chosen(found.scans[0].points) for number in range(1, plan.repetitions + 1)]
    counted: Counter[Key] = Counter()
    numbered = []
    for point in found.again:
        counted[point.key] += 1
        numbered.append((point.key, counted[point.key]))
        name = f"repetition {counted[point.key]} of {name_of(point.key)}"
        yield from counting("the", [(name, as_document(point))])
        yield from _agrees(name, point, plan.parameters["seconds_per_point"], found.sample_s)
    yield from rows("the repetition of", planned, numbered, lambda one: f"{name_of(one[0])}, number {one[1]}")


def _agrees(name: str, point: Point, seconds: float, sample_s: float) -> Iterator[Problem]:
    masked = why_masked(
        point.runtime_s, seconds, point.samples_bytes_per_s, BY_TOOL, point.bytes_read, point.device_bytes_read
    )
    if masked != point.reason:
        yield f"{name}: the reason {point.reason!r} does not follow, {masked!r} does", INVALIDATES
    told = point.latency_us
    rate = point.bytes_read / point.runtime_s if point.runtime_s > 0 else 0.0
    said: dict[str, Any] = {
        "its rate is not its bytes over its time": _close(point.throughput_bytes_per_s, rate),
        "its reads per second are not its rate over the block": _close(point.iops, rate / point.block_bytes),
        "its samples do not account for its bytes": _accounted(point, sample_s),
        "its latencies do not ascend": 0 < told.p50 <= told.p99 <= told.p99_9,
    }
    if point.reason is None:
        yield from ((f"{name}: {text}", INVALIDATES) for text, holds in said.items() if not holds)


def _accounted(point: Point, sample_s: float) -> bool:
    """A sample for each window of the run; the first and the last may be short."""
    samples = point.samples_bytes_per_s
    windows = int((point.runtime_s + LATE_S) / sample_s)
    off = abs(math.fsum(samples) * sample_s - point.bytes_read)
    whole = len(samples) in (windows, windows + 1)  # the last one of daqwriter may be half a window
    return whole and off <= BYTES_OFF * point.bytes_read + 2 * max(samples, default=0.0) * sample_s


def _close(one: float, other: float, share: float = AGREEING) -> bool:
    return math.isclose(one, other, rel_tol=share)


MODEL = Model(
    coverage,
    (
        Count("seconds_per_point", stated("seconds_per_point")),
        Count("file_bytes", stated("file_size")),
        Count("scans[].points[].runtime_s", stated("seconds_per_point"), RUNTIME_MIN),
    ),
    result=ReadScan,
)
