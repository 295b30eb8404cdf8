"""A record and its read-back, as daqwriter measured them."""

from __future__ import annotations

from dataclasses import dataclass

from bench_report.reading.dataset.latency import Latency


@dataclass(frozen=True)
class Series:
    """Data offered and stored per interval; `t_s` is each interval's end, from the record's start."""

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
