"""Tells what `daqwriter streams` says of its events, and `daqwriter verify` of their files."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from daq_bench.bench_model.documents.struct import Amount, Closed, Count, Ordinal
from daq_bench.bench_model.documents.tools.daqwriter import Id, Load, ProcessCpu, ReadBack, Series, Share, Verification


class StreamsParameters(Closed, frozen=True, kw_only=True):
    """`target`: directory, or null for the null sink. `filesystem`: of the directory; null: null sink. `prefix`: of the file names.
    `shares`: share of the events asked for, by stream. `event_bytes`: B, mean size of an event, 64 B header included. `event_spread`: 1
    (fraction): sizes are uniform in mean x (1 - spread) ... mean x (1 + spread). `bytes`: B, limit asked for; null: none. `duration_s`: s,
    limit asked for; null: none. `rate_bytes_per_s`: B/s, pace of the source; null: as fast as possible. `file_bytes`: B, largest size of a
    file. `queue_bytes_per_stream`: B. `queue_slots_per_stream`: events. `block_bytes`: B per write. `io_depth`: most writes in flight of
    each stream. `buffer_bytes`: B, queues and blocks of all streams. `memory_locked`: no page of the buffers can be paged out.
    `preallocate`: each file was fallocated before it was written. `checksum_variant`: zlib: the original, single-threaded application.
    `checksum_threads`: threads per stream that checksum, the stream's own included. `smallest_parallel_bytes`: B, smaller events are
    checksummed by one thread; null: the variant has one anyway. `cpus`: to which the whole process was confined; null: to none. `seed`:
    seed. `run_id`: 32 hexadecimal digits. `numa_node`: of the drive; null: unknown. `placement_note`: where the threads may run, and
    why."""

    target: str
    target_kind: Literal["directory", "null"]
    filesystem: str | None
    prefix: str
    shares: list[Annotated[float, Meta(gt=0, le=1)]]
    event_bytes: Annotated[int, Meta(ge=65)]
    event_spread: Share
    bytes: Count | None
    duration_s: Amount | None
    rate_bytes_per_s: Count | None
    file_bytes: Count
    queue_bytes_per_stream: Count
    queue_slots_per_stream: Count
    block_bytes: Count
    io_depth: Ordinal
    buffer_bytes: Count
    memory_locked: bool
    preallocate: bool
    checksum_variant: Literal["off", "zlib", "thread-per-chunk", "pool-cv", "pool-busy", "fused"]
    checksum_threads: Ordinal
    smallest_parallel_bytes: Count | None
    cpus: list[Count] | None
    seed: Count
    run_id: Id
    numa_node: Count | None
    placement_note: str


class StreamsTotals(Closed, frozen=True, kw_only=True):
    """`offered_events`: events that the source emitted. `offered_bytes`: B. `written_events`: events whose blocks are all on the target,
    without a gap before them. `written_bytes`: B of events on the target. `closed_files`: files in the manifest. `closed_events`: events
    in them. `fallback_events`: events below smallest_parallel_bytes."""

    offered_events: Count
    offered_bytes: Count
    written_events: Count
    written_bytes: Count
    closed_files: Count
    closed_events: Count
    fallback_events: Count


class StreamsTime(Closed, frozen=True, kw_only=True):
    """`prepare_s`: s, memory, payloads, threads. `emission_s`: s, start to the last event. `write_s`: s, start to the last block on the
    target; flushes of all files but the last of each stream are in it. `flush_s`: s, from then to the last line of the manifest."""

    prepare_s: Amount
    emission_s: Amount
    write_s: Amount
    flush_s: Amount


class StreamsSource(Closed, frozen=True, kw_only=True):
    """`due_bytes`: B, due by the pace when the source stopped; without a pace: what it offered. `achieved_fraction`: 1 (fraction), offered
    in time / due; null: no pace. `too_late_bytes`: B offered more than 0.5 s late because the source itself did not run: not counted as
    achieved. `held_s`: s that full queues held the source back. `held_share`: 1 (fraction), held_s / emission_s."""

    due_bytes: Count
    achieved_fraction: Share | None
    too_late_bytes: Count | UnsetType = UNSET
    held_s: Amount
    held_share: Amount


class StreamsCpu(ProcessCpu, frozen=True, kw_only=True):
    """`source_s`: s, source thread.
    `checksum_and_copy_s`: s of wall time in checksum and copy, all streams, I/O calls excluded. `checksum_and_copy_share`: 1 (fraction),
    checksum_and_copy_s / CPU time of the process; above 1 if the threads had to wait for a CPU."""

    source_s: Amount
    checksum_and_copy_s: Amount
    checksum_and_copy_share: Amount


class Stream(StreamsTotals, frozen=True, kw_only=True):
    """`share`: 1 (fraction) of the events, asked for. `achieved_share`: 1 (fraction) of the bytes written. `abandoned_events`:
    offered and not written: the run failed, or was interrupted and could not be drained in 5 s. `held_events`: events that found the queue
    full. `held_s`: s that this queue held the source back. `queue_high_water`: 1 (fraction) of the queue's slots in use at most.
    `backlog_high_water_bytes`: B accepted and not yet on the target at most, seen at completions. `checksum_and_copy_s`: s of wall time.
    `file_closing_s`: s of flushing files and entering them into the manifest. `user_s`: s, the stream's own thread. `system_s`: s, the
    stream's own thread. `voluntary_context_switches`: context switches, waiting. `involuntary_context_switches`: context switches,
    preempted."""

    share: Amount
    achieved_share: Amount
    abandoned_events: Count
    held_events: Count
    held_s: Amount
    queue_high_water: Amount
    backlog_high_water_bytes: Count
    checksum_and_copy_s: Amount
    file_closing_s: Amount
    user_s: Amount
    system_s: Amount
    voluntary_context_switches: Count
    involuntary_context_switches: Count


class StreamsSeries(Series, frozen=True, kw_only=True):
    """`offered_bytes`: B in each interval. `written_bytes`: B in each interval. `backlog_bytes`: B offered and not yet on the target, at
    the end of each interval."""

    offered_bytes: list[Count]
    written_bytes: list[Count]
    backlog_bytes: list[Count]


class Streams(Load, frozen=True, kw_only=True):
    """daqwriter streams --json: events written to the file sequences of their streams. `unanswered_bytes`: B given to the target and not
    answered when the command gave up: they may be stored or not. `ended_by`: space: the target was full as planned. `bytes_per_s`: B/s,
    written_bytes / write_s. `bytes_per_s_with_flush`: B/s, written_bytes / (write_s + flush_s). `streams`: by stream.
    `failed_line_records`: line-protocol records that could not be written."""

    command: Literal["streams"]
    parameters: StreamsParameters
    unanswered_bytes: Count | UnsetType = UNSET
    ended_by: Literal["bytes", "duration", "space", "signal", "error"]
    totals: StreamsTotals
    time: StreamsTime
    bytes_per_s: Amount
    bytes_per_s_with_flush: Amount
    source: StreamsSource
    cpu: StreamsCpu
    streams: list[Stream]
    series: StreamsSeries
    failed_line_records: Count


class StreamFiles(Closed, frozen=True, kw_only=True):
    """`listed`: closed files, by the manifest. `intact`: of these, exactly as listed. `missing`: of these, not in the directory.
    `unlisted`: named like files of the run, but not in the manifest: not closed, or copies."""

    listed: Count
    intact: Count
    missing: Count
    unlisted: Count


class StreamFault(Closed, frozen=True, kw_only=True):
    """`file`: name in the directory. `offset_bytes`: B in the file: first wrong byte, or the event's place, or where a gap was noticed; 0
    for a file as a whole. `stream`: stream; null: unknown. `serial`: serial number in the stream; null: unknown, or the file as a whole.
    `detail`: for people."""

    kind: Literal["missing", "duplicated", "out_of_order", "corrupt", "torn", "stale", "incomplete"]
    file: str
    offset_bytes: Count
    stream: Count | None
    serial: Count | None
    detail: str


class VerifyStreams(Verification, frozen=True, kw_only=True):
    """daqwriter verify --json of the directory of a streams run: what its files are worth when they are read back. `run_id`: 32
    hexadecimal digits. `closed`: the manifest's last line vouches for the whole run. `end_status`: how the run was closed; null: it was
    not. `sealed`: the manifest ends with the right checksum of its lines; false: it does not, or is of an older format. `events`: in
    closed files. `unvouched_events`: intact events in unlisted files. `fault_count`: all faults. `faults`: the first 100."""

    run_id: Id
    closed: bool
    end_status: Literal["complete", "interrupted"] | None
    sealed: bool | UnsetType = UNSET
    files: StreamFiles
    events: ReadBack
    unvouched_events: Count
    fault_count: Count
    faults: Annotated[list[StreamFault], Meta(max_length=100)]
