"""A fast, seeded version of `make study`: the verdict errs no more often than it claims, and can still decide."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from daq_bench.bench_model.evidence.measured import Measured
from daq_bench.bench_model.verdict.decision import MET, UNDECIDED
from daq_bench.bench_model.verdict.sequential import Looks

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "studies"))
from error_rates import (
    BOUND,
    OF_SERIES,
    PROCESSES,
    SCATTERS,
    STATISTICS,
    Rates,
    Trial,
    cell,
    decision_of,
    of_values,
    of_window,
    rates,
    sequential,
)

BY_NAME = {process.name: process for process in PROCESSES}
CLAIMED = 0.025


def within_claim(found: Rates) -> bool:
    """More errors than a verdict of the claimed level would make in one of a thousand such tests is a broken claim."""
    most = float(binom.ppf(0.999, found.runs, CLAIMED))
    return max(found.wrong_pass, found.wrong_fail) * found.runs / 100 <= most


@pytest.mark.parametrize("process", PROCESSES, ids=[one.name for one in PROCESSES])
def test_six_repetitions_at_the_bound_are_decided_wrongly_no_more_often_than_claimed(process: object) -> None:
    found = cell(process, 100, 250, 5)  # type: ignore[arg-type]
    for scatter in SCATTERS:
        assert within_claim(rates(found.at_bound[scatter])), scatter


def test_the_test_itself_can_fail() -> None:
    # The value alone, without an interval, errs in every second run; 5 % per side would be noticed too.
    assert not within_claim(Rates(50.0, 50.0, 0.0, 300))
    assert not within_claim(Rates(6.0, 2.0, 92.0, 300))
    assert within_claim(Rates(2.5, 2.5, 95.0, 300))


def test_the_upper_end_is_clopper_and_pearsons() -> None:
    # 0 of 100: 1 - 0.025^(1/100) = 3.62 %
    assert Rates(0.0, 0.0, 100.0, 100).upper == pytest.approx(3.62, abs=0.01)
    assert Rates(100.0, 0.0, 0.0, 100).upper == 100.0


def test_clear_cases_are_decided() -> None:
    found = cell(BY_NAME["AR(1), 0.5"], 300, 20, 20)
    assert found.met_above[0.0, 5.0] == 100.0 and found.met_above[3.0, 5.0] >= 50.0
    assert found.with_interval == 100.0
    # Too correlated for its length: the range of all samples may still meet the bound, and no interval does.
    assert cell(BY_NAME["AR(1), 0.97"], 100, 20, 20).with_interval == 0.0


def test_what_the_study_leaves_out_the_verdict_would_not_decide() -> None:
    generator = np.random.Generator(np.random.PCG64(5))
    series = BOUND + 10 * BY_NAME["white"].make(generator, 60, 80).reshape(10, 6, 80)
    for own in series:
        for shift in (0.0, 3 * generator.standard_normal(6), 4.0):
            shifted = own + np.reshape(np.zeros(6) + shift, (6, 1))
            measured = Measured(tuple(shifted.mean(axis=1).tolist()), series=tuple(map(tuple, shifted.tolist())))
            assert Trial(own).decision(shift) == decision_of(measured, OF_SERIES)


@pytest.mark.parametrize("repetitions", [1, 2, 5, 6, 7, 8, 10])
def test_repetitions_without_series(repetitions: int) -> None:
    for statistic in STATISTICS:
        found = of_values(repetitions, BY_NAME["t3"], statistic, 1000)
        assert within_claim(found)
        if repetitions < 6:
            assert found.undecided == 100.0


def test_a_window_of_one_run_is_met_wrongly_more_often_and_claims_no_level() -> None:
    # Five independent rounds lie above their mean in one of 32 runs; the scatter between runs is not in them at all.
    assert of_window(0.0, 2.0, 0.0, 1000).wrong_pass == pytest.approx(100 / 32, abs=2.0)
    assert of_window(0.0, 2.0, 3.0, 300).wrong_pass > 10.0


def test_looking_repeatedly_does_not_raise_the_error_and_would_have_done_so() -> None:
    found = sequential(Looks(6, 20), None, 300)
    assert within_claim(found.rates)
    assert found.naive.wrong_pass + found.naive.wrong_fail > 2 * 100 * CLAIMED


def test_stopping_when_certain_saves_repetitions() -> None:
    found = sequential(Looks(9, 30), None, 30, distance=2.0)
    assert found.rates.wrong_pass >= 95.0  # met, and rightly so here
    assert found.mean_repetitions < 15


def test_the_study_is_the_same_again() -> None:
    first, again = (cell(BY_NAME["white"], 100, 50, 2).at_bound for _ in range(2))
    assert first == again
    assert sum(first[3.0].values()) == 50 and set(first[3.0]) <= {MET, "missed", UNDECIDED}
    assert isinstance(first[3.0], Counter)
