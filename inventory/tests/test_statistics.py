"""Statistics over repetitions against hand-worked and published values."""

import random
from typing import NamedTuple

import pytest

from daq_bench.bench_model.statistics.plateau import deciding_point, find_plateau
from daq_bench.bench_model.statistics.repetitions import judged_value, median_interval, repetition_interval


def test_the_judged_value_is_the_one_that_was_asked_for() -> None:
    assert [judged_value([3, 1, 2, 10], name) for name in ("min", "max", "median")] == [1, 10, 2.5]
    with pytest.raises(ValueError, match="no values"):
        judged_value([], "min")


def test_five_values_cannot_bound_a_median_at_95_percent() -> None:
    assert median_interval([1, 2, 3, 4, 5]) is None  # 1 - 2/2^5 = 93.75 %


def test_the_interval_of_the_median_uses_the_textbook_ranks() -> None:
    # n = 6: ranks 1 and 6 (96.9 %); n = 10: ranks 2 and 9 (97.9 %); n = 25: ranks 8 and 18 (95.7 %)
    assert median_interval(range(1, 7)) == (1, 6)
    assert median_interval(range(1, 11)) == (2, 9)
    assert median_interval(range(1, 26)) == (8, 18)


def test_the_interval_covers_the_median_as_often_as_it_says() -> None:
    generator = random.Random(7)
    hits = 0
    for _ in range(2000):
        interval = median_interval([generator.expovariate(1.0) for _ in range(12)])
        assert interval is not None
        hits += interval[0] <= 0.6931 <= interval[1]
    assert hits / 2000 >= 0.94


def test_the_interval_of_repetitions_is_as_wide_as_students_and_as_the_order_statistics() -> None:
    # n = 6: mean 3.5, sd 1.870829, t(0.975, 5) = 2.570582: half 1.963327; the order statistics' 1 to 6 are wider
    assert repetition_interval([(one, one) for one in range(1, 7)]) == (1, 6)
    # n = 9: ranks 2 and 8 (96.1 %); mean 14, sd 28.59196, t(0.975, 8) = 2.306004: half 21.97772
    low, high = repetition_interval([(one, one) for one in (1, 2, 3, 4, 5, 6, 7, 8, 90)])
    assert (low, high) == (pytest.approx(14 - 21.97772, abs=1e-4), pytest.approx(14 + 21.97772, abs=1e-4))
    # read as the lower of two values for the low end, and as the higher for the high end
    assert repetition_interval([(one - 1, one + 2) for one in range(1, 7)]) == (0, 8)


@pytest.mark.parametrize(("count", "confidence"), [(0, 0.95), (1, 0.95), (5, 0.95), (7, 0.99)])
def test_too_few_repetitions_have_no_interval(count: int, confidence: float) -> None:
    with pytest.raises(ValueError, match="bound nothing"):
        repetition_interval([(1.0, 1.0)] * count, confidence)


def test_the_plateau_starts_where_everything_larger_stays_within_5_percent() -> None:
    plateau = find_plateau([(4, 10.0), (8, 50.0), (16, 96.0), (32, 100.0), (64, 97.0)])
    assert plateau is not None
    assert (plateau.from_block_bytes, plateau.throughput_bytes_per_s) == (16, 97.0)


def test_a_scan_that_still_rises_has_no_plateau() -> None:
    assert find_plateau([(4, 10.0), (8, 20.0), (16, 40.0)]) is None
    assert find_plateau([]) is None


class Rated(NamedTuple):
    block_bytes: int
    throughput_bytes_per_s: float
    admissible: bool


def test_the_lowest_large_block_stands_for_a_scan_and_one_that_does_not_count_comes_first() -> None:
    points = [Rated(size, rate, True) for size, rate in ((2**20, 1.0), (2**23, 9.0), (2**24, 7.0), (2**25, 8.0))]
    assert deciding_point(points) == points[2]
    assert deciding_point(points[:1]) is None
    masked = Rated(2**26, 99.0, False)  # it might have been lower
    assert deciding_point([*points, masked]) == masked


def test_a_dip_after_the_peak_moves_the_plateau_behind_it() -> None:
    plateau = find_plateau([(4, 100.0), (8, 50.0), (16, 99.0), (32, 98.0)])
    assert plateau is not None
    assert plateau.from_block_bytes == 16
