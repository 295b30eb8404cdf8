"""The types of results/saturation.json and of what follows from it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from daq_bench.bench_model.documents.results import Conditioning, WearEntry, WearExperiment
from daq_bench.bench_model.documents.struct import Amount, Closed, Count, Ordinal, Positive


class Series(Closed, frozen=True):
    """`t_s`: s after the start: end of each interval. `written_bytes`: B in each interval."""

    interval_s: Positive
    t_s: list[float]
    written_bytes: list[Count]


class Pass(Closed, frozen=True):
    """`capacity_bytes`: B of the drive as it said before the pass; for a file: what its file system had free for it then. `asked_bytes`:
    B, whole blocks. `condition`: daqwriter's own word. `write_s`: s from the start to the last completion. `device_bytes_written`: B by
    the kernel's counter of the device; null where no single one is beneath."""

    number: Ordinal
    target_kind: Literal["raw-device", "scratch-file"]
    capacity_bytes: Ordinal
    asked_bytes: Ordinal
    conditioning: Conditioning
    condition: Literal["fresh", "overwrite", "none"]
    status: Literal["complete", "interrupted", "failed"]
    error: str | None
    ended_by: Literal["bytes", "span", "duration", "signal", "error"]
    written_bytes: Count
    write_s: Amount
    flush_s: Amount
    device_bytes_written: int | None
    series: Series
    admissible: bool
    reason: str | None


class Saturation(Closed, frozen=True):
    """results/saturation.json: passes over a fresh target; what follows from them is in results/saturation_analysis.json.
    `cliff_free_bytes`: B that are to be written before the first cliff."""

    schema_version: Literal[1]
    tool: Literal["daqwriter"]
    tool_version: str
    block_bytes: Annotated[int, Meta(ge=4096)]
    io_depth: Ordinal
    sample_s: Positive
    purge: Literal["discard", "format"]
    cliff_free_bytes: Ordinal
    repetitions: list[Pass]
    limits: list[str]
    invalid: list[str]
    experiment: WearExperiment
    write_budget_bytes: Ordinal
    spent_before_bytes: Count
    spent_bytes: Count
    left_bytes: int
    ledger: list[WearEntry]


class Cliff(Closed, frozen=True):
    """`at_bytes`: B written before it, best estimate. `interval_bytes`: 95 % interval of its place, B. `share_of_capacity`: at_bytes over
    capacity_bytes. `before_bytes_per_s`: B/s since the start, or the cliff before. `after_bytes_per_s`: B/s to the next cliff, or the
    end."""

    at_bytes: int
    interval_bytes: Annotated[list[int], Meta(min_length=2, max_length=2)]
    share_of_capacity: float
    at_s: float
    before_bytes_per_s: float
    after_bytes_per_s: float
    fall_fraction: float


class Level(Closed, frozen=True):
    """`samples`: B/s."""

    bytes_per_s: Amount
    samples: list[Amount]


class Slowest(Closed, frozen=True):
    """The slowest hundredth of the bytes."""

    bytes_per_s: float
    from_bytes: int
    to_bytes: int


class Row(Closed, frozen=True):
    """`finding`: unknown: the pass cannot tell, and reason says why. `step_s`: s of a sample, after averaging a long series down.
    `throughput_bytes_per_s_samples`: B/s, from the first byte on. `before`: before the first cliff, of cliff_free_bytes at most.
    `sustained`: after the last cliff; all of the pass where there is none. `slowest`: the slowest hundredth of the bytes.
    `bytes_before_cliff`: B, the lower end of the first cliff's interval. `early_cliffs`: whether the first cliff lies before
    cliff_free_bytes; null: not decided. `duration`: s."""

    number: int
    finding: Literal["cliff", "none", "unknown"]
    reason: str | None
    asked_bytes: int
    written_bytes: int
    unwritten_bytes: int
    capacity_bytes: int
    step_s: float | None
    throughput_bytes_per_s_samples: list[Amount]
    cliff_list: list[Cliff]
    before: Level | None
    sustained: Level | None
    slowest: Slowest | None
    bytes_before_cliff: int | None
    rate_before_cliff: float | None
    sustained_rate: float | None
    slowest_rate: float | None
    early_cliffs: Literal[0, 1] | None
    cliffs: int | None
    duration: float | None


class SaturationAnalysis(Closed, frozen=True):
    """results/saturation_analysis.json: cliffs of the rate against bytes written."""

    schema_version: Literal[1]
    rule: str
    cliff_free_bytes: Ordinal
    repetitions: list[Row]
    reasons: dict[str, str]
