"""The interval of a mean against the `arch` package, SciPy and hand-worked cases; what it cannot know, it says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.fft import dct
from scipy.stats import skew
from scipy.stats import t as student_t

from daq_bench.bench_model.statistics import bootstrap
from daq_bench.bench_model.statistics.bootstrap import block_length, cosine_half_width, mean_interval


def reference_series(correlation: float, count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """An autoregression driven by a linear congruential generator, the same on every machine and in every library."""
    state, value, made = 12345, 0.0, []
    for _ in range(count):
        state = (1103515245 * state + 12345) % 2**31
        value = correlation * value + state / 2**31 - 0.5
        made.append(value)
    return np.array(made)


@pytest.mark.parametrize(
    ("correlation", "count", "by_arch"),
    [(0.5, 400, 10.123017903812407), (0.8, 300, 16.215389778773496), (0.9, 1000, 28.989976368310927)],
)
def test_the_automatic_block_length_is_that_of_the_arch_package(correlation: float, count: int, by_arch: float) -> None:
    # arch 8.0.0, optimal_block_length(...)["circular"]
    assert block_length(reference_series(correlation, count)) == pytest.approx(by_arch, rel=1e-10)


def test_the_bootstrap_gives_the_percentiles_of_the_arch_package() -> None:
    series = reference_series(0.5, 400)
    deviations = series - series.mean()
    # arch 8.0.0, CircularBlockBootstrap(11).conf_int(mean, 20000, "percentile"), less the mean
    low, high = bootstrap._percentiles(deviations, 11, 0.95, seed=1)
    assert (low, high) == pytest.approx((-0.05600, 0.05550), rel=0.04)


def test_the_cosine_interval_is_that_of_scipys_transform() -> None:
    series = reference_series(0.5, 400)
    powers = dct(series - series.mean(), norm="ortho")[1:] ** 2
    halves = [student_t.ppf(0.975, number) * math.sqrt(powers[:number].mean() / 400) for number in (6, 9, 13, 20)]
    assert cosine_half_width(series - series.mean(), 0.95) == pytest.approx(max(halves), rel=1e-12)


def test_the_interval_holds_both_and_is_the_same_again_and_no_other_with_another_seed() -> None:
    series = list(10 + reference_series(0.5, 400))
    found = mean_interval(series, 0.95, seed=7)
    assert found.interval is not None
    half = cosine_half_width(np.array(series) - np.mean(series), 0.95)
    assert found.interval[1] - float(np.mean(series)) >= half * (1 - 1e-8)
    assert mean_interval(series, 0.95, seed=7) == found
    assert found.samples == 400 and found.block == pytest.approx(10.123, rel=1e-3)


def test_a_higher_level_gives_a_wider_interval_and_a_scaled_series_a_scaled_one() -> None:
    series = 10 + reference_series(0.5, 400)
    usual, wide = (mean_interval(series.tolist(), level, 1).interval for level in (0.95, 0.99))
    scaled = mean_interval((series * 1e9).tolist(), 0.95, 1).interval
    assert usual and wide and scaled
    assert wide[0] < usual[0] < usual[1] < wide[1]
    assert scaled == pytest.approx([end * 1e9 for end in usual], rel=1e-9)


def test_a_constant_series_has_an_interval_of_no_width() -> None:
    assert mean_interval([2.5] * 60, 0.95, 1).interval == (2.5, 2.5)


@pytest.mark.parametrize(
    ("series", "reason"),
    [
        ([1.0, 2.0] * 24, "48 samples are too few: 50 are the least"),
        (list(range(100)), "100 samples are too few for their autocorrelation (neighbours correlate by 1.00)"),
        (list(reference_series(0.9, 100)), "100 samples are too few for their autocorrelation"),
        ([1.0 + 0.01 * (number % 7) for number in range(59)] + [-20.0], "60 samples are too few for rare large deviations"),
    ],
    ids=["short", "drifting", "autocorrelated", "one stall"],
)  # fmt: skip
def test_a_series_that_is_too_short_gets_no_interval_and_is_told_why(series: list[float], reason: str) -> None:
    found = mean_interval(series, 0.95, 1)
    assert found.interval is None
    assert found.reason.startswith(reason)
    assert found.samples_needed is not None and found.samples_needed > len(series)


@pytest.mark.parametrize(
    ("series", "correlated"),
    [([1.0, 2.0] * 24, False), (list(reference_series(0.9, 100)), True), ([1.0 + 0.01 * (n % 7) for n in range(59)] + [-20.0], False)],
    ids=["short", "autocorrelated", "one stall"],
)  # fmt: skip
def test_only_a_refusal_for_autocorrelation_says_so(series: list[float], correlated: bool) -> None:
    assert mean_interval(series, 0.95, 1).correlated is correlated


@pytest.mark.parametrize(("peak", "refused"), [(14.5, False), (15.5, True)])
def test_a_rare_deviation_counts_by_skewness_over_the_root_of_n(peak: float, refused: bool) -> None:
    """The bound is 0.35, set by simulation (docs/statistics.md); scipy.stats.skew is the measure from outside."""
    series = np.random.default_rng(3).standard_normal(200)
    series[100] += peak
    share = abs(float(skew(series))) / math.sqrt(len(series))
    assert 0.32 < share < 0.37 and (share > 0.35) is refused
    found = mean_interval(series.tolist(), 0.95, 1)
    assert (found.interval is None) is refused
    assert ("rare large deviations" in found.reason) is refused and not found.correlated
    if refused:
        assert found.samples_needed == math.ceil(len(series) * (share / 0.35) ** 2)


@pytest.mark.parametrize(("seed", "samples_needed"), [(24, 149), (16, None)])
def test_a_series_needs_fifteen_independent_samples(seed: int, samples_needed: int | None) -> None:
    """With 120 samples of AR(1) with 0.5, blocks and frequencies would do in both, the mean's variance in one."""
    noise = np.random.default_rng(seed).standard_normal(320)
    series = np.zeros(320)
    for at in range(1, 320):
        series[at] = 0.5 * series[at - 1] + noise[at]
    found = mean_interval(series[200:].tolist(), 0.95, 1)
    assert found.samples_needed == samples_needed
    assert found.correlated is (samples_needed is not None) is (found.interval is None)


def test_a_long_series_is_averaged_in_groups_first() -> None:
    series = 10 + reference_series(0.5, 20_000)
    found = mean_interval(series.tolist(), 0.95, 1)
    assert found.interval is not None and found.samples == 20_000
    # The standard error of the mean of an AR(1): sd of the noise / (1 - 0.5) / sqrt(n).
    error = math.sqrt(1 / 12) / 0.5 / math.sqrt(20_000)
    assert 1.5 * error < (found.interval[1] - found.interval[0]) / 2 < 4 * error


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        mean_interval([1.0, math.nan] * 50, 0.95, 1)
