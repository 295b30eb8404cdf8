"""The types of results/hot_store.json, and of the list of runs that it follows from."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from daq_bench.bench_model.documents.struct import Amount, Closed, Count, Ordinal, Positive

Outcome = Literal["passed", "failed", "not applicable"]
Run = Annotated[str, Meta(pattern=r"^hot-store-[a-z0-9.-]+$")]  # name of a document in results/raw


class Published(Closed, frozen=True):
    source: str
    just_below_ops_per_s: float
    min_ops_per_s: float
    stdev_at_most_ops_per_s: float
    times_redis: float
    conditions: str


class LatencyUs(Closed, frozen=True):
    p50: float
    p99: float
    p99_9: float
    max: float


class Rate(Closed, frozen=True):
    n: Count
    samples_ops_per_s: list[float]
    mean_ops_per_s: float | None
    min_ops_per_s: float | None
    stdev_ops_per_s: float | None
    relative_stdev: float | None
    min_over_mean: float | None
    waited_s: float | None
    latency_us: LatencyUs | None


class HandoverNs(Closed, frozen=True):
    before: Positive | None
    after: Positive | None


class Embedded(Closed, frozen=True):
    put: Rate
    consume: Rate
    cpu_us_per_operation: float | None
    handover_ns: HandoverNs
    cpus_moved: bool | None


class Redis(Closed, frozen=True):
    set: Rate
    get: Rate


class Drive(Closed, frozen=True):
    put: Rate
    consume: Rate


class Ratio(Closed, frozen=True):
    value: float | None
    interval: Annotated[list[float], Meta(min_length=2, max_length=2)] | None


class Ratios(Closed, frozen=True):
    put: Ratio
    consume: Ratio


class Point(Closed, frozen=True):
    """`repetition`: of the pass over all value sizes."""

    repetition: Ordinal
    value_bytes: Count
    embedded: Embedded
    redis: Redis
    drive: Drive | None
    ratios: Ratios
    admissible: bool
    reason: str | None


class Clients(Closed, frozen=True):
    clients: Count
    put: Rate
    consume: Rate
    admissible: bool
    reason: str | None


class Cell(Closed, frozen=True):
    outcome: Outcome
    detail: str


class Row(Closed, frozen=True):
    id: str
    text: str
    engines: dict[str, Cell]


class Semantics(Closed, frozen=True):
    rows: list[Row]
    passed: Count
    failed: Count


class Loss(Closed, frozen=True):
    id: str
    text: str
    engine: str
    outcome: Outcome
    detail: str
    lost: Count


class ScalePoint(Closed, frozen=True):
    deployment: Literal["base", "detached"]
    nodes: Count
    put_ops_per_s: float
    consume_ops_per_s: float
    put_p99_us: float | None
    consume_p99_us: float | None
    unconfirmed: Count
    network_bytes: int | None
    admissible: bool
    reason: str | None
    network_bytes_per_event: float | None
    events: Count


class ScaleOut(Closed, frozen=True):
    value_bytes: Count
    replicas: Count
    network: str
    consumers_per_node: Count
    points: list[ScalePoint]


class JudgedRatios(Closed, frozen=True):
    put: list[Ratio]
    consume: list[Ratio]


class Summary(Closed, frozen=True):
    ratios: JudgedRatios
    relative_stdev: float | None
    min_over_mean: float | None
    semantics_failed: int | None
    lost_events: int | None
    network_share: float | None
    reasons: dict[str, str]


class HotStore(Closed, frozen=True):
    """results/hot_store.json: DAQDB's semantics and load on this machine. `promises`: what an acknowledged operation survives, by
    engine."""

    schema_version: Literal[1]
    seconds_per_point: float
    sample_s: float
    capacity_bytes: Count
    redis_clients: Count
    client_value_bytes: Count
    memory_folder: str
    promises: dict[str, str]
    published: Published
    points: list[Point]
    clients: list[Clients]
    semantics: Semantics
    losses: list[Loss]
    scale_out: ScaleOut
    summary: Summary


class RunsOfPoint(Closed, frozen=True):
    """`repetition`: of the pass over all value sizes."""

    repetition: Ordinal
    value_bytes: Ordinal
    embedded: Run
    redis: Run
    drive: Run | None


class RunOfClients(Closed, frozen=True):
    clients: Ordinal
    document: Run


class RunsOfLoss(Closed, frozen=True):
    id: str
    text: str
    engine: str
    verify: Run
    acknowledged_min: Count
    heirs: list[Run]


class RunsOfScale(Closed, frozen=True):
    deployment: Literal["base", "detached"]
    nodes: Ordinal
    producers: list[Run]
    consumers: list[Run]
    network_bytes: Count | None
    drained_s: Amount


class RunsOfScaleOut(Closed, frozen=True):
    value_bytes: Ordinal
    replicas: Count
    network: Literal["namespaces", "loopback"]
    consumers_per_node: Ordinal
    points: list[RunsOfScale]


class HotStoreRuns(Closed, frozen=True):
    """results/hot_store_runs.json: which documents in results/raw hold what was measured of the hot store."""

    schema_version: Literal[1]
    seed: int
    seconds_per_point: Positive
    capacity_bytes: Ordinal
    redis_clients: Ordinal
    client_value_bytes: Ordinal
    memory_folder: str
    points: Annotated[list[RunsOfPoint], Meta(min_length=1)]
    clients: list[RunOfClients]
    semantics: Annotated[dict[str, Run], Meta(min_length=1)]
    losses: list[RunsOfLoss]
    scale_out: RunsOfScaleOut
