"""lot.json: what the tested drives of one model say about their lot."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from daq_bench.bench_model.base.direction import Comparison, Severity
from daq_bench.bench_model.documents.several import RunBehind, Titled
from daq_bench.bench_model.documents.struct import Closed, Pair

Kind = Literal["met", "refuted", "open"]
Outcome = Literal["passed", "failed", "not tested"]


class LotRun(RunBehind, frozen=True):
    counts: bool


class LotDrive(Closed, frozen=True):
    """`values`: by requirement, each in its unit, of runs in which the drive was alone."""

    serial: str
    firmware: str
    runs: list[str]
    outcome: Outcome
    values: dict[str, list[float]]


class Wilks(Closed, frozen=True):
    """How many drives make the lowest value, or the second lowest, a bound whatever the distribution."""

    first: int
    second: int


class AcceptancePlan(Closed, frozen=True):
    """Test `sample` drives of the lot, taken at random; accept when none fails. `aql_percent`: the acceptable quality limit."""

    letter: str
    sample: int
    aql_percent: float


class PlanPoint(Closed, frozen=True):
    """The chance that the plan accepts a lot with so many failing drives."""

    failing: int
    accepted: float


class Acceptance(Closed, frozen=True):
    """Shares of such drives that pass. `unresolved`: drives without a run that counts, taken as failing. `interval`: two-sided;
    `at_least`: one-sided. `failing_at_most`: of the lot's drives, the tested ones included."""

    tested: int
    passed: int
    share: float
    unresolved: list[str]
    interval: Pair[float]
    at_least: float
    failing_at_most: int | None
    plan: AcceptancePlan | None
    plan_curve: list[PlanPoint]


class Spread(Closed, frozen=True):
    """Standard deviations in the quantity's unit. None where no drive was measured twice, or there is one drive only.

    `between` is 0 where the drives differ by no more than their repetitions do. `p`: of no difference between drives (F test).
    `reliability`: share of a value's variance that is the drive's own (intraclass correlation)."""

    drives: int
    values: int
    mean: float
    between: float | None
    within: float | None
    p: float | None
    reliability: float | None


class ToleranceBounds(Closed, frozen=True):
    """One-sided bounds of n values. `rank`: which value from the end is the distribution-free bound, 0 where n is too small.

    `covered`: what share the extreme value bounds at the confidence asked; `reached`: the confidence that it has for the share asked.
    `normal_to_be_relied_on`: the values look normal."""

    n: int
    mean: float
    sd: float | None
    factor: float | None
    normal: float | None
    normality_p: float | None
    rank: int
    free: float | None
    covered: float
    reached: float
    normal_to_be_relied_on: bool


class Stripe(Closed, frozen=True):
    """A stripe with the slowest drive gives `members` times its rate; `sum_rate`: what it would give by the drives' mean."""

    members: int
    rate: float
    sum_rate: float


class LimitingDrive(Closed, frozen=True):
    """The drive that a stripe waits for. `behind_mean`, `behind_next`: shares by which it lies behind (0.05: 5 %).

    `outlier_p`: Grubbs, one-sided, of no drive standing out; `next_p`: of being no worse than the next one (two-sided). `stripe` is null
    for what does not add up."""

    drive: str
    next: str
    value: float
    behind_mean: float
    behind_next: float
    outlier_p: float | None
    next_p: float | None
    stripe: Stripe | None = None


class Clusters(Closed, frozen=True):
    """Two groups of drives, the lower first. `explained`: share of the variance that the split takes away; `p`: of one normal lot.
    `goes_with`: the reported differences that go with the groups."""

    low: list[str]
    high: list[str]
    explained: float
    p: float
    there: bool
    goes_with: list[str] = msgspec.field(default_factory=list)


class LotClaim(Closed, frozen=True):
    """Whether the lot's drives meet the bound; `drives`: those that refute it or leave it open."""

    kind: Kind
    drives: list[str]
    reason: str


class LotQuestion(Closed, frozen=True):
    """One requirement over the drives that have values of it. `bound`: a number, or what each candidate declares. `means`: by serial."""

    id: str
    text: str
    unit: str
    comparison: Comparison
    bound: float | str
    severity: Severity
    means: dict[str, float]
    spread: Spread
    tolerance: ToleranceBounds
    claim: LotClaim
    limiting: LimitingDrive | None
    clusters: Clusters | None


class SerialsValue(Closed, frozen=True):
    value: str
    serials: list[str]


class ReportedDifference(Closed, frozen=True):
    """A reading in which drives of one model differ, the commonest value first."""

    what: str
    values: Annotated[list[SerialsValue], Meta(min_length=2)]


class RunsValue(Closed, frozen=True):
    value: str
    runs: list[str]


class ReportedChange(Closed, frozen=True):
    """A reading in which the runs of one drive differ."""

    serial: str
    what: str
    values: list[RunsValue]


class Lot(Closed, frozen=True):
    """`lot_size`: drives of the lot, the tested ones included; null where nobody named it. `judged`: the requirement that is drawn."""

    schema_version: Literal[1]
    scenario: Titled
    requirement: Titled
    model: str
    lot_size: int | None
    judged: str | None
    confidence: float
    coverage: float
    wilks: Wilks
    runs: list[LotRun]
    drives: Annotated[list[LotDrive], Meta(min_length=1)]
    acceptance: Acceptance | None
    requirements: list[LotQuestion]
    differences: list[ReportedDifference]
    changed: list[ReportedChange]

    @property
    def requirement_judged(self) -> LotQuestion | None:
        return next((one for one in self.requirements if one.id == self.judged), None)
