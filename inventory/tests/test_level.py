"""The level of nights: what is red stays out of it and in the spread, and what one night may show."""

from __future__ import annotations

import random

import pytest
import scipy

from daq_bench.bench_model.nights.level import Nights, _rank_chance, by_mean, by_rank

CHANCE = 0.01 / 7


def steady(count: int, spread: float = 1.0, seed: int = 3) -> list[float]:
    generator = random.Random(seed)
    return [100 + generator.gauss(0, spread) for _ in range(count)]


def nights(values: list[float], red: set[int] = frozenset(), accepted: int = 0) -> Nights:  # type: ignore[assignment]
    return Nights(tuple(values), tuple(place in red for place in range(len(values))), accepted)


def test_a_red_night_is_in_the_spread_and_not_in_the_level() -> None:
    values = [*steady(20), 90.0, *steady(4, seed=4)]
    red, plain = (by_mean(nights(values, places), 100.0, -1, CHANCE) for places in ({20}, set()))
    assert red is not None and plain is not None and red.spread is not None and plain.spread is not None
    without = [value for value in values if value != 90.0]
    assert red.level == pytest.approx(sum(without) / len(without)) and red.n == 24
    assert plain.level == pytest.approx(sum(values) / len(values))
    assert red.spread > 2.0  # 10 off in 25 nights


def test_a_long_run_of_red_nights_is_a_level_of_its_own_and_alarms_go_on() -> None:
    values, red = steady(30), set[int]()
    for number in range(40):
        tonight = 96.5 + random.Random(number).gauss(0, 1)
        found = by_mean(nights(values, red), tonight, -1, CHANCE)
        assert found is not None
        values.append(tonight)
        if found.excess > 1:
            red.add(len(values) - 1)
    assert len(red) >= 36 and found.level == pytest.approx(100.0, abs=0.8)
    assert found.spread is not None and found.spread < 1.5


def test_one_bad_night_does_not_colour_the_two_after_it() -> None:
    values = [*steady(30), 80.0]
    first = by_mean(nights(values[:-1]), 80.0, -1, CHANCE)
    assert first is not None and first.excess > 1 and first.window == 1
    for after in (100.0, 99.5):
        found = by_mean(nights(values, {30}), after, -1, CHANCE)
        assert found is not None and found.excess < 1
        values.append(after)


def test_a_creep_is_seen_though_no_night_stands_out() -> None:
    values = steady(30)
    for night in range(1, 31):
        found = by_mean(nights(values), steady(1, seed=100 + night)[0] - 0.1 * night, -1, CHANCE)
        assert found is not None
        if found.excess > 1:
            break
        values.append(steady(1, seed=100 + night)[0] - 0.1 * night)
    assert found.excess > 1 and found.window in (3, 10, 20) and night < 30


def test_equal_nights_do_not_alarm_by_their_resolution() -> None:
    alike = nights([100.0] * 30)
    small, large = (by_mean(alike, tonight, -1, CHANCE) for tonight in (99.9, 98.0))
    assert small is not None and small.excess < 1
    assert large is not None and large.excess > 1


def test_what_is_worse_depends_on_the_side() -> None:
    values = nights(steady(30))
    for worse in (-1, 1):
        found, other = (by_mean(values, 100.0 + worse * 20, side, CHANCE) for side in (worse, -worse))
        assert found is not None and found.excess > 1
        assert other is not None and other.excess < 0


@pytest.mark.parametrize("values", [[], [100.0]])
def test_without_a_night_there_is_no_level(values: list[float]) -> None:
    assert by_mean(nights(values, {0}), 50.0, -1, CHANCE) is None
    assert by_rank(nights(values), 50.0, -1, CHANCE) is None


def test_ties_are_no_evidence_in_a_rank() -> None:
    alike = nights([5.0] * 60)
    same, worse = by_rank(alike, 5.0, 1, CHANCE), by_rank(nights([5.0] * 60 + [5.1] * 2), 5.1, 1, CHANCE)
    assert same is not None and same.excess < 0.01
    assert worse is not None and worse.excess > 1 and worse.window == 3


@pytest.mark.parametrize(("earlier", "window"), [(5, 3), (20, 3), (12, 10)])
def test_the_rank_sum_is_scipys(earlier: int, window: int) -> None:
    generator = random.Random(earlier)
    before, after = ([generator.random() for _ in range(count)] for count in (earlier, window))
    beaten = sum(one > other for one in after for other in before)
    exact = scipy.stats.mannwhitneyu(after, before, alternative="greater", method="exact").pvalue
    assert _rank_chance(earlier, window, beaten) == pytest.approx(float(exact), rel=1e-12)
