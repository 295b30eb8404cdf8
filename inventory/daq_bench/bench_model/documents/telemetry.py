"""Documents in which agents account for their work and the bench for every point."""

from __future__ import annotations

from typing import Literal

import msgspec

from daq_bench.bench_model.documents.struct import Amount, Closed, Count, Struct

Status = Literal["ok", "failing", "unsupported"]
AgentState = Literal["running", "interrupted", "finished"]
Step = Literal["expected to collected", "collected to bundle", "bundle to InfluxDB"]
Name = Literal[
    "late", "refused", "thinned", "thinned after delivery", "unspooled", "agent killed", "overwritten", "rejected", "undelivered",
    "expired", "unnamed",
]  # fmt: skip


class Collector(Struct, frozen=True):
    """The agent says more of a collector; agents of several versions write it."""

    name: str
    status: Status
    period_s: float
    longest_gap_s: float
    duration_s_mean: float = 0.0


class TelemetrySummary(Struct, frozen=True):
    """telemetry/summary.json, of the candidate's agent and of the control node's, as far as a verdict reads it."""

    schema_version: Literal[1]
    state: AgentState
    collectors: list[Collector]


class SensorCoverage(Closed, frozen=True, omit_defaults=True):
    """results/sensor_coverage.json: the longest silence of each target drive's temperature sensor; None for a drive without one.
    `unmoved`: sentences on readings that never changed although the drive's temperature must have; left out where there are none, as in
    the documents of older benches."""

    schema_version: Literal[1]
    limit_s: Amount
    longest_silence_s: dict[str, Amount | None]
    limits: list[str]
    invalid: list[str]
    unmoved: list[str] = msgspec.field(default_factory=list)


class InfluxCounts(Closed, frozen=True):
    """telemetry/influx-counts.json: what InfluxDB held of a run, and how far its delivery had come. `points`: by measurement; None, with
    the `reason`, where they could not be counted. `delivered_bytes`: by spool. `rejected`: by measurement and the server's reason."""

    schema_version: Literal[1]
    stopped_utc: str
    workload_bytes: Count
    delivered_bytes: dict[str, Count]
    rejected: dict[str, dict[str, Count]]
    counted_utc: str
    retention_s: int | None
    points: dict[str, Count] | None
    reason: str | None


class Difference(Closed, frozen=True):
    """`points`: that the later step has less; negative: more."""

    step: Step
    name: Name
    points: int
    reason: str


class AccountRow(Closed, frozen=True):
    """The account of one measurement, in points. `collector`: whose deadlines apply. `expected`: records written for the agent to pass
    on; None for sensors, of which samples are expected. `present`: in InfluxDB; None: not counted."""

    collector: str | None
    expected: Count | None
    collected: Count | None
    stored: Count
    present: Count | None
    differences: list[Difference]


class InfluxState(Closed, frozen=True):
    """`reason`: why it was not reached. `retention_s`: how long it keeps points; None: for ever, or not known. `waiting`: points that
    delivery had not come to."""

    counted_utc: str
    reached: bool
    reason: str | None
    retention_s: int | None
    waiting: Count


class Outage(Struct, frozen=True):
    """A time in which InfluxDB did not take what the agent sent; `to_utc` None: until the end."""

    from_utc: str
    to_utc: str | None
    error: str


class ClockStep(Struct, frozen=True):
    """Describes a step of the candidate's clock, as the agent saw it; positive: forwards."""

    utc: str
    step_s: float


class AccountOfCollector(Closed, frozen=True):
    """`expected_samples`: deadlines, and the final sample. `reason`: why samples are missing; None: none is."""

    name: str
    status: Status
    expected_samples: Count
    collected_samples: Count
    missed_samples: Count
    points: Count
    reason: str | None


class TelemetryAccount(Closed, frozen=True):
    """results/telemetry_account.json: what became of every telemetry point of a run, each difference named. `whole`: what is known of
    all measurements together only. `limits` allow no PASS; what is `invalid` has no name, so that the evidence does not count."""

    schema_version: Literal[1]
    state: AgentState
    influxdb: InfluxState
    outages: list[Outage]
    collectors: list[AccountOfCollector]
    measurements: dict[str, AccountRow]
    whole: AccountRow
    sentence: str
    limits: list[str]
    invalid: list[str]
    clock_steps: list[ClockStep] = msgspec.field(default_factory=list)
