"""The verdict: a pure function of the evidence and the requirement profile, so that `daq-bench judge` gives it again.

Outcomes: PASS; FAIL (the candidate misses a requirement); ERROR (the bench failed); INADMISSIBLE (the evidence does not
count, or does not decide). ERROR outweighs FAIL, FAIL outweighs INADMISSIBLE, INADMISSIBLE outweighs PASS.

An undecided mandatory requirement makes a run INADMISSIBLE, never PASS nor FAIL. All mandatory requirements must be met for a
PASS, so that a wrong PASS is no likelier than a wrong `met` of the one that is missed (docs/statistics.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.units import convert, in_digits
from daq_bench.bench_model.bundle.evidence import Evidence
from daq_bench.bench_model.documents.run import FINISHED, Run
from daq_bench.bench_model.documents.verdict import (
    ERROR,
    FAIL,
    INADMISSIBLE,
    PASS,
    Finding,
    Judgement,
    Outcome,
    Verdict,
)
from daq_bench.bench_model.evidence.admissibility import IDENTITY, findings, scaled_down
from daq_bench.bench_model.evidence.company import Company, company, rests_on_pace
from daq_bench.bench_model.evidence.conditions import with_condition
from daq_bench.bench_model.evidence.coverage import nothing_counts
from daq_bench.bench_model.evidence.measured import Measured, measure
from daq_bench.bench_model.evidence.soundness import RUN, Sound
from daq_bench.bench_model.evidence.target_failures import PURGE_FAILURE, carried_by, failures_of
from daq_bench.bench_model.profiles.candidates import CANDIDATE_BOUNDS
from daq_bench.bench_model.profiles.metrics import ResultMetric
from daq_bench.bench_model.profiles.requirements import Requirement, RequirementProfile
from daq_bench.bench_model.verdict.decision import MET, MISSED, UNDECIDED, Decision, Estimate, decide, estimate
from daq_bench.bench_model.verdict.sentences import WHILE, quantity, sentence

SAID_FROM = 0.01  # a smaller share of others is that of any system's own services
NOT_ASKED = "Not measured: the own suite did not load for it"
NOT_EMPTIED = "Not measured: the drive was not empty after its purge"
NOTHING_MANDATORY = "The requirement profile has no mandatory requirement: it can refuse a candidate and never pass one"
BROKEN = ("interrupted", "error")  # states of a run that has a `state_reason`


def judge(evidence: Evidence, profile: RequirementProfile, metrics: dict[str, ResultMetric]) -> Verdict:
    """The verdict. Raises nothing for missing or malformed evidence: that is an outcome."""
    try:
        sound = Sound.of(evidence)
    except BenchError as error:
        return _unreadable(str(error))
    found = findings(sound, profile.conditions)
    judgements = [
        _judge_one(requirement, metrics[requirement.metric], sound, found) for requirement in profile.requirements
    ]
    outcome, reasons = _overall(sound, judgements, found, metrics)
    return Verdict(
        schema_version=1,
        outcome=outcome,
        reasons=reasons,
        scale=sound.run.scenario.scale,
        declared_rehearsal=outcome == INADMISSIBLE
        and is_rehearsal(sound.run, profile, judgements, found)
        and not nothing_counts(sound.run, sound.results),
        findings=list(found),
        requirements=judgements,
    )


def _unreadable(fault: str) -> Verdict:
    """Returns the verdict on a run whose run.json the bench did not write so: nothing else of it can be judged."""
    return Verdict(1, INADMISSIBLE, [fault], None, False, [Finding(fault, True, (RUN,))], [])


def is_rehearsal(
    run: Run, profile: RequirementProfile, judgements: Sequence[Judgement], found: Sequence[Finding]
) -> bool:
    """True for a run that was asked for at less than full scale, that nothing invalidates, and that missed no mandatory
    requirement; it may leave some undecided or unmeasured.

    A run at full scale is never one: a sensor or a tuning that it lacks is news to whoever started it."""
    return (
        bool(scaled_down(run, profile.conditions))
        and not any(finding.invalidates or finding.fails for finding in found)
        and not any(
            judgement.outcome in (FAIL, ERROR) or judgement.decision == MISSED
            for judgement in judgements
            if judgement.severity == "mandatory"
        )
    )


def _judge_one(
    requirement: Requirement,
    metric: ResultMetric,
    sound: Sound,
    found: Sequence[Finding],
) -> Judgement:
    bound, scaled = bounds(requirement, sound.run)
    if metric.file in sound.malformed:
        measured = Measured((), problem=f"Not measured: {sound.malformed[metric.file]}")
    elif sound.run.own_suite and metric.file not in sound.results:
        measured = Measured((), problem=NOT_ASKED)
    elif PURGE_FAILURE in sound.results and metric.file not in sound.results:
        measured = Measured((), problem=NOT_EMPTIED)
    else:
        measured = measure(requirement, metric, sound.results)
    known = estimate(requirement, metric, measured, sound.run.scenario.seed) if measured.values else None
    decided = decide(requirement.comparison, scaled, requirement.guard_band, known) if known else None
    known = decided.found if decided else None
    outcome, reason = _outcome(requirement, known, decided, measured.problem, found)
    if outcome == FAIL and (others := company(sound.others, metric.file)) and rests_on_pace(metric, sound.results):
        outcome, reason = _in_company(others, reason)
    margin = decided.margin if decided else None
    return Judgement(
        id=requirement.id,
        text=requirement.text,
        metric=requirement.metric,
        comparison=requirement.comparison,
        bound=bound,
        unit=requirement.unit,
        scaled_bound=scaled,
        guard_band=requirement.guard_band,
        measured=known.value if known else None,
        n=len(measured.values),
        spread=known.spread if known else None,
        confidence=known.confidence if known else None,
        confidence_interval=known.interval if known else None,
        interval_method=known.method if known else None,
        decision=decided.decision if decided else None,
        more_repetitions=decided.more_repetitions if decided else None,
        length_factor=decided.length_factor if decided else None,
        margin=margin,
        margin_percent=100 * margin / abs(scaled) if margin is not None and scaled else None,
        severity=requirement.severity,
        statistic=requirement.statistic,
        outcome=outcome,
        reason=with_condition(reason, metric, requirement.statistic, sound.results) if measured.values else reason,
        evidence=[metric.file],
        source=requirement.source,
        better=metric.better,
    )


def bounds(requirement: Requirement, run: Run) -> tuple[float, float]:
    """The requirement's bound, and the one that holds at this run's scale."""
    bound = _bound(requirement, run)
    return bound, bound * run.scenario.scale if requirement.scales_with_load else bound


def _bound(requirement: Requirement, run: Run) -> float:
    if isinstance(requirement.bound, str):
        key, unit = CANDIDATE_BOUNDS[requirement.bound]
        return convert(float(getattr(run.candidate, key)), unit, requirement.unit)
    return float(requirement.bound)


def _outcome(
    requirement: Requirement, known: Estimate | None, decided: Decision | None, problem: str, found: Sequence[Finding]
) -> tuple[Outcome, str]:
    if known is None or decided is None:
        return (ERROR if "did not finish" in problem else INADMISSIBLE), problem
    text = decided.decision.capitalize()
    if decided.decision == UNDECIDED:
        text += f": {undecided_because(requirement, known, decided)}"
    invalid = [finding.text for finding in found if finding.invalidates]
    if invalid:
        return INADMISSIBLE, f"{text}, but: {invalid[0]}"
    if decided.decision == MISSED:
        return FAIL, text
    if decided.decision == UNDECIDED:
        return INADMISSIBLE, text
    if found:
        return INADMISSIBLE, "Met under the limits of this run, which do not count as full-scale evidence"
    return PASS, text


def _in_company(others: Company, reason: str) -> tuple[Outcome, str]:
    """A miss while others were at work."""
    if others.excuses:
        return INADMISSIBLE, f"{reason}, but: {others.cause}"
    return FAIL, f"{reason}{WHILE}{others.text}" if others.share >= SAID_FROM else reason


def undecided_because(requirement: Requirement, known: Estimate, decided: Decision) -> str:
    """Why the numbers do not decide, and what would."""
    if known.interval and not known.this_run_only:
        low, high = (quantity(end, requirement.unit) for end in known.interval)
        band = quantity(requirement.guard_band, requirement.unit)
        guard = f" or its guard band of {band}" if requirement.guard_band else ""
        return f"the interval {low} to {high} reaches over the bound{guard}; {decided.advice}"
    why = f"{known.method.removeprefix('none: ')}; " if not known.exact else ""
    return why + decided.advice


def _overall(
    sound: Sound, judgements: Sequence[Judgement], found: Sequence[Finding], metrics: Mapping[str, ResultMetric]
) -> tuple[Outcome, list[str]]:
    wrong_machine = [finding.text for finding in found if IDENTITY in finding.evidence]
    state = sound.run.state
    # A run that broke before it could look at the machine has a cause, and that is its outcome: it accuses no other machine.
    unlooked = sound.raw.identity is None and state in BROKEN
    if wrong_machine and not unlooked:  # whatever else happened, it happened to another machine
        return INADMISSIBLE, wrong_machine
    failures = _target_failures(sound)
    if state in BROKEN:
        return ERROR, [sound.run.state_reason or f"The run ended in state {state!r}", *failures]
    if state != FINISHED:
        return INADMISSIBLE, [f"The run is in state {state!r}: it did not end, and nothing of it is judged"]
    mandatory = [judgement for judgement in judgements if judgement.severity == "mandatory"]
    invalid = any(finding.invalidates for finding in found)
    broken = [finding.text for finding in found if finding.fails and not invalid]
    if failures:  # what the run lacks after that, it lacks because of it
        missed = [sentence(judgement) for judgement in mandatory if judgement.decision == MISSED]
        reasons = list(dict.fromkeys([*failures, *missed, *(finding.text for finding in found)]))
        return FAIL if sound.run.target.drives else INADMISSIBLE, reasons
    for outcome in (ERROR, FAIL):
        hits = [sentence(judgement) for judgement in mandatory if judgement.outcome == outcome]
        if hits or (outcome == FAIL and broken):
            return outcome, list(dict.fromkeys([*hits, *(finding.text for finding in found)]))
    # Only now: where a requirement is missed, what else could not be measured or decided changes nothing.
    open_ = [sentence(judgement) for judgement in mandatory if judgement.decision != MET]
    if not mandatory:
        open_ = [NOTHING_MANDATORY]
    if found or open_:
        excusable = [one for one in mandatory if one.decision == MISSED and not invalid]
        others = [one for row in excusable if (one := company(sound.others, metrics[row.metric].file))]
        excused = [max(others, key=lambda one: one.share).cause] if others else []
        return INADMISSIBLE, [*excused, *(finding.text for finding in found), *open_]
    scale = sound.run.scenario.scale
    at = (
        "full scale"
        if scale >= 1
        else f"{in_digits(scale, 6)} of one readout unit, which is all that the profile asks for"
    )
    return PASS, [f"Every mandatory requirement is met by evidence at {at}"]


def _target_failures(sound: Sound) -> list[str]:
    """The sentences on a target that failed while it was loaded, with the drives that carry it."""
    drives = [(one.name, one.model, one.serial) for one in sound.run.target.drives]
    return list(failures_of(sound.results, carried_by(drives)))
