"""Results of workloads, and what is derived from them, as far as they have types."""

from __future__ import annotations

from typing import Any, Literal

from bench_model.documents.struct import Struct


class Repetition(Struct, frozen=True):
    """One record. `minidaq` and `verify` are daqwriter's own documents, which have schemas."""

    condition: str | None
    minidaq: dict[str, Any]
    verify: dict[str, Any]
    damaged_superchunks: int
    verified_fraction: float | None


class Stopping(Struct, frozen=True):
    """When a workload that may go on was told that it had enough."""

    repetitions_min: int
    repetitions_max: int
    confidence: float
    looks: list[dict[str, Any]]


class SnbRecord(Struct, frozen=True):
    """results/snb_record.json."""

    schema_version: Literal[1]
    repetitions: list[Repetition]
    conditioning: list[dict[str, Any]]
    limits: list[str]
    stopping: Stopping


class DriveTemperature(Struct, frozen=True):
    """results/drive_temperature.json."""

    schema_version: Literal[1]
    samples: int
    max_degC: float | None  # noqa: N815 the document's own names
    warning_degC: float | None  # noqa: N815
    headroom_degC: float | None  # noqa: N815
    critical_degC: float | None  # noqa: N815
    critical_headroom_degC: float | None  # noqa: N815
    reasons: dict[str, str]


class Reasoned(Struct, frozen=True):
    """A derived document whose metrics may be null, each with its reason."""

    schema_version: Literal[1]
    reasons: dict[str, str]
