"""What must hold, and whether it does. Pure. A point that failed misses every criterion that it belongs to."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Criterion:
    """`value` is what was held against `bound`: None when nothing was measured. `misses` names each point that missed it."""

    id: str
    text: str
    bound: float
    value: float | None
    met: bool
    misses: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "misses": list(self.misses)}


def at_least(value: float, bound: float) -> bool:
    return value >= bound


def at_most(value: float, bound: float) -> bool:
    return value <= bound


Holds = Callable[[float, float], bool]


def each(id_: str, text: str, values: Mapping[str, float | None], bound: float, holds: Holds = at_least) -> Criterion:
    """Every point must hold; the value shown is the worst. None: the point has no value."""
    measured = [value for value in values.values() if value is not None]
    worst = min(measured, default=None) if holds is at_least else max(measured, default=None)
    misses = [
        f"{label} ({'failed' if value is None else f'{value:.4g}'})"
        for label, value in values.items()
        if value is None or not holds(value, bound)
    ]
    return Criterion(id_, text, bound, worst, bool(values) and not misses, tuple(misses))


def median(id_: str, text: str, values: Mapping[str, float | None], bound: float, holds: Holds = at_least) -> Criterion:
    """The median over the points must hold, and all of them must have a value."""
    measured = [value for value in values.values() if value is not None]
    middle = statistics.median(measured) if measured else None
    failed = tuple(f"{label} (failed)" for label, value in values.items() if value is None)
    return Criterion(id_, text, bound, middle, middle is not None and not failed and holds(middle, bound), failed)


def ratio_of(points: list[dict[str, Any]], name: str) -> dict[str, float | None]:
    """By label, the median of the ratio `name`; None where a side failed. Points without that ratio are left out."""
    return {point["label"]: point["ratios"][name]["median"] for point in points if name in point["ratios"]}
