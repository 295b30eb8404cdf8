"""Are the runs about the same thing? Different definitions are refused: their numbers would answer different questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import BundleError
from .bundles import Source

SAME = "Compare runs of one scenario, one requirement profile and one version of metrics.yml"


def check_same(sources: Sequence[Source]) -> None:
    """Raises BundleError that names the two runs, what differs and both values."""
    first = sources[0]
    for other in sources[1:]:
        for what, of in (("scenario", _scenario), ("requirement profile", _requirement)):
            _check(what, of(first), of(other), first, other)
        _check("workload parameters", _workloads(first), _workloads(other), first, other)
        _check("requirement", _questions(first), _questions(other), first, other)
        _check("metric", _definitions(first), _definitions(other), first, other)


def _check(what: str, one: dict[str, Any], two: dict[str, Any], first: Source, other: Source) -> None:
    for key in [*one, *(key for key in two if key not in one)]:
        if one.get(key) != two.get(key):
            values = " against ".join(_shown(each.get(key)) for each in (one, two))
            raise BundleError(
                str(other.root), f"its {what} {key} differs from that of {first.run.run_id}: {values}".replace("  ", " "), SAME
            )  # fmt: skip


def _shown(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 120 else text[:117] + "..."


def _scenario(source: Source) -> dict[str, Any]:
    return {"id": source.run.scenario_id}


def _requirement(source: Source) -> dict[str, Any]:
    return {"id": source.run.requirement_id}


def _workloads(source: Source) -> dict[str, Any]:
    parameters = source.document.at("scenario").find("parameters")
    asked = parameters.find("workloads") if parameters else None
    return {
        f"{name}.{key}": child.value
        for name, node in (asked.entries() if asked else ())
        for key, child in node.entries()
    }


def _questions(source: Source) -> dict[str, Any]:
    """By the profile that the run took along; else by the rows of its verdict, which hold the same."""
    if source.profile is not None:
        rows: Sequence[Any] = source.profile.requirements
    else:
        rows = source.verdict.requirements if source.verdict else ()
    return {row.id: (row.metric, row.comparison, row.bound, row.unit, row.statistic, row.severity) for row in rows}


def _definitions(source: Source) -> dict[str, Any]:
    asked = {row.metric for row in source.profile.requirements} if source.profile else set()
    return {name: (one.unit, one.file, one.path, one.nature) for name, one in source.metrics.items() if name in asked}
