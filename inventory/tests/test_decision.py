"""Met, missed or undecided: the interval by the best method that the data allow, against the bound and its guard band."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from bench_model.decision import Estimate, decide, estimate, measure
from bench_model.profiles import Requirement, ResultMetric

METRIC = ResultMetric("x", "", "MB/s", "results/x.json", "values", "estimated", "series")
REQUIREMENT = Requirement("X-1", "", "x", "at_least", 9.0, "GB/s", "min", "mandatory", False, "")  # type: ignore[arg-type]


def scattered(mean: float, count: int = 80, seed: int = 1) -> list[float]:
    generator = random.Random(seed)
    return [mean + generator.gauss(0, 0.05 * 1000) for _ in range(count)]


def known(document: dict[str, Any], requirement: Requirement = REQUIREMENT, metric: ResultMetric = METRIC) -> Estimate:
    return estimate(requirement, metric, measure(requirement, metric, {metric.file: document}), seed=3)


def of_series(*series: list[float]) -> dict[str, Any]:
    return {"values": [sum(one) / len(one) for one in series], "series": list(series)}


def exact(value: float) -> Estimate:
    return Estimate(value, 1, {}, None, "observation", exact=True)


def interval(value: float, low: float, high: float, of_series: bool = True) -> Estimate:
    return Estimate(value, 6, {}, (low, high), "test", of_series=of_series)


@pytest.mark.parametrize(
    ("comparison", "found", "guard", "decision"),
    [
        ("at_least", interval(9.5, 9.2, 9.8), 0.0, "met"),
        ("at_least", interval(9.5, 9.25, 9.8), 0.25, "met"),
        ("at_least", interval(9.5, 9.25, 9.8), 0.26, "undecided"),
        ("at_least", interval(9.5, 8.9, 9.8), 0.0, "undecided"),
        ("at_least", interval(8.5, 8.2, 8.9), 0.5, "missed"),
        ("at_least", interval(8.9, 8.7, 9.1), 0.0, "undecided"),
        ("at_most", interval(8.5, 8.25, 8.75), 0.25, "met"),
        ("at_most", interval(8.5, 8.2, 8.9), 0.2, "undecided"),
        ("at_most", interval(9.5, 9.1, 9.8), 0.0, "missed"),
        ("at_least", exact(9.0), 0.0, "met"),
        ("at_least", exact(9.1), 0.2, "undecided"),
        ("at_least", exact(8.99), 0.2, "missed"),
        ("equal", exact(9.0), 0.0, "met"),
        ("equal", exact(9.1), 0.0, "missed"),
    ],
)  # fmt: skip
def test_the_whole_interval_must_lie_on_one_side(comparison: Any, found: Estimate, guard: float, decision: str) -> None:
    assert decide(comparison, 9.0, guard, found).decision == decision


def test_undecided_says_how_much_more_would_decide() -> None:
    # The interval must shrink to a half, for which four times as much is needed.
    series = decide("at_least", 9.0, 0.0, interval(9.2, 8.8, 9.6))
    assert series.length_factor == pytest.approx(4.0)
    assert series.advice == "a measurement about 4 times as long would decide"
    values = decide("at_least", 9.0, 0.0, interval(9.2, 8.8, 9.6, of_series=False))
    assert (values.more_repetitions, values.advice) == (18, "about 18 more repetitions would decide")
    below = decide("at_least", 9.0, 0.0, interval(8.8, 8.4, 9.2))
    assert below.length_factor == pytest.approx(4.0)
    near = decide("at_least", 9.0, 0.0, interval(9.001, 8.8, 9.2))
    assert near.length_factor is None and "so near the bound" in near.advice
    guarded = decide("at_least", 9.0, 0.5, interval(9.4, 9.3, 9.5))
    assert "within the guard band" in guarded.advice


def test_one_repetition_without_a_series_is_never_decided() -> None:
    found = known({"values": [20_000.0]})
    assert (found.interval, found.n) == (None, 1)
    assert found.method == "none: 1 repetition without a series, and fewer than 6 bound nothing"
    decided = decide("at_least", 9.0, 0.0, found)
    assert (decided.decision, decided.more_repetitions) == ("undecided", 5)


def test_a_series_gives_an_interval_around_its_value_in_the_requirements_unit() -> None:
    found = known(of_series(scattered(9500)))
    assert found.interval is not None
    assert found.interval[0] < found.value < found.interval[1]
    assert found.interval == pytest.approx((9.5, 9.5), abs=0.04)
    assert found.method.startswith("block bootstrap and cosine t, 80 samples, block ")
    assert found.spread["of"] == "samples" and found.spread["count"] == 80
    assert decide("at_least", 9.0, 0.0, found).decision == "met"


def test_the_worst_of_several_series_is_judged_at_a_level_at_which_all_hold() -> None:
    alone = known(of_series(scattered(9500, seed=2)))
    found = known(of_series(scattered(9900, seed=1), scattered(9500, seed=2)))
    assert alone.interval and found.interval
    assert found.value == alone.value
    assert found.interval[0] < alone.interval[0] < alone.interval[1] < found.interval[1]
    assert found.spread["of"] == "repetitions" and found.n == 2


def test_a_series_whose_mean_is_not_the_value_is_no_evidence() -> None:
    document = of_series(scattered(9500))
    document["values"] = [12_000.0]
    found = known(document)
    assert found.interval is None
    assert "its samples' mean of 9.502 is not the value 12" in found.method
    assert decide("at_least", 9.0, 0.0, found).decision == "undecided"


def test_six_repetitions_without_series_are_judged_by_their_order() -> None:
    document = {"values": [9100.0, 9200.0, 9300.0, 9400.0, 9500.0, 9600.0]}
    median = known(document, replace(REQUIREMENT, statistic="median"))
    assert median.interval == (9.1, 9.6) and median.value == pytest.approx(9.35)
    worst = known(document)
    assert (worst.interval, worst.value) == ((9.1, 9.6), 9.1)
    assert worst.method == "order statistics of the repetitions, extended to the min"
    assert decide("at_least", 9.0, 0.0, worst).decision == "met"


def test_series_that_are_too_short_leave_the_repetitions_order_to_decide() -> None:
    few = of_series(*([rate] * 12 for rate in (9100.0, 9200.0, 9300.0, 9400.0, 9500.0, 9600.0)))
    assert known(few).interval == (9.1, 9.6)
    assert known({key: entries[:5] for key, entries in few.items()}).method.startswith("none: repetition 1: 12 samples")


def test_an_interval_of_the_workload_itself_is_taken() -> None:
    metric = replace(METRIC, samples=None, interval="[years.interval]")
    found = known({"values": [9500.0], "years": {"interval": [9000.0, 9800.0]}}, metric=metric)
    assert found.interval == (9.0, 9.8)
    assert found.method == "given by the workload in results/x.json"


def test_an_observed_value_is_exact_and_says_that_it_bounds_nothing_else() -> None:
    metric = replace(METRIC, nature="observed")
    found = known({"values": [9500.0, 9100.0]}, metric=metric)
    assert (found.interval, found.value) == (None, 9.1)
    assert found.method == "observation: the min of the 2 repetitions themselves, exact; it bounds no other repetition"


def test_looks_lower_the_level() -> None:
    once = known(of_series(scattered(9500)))
    often = known({**of_series(scattered(9500)), "stopping": {"confidence": 0.99}})
    assert once.interval and often.interval
    assert often.interval[0] < once.interval[0]


@pytest.mark.parametrize("values", [[1.0, None], [], [True], [float("nan")]])
def test_what_is_no_number_is_not_measured(values: list[Any]) -> None:
    measured = measure(REQUIREMENT, METRIC, {METRIC.file: {"values": values, "reasons": {"x": "no meter"}}})
    assert (measured.values, measured.problem) == ((), "Not measured: no meter")
