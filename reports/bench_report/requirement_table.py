"""The requirement table as finished text: bound, measured value, margin and why.

Promise: every number went through `units`; what all rows have in common is said once, below the table or in its caption.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .dataset import Bundle, Judged
from .units import THIN, TIMES, count, factor_text, percent, quantity, quantity_beside
from .view import GLYPHS, NOT_RECORDED, css_name

SELF_EVIDENT = ("Met", "Missed")  # the outcome beside it says as much
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
    outcome: str
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
        outcome=judged.outcome,
        glyph=GLYPHS[judged.outcome],
        css=css_name(judged.outcome),
        reason=judged.reason if judged.reason and judged.reason not in (shared, *SELF_EVIDENT) else "",
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


def _spread(judged: Judged, shared: int | None) -> tuple[str, ...]:
    parts = []
    if judged.interval:
        low, high = (quantity(value, judged.unit) for value in judged.interval)
        parts.append(f"95{THIN}% CI {low} to {high}")
    if judged.measured is not None and judged.n and (judged.n != shared or judged.n > 1):
        statistic = f"{judged.statistic} of " if judged.statistic and judged.n > 1 else ""
        parts.append(f"{statistic}n = {count(judged.n)}")
    return tuple(parts)


def _margin_text(judged: Judged) -> str:
    if judged.margin is None:
        return "\u2013"
    sign = "+" if judged.margin > 0 else ""
    text = sign + quantity(judged.margin, judged.unit)
    if judged.margin_percent is not None and judged.margin:
        text += f" ({sign}{percent(judged.margin_percent)})"
    return text
