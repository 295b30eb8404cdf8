"""The bench with one criterion dropped or shifted, judging runs that must not pass: a mutant that lets no run pass was not seen.

A dropped criterion need not be seen alone: several of them object to the same harm, on purpose. Then the ones that hold in its place are
named, and taken away too: the criterion must then decide alone, and its loss must show."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from daq_bench.bench_model.bundle.evidence import Evidence
from daq_bench.bench_model.documents.verdict import PASS, Finding
from daq_bench.bench_model.evidence import admissibility
from daq_bench.bench_model.profiles.metrics import ResultMetric
from daq_bench.bench_model.profiles.requirements import Requirement, RequirementProfile
from daq_bench.bench_model.verdict.decision import MET
from daq_bench.bench_model.verdict.verdict import judge
from daq_bench.simulation.physics.drawing import DEMAND, EARLY_K, Spec, cooled, in_soak, kinds_of, spec_of
from daq_bench.simulation.physics.hazards import STRENGTHS, Hazard, drawn
from daq_bench.simulation.run import simulate
from daq_bench.simulation.truth import HEATING, truth_of

RULES = {  # functions of bench_model.evidence.admissibility, and what each looks after
    "_scaled_down": "less than full scale, another target, virtual",
    "_load": "load demanded, asked for, counted",
    "_unrecorded": "checks that left no record",
    "_identity": "identity",
    "firmware_findings": "firmware before and after",
    "_tuning": "tuning read back",
    "_clock": "the candidate's clock",
    "_source": "the source's pace",
    "_gaps_of_plan": "plan against results, tools' own words",
    "_sensors": "drives against sensors",
    "_stated": "statements of results: telemetry's account, silent sensors, spool",
    "_telemetry": "gaps of telemetry",
}
SHIFTS: dict[str, dict[str, Any]] = {  # requirement -> a bound that is no bound any more
    "SNB-01": {"comparison": "at_most", "bound": 10_000_000.0},
    "SNB-02": {"comparison": "at_most", "bound": 3.0},
    "SNB-03": {"comparison": "at_least", "bound": 0.9},
    "SNB-04": {"comparison": "at_most", "bound": 100_000.0},
    "SNB-05": {"bound": 1000.0},
    "SNB-06": {"bound": -60.0},
    "TH-01": {"comparison": "at_most", "bound": 1000.0},
    "TH-02": {"comparison": "at_most", "bound": 1.0},
    "TH-03": {"bound": -120.0},
    "TH-04": {"comparison": "at_most", "bound": 1e15},
}
LIMITS = {"SOURCE_ACHIEVED_MIN": 0.5, "TELEMETRY_GAP_PERIODS_MAX": 1000, "CLOCK_DIFFERENCE_S_MAX": 1000.0}
LIMITS_OF = {
    "SOURCE_ACHIEVED_MIN": "_source",
    "TELEMETRY_GAP_PERIODS_MAX": "_telemetry",
    "CLOCK_DIFFERENCE_S_MAX": "_clock",
}
OF_RECORD = ("_source",)  # rules on daqwriter's records alone


@dataclass(frozen=True)
class Mutant:
    """The bench without `criterion` (a requirement's id or a rule), or with another bound or limit of it."""

    name: str
    what: str
    criterion: str
    bound: dict[str, Any] = field(default_factory=dict)
    limit: dict[str, float] = field(default_factory=dict)

    @property
    def dropped(self) -> frozenset[str]:
        return frozenset() if self.bound or self.limit else frozenset({self.criterion})


@dataclass(frozen=True)
class Case:
    """One run that must not pass, as the judge sees it; `kinds`: of its hazards, or how its pace stands to the demand."""

    seed: int
    kinds: tuple[str, ...]
    evidence: Evidence
    profile: RequirementProfile
    metrics: dict[str, ResultMetric]


@dataclass
class Seen:
    """A mutant's wrong PASSes, by the hazards of the runs. Where it has none, `held_by` are the fewest criteria that object to a run
    beside it; without them it decides alone, and `then` are the wrong PASSes that its loss makes."""

    name: str
    what: str
    kinds: list[str] = field(default_factory=list)
    held_by: tuple[str, ...] = ()
    then: list[str] = field(default_factory=list)

    @property
    def is_explained(self) -> bool:
        return bool(self.kinds or self.then)


def chosen_specs(each: int, scenario: str = "record") -> Iterator[Spec]:
    """Servers made to be refused: well above the demand with one hazard of each kind, and without any a little below and above it."""
    soak = scenario == "thermal"
    ample = [spec for spec in (spec_of(seed, scenario) for seed in range(200)) if spec.pace == "ample"]
    ample = (
        [replace(spec, drives=tuple(cooled(one, 20.0, 0) for one in spec.drives)) for spec in ample] if soak else ample
    )
    for kind in kinds_of(scenario):
        for number in range(each):
            spec = ample[(_number_of(kind) + number) % len(ample)]
            hazard = replace(drawn(Random(f"mutants {kind} {number}"), kind, len(spec.drives)), strength=_hard(kind))
            yield replace(spec, hazards=(in_soak(hazard) if soak else hazard,))
    if (
        not soak
    ):  # put right before anybody looks, and long enough for the source to fall behind: the tuning tells nothing
        yield replace(ample[0], hazards=(Hazard("governor_reset", 2, 20.0, 15.0, 0.3, 0),))
    for number in range(5):
        yield replace(ample[number], hazards=(Hazard("unrecorded", 0, 0.0, 0.0, float(number), 0),))
    yield from _soaked(ample) if soak else _recorded(ample)


def _recorded(ample: Sequence[Spec]) -> Iterator[Spec]:
    for step in range(12):  # around the pace at which the rings are over their high watermark and lose nothing yet
        yield _at(replace(ample[step], transient_buffer="16GiB"), 0.997 + 0.001 * step)
    for step in range(4):  # a little is lost, and the buffer is ample
        yield _at(replace(ample[step], transient_buffer="16GiB"), 0.985 + 0.003 * step)


def _soaked(ample: Sequence[Spec]) -> Iterator[Spec]:
    for number in range(4):  # the target's counters show no loss: others wrote what the load did not
        yield replace(ample[number], hazards=(Hazard("other_load", 1, 700.0, 300.0, 0.4, 0),))
    for number in range(2):  # short of its least time, and not by so much that the workload itself objects
        yield replace(ample[number], hazards=(Hazard("short_record", 1, 0.0, 0.0, 0.09, 0),))
    for step in range(4):
        yield _at(replace(ample[step], transient_buffer="6GiB"), 0.80 + 0.04 * step)
    for step in range(4):  # told to throttle so early that it stays cool
        yield _cooled_by(ample[step], "early", 8.0, ample[step].drives[0].warning_degc - EARLY_K, 200)
    for step in range(4):  # warm, and it never throttles
        yield _cooled_by(ample[step], "warm", 1.5 + step, 0, 0)


def _cooled_by(spec: Spec, name: str, room_k: float, tmt1_degc: int, tmt2_degc: int) -> Spec:
    """The server with drives that steady writing leaves so far below their warning temperature."""
    cool = (cooled(one, room_k, 0) for one in spec.drives)
    drives = tuple(replace(one, tmt1_degc=tmt1_degc, tmt2_degc=tmt2_degc) for one in cool)
    return replace(spec, pace=name, hazards=(), drives=drives)


def _at(spec: Spec, ratio: float) -> Spec:
    """The server with so much of the demand's pace."""
    slower = ratio * DEMAND / sum(one.steady_rate for one in spec.drives)
    drives = (replace(one, cell_rate=one.cell_rate * slower, cache_bytes=0.0) for one in spec.drives)
    return replace(spec, pace="at", hazards=(), drives=tuple(drives))


def _hard(kind: str) -> float:
    """Where nothing is lost with more strength, the most that is drawn; a little heat, so that the drive gets warm and loses nothing."""
    return 25.0 if kind in HEATING else STRENGTHS[kind][1]


def _number_of(kind: str) -> int:
    return sum(kind.encode())


def cases_of(specs: Iterable[Spec], work: Path, scenario: str = "record") -> Iterator[Case]:
    """The runs whose truth is no PASS and which the bench did not pass."""
    for spec in specs:
        with tempfile.TemporaryDirectory(prefix="mutants-", dir=work) as folder:
            run = simulate(spec, Path(folder), scenario, stops=False)
            if run.bundle is None or run.kit is None or truth_of(run.server).may_pass or run.outcome == "PASS":
                continue
            found = Evidence.load(run.bundle.path)
        kinds = tuple(one.kind for one in spec.hazards) or (spec.pace,)
        unmarked = {key: value for key, value in found.run.items() if key != "simulated"}
        yield Case(spec.seed, kinds, replace(found, run=unmarked), run.kit.requirement, run.kit.metrics)


def trial(cases: Sequence[Case]) -> list[Seen]:
    """Every mutant against every case to which its criterion objects."""
    objecting = [(case, objectors(case)) for case in cases]
    asked = {one.id for case in cases for one in case.profile.requirements}
    return [_seen(mutant, objecting) for mutant in _mutants(asked)]


def _mutants(asked: Collection[str]) -> Iterator[Mutant]:
    """`asked`: the requirements of the cases. Rules on records have nothing to look after where nobody asks for one."""
    idle = () if "SNB-01" in asked else OF_RECORD
    for name, bound in SHIFTS.items():
        if name not in asked:
            continue
        yield Mutant(f"{name} dropped", "requirement", name)
        yield Mutant(f"{name} shifted", "bound", name, bound=bound)
    for name, what in RULES.items():
        if name not in idle:
            yield Mutant(f"{named(name)} off", what, name)
    for name, value in LIMITS.items():
        if LIMITS_OF[name] not in idle:
            yield Mutant(f"{name} = {value:g}", "limit", LIMITS_OF[name], limit={name: value})


def named(criterion: str) -> str:
    return criterion.removeprefix("_")


def _seen(mutant: Mutant, objecting: Sequence[tuple[Case, frozenset[str]]]) -> Seen:
    own = [(case, found) for case, found in objecting if mutant.criterion in found]
    seen = Seen(mutant.name, mutant.what, [_kinds(case) for case, _ in own if outcome(case, mutant) == PASS])
    for case, found in sorted(own, key=lambda one: len(one[1])) if not seen.kinds else ():
        others = found - {mutant.criterion}
        if seen.held_by and others != set(seen.held_by):
            continue
        if outcome(case, None, others) != PASS and outcome(case, mutant, others) == PASS:
            seen.held_by = tuple(sorted(others, key=named))
            seen.then.append(_kinds(case))
    return seen


def _kinds(case: Case) -> str:
    return "+".join(case.kinds)


def objectors(case: Case) -> frozenset[str]:
    """The criteria that speak against this run."""
    found: set[str] = set()

    def watched(name: str, rule: Callable[..., Iterable[Finding]]) -> Callable[..., list[Finding]]:
        def made(*arguments: Any) -> list[Finding]:
            findings = list(rule(*arguments))
            if findings:
                found.add(name)
            return findings

        return made

    with _altered({name: watched(name, getattr(admissibility, name)) for name in RULES}):
        verdict = judge(case.evidence, case.profile, case.metrics)
    missed = {one.id for one in verdict.requirements if one.severity == "mandatory" and one.decision != MET}
    return frozenset(found | missed)


def outcome(case: Case, mutant: Mutant | None, gone: Collection[str] = ()) -> str:
    """Returns what the mutated bench says of a run, without the criteria `gone`."""
    dropped = {*gone, *(mutant.dropped if mutant else ())}
    bounds = {mutant.criterion: mutant.bound} if mutant else {}
    kept: tuple[Requirement, ...] = tuple(
        replace(one, **bounds.get(one.id, {})) for one in case.profile.requirements if one.id not in dropped
    )
    silent = {name: lambda *_: iter(()) for name in RULES if name in dropped}
    with _altered({**silent, **(mutant.limit if mutant else {})}):
        return judge(case.evidence, replace(case.profile, requirements=kept), case.metrics).outcome


@contextmanager
def _altered(values: dict[str, Any]) -> Iterator[None]:
    """The judge's module with other functions or limits, for as long as the block runs."""
    before = {name: getattr(admissibility, name) for name in values}
    try:
        for name, value in values.items():
            setattr(admissibility, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(admissibility, name, value)
