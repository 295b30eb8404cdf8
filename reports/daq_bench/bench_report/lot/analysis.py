"""Run bundles -> lot.json: acceptance, tolerance bounds, the drive that limits a stripe, and differences of single drives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean

import scipy

from daq_bench.bench_model.base.nearest import nearest
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.lot.drive_spread import CLUSTER_P, clusters, limiting, spread
from daq_bench.bench_model.lot.sampling import (
    CONFIDENCE,
    acceptance_chance,
    failing_at_most,
    passing_share,
    passing_share_at_least,
    plan_for,
)
from daq_bench.bench_model.lot.tolerance import COVERAGE, NORMAL_P_MIN, bounds, free_rank, wilks_n
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

MET, REFUTED, OPEN = "met", "refuted", "open"
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


def lot(asked: Asked) -> tuple[Document, list[Told]]:
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
    made: Document = {
        "schema_version": 1,
        "scenario": {"id": first.scenario.id, "title": first.scenario.title or None},
        "requirement": {"id": first.requirement.id, "title": first.requirement.title or None},
        "model": drives[0].model,
        "lot_size": asked.lot_size,
        "judged": judged,
        "confidence": CONFIDENCE,
        "coverage": COVERAGE,
        "wilks": {"first": wilks_n(), "second": wilks_n(rank=2)},
        "runs": [_run(run, marks[run.run_id]) for run in told],
        "drives": [_drive(drive) for drive in drives],
        "acceptance": _acceptance(tested, unresolved, asked.lot_size),
        "requirements": [
            _question(question, tested, unresolved, asked, identity)
            for question in questions
            if any(drive.values.get(question.id) for drive in tested)
        ],
        "differences": identity,
        "changed": _changed(drives),
    }
    cleaned: Document = clean(made)
    return cleaned, told


def _one_of_each(runs: Sequence[tuple[Path, str]]) -> list[Source]:
    """Returns the first run of each digest, read whole: what differs is said in words."""
    firsts: dict[str, Path] = {}
    for root, digest in runs:
        firsts.setdefault(digest, root)
    return [read_source(root) for root in firsts.values()]


def _run(run: Told, marks: Sequence[str]) -> Document:
    return {
        "run_id": run.run_id,
        "manifest_sha256": run.manifest_sha256,
        "outcome": run.outcome,
        "word": run.word,
        "counts": run.counts,
        "reason": None if run.counts else run.reason,
        "marks": list(marks),
    }


def _drive(drive: Drive) -> Document:
    return {
        "serial": drive.serial,
        "firmware": drive.of(FIRMWARE),
        "runs": drive.runs,
        "outcome": drive.outcome,
        "values": drive.values,
    }


def _acceptance(tested: Sequence[Drive], unresolved: list[str], lot_size: int | None) -> Document | None:
    """Returns the lot's acceptance. `unresolved`: drives without a run that counts; leaving them out would bias the sample."""
    if not tested:
        return None
    number, passed, ran = len(tested), sum(drive.outcome == PASSED for drive in tested), len(tested) + len(unresolved)
    failing = failing_at_most(passed, ran, lot_size) if lot_size else None
    plan = plan_for(lot_size) if lot_size else None
    curve = []
    if lot_size and plan:
        points = dict.fromkeys(min(lot_size, max(1, round(lot_size * percent / 100))) for percent in OC_POINTS)
        for defective in points:
            curve.append({"failing": defective, "accepted": acceptance_chance(lot_size, defective, plan.sample)})
    return {
        "tested": number,
        "passed": passed,
        "share": passed / number,
        "unresolved": unresolved,
        "interval": [passing_share(passed, ran)[0], passing_share(passed + len(unresolved), ran)[1]],
        "at_least": passing_share_at_least(passed, ran),
        "failing_at_most": failing,
        "plan": asdict(plan) if plan else None,
        "plan_curve": curve,
    }


def _question(
    question: Question, tested: Sequence[Drive], unresolved: Sequence[str], asked: Asked, identity: Sequence[Document]
) -> Document:
    """Returns one requirement over the drives that have values of it; each drive counts once, by its mean."""
    values = {drive.serial: drive.values[question.id] for drive in tested if drive.values.get(question.id)}
    means = {serial: fmean(own) for serial, own in values.items()}
    lower = question.comparison == "at_least"
    found = bounds(list(means.values()), lower)
    return {
        "id": question.id,
        "text": question.text,
        "unit": question.unit,
        "comparison": question.comparison,
        "bound": question.bound,
        "severity": question.severity,
        "means": means,
        "spread": asdict(spread(values)),
        "tolerance": {
            **asdict(found),
            "normal_to_be_relied_on": found.normality_p is not None and found.normality_p >= NORMAL_P_MIN,
        },
        "claim": _claim(question, tested, unresolved, asked.lot_size),
        "limiting": _limiting(question, values, asked.stripe),
        "clusters": _clusters(means, identity),
    }


def _claim(question: Question, tested: Sequence[Drive], unresolved: Sequence[str], lot_size: int | None) -> Document:
    """Decides whether the lot's drives meet the bound. One tested drive that does not refutes it; one without a value leaves it open.

    Met needs as many drives as a bound without any assumption does, or the whole lot: no number of drives shows values to be normal."""
    refuted = [drive.serial for drive in tested if _refutes(question, drive)]
    missing = [*(drive.serial for drive in tested if not _answers(question, drive)), *unresolved]
    whole = lot_size is not None and len(tested) == lot_size
    if refuted:
        return {"kind": REFUTED, "drives": refuted, "reason": "tested drives do not meet it"}
    if missing:
        return {"kind": OPEN, "drives": missing, "reason": "drives have no value that decides"}
    if isinstance(question.bound, str):
        return {"kind": OPEN, "drives": [], "reason": "each candidate declares a bound of its own"}
    if whole:
        return {"kind": MET, "drives": [], "reason": "every drive of the lot was measured"}
    if free_rank(len(tested)):
        return {
            "kind": MET,
            "drives": [],
            "reason": f"{COVERAGE:.0%} of them or more at {CONFIDENCE:.0%} confidence, whatever their distribution",
        }
    return {
        "kind": OPEN,
        "drives": [],
        "reason": f"it takes {wilks_n()} drives, or the whole lot; {len(tested)} were tested",
    }


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


def _limiting(question: Question, values: dict[str, list[float]], stripe: int | None) -> Document | None:
    """Finds the drive that limits a stripe: its rate is the members' number times the slowest; only throughputs add up like that."""
    found = limiting(values, question.larger_is_better)
    if found is None or question.comparison == "equal":
        return None
    members = min(stripe or len(values), len(values)) if question.unit.endswith("B/s") else None
    means = [fmean(own) for own in values.values()]
    return {
        **asdict(found),
        "members": members,
        "stripe_rate": members * found.value if members else None,
        "sum_rate": members * fmean(means) if members else None,
    }


def _clusters(means: dict[str, float], identity: Sequence[Document]) -> Document | None:
    """Splits the drives into two groups by their values, with the reported differences that go with them (Fisher's exact test)."""
    found = clusters(means)
    if found is None:
        return None
    goes_with = []
    for one in identity if found.are_there else ():
        rarer = {serial for value in one["values"][1:] for serial in value["serials"]}
        table = [
            [sum((serial in rarer) == rare for serial in group) for rare in (True, False)]
            for group in (found.low, found.high)
        ]
        if float(scipy.stats.fisher_exact(table).pvalue) < CLUSTER_P:
            goes_with.append(one["what"])
    return {**asdict(found), "there": found.are_there, "goes_with": goes_with}


def differences(drives: Sequence[Drive]) -> list[Document]:
    """Returns the readings in which drives of one model differ: each value with its serials, the commonest first."""
    found = []
    names = list(dict.fromkeys(what for drive in drives for what in drive.identity))
    for what in names:
        values = {drive.serial: drive.of(what) for drive in drives}
        counts = Counter(values.values())
        if len(counts) < 2:
            continue
        order = sorted(counts, key=lambda value: (-counts[value], value))
        found.append({
            "what": what,
            "values": [{"value": value, "serials": [s for s, own in values.items() if own == value]} for value in order],
        })  # fmt: skip
    return found


def _changed(drives: Sequence[Drive]) -> list[Document]:
    """Returns the readings in which one drive's runs differ, such as a firmware that somebody updated."""
    return [
        {
            "serial": drive.serial,
            "what": what,
            "values": [{"value": value, "runs": runs} for value, runs in own.items()],
        }
        for drive in drives
        for what, own in drive.identity.items()
        if len(own) > 1
    ]
