"""Tells which condition of the target a judged figure belongs to. Pure.

A burst on a fresh NAND drive flatters it, so that a figure never stands without its condition where the workload names one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jmespath

from daq_bench.bench_model.profiles.metrics import ResultMetric

CONDITIONS = "repetitions[].condition"


def with_condition(reason: str, metric: ResultMetric, statistic: str, results: dict[str, dict[str, Any]]) -> str:
    """`reason` together with the condition of the repetition that decided, where the result names conditions."""
    said = condition_of(metric, statistic, results.get(metric.file, {}))
    return f"{reason} ({said})" if said else reason


def condition_of(metric: ResultMetric, statistic: str, document: dict[str, Any]) -> str:
    """`worst value preconditioned, repetition 2 of 4`; empty for a figure that belongs to no repetition, or to one without a condition."""
    values: Sequence[Any] | None = jmespath.search(metric.path, document)
    found: Sequence[str | None] | None = jmespath.search(CONDITIONS, document)
    # JMESPath leaves nulls out of a projection: a value is only matched to a condition when none is missing.
    if not values or not found or len(values) != len(found) or None in values:
        return ""
    if len(set(found)) == 1:
        return f"{found[0]}"
    if statistic not in ("min", "max") or len(set(values)) == 1:
        return "all conditions: " + ", ".join(dict.fromkeys(str(one) for one in found))
    index = values.index(min(values) if statistic == "min" else max(values))
    word = "lowest" if statistic == "min" else "highest"
    return f"{word} value: {found[index]}, repetition {index + 1} of {len(values)}"
