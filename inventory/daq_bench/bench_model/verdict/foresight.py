"""Names requirements that no run of this plan can decide, however good the candidate: the verdict's own rules, with ideal results."""

from __future__ import annotations

from collections.abc import Iterator

from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.evidence.demanded_load import unstated
from daq_bench.bench_model.evidence.measured import Measured
from daq_bench.bench_model.profiles.metrics import ResultMetric
from daq_bench.bench_model.profiles.requirements import Requirement, RequirementProfile
from daq_bench.bench_model.profiles.scenarios import Scenario, metric_is_of
from daq_bench.bench_model.statistics.bootstrap import SAMPLES_MIN
from daq_bench.bench_model.verdict.decision import MET, decide, estimate
from daq_bench.bench_model.verdict.verdict import NOTHING_MANDATORY, bounds
from daq_bench.bench_model.workloads.plan import plan_of
from daq_bench.bench_model.workloads.steady_state.rounds import WINDOW_ROUNDS
from daq_bench.bench_model.workloads.table import MODELS

Foreseen = tuple[str, str]  # (why there will be no PASS, the change that makes one possible)


def undecidable(
    run: Run, scenario: Scenario, profile: RequirementProfile, metrics: dict[str, ResultMetric]
) -> Iterator[Foreseen]:
    """Lists what keeps a PASS away by the plan alone: too few repetitions, a profile that says too little."""
    mandatory = [one for one in profile.requirements if one.severity == "mandatory"]
    if not mandatory:
        yield NOTHING_MANDATORY, f"Give a requirement of {profile.file.name} severity: mandatory"
    for text in unstated(profile.conditions.metrics, profile.conditions.load, run.scenario.parameters):
        yield text, f"State it in conditions.load of {profile.file.name} (docs/writing-a-requirement.md)"
    for requirement in mandatory:
        yield from _of_requirement(requirement, metrics[requirement.metric], run, scenario)


def _of_requirement(requirement: Requirement, metric: ResultMetric, run: Run, scenario: Scenario) -> Iterator[Foreseen]:
    owner = next((name for name, own in scenario.workloads.items() if metric_is_of(metric.name, name, own)), None)
    if owner is None:  # of every run, such as the watched hardware
        return
    model = MODELS[owner]
    times = max(0, model.times(plan_of(run, owner), metric.name))
    if not times:
        yield (
            f"{requirement.id} {requirement.text}: the scenario measures {metric.name} not once",
            f"Correct {scenario.file.name}",
        )
        return
    bound = bounds(requirement, run)[1]
    known = estimate(requirement, metric, _ideal(requirement, metric, bound, times), run.scenario.seed)
    decided = decide(requirement.comparison, bound, requirement.guard_band, known)
    if decided.decision != MET:
        measured = "once" if times == 1 else f"{times} times"
        own = model.times_field(metric.name)
        field = f" (workloads.{owner}.{own})" if own else ""
        yield (
            f"{requirement.id} {requirement.text}: {metric.name} is measured {measured}, which decides nothing; {decided.advice}",
            f"Ask for {times + (decided.more_repetitions or 1)} repetitions{field} in a copy of {scenario.file.name}",
        )


def _ideal(requirement: Requirement, metric: ResultMetric, bound: float, times: int) -> Measured:
    """Results without any scatter, far inside the bound."""
    far = requirement.guard_band + abs(bound) + 1.0
    value = {"at_least": bound + far, "at_most": bound - far, "equal": bound}[requirement.comparison]
    length = WINDOW_ROUNDS if metric.rule else SAMPLES_MIN * 20
    return Measured(
        values=(value,) * (1 if metric.rounds or metric.rule else times),
        series=((value,) * length,) * (1 if metric.rule else times) if metric.samples else (),
        intervals=((value, value),) * (1 if metric.rounds else times) if metric.interval else (),
        rounds=(times,) if metric.rounds else (),
    )
