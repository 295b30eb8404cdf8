"""Dips of the rate under sustained load, their causes, and which of them were thermal throttling."""

from __future__ import annotations

from typing import Literal

from daq_bench.bench_model.documents.struct import Amount, Closed, Count


class Noise(Closed, frozen=True):
    """`sigma_fraction`: of the rate. `memory`: correlation of neighbouring samples."""

    sigma_fraction: float
    memory: float


class CauseEvidence(Closed, frozen=True):
    cause: str
    text: str


class Dip(Closed, frozen=True, kw_only=True):
    """Times from the begin of its load, and on the candidate's clock. `not_looked_at`: causes for which there was no telemetry."""

    kind: str
    start_s: float
    end_s: float
    start_utc_s: float
    end_utc_s: float
    duration_s: float
    depth_fraction: float
    level_bytes_per_s: float
    reference_bytes_per_s: float
    lost_bytes: float
    ended: bool
    cause: str
    evidence: list[CauseEvidence]
    not_looked_at: list[str]


class Pattern(Closed, frozen=True, kw_only=True):
    """A dip that recurs. `costly`: it costs too much to be a rhythm of the target's."""

    count: Count
    period_s: float
    depth_fraction: float
    duration_s: float
    lost_bytes: float
    costly: bool


class LevelChange(Closed, frozen=True):
    at_s: float
    before_bytes_per_s: float
    after_bytes_per_s: float


class Load(Closed, frozen=True):
    """One sustained load. `source`: of its rate. `reason`: why it was not analysed."""

    workload: str
    name: str
    start_utc_s: float
    duration_s: Amount
    source: str
    step_s: Amount
    mean_bytes_per_s: Amount
    reason: str | None
    noise: Noise | None
    dips: list[Dip]
    patterns: list[Pattern]
    level_changes: list[LevelChange]


class DipSummary(Closed, frozen=True):
    """None where no load could be analysed."""

    windows_analysed: Count
    dips: Count | None
    unexplained: Count | None
    lost_bytes: float | None
    deepest_fraction: float | None


class Dips(Closed, frozen=True):
    """results/dips.json."""

    schema_version: Literal[1]
    rule: str
    windows: list[Load]
    summary: DipSummary
    reasons: dict[str, str]


class Signal(Closed, frozen=True):
    """One thing that a drive said of itself. `kind`: temperature, critical_warning, counter or status.
    `since_utc_s`: it began no later; None: at an unknown time."""

    kind: str
    drive: str
    text: str
    since_utc_s: float | None = None


class Throttled(Closed, frozen=True, kw_only=True):
    """One episode. A drive's word alone has no depth and no loss; outside the loads it has no `workload`."""

    workload: str | None
    name: str | None
    kind: str
    start_s: float | None
    end_s: float | None
    start_utc_s: float | None
    end_utc_s: float | None
    duration_s: float | None
    depth_fraction: float | None
    level_bytes_per_s: float | None
    reference_bytes_per_s: float | None
    lost_bytes: float | None
    ended: bool | None
    time_to_onset_s: float | None
    recovery_s: float | None
    confidence: str
    signals: list[Signal]
    silent: list[str]


class ThrottlingSummary(Closed, frozen=True):
    """`episodes`: None where there is none and not every drive says so."""

    episodes: Count | None
    time_to_onset_s: float | None
    lost_bytes: float | None


class Throttling(Closed, frozen=True):
    """results/throttling.json. `watched`: kinds of signals. `contradictions`: a drive's word against the rate's. `processors`: sentences
    on those that were throttled for heat."""

    schema_version: Literal[1]
    rule: str
    drives: list[str]
    watched: list[str]
    episodes: list[Throttled]
    contradictions: list[str]
    processors: list[str]
    summary: ThrottlingSummary
    reasons: dict[str, str]
