"""Says in one line what a verdict comes to. Terminal, report, night, comparison, site and dashboards show this word and these words. Pure.

Nothing here says that nothing was missed: where a mandatory requirement is undecided or not measured, nobody knows. Counts tell it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from daq_bench.bench_model.documents.verdict import Judgement, Verdict
from daq_bench.bench_model.evidence.admissibility import UNKNOWN_DRIVES
from daq_bench.bench_model.evidence.company import NOT_ALONE
from daq_bench.bench_model.verdict.decision import MET, MISSED, UNDECIDED
from daq_bench.bench_model.verdict.sentences import brief_sentence, sentence

NOT_MEASURED = "not measured"
STATES = (MISSED, UNDECIDED, NOT_MEASURED, MET)
REHEARSAL, REHEARSAL_FAILED = "REHEARSAL", "REHEARSAL FAILED"
BRIEF = 100  # characters
DAMAGE = (
    "damaged_superchunks",
    "wrong_checksums",
    "wrong_files",
    "wrong_results",
    "lost_events",
)  # metrics, without their workload


def state(judged: Judgement) -> str:
    """A requirement's result by the numbers alone (met, missed, undecided, not measured); its outcome also weighs the evidence."""
    if judged.measured is None:
        return NOT_MEASURED
    if judged.decision:
        return judged.decision
    return MISSED if judged.outcome == "FAIL" or (judged.margin is not None and judged.margin < 0) else MET


def of_damage(judged: Judgement) -> bool:
    """Says whether the requirement counts data that came back otherwise than they were written."""
    return judged.metric.rpartition(".")[2] in DAMAGE


def weight(judged: Judgement) -> tuple[int, float]:
    """The place among the findings: missed, undecided, not measured (mandatory before advisory in each), then met by relative margin.

    A count that has to be exact has no relative margin: a missed one comes first, a met one last."""
    at = state(judged)
    relative = judged.margin_percent
    if relative is None:
        relative = -math.inf if at == MISSED else math.inf
    if judged.comparison == "equal" and at == MET:
        relative = math.inf
    return (2 * STATES.index(at) + (judged.severity == "advisory"), relative)


@dataclass(frozen=True)
class Conclusion:
    """`word`: the outcome, REHEARSAL or REHEARSAL FAILED. `counts`: mandatory requirements by state. `missed`: sentences on the
    missed ones, the worst first. `cause`: what broke the run, made its evidence invalid, or limits it; empty where nothing did."""

    word: str
    counts: dict[str, int]
    missed: tuple[str, ...]
    cause: str
    invalid: bool  # what was counted then says nothing
    open: str = ""  # the first requirement that is not decided or not measured, where that is why

    @property
    def counted(self) -> str:
        """`5 of 8 mandatory requirements met, 3 not measured`."""
        total = sum(self.counts.values())
        rest = "".join(f", {self.counts[one]} {one}" for one in STATES if one != MET and self.counts.get(one))
        return f"{self.counts.get(MET, 0)} of {total} mandatory requirement{'s' * (total != 1)} met{rest}"

    @property
    def reason(self) -> str:
        """The line without its word: the worst miss, or the cause, or what was counted."""
        if self.word == "PASS":
            return self.counted
        if self.word == "ERROR":
            return f"the bench failed: {self.cause}"
        if self.missed:
            more = f" (+{len(self.missed) - 1} more missed)" if len(self.missed) > 1 else ""
            but = f"; {_brief(self.cause)}" if self.cause else ""
            return f"missed {self.missed[0]}{more}{but}"
        if self.word == REHEARSAL:
            passed = self.counts.get(MET, 0) == sum(self.counts.values()) > 0
            found = f"passed as far as a rehearsal can: {self.counted}" if passed else self.counted
            return f"{found}; it decides nothing about buying"
        if self.open:
            return f"{self.counted}: {self.open}"
        return (
            f"{self.cause} ({self.counted})"
            if self.cause and self.counts and not self.invalid
            else self.cause or self.counted
        )

    @property
    def line(self) -> str:
        return f"{self.word}: {self.reason}"

    @property
    def sentence(self) -> str:
        """The reason as a sentence: page 1 of the report begins with it."""
        return f"{self.reason[:1].upper()}{self.reason[1:].rstrip('.')}."


def word_of(verdict: Verdict) -> str:
    """The word that people read for an outcome of verdict.json. A run that was asked for less than the profile demands decides nothing
    about buying, whether it missed something or not. Damaged data and storage that failed are a FAIL of any run, whatever its limits."""
    if verdict.declared_rehearsal:
        return REHEARSAL
    less = any(one.evidence == ("run.json",) and one.text != UNKNOWN_DRIVES for one in verdict.findings)
    damaged = any(
        one.severity == "mandatory" and state(one) == MISSED and of_damage(one) for one in verdict.requirements
    )
    only_missed = verdict.outcome == "FAIL" and not damaged and not _cause(verdict, verdict.requirements, ())
    return REHEARSAL_FAILED if less and only_missed else verdict.outcome


def conclude(verdict: Verdict) -> Conclusion:
    """Draws the conclusion from a verdict."""
    mandatory = sorted((one for one in verdict.requirements if one.severity == "mandatory"), key=weight)
    missed_rows = [one for one in mandatory if state(one) == MISSED]
    missed = tuple(sentence(one) for one in sorted(missed_rows, key=lambda one: not of_damage(one)))
    word = word_of(verdict)
    invalid = any(one.invalidates for one in verdict.findings)
    cause = _cause(verdict, mandatory, missed)
    not_decided = next((one for one in mandatory if state(one) != MET), None)
    open_ = "" if cause or missed or not_decided is None else brief_sentence(not_decided)
    return Conclusion(word, dict(Counter(map(state, mandatory))), missed, cause, invalid, open_)


def _brief(text: str) -> str:
    """A cause beside a miss, which stands in full among the reasons: a first line is no page. Whoever loaded the machine is named there."""
    if text.startswith(NOT_ALONE):
        return text.partition(" during ")[0]
    for end in (". ", ": "):
        if len(text) > BRIEF:
            text = text.partition(end)[0]
    return text


def _cause(verdict: Verdict, mandatory: Sequence[Judgement], missed: Sequence[str]) -> str:
    """Returns the target failure of a FAIL. In an INADMISSIBLE, invalid evidence comes before what only limits it."""
    rows = tuple(
        f"{one.id} {one.text}: " for one in mandatory
    )  # an older bench may have ended the sentence in other words
    others = [text for text in verdict.reasons if not text.startswith(rows)]
    if verdict.outcome == "PASS":
        return ""
    if verdict.outcome == "FAIL":
        limits = {one.text for one in verdict.findings if not one.fails}
        return next((text for text in others if text not in limits), "")
    invalid = [one.text for one in verdict.findings if one.invalidates and one.text in others]
    if verdict.outcome == "ERROR" or missed or invalid:
        return next(iter(invalid or others), "")
    # A requirement that is not decided or not measured comes before the limits that every run of this kind has.
    return "" if any(state(one) != MET for one in mandatory) else next(iter(others), "")
