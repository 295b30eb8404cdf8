"""Tells which condition a judged figure belongs to, in the verdict's own words."""

from __future__ import annotations

from typing import Any

import pytest

from daq_bench.bench_model.evidence.conditions import condition_of, with_condition
from daq_bench.bench_model.profiles.metrics import ResultMetric

LOST = ResultMetric("m", "", "count", "results/snb_record.json", "repetitions[].lost", "observed")


def record(*pairs: tuple[str | None, int | None]) -> dict[str, Any]:
    return {"repetitions": [{"condition": condition, "lost": lost} for condition, lost in pairs]}


@pytest.mark.parametrize(
    ("pairs", "statistic", "said"),
    [
        ((("fresh", 0), ("preconditioned", 7)), "max", "highest value: preconditioned, repetition 2 of 2"),
        ((("fresh", 0), ("preconditioned", 7)), "min", "lowest value: fresh, repetition 1 of 2"),
        ((("fresh", 0), ("preconditioned", 0)), "max", "all conditions: fresh, preconditioned"),
        ((("fresh", 1), ("preconditioned", 2)), "median", "all conditions: fresh, preconditioned"),
        ((("fresh", 1), ("fresh", 2)), "max", "fresh"),
        (((None, 1), (None, 2)), "max", ""),
        ((("fresh", 1), ("preconditioned", None)), "max", ""),
    ],
)
def test_the_deciding_repetitions_condition_is_named(pairs: Any, statistic: str, said: str) -> None:
    assert condition_of(LOST, statistic, record(*pairs)) == said


def test_a_figure_of_no_repetition_keeps_its_reason() -> None:
    assert with_condition("Met", LOST, "max", {}) == "Met"
    result = {"results/snb_record.json": record(("fresh", 0), ("preconditioned", 7))}
    assert with_condition("Missed", LOST, "max", result).startswith("Missed (highest value: preconditioned")
