"""The types of results/lan.json, the transfers of the workload lan, and of what follows from them and from its tools' output."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from daq_bench.bench_model.documents.struct import Amount, Closed, Count, Ordinal, Pair, Positive

TransferKind = Literal["bandwidth", "latency", "confirmation", "crowd", "build", "setting"]
Topology = Literal["direct", "switch"]
Side = Literal["untuned", "tuned"]
Quantity = Literal["bandwidth", "latency"]
Decision = Literal["above", "below", "undecided"]


class Network(Closed, frozen=True):
    kind: Literal["namespaces", "hosts"]
    nodes: Annotated[int, Meta(ge=2)]
    topologies: list[str]
    port_bytes_per_s: float | None
    queue_bytes: int | None


class Building(Closed, frozen=True):
    in_flight: Count


class Settings(Closed, frozen=True):
    pairs: Count
    seconds: Amount


class Rings(Closed, frozen=True):
    now: dict[str, str]
    most: dict[str, str]


class Port(Closed, frozen=True):
    node: str
    host: str
    interface: str
    operstate: str | None
    speed: str | None
    mtu_bytes: int | None
    txqueuelen: int | None
    driver: str | None
    firmware: str | None
    pcie: dict[str, Any]
    numa_node: str | None
    pause: dict[str, str]
    pause_frames: dict[str, Count]
    rings: Rings
    coalescing: dict[str, str]
    offloads: dict[str, str]
    rdma_devices: list[str]


class LeftOut(Closed, frozen=True):
    id: str
    reason: str


class Trial(Closed, frozen=True):
    experiment: str
    pair: Ordinal
    side: Side
    first: bool
    quantity: Quantity


class Point(Closed, frozen=True):
    """One transfer of the plan, whatever came of it."""

    id: str
    kind: TransferKind
    topology: Topology
    operation: str
    bidirectional: bool
    message_bytes: Ordinal
    nodes: Annotated[int, Meta(ge=2)]
    trial: Trial | None

    @staticmethod
    def between_two(
        kind: TransferKind, topology: Topology, operation: str, size: int, bidirectional: bool = False
    ) -> Point:
        both = "-bidirectional" if bidirectional else ""
        name = f"{kind}-{topology}-{operation.replace(' ', '-')}{both}-{size}"
        return Point(name, kind, topology, operation, bidirectional, size, 2, None)

    @property
    def label(self) -> str:
        """Names it as no other transfer of a plan."""
        both = ", both ways" if self.bidirectional else ""
        if one := self.trial:
            return f"{one.experiment}: pair {one.pair}, {one.side}, {one.quantity}{both}"
        first = self.id if self.kind == "confirmation" else self.kind
        return f"{first}, {self.topology}, {self.operation}{both}, {self.message_bytes} B"


class Flow(Closed, frozen=True):
    """`file`: the tool's own output, in results/raw/"""

    name: str
    tool: str
    from_: str = msgspec.field(name="from")
    to: str
    file: Annotated[str, Meta(pattern="^lan-[A-Za-z0-9_-]+\\.txt$")]
    returncode: int
    stderr: str
    argv: list[str]


class End(Closed, frozen=True):
    """`cpu`: ticks of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal; `ports`: counters of each node's port; rdma_*: of
    its RDMA device, whose traffic passes the interface by; `queue_drops`: packets that the emulated switch had no room for"""

    utc_s: float
    cpu: Annotated[dict[str, Annotated[list[Count], Meta(min_length=8, max_length=8)]], Meta(min_length=2)]
    ports: dict[str, dict[str, Count]]
    queue_drops: int | None


class Window(Closed, frozen=True):
    ticks_per_s: Count
    begin: End
    end: End


class Record(Closed, frozen=True):
    id: str
    at: str
    asked: str
    before: str | None
    read_back: str | None
    held: bool | None
    restored: bool | None
    status: Literal["applied", "unchanged", "unsupported", "refused", "mismatch"]
    detail: str


class Transfer(Point, frozen=True):
    """`attempts`: more than one: its tools did not come to a connection at first; `window`: of the candidate (namespaces: of all nodes);
    `peers`: the same stretch at each further host"""

    flows: Annotated[list[Flow], Meta(min_length=1)]
    window: Window | None
    settings: list[Record]
    attempts: Ordinal | UnsetType = UNSET
    peers: dict[str, Window | None] | UnsetType = UNSET


class Lan(Closed, frozen=True):
    """results/lan.json: the transfers of the workload lan; what the tools measured stands in results/raw/."""

    schema_version: Literal[1]
    engine: Literal["tcp", "rdma"]
    network: Network
    scale: Amount
    full_need_bytes_per_s: Amount
    need_bytes_per_s: Amount
    seconds_per_size: Amount
    warm_up_s: Amount
    streams: Count
    building: Building
    settings: Settings
    ports: Annotated[list[Port], Meta(min_length=2)]
    left_out: list[LeftOut]
    transfers: Annotated[list[Transfer], Meta(min_length=1)]
    limits: list[str]


class CpuUse(Closed, frozen=True):
    """Shares of all CPUs of one host over the measured stretch; `busiest`: of one CPU, with what the hypervisor took."""

    mean: float
    kernel: float
    steal: float
    busiest: float
    per_cpu: dict[str, float]
    seconds: float


class Latency(Closed, frozen=True):
    """us. perftest with -D tells the mean alone."""

    mean: Amount
    p50: Amount | None
    p99: Amount | None
    max: Amount | None


class EventTime(Closed, frozen=True):
    """us, from the request of an event's fragments to the last of them."""

    p50: Amount
    p99: Amount
    max: Amount


class MeasuredFlow(Closed, frozen=True, kw_only=True):
    """One tool's measurement. `reverse_bytes_per_s`: of both directions at once. `sent_again`: TCP segments. `events` and the rest: of a
    builder."""

    from_: str = msgspec.field(name="from")
    to: str
    bytes_per_s: Amount
    reverse_bytes_per_s: Amount | None = None
    sent_again: int | None = None
    sent_again_share: float | None = None
    congestion: str | None = None
    samples: Count | None = None
    least_bytes_per_s: Amount | None = None
    most_bytes_per_s: Amount | None = None
    events: Ordinal | None = None
    events_per_s: Amount | None = None
    event_us: EventTime | None = None
    slowest_source_us: Amount | None = None


class MeasuredTransfer(Point, frozen=True, kw_only=True):
    """One transfer as its tools measured it. `starved`: a CPU of the load had nothing left. `port_bytes_per_s`: into the fullest port.
    `counted_bytes_per_s`: by the receiving port's own counter. `into`: B/s into each node. A field without a value was not measured, or
    is of another kind of transfer."""

    cpu: CpuUse | None
    cpu_of_peers: dict[str, CpuUse] = msgspec.field(default_factory=dict)
    memory_bytes_per_s: float | None
    queue_drops: int | None
    starved: bool
    failed: bool
    admissible: bool
    reason: str | None
    n: Count | None = None
    latency_us: Latency | None = None
    flows: list[MeasuredFlow] = msgspec.field(default_factory=list)
    total_bytes_per_s: Amount | None = None
    sent_again: int | None = None
    bytes_per_s: Amount | None = None
    reverse_bytes_per_s: Amount | None = None
    port_bytes_per_s: Amount | None = None
    counted_bytes_per_s: float | None = None
    into: dict[str, Amount] = msgspec.field(default_factory=dict)
    fairness: float | None = None
    sent_again_share: float | None = None


class Contribution(Closed, frozen=True):
    """Tuned over untuned in the pairs that count. `masked`: why the others do not; `reason`: why none does."""

    n: Count
    ratios: list[Positive]
    ratio: Positive | None
    interval: Pair[float] | None
    decision: Decision | None
    method: str | None
    masked: list[str]
    reason: str | None


class Experiment(Closed, frozen=True):
    """One setting alone, or all together."""

    id: str
    bandwidth: Contribution
    latency: Contribution


class ReadBack(Record, frozen=True, kw_only=True):
    """One value at one port, all its trials together."""

    times: Ordinal


class Published(Closed, frozen=True):
    """Values that the source states in words."""

    source: str
    conditions: str
    ofed_bytes_per_s: Positive
    bidirectional_bytes_per_s: Positive
    event_building_bytes_per_s: Positive
    needed_bytes_per_s: Positive


class Judged(Closed, frozen=True):
    """The values that requirements bound. Shares are of the need at the run's scale."""

    port_share: list[Amount]
    incast_share: list[Amount]
    building_share: list[Amount]
    incast_fairness: list[float | None]
    incast_sent_again: list[float]
    latency_ratio: Positive | None
    latency_interval: Pair[float] | None
    latency_worse: Literal[0, 1] | None
    settings_not_held: Count | None
    settings_tried: Count
    failed_transfers: Count
    starved_transfers: Count


class LanAnalysis(Closed, frozen=True):
    """results/lan_analysis.json: the transfers by kind, the settings' own contributions, and the values that are judged."""

    schema_version: Literal[1]
    confidence: float
    published: Published
    bandwidth: list[MeasuredTransfer]
    latency: list[MeasuredTransfer]
    confirmation: list[MeasuredTransfer]
    crowd: list[MeasuredTransfer]
    build: list[MeasuredTransfer]
    settings: list[Experiment]
    tuned_settings: list[ReadBack]
    judged: Judged
    reasons: dict[str, str]
    notes: list[str]
