"""Tells what `daqwriter write` and `daqwriter read` say of their loads."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from daq_bench.bench_model.documents.struct import Amount, Block, Closed, Count, Ordinal, Positive
from daq_bench.bench_model.documents.tools.daqwriter import (
    Ended,
    Errno,
    Latency,
    Load,
    ProcessCpu,
    Series,
    Several,
    SwitchedCpu,
)


class WorkingThread(SwitchedCpu, frozen=True, kw_only=True):
    """A thread's work during the load. `cpus`: CPU numbers that it was bound to; empty: not bound. `bytes`: B written or read. `end_s`: s
    from the start to its last completion."""

    cpus: list[Count]
    bytes: Count
    end_s: Amount


class SyntheticCpu(ProcessCpu, frozen=True, kw_only=True):
    """`user_seconds_per_gb`: CPU s per GB written or read. `system_seconds_per_gb`: CPU s per GB written or read."""

    user_seconds_per_gb: Amount
    system_seconds_per_gb: Amount


class SyntheticParameters(Closed, frozen=True, kw_only=True):
    """Tells what was asked for and chosen. `target`: path, or null for the null sink; several as --target takes them. `targets`: number of
    targets. `target_kind`: mixed: see targets. `filesystem`: of a scratch file, the first target's of several. `pattern`: order
    within a thread's part. `preallocate`: the file was reserved with fallocate before. `block_bytes`: B of a request. `threads`: working
    on each target. `io_depth`: most requests in flight of each thread. `bytes`: B asked for of each target, all its threads; null: no
    limit. `duration_s`: s asked for, at most; null: no limit. `span_bytes`: B of all targets that are written, or written once and read;
    shared out among the threads of each. `buffer_bytes`: B of block buffers, all threads of all targets. `seed`: of data and order.
    `numa_node`: of the drive, of several the first one's; null: unknown. `placement_note`: how the CPUs were chosen."""

    target: str
    targets: Several | UnsetType = UNSET
    target_kind: Literal["scratch-file", "raw-device", "null", "mixed"]
    filesystem: str | None
    pattern: Literal["sequential", "random"]
    preallocate: bool
    block_bytes: Block
    threads: Several
    io_depth: Annotated[int, Meta(ge=1, le=1024)]
    bytes: Ordinal | None
    duration_s: Positive | None
    span_bytes: Block
    buffer_bytes: Block
    seed: Count
    numa_node: Count | None
    placement_note: str


class WriteParameters(SyntheticParameters, frozen=True, kw_only=True):
    """`condition`: fresh: every block once, of a new file or a discarded device; overwrite: the span had been written once before; none:
    null sink."""

    condition: Literal["fresh", "overwrite", "none"]
    data: Literal["incompressible", "zeros"]


class ReadParameters(SyntheticParameters, frozen=True, kw_only=True):
    """`condition`: written before: the command wrote the span once, each page with a stamp of its own, and compared the stamps of what it
    read; none: null sink."""

    condition: Literal["written before", "none"]
    data: Literal["incompressible"]


class SyntheticTime(Closed, frozen=True, kw_only=True):
    """`prepare_s`: s before the load: memory, preallocation, discarding or writing the span."""

    prepare_s: Amount


class WriteTime(SyntheticTime, frozen=True, kw_only=True):
    """`write_s`: s from the start to the last completion. `flush_s`: s of the final flush."""

    write_s: Amount
    flush_s: Amount


class ReadTime(SyntheticTime, frozen=True, kw_only=True):
    """`read_s`: s from the start to the last completion."""

    read_s: Amount


class WriteSeries(Series, frozen=True, kw_only=True):
    """`written_bytes`: B in each interval."""

    written_bytes: list[Count]


class ReadSeries(Series, frozen=True, kw_only=True):
    """`read_bytes`: B in each interval."""

    read_bytes: list[Count]


class SyntheticTarget(Closed, frozen=True, kw_only=True):
    """`target`: path as given, or null for the null sink. `filesystem`: of a scratch file. `node`: NUMA node of the drive; null:
    unknown. `placement_note`: how the CPUs were chosen. `threads`: working on it. `span_bytes`: B of it that are written, or written once
    and read. `status`: interrupted: also when another target failed. `error`: what failed here, with offset and errno. `errno`: what this
    target answered; null: it is not its answer. `ended_by`: error: its own, or another target's. `unanswered_bytes`: B given to the target
    and not answered when the command gave up. `bytes_per_s`: B/s: bytes written or read over the seconds of that. `iops`: blocks per s of
    the same."""

    target: str
    kind: Literal["scratch-file", "raw-device", "null"]
    filesystem: str | None
    node: Count | None
    placement_note: str
    threads: Ordinal
    span_bytes: Block
    status: Ended
    error: str | None
    errno: Errno | UnsetType | None = UNSET
    ended_by: Literal["bytes", "span", "duration", "signal", "error"]
    unanswered_bytes: Count
    bytes_per_s: Amount
    iops: Amount
    latency_us: Latency


class WriteTarget(SyntheticTarget, frozen=True, kw_only=True):
    """`written_bytes`: B whose writes completed. `write_s`: s from the start to its last completion. `flush_s`: s of its final flush.
    `bytes_per_s_with_flush`: B/s: written_bytes over write_s + flush_s."""

    written_bytes: Count
    write_s: Amount
    flush_s: Amount
    bytes_per_s_with_flush: Amount


class ReadTarget(SyntheticTarget, frozen=True, kw_only=True):
    """`read_bytes`: B whose reads completed and were what had been written. `read_s`: s from the start to its last completion."""

    read_bytes: Count
    read_s: Amount


class Synthetic(Load, frozen=True, kw_only=True):
    """`engine_note`: whether io_uring could register its buffers, and why not; null: nothing to say. `unanswered_bytes`: B given to the
    target and not answered when the command gave up: they may be stored, or have been read, or not. `ended_by`: span: every block of the
    span was written once and would not be fresh any more; the worst end of several targets. `passes`: bytes written or read over
    span_bytes. `bytes_per_s`: B/s: bytes written or read over the seconds of that. `iops`: blocks per s of the same. `threads`: one for
    each thread, those of the first target first."""

    engine_note: str | None
    unanswered_bytes: Count | UnsetType = UNSET
    ended_by: Literal["bytes", "span", "duration", "signal", "error"]
    passes: Amount
    bytes_per_s: Amount
    iops: Amount
    cpu: SyntheticCpu
    threads: Annotated[list[WorkingThread], Meta(min_length=1)]


class Write(Synthetic, frozen=True, kw_only=True):
    """daqwriter write --json: synthetic writes as fast as the target takes them. `written_bytes`: B whose writes completed, all threads;
    the preparation is not counted. `bytes_per_s_with_flush`: B/s: written_bytes over write_s + flush_s. `targets`: each target."""

    command: Literal["write"]
    parameters: WriteParameters
    written_bytes: Count
    time: WriteTime
    bytes_per_s_with_flush: Amount
    targets: Annotated[list[WriteTarget], Meta(min_length=1)] | UnsetType = UNSET
    series: WriteSeries


class Read(Synthetic, frozen=True, kw_only=True):
    """daqwriter read --json: synthetic reads as fast as the target gives them, of what the command wrote there before. `read_bytes`: B
    whose reads completed and were what had been written, all threads; the preparation is not counted. `prefilled_bytes`: B that the
    command wrote before it read them: they wear the drive. `targets`: each target."""

    command: Literal["read"]
    parameters: ReadParameters
    read_bytes: Count
    prefilled_bytes: Count
    time: ReadTime
    targets: Annotated[list[ReadTarget], Meta(min_length=1)] | UnsetType = UNSET
    series: ReadSeries
