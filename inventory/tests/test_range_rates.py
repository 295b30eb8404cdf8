"""A few runs of the study of the range: ordinary flash is met, and what hides its bad state is not met more often by the range."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "studies"))
from range_rates import BAD, BOUND, GOOD, Shape, decisions

BY_NAME = {shape.name: shape for shape in (*GOOD, *BAD)}


@pytest.mark.parametrize("shape", GOOD[:5], ids=[one.name for one in GOOD[:5]])
def test_ordinary_flash_whose_every_sample_is_inside_is_met(shape: Shape) -> None:
    for alone, ranged in decisions(shape, 1.0, 2).values():
        assert alone == {"undecided": 2} and ranged == {"met": 2}


@pytest.mark.parametrize("name", ["cache cliff by a sixth", "saw-tooth, 14 % deep", "stall of 5 s every 120 s"])
def test_a_candidate_below_the_bound_is_not_met_by_its_range(name: str) -> None:
    for _, ranged in decisions(BY_NAME[name], 0.999 * BOUND, 4).values():
        assert ranged["met"] == 0


def test_the_range_meets_nothing_that_the_values_alone_would_not() -> None:
    """Six good repetitions of a candidate that is bad in a tenth of them: both rules are wrong, and neither more often."""
    for alone, ranged in decisions(BY_NAME["10 % of repetitions 30 % slower"], 0.999 * BOUND, 8).values():
        assert ranged["met"] == alone["met"] > 0
