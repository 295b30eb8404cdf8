"""Change-points and dips: exact against a search through all partitions, and on series whose truth is known."""

from __future__ import annotations

import sys
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daq_bench.bench_model.behaviour.dips import Analysis, analyse
from daq_bench.bench_model.statistics.change_points import Noise, noise_of, segments

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "studies"))
from series_factory import BACKGROUNDS, LEVEL, LOSSES, heavy_tails, memory, white, with_dip


def cheapest(values: list[float], price: float) -> float:
    """Least cost over every way to cut the series."""
    inner = range(1, len(values))
    costs = []
    for number in range(len(values)):
        for cut in combinations(inner, number):
            bounds = [0, *cut, len(values)]
            squares = sum(float(np.var(values[a:b]) * (b - a)) for a, b in pairwise(bounds))
            costs.append(squares + price * (number + 1))
    return min(costs)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(-20, 20), min_size=1, max_size=9), st.floats(0.5, 60.0))
def test_the_cut_is_the_cheapest_of_all(values: list[int], price: float) -> None:
    series = [float(value) for value in values]
    noise = Noise(1.0, 0.0)
    penalty = price / np.log(max(len(series), 3))
    found = segments(series, noise, penalty)
    cost = sum(float(np.var(series[one.start : one.end]) * one.length) for one in found) + price * len(found)
    assert cost == pytest.approx(cheapest(series, price), abs=1e-6)


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8])
def test_sigma_and_memory_of_noise_are_found_beside_a_change_of_level(phi: float) -> None:
    rng = np.random.default_rng(5)
    series = LEVEL * (1 + memory(rng, 3600, phi, 0.05))
    series[2000:] -= 0.5 * LEVEL
    noise = noise_of(series, 0.0)
    assert noise.sigma == pytest.approx(0.05 * LEVEL, rel=0.25)
    assert noise.memory == pytest.approx(phi, abs=0.15)


@pytest.mark.parametrize("length", [10, 30, 45])
def test_a_dip_that_fills_much_of_a_short_load_is_found(length: int) -> None:
    """90 s of load: its noise has to be told from the dip itself."""
    hits = 0
    for seed in range(20):
        series = with_dip(white(np.random.default_rng(seed), 90), 30, length, 0.6)
        dips = analyse(series.tolist(), 1.0).dips
        hits += any(abs(dip.start_s - 30) <= 1 and abs(dip.duration_s - length) <= 2 for dip in dips)
    assert hits == 20


def test_a_dip_has_its_times_depth_and_lost_bytes() -> None:
    series = with_dip(white(np.random.default_rng(1), 600), 300, 20, 0.4)
    (dip,) = analyse(series.tolist(), 1.0).dips
    assert dip.start_s == pytest.approx(300, abs=1)
    assert dip.end_s == pytest.approx(320, abs=1)
    assert dip.depth_fraction == pytest.approx(0.4, abs=0.03)
    assert dip.lost_bytes == pytest.approx(0.4 * LEVEL * 20, rel=0.1)
    assert dip.ended


def test_a_stall_of_one_second_is_a_dip() -> None:
    (dip,) = analyse(with_dip(white(np.random.default_rng(2), 600), 100, 1, 1.0).tolist(), 1.0).dips
    assert (dip.start_s, dip.end_s, dip.level_bytes_per_s) == (100, 101, 0.0)


def test_a_rate_that_never_comes_back_is_a_dip_that_has_not_ended() -> None:
    found = analyse(with_dip(white(np.random.default_rng(3), 600), 400, 200, 0.6).tolist(), 1.0)
    (dip,) = found.dips
    assert not dip.ended
    assert dip.start_s == pytest.approx(400, abs=1)
    (change,) = found.level_changes
    assert change.before_bytes_per_s > 2 * change.after_bytes_per_s


def test_the_load_that_catches_up_after_a_dip_makes_no_second_dip() -> None:
    series = with_dip(white(np.random.default_rng(4), 600), 200, 20, 0.5)
    series[220:260] *= 1.25  # exactly what was owed
    (dip,) = analyse(series.tolist(), 1.0).dips
    assert dip.end_s == pytest.approx(220, abs=1)


def test_a_fast_start_that_ends_for_good_is_a_dip() -> None:
    """A cache that is full: the reference is what the drive first promised."""
    (dip,) = analyse(with_dip(white(np.random.default_rng(6), 600), 60, 540, 0.6).tolist(), 1.0).dips
    assert (dip.start_s, dip.ended) == (pytest.approx(60, abs=1), False)


@pytest.mark.parametrize("name", ["flush of 1 s every 10 s, 40 %", "flush of 4 s every 40 s, 50 %"])
def test_a_regular_flush_is_a_pattern_with_its_period(name: str) -> None:
    found = analyse(BACKGROUNDS[name](np.random.default_rng(7), 1200).tolist(), 1.0)
    assert found.dips == ()
    (pattern,) = found.patterns
    assert pattern.period_s == pytest.approx(10 if "10 s" in name else 40, rel=0.02)


def test_a_single_stall_among_flushes_still_stands_out() -> None:
    series = with_dip(BACKGROUNDS["flush of 1 s every 10 s, 40 %"](np.random.default_rng(8), 1200), 601, 8, 1.0)
    found = analyse(series.tolist(), 1.0)
    assert [round(dip.start_s) for dip in found.dips] == [601]
    assert len(found.patterns) == 1


def test_a_series_that_says_nothing_is_refused_with_a_reason() -> None:
    assert analyse([1.0] * 19, 1.0).reason == "19 samples are fewer than the 20 that tell noise from a dip"
    assert analyse([0.0] * 60, 1.0).reason == "nothing was written"
    assert analyse([5e9] * 60, 1.0).dips == ()


def test_a_long_series_is_averaged_and_keeps_its_clock() -> None:
    series = with_dip(white(np.random.default_rng(9), 20_000), 10_000, 600, 0.5)
    found = analyse(series.tolist(), 1.0)
    assert found.step_s == 3.0
    assert found.dips[0].start_s == pytest.approx(10_000, abs=6)


@pytest.mark.parametrize("name", [name for name in BACKGROUNDS if not name.startswith("Student")])
def test_an_hour_without_a_dip_raises_no_alarm(name: str) -> None:
    """The fast part of docs/detection.md: 12 seeded hours per background, in which the study finds none."""
    alarms = sum(
        len(analyse(BACKGROUNDS[name](np.random.default_rng(seed), 3600).tolist(), 1.0).dips) for seed in range(12)
    )
    assert alarms == 0


@pytest.mark.parametrize(
    ("name", "depth", "length", "least"),
    [("white noise, 5 %", 0.5, 3, 1.0), ("white noise, 5 %", 0.2, 10, 0.9), ("AR(1), 0.8, 5 %", 0.5, 30, 1.0)],
)
def test_dips_are_found_as_often_as_the_table_says(name: str, depth: float, length: int, least: float) -> None:
    hits = 0
    for seed in range(20):
        series = with_dip(BACKGROUNDS[name](np.random.default_rng(seed), 900), 450, length, depth)
        dips = analyse(series.tolist(), 1.0).dips
        hits += any(abs(dip.start_s - 450) <= 3 for dip in dips)
    assert hits / 20 >= least


LOSS_KINDS = {
    "20 s at 50 % every 60 s": {"recurring", "dip"},
    "steps of 8 % down to 20 %": {"creep"},
    "ramp down to 35 %": {"creep"},
    "even, then down to 35 % in 10 min": {"creep", "dip"},
    "at 50 % for the first 10 min": {"from the start"},
    "sawtooth from 100 to 40 % every 40 s": {"cumulated"},
}


def kinds(found: Analysis) -> set[str]:
    return {dip.kind for dip in found.dips}


@pytest.mark.parametrize("name", LOSS_KINDS)
def test_a_loss_that_recurs_creeps_or_begins_with_the_load_is_found(name: str) -> None:
    for seed in range(5):
        series = LOSSES[name](np.random.default_rng(seed))
        found = analyse(series.tolist(), 1.0)
        assert kinds(found) <= LOSS_KINDS[name]
        assert found.dips
        assert sum(dip.lost_bytes for dip in found.dips) == pytest.approx((LEVEL - series).sum(), rel=0.35)


def test_a_load_that_was_slow_throughout_is_found_against_what_it_reached_at_another_time() -> None:
    series = (white(np.random.default_rng(1), 600) * 0.5).tolist()
    assert analyse(series, 1.0).dips == ()
    (dip,) = analyse(series, 1.0, LEVEL).dips
    assert (dip.kind, dip.start_s, dip.end_s, dip.ended) == ("from the start", 0, 600, False)
    assert analyse(series, 1.0, 0.55 * LEVEL).dips == ()


def test_catching_up_is_no_level_that_the_rest_falls_short_of() -> None:
    """A minute's stall of a paced load, and a minute at twice its rate."""
    series = with_dip(white(np.random.default_rng(1), 900), 300, 60, 1.0)
    series[360:420] *= 2
    assert kinds(analyse(series.tolist(), 1.0)) == {"dip"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_rate_that_is_no_number_is_not_analysed(value: float) -> None:
    found = analyse([5e9] * 30 + [value] + [5e9] * 30, 1.0)
    assert (found.dips, found.reason) == ((), "a sample of the rate is no number")


def test_heavy_tails_raise_few_alarms_and_hide_no_stall() -> None:
    hours = [heavy_tails(np.random.default_rng(seed), 3600) for seed in range(6)]
    assert sum(len(analyse(hour.tolist(), 1.0).dips) for hour in hours) <= 12
    stalled = [analyse(with_dip(hour, 1800, 1, 1.0).tolist(), 1.0).dips for hour in hours]
    assert all(any(dip.start_s == 1800 for dip in dips) for dips in stalled)
