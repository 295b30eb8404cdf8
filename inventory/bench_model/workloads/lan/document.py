"""The type of results/lan.json: the transfers of the workload lan; the output of its tools stands in results/raw/."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bench_model.documents.struct import Amount, Closed, Count, Ordinal


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
    side: Literal["untuned", "tuned"]
    first: bool
    quantity: Literal["bandwidth", "latency"]


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


class Transfer(Closed, frozen=True):
    """`attempts`: more than one: its tools did not come to a connection at first; `window`: of the candidate; of namespaces: of all nodes;
    `peers`: the same stretch at each further host"""

    id: str
    kind: Literal["bandwidth", "latency", "confirmation", "crowd", "build", "setting"]
    topology: Literal["direct", "switch"]
    operation: str
    bidirectional: bool
    message_bytes: Ordinal
    nodes: Annotated[int, Meta(ge=2)]
    trial: Trial | None
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
