"""The types of results/raid_vs_3dxp.json, the rounds of a comparison as measured, and of the comparison that follows from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from daq_bench.bench_model.documents.struct import Amount, Block, Closed, Count, Ordinal, Positive
from daq_bench.bench_model.documents.tools.daqwriter import Errno
from daq_bench.bench_model.statistics.paired import PairedEstimate

Quantity = Literal["throughput", "latency_p99", "latency_p99_9", "kernel_cpu"]


class WriteLoad(Closed, frozen=True):
    """`write_size`: B that each visit writes; `block_size`: B per write; `io_depth`: writes in flight of each thread"""

    write_size: Ordinal
    block_size: Block
    threads: Ordinal
    io_depth: Ordinal


class PacedLoad(Closed, frozen=True):
    """`offered_bytes_per_s`: B/s, the same for every target"""

    offered_bytes_per_s: Positive
    seconds: Positive


class Target(Closed, frozen=True):
    """`device`: drive or array; null: none is known beneath; `layout`: the inventory's storage block; null: the folder was there already;
    `tuning_wrong`: settings of its drives that did not take"""

    name: str
    kind: Literal["scratch-file", "filesystem"]
    directory: str
    path: str
    filesystem: str | None
    device: dict[str, Any] | None
    drives: list[dict[str, Any]]
    layout: dict[str, Any] | None
    tuning_wrong: list[str]


class Window(Closed, frozen=True):
    """`begin_s`: s since 1970, the candidate's clock; `end_s`: s since 1970, the candidate's clock"""

    begin_s: float
    end_s: float


class WriteLatency(Closed, frozen=True):
    """us, submission to completion."""

    p50: Amount
    p99: Amount
    max: Amount


class PacedLatency(Closed, frozen=True):
    """us, from a superchunk's intended arrival to the completion of its write. Null: too few values lie beyond the percentile."""

    p50: Amount | None
    p90: Amount | None
    p99: Amount | None
    p99_9: Amount | None
    p99_99: Amount | None
    max: Amount


class Write(Closed, frozen=True):
    """`throughput_bytes_per_s`: B/s, the final flush included; `throughput_bytes_per_s_samples`: B/s of each whole interval, in time
    order; `process_cpu_s`: user and system CPU s of daqwriter; `machine_kernel_cpu_s`: system, interrupt and deferred interrupt CPU s
    of the whole machine; `machine_cpu_s`: busy CPU s of the whole machine; `machine_interval_s`: s that the machine's counters span;
    `md_threads_cpu_s`: CPU s of the array's kernel threads; `device_bytes_written`: B by each drive's own counter; `failed`: an I/O
    error ended it; `errno`: the target's answer then"""

    begin_s: float
    end_s: float
    bytes_written: Count
    throughput_bytes_per_s: Amount
    throughput_bytes_per_s_samples: list[Amount]
    latency_us: WriteLatency
    process_cpu_s: Amount
    machine_kernel_cpu_s: float
    machine_cpu_s: float
    machine_interval_s: Amount
    md_threads_cpu_s: dict[str, float]
    device_bytes_written: dict[str, int]
    failed: bool
    admissible: bool
    reason: str | None
    errno: Errno | UnsetType = UNSET


class Paced(Closed, frozen=True):
    begin_s: float
    end_s: float
    offered_bytes_per_s: Amount
    achieved_fraction: Annotated[float, Meta(ge=0, le=1)]
    offered_superchunks: Count
    lost_superchunks: Count
    busy_episodes: Count
    latency_us: PacedLatency
    failed: bool
    admissible: bool
    reason: str | None
    errno: Errno | UnsetType = UNSET


class Visit(Closed, frozen=True):
    """`position`: place in the round, from 0"""

    target: str
    position: Count
    write: Write
    paced: Paced


class Round(Closed, frozen=True):
    """`group`: sets of one group are up together"""

    group: Ordinal
    round: Ordinal
    reference_first: bool
    idle: Window
    visits: Annotated[list[Visit], Meta(min_length=2)]


class RaidVs3Dxp(Closed, frozen=True):
    """results/raid_vs_3dxp.json: what the rounds of a comparison measured. `reference`: name of the target that all sets are compared
    with; `judged_set`: the set that requirements bound; `targets`: every target by name, in its state when measured"""

    schema_version: Literal[1]
    reference: str
    sets: Annotated[list[str], Meta(min_length=1)]
    judged_set: str
    write: WriteLoad
    paced: PacedLoad
    targets: Annotated[dict[str, Target], Meta(min_length=2)]
    rounds: Annotated[list[Round], Meta(min_length=2)]
    limits: list[str]
    invalid: list[str]
    reasons: dict[str, str]


class Drive(Closed, frozen=True):
    serial: str | None
    model: str | None


class Middle(Closed, frozen=True, kw_only=True):
    """Sums up the values that count. `mean`: geometric."""

    n: Count
    mean: Positive | None
    median: float | None
    min: float | None
    max: float | None


class Rates(Middle, frozen=True, kw_only=True):
    """`values`: of each round; None where it is masked."""

    values: list[Positive | None]


class Percentiles(Closed, frozen=True):
    """us."""

    p50: Middle
    p99: Middle
    p99_9: Middle
    p99_99: Middle
    max: Middle


class Masked(Closed, frozen=True):
    round: Ordinal
    part: Literal["write", "paced"]
    reason: str


class Powers(Closed, frozen=True):
    """`reason`: why some rounds, or all of them, have no value."""

    n: Count
    median: float | None
    min: float | None
    max: float | None
    reason: str | None


class Figure(Closed, frozen=True):
    """A value with its basis, or the reason why there is none."""

    value: float | None
    basis: str | None = None
    reason: str | None = None


class Price(Closed, frozen=True):
    """Describes a target's drives."""

    currency: str | None
    total: Amount | None
    per_tb: Amount | None
    per_gb_per_s: Amount | None
    basis: str | None = None
    reason: str | None = None


class Compared(Closed, frozen=True):
    """All that the table of the sets says of one target. `raid_level`: None for a drive. `device_bytes_per_byte`: B that the drives were
    asked to write per B that the target took. `md_threads_s_per_gb`: CPU s of the array's own kernel threads."""

    name: str
    role: Literal["reference", "set"]
    raid_level: Count | None
    chunk: str | None
    drives: list[Drive]
    filesystem: str | None
    capacity_bytes: Count | None
    throughput_bytes_per_s: Rates
    latency_us: Percentiles
    lost_superchunks: Count
    masked: list[Masked]
    kernel_cpu_s_per_gb: Middle
    process_cpu_s_per_gb: Middle
    md_threads_s_per_gb: Amount | None
    device_bytes_per_byte: Amount | None
    added_power_w: Powers
    added_w_per_gb_per_s: Powers
    rack_units: Figure
    gb_per_s_per_u: Amount | None
    endurance_bytes: Figure
    cost: Price


class Turn(Closed, frozen=True):
    """One round of a set. `cause`: what disturbed it; None for an undisturbed one."""

    round: Ordinal
    reference_first: bool
    reference_value: Positive | None
    set_value: Positive | None
    ratio: Positive | None
    cause: str | None
    outlier: bool


class Comparison(Closed, frozen=True):
    """One quantity of one set against the reference of the same rounds. `undisturbed`: without the disturbed rounds, where there are any.
    `reason`: why no round counts."""

    set: str
    quantity: Quantity
    unit: str
    rounds: list[Turn]
    result: PairedEstimate | None
    undisturbed: PairedEstimate | None
    reason: str | None


class Disturbed(Closed, frozen=True):
    set: str
    round: Ordinal
    cause: str
    seen_in: list[Quantity]


class Judged(Closed, frozen=True):
    """The judged set's values, one of each round, as requirements bound them; None where a round has none."""

    throughput_bytes_per_s: list[Positive | None]
    throughput_samples: list[list[Amount]]
    throughput_ratio: list[Positive | None]
    latency_us_p99_9: list[Positive | None]
    latency_p99_9_ratio: list[Positive | None]
    lost_superchunks: list[Count | None]
    failed_writes: list[Count]
    kernel_cpu_s_per_gb: list[Positive | None]
    added_power_w: list[float | None]
    added_power_w_per_gb_per_s: list[float | None]
    added_energy_j_per_tb: list[float | None]
    throughput_gb_per_s_per_u: list[Amount | None]
    endurance_bytes: Amount | None


class PublishedRate(Closed, frozen=True):
    """Sequential writes of a device as others published them."""

    id: str
    model: str
    kind: str
    bytes_per_s: Positive
    qualifier: str
    basis: Literal["measured", "nameplate", "stated"]
    conditions: str
    source: str


class RaidComparison(Closed, frozen=True):
    """results/raid_comparison.json: what follows from the rounds, the telemetry and the inventory. `targets`: the reference first."""

    schema_version: Literal[1]
    confidence: float
    reference: str
    judged_set: str
    targets: Annotated[list[Compared], Meta(min_length=2)]
    comparisons: list[Comparison]
    disturbed: list[Disturbed]
    judged: Judged
    published: list[PublishedRate]
    reasons: dict[str, str]
