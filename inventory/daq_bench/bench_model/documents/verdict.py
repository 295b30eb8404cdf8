"""verdict.json: what follows from the evidence for each requirement, and altogether."""

from __future__ import annotations

from typing import Final, Literal

from daq_bench.bench_model.base.direction import Better, Comparison, Severity, larger_is_better
from daq_bench.bench_model.documents.struct import Closed

Outcome = Literal["PASS", "FAIL", "ERROR", "INADMISSIBLE"]
PASS: Final = "PASS"
FAIL: Final = "FAIL"
ERROR: Final = "ERROR"
INADMISSIBLE: Final = "INADMISSIBLE"
Decided = Literal["met", "missed", "undecided"]


class Spread(Closed, frozen=True):
    """Describes how values scattered: `of` repetitions, or of the samples of a single one. In the requirement's unit."""

    of: Literal["repetitions", "samples"]
    count: int
    min: float
    median: float
    max: float
    sd: float | None


class Finding(Closed, frozen=True):
    """One reason why evidence counts less, or why the candidate fails; `evidence` names files of the bundle.

    `invalidates` forbids a FAIL as well as a PASS."""

    text: str
    invalidates: bool
    evidence: tuple[str, ...]
    fails: bool = False


class Judgement(Closed, frozen=True, omit_defaults=True):
    """One row of the requirement table. `bound`, `measured`, `margin`, `spread` and the interval are in `unit`; a positive
    margin lies inside. `decision` is what the numbers say alone, `outcome` what this run's evidence makes of it."""

    id: str
    text: str
    metric: str
    comparison: Comparison
    bound: float
    unit: str
    scaled_bound: float
    guard_band: float
    measured: float | None
    n: int
    spread: Spread | None
    confidence: float | None
    confidence_interval: tuple[float, float] | None
    interval_method: str | None
    decision: Decided | None
    more_repetitions: int | None
    length_factor: float | None
    margin: float | None
    margin_percent: float | None
    severity: Severity
    statistic: str
    outcome: Outcome
    reason: str
    evidence: list[str]
    source: str
    better: Better | None = None  # which values are, by the metric; None in a bundle whose metrics do not say

    @property
    def larger_is_better(self) -> bool | None:
        return larger_is_better(self.better, self.comparison)

    @property
    def definition(self) -> tuple[str, str, str]:
        """Returns what two values of one series must share."""
        return self.metric, self.comparison, self.statistic


class Verdict(Closed, frozen=True):
    """verdict.json. `scale` is None where run.json cannot be read."""

    schema_version: Literal[1]
    outcome: Outcome
    reasons: list[str]
    scale: float | None
    declared_rehearsal: bool
    findings: list[Finding]
    requirements: list[Judgement]
