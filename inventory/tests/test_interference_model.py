"""Slowdowns against hand-worked and SciPy's own figures, drift that cancels, and what proves that two things ran together."""

from __future__ import annotations

import math
import random

import pytest
from scipy import stats

from daq_bench.bench_model.workloads.interference import overlap_problem, ratio, slowdown_of


def test_the_mean_of_ratios_is_geometric_with_students_interval() -> None:
    ratios = [2.0, 4.0, 8.0]
    found = slowdown_of(ratios)
    assert found is not None
    assert (found.n, found.mean, found.median, found.least, found.most) == (3, pytest.approx(4.0), 4.0, 2.0, 8.0)
    logs = [math.log(one) for one in ratios]
    low, high = stats.t.interval(0.95, 2, loc=math.log(4.0), scale=stats.sem(logs))
    assert (found.low, found.high) == (pytest.approx(math.exp(low)), pytest.approx(math.exp(high)))


def test_two_pairs_have_a_spread_and_no_interval() -> None:
    found = slowdown_of([1.0, 1.1])
    assert found is not None
    assert (found.low, found.high) == (None, None)
    assert slowdown_of([]) is None


def test_rates_and_latencies_are_both_worse_above_one() -> None:
    assert ratio(100.0, 50.0, larger_is_better=True) == 2.0
    assert ratio(10.0, 20.0, larger_is_better=False) == 2.0


def test_drift_cancels_in_alternating_pairs() -> None:
    """A machine that slows down by 3 % from run to run, and a disturber that does nothing."""
    speed, drift = 1000.0, 0.97
    ratios = []
    for pair in range(6):
        first, second = speed * drift ** (2 * pair), speed * drift ** (2 * pair + 1)
        solo, disturbed = (first, second) if pair % 2 == 0 else (second, first)
        ratios.append(ratio(solo, disturbed, larger_is_better=True))
    found = slowdown_of(ratios)
    assert found is not None
    assert found.mean == pytest.approx(1.0)


def test_the_interval_covers_the_true_slowdown_as_often_as_it_says() -> None:
    generator = random.Random(20211)
    true, hits, runs = 1.5, 0, 1000
    for _ in range(runs):
        found = slowdown_of([true * math.exp(generator.gauss(0, 0.2)) for _ in range(4)])
        assert found is not None and found.low is not None and found.high is not None
        hits += found.low <= true <= found.high
    assert 0.93 <= hits / runs <= 0.97


def samples(until: float, step: float = 0.25, stall: tuple[float, float] = (0.0, 0.0)) -> list[list[float]]:
    """A disturber from -2 s on that writes 1 MB a sample, but not within `stall`."""
    done, found = 0.0, []
    for index in range(int((until + 2) / step) + 1):
        moment = -2 + index * step
        if not stall[0] <= moment < stall[1]:
            done += 1e6
        found.append([moment, 0.0, 0.0, done])
    return found


def test_a_disturber_that_works_throughout_counts() -> None:
    assert overlap_problem("writers", samples(11), "write", 0.0, 10.0, True) is None
    assert overlap_problem("writers", samples(101), "write", 0.0, 100.0, True) is None


def test_a_stall_below_a_second_is_contention_and_not_absence() -> None:
    assert overlap_problem("writers", samples(11, stall=(3.2, 3.8)), "write", 0.0, 10.0, True) is None


@pytest.mark.parametrize(
    ("given", "alive", "said"),
    [
        (samples(11), False, "had ended before the measurement was over"),
        ([one for one in samples(11) if one[0] > 0.5], True, "had not begun"),
        ([], True, "had not begun"),
        (samples(11, stall=(3.0, 6.0)), True, "did nothing in 2 of 10 parts"),
        (samples(5), True, "did nothing in"),
    ],
)
def test_what_is_not_proven_masks_the_run(given: list[list[float]], alive: bool, said: str) -> None:
    found = overlap_problem("writers", given, "write", 0.0, 10.0, alive)
    assert found is not None and said in found


def test_progress_of_another_kind_is_none() -> None:
    assert (
        overlap_problem("readers", samples(11), "read", 0.0, 10.0, True)
        == "readers did nothing in 10 of 10 parts of the measurement"
    )
