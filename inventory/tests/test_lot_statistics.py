"""Tolerance bounds, lot sampling and the spread between drives, against published values, SciPy and hand-worked examples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest, f_oneway

from daq_bench.bench_model.documents.lot import AcceptancePlan
from daq_bench.bench_model.lot.drive_spread import clusters, grubbs_p, limiting, spread
from daq_bench.bench_model.lot.sampling import (
    acceptance_chance,
    failing_at_most,
    passing_share,
    passing_share_at_least,
    plan_for,
)
from daq_bench.bench_model.lot.tolerance import bounds, free_confidence, free_rank, k_factor, wilks_n


@pytest.mark.parametrize(
    ("n", "published"), [(2, 26.260), (5, 4.203), (10, 2.911), (20, 2.396), (50, 2.065), (100, 1.927)]
)
def test_k_factors_for_95_and_95_percent_are_the_published_ones(n: int, published: float) -> None:
    assert k_factor(n) == pytest.approx(published, abs=0.0006)  # ISO 16269-6:2014, annex; Odeh & Owen (1980)


def test_the_k_factor_of_the_nist_handbook() -> None:
    assert k_factor(43, coverage=0.90, confidence=0.99) == pytest.approx(1.873954, abs=1e-5)  # 7.2.6.3
    with pytest.raises(ValueError, match="two values"):
        k_factor(1)


@pytest.mark.parametrize(
    ("coverage", "rank", "n"), [(0.95, 1, 59), (0.95, 2, 93), (0.95, 3, 124), (0.90, 1, 29), (0.99, 1, 299)]
)
def test_wilks_sample_sizes(coverage: float, rank: int, n: int) -> None:
    assert wilks_n(coverage, 0.95, rank) == n
    assert free_rank(n, coverage) == rank
    assert free_rank(n - 1, coverage) == rank - 1


def test_the_confidence_of_an_order_statistic_by_hand() -> None:
    assert free_confidence(10, 1, 0.9) == pytest.approx(1 - 0.9**10)


def test_bounds_of_a_sample() -> None:
    values = [9.0, 9.5, 10.0, 10.5, 11.0]
    found = bounds(values, lower=True)
    assert found.normal == pytest.approx(10 - 4.2027 * math.sqrt(0.625), abs=1e-3)
    assert (found.rank, found.free) == (0, None)
    assert found.covered == pytest.approx(0.05**0.2)
    assert found.reached == pytest.approx(1 - 0.95**5)
    assert bounds(values, lower=False).normal == pytest.approx(10 + 4.2027 * math.sqrt(0.625), abs=1e-3)
    many = bounds([float(value) for value in range(100)], lower=True)
    assert (many.rank, many.free) == (2, 1.0)
    assert bounds([1.0], lower=True).normal is None
    with pytest.raises(ValueError, match="no values"):
        bounds([], lower=True)


def test_a_normal_bound_holds_as_often_as_it_claims() -> None:
    generator = np.random.Generator(np.random.PCG64(20211))
    drawn = generator.standard_normal((4000, 8))
    low = drawn.mean(axis=1) - k_factor(8) * drawn.std(axis=1, ddof=1)
    holds = (low < -1.6448536).mean()  # the 5 % point: 95 % of the drives lie above
    assert abs(holds - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 4000)


def test_clopper_pearson_is_scipys() -> None:
    theirs = binomtest(18, 20).proportion_ci(0.95, method="exact")
    assert passing_share(18, 20) == pytest.approx((theirs.low, theirs.high))
    assert passing_share_at_least(59, 59) == pytest.approx(0.05 ** (1 / 59))
    assert passing_share_at_least(0, 5) == 0.0
    with pytest.raises(ValueError, match="impossible"):
        passing_share(3, 2)


def test_a_whole_lot_tested_leaves_nothing_open() -> None:
    assert failing_at_most(10, 10, 10) == 0
    assert failing_at_most(8, 10, 10) == 2
    with pytest.raises(ValueError, match="cannot have"):
        failing_at_most(5, 5, 4)


def test_the_failing_ones_of_a_lot_by_hand() -> None:
    # 5 of 10 tested, none failed: with 4 failing, C(6,5)/C(10,5) = 6/252 = 0.024; with 3, C(7,5)/C(10,5) = 21/252 = 0.083.
    assert failing_at_most(5, 5, 10) == 3
    assert acceptance_chance(10, 3, 5) == pytest.approx(21 / 252)


def test_acceptance_plans() -> None:
    plan = plan_for(50)
    assert plan is not None
    assert (plan.letter, plan.sample, plan.aql_percent) == ("D", 8, 1.5)
    assert plan_for(1) is None
    assert plan_for(20_000) is None
    whole = plan_for(2)
    assert whole is not None and whole.sample == 2


@pytest.mark.parametrize(
    ("smallest", "largest", "letter", "sample", "aql_percent"),
    [
        (2, 8, "A", 2, 6.5), (9, 15, "B", 3, 4.0), (16, 25, "C", 5, 2.5), (26, 50, "D", 8, 1.5), (51, 90, "E", 13, 1.0),
        (91, 150, "F", 20, 0.65), (151, 280, "G", 32, 0.4), (281, 500, "H", 50, 0.25), (501, 1200, "J", 80, 0.15),
        (1201, 3200, "K", 125, 0.1), (3201, 10_000, "L", 200, 0.065),
    ],
)  # fmt: skip
def test_the_plans_are_those_of_iso_2859_1(
    smallest: int, largest: int, letter: str, sample: int, aql_percent: float
) -> None:
    """Lot sizes and code letters: table 1, general level II. Samples and the AQL of acceptance number 0: table 2-A."""
    assert plan_for(smallest) == plan_for(largest) == AcceptancePlan(letter, sample, aql_percent)


DRIVES = {"a": [10.0, 10.2, 9.8], "b": [10.1, 9.9, 10.3], "c": [8.0, 8.2, 8.1], "d": [10.0, 10.1, 9.8]}


def test_the_analysis_of_variance_is_scipys() -> None:
    found = spread(DRIVES)
    assert found.p == pytest.approx(f_oneway(*DRIVES.values()).pvalue)
    means = [sum(own) / 3 for own in DRIVES.values()]
    among = 3 * sum((mean - sum(means) / 4) ** 2 for mean in means) / 3
    assert found.within is not None
    assert found.between == pytest.approx(math.sqrt((among - found.within**2) / 3))


def test_variance_components_come_back_from_simulated_drives() -> None:
    generator = np.random.Generator(np.random.PCG64(7))
    own = generator.normal(10, 0.5, 400)
    values = {str(n): (own[n] + generator.normal(0, 0.2, 2 + n % 3)).tolist() for n in range(400)}
    found = spread(values)
    assert found.between == pytest.approx(0.5, rel=0.08)
    assert found.within == pytest.approx(0.2, rel=0.08)


def test_drives_measured_once_have_no_share_of_their_own() -> None:
    found = spread({"a": [1.0], "b": [2.0]})
    assert (found.within, found.p, found.reliability) == (None, None, None)
    assert spread({"a": [1.0]}).between is None
    with pytest.raises(ValueError, match="every drive needs a value"):
        spread({"a": []})


def test_grubbs_at_the_published_critical_value() -> None:
    # NIST e-Handbook, 1.3.5.17: n = 8, G = 2.4687 stands out, one-sided critical value 2.032 at 5 %.
    data = [199.31, 199.53, 200.19, 200.82, 201.92, 201.95, 202.18, 245.57]
    p = grubbs_p(data, low=False)
    assert p is not None and p < 0.001
    at_limit = [-1.0, 1.0, -0.5, 0.5, 0.0, 0.3, -0.3, 0.0]  # scaled below so that its last value gives G = 2.032
    low, high = 0.0, 10.0
    for _ in range(60):
        at_limit[-1] = (low + high) / 2
        g = (at_limit[-1] - np.mean(at_limit)) / np.std(at_limit, ddof=1)
        low, high = (at_limit[-1], high) if g < 2.032 else (low, at_limit[-1])
    assert grubbs_p(at_limit, low=False) == pytest.approx(0.05, abs=0.001)
    assert grubbs_p([1.0, 1.0, 1.0], low=True) is None


def test_the_drive_that_limits_a_stripe() -> None:
    found = limiting(DRIVES, larger_is_better=True)
    assert found is not None
    assert (found.drive, found.next) == ("c", "d")
    assert found.behind_mean == pytest.approx(1 - 8.1 / ((10 + 10.1 + 8.1 + 29.9 / 3) / 4))
    assert found.next_p is not None and found.next_p < 1e-5
    slow = limiting({"a": [5.0], "b": [7.0], "c": [6.0]}, larger_is_better=False)
    assert slow is not None and slow.drive == "b" and slow.next_p is None
    assert limiting({"a": [1.0]}, larger_is_better=True) is None


def test_two_clusters_are_found_and_one_lot_is_not_split() -> None:
    generator = np.random.Generator(np.random.PCG64(3))
    one = {f"d{n}": float(value) for n, value in enumerate(generator.normal(10, 0.1, 16))}
    found = clusters(one)
    assert found is not None and not found.there
    two = {**one, **{f"e{n}": float(value) for n, value in enumerate(generator.normal(9, 0.1, 8))}}
    found = clusters(two)
    assert found is not None and found.there
    assert sorted(found.low) == sorted(f"e{n}" for n in range(8))
    assert clusters({"a": 1.0, "b": 2.0}) is None


def test_clusters_are_seen_in_one_normal_lot_no_more_often_than_claimed() -> None:
    generator = np.random.Generator(np.random.PCG64(11))
    said = 0
    for _ in range(200):
        found = clusters({str(n): float(v) for n, v in enumerate(generator.standard_normal(12))}, simulations=400)
        said += found is not None and found.there
    assert said <= 8  # of 200 at 1 %: more than 8 would happen once in ten thousand such tests
