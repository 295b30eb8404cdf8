"""Run bundles -> lot.json: acceptance, tolerance bounds, the drive that limits a stripe, and differences of single drives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Final

import msgspec
import scipy

from daq_bench.bench_model.base.nearest import nearest
from daq_bench.bench_model.documents.lot import (
    Acceptance,
    Clusters,
    LimitingDrive,
    Lot,
    LotClaim,
    LotDrive,
    LotQuestion,
    LotRun,
    PlanPoint,
    ReportedChange,
    ReportedDifference,
    RunsValue,
    SerialsValue,
    Stripe,
    Wilks,
)
from daq_bench.bench_model.documents.several import Titled
from daq_bench.bench_model.documents.struct import as_document, read
from daq_bench.bench_model.lot.drive_spread import CLUSTER_P, clusters, limiting, spread
from daq_bench.bench_model.lot.sampling import (
    CONFIDENCE,
    acceptance_chance,
    failing_at_most,
    passing_share,
    passing_share_at_least,
    plan_for,
)
from daq_bench.bench_model.lot.tolerance import COVERAGE, bounds, free_rank, wilks_n
from daq_bench.bench_model.tender.buyer_files import Weights
from daq_bench.bench_model.tender.contenders import Question
from daq_bench.bench_model.tender.tender import clean
from daq_bench.bench_model.verdict import decision
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.comparison.bundles import Source, marks_by_run, read_source
from daq_bench.bench_report.comparison.contenders import questions_of, speed_of
from daq_bench.bench_report.comparison.definitions import check_alike, check_origins
from daq_bench.bench_report.lot.drives import FAILED, FIRMWARE, PASSED, UNTESTED, Drive, drives_of
from daq_bench.bench_report.lot.told import Told, tell
from daq_bench.bench_report.reading.door import Trust

MET: Final = "met"
REFUTED: Final = "refuted"
OPEN: Final = "open"
OC_POINTS = (1, 2, 5, 10, 20)  # percentages of the lot that fail


@dataclass(frozen=True)
class Asked:
    """The inputs that the command line names. `lot_size`: drives in the lot, the tested ones included; `stripe`: members of a stripe."""

    roots: tuple[Path, ...]
    lot_size: int | None = None
    stripe: int | None = None
    model: str | None = None
    requirement: str | None = None
    trust: Trust = field(default_factory=Trust)


def lot(asked: Asked) -> tuple[Lot, list[Told]]:
    """Returns the document, and the runs that it rests on. Raises BundleError for runs that make no lot."""
    runs = tell(asked.roots)
    told = [run for _, run in runs]
    marks = marks_by_run([(root, run.run_id) for root, run in runs], asked.trust)
    check_origins([(root, run.origin) for root, run in runs])
    check_alike(_one_of_each([(root, run.definitions) for root, run in runs if run.counts]))
    drives = drives_of(((root, run.drives) for root, run in runs), asked.model)
    questions = questions_of(_one_of_each([(root, run.questions) for root, run in runs if run.questions]), Weights())
    first = read_source(runs[0][0]).run
    judged = asked.requirement or speed_of(questions)
    if asked.requirement and asked.requirement not in {one.id for one in questions}:
        raise BundleError(
            "--requirement", f"{asked.requirement!r} is not one of the runs' requirements",
            nearest(asked.requirement, (one.id for one in questions)),
        )  # fmt: skip
    tested = [drive for drive in drives if drive.outcome in (PASSED, FAILED)]
    unresolved = [drive.serial for drive in drives if drive.outcome == UNTESTED and drive.unresolved]
    if asked.lot_size is not None and asked.lot_size < len(drives):
        raise BundleError(
            "--lot-size", f"{asked.lot_size} is less than the {len(drives)} drives of these runs", "Name the whole lot"
        )
    for name, value in (("--stripe", asked.stripe), ("--lot-size", asked.lot_size)):
        if value is not None and value < 2:
            raise BundleError(name, f"{value} is too few", "Name two or more")
    identity = differences(drives)
    made = Lot(
        schema_version=1,
        scenario=Titled(first.scenario.id, first.scenario.title or None),
        requirement=Titled(first.requirement.id, first.requirement.title or None),
        model=drives[0].model,
        lot_size=asked.lot_size,
        judged=judged,
        confidence=CONFIDENCE,
        coverage=COVERAGE,
        wilks=Wilks(wilks_n(), wilks_n(rank=2)),
        runs=[_run(run, marks[run.run_id]) for run in told],
        drives=[LotDrive(one.serial, one.of(FIRMWARE), one.runs, one.outcome, one.values) for one in drives],
        acceptance=_acceptance(tested, unresolved, asked.lot_size),
        requirements=[
            _question(question, tested, unresolved, asked, identity)
            for question in questions
            if any(drive.values.get(question.id) for drive in tested)
        ],
        differences=identity,
        changed=_changed(drives),
    )
    return read(clean(as_document(made)), Lot, "lot.json"), told


def _one_of_each(runs: Sequence[tuple[Path, str]]) -> list[Source]:
    """Returns the first run of each digest, read whole: what differs is said in words."""
    firsts: dict[str, Path] = {}
    for root, digest in runs:
        firsts.setdefault(digest, root)
    return [read_source(root) for root in firsts.values()]


def _run(run: Told, marks: Sequence[str]) -> LotRun:
    reason = None if run.counts else run.reason
    return LotRun(run.run_id, run.manifest_sha256, run.outcome, run.word, reason, list(marks), run.counts)


def _acceptance(tested: Sequence[Drive], unresolved: list[str], lot_size: int | None) -> Acceptance | None:
    """Returns the lot's acceptance. `unresolved`: drives without a run that counts; leaving them out would bias the sample."""
    if not tested:
        return None
    number, passed, ran = len(tested), sum(drive.outcome == PASSED for drive in tested), len(tested) + len(unresolved)
    plan = plan_for(lot_size) if lot_size else None
    curve = list[PlanPoint]()
    if lot_size and plan:
        points = dict.fromkeys(min(lot_size, max(1, round(lot_size * percent / 100))) for percent in OC_POINTS)
        curve = [PlanPoint(failing, acceptance_chance(lot_size, failing, plan.sample)) for failing in points]
    return Acceptance(
        tested=number,
        passed=passed,
        share=passed / number,
        unresolved=unresolved,
        interval=[passing_share(passed, ran)[0], passing_share(passed + len(unresolved), ran)[1]],
        at_least=passing_share_at_least(passed, ran),
        failing_at_most=failing_at_most(passed, ran, lot_size) if lot_size else None,
        plan=plan,
        plan_curve=curve,
    )


def _question(
    question: Question,
    tested: Sequence[Drive],
    unresolved: Sequence[str],
    asked: Asked,
    identity: Sequence[ReportedDifference],
) -> LotQuestion:
    """Returns one requirement over the drives that have values of it; each drive counts once, by its mean."""
    values = {drive.serial: drive.values[question.id] for drive in tested if drive.values.get(question.id)}
    means = {serial: fmean(own) for serial, own in values.items()}
    return LotQuestion(
        id=question.id,
        text=question.text,
        unit=question.unit,
        comparison=question.comparison,
        bound=question.bound,
        severity=question.severity,
        means=means,
        spread=spread(values),
        tolerance=bounds(list(means.values()), lower=question.comparison == "at_least"),
        claim=_claim(question, tested, unresolved, asked.lot_size),
        limiting=_limiting(question, values, asked.stripe),
        clusters=_clusters(means, identity),
    )


def _claim(question: Question, tested: Sequence[Drive], unresolved: Sequence[str], lot_size: int | None) -> LotClaim:
    """Decides whether the lot's drives meet the bound. One tested drive that does not refutes it; one without a value leaves it open.

    Met needs as many drives as a bound without any assumption does, or the whole lot: no number of drives shows values to be normal."""
    refuted = [drive.serial for drive in tested if _refutes(question, drive)]
    missing = [*(drive.serial for drive in tested if not _answers(question, drive)), *unresolved]
    whole = lot_size is not None and len(tested) == lot_size
    if refuted:
        return LotClaim(REFUTED, refuted, "tested drives do not meet it")
    if missing:
        return LotClaim(OPEN, missing, "drives have no value that decides")
    if isinstance(question.bound, str):
        return LotClaim(OPEN, [], "each candidate declares a bound of its own")
    if whole:
        return LotClaim(MET, [], "every drive of the lot was measured")
    if free_rank(len(tested)):
        why = f"{COVERAGE:.0%} of them or more at {CONFIDENCE:.0%} confidence, whatever their distribution"
        return LotClaim(MET, [], why)
    return LotClaim(OPEN, [], f"it takes {wilks_n()} drives, or the whole lot; {len(tested)} were tested")


def _refutes(question: Question, drive: Drive) -> bool:
    """Says whether the drive misses the bound with any value: a mean over runs hides none."""
    inside = all(_inside(question, value) for value in drive.values.get(question.id, ()))
    return not inside or decision.MISSED in drive.decisions.get(question.id, ())


def _inside(question: Question, value: float) -> bool:
    if isinstance(question.bound, str):
        return True  # decided by its own run, against what its own candidate declares
    if question.comparison == "equal":
        return value == question.bound
    return value >= question.bound if question.comparison == "at_least" else value <= question.bound


def _answers(question: Question, drive: Drive) -> bool:
    """Says whether every run of the drive alone has a value and is decided."""
    return bool(drive.values.get(question.id)) and set(drive.decisions.get(question.id, ())) == {decision.MET}


def _limiting(question: Question, values: dict[str, list[float]], stripe: int | None) -> LimitingDrive | None:
    """Finds the drive that limits a stripe: its rate is the members' number times the slowest; only throughputs add up like that."""
    found = limiting(values, question.larger_is_better)
    if found is None or question.comparison == "equal":
        return None
    if not question.unit.endswith("B/s"):
        return found
    members = min(stripe or len(values), len(values))
    mean = fmean(fmean(own) for own in values.values())
    return msgspec.structs.replace(found, stripe=Stripe(members, members * found.value, members * mean))


def _clusters(means: dict[str, float], identity: Sequence[ReportedDifference]) -> Clusters | None:
    """Splits the drives into two groups by their values, with the reported differences that go with them (Fisher's exact test)."""
    found = clusters(means)
    if found is None:
        return None
    goes_with = []
    for one in identity if found.there else ():
        rarer = {serial for value in one.values[1:] for serial in value.serials}
        table = [
            [sum((serial in rarer) == rare for serial in group) for rare in (True, False)]
            for group in (found.low, found.high)
        ]
        if float(scipy.stats.fisher_exact(table).pvalue) < CLUSTER_P:
            goes_with.append(one.what)
    return msgspec.structs.replace(found, goes_with=goes_with)


def differences(drives: Sequence[Drive]) -> list[ReportedDifference]:
    """Returns the readings in which drives of one model differ: each value with its serials, the commonest first."""
    found = []
    names = list(dict.fromkeys(what for drive in drives for what in drive.identity))
    for what in names:
        values = {drive.serial: drive.of(what) for drive in drives}
        counts = Counter(values.values())
        if len(counts) < 2:
            continue
        order = sorted(counts, key=lambda value: (-counts[value], value))
        by_value = [SerialsValue(value, [s for s, own in values.items() if own == value]) for value in order]
        found.append(ReportedDifference(what, by_value))
    return found


def _changed(drives: Sequence[Drive]) -> list[ReportedChange]:
    """Returns the readings in which one drive's runs differ, such as a firmware that somebody updated."""
    return [
        ReportedChange(drive.serial, what, [RunsValue(value, runs) for value, runs in own.items()])
        for drive in drives
        for what, own in drive.identity.items()
        if len(own) > 1
    ]
