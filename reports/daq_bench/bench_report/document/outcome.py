"""An outcome as a document shows it: its word, its glyph and its meaning."""

from __future__ import annotations

from dataclasses import dataclass

from daq_bench.bench_model.verdict.conclusion import REHEARSAL, REHEARSAL_FAILED

NOT_RECORDED = "not recorded"
NO_VERDICT, CONTRADICTORY = "NO VERDICT", "CONTRADICTORY"
GLYPHS = {
    "PASS": "\u2714",
    "FAIL": "\u2718",
    "ERROR": "\u26a0",
    "INADMISSIBLE": "\u2298",
    REHEARSAL: "\u2298",
    REHEARSAL_FAILED: "\u2718",
    NO_VERDICT: "?",
    CONTRADICTORY: "\u2260",
}
# The result of one requirement by its numbers alone, whether or not the run's evidence counts (see tables.requirements.state).
STATES = {"met": "\u2714", "missed": "\u2718", "undecided": "?", "not measured": "\u2013"}
MEANINGS = {
    "PASS": "Every mandatory requirement is met, by evidence that counts.",
    "FAIL": "The candidate does not do what is demanded of it.",
    "ERROR": "The bench failed; the run says nothing about the candidate.",
    "INADMISSIBLE": "The evidence does not count, so the candidate is neither accepted nor refused.",
    NO_VERDICT: "The run was not judged.",
    CONTRADICTORY: "The stored verdict is not what follows from the evidence beside it, so nothing may be concluded from either.",
}
TARGET_FAILED = "The candidate's storage failed while the bench loaded it."
ALTERED_MEANING = "Its files were altered since it was sealed, so nothing may be concluded from them."
REHEARSED = "It was declared a rehearsal beforehand"
UNDECIDED_MEANING = "The evidence does not decide yet, so the candidate is neither accepted nor refused: measure more."


@dataclass(frozen=True)
class Outcome:
    word: str
    glyph: str
    css: str
    suffix: str  # what forbids reading the word alone
    meaning: str
    reasons: tuple[str, ...]  # for the first page; the verdict's own stand in the section on findings


def css_name(outcome: str) -> str:
    """The class of an outcome's colours; a rehearsal has those of what decides nothing, and one that failed those of a miss."""
    return {REHEARSAL: "inadmissible", REHEARSAL_FAILED: "fail"}.get(outcome, outcome.lower().replace(" ", "-"))
