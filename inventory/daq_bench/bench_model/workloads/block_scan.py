"""The scan over block sizes: what covers its plan. bench_model.statistics.plateau has its plateau."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from daq_bench.bench_model.base.units import binary_label
from daq_bench.bench_model.documents.results import WritePoint
from daq_bench.bench_model.documents.struct import Amount, Closed, Document, Ordinal, Positive
from daq_bench.bench_model.documents.struct import Count as Whole
from daq_bench.bench_model.statistics.plateau import find_plateau, is_large
from daq_bench.bench_model.workloads.model import RUNTIME_MIN, Count, Model, stated
from daq_bench.bench_model.workloads.plan import (
    INVALIDATES,
    Plan,
    Problem,
    column,
    counting,
    follows,
    rows,
    sampled,
    with_counter,
)


class LargeRepetition(Closed, frozen=True):
    """`repetition` counts each block size apart. Throughput in B/s, null where the repetition does not count; `reason`: why not."""

    repetition: Ordinal
    throughput_bytes_per_s: Amount | None
    block_bytes: Annotated[int, Meta(ge=512)]
    throughput_bytes_per_s_samples: list[Amount]
    bytes_written: Whole
    runtime_s: Amount
    device_bytes_written: int | None
    admissible: bool
    reason: str | None

    def __post_init__(self) -> None:
        if (self.throughput_bytes_per_s is None, self.reason is None) != (not self.admissible, self.admissible):
            raise ValueError("a repetition either counts and has a throughput, or has a reason why not")


class LargeBlocks(Closed, frozen=True, kw_only=True):
    """The scan's lowest point from a block size on, null if one of them does not count; and the repetitions that are judged: every large
    block size in turn, as often as `confirm` asks. Without it the lowest large point stands alone."""

    throughput_bytes_per_s: float | None
    throughput_bytes_per_s_samples: list[Amount] | UnsetType = UNSET
    from_block_bytes: int
    seconds_per_repetition: Positive
    repetitions: list[LargeRepetition]


class Plateau(Closed, frozen=True):
    throughput_bytes_per_s: float | None
    from_block_bytes: int | None
    rule: str


class BlockScan(Closed, frozen=True):
    """results/block_scan.json. `condition`: fresh or overwritten. `others`: the same scan with further tools; fio's is the document's own.
    `reasons`: why a metric of this scan has no value, by metric."""

    schema_version: Literal[1]
    tool: str
    tool_version: str
    io_depth: Ordinal
    threads: Ordinal
    seconds_per_point: Positive
    ramp_s: Amount
    sample_s: Positive
    file_bytes: Ordinal
    direct: bool
    condition: str
    points: list[WritePoint]
    plateau: Plateau
    large_blocks: LargeBlocks
    reasons: dict[str, str]
    others: list[BlockScan] | UnsetType = UNSET

    @property
    def scans(self) -> list[BlockScan]:
        """The scan of each tool, this one first."""
        return [self, *(self.others or ())]

    @property
    def measured_again(self) -> list[LargeRepetition]:
        """The repetitions of large blocks; none where there is one, which is the scan's own point and was not measured again."""
        found = self.large_blocks.repetitions
        return found if len(found) > 1 else []

    def __post_init__(self) -> None:
        if not self.direct:
            raise ValueError("the writes went through the page cache")


def coverage(plan: Plan, document: Document) -> Iterator[Problem]:
    tools = plan.parameters.get("tools") or ["fio"]
    scans = [document, *document["others"]]
    yield from rows("the scan with", tools, [scan["tool"] for scan in scans])
    for scan in scans:
        points = scan["points"]
        yield from rows(
            f"{scan['tool']}: block size", plan.parameters["block_sizes"], column(points, "block_bytes"), binary_label
        )
        named = [(binary_label(one["block_bytes"]), one) for one in points]
        yield from counting(f"{scan['tool']}: block size", named)
        yield from sampled(f"{scan['tool']}: block size", scan["sample_s"], named)
        yield from with_counter(f"{scan['tool']}: block size", plan, named)
        plateau = find_plateau(
            [(one["block_bytes"], one["throughput_bytes_per_s"]) for one in points if one["admissible"]]
        )
        made = (plateau.throughput_bytes_per_s, plateau.from_block_bytes) if plateau else (None, None)
        said = scan["plateau"]["throughput_bytes_per_s"], scan["plateau"]["from_block_bytes"]
        yield from follows(f"{scan['tool']}: the plateau", said, made)

        yield from _large_blocks(plan, scan)


def _large_blocks(plan: Plan, scan: Document) -> Iterator[Problem]:
    """Each large block size as often as `confirm` asks for; without it the scan's own lowest point stands there, once."""
    asked, found = plan.parameters.get("confirm"), scan["large_blocks"]["repetitions"]
    what = f"{scan['tool']}: the repetition of"
    entries = [(f"{binary_label(one['block_bytes'])}, number {one['repetition']}", one) for one in found]
    if asked:
        large = [size for size in plan.parameters["block_sizes"] if is_large(size)]
        planned = [f"{binary_label(size)}, number {n}" for n in range(1, asked["repetitions"] + 1) for size in large]
        yield from rows(what, planned, [name for name, _ in entries])
        if scan["large_blocks"]["seconds_per_repetition"] != asked["seconds_per_repetition"]:
            yield "the repetitions of large blocks were asked to last otherwise than the scenario says", INVALIDATES
        short = [name for name, one in entries if one["runtime_s"] < RUNTIME_MIN * asked["seconds_per_repetition"]]
        yield from (f"{what} {name} lasted too short" for name in short)
    yield from counting(what, entries)
    yield from sampled(what, scan["sample_s"], entries)
    yield from with_counter(what, plan, entries)


def _times(plan: Plan, metric: str) -> int:
    """Only large blocks are measured again."""
    again = plan.parameters.get("confirm", {}).get("repetitions", 1)
    return int(again) if metric.endswith("large_block_throughput") else 1


MODEL = Model(
    coverage,
    (
        Count("seconds_per_point", stated("seconds_per_point")),
        Count("file_bytes", stated("file_size")),
        Count("points[].runtime_s", stated("seconds_per_point"), RUNTIME_MIN),
    ),
    times=_times,
    times_field=lambda metric: "confirm.repetitions" if metric.endswith("large_block_throughput") else "",
    result=BlockScan,
)
