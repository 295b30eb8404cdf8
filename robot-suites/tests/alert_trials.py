"""Evaluates provisioned alert rules as Grafana does (pkg/expr): query, reduce, math, threshold; each by its JSON. For tests."""

from __future__ import annotations

import re
from typing import Any

from daq_bench.bench_dashboards.trial import Server

Labels = tuple[tuple[str, str], ...]
Numbers = dict[Labels, float]
REDUCERS = {"last": lambda values: values[-1], "max": max, "min": min}
BOTH = re.compile(r"\(\$(\w) > 0\) && \(\$(\w) > 0\)")


class RefusedError(Exception):
    """Grafana would end the evaluation with an error, or in one version with an alert and in another without."""


def fired(server: Server, rule: dict[str, Any]) -> Numbers:
    """The label sets for which the rule's condition holds, each with the value that its summary shows (refId C)."""
    series: dict[str, dict[Labels, list[float]]] = {}
    numbers: dict[str, Numbers] = {}
    for asked in rule["data"]:
        name, model = asked["refId"], asked["model"]
        if asked["datasourceUid"] != "__expr__":
            series[name] = frames(server, model["query"])
        elif model["type"] == "reduce":
            reducer = REDUCERS[model["reducer"]]
            numbers[name] = {labels: reducer(values) for labels, values in series[model["expression"]].items()}
        elif model["type"] == "math":
            left, right = BOTH.fullmatch(model["expression"]).groups()  # type: ignore[union-attr]
            numbers[name] = joined(numbers[left], numbers[right])
        else:
            (condition,) = model["conditions"]
            (limit,) = condition["evaluator"]["params"]
            above = {"gt": True, "lt": False}[condition["evaluator"]["type"]]
            judged = numbers[model["expression"]]
            numbers[name] = {key: float(one > limit if above else one < limit) for key, one in judged.items()}
    return {labels: numbers["C"].get(labels, 0.0) for labels, holds in numbers[rule["condition"]].items() if holds}


def frames(server: Server, query: str) -> dict[Labels, list[float]]:
    """A frame for each series, with its tags as labels. Raises RefusedError for two with equal labels, and for what is no number."""
    found: dict[Labels, list[float]] = {}
    for tags, rows in server.series(query):
        labels = tuple(sorted(tags.items()))
        if labels in found:
            raise RefusedError(f"two series with the labels {labels}")
        if not all(len(row) == 2 and type(row[1]) in (int, float) for row in rows):
            raise RefusedError(f"{labels}: {rows}")
        found[labels] = [float(row[1]) for row in rows]
    return found


def joined(left: Numbers, right: Numbers) -> Numbers:
    """Both above 0, for equal labels. One single number on either side joins whatever the labels are, and loses them (`union`)."""
    found = {labels: float(one > 0 and right[labels] > 0) for labels, one in left.items() if labels in right}
    if not found and len(left) == len(right) == 1:
        return {(): float(next(iter(left.values())) > 0 and next(iter(right.values())) > 0)}
    return found
