"""The block-size scan."""

from __future__ import annotations

from dataclasses import dataclass

from bench_report.reading.dataset.latency import Latency


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
    ] = ()  # the repetitions that judge large blocks; empty where no size was measured again
