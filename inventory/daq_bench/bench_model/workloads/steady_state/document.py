"""The type of results/steady_state.json: rounds of each test until they are steady."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from daq_bench.bench_model.documents.results import Conditioning
from daq_bench.bench_model.documents.struct import Closed, Count, Ordinal, Struct


class SideLatency(Struct, frozen=True):
    """us, by fio. A percentile is null where fio told none."""

    mean: float
    max: float
    p50: float | None = None
    p99: float | None = None
    p99_9: float | None = None
    p99_99: float | None = None
    p99_999: float | None = None


class Side(Closed, frozen=True):
    """The reads or the writes of a point. `latency_us`: null where there were none."""

    bytes: Count
    bytes_per_s: float
    iops: float
    runtime_s: float
    latency_us: SideLatency | None


class Point(Closed, frozen=True):
    """One combination of a round."""

    name: str
    block_bytes: Count | None
    read_percent: Count
    runtime_s: float
    iops: float
    bytes_per_s: float
    latency_us: float | None
    read: Side | None
    write: Side | None
    admissible: bool
    reason: str | None


class Round(Closed, frozen=True):
    """One round. `value`: of the tracking variable; null: the round does not count."""

    round: Ordinal
    value: float | None
    reason: str | None
    device_bytes_written: Count | None
    points: Annotated[list[Point], Meta(min_length=1)]


class Window(Closed, frozen=True):
    """The first steady window."""

    first_round: Count
    last_round: Count
    mean: float
    range_share: float
    slope_per_round: float
    intercept: float
    fit_share: float


class Test(Closed, frozen=True):
    """One test. `window`: the first steady window."""

    name: str
    kind: Literal["throughput", "iops", "latency", "jesd219"]
    title: str
    tracking: str
    unit: str
    io_depth: Count
    threads: Count
    notes: list[str]
    conditioning: Conditioning
    rounds: Annotated[list[Round], Meta(min_length=1)]
    steady: bool
    reason: str | None
    window: Window | None


class SteadyState(Closed, frozen=True):
    """results/steady_state.json. `summary`: by metric, null where reasons says why. `samples`: by metric, the rounds of the steady window
    in their order. `intervals`: by metric that is a mean over the window: its 95 % interval (Student, over the rounds)."""

    schema_version: Literal[1]
    tool: str
    tool_version: str
    standard: str
    rule: str
    span_bytes: Count
    capacity_bytes: Count | None
    logical_block_bytes: Count
    seconds_per_point: float
    rounds_max: Count
    tests: Annotated[list[Test], Meta(min_length=1)]
    summary: dict[str, float | None]
    samples: dict[str, list[float]]
    reasons: dict[str, str]
    limits: list[str]
    intervals: dict[str, Annotated[list[float], Meta(min_length=2, max_length=2)]]
