"""The values of one metric in the results of a run. A missing value is missing: no null, no absent key and no number that is not finite
drops out of the list in silence, as JMESPath's projections would let it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import jmespath
from jmespath.exceptions import JMESPathError

from daq_bench.bench_model.base.numbers import is_number
from daq_bench.bench_model.base.units import convert
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.profiles.metrics import ResultMetric
from daq_bench.bench_model.profiles.requirements import MOST, Requirement
from daq_bench.bench_model.statistics.repetitions import CONFIDENCE

Interval = tuple[float, float]
T = TypeVar("T")
NOT_FINISHED = "did not finish"


@dataclass(frozen=True)
class Measured:
    """The values of one metric in the results, one entry per repetition, in the requirement's unit. `problem`: why there is nothing.

    `series`, `intervals` and `rounds` are empty where the metric declares none; else they have one entry for each value, and an
    interval that the workload could not give is None, a missing number of rounds 0. Only values with the same entry of `strata` are
    repetitions of the same thing; empty: all of them."""

    values: tuple[float, ...]
    series: tuple[tuple[float, ...], ...] = ()
    intervals: tuple[Interval | None, ...] = ()
    rounds: tuple[int, ...] = ()
    strata: tuple[str, ...] = ()
    confidence: float = CONFIDENCE
    problem: str = ""

    def by_stratum(self) -> dict[str, Measured]:
        """Each stratum's share, in the order of the values."""
        if not self.strata:
            return {"": self}
        return {label: self._only(label) for label in dict.fromkeys(self.strata)}

    def _only(self, label: str) -> Measured:
        places = [place for place, one in enumerate(self.strata) if one == label]

        def share(entries: tuple[T, ...]) -> tuple[T, ...]:
            return tuple(entries[place] for place in places) if entries else ()

        return Measured(
            share(self.values),
            share(self.series),
            share(self.intervals),
            share(self.rounds),
            confidence=self.confidence,
        )


class _Hole:
    """Stands where a document has null or no value. JMESPath keeps it, and every field of it is a hole again."""

    def get(self, _key: str) -> _Hole:
        return self


_HOLE = _Hole()
SCALARS = frozenset((bool, int, float, str))  # that have no place for a hole


class _Node(dict[str, Any]):
    """An object of a document, whose absent and null fields are holes."""

    def get(self, key: str, _default: Any = None) -> Any:
        return super().get(key, _HOLE)


def with_holes(node: Any) -> Any:
    """A copy in which a search finds a hole where a value is missing."""
    if isinstance(node, dict):
        return _Node({key: value if type(value) in SCALARS else with_holes(value) for key, value in node.items()})
    if isinstance(node, list):
        return [value if type(value) in SCALARS else with_holes(value) for value in node]
    return _HOLE if node is None else node


def found_at(path: str, document: Document) -> list[Any] | None:
    """The list at a metric's `path`, with None in each place where a value is missing; None where there is no list."""
    return found_in(path, with_holes(document))


def found_in(path: str, holed: Any) -> list[Any] | None:
    """The same in a document that is searched several times: `holed` is its copy with holes."""
    try:
        found = jmespath.search(path, holed)
    except JMESPathError:  # min_by and the like, of what is not there or has no order
        return None
    return [_plain(one) for one in found] if isinstance(found, list) else None


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return None if value is _HOLE else value


def measure(requirement: Requirement, metric: ResultMetric, results: dict[str, Document]) -> Measured:
    """Reads the metric. One missing value makes all of them unusable, and is named."""
    document = results.get(metric.file)
    if document is None:
        return Measured((), problem=f"{metric.file} was not written: the workload {NOT_FINISHED}")
    holed = with_holes(document)
    values = found_in(metric.path, holed)
    if problem := _missing(values, metric, document):
        return Measured((), problem=f"Not measured: {problem}")
    assert values is not None
    return Measured(
        tuple(convert(float(value), metric.unit, requirement.unit) for value in values),
        series=tuple(_numbers(one, metric, requirement) for one in _companions(metric.samples, holed, len(values))),
        intervals=tuple(
            _interval(_numbers(one, metric, requirement)) for one in _companions(metric.interval, holed, len(values))
        ),
        rounds=tuple(_count(one) for one in _companions(metric.rounds, holed, len(values))),
        strata=_strata(metric, _companions(metric.strata, holed, len(values)), len(values)),
        confidence=_confidence(document),
    )


def _count(found: Any) -> int:
    return int(found) if is_number(found) and found > 0 else 0


def _strata(metric: ResultMetric, labels: list[Any], count: int) -> tuple[str, ...]:
    """Returns the stratum of each value. A value without a label stands alone, since nothing says that another is like it, and so does
    one that was made of several rounds."""
    if not labels and not metric.rounds:
        return ()
    named = [None if _lacks(label) else str(label) for label in labels] or [None] * count
    alone = metric.rounds is not None
    return tuple(
        f"value {place}{f', {label}' if label else ''}" if alone or label is None else label
        for place, label in enumerate(named, start=1)
    )


def _lacks(label: Any) -> bool:
    return label is None or (isinstance(label, list) and None in label)


def _missing(values: list[Any] | None, metric: ResultMetric, document: Document) -> str:
    """Why the metric has no values; empty where it has all."""
    # A workload says of each metric that it could not measure, why.
    said = document.get("reasons") if isinstance(document.get("reasons"), dict) else {}
    reason = said.get(metric.name) if said else None
    if not values:
        return reason or f"{metric.path} gives no number in {metric.file}"
    holes = [str(number) for number, value in enumerate(values, start=1) if not _is_measured(value)]
    if not holes:
        return ""
    if len(values) == 1:
        return reason or f"{metric.path} gives no number in {metric.file}"
    text = f"{metric.path} gives no number for value {', '.join(holes)} of {len(values)} in {metric.file}"
    return f"{text} ({reason})" if reason else text


def _companions(path: str | None, holed: Any, count: int) -> list[Any]:
    """Returns the entries at `path`, one for each of `count` values; None where a value has no companion of its own."""
    if not path:
        return []
    found = found_in(path, holed)
    return found if found is not None and len(found) == count else [None] * count


def _numbers(found: Any, metric: ResultMetric, requirement: Requirement) -> tuple[float, ...]:
    """A list of numbers in the requirement's unit; empty where one of them is not a number."""
    if not isinstance(found, list) or not all(_is_measured(one) for one in found):
        return ()
    return tuple(convert(float(one), metric.unit, requirement.unit) for one in found)


def _is_measured(value: Any) -> bool:
    """A number that would be infinite in another unit was not measured, but written."""
    return is_number(value) and abs(value) <= MOST


def _interval(ends: tuple[float, ...]) -> Interval | None:
    return (ends[0], ends[1]) if len(ends) == 2 else None


def _confidence(document: Document) -> float:
    """The level at which a workload that may stop early asks for its intervals; never less than the usual one."""
    stopping = document.get("stopping")
    asked = stopping.get("confidence") if isinstance(stopping, dict) else None
    return max(CONFIDENCE, min(float(asked), 1.0)) if is_number(asked) else CONFIDENCE
