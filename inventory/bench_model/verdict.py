"""The verdict: a pure function of the evidence and the requirement profile, so that `make judge` gives it again.

Outcomes: PASS; FAIL (the candidate misses a requirement); ERROR (the bench broke); INADMISSIBLE (the evidence does not
count). ERROR outweighs FAIL, FAIL outweighs INADMISSIBLE, INADMISSIBLE outweighs PASS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jmespath

from bench_model.admissibility import IDENTITY, Finding, findings, scaled_down
from bench_model.conditions import with_condition
from bench_model.evidence import Document, Evidence
from bench_model.profiles import CANDIDATE_BOUNDS, Requirement, RequirementProfile, ResultMetric
from bench_model.statistics import judged_value, median_interval
from bench_model.units import convert

PASS, FAIL, ERROR, INADMISSIBLE = "PASS", "FAIL", "ERROR", "INADMISSIBLE"


@dataclass(frozen=True)
class Judgement:
    """One row of the requirement table. `bound`, `measured` and `margin` are in `unit`; a positive margin lies inside."""

    id: str
    text: str
    metric: str
    comparison: str
    bound: float
    unit: str
    scaled_bound: float
    measured: float | None
    n: int
    confidence_interval: tuple[float, float] | None
    margin: float | None
    margin_percent: float | None
    severity: str
    statistic: str
    outcome: str
    reason: str
    evidence: list[str]
    source: str


def judge(evidence: Evidence, profile: RequirementProfile, metrics: dict[str, ResultMetric]) -> Document:
    """The content of verdict.json. Raises nothing for missing evidence: that is an outcome."""
    found = findings(evidence, asdict(profile.conditions))
    judgements = [
        _judge_one(requirement, metrics[requirement.metric], evidence, found) for requirement in profile.requirements
    ]
    outcome, reasons = _overall(evidence, judgements, found)
    return {
        "schema_version": 1,
        "outcome": outcome,
        "reasons": reasons,
        "scale": evidence.run["scenario"]["scale"],
        "declared_rehearsal": outcome == INADMISSIBLE and is_rehearsal(evidence, profile, judgements, found),
        "findings": [asdict(finding) for finding in found],
        "requirements": [asdict(judgement) for judgement in judgements],
    }


def is_rehearsal(
    evidence: Evidence, profile: RequirementProfile, judgements: Sequence[Judgement], found: Sequence[Finding]
) -> bool:
    """True for a run that was asked for at less than full scale, that nothing invalidates, and that missed nothing mandatory.

    A run at full scale is never one: a sensor or a tuning that it lacks is news to whoever started it."""
    return (
        bool(scaled_down(evidence.run, asdict(profile.conditions)))
        and not any(finding.invalidates for finding in found)
        and not any(judgement.outcome in (FAIL, ERROR) for judgement in judgements if judgement.severity == "mandatory")
    )


def _judge_one(
    requirement: Requirement, metric: ResultMetric, evidence: Evidence, found: Sequence[Finding]
) -> Judgement:
    bound = _bound(requirement, evidence.run)
    scaled = bound * evidence.run["scenario"]["scale"] if requirement.scales_with_load else bound
    values, problem = _values(metric, requirement.unit, evidence.results)
    measured = judged_value(values, requirement.statistic) if values else None
    margin = _margin(requirement.comparison, measured, scaled)
    outcome, reason = _outcome(margin, requirement.comparison, problem, found)
    interval = median_interval(values) if values and requirement.statistic == "median" else None
    return Judgement(
        id=requirement.id,
        text=requirement.text,
        metric=requirement.metric,
        comparison=requirement.comparison,
        bound=bound,
        unit=requirement.unit,
        scaled_bound=scaled,
        measured=measured,
        n=len(values),
        confidence_interval=interval,
        margin=margin,
        margin_percent=100 * margin / abs(scaled) if margin is not None and scaled else None,
        severity=requirement.severity,
        statistic=requirement.statistic,
        outcome=outcome,
        reason=with_condition(reason, metric, requirement.statistic, evidence.results),
        evidence=[metric.file],
        source=requirement.source,
    )


def _bound(requirement: Requirement, run: Document) -> float:
    if isinstance(requirement.bound, str):
        key, unit = CANDIDATE_BOUNDS[requirement.bound]
        return convert(float(run["candidate"][key]), unit, requirement.unit)
    return float(requirement.bound)


def _values(metric: ResultMetric, unit: str, results: dict[str, Document]) -> tuple[list[float], str]:
    """(values in `unit`, "") or ([], why there are none). One missing repetition makes all of them unusable."""
    document = results.get(metric.file)
    if document is None:
        return [], f"{metric.file} was not written: the workload did not finish"
    values: list[Any] | None = jmespath.search(metric.path, document)
    if not values or any(not isinstance(value, int | float) for value in values):
        # A workload says of each metric that it could not measure, why.
        reason = document.get("reasons", {}).get(metric.name) or f"{metric.path} gives no number in {metric.file}"
        return [], f"Not measured: {reason}"
    return [convert(float(value), metric.unit, unit) for value in values], ""


def _margin(comparison: str, measured: float | None, bound: float) -> float | None:
    if measured is None:
        return None
    if comparison == "at_least":
        return measured - bound
    return bound - measured if comparison == "at_most" else -abs(measured - bound)


def _outcome(margin: float | None, comparison: str, problem: str, found: Sequence[Finding]) -> tuple[str, str]:
    if margin is None:
        return (ERROR if "did not finish" in problem else INADMISSIBLE), problem
    invalid = [finding.text for finding in found if finding.invalidates]
    met = margin >= 0
    if invalid:
        return INADMISSIBLE, f"{'Met' if met else 'Missed'}, but: {invalid[0]}"
    if not met:
        return FAIL, "Missed"
    if found:
        return INADMISSIBLE, "Met under the limits of this run, which do not count as full-scale evidence"
    return PASS, "Met"


def _overall(evidence: Evidence, judgements: Sequence[Judgement], found: Sequence[Finding]) -> tuple[str, list[str]]:
    wrong_machine = [finding.text for finding in found if IDENTITY in finding.evidence]
    if wrong_machine:  # whatever else happened, it happened to another machine
        return INADMISSIBLE, wrong_machine
    state = evidence.run["state"]
    if state in ("interrupted", "error"):
        return ERROR, [evidence.run.get("state_reason") or f"The run ended in state {state!r}"]
    mandatory = [judgement for judgement in judgements if judgement.severity == "mandatory"]
    for outcome in (ERROR, FAIL):
        hits = [_sentence(judgement) for judgement in mandatory if judgement.outcome == outcome]
        if hits:
            return outcome, hits + [finding.text for finding in found]
    # Only now: where a requirement is missed, what else could not be measured changes nothing.
    unmeasured = [_sentence(judgement) for judgement in mandatory if judgement.measured is None]
    if found or unmeasured:
        return INADMISSIBLE, [*(finding.text for finding in found), *unmeasured]
    return PASS, ["Every mandatory requirement is met by evidence at full scale"]


def _sentence(judgement: Judgement) -> str:
    if judgement.measured is None:
        return f"{judgement.id} {judgement.text}: {judgement.reason}"
    sign = {"at_least": ">=", "at_most": "<=", "equal": "="}[judgement.comparison]
    measured, bound = (_quantity(value, judgement.unit) for value in (judgement.measured, judgement.scaled_bound))
    return f"{judgement.id} {judgement.text}: measured {measured}, bound {sign} {bound}"


def _quantity(value: float, unit: str) -> str:
    """`5.546 GB/s`; a count in full, and neither a count nor a ratio with a unit's name."""
    if unit == "count" and value == int(value):
        return str(int(value))
    return f"{value:.4g}" if unit in ("count", "1") else f"{value:.4g} {unit}"
