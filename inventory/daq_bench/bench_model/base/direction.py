"""Says which values of a quantity are better: as the metric does (inventory/metrics.yml, `better`); where it says nothing, or that no
value is better than another, by the side of a requirement's bound."""

from __future__ import annotations

from typing import Literal

Comparison = Literal["at_least", "at_most", "equal"]  # of a requirement's bound
Severity = Literal["mandatory", "advisory"]
Better = Literal["more", "less", "neither"]
OF_METRIC: dict[str | None, bool] = {"more": True, "less": False}
OF_BOUND = {"at_least": True, "at_most": False}


def larger_is_better(better: Better | None, comparison: str) -> bool | None:
    """None where one value is asked for, and no other is known to be better."""
    return OF_METRIC.get(better, OF_BOUND.get(comparison))
