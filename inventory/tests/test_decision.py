"""Met, missed or undecided: the interval by the best method that the data allow, against the bound and its guard band."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import pytest

from daq_bench.bench_model.documents.verdict import Spread
from daq_bench.bench_model.evidence.measured import measure
from daq_bench.bench_model.profiles.metrics import ResultMetric
from daq_bench.bench_model.profiles.requirements import Requirement
from daq_bench.bench_model.verdict.decision import Estimate, by_interval, decide, estimate

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


def interval(value: float, low: float, high: float) -> Estimate:
    spread = Spread(of="repetitions", count=6, min=low, median=value, max=high, sd=None)
    return Estimate(value, 6, spread, (low, high), "test", confidence=0.95)


def repeated(mean: float, count: int = 6, **changes: Any) -> dict[str, Any]:
    """Repetitions with series of 80 samples each."""
    return of_series(*(scattered(mean, seed=number, **changes) for number in range(count)))


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
    # The interval must shrink to a half, for which four times as many are needed.
    values = decide("at_least", 9.0, 0.0, interval(9.2, 8.8, 9.6))
    assert (values.more_repetitions, values.advice) == (18, "about 18 more repetitions would decide")
    assert decide("at_least", 9.0, 0.0, interval(8.8, 8.4, 9.2)).more_repetitions == 18
    # With a guard band of 0.1 its lower half must shrink from 0.7 to 0.4: (0.7 / 0.4)^2 times six repetitions, less the six.
    assert decide("at_least", 9.0, 0.1, interval(9.5, 8.8, 10.2)).more_repetitions == 13
    near = decide("at_least", 9.0, 0.0, interval(9.001, 8.8, 9.2))
    assert near.more_repetitions is None and "so near the bound" in near.advice
    guarded = decide("at_least", 9.0, 0.5, interval(9.4, 9.3, 9.5))
    assert "within the guard band" in guarded.advice


def test_no_further_repetition_makes_up_for_the_worst() -> None:
    """Among eight repetitions one misses the bound. The interval is extended to it, and stays so however many follow."""
    values = [9500.0, 9450.0, 9520.0, 9480.0, 8900.0, 9510.0, 9490.0, 9505.0]
    worst, metric = replace(REQUIREMENT, statistic="min"), replace(METRIC, samples=None)
    found = known({"values": values}, worst, metric)
    decided = decide("at_least", 9.0, 0.0, found)
    assert (decided.decision, decided.more_repetitions) == ("undecided", None)
    assert decided.advice.startswith("the worst repetition misses the bound and most do not")
    most = known({"values": [8900.0 + 10 * n for n in range(6)] + [9200.0]}, worst, metric)
    assert decide("at_least", 9.0, 0.0, most).more_repetitions is not None


@pytest.mark.parametrize("value", [20_000.0, 1.0])
def test_one_repetition_without_a_series_is_never_decided(value: float) -> None:
    found = known({"values": [value]}, metric=replace(METRIC, samples=None))
    assert (found.interval, found.n, found.confidence) == (None, 1, None)
    assert found.method == "this run only (n = 1): no series; fewer than 6 repetitions bound nothing"
    decided = decide("at_least", 9.0, 0.0, found)
    assert (decided.decision, decided.more_repetitions) == ("undecided", 5)


@pytest.mark.parametrize("mean", [15_000.0, 5_000.0])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_fewer_than_six_repetitions_speak_of_this_run_only(mean: float, count: int) -> None:
    found = known(repeated(mean, count))
    assert found.interval is not None and found.interval[0] < found.value < found.interval[1]
    assert found.method.startswith(f"this run only (n = {count}): block bootstrap and cosine t; fewer than 6")
    assert (found.confidence, found.this_run_only) == (None, True)
    decided = decide("at_least", 9.0, 0.0, found)
    more = 6 - count
    assert (decided.decision, decided.more_repetitions) == ("undecided", more)
    assert decided.advice == f"about {more} more repetition{'s' if more > 1 else ''} would decide"


def test_six_repetitions_decide_by_their_scatter_joined_with_that_of_their_series() -> None:
    document = repeated(9500.0)
    found = known(document, replace(REQUIREMENT, statistic="median"))
    assert found.interval is not None and found.confidence == 0.95
    assert found.method == (
        "Student t and order statistics of 6 repetitions, joined with block bootstrap and cosine t within each"
    )
    means = [value / 1000 for value in document["values"]]
    # t(0.975, 5) = 2.5706
    half = 2.5706 * stdev(means) / math.sqrt(6)
    assert found.interval[0] <= min(*means, fmean(means) - half + 1e-6)
    assert found.interval[1] >= max(*means, fmean(means) + half - 1e-6)
    assert decide("at_least", 9.0, 0.0, found).decision == "met"
    assert decide("at_least", 10.0, 0.0, found).decision == "missed"


def test_repetitions_that_agree_by_luck_do_not_narrow_what_their_series_know() -> None:
    series = [
        [9500.0 + (one - sum(noise) / 80) for one in noise] for noise in (scattered(0.0, seed=n) for n in range(6))
    ]
    found = known(of_series(*series))
    assert found.interval is not None
    # Six means of 80 samples of sd 50 scatter by 50 / sqrt(480) = 2.3, whatever these six say.
    assert 9.5 - found.interval[0] > 1.96 * 0.0023


def test_series_that_agree_do_not_narrow_how_the_repetitions_scatter() -> None:
    found = known(of_series(*([rate] * 80 for rate in (9100.0, 9900.0, 9300.0, 9700.0, 9500.0, 9400.0))))
    assert found.interval is not None and found.interval[0] <= 9.1 and found.interval[1] >= 9.9


def test_the_worst_repetition_outside_of_the_bound_is_never_met_for_min() -> None:
    rates = [9500.0, 9510.0, 9490.0, 9505.0, 9495.0, 9500.0, 9502.0, 9501.0, 8990.0]
    found = known({"values": rates}, metric=replace(METRIC, samples=None))
    assert found.interval is not None and found.interval[0] <= 8.99
    assert found.method.endswith(", extended to the min")
    assert decide("at_least", 9.0, 0.0, found).decision == "undecided"


@pytest.mark.parametrize("inflated", [1.049, 1.03])
def test_a_value_above_the_mean_of_its_samples_gains_nothing(inflated: float) -> None:
    document = repeated(8900.0)
    document["values"] = [value * inflated for value in document["values"]]
    found = known(document, replace(REQUIREMENT, statistic="median"))
    assert found.interval is not None and found.interval[0] < 8.9
    assert decide("at_least", 9.0, 0.0, found).decision == "undecided"


@pytest.mark.parametrize("samples", [[1169.0, 1652.0], [9500.0] * 49])
def test_a_point_too_short_for_an_interval_asks_for_a_longer_one_and_is_no_fault_of_the_bench(
    samples: list[float],
) -> None:
    """fio's log of half a second has two samples, of which the first is the ramp: their mean is far from the rate of the whole point."""
    found = known({"values": [12_000.0], "series": [samples]})
    assert found.interval is None and f"{len(samples)} samples are too few" in found.method
    decided = decide("at_least", 9.0, 0.0, found)
    assert decided.decision == "undecided" and "times as long" in decided.advice and "fault" not in decided.advice


def test_a_series_whose_mean_is_not_the_value_is_no_evidence() -> None:
    document = repeated(9500.0)
    document["values"][2] = 12_000.0
    found = known(document)
    assert found.interval is None
    assert "repetition 3: its samples' mean of" in found.method and "is not the value 12" in found.method
    decided = decide("at_least", 9.0, 0.0, found)
    assert decided.decision == "undecided" and "contradict themselves" in decided.advice


def test_a_repetition_that_is_entered_twice_is_no_repetition() -> None:
    document = repeated(9500.0, 3)
    twice = {key: entries * 2 for key, entries in document.items()}
    found = known(twice)
    assert (found.interval, found.method) == (
        None, "none: repetition 4: the same samples stand for an earlier repetition too",
    )  # fmt: skip


@pytest.mark.parametrize("hole", [None, [], "fast", [1.0, None], [float("nan")] * 80])
def test_a_repetition_without_its_series_leaves_no_interval(hole: Any) -> None:
    document = repeated(9500.0)
    document["series"][5] = hole
    found = known(document)
    assert (found.interval, found.method) == (None, "none: repetition 6: results/x.json gives no series of its samples")


def test_series_that_are_too_short_are_not_made_up_for_by_their_number() -> None:
    few = of_series(*([rate] * 12 for rate in (9100.0, 9200.0, 9300.0, 9400.0, 9500.0, 9600.0)))
    found = known(few)
    assert found.method.startswith("none: repetition 1: 12 samples are too few")
    decided = decide("at_least", 9.0, 0.0, found)
    assert (decided.decision, decided.advice) == ("undecided", "a measurement about 4.2 times as long would decide")
    alone = decide("at_least", 9.0, 0.0, known({key: entries[:1] for key, entries in few.items()}))
    assert alone.advice == "a measurement about 4.2 times as long and about 5 more repetitions would decide"


@pytest.mark.parametrize(("slow", "decision"), [(1, "met"), (2, "undecided")])
def test_one_of_six_series_may_look_too_correlated_for_its_length(slow: int, decision: str) -> None:
    document = repeated(9500.0)
    for number in range(slow):
        document["series"][number].sort()  # the same values, as a drift
    found = known(document)
    assert by_interval("at_least", 9.0, 0.0, found).decision == decision
    assert found.method.startswith(
        "Student t" if slow == 1 else "none: repetition 1: 80 samples are too few for their autocorr"
    )


def test_a_rare_large_deviation_in_one_series_is_forgiven_to_none() -> None:
    document = repeated(9500.0)
    document["series"][3][40] = 5000.0
    document["values"][3] = fmean(document["series"][3])
    assert known(document).method == "none: repetition 4: 80 samples are too few for rare large deviations among them"


def test_six_repetitions_without_series_are_judged_by_their_own_scatter() -> None:
    metric = replace(METRIC, samples=None)
    document = {"values": [9100.0, 9200.0, 9300.0, 9400.0, 9500.0, 9600.0]}
    median = known(document, replace(REQUIREMENT, statistic="median"), metric)
    # mean 9350, sd 187.08, t(0.975, 5) = 2.5706: 9350 - 196.3 lies within the order statistics' 9100 to 9600
    assert median.interval == (9.1, 9.6) and median.value == pytest.approx(9.35)
    worst = known(document, metric=metric)
    assert (worst.interval, worst.value) == ((9.1, 9.6), 9.1)
    assert worst.method == "Student t and order statistics of 6 repetitions, extended to the min"
    assert decide("at_least", 9.0, 0.0, worst).decision == "met"


GIVEN = replace(METRIC, samples=None, interval="intervals", rounds="rounds")


def test_an_interval_of_the_workload_counts_where_it_was_made_of_enough_rounds() -> None:
    document = {"values": [9500.0], "intervals": [[9200.0, 9800.0]], "rounds": [6]}
    found = known(document, metric=GIVEN)
    assert (found.interval, found.confidence, found.n) == ((9.2, 9.8), 0.95, 6)
    assert found.method == "given by the workload in results/x.json, over 6 rounds"
    assert decide("at_least", 9.0, 0.0, found).decision == "met"


@pytest.mark.parametrize("rounds", [[5], [None], [0], ["six"], [True], [], None, [float("inf")], [-6]])
def test_an_interval_of_too_few_rounds_or_nobody_knows_how_many_decides_nothing(rounds: Any) -> None:
    document = {"values": [9500.0], "intervals": [[9200.0, 9800.0]], "rounds": rounds}
    found = known(document, metric=GIVEN)
    assert found.method.startswith("this run only (n = ") and found.this_run_only
    assert decide("at_least", 9.0, 0.0, found).decision == "undecided"
    none_declared = known(document, metric=replace(GIVEN, rounds=None))
    assert none_declared.method.startswith("this run only (n = 1): given in results/x.json")


def test_a_number_of_rounds_is_what_the_workload_told_and_none_otherwise() -> None:
    told = [1, 2.0, 0, -6, None, True]
    document = {"values": [9500.0] * 6, "intervals": [[9200.0, 9800.0]] * 6, "rounds": told}
    assert measure(REQUIREMENT, GIVEN, {METRIC.file: document}).rounds == (1, 2, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("rounds", "strata"),
    [
        (None, ("8 MiB", "value 2", "8 MiB")),  # nothing says that one without a label is like another
        ("rounds", ("value 1, 8 MiB", "value 2", "value 3, 8 MiB")),  # each was made of several rounds
    ],
)
def test_a_value_stands_with_those_of_its_label_or_alone(rounds: str | None, strata: tuple[str, ...]) -> None:
    document = {"values": [9500.0] * 3, "labels": ["8 MiB", None, "8 MiB"], "rounds": [6, 6, 6]}
    metric = replace(METRIC, samples=None, strata="labels", rounds=rounds)
    assert measure(REQUIREMENT, metric, {METRIC.file: document}).strata == strata


@pytest.mark.parametrize(
    "pair", [None, [], [9200.0], [9800.0, 9200.0], [9600.0, 9800.0], [9200.0, None], [float("nan"), 9800.0], "9200"]
)
@pytest.mark.parametrize("rounds", ["rounds", None])
def test_an_interval_that_is_missing_or_does_not_hold_its_value_is_none(pair: Any, rounds: str | None) -> None:
    found = known({"values": [9500.0], "intervals": [pair], "rounds": [8]}, metric=replace(GIVEN, rounds=rounds))
    assert found.interval is None and found.method.startswith("none: ")
    assert decide("at_least", 9.0, 0.0, found).decision == "undecided"


def test_an_interval_of_95_percent_is_not_taken_for_one_of_more() -> None:
    document = {"values": [9500.0], "intervals": [[9200.0, 9800.0]], "rounds": [20], "stopping": {"confidence": 0.99}}
    assert known(document, metric=GIVEN).method == (
        "none: the interval in results/x.json is one of 95%, and several looks ask for more"
    )


def test_a_level_below_the_usual_one_is_not_taken() -> None:
    """A result that names its own level of 0.5 is judged at 95 % all the same: six repetitions, not two."""
    low = {**repeated(9500.0, 6), "stopping": {"confidence": 0.5}}
    assert known(low) == known(repeated(9500.0, 6))
    assert known({**repeated(9500.0, 5), "stopping": {"confidence": 0.5}}).this_run_only


def cliffs(high: float, low: float, count: int = 6) -> list[list[float]]:
    """Repetitions that leave their cache at different moments."""
    return [
        [(high if at < 30 + 5 * number else low) + one for at, one in enumerate(scattered(0.0, seed=number))]
        for number in range(count)
    ]


@pytest.mark.parametrize("statistic", ["min", "median"])
@pytest.mark.parametrize(
    ("high", "low", "guard", "decision"),
    [
        (17_000.0, 12_000.0, 0.0, "met"),
        (17_000.0, 12_000.0, 2.5, "met"),  # the lowest sample is 11.87
        (17_000.0, 12_000.0, 2.95, "undecided"),
        (13_000.0, 9_050.0, 0.0, "undecided"),  # some samples lie below 9
        (8_800.0, 6_000.0, 0.0, "missed"),
    ],
)
def test_all_samples_of_six_repetitions_on_one_side_decide_where_no_interval_can(
    statistic: Any, high: float, low: float, guard: float, decision: str
) -> None:
    found = known(of_series(*cliffs(high, low)), replace(REQUIREMENT, statistic=statistic))
    assert by_interval("at_least", 9.0, guard, found).decision in ("undecided", "missed")
    decided = decide("at_least", 9.0, guard, found)
    assert decided.decision == decision
    if decision != "undecided":
        assert decided.found.method == "range of all 480 samples of 6 repetitions, no confidence level"
        assert (decided.found.confidence, decided.more_repetitions, decided.advice) == (None, None, "")


def test_the_range_also_decides_what_must_stay_below() -> None:
    found = known(of_series(*cliffs(12_000.0, 17_000.0)), replace(REQUIREMENT, comparison="at_most", statistic="max"))
    assert found.ranged is not None and found.ranged.interval is not None
    assert decide("at_most", found.ranged.interval[1], 0.0, found).decision == "met"
    assert decide("at_most", found.ranged.interval[1] - 1e-6, 0.0, found).decision == "undecided"


def test_an_interval_that_decides_is_not_replaced_by_a_range() -> None:
    decided = decide("at_least", 9.0, 0.0, known(repeated(9500.0)))
    assert decided.found.confidence == 0.95 and decided.found.method.startswith("Student t")


def test_the_range_is_no_narrower_than_the_scatter_of_the_values() -> None:
    levels = [9050.0] * 3 + [17_000.0] * 3
    series = [[level + one % 7 for one in range(number, number + 80)] for number, level in enumerate(levels)]
    found = known(of_series(*series))
    assert min(map(min, series)) >= 9000.0
    # Student's t of three values at 9.05 and three at 17: 13.03 - 2.57 x 4.36 / 2.449 = 8.46
    assert found.ranged is not None and found.ranged.interval is not None
    assert found.ranged.interval[0] == pytest.approx(13.028 - 2.5706 * 4.355 / math.sqrt(6), abs=0.01)
    assert decide("at_least", 9.0, 0.0, found).decision == "undecided"


@pytest.mark.parametrize("fault", ["missing", "doubled", "not its own", "short", "five", "several looks"])
def test_the_range_mends_no_fault_of_the_evidence(fault: str) -> None:
    document = of_series(*cliffs(17_000.0, 12_000.0))
    if fault == "missing":
        document["series"][5] = None
    elif fault == "doubled":
        document["series"][5], document["values"][5] = document["series"][0], document["values"][0]
    elif fault == "not its own":
        document["values"][5] *= 1.06
    elif fault == "short":
        document["series"][5] = document["series"][5][:49]
        document["values"][5] = fmean(document["series"][5])
    elif fault == "five":
        document = of_series(*cliffs(17_000.0, 12_000.0, 5))
    else:
        document["stopping"] = {"confidence": 0.99}
    found = known(document)
    assert found.ranged is None
    assert decide("at_least", 9.0, 0.0, found).decision == "undecided"


def test_each_stratum_is_decided_by_its_own_rule() -> None:
    """A stratum whose interval decides may have samples outside, another has none outside and no interval."""
    metric = replace(METRIC, strata="labels")
    near = [scattered(9_060.0, 400, seed=20 + number) for number in range(6)]
    document = of_series(*near, *cliffs(17_000.0, 12_000.0)) | {"labels": ["full"] * 6 + ["fresh"] * 6}
    assert min(map(min, near)) < 9_000.0
    decided = decide("at_least", 9.0, 0.0, known(document, metric=metric))
    assert decided.decision == "met" and decided.found.confidence is None
    assert decided.found.method == (
        "range of all 480 samples of 6 repetitions, no confidence level and Student t and order statistics of 6 repetitions, "
        "joined with block bootstrap and cosine t within each, extended to the min; the worst of 2 strata"
    )
    slow = of_series(*near, *cliffs(8_800.0, 6_000.0)) | {"labels": ["full"] * 6 + ["fresh"] * 6}
    assert decide("at_least", 9.0, 0.0, known(slow, metric=metric)).decision == "missed"


STRATA = replace(METRIC, samples=None, strata="labels")


def labelled(*parts: tuple[Any, list[float]]) -> dict[str, Any]:
    return {"values": [one for _, own in parts for one in own], "labels": [label for label, own in parts for _ in own]}


GOOD = [9500.0, 9510.0, 9490.0, 9505.0, 9495.0, 9500.0]
BAD = [one - 1000.0 for one in GOOD]


@pytest.mark.parametrize("statistic", ["min", "median"])
@pytest.mark.parametrize(
    ("parts", "decision"),
    [
        ([("fresh", GOOD), ("preconditioned", GOOD)], "met"),
        ([("fresh", GOOD), ("preconditioned", BAD)], "missed"),
        ([("fresh", GOOD), ("preconditioned", GOOD[:3])], "undecided"),
        ([("fresh", GOOD[:3]), ("preconditioned", GOOD[:3])], "undecided"),
        ([("fresh", GOOD), ("preconditioned", [9500.0, 9510.0, 9490.0, 8000.0, 9495.0, 9500.0])], "undecided"),
        ([(4096, GOOD), (8192, GOOD)], "met"),
        ([(["burst", "read"], GOOD), (["burst", "scan"], BAD)], "missed"),
        ([(None, GOOD)], "undecided"),
        ([("fresh", GOOD), (None, GOOD)], "undecided"),
        ([(["burst", None], GOOD)], "undecided"),
    ],
)
def test_every_stratum_must_be_met_and_unlike_values_are_no_repetitions(
    statistic: Any, parts: list[tuple[Any, list[float]]], decision: str
) -> None:
    found = known(labelled(*parts), replace(REQUIREMENT, statistic=statistic), STRATA)
    assert decide("at_least", 9.0, 0.0, found).decision == decision


def test_the_worst_stratum_is_shown_for_either_direction() -> None:
    document = labelled(("a", GOOD), ("b", BAD))
    least = known(document, metric=STRATA)
    assert (least.value, least.n) == (8.49, 12) and least.method.endswith("; the worst of 2 strata")
    most = known(document, replace(REQUIREMENT, comparison="at_most", statistic="max"), STRATA)
    assert most.value == 9.51
    assert decide("at_most", 9.0, 0.0, most).decision == "missed"


@pytest.mark.parametrize("labels", [None, [], ["fresh"], "fresh", [None] * 6])
def test_labels_that_are_missing_make_no_repetitions(labels: Any) -> None:
    assert (
        decide("at_least", 9.0, 0.0, known({"values": GOOD, "labels": labels}, metric=STRATA)).decision == "undecided"
    )


def test_a_stratum_without_an_interval_leaves_none_and_is_named() -> None:
    metric = replace(METRIC, strata="labels")
    document = {**repeated(9500.0, 12), "labels": ["a"] * 6 + ["b"] * 6}
    assert decide("at_least", 9.0, 0.0, known(document, metric=metric)).decision == "met"
    document["series"][7] = None
    found = known(document, metric=metric)
    assert (found.interval, found.method) == (
        None, "none: repetition 2: results/x.json gives no series of its samples (b)",
    )  # fmt: skip


def test_a_median_of_facts_over_unlike_repetitions_is_that_of_the_worse() -> None:
    metric = replace(STRATA, nature="observed")
    asked = replace(REQUIREMENT, statistic="median")
    found = known(labelled(("a", GOOD), ("b", BAD[:3])), asked, metric)
    assert (found.value, found.exact) == (8.5, True)


WINDOW = replace(METRIC, rule="steady-window")


@pytest.mark.parametrize(
    ("rounds", "decision"),
    [
        ([9500.0, 9600.0, 9400.0, 9550.0, 9450.0], "met"),
        ([9500.0, 9600.0, 8990.0, 9550.0, 9450.0], "undecided"),
        ([8500.0, 8600.0, 8400.0, 8550.0, 8450.0], "missed"),
    ],
)
def test_a_steady_window_is_decided_by_its_range(rounds: list[float], decision: str) -> None:
    found = known(of_series(rounds), metric=WINDOW)
    assert found.interval == (min(rounds) / 1000, max(rounds) / 1000) and found.confidence is None
    assert found.method == "range of the steady window (SNIA PTS), this run only, no confidence level"
    decided = decide("at_least", 9.0, 0.0, found)
    assert decided.decision == decision
    if decision == "undecided":
        assert decided.advice == "the range reaches over the bound, and a range does not shrink"


@pytest.mark.parametrize(
    "rounds", [[9500.0], [9500.0] * 4, [9500.0] * 6, [], None, [9500.0, 9500.0, 9500.0, 9500.0, None]]
)
def test_a_window_that_is_not_the_standards_is_no_evidence(rounds: Any) -> None:
    found = known({"values": [9500.0], "series": [rounds]}, metric=WINDOW)
    assert found.interval is None and "instead of 5" in found.method
    contradicting = known({"values": [12_000.0], "series": [[9500.0] * 5]}, metric=WINDOW)
    assert contradicting.interval is None and "is not the value" in contradicting.method


@pytest.mark.parametrize(("values", "shown"), [([9500.0], 9.5), ([9500.0, 9100.0], 9.1)])
def test_an_observed_value_is_exact_and_says_that_it_is_this_runs(values: list[float], shown: float) -> None:
    found = known({"values": values}, metric=replace(METRIC, nature="observed"))
    assert (found.interval, found.value, found.confidence) == (None, shown, None)
    which = "an observation" if len(values) == 1 else "the min of these repetitions, an observation"
    assert found.method == f"this run only (n = {len(values)}): {which}, exact; it bounds no other repetition"


def test_looks_lower_the_level_and_ask_for_more_repetitions() -> None:
    asked = replace(REQUIREMENT, statistic="median")
    once = known(repeated(9500.0, 9), asked)
    often = known({**repeated(9500.0, 9), "stopping": {"confidence": 0.995}}, asked)
    assert once.interval and often.interval
    assert often.interval[0] < once.interval[0] and often.confidence == 0.995
    assert known({**repeated(9500.0, 8), "stopping": {"confidence": 0.995}}).this_run_only


@pytest.mark.parametrize("values", [[1.0, None], [], [True], [float("nan")], [1e308, 1.0], [-1e308]])
def test_what_is_no_number_is_not_measured(values: list[Any]) -> None:
    measured = measure(REQUIREMENT, METRIC, {METRIC.file: {"values": values, "reasons": {"x": "no meter"}}})
    assert measured.values == ()
    assert measured.problem.startswith("Not measured: ") and "no meter" in measured.problem


@pytest.mark.parametrize("statistic", ["min", "max"])
@pytest.mark.parametrize(("values", "judged"), [([1.0, 0.5, 1.0], 0.5), ([1.0, 1.0, 1.5], 1.5)])
def test_an_equal_holds_for_every_repetition_whatever_the_statistic(
    statistic: Any, values: list[float], judged: float
) -> None:
    """`equal 1` with `max` let a record of which half reads back pass beside one that reads back whole."""
    asked = replace(REQUIREMENT, comparison="equal", statistic=statistic, bound=1.0)
    metric = replace(METRIC, nature="observed", samples=None, unit="1")
    found = known({"values": values}, replace(asked, unit="1"), metric)
    decided = decide("equal", 1.0, 0.0, found)
    assert (decided.decision, decided.found.value) == ("missed", judged)
    assert decide("equal", 1.0, 0.0, known({"values": [1.0, 1.0]}, replace(asked, unit="1"), metric)).decision == "met"
