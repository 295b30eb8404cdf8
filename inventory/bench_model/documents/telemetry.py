"""Documents in which agents account for their work and the bench for every point."""

from __future__ import annotations

from typing import Literal

from bench_model.documents.struct import Struct


class Collector(Struct, frozen=True):
    name: str
    status: Literal["ok", "failing", "unsupported"]
    period_s: float
    longest_gap_s: float
    duration_s_mean: float = 0.0


class TelemetrySummary(Struct, frozen=True):
    """telemetry/summary.json, of the candidate's agent and of the control node's."""

    schema_version: Literal[1]
    state: Literal["running", "interrupted", "finished"]
    collectors: list[Collector]


class SensorCoverage(Struct, frozen=True):
    """results/sensor_coverage.json."""

    schema_version: Literal[1]
    limit_s: float
    longest_silence_s: dict[str, float | None]
    limits: list[str]
    invalid: list[str]


class AccountOfCollector(Struct, frozen=True):
    name: str
    status: Literal["ok", "failing", "unsupported"]


class TelemetryAccount(Struct, frozen=True):
    """results/telemetry_account.json."""

    schema_version: Literal[1]
    state: Literal["running", "interrupted", "finished"]
    collectors: list[AccountOfCollector]
    limits: list[str]
    invalid: list[str]
