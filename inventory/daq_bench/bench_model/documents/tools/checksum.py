"""Tells what `daqwriter checksum` measured."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from daq_bench.bench_model.documents.struct import Closed, Count, Ordinal, Positive
from daq_bench.bench_model.documents.tools.daqwriter import Answer


class Spread(Closed, frozen=True, kw_only=True):
    """`median`: of the repetitions, in the unit of the field. `min`: of the repetitions, in the unit of the field. `max`: of the
    repetitions, in the unit of the field."""

    median: Positive
    min: Positive
    max: Positive


class Mismatch(Closed, frozen=True, kw_only=True):
    """`where`: the variant, with the place of the cut if it is one, or the operation from DRAM. `bytes`: B of the call. `threads`:
    threads, the calling one included. `expected`: checksum by zlib. `actual`: checksum that was computed."""

    where: str
    bytes: Ordinal
    threads: Ordinal
    expected: Annotated[int, Meta(ge=0, le=4294967295)]
    actual: Annotated[int, Meta(ge=0, le=4294967295)]


class ChecksumParameters(Closed, frozen=True, kw_only=True):
    """`repetitions`: measurements of each combination, taken in turns. `time_s`: s, least length of a measurement.
    `smallest_parallel_bytes`: B; smaller events are left to the calling thread. `working_set_bytes`: B read, and B written, by one core; a
    quarter of it by each of all. `cpus`: the calling thread is pinned to the last one, the others to the rest in turn from the end.
    `zlib_version`: of the library that is the reference."""

    repetitions: Ordinal
    time_s: Positive
    smallest_parallel_bytes: Count
    working_set_bytes: Annotated[int, Meta(ge=1048576)]
    cpus: Annotated[list[Count], Meta(min_length=1)]
    zlib_version: str


class Splits(Closed, frozen=True, kw_only=True):
    """`bytes`: B of the event that was cut at every place. `comparisons`: cuts, of all variants and numbers of threads, whose two parts
    gave zlib's checksum of the whole."""

    bytes: Ordinal
    comparisons: Count


class VariantSpeed(Closed, frozen=True, kw_only=True):
    """`variant`: way of computing adler32. `bytes`: B per call; the same ones each time, so that small ones come from a cache. `threads`:
    threads, the calling one included. `repetitions`: measurements; fewer than asked for after an interruption. `bytes_per_s`: B/s.
    `ns_per_call`: ns, median. `overhead_ns`: ns per call beyond zlib in one thread on bytes / threads; negative: within the noise; null: a
    variant without threads. `speed_up`: ratio to zlib in one thread on all bytes, of the medians. `serial_share`: fraction s with speed_up
    = 1 / (s + (1 - s) / threads), by Amdahl's law; above 1: slower than one thread; null: one thread. `ns_samples`: ns per call, of each
    turn. `share_ns_samples`: ns per call of zlib in one thread on bytes / threads, in the same turns."""

    variant: Literal["zlib", "thread-per-chunk", "pool-cv", "pool-busy", "fused"]
    bytes: Ordinal
    threads: Ordinal
    repetitions: Ordinal
    bytes_per_s: Spread
    ns_per_call: Positive
    overhead_ns: float | None
    speed_up: Positive
    serial_share: float | None
    ns_samples: list[Positive]
    share_ns_samples: list[Positive]


class MemorySpeed(Closed, frozen=True, kw_only=True):
    """`operation`: from DRAM; -copy: with non-temporal stores. `threads`: 1, or all CPUs of the process, each on memory of its own.
    `repetitions`: measurements; fewer than asked for after an interruption. `bytes_per_s`: B/s of the source; a copy moves twice as much;
    all threads together."""

    operation: Literal["memcpy", "non-temporal-copy", "crc32", "adler32", "crc32-copy", "adler32-copy"]
    threads: Ordinal
    repetitions: Ordinal
    bytes_per_s: Spread


class Checksum(Answer, frozen=True, kw_only=True):
    """daqwriter checksum --json: what checksums cost, alone, by several threads and together with a copy. `status`: damaged: a result
    differs from zlib's. `mismatch`: the first result that differs from zlib's; it ends the measurement. `splits`: null: not asked for.
    `combine_ns`: ns for one adler32_combine; null: not measured."""

    command: Literal["checksum"]
    status: Literal["complete", "damaged", "failed", "interrupted"]
    mismatch: Mismatch | None
    parameters: ChecksumParameters
    splits: Splits | None
    combine_ns: Spread | None
    variants: list[VariantSpeed]
    memory: list[MemorySpeed]
