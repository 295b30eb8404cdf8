"""The end of a night with many runs: one exit status, by a stated precedence, and the sentence that says so.

Precedence, the worst first: interrupted (or a run that was not begun for that reason), ERROR, FAIL (or a regression of a mandatory
requirement), INADMISSIBLE (or a candidate that was skipped: nothing is known of it), PASS (or a declared rehearsal).
The statuses are those of one run (ADR 2)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.documents.nights import Comparison, Job, NightDocument, NightRun, NightState, Status, Word
from daq_bench.bench_model.documents.run import FINISHED
from daq_bench.bench_model.documents.verdict import ERROR, FAIL, INADMISSIBLE, PASS
from daq_bench.bench_model.nights.baseline import regressed
from daq_bench.bench_model.nights.night import Night
from daq_bench.bench_model.verdict import conclusion
from daq_bench.bench_model.verdict.advice import lines_of
from daq_bench.bench_model.verdict.decision import MISSED

INTERRUPTED: Final = "interrupted"
SKIPPED: Final = "skipped"
REHEARSAL: Final = "rehearsal"
REGRESSION: Final = "regression"
NOT_BEGUN: Final = "not begun: "  # how the reason of a skipped entry begins where the whole night was to end
WORDS: dict[Word, tuple[Status, str]] = {  # the worst first: exit status, and sign in a mail
    INTERRUPTED: (130, "!"),
    ERROR: (2, "!"),
    FAIL: (1, "x"),
    REGRESSION: (1, "x"),
    INADMISSIBLE: (3, "?"),
    SKIPPED: (3, "-"),
    REHEARSAL: (0, "~"),
    PASS: (0, "+"),
}
WORST_FIRST, STATUS = tuple(WORDS), {word: status for word, (status, _) in WORDS.items()}
# The order in which people read outcomes. A server that lost data waits for somebody; a broken bench accuses no server. Exit statuses and
# nightly.json's `outcome` keep the order of WORDS.
READ_FIRST: tuple[Word, ...] = (FAIL, REGRESSION, ERROR, INTERRUPTED, INADMISSIBLE, SKIPPED, REHEARSAL, PASS)


@dataclass(frozen=True)
class Entry:
    """The result of one job on one target. `night` is None where no run came to a verdict; `reason` says why."""

    job: Job
    outcome: Word
    reason: str
    night: Night | None = None
    baseline: str | None = None
    comparisons: tuple[Comparison, ...] = field(default=())
    seconds: float = 0.0
    marks: tuple[str, ...] = ()
    likely_cause: str = ""
    next_step: str = ""

    @property
    def worst(self) -> Word:
        """The outcome, or `regression` where that is worse."""
        return worse(self.outcome, REGRESSION) if regressed(self.comparisons) else self.outcome

    @property
    def word(self) -> str:
        """The word that people read."""
        return read_as(self.worst, self.night)


def outcome_of(night: Night) -> Word:
    """A run's word in a night. One that broke is an ERROR, whatever its evidence was worth by then; on a machine or drive other than the
    described one it is INADMISSIBLE, as its verdict says."""
    if night.state != FINISHED:
        if night.state != "error":
            return INTERRUPTED
        return INADMISSIBLE if night.outcome == INADMISSIBLE else ERROR
    return REHEARSAL if night.rehearsal else night.outcome


def shown(word: Word) -> str:
    """The word as people read it: a rehearsal is called the same in every document, whatever nightly.json stores."""
    return conclusion.REHEARSAL if word == REHEARSAL else word


def read_as(word: Word, night: Night | None) -> str:
    """The word that people read for a run's: a rehearsal that failed is called so."""
    return conclusion.word_of(night.verdict) if night and word == FAIL else shown(word)


def said(run: NightRun) -> str:
    """The word that people read for a run of nightly.json."""
    return run.word or shown(run.worst)


def heading(first: Word, words: Iterable[str]) -> str:
    """The word above a night, whose runs are read as `words`: where only rehearsals failed, it says so."""
    known = set(words)
    only_rehearsed = first == FAIL and conclusion.REHEARSAL_FAILED in known and FAIL not in known
    return conclusion.REHEARSAL_FAILED if only_rehearsed else shown(first)


def first_read(words: Iterable[Word]) -> Word:
    """The word that heads a night for its readers; SKIPPED where nothing ran."""
    return min(words, key=READ_FIRST.index, default=SKIPPED)


def worse(one: Word, other: Word) -> Word:
    """That of two words of a night which weighs more."""
    return min(one, other, key=WORST_FIRST.index)


def unfinished(entry: Entry) -> bool:
    """Says whether a night that goes on has to do this job again: its run was stopped, or not begun because all had to end."""
    return entry.outcome == INTERRUPTED or entry.reason.startswith(NOT_BEGUN)


def worst_of(entries: Sequence[Entry]) -> Word:
    """Returns the worst outcome of a night; a night that ran nothing is `skipped`, one that was stopped between two runs `interrupted`."""
    if any(unfinished(entry) for entry in entries):
        return INTERRUPTED
    return min((entry.worst for entry in entries), key=WORST_FIRST.index, default=SKIPPED)


def status_of(entries: Sequence[Entry]) -> Status:
    return STATUS[worst_of(entries)]


def headline(entries: Sequence[Entry]) -> str:
    """`FAIL: 3 runs on 2 candidates (1 FAIL, 1 PASS, 1 skipped)`: the mail's subject."""
    ordered = sorted(entries, key=lambda entry: (READ_FIRST.index(entry.worst), entry.word))
    counted = Counter(entry.word for entry in ordered)
    parts = ", ".join(f"{number} {word}" for word, number in counted.items())
    stopped: list[Word] = [INTERRUPTED] if any(map(unfinished, entries)) else []
    first = first_read([*(entry.worst for entry in entries), *stopped])
    candidates = len({entry.job.candidate for entry in entries})
    return (
        f"{heading(first, counted)}: {len(entries)} run{'s' * (len(entries) != 1)} on {candidates} "
        f"candidate{'s' * (candidates != 1)} ({parts or 'nothing was planned'})"
    )


def summary(entries: Sequence[Entry], when: str, folder: str) -> str:
    """The mail: subject, one paragraph per run, where to read on. Plain text of at most 100 columns but for reasons and paths."""
    lines = [headline(entries), *_worst_first(entries), "", f"Nightly acceptance of {when}", ""]
    for entry in entries:
        lines.append(f"[{WORDS[entry.worst][1]}] {entry.job.name}: {entry.word}")
        lines += [f"      {text}" for text in _details(entry)]
    lines += ["", f"Documents: {folder}", f"Exit status: {status_of(entries)} (docs/nightly.md)"]
    return "\n".join(lines) + "\n"


def _worst_first(entries: Sequence[Entry]) -> list[str]:
    """Returns a line that says what is amiss with the run that is read first: many readers read no further."""
    worst = min(entries, key=_rank, default=None)
    if worst is None or not STATUS[worst.worst]:
        return []
    said = [worst.reason] if worst.worst == worst.outcome else _details(worst)[-1:]
    return [f"{worst.job.name}: {text}" for text in said if text]


def _rank(entry: Entry) -> tuple[int, float]:
    """The place of a run for its readers: by its word, then by its worst miss. Lost data, and storage that failed, come first."""
    rows = [one for one in entry.night.rows if one.severity == "mandatory"] if entry.night else []
    missed = [conclusion.weight(one)[1] for one in rows if conclusion.state(one) == MISSED]
    return READ_FIRST.index(entry.worst), min(missed, default=-math.inf if entry.night else math.inf)


def _next(entry: Entry) -> str:
    """The run's next step; one that only became worse has another than its report, which knows no other run."""
    if entry.worst == REGRESSION and entry.night:
        again = f"`daq-bench baseline runs/{entry.night.id}`"
        return f"Find out what changed since {entry.baseline} (docs/trend.md). If the change was wanted, accept it: {again}"
    return entry.next_step


def _details(entry: Entry) -> list[str]:
    found = [entry.reason] if entry.reason else []
    if entry.worst != PASS:
        found += lines_of(entry.likely_cause, _next(entry))
    if entry.night:
        found.append(f"run {entry.night.id}" + (f" ({', '.join(entry.marks)})" if entry.marks else ""))
    if entry.baseline:
        worse = [one for one in entry.comparisons if one.result == "regressed"]
        found.append(f"against {entry.baseline}: {len(worse)} of {len(entry.comparisons)} requirements became worse")
        found += [f"  {one.id}: {_amount(one)}" for one in worse]
    return found


def _amount(one: Comparison) -> str:
    text = f"{in_digits(one.baseline)} \N{RIGHTWARDS ARROW} {in_digits(one.measured)}"
    if one.interval is not None:
        text += f", difference {in_digits(one.interval[0], 3)} to {in_digits(one.interval[1], 3)}"
    return f"{text} ({one.method})"


def document(
    entries: Sequence[Entry],
    plan: Sequence[Job],
    state: NightState,
    night: str,
    times: tuple[str, str | None],
    versions: dict[str, str],
    deleted: Sequence[str] = (),
) -> NightDocument:
    """nightly.json. `times`: start and end, UTC."""
    return NightDocument(
        schema_version=1,
        nightly=night,
        state=state,
        started_utc=times[0],
        finished_utc=times[1],
        outcome=worst_of(entries),
        exit_status=status_of(entries),
        headline=headline(entries),
        versions=versions,
        plan=list(plan),
        runs=[_run(entry) for entry in entries],
        deleted=list(deleted),
    )


def _run(entry: Entry) -> NightRun:
    night = entry.night
    return NightRun(
        job=entry.job,
        target=night.target if night else entry.job.target or "",
        scenario=night.scenario if night else entry.job.scenario,
        outcome=entry.outcome,
        worst=entry.worst,
        reason=entry.reason,
        run_id=night.id if night else None,
        run=str(night.path) if night else None,
        verdict=night.outcome if night else None,
        declared_rehearsal=night.rehearsal if night else None,
        seconds=round(entry.seconds, 3),
        baseline=entry.baseline,
        comparisons=list(entry.comparisons),
        marks=list(entry.marks),
        likely_cause=entry.likely_cause,
        next_step=_next(entry),
        word=entry.word if entry.word != shown(entry.worst) else "",
    )
