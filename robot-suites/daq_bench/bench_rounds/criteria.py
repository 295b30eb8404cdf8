"""The criteria, and whether they hold. Pure. A point that failed misses every criterion that it belongs to."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from daq_bench.bench_model.statistics.paired import CONFIDENCE, Pair, compare
from daq_bench.bench_model.verdict.decision import MET, UNDECIDED, Estimate, decide


@dataclass(frozen=True)
class Criterion:
    """`value` was compared with `bound`: None when nothing was measured. `misses` names each point that missed it.
    `undecided`: why it is neither met nor missed, where the measurement's own uncertainty leaves it open; `met` is then
    False."""

    id: str
    text: str
    bound: float
    value: float | None
    met: bool
    misses: tuple[str, ...] = ()
    undecided: str = ""

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


def exponent(costs: Sequence[tuple[float, float | None]], least: float) -> float | None:
    """Slope of log(cost) over log(size) of pairs of size and cost; None with fewer than two costs of at least `least`: below, the start and
    the clock's grain are measured."""
    usable = [(size, cost) for size, cost in costs if cost is not None and cost >= least]
    if len(usable) < 2:
        return None
    x, y = np.log([size for size, _ in usable]), np.log([cost for _, cost in usable])
    return float(np.polyfit(x, y, 1)[0])


def loss_below(id_: str, text: str, pairs: Sequence[Pair], bound_percent: float) -> Criterion:
    """Judges by how many percent the mean of the paired ratios lies below 1: met or missed when the whole interval lies within
    or beyond the bound. Without pairs a side failed."""
    if not pairs:
        return Criterion(id_, text, bound_percent, None, False, ("failed",))
    found = compare(pairs)
    estimate = Estimate(found.ratio, found.n, None, found.interval, found.method, confidence=CONFIDENCE)
    loss = 100 * (1 - found.ratio)
    if found.interval is None:
        return Criterion(id_, text, bound_percent, loss, False, undecided=found.method)
    decision = decide("at_least", 1 - bound_percent / 100, 0.0, estimate)
    least, most = 100 * (1 - found.interval[1]), 100 * (1 - found.interval[0])
    known = f"loss {loss:.2f} % [{least:.2f}, {most:.2f}], n={found.n}, {found.method}"
    if decision.decision == UNDECIDED:
        return Criterion(id_, text, bound_percent, loss, False, undecided=f"{known}; {decision.advice}")
    met = decision.decision == MET
    return Criterion(id_, text, bound_percent, loss, met, () if met else (known,))


def ratio_of(points: list[dict[str, Any]], name: str) -> dict[str, float | None]:
    """By label, the median of the ratio `name`; None where a side failed. Points without that ratio are left out."""
    return {point["label"]: point["ratios"][name]["median"] for point in points if name in point["ratios"]}
