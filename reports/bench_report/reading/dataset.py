"""What a run bundle says, as typed values: the vocabulary that figures and tables are written in.

Promise: plain immutable data. Optional means that a bundle may lack it (an interrupted run, a device that does
not report it); no default stands in for a measurement. Units are in the names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from bench_model.bundle.provenance import SigningKey
from bench_model.documents.verdict import Verdict
from bench_model.profiles.published import PublishedDevice
from bench_model.verdict.judging import Again
from bench_report.base.fields import Node

Samples = NDArray[np.float64]
NOT_SEALED = "not sealed: the run left no manifest"
UNSIGNED, DIFFERENT = "unsigned", "DIFFERENT FROM YOURS"


@dataclass(frozen=True)
class Candidate:
    name: str
    description: str | None
    hostname: str | None
    kernel: str | None
    os: str | None
    cpu_model: str | None
    cpus: int | None
    memory_bytes: float | None
    numa_nodes: int | None
    transient_buffer_bytes: float | None


@dataclass(frozen=True)
class Device:
    name: str
    model: str | None
    serial: str | None
    firmware: str | None
    wwn: str | None
    size_bytes: float | None
    numa_node: int | None
    rotational: bool | None
    transport: str | None
    pcie_link: str | None
    raid_level: str | None = None  # of an array, such as raid0


@dataclass(frozen=True)
class Target:
    name: str | None  # where the candidate has several
    kind: str
    path: str | None
    filesystem: str | None
    devices: tuple[Device, ...]


@dataclass(frozen=True)
class Demand:
    links: int | None
    superchunk_bytes: float | None
    superchunk_rate_hz: float | None
    real_bytes_per_s: float
    nominal_bytes_per_s: float
    offered_bytes_per_s: float | None
    duration_s: float | None


@dataclass(frozen=True)
class Run:
    run_id: str
    state: str
    state_reason: str | None
    started: datetime
    finished: datetime | None
    candidate: Candidate
    target: Target | None
    scenario_id: str
    scenario_title: str | None
    scenario_file: str | None
    scale: float | None
    seed: int | None
    repetitions: int | None
    workloads: tuple[str, ...]  # that the scenario asks for, in its order
    lengths: tuple[
        tuple[str, float], ...
    ]  # numbers of the scenario that say how long or how often, by their place in it
    scenario_source: str | None  # what the load is taken from
    requirement_id: str
    requirement_title: str | None
    requirement_file: str | None
    demand: Demand | None
    versions: tuple[tuple[str, str], ...]
    environment: tuple[tuple[str, str], ...]
    git_commit: str | None
    git_dirty: bool
    scaled_down: tuple[str, ...]


@dataclass(frozen=True)
class Latency:
    """Percentiles in us; `hdr` is the whole distribution in HdrHistogram's encoding, when exported."""

    definition: str | None
    count: int | None
    points_us: tuple[tuple[float, float], ...]  # (percentile, us), increasing; 100 is the maximum
    min_us: float | None
    mean_us: float | None
    hdr: str | None
    hdr_unit: str | None  # of the encoded values


@dataclass(frozen=True)
class BlockPoint:
    block_bytes: int
    throughput_bytes_per_s: float
    samples_bytes_per_s: tuple[float, ...]
    iops: float | None
    runtime_s: float | None
    bytes_written: float | None
    latency: Latency | None
    cpu_percent: float | None
    device_bytes_written: float | None
    admissible: bool
    reason: str | None


@dataclass(frozen=True)
class LargeRepetition:
    """A large block size measured again. Without a throughput it does not count, and `reason` says why."""

    repetition: int
    block_bytes: int
    throughput_bytes_per_s: float | None
    samples: int
    runtime_s: float | None
    bytes_written: float | None
    device_bytes_written: float | None
    reason: str | None


@dataclass(frozen=True)
class BlockScan:
    tool: str | None
    tool_version: str | None
    io_depth: int | None
    threads: int | None
    seconds_per_point: float | None
    sample_s: float | None
    condition: str | None  # fresh, overwritten, preconditioned: a burst on fresh flash flatters it
    file_bytes: float | None
    direct: bool | None
    points: tuple[BlockPoint, ...]
    plateau_bytes_per_s: float | None
    plateau_from_bytes: int | None
    plateau_rule: str | None
    reason: str | None  # why there is no plateau
    large_blocks_bytes_per_s: float | None  # the lowest point from `large_blocks_from_bytes` on
    large_blocks_from_bytes: int | None
    others: tuple[BlockScan, ...] = ()  # the same scan with further tools
    repetitions: tuple[
        LargeRepetition, ...
    ] = ()  # what large blocks are judged by; empty where nothing was measured again


@dataclass(frozen=True)
class Series:
    """What was offered and stored per interval; `t_s` is each interval's end, from the record's start."""

    t_s: tuple[float, ...]
    offered_bytes_per_s: tuple[float, ...]
    stored_bytes_per_s: tuple[float, ...]
    backlog_bytes: tuple[float, ...]


@dataclass(frozen=True)
class Minidaq:
    status: str
    error: str | None
    offered_bytes_per_s: float | None
    stored_bytes_per_s: float | None
    superchunks: tuple[tuple[str, int], ...]
    lost_per_link: tuple[float, ...]
    written_bytes: float | None
    record_s: float | None
    drain_s: float | None
    busy_count: int | None
    busy_total_s: float | None
    busy_episodes: tuple[tuple[float, float], ...]  # (start, duration) in s
    backlog_high_bytes: float | None  # the true high-water mark; samples of the series may all lie below it
    backlog_high_s: float | None  # when it was reached
    backlog_capacity_bytes: float | None
    buffer_needed_bytes: float | None
    buffer_method: str | None
    source_achieved: float | None
    source_late_superchunks: int | None
    source_late_threshold_us: float | None  # a superchunk that is offered later than this after its time is late
    source_worst_lateness_us: float | None
    arrival: Latency | None
    write: Latency | None
    series: Series | None
    parameters: tuple[tuple[str, str], ...]
    cpu_s_per_gb: float | None
    copy_share: float | None  # of the CPU time, 0 to 1


@dataclass(frozen=True)
class Fault:
    kind: str
    offset_bytes: int | None
    link: int | None
    sequence: int | None
    detail: str | None


@dataclass(frozen=True)
class Verify:
    status: str
    complete_trailer: bool | None
    superchunks: tuple[tuple[str, int], ...]
    faults: tuple[Fault, ...]
    bytes_read: float | None
    duration_s: float | None
    read_bytes_per_s: float | None


@dataclass(frozen=True)
class Repetition:
    minidaq: Minidaq | None
    verify: Verify | None
    condition: str | None = None  # fresh or preconditioned, where the scenario named conditions

    def named(self, number: int) -> str:
        """`2`, or `2, preconditioned`: how tables and figures call it."""
        return f"{number}, {self.condition}" if self.condition else str(number)


@dataclass(frozen=True)
class Setting:
    id: str
    role: str | None
    subject: str | None
    asked: str | None
    before: str | None
    applied: str | None
    read_back: str | None
    status: str
    detail: str | None

    @property
    def as_wanted(self) -> bool:
        """Nothing was asked, or what was asked is in force."""
        return not self.asked or self.asked == "keep" or self.status in ("applied", "unchanged")


@dataclass(frozen=True)
class Smart:
    """What a drive says of itself; `readings` in the drive's own words and units, in its order. `errors`: those that count errors."""

    device: str
    status: str
    detail: str | None
    readings: tuple[tuple[str, float | str], ...] = ()
    errors: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Event:
    time: datetime
    kind: str
    source: str | None
    text: str
    data: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Phase:
    """A part of the run, in seconds from the run's start."""

    name: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Collector:
    name: str
    status: str
    detail: str | None
    period_s: float | None
    points: int | None
    longest_gap_s: float | None


@dataclass(frozen=True)
class Accounting:
    """Where every telemetry point went, and how long each collector was silent at most."""

    counts: tuple[tuple[str, str, float], ...]  # (label, dotted name in summary.json, value)
    collectors: tuple[Collector, ...]


Track = tuple[Samples, Samples]  # times in s from the run's start, values


@dataclass(frozen=True)
class HostSeries:
    """Telemetry of the host in seconds from the run's start; empty where nothing was collected."""

    disk_write_bytes_per_s: dict[str, Track]
    cpu_percent: dict[str, dict[str, Track]]  # core -> mode -> share of that core's time
    temperature_celsius: dict[str, Track]
    lines: int
    torn: bool


@dataclass(frozen=True)
class Provenance:
    """`manifest_sha256`: of MANIFEST.sha256, None for a bundle that was never sealed. `reports_key`: by which the reports are
    about to be signed. `altered`: files that changed since the bundle was sealed. `different`: fields of its profiles that are not those
    of whoever rendered. `profiles`: SHA-256 of scenario and requirements, by file. `challenge`: the buyer's nonce."""

    manifest_sha256: str | None = None
    evidence_key: SigningKey | None = None
    reports_key: str | None = None
    altered: int = 0
    different: tuple[str, ...] = ()
    profiles: tuple[tuple[str, str], ...] = ()
    challenge: str | None = None

    @property
    def footer(self) -> str:
        """For every page."""
        if self.manifest_sha256 is None:
            return NOT_SEALED
        if self.altered:
            return f"ALTERED since it was sealed: {self.altered} file{'s' if self.altered > 1 else ''}"
        if self.different:
            return f"{DIFFERENT} in {len(self.different)} field{'s' if len(self.different) > 1 else ''}: see Provenance"
        signed = "" if self.evidence_key else f"{UNSIGNED}, "
        return f"{signed}evidence {self.manifest_sha256}"


@dataclass(frozen=True)
class Bundle:
    """`verdict`: as this bench computes it from the evidence, None where the run was never judged, or cannot be judged again.
    `again`: that judgement beside the verdict that the bundle stores; None where it stores none."""

    run: Run
    verdict: Verdict | None
    again: Again | None
    results: Mapping[str, Node]  # results/<name>.json by name, for the sections of the workloads
    published: Mapping[str, PublishedDevice]  # what others stated of their devices, by id: references, no measurements
    block_scan: BlockScan | None
    repetitions: tuple[Repetition, ...]
    live_series: Series | None  # the writer's own records, for a run that left no result
    tuning: tuple[Setting, ...] | None
    tuning_after: tuple[Setting, ...] | None
    smart_before: tuple[Smart, ...] | None
    smart_after: tuple[Smart, ...] | None
    events: tuple[Event, ...]
    phases: tuple[Phase, ...]
    host: HostSeries | None
    accounting: Accounting | None
    missing: tuple[tuple[str, str], ...]  # (file, what the report therefore lacks)
    files: frozenset[str]
    provenance: Provenance = Provenance()
