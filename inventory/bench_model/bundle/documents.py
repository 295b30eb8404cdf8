"""The documents of a bundle as types, as far as a verdict rests on them, and what is wrong with those of one run.

A document that lacks a field, has null where a number belongs, or holds a number that is not finite, is not what its writer leaves:
it is named and read no further. Documents of workloads are held against their JSON schemas (inventory/schemas)."""

from __future__ import annotations

import math
from typing import Any, Literal

import msgspec

from bench_model.base.errors import ProfileError
from bench_model.bundle.evidence import Document, Evidence
from bench_model.profiles.yaml_source import SCHEMAS, check_document

DEPTH_MAX = 64  # deeper than anything that the bench writes


class Struct(msgspec.Struct):
    """Fields that a verdict does not rest on may be there, and are not looked at."""


class CandidateOfRun(Struct):
    name: str
    description: str
    transient_buffer_bytes: int
    virtual: bool
    connection: str


class Drive(Struct):
    name: str
    model: str | None
    serial: str | None


class TargetOfRun(Struct):
    kind: str
    filesystem: str | None
    drives: list[Drive]


class ScenarioOfRun(Struct):
    id: str
    scale: float
    seed: int
    repetitions: int
    repetitions_max: int
    parameters: dict[str, Any]


class RequirementOfRun(Struct):
    id: str


class DemandOfRun(Struct):
    links: int
    superchunk_bytes: int
    superchunk_rate_hz: float
    scale: float
    duration_s: float
    real_bytes_per_s: float
    offered_bytes_per_s: float
    record_bytes: int


class Run(Struct):
    """run.json."""

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


class IdentityCheck(Struct):
    subject: str
    declared: str
    found: str
    ok: bool


class Identity(Struct):
    """results/identity.json. `planned`: subjects that the inventory asks to be checked."""

    schema_version: Literal[1]
    planned: list[str]
    checks: list[IdentityCheck]


class Setting(Struct):
    id: str
    role: str
    subject: str
    asked: str
    before: str
    applied: str
    read_back: str
    status: str
    detail: str


class Tuning(Struct):
    """facts/tuning.json and its two read-backs."""

    settings: list[Setting]


class ClockReading(Struct):
    when: str
    difference_s: float
    uncertainty_s: float


class Clock(Struct):
    """facts/clock.json."""

    schema_version: Literal[1]
    same_clock: bool
    readings: list[ClockReading]


class Collector(Struct):
    name: str
    status: Literal["ok", "failing", "unsupported"]
    period_s: float
    longest_gap_s: float
    duration_s_mean: float = 0.0


class TelemetrySummary(Struct):
    """telemetry/summary.json, of the candidate's agent and of the control node's."""

    schema_version: Literal[1]
    state: Literal["running", "interrupted", "finished"]
    collectors: list[Collector]


class Repetition(Struct):
    """One record. `minidaq` and `verify` are daqwriter's own documents, which have schemas."""

    condition: str | None
    minidaq: dict[str, Any]
    verify: dict[str, Any]
    damaged_superchunks: int
    verified_fraction: float | None


class Stopping(Struct):
    """When a workload that may go on was told that it had enough."""

    repetitions_min: int
    repetitions_max: int
    confidence: float
    looks: list[dict[str, Any]]


class SnbRecord(Struct):
    """results/snb_record.json."""

    schema_version: Literal[1]
    repetitions: list[Repetition]
    conditioning: list[dict[str, Any]]
    limits: list[str]
    stopping: Stopping


class SensorCoverage(Struct):
    """results/sensor_coverage.json."""

    schema_version: Literal[1]
    limit_s: float
    longest_silence_s: dict[str, float | None]
    limits: list[str]
    invalid: list[str]


class AccountOfCollector(Struct):
    name: str
    status: Literal["ok", "failing", "unsupported"]


class TelemetryAccount(Struct):
    """results/telemetry_account.json."""

    schema_version: Literal[1]
    state: Literal["running", "interrupted", "finished"]
    collectors: list[AccountOfCollector]
    limits: list[str]
    invalid: list[str]


class DriveTemperature(Struct):
    """results/drive_temperature.json."""

    schema_version: Literal[1]
    samples: int
    max_degC: float | None  # noqa: N815 the document's own names
    warning_degC: float | None  # noqa: N815
    headroom_degC: float | None  # noqa: N815
    critical_degC: float | None  # noqa: N815
    critical_headroom_degC: float | None  # noqa: N815
    reasons: dict[str, str]


class Reasoned(Struct):
    """A derived document whose metrics may be null, each with its reason."""

    schema_version: Literal[1]
    reasons: dict[str, str]


TYPES: dict[str, type[Struct]] = {
    "run.json": Run,
    "results/identity.json": Identity,
    "facts/tuning.json": Tuning,
    "facts/tuning-verified.json": Tuning,
    "facts/tuning-after.json": Tuning,
    "facts/clock.json": Clock,
    "telemetry/summary.json": TelemetrySummary,
    "telemetry/bmc/summary.json": TelemetrySummary,
    "results/snb_record.json": SnbRecord,
    "results/sensor_coverage.json": SensorCoverage,
    "results/telemetry_account.json": TelemetryAccount,
    "results/drive_temperature.json": DriveTemperature,
    **dict.fromkeys(
        (
            "results/cost.json",
            "results/record_power.json",
            "results/dips.json",
            "results/throttling.json",
            "results/thermal_soak.json",
            "results/endurance_projection.json",
            "results/raid_comparison.json",
            "results/streams_checksum_analysis.json",
            "results/lan_analysis.json",
            "results/saturation_analysis.json",
        ),
        Reasoned,
    ),
}


def faults(evidence: Evidence) -> dict[str, str]:
    """The complaint, by file, about each document of a run that is not what its writer leaves."""
    found = {file: fault_of(file, document) for file, document in evidence.documents()}
    return {file: complaint for file, complaint in found.items() if complaint}


def fault_of(file: str, document: Document) -> str:
    """What is wrong with one document; empty when nothing is."""
    odd = _not_finite(document, file, 0)
    if odd:
        return odd
    kind = TYPES.get(file)
    try:
        if kind is not None:
            msgspec.convert(document, kind, strict=True)
        if kind is None and (SCHEMAS / f"{schema_of(file)}.schema.json").is_file():
            check_document(document, schema_of(file), file)
        for number, one in enumerate(document["repetitions"] if kind is SnbRecord else (), start=1):
            check_document(one["minidaq"], "daqwriter-minidaq", f"{file}, record {number}")
            check_document(one["verify"], "daqwriter-verify", f"{file}, read-back {number}")
    except msgspec.ValidationError as error:
        return f"{file} is not what the bench writes: {error}"
    except ProfileError as error:
        return f"{file} is not what the bench writes: {error}"
    return ""


def schema_of(file: str) -> str:
    """`results/block_scan.json`: `block-scan`."""
    return file.rpartition("/")[2].removesuffix(".json").replace("_", "-")


def _not_finite(node: Any, at: str, depth: int) -> str:
    """Names the first number that is not finite, and a document that is nested beyond anything that the bench writes."""
    if depth > DEPTH_MAX:
        return f"{at} is nested more than {DEPTH_MAX} levels deep"
    if isinstance(node, float):
        return "" if math.isfinite(node) else f"{at} is {node}: no finite number"
    if isinstance(node, dict):
        return next(filter(None, (_not_finite(one, f"{at}: {key}", depth + 1) for key, one in node.items())), "")
    if isinstance(node, list):
        if all(type(one) is float and math.isfinite(one) for one in node):
            return ""
        return next(filter(None, (_not_finite(one, f"{at}[{place}]", depth + 1) for place, one in enumerate(node))), "")
    return ""
