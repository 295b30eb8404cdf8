"""Contrasts against SciPy and hand-worked examples; families by Holm; what is said of equivalence and of more runs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy.stats import ttest_ind

from daq_bench.bench_model.statistics.paired import Pair, compare
from daq_bench.bench_model.tender.contrasts import (
    DIFFERENCE,
    EQUIVALENT,
    FIRST,
    MOVER,
    NONE,
    PAIRED,
    RATIO,
    SECOND,
    UNDECIDED,
    WELCH,
    Contrast,
    Sample,
    contrast,
    hedges_g,
    holm,
    judge_family,
    more_runs,
    paired_contrast,
    scale_of,
)

A, B = (10.1, 10.4, 9.8, 10.0), (9.0, 9.3, 9.9, 8.7, 9.1)


def test_welch_is_scipys() -> None:
    found = contrast(Sample(A), Sample(B), DIFFERENCE)
    theirs = ttest_ind(A, B, equal_var=False)
    assert found.method == WELCH
    assert found.p == pytest.approx(theirs.pvalue)
    assert found.interval(0.95) == pytest.approx(tuple(theirs.confidence_interval(0.95)))


def test_a_ratio_is_compared_on_logarithms() -> None:
    found = contrast(Sample(A), Sample(B), RATIO)
    theirs = ttest_ind([math.log(a) for a in A], [math.log(b) for b in B], equal_var=False)
    assert found.p == pytest.approx(theirs.pvalue)
    assert found.shown(found.estimate) == pytest.approx(math.prod(A) ** (1 / 4) / math.prod(B) ** (1 / 5))
    assert found.superiority == pytest.approx(19 / 20)  # of 20 pairs only 9.8 against 9.9 goes the other way


def test_hedges_g_by_hand() -> None:
    # means 2 and 1, both variances 1, 4 degrees of freedom: 1 - 3/15
    assert hedges_g((1.0, 2.0, 3.0), (0.0, 1.0, 2.0)) == pytest.approx(0.8)
    assert hedges_g((1.0, 1.0), (2.0, 2.0)) is None


def test_two_runs_own_intervals_add_as_squares() -> None:
    found = contrast(Sample((10.0,), (9.7, 10.3)), Sample((8.0,), (7.6, 8.4)), DIFFERENCE)
    assert found.method == MOVER
    assert found.interval(0.95) == pytest.approx((1.5, 2.5))
    lopsided = contrast(Sample((10.0,), (9.0, 10.1)), Sample((8.0,), (7.9, 9.0)), DIFFERENCE)
    low, high = lopsided.interval(0.95) or (0, 0)
    assert 2 - low == pytest.approx(math.hypot(1, 1))
    assert high - 2 == pytest.approx(math.hypot(0.1, 0.1))


def test_single_values_without_intervals_decide_nothing() -> None:
    found = contrast(Sample((10.0,)), Sample((8.0,)), RATIO)
    assert (found.method, found.p, found.interval(0.95)) == (NONE, None, None)
    (judged,) = judge_family([found], [0.02])
    assert (judged.verdict, judged.p_holm, judged.more) == (UNDECIDED, None, None)
    with pytest.raises(ValueError, match="a sample is empty"):
        contrast(Sample(()), Sample((1.0,)), RATIO)


def test_pairs_are_compared_as_elsewhere() -> None:
    pairs = [Pair(n, n % 2 == 1, 1.1 + 0.01 * (n % 3)) for n in range(1, 9)]
    found = paired_contrast(pairs)
    theirs = compare(pairs)
    assert found.method == PAIRED
    low, high = found.interval(0.95) or (0, 0)
    assert (math.exp(low), math.exp(high)) == pytest.approx(theirs.interval)
    assert paired_contrast(pairs[:1]).method == NONE


def test_what_has_zeros_or_no_true_zero_is_compared_by_differences() -> None:
    assert scale_of([Sample((1.0, 2.0))], "GB/s") == RATIO
    assert scale_of([Sample((1.0, 0.0))], "count") == DIFFERENCE
    assert {scale_of([Sample((1.0, 2.0))], unit) for unit in ("degC", "K")} == {DIFFERENCE}


def test_holm_by_hand() -> None:
    adjusted, levels = holm([0.01, 0.04, 0.03, 0.005], alpha=0.05)
    assert adjusted == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert levels == pytest.approx([0.05 / 3, 0.05 / 2, 0.05 / 2, 0.05 / 4])  # 0.03 > 0.025: testing stops there


def known(estimate: float, error: float, freedom: float = 1e6, scale: str = DIFFERENCE) -> Contrast:
    return Contrast(scale, WELCH, estimate, error, error, freedom, (5, 5))


@pytest.mark.parametrize(
    ("estimate", "error", "verdict"),
    [
        (3.0, 1.0, FIRST),
        (-3.0, 1.0, SECOND),
        (1.0, 1.0, UNDECIDED),
        (0.1, 0.1, EQUIVALENT),
        (0.4, 0.1, EQUIVALENT),
        (2.5, 1.0, UNDECIDED),
        (-2.5, 1.0, UNDECIDED),  # certainly not the same, and perhaps no more than what means nothing
    ],
)
def test_a_verdict_is_what_the_interval_shows(estimate: float, error: float, verdict: str) -> None:
    (judged,) = judge_family([known(estimate, error)], [0.75])
    assert judged.verdict == verdict


def test_in_a_family_each_interval_shows_what_was_decided() -> None:
    judged = judge_family([known(2.1, 1.0), known(5.0, 1.0), known(0.5, 1.0)], [0.0] * 3)
    assert [one.verdict for one in judged] == [UNDECIDED, FIRST, UNDECIDED]  # 2.1 alone would be enough
    for one in judged:
        low, high = one.interval or (0, 0)
        assert (low > 0) == (one.verdict == FIRST)
        assert one.p_holm is not None and (one.p_holm < 0.05) == (one.verdict == FIRST)
        assert high > 0


def test_what_the_indifference_contains_is_never_decided() -> None:
    # 1.03 (1.00 to 1.05), p = 0.033, n = 3, indifference 2 %
    found = Contrast(RATIO, WELCH, math.log(1.03), 0.0086, 0.0086, 3.3, (3, 3))
    assert found.p is not None and found.p < 0.04
    (judged,) = judge_family([found], [0.02])
    assert judged.verdict == UNDECIDED
    assert judged.p_holm is not None and judged.p_holm > 0.2
    assert judge_family([replace(found, below=0.001, above=0.001)], [0.02])[0].verdict == FIRST


def test_the_family_is_guarded_where_all_differ_by_the_margin_itself() -> None:
    judged = judge_family([known(2.0, 1.0)] + [known(9.0, 0.1)] * 3, [0.0] * 4)
    assert [one.level for one in judged] == pytest.approx([0.95, 1 - 0.05 / 4, 1 - 0.05 / 3, 1 - 0.05 / 2])
    at_margin = judge_family([known(0.75 + 0.21, 0.1)] * 4, [0.75] * 4)
    assert [one.verdict for one in at_margin] == [UNDECIDED] * 4  # one alone would be enough
    assert judge_family([known(0.75 + 0.21, 0.1)], [0.75])[0].verdict == FIRST


def test_one_run_of_each_decides_nothing_however_narrow_its_interval() -> None:
    single = contrast(Sample((10.0,), (9.99, 10.01)), Sample((8.0,), (7.99, 8.01)), RATIO)
    repeated = replace(contrast(Sample(A), Sample((1.0, 1.1, 1.2)), RATIO), one_run=True)
    for one in judge_family([single, repeated], [0.02, 0.02]):
        assert one.interval is not None
        assert (one.verdict, one.more) == (UNDECIDED, None)
    alike = contrast(Sample((10.0,), (9.99, 10.01)), Sample((10.0,), (9.99, 10.01)), RATIO)
    assert judge_family([alike], [0.02])[0].verdict == UNDECIDED


@pytest.mark.parametrize(("values", "verdict"), [(2, UNDECIDED), (3, UNDECIDED), (4, FIRST)])
def test_values_without_scatter_decide_when_an_exact_test_could(values: int, verdict: str) -> None:
    """Steps of a counter: 2 against 2 come out apart by chance once in three, 4 against 4 once in 35."""
    other = contrast(Sample((1.0,) * values), Sample((0.0,) * values), DIFFERENCE)
    assert judge_family([other], [0.0])[0].verdict == verdict
    same = contrast(Sample((0.0,) * values), Sample((0.0,) * values), DIFFERENCE)
    assert judge_family([same], [0.0])[0].verdict == EQUIVALENT


def test_more_runs_are_as_many_as_textbooks_ask_for() -> None:
    # Two groups, effect of one standard deviation, 80 %, two-sided 5 %: 17 in each group (Cohen 1988, table 2.4.1).
    error = math.sqrt(1 / 4 + 1 / 4)
    (judged,) = judge_family([Contrast(DIFFERENCE, WELCH, 1.0, error, error, 6, (4, 4))], [0.0])
    assert judged.verdict == UNDECIDED
    assert judged.more is not None and abs(4 + judged.more - 17) <= 1
    assert (
        more_runs(judge_family([known(0.0, 1.0)], [0.0])[0]) is None
    )  # nothing to tell apart, no room for equivalence
    assert more_runs(judge_family([known(0.0, 1.0)], [1.0])[0]) is not None
