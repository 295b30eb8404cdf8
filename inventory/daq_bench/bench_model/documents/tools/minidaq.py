"""Tells what `daqwriter minidaq` writes, and what its search for a rate does."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from daq_bench.bench_model.documents.struct import Amount, Closed, Count, Ordinal, Positive
from daq_bench.bench_model.documents.tools.daqwriter import (
    Answer,
    Ended,
    EngineFeature,
    Errno,
    Id,
    Latency,
    Load,
    ProcessCpu,
    Series,
    Several,
    Share,
    ThreadCpu,
)


class Placement(Closed, frozen=True):
    """`writer_cpu`: CPU number; null: not pinned. `source_cpu`: CPU number; null: not pinned. `numa_node`: of the drive; null: unknown.
    `note`: how the CPUs were chosen."""

    writer_cpu: Count | None
    source_cpu: Count | None
    numa_node: Count | None
    note: str


class Parameters(Closed, frozen=True, kw_only=True):
    """`target`: path, or null for the null sink; several as --target takes them. `target_kind`: mixed: see targets. `filesystem`: of a
    scratch file, the first target's of several. `mode`: all that the links emit, or what trigger decisions ask for. `paced`: the
    links emit at their rate; false: as fast as the writer takes it. `data_path`: the one taken: into aligned blocks, or aligned chunks
    straight from the rings. `data_path_asked`: auto: zero-copy where it changes nothing that was asked for. `data_path_reason`: why that
    one was taken. `applications`: MiniDAQ applications at once for each target. `targets`: number of targets. `links`: number of links of
    each application. `writers`: of each application; each has links, blocks and a thread of its own. `record_format`: framed: blocks that
    describe themselves, as several writers make them. `superchunk_bytes`: B, 64 B of header included. `superchunk_rate_hz`: Hz per link,
    before scale. `scale`: factor on the rate. `offered_bytes_per_s`: B/s asked for: targets x applications x links x rate x scale x size,
    or x trigger rate x request; null: unpaced. `duration_s`: s asked for. `ring_bytes_per_link`: B. `ring_slots_per_link`: superchunks
    that a ring holds. `block_bytes`: B per write; framed: from one block to the next. `alignment_bytes`: B: unit of every transfer.
    `io_depth`: most writes in flight, of each writer. `preallocate`: the file was reserved with fallocate before the record. `seed`: of
    the payload. `record_id`: 32 hexadecimal digits. `memory_locked`: rings and blocks were locked; they are touched in any case.
    `memory_features`: what makes the rings faster only where the system allows it, of the first application."""

    target: str
    target_kind: Literal["scratch-file", "raw-device", "null", "mixed"]
    filesystem: str | None
    mode: Literal["continuous", "triggered"] | UnsetType = UNSET
    paced: bool | UnsetType = UNSET
    data_path: Literal["copy", "zero-copy"] | UnsetType = UNSET
    data_path_asked: Literal["auto", "copy", "zero-copy"] | UnsetType = UNSET
    data_path_reason: str | UnsetType = UNSET
    applications: Several | UnsetType = UNSET
    targets: Several | UnsetType = UNSET
    links: Annotated[int, Meta(ge=1, le=126)]
    writers: Annotated[int, Meta(ge=1, le=126)] | UnsetType = UNSET
    record_format: Literal["gapless", "framed"] | UnsetType = UNSET
    superchunk_bytes: Annotated[int, Meta(ge=65)]
    superchunk_rate_hz: Positive
    scale: Positive
    offered_bytes_per_s: Positive | None
    duration_s: Positive
    ring_bytes_per_link: Ordinal
    ring_slots_per_link: Ordinal
    block_bytes: Annotated[int, Meta(ge=4096)]
    alignment_bytes: Annotated[int, Meta(ge=4096)]
    io_depth: Ordinal
    checksum: Literal["crc32", "adler32", "off"]
    preallocate: bool
    seed: Count
    record_id: Id
    memory_locked: bool
    memory_features: list[EngineFeature] | UnsetType = UNSET
    placement: Placement


class Superchunks(Closed, frozen=True, kw_only=True):
    """`intended`: scheduled for the whole duration, of each application; unpaced: the most that there was room for. `emitted`: by the
    links. `offered`: what was to be stored = stored + lost + abandoned; in a continuous record all that was emitted, else what was asked
    for. `stored`: on the target; after a failed record: without a gap from its start. `lost`: found their ring full. `abandoned`: still in
    memory, or behind the first gap, when a record ended early. `lost_per_link`: lost, per link."""

    intended: Count
    emitted: Count | UnsetType = UNSET
    offered: Count
    stored: Count
    lost: Count
    abandoned: Count
    lost_per_link: list[Count]


class Bytes(Closed, frozen=True, kw_only=True):
    """`payload`: B of stored superchunks, their headers included. `written`: B on the target: record header, frames, superchunks,
    padding, trailer. `padding`: B of zeros behind the last superchunk; in a framed record, of each block. `frames`: B of the frames that
    begin the blocks; 0: gapless. `unanswered`: B given to the target and not answered when the command gave up: they may be stored or
    not."""

    payload: Count
    written: Count
    padding: Count
    frames: Count | UnsetType = UNSET
    unanswered: Count | UnsetType = UNSET


class Time(Closed, frozen=True):
    """`prepare_s`: s before the record: memory, preallocation, header. `record_s`: s of the source. `drain_s`: s from the source's end to
    the last completion. `flush_s`: s of the final flush and the trailer. `total_s`: s: record, drain and flush."""

    prepare_s: Amount
    record_s: Amount
    drain_s: Amount
    flush_s: Amount
    total_s: Amount


class Source(Closed, frozen=True, kw_only=True):
    """`achieved_fraction`: offered in time (within in_time_us of the intended arrival) over what was due when the source stopped; below 1
    the source failed, not the drive. `worst_lateness_us`: us after the intended arrival. `late_superchunks`: emitted later than
    late_threshold_us. `late_threshold_us`: us. `too_late_superchunks`: emitted later than in_time_us: not counted as achieved.
    `in_time_us`: us."""

    achieved_fraction: Share
    worst_lateness_us: Amount
    late_superchunks: Count
    late_threshold_us: Amount
    too_late_superchunks: Count | UnsetType = UNSET
    in_time_us: Amount | UnsetType = UNSET


class Trigger(Closed, frozen=True):
    """Null: a continuous record. `asked_request_bytes`: B of each application and decision. `request_bytes`: B after rounding up to whole
    superchunks, or aligned chunks. `superchunks_per_link`: of a request. `rate_hz`: Hz of each application, asked for; null: unpaced.
    `decisions`: requests made, all applications. `vetoed`: trigger decisions inhibited because Dataflow was BUSY, all applications.
    `unbuffered_superchunks`: that nobody had asked for and that found no room because requests held the rings. `achieved_rate_hz`: Hz of
    each application."""

    asked_request_bytes: Ordinal
    request_bytes: Ordinal
    superchunks_per_link: Ordinal
    rate_hz: Positive | None
    decisions: Count
    vetoed: Count
    unbuffered_superchunks: Count
    achieved_rate_hz: Amount


class Writer(Closed, frozen=True):
    """`first_link`: of those that are its own. `links`: number of its links, which follow on each other; 0: it never ran. `stored`:
    superchunks. `blocks`: that it gave to the target. `drained_s`: s after the start: its last completion. `cpu_s`: CPU s of its thread.
    `cpu`: CPU number; null: not pinned. `placement_note`: how the CPU was chosen."""

    first_link: Count
    links: Count
    stored: Count
    blocks: Count
    drained_s: float
    cpu_s: Amount
    cpu: Count | None
    placement_note: str


class Application(Closed, frozen=True, kw_only=True):
    """`target`: path of its record. `offset_bytes`: B: where its record begins (verify --offset). `record_id`: 32 hexadecimal digits.
    `error`: what failed. `errno`: what the target answered; null: it is not its answer. `offered`: superchunks. `stored`: superchunks.
    `lost`: superchunks. `busy_count`: episodes. `drained_s`: s after the start: its last completion. `writer_cpu_s`: CPU s of its writer
    threads. `placement`: of its source and its first writer. `writers`: more than one: a framed record."""

    target: str
    offset_bytes: Count
    record_id: Id
    status: Ended
    error: str | None
    errno: Errno | UnsetType | None = UNSET
    offered: Count
    stored: Count
    lost: Count
    busy_count: Count
    drained_s: Amount
    writer_cpu_s: Amount
    placement: Placement
    writers: Annotated[list[Writer], Meta(min_length=1)] | UnsetType = UNSET


class SuperchunksOfTarget(Closed, frozen=True):
    """`offered`: what was to be stored. `stored`: on the target. `lost`: found their ring full."""

    offered: Count
    stored: Count
    lost: Count


class Busy(Closed, frozen=True):
    """`count`: episodes of "Dataflow is BUSY". `total_s`: s."""

    count: Count
    total_s: Amount


class JointBuffer(Closed, frozen=True):
    """One buffer before several writers; null: unpaced, where no load was given. `needed_bytes`: B: max over t of the sum of arrived(t) -
    the sum of durable(t). `needed_at_s`: s after the start when that was. `kind`: upper bound: arrivals between two completions were not
    known, or completions were too many to be remembered."""

    needed_bytes: Count
    needed_at_s: float
    kind: Literal["exact", "upper bound"]


class LatencyOverTime(Closed, frozen=True):
    """Describes how many superchunks arrived in each interval (row) and took how long (column: from its edge to the next one's).
    `interval_s`: of each row. `from_us`: lower edge of each column. `counts`: a row for each interval from the start."""

    definition: str
    interval_s: Positive
    from_us: list[Amount]
    counts: Annotated[list[list[Count]], Meta(max_length=128)]


class Target(Closed, frozen=True, kw_only=True):
    """`target`: path as given, or null for the null sink. `filesystem`: of a scratch file. `node`: NUMA node of the drive; null:
    unknown. `applications`: with records of their own on it. `status`: interrupted: also when another target failed. `error`: what failed
    here, with offset and errno. `errno`: what the target answered; null: it is not its answer. `stored_bytes`: B of stored superchunks,
    their headers included. `unanswered_bytes`: B given to the target and not answered when the command gave up. `total_s`: s from the start
    until its last record was closed. `stored_bytes_per_s`: B/s: stored_bytes over its total_s. `achieved_fraction`: of its sources, as
    source.achieved_fraction."""

    target: str
    kind: Literal["scratch-file", "raw-device", "null"]
    filesystem: str | None
    node: Count | None
    applications: Several
    status: Ended
    error: str | None
    errno: Errno | UnsetType | None = UNSET
    superchunks: SuperchunksOfTarget
    stored_bytes: Count
    unanswered_bytes: Count
    total_s: Amount
    stored_bytes_per_s: Amount
    achieved_fraction: Share
    busy: Busy
    transient_buffer: JointBuffer | None
    latency_us: Latency
    write_latency_us: Latency


class Episode(Closed, frozen=True):
    """`start_s`: s after the start. `duration_s`: s."""

    start_s: Amount
    duration_s: Amount


class BusyEpisodes(Closed, frozen=True):
    """`count`: episodes of "Dataflow is BUSY". `total_s`: s. `episodes`: the first 1000."""

    count: Count
    total_s: Amount
    episodes: Annotated[list[Episode], Meta(max_length=1000)]


class Backlog(Closed, frozen=True):
    """`high_water_bytes`: B accepted and not yet durable, at most. `high_water_s`: s after the start when that was. `capacity_bytes`: B
    of all rings and block buffers."""

    high_water_bytes: Count
    high_water_s: float
    capacity_bytes: Count


class Extrapolated(Closed, frozen=True):
    """`bytes_per_s`: B/s of the other load, all applications. `duration_s`: s. `estimate_bytes`: B, if the target worked without pause at
    the pace that it showed. `upper_bound_bytes`: B, if it did at every moment no more than it was seen to do."""

    bytes_per_s: Positive
    duration_s: Positive
    estimate_bytes: Count
    upper_bound_bytes: Count


class TransientBuffer(Closed, frozen=True, kw_only=True):
    """`needed_bytes`: B, the sum of what each writer needs for itself; null: unpaced, where no load was given. `joint_method`: how the
    joint figure was computed, and when it is an upper bound. `method`: how it was computed and what it means when superchunks were lost.
    `busy_fraction`: share of the time in which the target had work. `busy_bytes_per_s`: B/s made durable while it had work, all
    applications. `extrapolated`: the transient buffer for loads that were not measured. `extrapolation_method`: what the extrapolated
    figures assume."""

    needed_bytes: Count | None
    joint: JointBuffer | UnsetType | None = UNSET
    joint_method: str | UnsetType = UNSET
    method: str
    busy_fraction: Share | UnsetType = UNSET
    busy_bytes_per_s: Amount | UnsetType = UNSET
    extrapolated: list[Extrapolated] | UnsetType = UNSET
    extrapolation_method: str | UnsetType = UNSET


class Cpu(ProcessCpu, frozen=True, kw_only=True):
    """CPU time of a record, source included. `writer_seconds_per_gb`: CPU s of the writer threads per GB stored. `copy_s`: CPU s in
    checksum and copy. `copy_share`: copy_s over the CPU time of the process. `copied_bytes`: B copied into blocks; zero-copy:
    the tails only."""

    writer: ThreadCpu
    source: ThreadCpu
    writer_seconds_per_gb: Amount
    copy_s: Amount
    copy_share: Amount
    copied_bytes: Count | UnsetType = UNSET


class RecordSeries(Series, frozen=True):
    """`offered_bytes`: B in each interval. `stored_bytes`: B in each interval. `backlog_bytes`: B at the end of each interval."""

    offered_bytes: list[Count]
    stored_bytes: list[Count]
    backlog_bytes: list[Count]


class Minidaq(Load, frozen=True, kw_only=True):
    """daqwriter minidaq --json: a continuous record, or triggered requests, of one or several applications. Properties that are not
    required came later than version 0.1.0. `engine_note`: whether io_uring could register its buffers, and why not; null: nothing to say.
    `offered_bytes_per_s`: B/s: offered over record_s. `stored_bytes_per_s`: B/s: stored over total_s. `trigger`: null: a continuous record.
    `applications`: each application, those of the first target first; everything else in this document is their sum. `targets`: each
    target: the sums over its applications."""

    command: Literal["minidaq"]
    engine_note: str | UnsetType | None = UNSET
    parameters: Parameters
    superchunks: Superchunks
    bytes: Bytes
    time: Time
    offered_bytes_per_s: Amount
    stored_bytes_per_s: Amount
    source: Source
    trigger: Trigger | UnsetType | None = UNSET
    applications: Annotated[list[Application], Meta(min_length=1)] | UnsetType = UNSET
    targets: Annotated[list[Target], Meta(min_length=1)] | UnsetType = UNSET
    busy: BusyEpisodes
    backlog: Backlog
    transient_buffer: TransientBuffer
    latency_over_time: LatencyOverTime | UnsetType = UNSET
    write_latency_us: Latency
    cpu: Cpu
    series: RecordSeries


class Trial(Closed, frozen=True):
    """`factor`: of the rate asked for. `asked_bytes_per_s`: B/s of this trial. `stored_bytes_per_s`: B/s, final flush included.
    `achieved_fraction`: emitted over due, of the target where that is least; below 0.999 the source failed and the trial does not count
    as stood. `lost`: superchunks that found their ring full. `vetoed`: trigger decisions inhibited. `busy_count`: episodes of "Dataflow
    is BUSY". `stood`: nothing lost, nothing vetoed, never BUSY, load really offered."""

    factor: Annotated[float, Meta(gt=0, le=1)]
    asked_bytes_per_s: Positive
    stored_bytes_per_s: Amount
    achieved_fraction: Share
    lost: Count
    vetoed: Count
    busy_count: Count
    stood: bool


class MinidaqSearch(Answer, frozen=True, kw_only=True):
    """daqwriter minidaq --search --json: the highest rate without inhibit. `mode`: all that the links emit, or what trigger decisions ask
    for. `data_path`: into aligned blocks, or aligned chunks straight from the rings. `applications`: MiniDAQ applications at once for each
    target. `targets`: paths as given, or null for the null sink; a rate counts as stood when all of them stood it together.
    `links`: number of links of each application. `writers`: of each application; several make framed records. `request_bytes`: B of each
    application and trigger decision; null: continuous. `duration_s`: s of each trial. `unpaced_bytes_per_s`: B/s that the writer took when
    it was never kept waiting. `asked_bytes_per_s`: B/s: the highest rate that was looked at, all applications. `highest_bytes_per_s`: B/s
    stood in two trials; null: none. `highest_trigger_rate_hz`: Hz of each application at that rate; null: continuous, or none.
    `lowest_refused_bytes_per_s`: B/s not stood; null: all that was asked for was stood. `trials`: in the order in which they were made."""

    command: Literal["minidaq-search"]
    status: Ended
    mode: Literal["continuous", "triggered"]
    data_path: Literal["copy", "zero-copy"]
    applications: Ordinal
    targets: Annotated[list[str], Meta(min_length=1)] | UnsetType = UNSET
    links: Ordinal
    writers: Ordinal | UnsetType = UNSET
    request_bytes: Ordinal | None
    duration_s: Positive
    unpaced_bytes_per_s: Amount
    asked_bytes_per_s: Positive
    highest_bytes_per_s: Positive | None
    highest_trigger_rate_hz: Positive | None
    lowest_refused_bytes_per_s: Positive | None
    trials: list[Trial]
