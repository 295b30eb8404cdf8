"""The paired comparison against SciPy and hand-worked figures, and by simulation: drift, coverage, order effect, outliers."""

from __future__ import annotations

import math

import numpy
import pytest
from scipy import stats

from daq_bench.bench_model.statistics.paired import (
    ABOVE,
    BELOW,
    UNDECIDED,
    Pair,
    compare,
    outliers,
    sign_test,
    signed_ranks,
)

TRUE_RATIO = 0.8
ROUNDS = 8


def alternating(ratios: list[float]) -> list[Pair]:
    return [Pair(number, number % 2 == 1, ratio) for number, ratio in enumerate(ratios, start=1)]


def drifting_rounds(random: numpy.random.Generator, drift: float, alternate: bool) -> list[Pair]:
    """Two visits a round, each slower than the one before by the factor exp(-drift), with 2 % of noise."""
    pairs, visit = [], 0
    for number in range(1, ROUNDS + 1):
        reference_first = not alternate or number % 2 == 1
        rates = {}
        for name in ("reference", "set") if reference_first else ("set", "reference"):
            truth = 1.0 if name == "reference" else TRUE_RATIO
            rates[name] = truth * math.exp(-drift * visit + random.normal(0, 0.02))
            visit += 1
        pairs.append(Pair(number, reference_first, rates["set"] / rates["reference"]))
    return pairs


def test_the_interval_is_that_of_a_two_sample_t_with_the_orders_as_strata() -> None:
    """Worked by a linear model: log ratio = mean + order effect, solved by least squares."""
    ratios = [0.81, 0.77, 0.84, 0.79, 0.8, 0.75]
    found = compare(alternating(ratios))
    logs = numpy.log(ratios)
    design = numpy.array([[1, 0.5 if number % 2 == 0 else -0.5] for number in range(6)])
    beta, residual, _, _ = numpy.linalg.lstsq(design, logs, rcond=None)
    error = math.sqrt(residual[0] / 4 * numpy.linalg.inv(design.T @ design)[0, 0])
    half = stats.t.ppf(0.975, 4) * error
    assert found.ratio == pytest.approx(math.exp(beta[0]))
    assert found.interval == pytest.approx((math.exp(beta[0] - half), math.exp(beta[0] + half)))
    assert found.order_effect is not None
    assert found.order_effect.factor == pytest.approx(math.exp(beta[1]))
    assert found.order_effect.p == pytest.approx(stats.ttest_ind(logs[::2], logs[1::2]).pvalue)
    assert found.decision == BELOW


def test_the_exact_tests_are_those_of_the_textbook() -> None:
    logs = [0.1, 0.2, 0.3, 0.4, 0.5]
    assert sign_test(logs) == pytest.approx(2 / 32)
    assert signed_ranks(logs) == pytest.approx(2 / 32)
    assert signed_ranks([0.1, 0.1, 0.3]) is None
    assert sign_test([0.0, 0.0]) == 1.0
    assert compare(alternating([1.1, 1.2, 1.3, 1.15])).least_p == pytest.approx(0.125)


def test_too_few_rounds_decide_nothing() -> None:
    assert compare(alternating([0.5])).interval is None
    assert compare(alternating([0.5])).decision == UNDECIDED
    assert compare(alternating([0.7, 0.8])).decision == UNDECIDED  # t with one degree of freedom: 12.7 standard errors
    assert compare(alternating([1.01, 0.99, 1.02, 0.98])).decision == UNDECIDED
    assert compare(alternating([1.31, 1.29, 1.32, 1.28])).decision == ABOVE
    for bad in ([], [Pair(1, True, 0.0)], [Pair(1, True, math.nan)]):
        with pytest.raises(ValueError, match=r"no pairs|not above zero"):
            compare(bad)


def test_alternating_order_cancels_a_linear_drift_and_a_fixed_order_does_not() -> None:
    random = numpy.random.default_rng(20211)
    drift = 0.05  # each visit 5 % slower than the one before
    alternated = [compare(drifting_rounds(random, drift, alternate=True)) for _ in range(200)]
    fixed = [compare(drifting_rounds(random, drift, alternate=False)) for _ in range(200)]
    assert numpy.mean([math.log(one.ratio / TRUE_RATIO) for one in alternated]) == pytest.approx(0, abs=0.003)
    assert numpy.mean([math.log(one.ratio / TRUE_RATIO) for one in fixed]) == pytest.approx(-drift, abs=0.003)
    seen = [one.order_effect is not None and one.order_effect.is_there for one in alternated]
    assert numpy.mean(seen) > 0.95  # the drift is told, too
    assert all("one order only" in one.method for one in fixed)


@pytest.mark.parametrize("drift", [0.0, 0.01, 0.05])
def test_the_interval_covers_the_truth_as_often_as_it_claims(drift: float) -> None:
    random = numpy.random.default_rng(7)
    runs = 800
    held = 0
    for _ in range(runs):
        interval = compare(drifting_rounds(random, drift, alternate=True)).interval
        assert interval is not None
        held += interval[0] <= TRUE_RATIO <= interval[1]
    assert stats.binomtest(held, runs, 0.95).pvalue > 0.001, held / runs


def test_an_order_effect_is_found_where_it_is_and_claimed_no_more_often_than_said() -> None:
    random = numpy.random.default_rng(11)
    false = sum(
        effect.is_there
        for effect in (compare(drifting_rounds(random, 0.0, alternate=True)).order_effect for _ in range(800))
        if effect
    )
    assert stats.binomtest(false, 800, 0.05).pvalue > 0.001, false / 800


def test_a_masked_round_does_not_let_the_drift_in() -> None:
    """With one round of one order missing, the orders still weigh the same."""
    pairs = alternating([0.8 * math.exp(0.1 if number % 2 else -0.1) for number in range(1, 9)])
    assert compare(pairs[:-1]).ratio == pytest.approx(0.8)


def test_one_disturbed_round_is_named_and_stays_in() -> None:
    ratios = [0.8, 0.81, 0.79, 0.2, 0.8, 0.82]
    found = compare(alternating(ratios))
    assert found.outlier_rounds == (4,)
    assert found.n == 6
    assert found.ratio == pytest.approx(math.exp(numpy.mean(numpy.log(ratios))))
    assert outliers([0.0, 0.001, -0.001, 0.01]) == [False] * 4  # 1 % is no event
    assert outliers([0.0, 3.0]) == [False] * 2


def test_how_often_an_undisturbed_round_is_called_an_outlier() -> None:
    """At 2 % of noise in each visit: the floor of 10 % keeps it rare."""
    random = numpy.random.default_rng(3)
    named = sum(len(compare(drifting_rounds(random, 0.0, alternate=True)).outlier_rounds) for _ in range(400))
    assert named / (400 * ROUNDS) < 0.01
