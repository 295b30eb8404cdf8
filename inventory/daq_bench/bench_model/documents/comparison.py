"""comparison.json: what a comparison of candidates or configurations decided, and from what."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from daq_bench.bench_model.base.direction import Comparison as Side
from daq_bench.bench_model.base.direction import Severity
from daq_bench.bench_model.documents.several import RunBehind, Titled
from daq_bench.bench_model.documents.struct import Closed, Ordinal, Pair, Utc

Three = Annotated[list[float], Meta(min_length=3, max_length=3)]
Four = Annotated[list[float], Meta(min_length=4, max_length=4)]
ComparisonKind = Literal["candidates", "configurations"]
Scale = Literal["ratio", "difference"]
Units = Literal["runs", "repetitions", "rounds"]
DecisionKind = Literal["clear", "tied", "only one may be chosen", "nobody may be chosen", "no award"]
Dominance = Literal["front", "maybe dominated", "dominated", "barred"]
CurveKind = Literal["rate-by-block-size", "latency-under-load", "latency-of-the-record", "rate-against-written"]


class BuyersFile(Closed, frozen=True):
    name: str
    sha256: str


class BuyersFiles(Closed, frozen=True):
    prices: BuyersFile | None
    weights: BuyersFile | None


class ComparedRun(RunBehind, frozen=True):
    """`ranked`: it counts. `scale`: share of one readout unit."""

    contender: str
    started_utc: Utc
    ranked: bool
    scale: float | None


class ContenderFigure(Closed, frozen=True, omit_defaults=True):
    """A number beside speed, declared or measured: where it comes from (`basis`), or why there is none (`reason`). A measured one has the
    number of its values, and their interval from two on."""

    value: float | None
    basis: str = ""
    reason: str = ""
    interval: Pair[float] | None = None
    n: int | None = None


class ComparedContender(Closed, frozen=True):
    """`units`: what its values are counted by. `barred`: why it cannot be chosen. `figures`: price, power, room, endurance."""

    name: str
    units: Units
    barred: str | None
    currency: str | None
    figures: dict[str, ContenderFigure]
    runs: list[str]
    devices: str


class Unlike(Closed, frozen=True):
    """Something in which contenders must be alike and are not: each side's value with those that have it.

    `concerns`: ids of the requirements (or the power) that it keeps from being compared; empty: all of them. `of_definition`: of what was
    asked; else of the evidence that answers it."""

    what: str
    sides: list[tuple[str, list[str]]]
    concerns: list[str]
    of_definition: bool


class Standing(Closed, frozen=True):
    """One contender in one requirement, in its unit. `values`: null where a unit of observation has none. `place`: best and worst."""

    name: str
    n: int
    value: float | None
    interval: Pair[float] | None
    low: float | None
    high: float | None
    values: list[float | None]
    decision: str | None
    place: Pair[Ordinal] | None


class PairCompared(Closed, frozen=True):
    """Two contenders: first over second (`ratio`), or first less second. `interval`: at `level`, that of Holm's own step. `effect_size`:
    Hedges' g. `superiority`: how often a value of the first exceeds one of the second. `more_runs`: of each, that would decide."""

    first: str
    second: str
    scale: Scale
    estimate: float
    interval: Pair[float] | None
    level: float
    method: str
    method_text: str
    n: list[int]
    p: float | None
    p_holm: float | None
    effect_size: float | None
    superiority: float | None
    rank_p: float | None
    two_modes: bool
    margin: float
    verdict: Literal["better", "equivalent", "undecided"]
    better: str | None
    more_runs: int | None


class ComparedRequirement(Closed, frozen=True):
    """`bound`: a number, or what each candidate declares. `equivalence_share`: within which two values mean the same to the buyer."""

    id: str
    text: str
    metric: str
    comparison: Side
    larger_is_better: bool
    bound: float | str
    unit: str
    severity: Severity
    equivalence_share: float
    contenders: list[Standing]
    not_compared: list[Unlike]
    unbeaten: list[str]
    contrasts: list[PairCompared]


class CriterionUsed(Closed, frozen=True):
    key: str
    label: str
    larger_is_better: bool
    share: float


class CriterionLeftOut(Closed, frozen=True):
    key: str
    label: str
    weight: float
    lacking: list[str]
    reason: str
    remedy: str


class ParetoPoint(Closed, frozen=True):
    """`x`, `y`: value, low, high. `by`: who dominates it."""

    name: str
    x: Three
    y: Three
    barred: bool
    kind: Dominance
    by: list[str]


class Pareto(Closed, frozen=True):
    """Price or power against throughput: `y` is the requirement's id, `unit` its unit."""

    x: Literal["cost", "power_per_rate"]
    y: str
    unit: str
    points: list[ParetoPoint]


class Near(Closed, frozen=True):
    """A contender that cannot be told from the best one."""

    name: str
    verdict: Literal["equivalent", "undecided"]
    more_runs: int | None


class WhyNoAward(Closed, frozen=True):
    text: str
    remedy: str


class Decision(Closed, frozen=True):
    kind: DecisionKind
    best: str | None
    near: list[Near]
    behind: list[str]
    scored: bool
    why: list[WhyNoAward]

    @property
    def ahead(self) -> str:
        """`best` where somebody is. Raises ValueError where nobody is: a fault of the bench."""
        if self.best is None:
            raise ValueError(f"no contender is ahead: {self.kind}")
        return self.best


class Score(Closed, frozen=True):
    """`relative`: to the one ahead. `weight_share`: of all possible weights, those for which it is ahead; `chance_first`: how often it is
    ahead when what was measured is drawn anew."""

    name: str
    relative: float
    place: Pair[Ordinal] | None
    weight_share: float
    chance_first: float | None


class BreakEven(Closed, frozen=True):
    """`break_even`: the price at which the order of `name` and `rival` changes; `change`: as a share of its price."""

    name: str
    rival: str
    price: float
    break_even: float | None
    change: float | None


class Tender(Closed, frozen=True):
    """What is decided of the contenders. `speed`: id of the requirement that stands for throughput."""

    alpha: float
    seed: int
    draws: int
    speed: str | None
    contenders: Annotated[list[ComparedContender], Meta(max_length=8)]
    requirements: list[ComparedRequirement]
    criteria: list[CriterionUsed]
    weights_given: bool
    criteria_left_out: list[CriterionLeftOut]
    unlike: list[Unlike]
    pareto: Pareto | None
    decision: Decision
    scores: list[Score]
    weight_share_error: float
    score_contrasts: list[PairCompared]
    prices: list[BreakEven]

    @property
    def throughput(self) -> ComparedRequirement | None:
        return next((one for one in self.requirements if one.id == self.speed), None)


class Condition(Closed, frozen=True):
    """A condition in which runs differ: each value with its runs. `between`: contenders differ in it, not only runs of one."""

    what: str
    values: list[tuple[str, list[str]]]
    between: bool


class CurveOf(Closed, frozen=True):
    """`points`: [x, median, lowest, highest] of all passes of all runs."""

    name: str
    runs: Ordinal
    passes: Ordinal
    points: Annotated[list[Four], Meta(min_length=1)]


class Curve(Closed, frozen=True):
    name: CurveKind
    contenders: Annotated[list[CurveOf], Meta(min_length=2)]


class AskedOfRuns(Closed, frozen=True):
    """A requirement that runs which do not count were asked."""

    id: str
    text: str
    comparison: Side


class UnrankedRow(Closed, frozen=True):
    """`bound`: in force at the run's scale."""

    id: str
    bound: float | None
    measured: float | None
    n: int
    unit: str
    decision: str | None


class Unranked(Closed, frozen=True):
    """The measurements of a run that does not count."""

    name: str
    run_id: str
    outcome: str
    word: str
    scale: float | None
    rows: list[UnrankedRow]


class ComparisonDocument(Tender, frozen=True, kw_only=True, omit_defaults=True):
    """`not_ranked`: contenders without a run that counts. `sets`: of configurations, what the run's own comparison says of its targets
    (results/raid_comparison.json)."""

    schema_version: Literal[1]
    kind: ComparisonKind
    scenario: Titled
    requirement: Titled
    files: BuyersFiles
    accepted_unsigned: list[str]
    equivalence_percent: float
    runs: Annotated[list[ComparedRun], Meta(min_length=1)]
    not_ranked: list[str]
    conditions: list[Condition]
    asked: list[AskedOfRuns] = msgspec.field(default_factory=list)
    unranked: list[Unranked] = msgspec.field(default_factory=list)
    curves: list[Curve] = msgspec.field(default_factory=list)
    sets: dict[str, Any] | None = None
