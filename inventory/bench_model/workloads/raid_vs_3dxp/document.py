"""The type of results/raid_vs_3dxp.json: the rounds of a comparison, as measured."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from bench_model.documents.struct import Amount, Block, Closed, Count, Ordinal, Positive


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


class Write(Closed, frozen=True):
    """`throughput_bytes_per_s`: B/s, the final flush included; `throughput_bytes_per_s_samples`: B/s of each whole interval, in time
    order; `process_cpu_s`: user and system CPU s of daqwriter; `machine_kernel_cpu_s`: system, interrupt and deferred interrupt CPU s
    of the whole machine; `machine_cpu_s`: busy CPU s of the whole machine; `machine_interval_s`: s that the machine's counters span;
    `md_threads_cpu_s`: CPU s of the array's kernel threads; `device_bytes_written`: B by each drive's own counter; `failed`: an I/O
    error ended it"""

    begin_s: float
    end_s: float
    bytes_written: Count
    throughput_bytes_per_s: Amount
    throughput_bytes_per_s_samples: list[Amount]
    latency_us: dict[str, Amount | None]
    process_cpu_s: Amount
    machine_kernel_cpu_s: float
    machine_cpu_s: float
    machine_interval_s: Amount
    md_threads_cpu_s: dict[str, float]
    device_bytes_written: dict[str, int]
    failed: bool
    admissible: bool
    reason: str | None


class Paced(Closed, frozen=True):
    begin_s: float
    end_s: float
    offered_bytes_per_s: Amount
    achieved_fraction: Annotated[float, Meta(ge=0, le=1)]
    offered_superchunks: Count
    lost_superchunks: Count
    busy_episodes: Count
    latency_us: dict[str, Amount | None]
    failed: bool
    admissible: bool
    reason: str | None


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
    with; `judged_set`: the set that requirements bound; `targets`: every target by name, as it was when it was measured"""

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
