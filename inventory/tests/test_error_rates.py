"""A fast, seeded version of `make study`: the verdict errs no more often than it claims, and can still decide."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from scipy.stats import binom

from bench_model.sequential import Looks

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "studies"))
from error_rates import PROCESSES, Process, Rates, of_series, of_values, sequential

BY_NAME = {process.name: process for process in PROCESSES}
CLAIMED = 0.025


def within_claim(found: Rates, runs: int) -> bool:
    """More errors than a verdict of the claimed level would make in one of a thousand such tests is a broken claim."""
    most = float(binom.ppf(0.999, runs, CLAIMED))
    return found.wrong_pass * runs / 100 <= most and found.wrong_fail * runs / 100 <= most


@pytest.mark.parametrize(
    ("process", "length"),
    [("independent", 80), ("AR(1), 0.5", 80), ("AR(1), 0.8", 200), ("drifting", 80), ("heavy-tailed (t3)", 80)],
)
def test_series_at_the_bound_are_decided_wrongly_no_more_often_than_claimed(process: str, length: int) -> None:
    runs = 300
    assert within_claim(of_series(BY_NAME[process], length, 1, runs), runs)


def test_the_test_itself_can_fail() -> None:
    # The value alone, without an interval, errs in every second run; 5 % per side would be noticed too.
    assert not within_claim(Rates(50.0, 50.0, 0.0), 300)
    assert not within_claim(Rates(6.0, 2.0, 92.0), 300)


def test_clear_cases_are_decided() -> None:
    def inside(generator: object, count: int) -> object:
        return BY_NAME["AR(1), 0.5"].make(generator, count) + 2  # type: ignore[arg-type]

    found = of_series(Process("inside", inside), 200, 1, 50)  # type: ignore[arg-type]
    assert found.wrong_pass >= 95.0  # met, and rightly so here


@pytest.mark.parametrize("repetitions", range(1, 11))
def test_repetitions_without_series(repetitions: int) -> None:
    runs = 2000
    for statistic in ("median", "min"):
        found = of_values(repetitions, BY_NAME["heavy-tailed (t3)"], statistic, runs)
        assert within_claim(found, runs)
        if repetitions < 6:
            assert found.undecided == 100.0


def test_looking_repeatedly_does_not_raise_the_error_and_would_have_done_so() -> None:
    runs = 400
    found = sequential(Looks(6, 20), None, runs)
    assert within_claim(found.rates, runs)
    assert not within_claim(found.naive, runs)


def test_stopping_when_certain_saves_repetitions() -> None:
    found = sequential(Looks(9, 30), None, 50, distance=2.0)
    assert found.rates.wrong_pass >= 95.0  # met, and rightly so here
    assert found.mean_repetitions < 15
