"""The types of results/streams_checksum.json, the storage application with a multi-threaded checksum as measured, and of its analysis."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from daq_bench.bench_model.documents.struct import Amount, Closed, Count, Ordinal, Positive
from daq_bench.bench_model.documents.struct import Pair as Ends
from daq_bench.bench_model.statistics.paired import Decision

Kind = Literal["switched-off", "threads", "small-events", "application", "ceiling", "smt"]
Variant = Literal["off", "zlib", "thread-per-chunk", "pool-cv", "pool-busy", "fused"]  # way of computing adler32
Placement = Literal["cores", "all"]  # one CPU of each physical core, or every CPU


class Cpus(Closed, frozen=True):
    """`cores`: one CPU of each physical core; `order`: all usable CPUs, those of `cores` first; `packages`: processors; null: not told;
    `smt`: the kernel's word for it; `has_siblings`: a core has more than one usable CPU"""

    cores: Annotated[list[Count], Meta(min_length=1)]
    order: Annotated[list[Count], Meta(min_length=1)]
    packages: int | None
    smt: str | None
    has_siblings: bool


class Application(Closed, frozen=True):
    """as it is to be deployed."""

    variant: Variant
    threads: Ordinal


class Throughput(Closed, frozen=True):
    """`seconds`: s, each run"""

    variants: list[str]
    threads: list[int]
    sink: Literal["target", "null"]
    seconds: Amount


class Splits(Closed, frozen=True):
    """`comparisons`: cuts compared with zlib"""

    bytes: Count
    comparisons: Count


class CombineNs(Closed, frozen=True):
    median: Amount
    min: Amount
    max: Amount


class Identity(Closed, frozen=True):
    """`wrong`: checksums that differed from zlib's; the first one ends the measurement"""

    splits: Splits | None
    wrong: Count
    mismatch: dict[str, Any] | None
    combine_ns: CombineNs | None


class Point(Closed, frozen=True):
    """`reason`: why it does not count"""

    variant: Variant
    threads: Ordinal
    ns: list[Amount]
    share_ns: list[Amount]
    reason: str | None


class Overhead(Closed, frozen=True):
    """`event_bytes`: B"""

    event_bytes: Count
    points: list[Point]


class Setup(Closed, frozen=True):
    """One way of running the application. `threads`: checksum threads of each stream, its own included; `event_bytes`: B, mean size of an
    event"""

    variant: Variant
    threads: Ordinal
    placement: Placement
    event_bytes: Count


class Run(Closed, frozen=True):
    """`bytes_per_s`: B/s, the final flush included; `written_bytes`: B; `emission_s`: s, start to the last event; `held_share`: 1
    (fraction) of it that full queues held the source back, summed over the streams; `busiest_share`: 1 (fraction) of the bytes that the
    busiest stream had; `fallback_share`: 1 (fraction) of the events that were left to one thread; `cpu_seconds_per_gb`: s per GB
    written, the process; `failed`: an I/O error ended it; `reason`: why it does not count; null: it does"""

    bytes_per_s: Amount
    written_bytes: Count
    emission_s: Amount
    held_share: Amount
    busiest_share: Amount
    fallback_share: Amount
    cpu_seconds_per_gb: Amount
    failed: bool
    reason: str | None


class Pair(Closed, frozen=True):
    round: Ordinal
    reference_first: bool
    reference: Run
    measured: Run


class Planned(Closed, frozen=True):
    """A setup against its reference. `label`: for people"""

    kind: Kind
    label: str
    setup: Setup
    reference: Setup


class Comparison(Planned, frozen=True):
    pairs: list[Pair]


class NotMeasured(Closed, frozen=True):
    """`reason`: why not"""

    threads: Ordinal
    reason: str


class Stream(Closed, frozen=True):
    """`share`: 1 (fraction) of the events, asked for; `achieved_share`: 1 (fraction) of the bytes written; `written_bytes`: B; `files`:
    files closed; `cpu_s`: s, the stream's own thread; `checksum_and_copy_s`: s of wall time; `queue_high_water`: 1 (fraction) of the
    queue in use at most; `held_s`: s that its full queue held the source back"""

    share: Amount
    achieved_share: Amount
    written_bytes: Count
    files: Count
    cpu_s: Amount
    checksum_and_copy_s: Amount
    queue_high_water: Amount
    held_s: Amount


class Demand(Closed, frozen=True):
    """`full_bytes_per_s`: B/s, one server's share at scale 1; `asked_bytes_per_s`: B/s, at the run's
    scale; `seconds`: s asked for; `due_bytes`: B, by the pace, when the source stopped; `offered_bytes`: B; `written_bytes`: B on the
    target; `achieved_fraction`: 1 (fraction), offered / due; `kept`: 1 (fraction), written / due; null: it does not count; `held_s`: s
    that full queues held the source back; `backlog_high_bytes`: B offered and not yet on the target, at most, at the ends of intervals;
    `abandoned_events`: events offered and not written; `latency_us_p99`: us, arrival until the event's blocks are on the target;
    `cpu_seconds_per_gb`: s per GB, the process; `elapsed_s`: s, start to the last block; `error`: what failed; `reason`: why it does
    not count"""

    name: Literal["sustained", "peak"]
    variant: Variant
    threads: Ordinal
    full_bytes_per_s: Amount
    asked_bytes_per_s: Amount
    seconds: Amount
    due_bytes: Count
    offered_bytes: Count
    written_bytes: Count
    achieved_fraction: Amount
    kept: Amount | None
    held_s: Amount
    backlog_high_bytes: Count
    abandoned_events: Count
    latency_us_p99: Amount
    cpu_seconds_per_gb: Amount
    streams: list[Stream]
    elapsed_s: Amount
    failed: bool
    error: str | None
    reason: str | None


class Wrong(Closed, frozen=True):
    """`name`: of the file; `fault`: what is wrong"""

    name: str
    fault: str


class Events(Closed, frozen=True):
    """`expected`: events; `present`: once, in order and intact"""

    expected: Count
    present: Count


class Verification(Closed, frozen=True):
    """`name`: of the run; `files`: looked at; `bytes`: B read back; `by_definition`: files whose
    adler32 was also taken by its definition; `wrong_files`: files whose recorded adler32, size or place in the manifest is wrong;
    `closed`: the manifest has its last line; `status`: by daqwriter verify; `faults`: that daqwriter verify found; `failed`: an I/O
    error ended the read-back; `error`: what failed"""

    name: str
    variant: Variant
    threads: Ordinal
    files: Count
    bytes: Count
    by_definition: Count
    wrong_files: Count
    wrong: list[Wrong]
    closed: bool
    status: Literal["intact", "damaged", "failed", "interrupted"]
    faults: Count
    events: Events
    failed: bool
    error: str | None


class StreamsChecksum(Closed, frozen=True):
    """results/streams_checksum.json: the storage application with a multi-threaded checksum, as measured. `application`: as it is to be
    deployed; `shares`: of the events, by stream; `event_bytes`: B, mean; `small_event_bytes`: B, mean"""

    schema_version: Literal[1]
    cpus: Cpus
    application: Application
    shares: list[Amount]
    event_bytes: Count
    small_event_bytes: Count
    throughput: Throughput
    rounds: Ordinal
    identity: Identity
    overhead: Overhead
    comparisons: list[Comparison]
    not_measured: list[NotMeasured]
    demand: list[Demand]
    verification: list[Verification]
    limits: list[str]


class OrderEffect(Closed, frozen=True):
    """`factor`: how much larger the ratio is where the reference came first."""

    factor: Positive
    p: Amount
    is_there: bool


class Gain(Closed, frozen=True, kw_only=True):
    """A setup over its reference. `interval`: None where there are too few pairs. `parallel_share`: of the work that the threads spread
    (Amdahl); None for one thread, and for what is slower than one."""

    label: str
    n: Count
    ratio: Positive | None
    interval: Ends[float] | None
    decision: Decision | None
    parallel_share: float | None


class Compared(Gain, frozen=True, kw_only=True):
    """`masked`: pairs that do not count, with their `masked_reasons`. Rates: medians of the pairs that count. `reason`: why none does."""

    kind: Kind
    setup: Setup
    reference: Setup
    masked: Count
    ratios: list[Positive]
    method: str | None
    order_effect: OrderEffect | None
    outlier_rounds: list[Ordinal]
    reference_bytes_per_s: Positive | None
    bytes_per_s: Positive | None
    admissible: bool
    reason: str | None
    masked_reasons: list[str]


class OverheadPoint(Closed, frozen=True):
    """us per event beyond zlib's time on one thread's share, in the same turns."""

    variant: Variant
    threads: Ordinal
    n: Count
    median_us: float | None
    least_us: float | None
    most_us: float | None
    interval_us: Ends[float] | None
    event_us: Amount | None
    share_us: Amount | None
    admissible: bool
    reason: str | None


class Kept(Closed, frozen=True):
    name: str
    kept: Amount | None


class Judged(Closed, frozen=True):
    """The values that requirements bound. `variant`: of the settings at all `cores`."""

    variant: str
    cores: Ordinal
    gain: Gain | None
    gain_all_cores: Gain | None
    smt: Gain | None
    ceiling: Gain | None
    overhead_us: float | None
    overhead_interval_us: Ends[float] | None
    demand: list[Kept]
    abandoned_events: Count | None
    overhead_n: Count | None = None


class StreamsChecksumAnalysis(Closed, frozen=True):
    """results/streams_checksum_analysis.json. `slower`: labels of setups that are slower than the original, at a level that holds for all
    of them together. `slower_in_use`: how many of these are as deployed or fall back. `notes`: sentences on what this candidate cannot
    show."""

    schema_version: Literal[1]
    confidence: float
    comparisons: list[Compared]
    fallback: list[Compared]
    slower: list[str]
    slower_points: Count | None
    overhead: list[OverheadPoint]
    judged: Judged
    wrong_checksums: Count
    wrong_files: list[Count]
    faults: list[Count]
    failed_runs: Count
    notes: list[str]
    reasons: dict[str, str]
    slower_in_use: Count | None = None
