"""Tells what the results of all daqwriter's commands have alike, and what `daqwriter verify` says of a record."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from msgspec import UNSET, Meta, UnsetType

from daq_bench.bench_model.documents.struct import Amount, Closed, Count, Positive

Id = Annotated[str, Meta(pattern=r"^[0-9a-f]{32}$")]
Share = Annotated[float, Meta(ge=0, le=1)]
UtcMs = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]
Several = Annotated[int, Meta(ge=1, le=64)]  # targets, applications, threads
Ended = Literal["complete", "interrupted", "failed"]
Errno = Annotated[str, Meta(pattern=r"^(E[A-Z0-9]+|[0-9]+)$")]
# By which Linux tells of a device that failed (docs/adr/0002). Any other answer is of whoever filled, mounted or set up the target.
OfDrive = Literal["EIO", "ENODEV", "ENXIO", "ENOMEDIUM", "ENODATA", "EREMOTEIO", "ENOLINK", "EILSEQ", "ETIMEDOUT"]
OfRawDrive = Literal[OfDrive, "ENOSPC"]  # a raw drive that is gone has no size left
RAW_DEVICE = "raw-device"  # a target_kind
OF_DRIVE, OF_RAW_DRIVE = frozenset(get_args(OfDrive)), frozenset(get_args(OfRawDrive))


class EngineFeature(Closed, frozen=True):
    """`reason`: why it is not in use; null: it is."""

    name: str
    in_use: bool
    reason: str | None


class Latency(Closed, frozen=True):
    """`definition`: from what to what. `count`: values recorded. `min`: us. `mean`: us. `p50`: us. `p90`: us. `p99`: us. `p99_9`: us.
    `p99_99`: us. `max`: us. `hdr_unit`: unit of the values in hdr. `hdr`: the histogram in HdrHistogram's compressed V2 encoding,
    base64."""

    definition: str
    count: Count
    min: Amount
    mean: Amount
    p50: Amount
    p90: Amount
    p99: Amount
    p99_9: Amount
    p99_99: Amount
    max: Amount
    hdr_unit: Literal["ns"]
    hdr: Annotated[str, Meta(pattern=r"^HIST[A-Za-z0-9+/]*={0,2}$")]

    @property
    def points_us(self) -> dict[float, float]:
        """us by percentile, increasing; 100 is the maximum."""
        return {50.0: self.p50, 90.0: self.p90, 99.0: self.p99, 99.9: self.p99_9, 99.99: self.p99_99, 100.0: self.max}


class Answer(Closed, frozen=True, kw_only=True):
    """`version`: of daqwriter. `error`: what failed, with target or file, offset and errno; null: nothing. `errno`: what the target
    answered to the request that failed first; null: the error, if any, is not its answer."""

    schema_version: Literal[1]
    tool: Literal["daqwriter"]
    version: str
    error: str | None
    errno: Errno | UnsetType | None = UNSET


def is_of_drive(said: dict[str, Any]) -> bool:
    """Says whether a command broke off because of an answer by which a failed drive is known. `said`: its document."""
    raw = said.get("parameters", {}).get("target_kind") == RAW_DEVICE
    return said["status"] == "failed" and said.get("errno") in (OF_RAW_DRIVE if raw else OF_DRIVE)


class Load(Answer, frozen=True, kw_only=True):
    """Tells what loads a target. `engine`: asynchronous I/O interface; null: no I/O. `engine_features`: what makes the engine faster only
    where kernel, drive and limits allow it; empty: it has no such choice. `started_utc`: ISO 8601, UTC; before the preparation.
    `discarded`: there was no target: what counts as stored, written or read went nowhere."""

    engine: Literal["libaio", "io_uring", "null"]
    engine_features: list[EngineFeature] | UnsetType = UNSET
    status: Ended
    started_utc: UtcMs
    discarded: bool | UnsetType = UNSET
    latency_us: Latency


class ThreadCpu(Closed, frozen=True):
    """CPU time of one thread. `user_s`: s. `system_s`: s."""

    user_s: Amount
    system_s: Amount


class SwitchedCpu(ThreadCpu, frozen=True, kw_only=True):
    """The same with its context switches: waiting, and preempted."""

    voluntary_context_switches: Count
    involuntary_context_switches: Count


class ProcessCpu(SwitchedCpu, frozen=True, kw_only=True):
    """CPU time and memory of the process under its load. `seconds_per_gb`: CPU s per GB (10^9 B) stored, written or read.
    `max_rss_bytes`: B: the most memory."""

    seconds_per_gb: Amount
    max_rss_bytes: Count


class Series(Closed, frozen=True, kw_only=True):
    """`interval_s`: s. `t_s`: s after the start: end of each interval."""

    interval_s: Positive
    t_s: list[Amount]


class Verification(Answer, frozen=True, kw_only=True):
    """Tells what a reading back found. `bytes_read`: B. `duration_s`: s of reading and checking; recomputing the payloads before it is not
    counted. `read_bytes_per_s`: B/s."""

    command: Literal["verify"]
    status: Literal["intact", "damaged", "failed", "interrupted"]
    bytes_read: Count
    duration_s: Amount
    read_bytes_per_s: Amount


class ReadBack(Closed, frozen=True):
    """Counts superchunks of a record, or events of closed files. `expected`: = present + missing + corrupt + torn + stale. `present`:
    intact, each counted once. `missing`: accepted by the writer, or listed in the manifest, and not there. `duplicated`: further copies.
    `out_of_order`: displaced within their link or stream. `corrupt`: wrong bytes. `torn`: partly good, whole sectors of other bytes.
    `stale`: places that hold one of another record or run."""

    expected: Count
    present: Count
    missing: Count
    duplicated: Count
    out_of_order: Count
    corrupt: Count
    torn: Count
    stale: Count


class Fault(Closed, frozen=True):
    """`offset_bytes`: B in the target: first wrong byte, or the superchunk's place, or where a gap was noticed. `link`: link. `sequence`:
    sequence number; null: unknown. `detail`: for people."""

    kind: Literal["missing", "duplicated", "out_of_order", "corrupt", "torn", "stale", "incomplete"]
    offset_bytes: Count
    link: Count | None
    sequence: Count | None
    detail: str


class OtherRecord(Closed, frozen=True):
    """`started_utc`: when its writer began it."""

    record_id: Id
    started_utc: UtcMs


class Verify(Verification, frozen=True, kw_only=True):
    """daqwriter verify --json: what a record is worth when it is read back. `record_id`: 32 hexadecimal digits; with --record-id the one
    that it names. `complete_trailer`: a valid trailer vouches for the record. `trailer_status`: how the writer closed the record; null: no
    trailer. `trailer_bound`: the trailer names the header that it belongs to; false: a record of an older format; null: no trailer.
    `lost_at_source`: superchunks that the trailer counts as lost to full rings; no fault of the record. `other_record`: that which stands
    in the place of the one that --record-id names; null: none does. `faults`: the first 100."""

    record_id: Id
    complete_trailer: bool
    trailer_status: Literal["complete", "interrupted"] | None
    trailer_bound: bool | UnsetType | None = UNSET
    lost_at_source: Count | None
    other_record: OtherRecord | UnsetType | None = UNSET
    superchunks: ReadBack
    faults: Annotated[list[Fault], Meta(max_length=100)]
