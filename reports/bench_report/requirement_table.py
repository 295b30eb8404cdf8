"""The requirement table as finished text: bound, measured value, margin and why.

Promise: every number went through `units`; what all rows have in common is said once, below the table or in its caption.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .dataset import Bundle, Judged
from .units import THIN, TIMES, count, factor_text, percent, quantity, quantity_beside, significant
from .view import GLYPHS, NOT_RECORDED, css_name

SELF_EVIDENT = ("Met", "Missed")  # the outcome beside it says as much
EXACT = "observation"
CONFIDENCE = 0.95
COMPARISON = {"at_least": "at least", "at_most": "at most", "equal": "exactly"}


@dataclass(frozen=True)
class RequirementRow:
    id: str
    text: str
    advisory: bool
    source: str
    evidence: tuple[tuple[str, bool], ...]  # (path, whether the bundle holds it)
    bound: str
    derivation: str
    measured: str
    spread: tuple[str, ...]
    margin: str
    guard: str
    outcome: str
    decision: str
    glyph: str
    css: str
    reason: str


def requirement_rows(bundle: Bundle) -> list[RequirementRow]:
    verdict = bundle.verdict
    if verdict is None:
        return []
    reason, number = shared_reason(bundle), shared_n(bundle)
    return [_requirement_row(judged, bundle, reason, number) for judged in verdict.requirements]


def shared_n(bundle: Bundle) -> int | None:
    """The number of values behind each measured row, where it is the same for all: said once, in the caption."""
    judged = bundle.verdict.requirements if bundle.verdict else ()
    numbers = {row.n for row in judged if row.measured is not None}
    return numbers.pop() if len(numbers) == 1 else None


def shared_reason(bundle: Bundle) -> str:
    """The reason that most rows have in common: it is said once, below the table."""
    judged = bundle.verdict.requirements if bundle.verdict else ()
    counts = Counter(row.reason for row in judged if row.reason and row.reason not in SELF_EVIDENT)
    reason, number = counts.most_common(1)[0] if counts else ("", 0)
    return reason if number > 1 else ""


def notes(bundle: Bundle) -> tuple[str, ...]:
    """What the rows' short words mean, where they stand."""
    judged = bundle.verdict.requirements if bundle.verdict else ()
    said = []
    if any(row.interval for row in judged):
        said.append(
            "CI: confidence interval, two-sided, of the judged value; met or missed only when the whole of it lies on one "
            "side of the bound (and inside by the guard band, where there is one)."
        )
    if any((row.method or "").startswith(EXACT) for row in judged):
        said.append("Exact: a fact about what was recorded; it needs no interval and bounds no other repetition.")
    if any(row.decision == "undecided" for row in judged):
        said.append("Undecided: the numbers lie too near the bound, or are too few, for a verdict either way.")
    return tuple(said)


def _requirement_row(judged: Judged, bundle: Bundle, shared: str, number: int | None) -> RequirementRow:
    bound = judged.scaled_bound if judged.scaled_bound is not None else judged.bound
    return RequirementRow(
        id=judged.id,
        text=judged.text,
        advisory=judged.severity == "advisory",
        source=judged.source or "",
        evidence=tuple((name, _held(name, bundle)) for name in judged.evidence),
        bound=_bound_text(judged, bound),
        derivation=_derivation(judged, bundle.verdict.scale if bundle.verdict else None),
        measured=_measured_text(judged, bound),
        spread=_spread(judged, number),
        margin=_margin_text(judged),
        guard=f"guard band {quantity(judged.guard_band, judged.unit, trim=True)}" if judged.guard_band else "",
        outcome=judged.outcome,
        decision=_decision(judged),
        glyph=GLYPHS[judged.outcome],
        css=css_name(judged.outcome),
        reason=_reason(judged, shared),
    )


def _held(name: str, bundle: Bundle) -> bool:
    return name in bundle.files or any(file.startswith(name.rstrip("/") + "/") for file in bundle.files)


def _bound_text(judged: Judged, bound: float | str | None) -> str:
    if bound is None:
        return NOT_RECORDED
    value = bound if isinstance(bound, str) else quantity(bound, judged.unit, trim=True)
    return f"{COMPARISON[judged.comparison]} {value}"


def _derivation(judged: Judged, scale: float | None) -> str:
    """How the bound of this run follows from the requirement's, where the two differ."""
    if isinstance(judged.bound, str) or judged.bound is None or judged.scaled_bound in (None, judged.bound):
        return ""
    whole = quantity(judged.bound, judged.unit, trim=True)
    if scale is None:
        return f"{whole} at full scale"
    return f"{whole} {TIMES} {factor_text(scale)} = {quantity(judged.scaled_bound or 0.0, judged.unit, trim=True)}"


def _measured_text(judged: Judged, bound: float | str | None) -> str:
    if judged.measured is None:
        return "not measured"
    if isinstance(bound, float):
        return quantity_beside(judged.measured, bound, judged.unit)
    return quantity(judged.measured, judged.unit)


def _decision(judged: Judged) -> str:
    """What the numbers alone say, where the outcome does not say it already."""
    return judged.decision or "" if judged.outcome not in ("PASS", "FAIL") else ""


def _reason(judged: Judged, shared: str) -> str:
    """Why, unless the row or the note below the table says it."""
    if not judged.reason or judged.reason in (shared, *SELF_EVIDENT):
        return ""
    return judged.reason.removeprefix("Undecided: ") if judged.decision == "undecided" else judged.reason


def _spread(judged: Judged, shared: int | None) -> tuple[str, ...]:
    """Below the measured value: its interval and how that was made, how the values scattered, and how many they are."""
    parts = []
    if judged.interval:
        level = f"{significant(100 * (judged.confidence or CONFIDENCE), 4, trim=True)}{THIN}%"
        parts.append(f"{level} CI {_range(judged.interval, judged.unit)}")
    if judged.method:
        parts.append(_method(judged.method))
    found = judged.spread
    if found and found.count > 1 and found.low < found.high:
        parts.append(f"{found.of} {_range((found.low, found.high), judged.unit)}")
        if found.sd is not None:
            parts.append(f"sd {quantity(found.sd, judged.unit)}")
    if judged.measured is not None and judged.n and (judged.n != shared or judged.n > 1):
        statistic = f"{judged.statistic} of " if judged.statistic and judged.n > 1 else ""
        parts.append(f"{statistic}n = {count(judged.n)}")
    return tuple(parts)


def _range(ends: tuple[float, float], unit: str) -> str:
    """`1.803 to 2.116 GB/s`: the unit once, where both ends have the same."""
    low, high = (quantity(value, unit) for value in ends)
    number, stroke, name = low.rpartition(THIN)
    return f"{number if stroke and high.endswith(THIN + name) else low} to {high}"


def _method(text: str) -> str:
    """The verdict's name for the method, in the few words that a table has room for; verdict.json has all of them."""
    if text.startswith(EXACT):
        return "exact"
    return "no CI" if text.startswith("none: ") else text.partition(", block ")[0]


def _margin_text(judged: Judged) -> str:
    if judged.margin is None:
        return "\u2013"
    sign = "+" if judged.margin > 0 else ""
    text = sign + quantity(judged.margin, judged.unit)
    if judged.margin_percent is not None and judged.margin:
        text += f" ({sign}{percent(judged.margin_percent)})"
    return text
