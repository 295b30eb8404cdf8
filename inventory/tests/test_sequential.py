"""Sequential stopping: when it goes on, when it stops and why, at which level, and what the record says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from daq_bench.audit.good.small_run import some_run

from daq_bench.bench_model.profiles.metrics import ResultMetric
from daq_bench.bench_model.profiles.requirements import Requirement
from daq_bench.bench_model.statistics.repetitions import repetitions_for_median
from daq_bench.bench_model.verdict.sequential import Look, Looks, Stopping, look, relevant

METRIC = ResultMetric("x", "", "1", "results/x.json", "values", "estimated")
OBSERVED = replace(METRIC, name="lost", path="lost", nature="observed", unit="count")
REQUIREMENT = Requirement("X-1", "", "x", "at_least", 10.0, "1", "median", "mandatory", False, "")
NONE_LOST = Requirement("X-2", "", "lost", "equal", 0.0, "count", "max", "mandatory", False, "")
RUN = some_run()
BOTH = [(REQUIREMENT, METRIC), (NONE_LOST, OBSERVED)]


def after(values: list[float], lost: int = 0, plan: Looks | None = None, judged: Any = BOTH) -> Look:
    document = {"values": values, "lost": [lost] * len(values)}
    return look(len(values), document, judged, RUN, plan or Looks(2, 12))


def test_the_error_is_spent_evenly_on_the_looks() -> None:
    assert Looks(3, 3).confidence == 0.95
    assert Looks(1, 5).confidence == pytest.approx(0.99)
    assert Looks(1, 5, stages=2).confidence == pytest.approx(0.995)  # Bonferroni over the looks of both stages
    assert [repetitions_for_median(level) for level in (0.95, 0.99, Looks(2, 12).confidence)] == [6, 8, 9]


def test_it_goes_on_until_the_least_number_and_while_something_is_open() -> None:
    assert after([11.0]) == Look(1, {}, False, "the scenario asks for 2 at least")
    assert after([11.0, 12.0]) == Look(2, {"X-1": "undecided", "X-2": "met"}, False, "X-1 undecided")


def test_it_stops_when_all_is_decided_and_not_a_repetition_earlier() -> None:
    values = [10.1 + 0.1 * number for number in range(9)]
    assert not after(values[:8]).stop
    assert after(values) == Look(9, {"X-1": "met", "X-2": "met"}, True, "every requirement is decided")


def test_a_requirement_that_is_missed_stops_at_once() -> None:
    found = after([11.0, 12.0], lost=1)
    assert (found.stop, found.reason) == (True, "X-2 missed: more repetitions would not change that")


def test_it_stops_undecided_after_the_most_repetitions() -> None:
    found = after([9.0, 11.0] * 6)
    assert (found.stop, found.reason) == (True, "X-1 undecided after the most repetitions allowed")


def test_what_further_repetitions_cannot_decide_stops() -> None:
    guarded = replace(NONE_LOST, comparison="at_most", bound=2.0, guard_band=1.0)
    found = after([1.0, 1.0], lost=2, judged=[(guarded, OBSERVED)])
    assert (found.stop, found.decisions) == (True, {"X-2": "undecided"})
    assert found.reason == "no further repetition would decide what is open"
    assert after([1.0, 1.0], judged=[]).reason == "no requirement depends on further repetitions"


def test_advisory_requirements_prolong_nothing_beside_mandatory_ones() -> None:
    class Profile:
        requirements = (replace(REQUIREMENT, severity="advisory"), NONE_LOST)

    metrics = {"x": METRIC, "lost": OBSERVED}
    assert relevant(Profile(), metrics, "results/x.json") == [(NONE_LOST, OBSERVED)]  # type: ignore[arg-type]
    assert relevant(Profile(), metrics, "results/y.json") == []  # type: ignore[arg-type]


def test_every_look_is_recorded_with_what_it_had_cost() -> None:
    costs = iter([{"hours": 1.0}, {"hours": 2.0}])
    stopping = Stopping(Looks(1, 2), [(NONE_LOST, OBSERVED)], RUN, lambda: next(costs))
    assert stopping.enough(1, {"lost": [0]})
    record = stopping.record()
    assert (record["repetitions_min"], record["repetitions_max"], record["confidence"]) == (1, 2, 0.975)
    expected = {"repetitions": 1, "decisions": {"X-2": "met"}, "stop": True, "reason": "every requirement is decided"}
    assert record["looks"] == [{**expected, "cost": {"hours": 1.0}}]
