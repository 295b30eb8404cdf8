"""The steady-state rule of SNIA SSS PTS 2.0.2 against windows that are worked by hand, and against SciPy's regression."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import linregress

from daq_bench.bench_model.workloads.steady_state import rounds as steady_state
from daq_bench.bench_model.workloads.steady_state.rounds import (
    range_of_rounds,
    steady_window,
    why_not,
    window_of,
    windows,
)


def test_a_window_worked_by_hand() -> None:
    """Rounds 3 to 7: 980, 1010, 1000, 1040, 970. Mean 1000; range 70 = 7 %.

    Slope: x - mean = -2 -1 0 1 2; sum((x - mean) y) = -1960 - 1010 + 0 + 1040 + 1940 = 10; sum((x - mean)^2) = 10; slope 1.
    The line goes from 998 to 1002: an excursion of 4 = 0.4 %. At round 0 it is 1000 - 5 * 1 = 995."""
    window = window_of([980, 1010, 1000, 1040, 970], 3)
    assert (window.first_round, window.last_round, window.mean) == (3, 7, 1000)
    assert window.range_share == pytest.approx(0.07)
    assert (window.slope_per_round, window.intercept) == (pytest.approx(1.0), pytest.approx(995.0))
    assert window.fit_share == pytest.approx(0.004)
    assert window.steady


@pytest.mark.parametrize(
    ("values", "range_share", "fit_share", "steady"),
    [
        # 20 % of the mean exactly, by one high round and the low one after it: sum((x - mean) y) = -100, so that the line falls by 40
        ([1000, 1100, 900, 1000, 1000], 0.20, 0.04, True),
        ([1000, 1101, 899, 1000, 1000], 0.202, 0.0404, False),
        # a trend: 10 % from first to last is both its range and its line's excursion
        ([950, 975, 1000, 1025, 1050], 0.10, 0.10, True),
        ([945, 972.5, 1000, 1027.5, 1055], 0.11, 0.11, False),
        # within 20 %, and yet it climbs: the second limit is what refuses it
        ([920, 960, 1000, 1040, 1080], 0.16, 0.16, False),
    ],
)
def test_both_limits_belong_to_the_window(
    values: list[float], range_share: float, fit_share: float, steady: bool
) -> None:
    window = window_of(values, 1)
    assert (window.range_share, window.fit_share) == (pytest.approx(range_share), pytest.approx(fit_share))
    assert window.steady is steady


def test_the_first_steady_window_of_a_fresh_drive_is_found() -> None:
    """IOPS as published for fresh NAND drives: a plateau in the spare area's shadow, a cliff, then the steady state."""
    rounds: list[float | None] = [98000, 74000, 41000, 30500, 27800, 26900, 26400, 26100, 26300, 26000]
    assert (
        steady_window(rounds[:8]) is None
    )  # rounds 4 to 8: 30500 to 26100 is 16 % of 27540, but the line falls by 15 %
    found = steady_window(rounds)
    assert found is not None
    assert (found.first_round, found.last_round) == (5, 9)
    assert found.mean == pytest.approx((27800 + 26900 + 26400 + 26100 + 26300) / 5)


def test_a_round_without_a_value_breaks_the_window() -> None:
    assert steady_window([1000, 1000, None, 1000, 1000, 1000]) is None
    assert len(windows([1000, 1000, None, 1000, 1000, 1000, 1000, 1000])) == 1
    assert "no 5 successive rounds have a value (6 rounds)" in why_not([1000, 1000, None, 1000, 1000, 1000])


def test_a_window_is_stated_by_its_range() -> None:
    assert range_of_rounds([980, 1010, 1000, 1040, 970]) == (970, 1040)


def test_what_is_not_steady_says_by_how_much() -> None:
    values = [float(1000 + 100 * number) for number in range(25)]
    text = why_not(values)
    assert text.startswith(
        "steady state was not reached in 25 rounds: in the last window (rounds 21 to 25) max - min is 12.5 %".replace(
            " %", "%"
        )
    )
    assert "the best line's excursion 12.5% (at most 10%)" in text


def test_a_rate_of_zero_is_not_judged() -> None:
    with pytest.raises(ValueError, match="mean 0 cannot be judged"):
        window_of([0.0] * 5, 1)


@given(st.lists(st.floats(min_value=1, max_value=1e9), min_size=5, max_size=5), st.integers(min_value=1, max_value=21))
def test_the_line_is_scipys(values: list[float], first: int) -> None:
    window = window_of(values, first)
    rounds = np.arange(first, first + 5)
    fitted = linregress(rounds, values)
    ends = fitted.slope * rounds[[0, -1]] + fitted.intercept
    assert window.slope_per_round == pytest.approx(fitted.slope, rel=1e-6, abs=1e-6 * max(values))
    assert window.fit_share == pytest.approx(abs(ends[1] - ends[0]) / np.mean(values), rel=1e-6, abs=1e-6)
    assert steady_state.ROUNDS_MAX == 25
