"""nightly.json and baselines.json: what a night of runs ended with, and which runs later ones are compared with."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from daq_bench.bench_model.base import direction
from daq_bench.bench_model.base.direction import Severity
from daq_bench.bench_model.documents.struct import Amount, Closed
from daq_bench.bench_model.documents.verdict import Outcome

Word = Literal["interrupted", "ERROR", "FAIL", "regression", "INADMISSIBLE", "skipped", "rehearsal", "PASS"]
Status = Literal[0, 1, 2, 3, 130]
NightState = Literal["running", "finished", "interrupted"]
Result = Literal["regressed", "improved", "not distinguishable", "not comparable"]
Name = Annotated[str, Meta(min_length=1)]


class Job(Closed, frozen=True):
    """One line of the plan: a scenario on a candidate. None: the candidate's or the scenario's own."""

    candidate: Name
    scenario: str | None = None
    requirement: str | None = None
    target: str | None = None
    scale: float | None = None
    duration_s: float | None = None

    @property
    def name(self) -> str:
        parts = [self.candidate, self.target or "", self.scenario or ""]
        return " / ".join(part for part in parts if part)


class Comparison(Closed, frozen=True):
    """One requirement against its baseline, in the run's unit; `difference` is run minus baseline."""

    id: str
    severity: Severity
    result: Result
    baseline: float | None
    measured: float | None
    difference: float | None
    interval: tuple[float, float] | None
    method: str
    unit: str = ""  # of all its numbers
    comparison: direction.Comparison | None = None
    bound: float | None = None  # in force at the run's scale


class NightRun(Closed, frozen=True):
    """`worst`: of the outcome and the comparison with the baseline. `run`: path of the bundle. `seconds`: from the start of the run's
    process to its end. `baseline`: a run's id. `likely_cause`, `next_step`: as the run's own report has them; empty where nothing is
    known. `word`: what people read for `worst`; empty where that is its own word."""

    job: Job
    target: str
    scenario: str | None
    outcome: Word
    worst: Word
    reason: str
    run_id: str | None
    run: str | None
    verdict: Outcome | None
    declared_rehearsal: bool | None
    seconds: Amount
    baseline: str | None
    comparisons: list[Comparison]
    marks: list[str] = msgspec.field(default_factory=list)  # what the door of check-bundle says beside the run
    likely_cause: str = ""
    next_step: str = ""
    word: str = ""


class NightDocument(Closed, frozen=True):
    """nightly.json. `deleted`: bundles and nights that housekeeping removed."""

    schema_version: Literal[1]
    nightly: str
    state: NightState
    started_utc: str
    finished_utc: str | None
    outcome: Word
    exit_status: Status
    headline: str
    versions: dict[str, str]
    plan: list[Job]
    runs: list[NightRun]
    deleted: list[str]


class Baseline(Closed, frozen=True):
    run: str
    run_id: str
    manifest_sha256: str
    set_utc: str


class Baselines(Closed, frozen=True):
    """baselines.json: a run for each task, with its manifest's hash, so that an altered one is noticed."""

    schema_version: Literal[1]
    baselines: dict[str, Baseline]
