"""A fast, seeded version of the comparison's part of `make study`: "A is better than B" is wrong no more often than claimed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "studies"))
from comparison_errors import NOISES, alike, at_the_margin, drifting

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


def test_a_drift_misleads_no_paired_comparison() -> None:
    assert within(drifting(8, 0.05, True, RUNS), 0.05)
