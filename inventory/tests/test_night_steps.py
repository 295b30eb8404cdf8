"""Steps, drift and warmth over few nights: found where they are, rarely found where they are not."""

from __future__ import annotations

import numpy as np
import pytest

from daq_bench.bench_model.nights import steps as night_steps
from daq_bench.bench_model.nights.drift import drift
from daq_bench.bench_model.nights.steps import FEWEST, autoregressive, memory_of, standard_errors, steps
from daq_bench.bench_model.nights.warmth import warmth


def nights(seed: int, count: int, phi: float = 0.0) -> np.ndarray:
    return autoregressive(np.random.default_rng(seed), 1, count, phi)[0]


def test_a_clear_step_is_found_at_its_place() -> None:
    series = nights(1, 20) * 0.1 + np.where(np.arange(20) >= 12, 9.0, 10.0)
    found = steps(series, np.zeros(20))
    assert [step.index for step in found] == [12]
    assert found[0].before == pytest.approx(10, abs=0.1)
    assert found[0].after == pytest.approx(9, abs=0.1)
    assert found[0].p <= night_steps.LEVEL


def test_two_steps_are_two() -> None:
    level = np.repeat([10.0, 8.0, 9.0], 12)
    assert [step.index for step in steps(level + 0.1 * nights(2, 36), np.zeros(36))] == [12, 24]


def test_few_runs_have_no_step() -> None:
    assert steps([1.0] * 3 + [9.0] * (FEWEST - 4), np.zeros(FEWEST - 1)) == []


def test_an_even_series_has_no_step() -> None:
    assert steps([5.0] * 30, np.zeros(30)) == []


def test_a_step_of_counts_without_any_noise_is_one() -> None:
    assert [step.index for step in steps([0.0] * 8 + [3.0] * 8, np.zeros(16))] == [8]


def test_runs_of_a_wide_interval_do_not_make_a_step() -> None:
    """Three uncertain runs that lie low together: a step for one who takes them at par, none for their intervals."""
    series = 0.05 * nights(3, 20) + 10
    series[17:] -= 0.45
    errors = np.full(20, 0.05)
    assert steps(series, errors)
    errors[17:] = 0.6
    assert steps(series, errors) == []


def test_the_rate_of_false_alarms_is_as_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/trend.md: a few per cent for independent nights, more for such that resemble each other."""
    monkeypatch.setattr(night_steps, "RESAMPLES", 299)
    for phi, most in ((0.0, 0.07), (0.6, 0.2)):
        alarms = sum(bool(steps(nights(seed, 20, phi), np.zeros(20), seed)) for seed in range(100))
        assert alarms / 100 <= most, phi


def test_memory_is_that_of_the_nights_and_not_of_their_measurement() -> None:
    series = nights(4, 400, 0.7)
    noise = 0.8 * np.random.default_rng(5).standard_normal(400)
    assert memory_of(series + noise, np.full(400, 0.8), [0, 400]) == pytest.approx(0.7, abs=0.15)


def test_standard_errors_come_from_the_intervals() -> None:
    found = standard_errors([(9.0, 11.0), None, (9.8, 10.2)])
    assert found == pytest.approx([1.0 / 1.959964, 0.6 / 1.959964, 0.2 / 1.959964])


def test_a_drift_is_projected_to_its_bound() -> None:
    days = np.arange(20.0)
    found = drift(days, 10 - 0.05 * days + 0.02 * nights(6, 20), np.zeros(20), "at_least", 8.0)
    assert found is not None
    assert found.trend
    assert found.days_to_bound == pytest.approx(21, abs=2)
    assert found.earliest is not None
    assert found.latest is not None
    assert found.earliest < found.days_to_bound < found.latest


def test_a_drift_away_from_the_bound_never_meets_it() -> None:
    days = np.arange(20.0)
    found = drift(days, 10 + 0.05 * days + 0.02 * nights(6, 20), np.zeros(20), "at_least", 8.0)
    assert found is not None
    assert found.trend
    assert (found.days_to_bound, found.earliest, found.latest) == (None, None, None)


def test_nothing_is_projected_beyond_ten_times_what_was_seen() -> None:
    days = np.arange(10.0)
    found = drift(days, 10 - 0.001 * days + 1e-5 * nights(7, 10), np.zeros(10), "at_least", 0.0)
    assert found is not None
    assert found.trend
    assert found.days_to_bound is None


def test_noise_is_no_trend() -> None:
    trends = [drift(np.arange(20.0), nights(seed, 20), np.zeros(20), "at_least", -9.0) for seed in range(100)]
    assert sum(1 for one in trends if one and one.trend) <= 12


def test_runs_at_one_moment_have_no_drift() -> None:
    assert drift([1.0] * 10, [2.0] * 10, np.zeros(10), "at_least", 1.0) is None


def test_a_dependence_on_temperature_survives_a_step() -> None:
    degrees = 24 + 3 * np.sin(np.arange(24) / 2)
    series = 10 - 0.1 * (degrees - 24) - 2.0 * (np.arange(24) >= 12) + 0.03 * nights(8, 24)
    found = warmth("inlet air", series, degrees)
    assert found is not None
    assert found.depends
    assert found.slope == pytest.approx(-0.1, abs=0.03)
    adjusted = found.adjusted(list(series), list(degrees))
    assert [step.index for step in steps(adjusted, np.zeros(24))] == [12]


def test_no_dependence_without_a_change_of_temperature() -> None:
    assert warmth("inlet air", nights(9, 24), [24.0] * 24) is None
    assert warmth("inlet air", nights(9, 6), np.arange(6.0)) is None


def test_independent_series_are_rarely_called_dependent() -> None:
    degrees = 24 + 3 * np.sin(np.arange(24) / 2)
    found = [warmth("inlet air", nights(seed, 24), degrees) for seed in range(100)]
    assert sum(1 for one in found if one and one.depends) <= 6
