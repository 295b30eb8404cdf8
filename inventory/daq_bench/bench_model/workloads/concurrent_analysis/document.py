"""The types of results/concurrent_analysis.json, what the jobs and the devices counted, and of the rates that follow from it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from daq_bench.bench_model.documents.struct import Amount, Closed, Count, Ordinal, Pair, Positive

Kind = Literal["sparse", "full"]
Layout = Literal["ttree", "rntuple"]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


BINS = 120  # of 0.5 GeV, from 60 to 120 GeV
Histogram = Annotated[list[Count], Meta(min_length=BINS, max_length=BINS)]


class Limits(Closed, frozen=True):
    """Describes a disk that is held back."""

    read_iops: Ordinal
    read_bytes_per_s: Ordinal


class Storage(Closed, frozen=True):
    """The judged one first. `text`: what it is, in words. `devices`: kernel names whose counters were read. `reason`: why nothing was
    measured on it."""

    name: str
    kind: Literal["target", "slow-disk"]
    text: str
    devices: list[str]
    limits: Limits | None
    reason: str | None


class Spectrum(Closed, frozen=True):
    """Holds the mass spectrum's truth, GeV."""

    mass: float
    width: float
    slope: float
    signal_share: float
    opposite_share: float


class Shape(Closed, frozen=True):
    """Describes what was generated. `event_bytes`: mean size of an event in memory, B. `truth`: of the mass spectrum, GeV."""

    kind: Kind
    layout: Layout
    events: Ordinal
    files: Ordinal
    event_bytes: Ordinal
    cluster_events: Ordinal
    compression: str
    seed: Count
    truth: Spectrum


class SetTruth(Closed, frozen=True):
    """Counted while it was generated."""

    entries: Count
    digest: Sha256
    opposite: Count
    signal: Count
    mass: Histogram


class Set(Closed, frozen=True):
    storage: str
    analysis: Kind
    layout: Layout
    shape: Shape
    files: Ordinal
    bytes: Count
    truth: SetTruth


class Device(Closed, frozen=True):
    """`read_bytes`: by the device's own counter, during the run."""

    name: str
    read_bytes: Count


class Usage(Closed, frozen=True, kw_only=True):
    """One job's use. `start_s`: monotonic clock, s. `rchar`: bytes by read calls, proc(5). `read_bytes`: bytes that the kernel
    fetched from storage for this process, proc(5). `fetched_bytes`: bytes that were asked of the files. `requests`: baskets or pages
    asked for. `entries`: events."""

    pid: Count
    start_s: float
    end_s: float
    user_s: Amount
    system_s: Amount
    rchar: Count
    read_bytes: Count
    fetched_bytes: Count
    requests: Count
    fits: Count
    entries: Count


class Record(Usage, frozen=True, kw_only=True):
    """One job."""

    worker: Count
    files: Count


class Fitted(Closed, frozen=True):
    value: float
    error: Positive


class Fit(Closed, frozen=True):
    """Least squares; GeV, and numbers of pairs."""

    signal: Fitted
    mass: Fitted
    width: Fitted
    background: Fitted
    slope: Fitted
    chi2: float
    degrees: Count


class Result(Closed, frozen=True):
    """The analysis' result. `digest`: SHA-256 of every variable's histogram. `mass`: pairs in bins of 0.5 GeV from 60 to 120 GeV."""

    entries: Count
    digest: Sha256
    selected: Count
    balanced: Count
    mass: Histogram
    fit: Fit | None


class Point(Closed, frozen=True):
    storage: str
    layout: Layout
    repetition: Ordinal
    analysis: Kind
    workers: Ordinal
    devices: list[Device]
    records: Annotated[list[Record], Meta(min_length=1)]
    result: Result


class Node(Closed, frozen=True):
    name: str
    workers: Ordinal
    cpus: Annotated[list[Count], Meta(min_length=1)]
    files: Ordinal


class Task(Usage, frozen=True, kw_only=True):
    """One file on a worker of the farm."""

    node: str
    file: str


class Run(Closed, frozen=True):
    """Nodes of a farm at the same time. `elapsed_s`: from handing out the first task to having all results."""

    nodes: Annotated[list[str], Meta(min_length=1)]
    elapsed_s: Positive
    devices: list[Device]
    records: Annotated[list[Task], Meta(min_length=1)]
    result: Result


class Round(Closed, frozen=True):
    round: Ordinal
    alone_first: bool
    runs: Annotated[list[Run], Meta(min_length=3)]


class Farm(Closed, frozen=True):
    analysis: Kind
    nodes: Annotated[list[Node], Meta(min_length=2)]
    rounds: Annotated[list[Round], Meta(min_length=1)]


class ConcurrentAnalysis(Closed, frozen=True):
    """results/concurrent_analysis.json: what the jobs and the devices counted; what follows is results/concurrent_analysis_rates.json.
    `cores`: physical cores. `cpus`: CPUs that jobs may use."""

    schema_version: Literal[1]
    cores: Ordinal
    cpus: Annotated[list[Count], Meta(min_length=1)]
    drop_caches: bool
    layouts: Annotated[list[Layout], Meta(min_length=1)]
    compression: str
    worker_counts: Annotated[list[Ordinal], Meta(min_length=2)]
    versions: dict[str, str]
    storages: Annotated[list[Storage], Meta(min_length=1)]
    sets: Annotated[list[Set], Meta(min_length=1)]
    points: Annotated[list[Point], Meta(min_length=1)]
    farm: Farm | None
    limits: list[str]


class Rates(Closed, frozen=True, kw_only=True):
    """The rates of one run of N jobs. `device_bytes`: null where no single device is beneath. `reason`: why it is no cold read.
    `wrong`: why its result is."""

    analysis: Kind
    wall_s: float
    fetched_bytes: Count
    storage_bytes: Count
    device_bytes: Count | None
    requests: Count
    bytes_per_s: float
    device_bytes_per_s: float | None
    cpu_share: float
    reason: str | None
    wrong: str | None


class RatesOfPoint(Rates, frozen=True, kw_only=True):
    """`coldness`: the lesser of both counters over what was asked of the files."""

    storage: str
    layout: Layout
    workers: Ordinal
    repetition: Ordinal
    coldness: float | None


class RatesOfNodes(Rates, frozen=True, kw_only=True):
    nodes: list[str]


class SeriesPoint(Closed, frozen=True):
    """The repetitions that count with one number of workers. `amplification`: bytes of the device per byte that was asked for."""

    workers: Ordinal
    n: Count
    masked: Count
    median_bytes_per_s: float | None
    least_bytes_per_s: float | None
    most_bytes_per_s: float | None
    interval_bytes_per_s: Pair[float] | None
    device_bytes_per_s: float | None
    worker_bytes_per_s: float | None
    cpu_share: float | None
    amplification: float | None
    reason: str | None


class CoreRatio(Closed, frozen=True):
    """The rate at as many workers as cores over that at the peak."""

    ratio: float | None
    interval: Pair[float] | None
    n: Count


class RatioOfAnalysis(CoreRatio, frozen=True, kw_only=True):
    analysis: Kind


class Series(Closed, frozen=True):
    storage: str
    analysis: Kind
    layout: Layout
    points: list[SeriesPoint]
    peak_workers: int | None
    peak_bytes_per_s: float | None
    core_ratio: CoreRatio | None


class FarmRound(Closed, frozen=True):
    """`ratio`: of all nodes together to the sum of single ones; null where a run does not count."""

    round: Ordinal
    alone_first: bool
    runs: list[RatesOfNodes]
    sum_bytes_per_s: float
    aggregate_bytes_per_s: float
    ratio: float | None
    reason: str | None


class FarmRates(Closed, frozen=True):
    nodes: list[Node]
    workers: Count
    rounds: list[FarmRound]
    ratio: float | None
    interval: Pair[float] | None
    n: Count


class Generated(Closed, frozen=True):
    """GeV, and a number of pairs."""

    signal: Count
    mass: float
    width: float


class Physics(Closed, frozen=True):
    """The mass spectrum of a set. `pulls`: (fitted - generated) / error."""

    storage: str
    analysis: Kind
    layout: Layout
    points: Count
    wrong: Count
    why_wrong: list[str]
    fit: Fit | None
    mass: list[Count] | None
    truth: Generated
    pulls: dict[str, float] | None


class Judged(Closed, frozen=True):
    """The values that requirements bound, of the judged storage."""

    storage: str
    cores: Ordinal
    core_ratios: list[RatioOfAnalysis]
    supply: list[float]
    farm_ratio: float | None
    farm_interval: Pair[float] | None
    coldness_min: float | None
    wrong_results: int | None
    pull_max: float | None


class ConcurrentAnalysisRates(Closed, frozen=True):
    """results/concurrent_analysis_rates.json."""

    schema_version: Literal[1]
    confidence: float
    cores: Ordinal
    points: list[RatesOfPoint]
    series: list[Series]
    farm: FarmRates
    physics: list[Physics]
    judged: Judged
    limits: list[str]
    invalid: list[str]
    reasons: dict[str, str]
