"""Tells when has a measurement been repeated often enough? Stop when certain, with the error of looking repeatedly under control.

A scenario allows `repetitions` to `repetitions_max`. After each repetition from the first number on there is one look; K =
repetitions_max - repetitions + 1 looks are possible (as many for each of several stages, such as the conditions of a drive), and each
uses an interval of level 1 - 0.05 / K (Bonferroni: the simplest alpha spending, valid however the looks depend on each other, and
whether or not the last of them was reached). The verdict
reads that level from the results and judges with it too, so that stopping at a lucky moment gains nothing.

For a workload: make `stopping = context.stopping("foo")` once (rig.candidate.context). After each repetition, ask
`stopping.enough(number, document)` with the results document as it would be written now; stop repeating when it is True.
Then write `document["stopping"] = stopping.record()`. `stopping.most` is the largest number of repetitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.evidence.measured import measure
from daq_bench.bench_model.profiles.metrics import ResultMetric
from daq_bench.bench_model.profiles.requirements import Requirement, RequirementProfile
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.statistics.repetitions import CONFIDENCE
from daq_bench.bench_model.verdict.decision import MET, MISSED, UNDECIDED, decide, estimate
from daq_bench.bench_model.verdict.verdict import bounds

Judged = tuple[Requirement, ResultMetric]
Cost = Callable[[], Document]

NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Looks:
    """Describes how often a measurement is repeated, and the level of each look's intervals."""

    least: int
    most: int
    stages: int = 1

    @property
    def confidence(self) -> float:
        return 1 - (1 - CONFIDENCE) / (self.stages * (self.most - self.least + 1))


@dataclass(frozen=True)
class Look:
    """The conclusions after `repetitions`; `decisions` by requirement."""

    repetitions: int
    decisions: dict[str, str]
    stop: bool
    reason: str


def relevant(profile: RequirementProfile, metrics: dict[str, ResultMetric], file: str) -> list[Judged]:
    """The requirements that the results `file` decides: the mandatory ones, or all where none is."""
    judged = [(one, metrics[one.metric]) for one in profile.requirements if metrics[one.metric].file == file]
    return [pair for pair in judged if pair[0].severity == "mandatory"] or judged


def look(number: int, document: Document, judged: Sequence[Judged], run: Run, plan: Looks) -> Look:
    """Continue or stop after `number` repetitions, given the results so far. A pure function of its arguments."""
    if number < plan.least:
        return Look(number, {}, False, f"the scenario asks for {plan.least} at least")
    results = {metric.file: {**document, "stopping": {"confidence": plan.confidence}} for _, metric in judged}
    decisions, open_ = {}, []
    for requirement, metric in judged:
        measured = measure(requirement, metric, results)
        if not measured.values:
            decisions[requirement.id] = NOT_MEASURED
            continue
        known = estimate(requirement, metric, measured, run.scenario.seed)
        decided = decide(requirement.comparison, bounds(requirement, run)[1], requirement.guard_band, known)
        decisions[requirement.id] = decided.decision
        if decided.decision == UNDECIDED and not known.exact:  # the worst of exact values does not improve
            open_.append(requirement.id)
    missed = [name for name, decision in decisions.items() if decision == MISSED]
    if missed:
        return Look(number, decisions, True, f"{', '.join(missed)} missed: more repetitions would not change that")
    if not open_:
        met = all(decision == MET for decision in decisions.values())
        why = "every requirement is decided" if met else "no further repetition would decide what is open"
        return Look(number, decisions, True, why if decisions else "no requirement depends on further repetitions")
    if number >= plan.most:
        return Look(number, decisions, True, f"{', '.join(open_)} undecided after the most repetitions allowed")
    return Look(number, decisions, False, f"{', '.join(open_)} undecided")


class Stopping:
    """The looks of one workload in one run. `cost` tells what the run has cost so far."""

    def __init__(self, plan: Looks, judged: Sequence[Judged], run: Run, cost: Cost) -> None:
        self._plan, self._judged, self._run, self._cost = plan, judged, run, cost
        self._looks: list[dict[str, Any]] = []

    @staticmethod
    def of(
        scenario: Scenario,
        profile: RequirementProfile,
        metrics: dict[str, ResultMetric],
        file: str,
        run: Run,
        cost: Cost,
        stages: int = 1,
    ) -> Stopping:
        """For the workload that writes the results `file`, which repeats in each of so many `stages`."""
        plan = Looks(scenario.repetitions, scenario.repetitions_max, stages)
        return Stopping(plan, relevant(profile, metrics, file), run, cost)

    @property
    def most(self) -> int:
        return self._plan.most

    def enough(self, number: int, document: Document, stage: str | None = None) -> bool:
        """True when no further repetition (of this stage, whose results alone are given) is wanted; the look is recorded with
        what it had cost."""
        seen = look(number, document, self._judged, self._run, self._plan)
        said = {"stage": stage} if stage else {}
        self._looks.append({**said, **asdict(seen), "cost": self._cost()})
        return seen.stop

    def record(self) -> Document:
        """The results document's `stopping`."""
        plan = self._plan
        return {
            "repetitions_min": plan.least,
            "repetitions_max": plan.most,
            "confidence": plan.confidence,
            "looks": list(self._looks),
        }
