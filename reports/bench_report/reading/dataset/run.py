"""The run as run.json tells it: its candidate, target and demand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


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
    scenario_source: str | None  # the source of the load
    requirement_id: str
    requirement_title: str | None
    requirement_file: str | None
    demand: Demand | None
    versions: tuple[tuple[str, str], ...]
    environment: tuple[tuple[str, str], ...]
    git_commit: str | None
    git_dirty: bool
    scaled_down: tuple[str, ...]
