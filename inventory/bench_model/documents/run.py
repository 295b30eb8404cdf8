"""run.json: what ran, on what, by which profiles, and how it ended."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from bench_model.documents.struct import Struct


class Drive(Struct, frozen=True):
    """A drive or an array as the candidate names it; what it does not tell is None. `members`: names of an array's drives."""

    name: str
    model: str | None
    serial: str | None
    firmware: str | None = None
    wwn: str | None = None
    size_bytes: int | None = None
    numa_node: int | None = None
    rotational: bool | None = None
    transport: str | None = None
    pcie_link: dict[str, Any] | str | None = None
    raid_level: str | None = None
    members: list[str] = msgspec.field(default_factory=list)


class CandidateOfRun(Struct, frozen=True):
    name: str
    description: str
    transient_buffer_bytes: int
    virtual: bool
    connection: str
    hostname: str | None = None
    kernel: str | None = None
    os: str | None = None
    architecture: str | None = None
    cpu_model: str | None = None
    cpus: int | None = None
    memory_bytes: int | None = None
    numa_nodes: int | None = None


class TargetOfRun(Struct, frozen=True):
    kind: str
    filesystem: str | None
    drives: list[Drive]
    name: str = ""
    directory: str = ""
    path: str = ""
    device: Drive | None = None


class ScenarioOfRun(Struct, frozen=True):
    id: str
    scale: float
    seed: int
    repetitions: int
    repetitions_max: int
    parameters: dict[str, Any]
    title: str = ""
    file: str = ""


class RequirementOfRun(Struct, frozen=True):
    id: str
    title: str = ""
    file: str = ""


class DemandOfRun(Struct, frozen=True):
    links: int
    superchunk_bytes: int
    superchunk_rate_hz: float
    scale: float
    duration_s: float
    real_bytes_per_s: float
    offered_bytes_per_s: float
    record_bytes: int
    nominal_bytes_per_s: float = 0.0


class Run(Struct, frozen=True):
    """run.json. What `qualify` adds as it goes (versions, git, telemetry, request, further targets) has no type yet."""

    schema_version: Literal[1]
    run_id: str
    state: str
    state_reason: str | None
    started_utc: str
    finished_utc: str | None
    candidate: CandidateOfRun
    target: TargetOfRun
    scenario: ScenarioOfRun
    requirement: RequirementOfRun
    demand: DemandOfRun | None
    declared_limits: list[str]
    scaled_down: list[str] = msgspec.field(default_factory=list)
