"""A fast, seeded version of the comparison's part of `make study`: "A is better than B" is wrong no more often than claimed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "studies"))
from comparison_errors import (
    ALL_NOISES,
    INDIFFERENCE,
    NOISES,
    alike,
    at_the_margin,
    drifting,
    family_at_the_margin,
    inside,
    of_one_run,
)

BY_NAME = dict(NOISES)
RUNS = 300


def within(percent: float, claimed: float) -> bool:
    """More errors than the claimed level makes in one of a thousand such tests break the claim."""
    return percent * RUNS / 100 <= float(binom.ppf(0.999, RUNS, claimed))


@pytest.mark.parametrize("noise", list(BY_NAME))
def test_better_is_claimed_wrongly_no_more_often_than_said(noise: str) -> None:
    assert within(alike(4, 4, BY_NAME[noise], RUNS).holm, 0.05)


def test_without_holm_it_would_be() -> None:
    assert not within(alike(5, 5, BY_NAME["normal"], RUNS).naive, 0.05)


def test_equivalent_is_claimed_wrongly_no_more_often_than_said() -> None:
    assert within(at_the_margin(8, 0.05, BY_NAME["normal"], RUNS), 0.025)


@pytest.mark.parametrize("noise", [name for name, _ in ALL_NOISES])
def test_what_lies_within_the_indifference_is_decided_no_more_often_than_said(noise: str) -> None:
    found = inside((6, 6), INDIFFERENCE, dict(ALL_NOISES)[noise], RUNS)
    assert within(found.judged, 0.025)


def test_without_the_indifference_it_would_be() -> None:
    assert not within(inside((6, 6), INDIFFERENCE, BY_NAME["normal"], RUNS).by_chance_alone, 0.025)


def test_a_family_at_the_indifference_is_guarded() -> None:
    assert within(family_at_the_margin(4, 6, RUNS), 0.05)


def test_one_run_of_each_would_decide_by_its_own_interval_and_does_not() -> None:
    found = of_one_run(0.01, RUNS)
    assert found.judged == 0
    assert found.by_chance_alone > 50


def test_a_drift_misleads_no_paired_comparison() -> None:
    assert within(drifting(8, 0.05, True, RUNS), 0.05)
