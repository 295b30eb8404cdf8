"""`bench_report nightly`: a night's nightly.json -> nightly.html beside it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from msgspec import structs

from daq_bench.bench_model.base.errors import BenchError, in_words
from daq_bench.bench_model.bundle.files import find_struct
from daq_bench.bench_model.documents.nights import Comparison, NightDocument, NightRun, Word
from daq_bench.bench_model.documents.struct import moment
from daq_bench.bench_model.documents.verdict import ERROR, INADMISSIBLE
from daq_bench.bench_model.nights.baseline import REGRESSED
from daq_bench.bench_model.nights.night import read_night
from daq_bench.bench_model.nights.outcome import STATUS, first_read, heading, outcome_of, said, worse
from daq_bench.bench_model.verdict.advice import lines_of
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.base.units import NONE, SIDES, duration, grouped_in, quantity, significant
from daq_bench.bench_report.document.beside import boxes_of
from daq_bench.bench_report.document.outcome import GLYPHS, css_name
from daq_bench.bench_report.document.section import Part, Section
from daq_bench.bench_report.document.table import LINE, Table
from daq_bench.bench_report.output.paper import Badge, Paper, to_html
from daq_bench.bench_report.output.publishing import replace_all

SOURCE, NAME = "nightly.json", "nightly.html"
# The outcome whose looks each word of a night gets.
SHOWN: dict[Word, str] = {
    "interrupted": "ERROR",
    "regression": "FAIL",
    "skipped": "INADMISSIBLE",
    "rehearsal": "INADMISSIBLE",
}
MEANINGS = {
    "PASS": "Every candidate passed.",
    "rehearsal": "Every run passed or was a declared rehearsal; a rehearsal decides nothing about buying.",
    "FAIL": "At least one candidate misses a mandatory requirement.",
    "regression": "At least one candidate became worse than its baseline.",
    "ERROR": "At least one run broke: nothing is known of its candidate.",
    "INADMISSIBLE": "At least one run's evidence does not count.",
    "skipped": "At least one candidate was not measured.",
    "interrupted": "The night was interrupted; it can be resumed.",
}


def render(folder: Path) -> list[Path]:
    """Writes nightly.html into the night's folder. Raises BenchError where nightly.json is missing or unsound."""
    found = find_struct(folder, SOURCE, NightDocument)
    if found is None:
        raise BundleError(str(folder / SOURCE), "is missing, so this is no night's folder", "Name one as nightly/<id>")
    target = folder / NAME
    replace_all({target: to_html(paper_of(confirmed(found))).encode()})
    return [target]


def confirmed(night: NightDocument) -> NightDocument:
    """Returns the night with every run judged again: one that others may not rest on, or whose bundle is gone, is no PASS here."""
    runs = [_confirmed(run) for run in night.runs]
    outcome = reduce(worse, (run.worst for run in runs), night.outcome)
    return structs.replace(night, runs=runs, outcome=outcome, exit_status=STATUS[outcome])


def _confirmed(run: NightRun) -> NightRun:
    if not run.run:
        return run
    if not Path(run.run).is_dir():
        return _set_apart(run, INADMISSIBLE, "its bundle is gone, so that nothing confirms what it ended with")
    try:
        found = outcome_of(read_night(Path(run.run), warm=False))
    except (OSError, ValueError, KeyError, TypeError, BenchError) as error:
        return _set_apart(run, ERROR, f"the run is not counted: {in_words(error)}")
    if worse(found, run.worst) != run.worst:
        return _set_apart(run, found, f"{SOURCE} says {run.worst}; judged again it is {found}")
    return run


def _set_apart(run: NightRun, word: Word, why: str) -> NightRun:
    reason = "; ".join(part for part in (why, run.reason) if part)
    return structs.replace(run, worst=worse(word, run.worst), reason=reason, likely_cause="", next_step="", word="")


def paper_of(night: NightDocument) -> Paper:
    """The page of one night, from the content of its nightly.json."""
    word = first_read([night.outcome, *(run.worst for run in night.runs)])
    like = SHOWN.get(word, word)
    worst = [f"{_who(run)}: {said(run)}: {_why(run)}" for run in night.runs if run.worst not in ("PASS", "rehearsal")]
    compared: list[Part] = [_compared(run) for run in night.runs if run.comparisons]
    sections = [
        Section("baseline", "Against the baseline", tuple(compared or ["No run had a baseline to be compared with."]))
    ]
    if night.deleted:
        told = f"Deleted to make room, {len(night.deleted)} bundles and nights: {', '.join(night.deleted)}."
        sections.append(Section("housekeeping", "Housekeeping", (told,)))
    return Paper(
        kicker="Nightly acceptance",
        title=night.nightly,
        meta=(
            night.headline,
            f"{night.started_utc} to {night.finished_utc or 'now'} ({night.state})",
        ),
        running=night.nightly,
        badge=Badge(
            heading(word, map(said, night.runs)).upper(),
            GLYPHS[like],
            css_name(like),
            f"exit status {night.exit_status}",
        ),
        meaning=MEANINGS[word],
        reasons=tuple(worst),
        boxes=boxes_of((run.run_id or "", ", ".join(run.marks)) for run in night.runs),
        summary=_runs(night),
        notes=(),
        sections=tuple(sections),
        keywords=("nightly", night.nightly),
        moment=moment(night.finished_utc or night.started_utc),
        seal="",
    )


def _who(run: NightRun) -> str:
    return " / ".join(part for part in (run.job.candidate, run.target, run.scenario or "its scenario") if part)


def _why(run: NightRun) -> str:
    worse = [one.id for one in run.comparisons if one.result == REGRESSED]
    told = f"{', '.join(worse)} became worse than in {run.baseline}." if worse else ""
    return grouped_in(" ".join(part for part in (run.reason, told) if part))


def _with_advice(run: NightRun) -> str:
    advice = lines_of(run.likely_cause, run.next_step) if run.worst != "PASS" else ()
    return LINE.join(part for part in (_why(run), *advice) if part)


def _runs(night: NightDocument) -> Table:
    rows = tuple(
        (_who(run), f"{GLYPHS[SHOWN.get(run.worst, run.worst)]} {said(run)}", _named(run),
         duration(run.seconds), _with_advice(run) or NONE)
        for run in night.runs
    )  # fmt: skip
    bad = frozenset(n for n, run in enumerate(night.runs) if run.worst not in ("PASS", "rehearsal"))
    caption = f"Runs of the night. {len(rows)} in their order; set apart: what was not in order."
    return Table(
        ("Candidate, target, scenario", "Outcome", "Run", "Time", "Why"), "ttcnt", rows, caption, "nightly", bad
    )


def _named(run: NightRun) -> str:
    """The run, and what stands beside it."""
    return ", ".join([run.run_id or "no bundle", *run.marks])


def _compared(run: NightRun) -> Table:
    rows = tuple(
        (
            one.id,
            one.result,
            _bound(one),
            _number(one.baseline, one.unit),
            _number(one.measured, one.unit),
            _interval(one.interval, one.unit),
            one.method,
        )
        for one in run.comparisons
    )
    worse = frozenset(n for n, one in enumerate(run.comparisons) if one.result == REGRESSED)
    heads = ("Requirement", "Result", "Bound", "Level", "This run", "Interval of the difference", "How")
    caption = f"{_who(run)} against {run.baseline}; the bound is that at the run's scale; set apart: became worse."
    return Table(heads, "ttnnnnt", rows, caption, f"compared-{run.run_id}", worse)


def _bound(one: Comparison) -> str:
    if one.bound is None or not one.comparison:
        return NONE
    return f"{SIDES[one.comparison]} {quantity(one.bound, one.unit, trim=True)}"


def _number(value: float | None, unit: str) -> str:
    return NONE if value is None else quantity(value, unit, trim=True)


def _interval(pair: Sequence[float] | None, unit: str) -> str:
    return NONE if pair is None else f"{significant(pair[0], 3)} to {quantity(pair[1], unit, 3)}"
