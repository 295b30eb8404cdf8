"""A requirement's result as a sentence, with as many digits as its bound leaves open. Pure."""

from __future__ import annotations

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.documents.verdict import Judgement
from daq_bench.bench_model.verdict.decision import UNDECIDED

DIGITS = (4, 6, 9, 12, 17)  # significant ones; the last tell any two numbers apart
WHILE = ", while "
MOST_BRIEF = 120  # characters
DECIDES = "would decide"  # how advice ends
SIGNS = {"at_least": "\N{GREATER-THAN OR EQUAL TO}", "at_most": "\N{LESS-THAN OR EQUAL TO}", "equal": "="}


def sentence(judgement: Judgement) -> str:
    """`SNB-01 No superchunk is lost: measured 3, bound = 0`."""
    if judgement.measured is None:
        return f"{judgement.id} {judgement.text}: {judgement.reason}"
    measured, bound = _told_apart(judgement.measured, judgement.scaled_bound, judgement.unit)
    text = f"{judgement.id} {judgement.text}: measured {measured}, bound {SIGNS[judgement.comparison]} {bound}"
    if judgement.outcome == "FAIL":
        return text + "".join(judgement.reason.partition(WHILE)[1:])
    if judgement.decision != UNDECIDED:
        return text
    why = judgement.reason.partition(", but: ")[0]  # what invalidates the run stands beside it, once
    return f"{text}, {why[0].lower()}{why[1:]}"


def brief(judgement: Judgement) -> str:
    """The requirement's text, cut where a line has no room for more; the full table has all of it."""
    text = judgement.text.rstrip(".")
    return text if len(text) <= MOST_BRIEF else f"{text[:MOST_BRIEF].rstrip()}\u2026"


def brief_sentence(judgement: Judgement) -> str:
    """A sentence without what only an expert asks of an undecided result, but with what would decide it."""
    text = sentence(judgement)
    if judgement.measured is None or judgement.decision != UNDECIDED:
        return text
    head, comma, why = text.partition(f", {UNDECIDED}")
    advice = why.rpartition("; ")[2]
    return f"{head}; {advice}" if advice.endswith(DECIDES) else head if comma else text


def _told_apart(measured: float, bound: float, unit: str) -> tuple[str, str]:
    """Both quantities, with as many digits as show that they differ: three damaged superchunks of a million are no fraction of 1."""
    for digits in DIGITS:
        texts = quantity(measured, unit, digits), quantity(bound, unit, digits)
        if texts[0] != texts[1]:
            break
    return texts if measured != bound else (quantity(measured, unit), quantity(bound, unit))


def quantity(value: float, unit: str, digits: int = 4) -> str:
    """`5.546 GB/s`; a count in full, and neither a count nor a ratio with a unit's name."""
    if unit == "count" and value == int(value):
        return str(int(value))
    number = in_digits(value, digits)
    return number if unit in ("count", "1") else f"{number} {unit}"
