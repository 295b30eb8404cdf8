"""Scores, break-even prices, shares of the weights, dominance and places: hand-worked examples."""

from __future__ import annotations

import math

import pytest

from daq_bench.bench_model.tender.ranking import DOMINATED, FRONT, MAYBE, Place, Range, dominance, places, unbeaten
from daq_bench.bench_model.tender.weighing import (
    Criterion,
    break_even_price,
    first_chances,
    normalised,
    score,
    weight_shares,
)

SPEED, PRICE, POWER = (
    Criterion("speed", True, 1),
    Criterion("price", False, 1, price=True),
    Criterion("power", False, 2),
)
FAST = {"speed": 8.0, "price": 200.0, "power": 10.0}
CHEAP = {"speed": 4.0, "price": 50.0, "power": 10.0}


def test_a_score_is_a_weighted_product() -> None:
    assert math.exp(score([SPEED, PRICE], FAST)) == pytest.approx(math.sqrt(8 / 200))
    assert normalised([SPEED, PRICE, POWER]) == [0.25, 0.25, 0.5]


def test_units_and_losers_do_not_matter() -> None:
    distance = score([SPEED, PRICE], FAST) - score([SPEED, PRICE], CHEAP)
    in_cents = [{**one, "price": one["price"] * 100} for one in (FAST, CHEAP)]
    assert score([SPEED, PRICE], in_cents[0]) - score([SPEED, PRICE], in_cents[1]) == pytest.approx(distance)


@pytest.mark.parametrize("weights", [(1.0, 1.0, 2.0), (3.0, 0.5, 1.0)])
def test_at_the_break_even_price_both_score_alike(weights: tuple[float, float, float]) -> None:
    criteria = [
        Criterion(one.key, one.larger_is_better, weight, one.price)
        for one, weight in zip((SPEED, PRICE, POWER), weights, strict=True)
    ]
    price = break_even_price(criteria, FAST, CHEAP)
    assert price is not None
    assert score(criteria, {**FAST, "price": price}) == pytest.approx(score(criteria, CHEAP))


def test_break_even_by_hand() -> None:
    assert break_even_price([SPEED, PRICE], FAST, CHEAP) == pytest.approx(100)  # twice the speed, twice the price
    assert break_even_price([SPEED, POWER], FAST, CHEAP) is None
    assert break_even_price([SPEED, Criterion("price", False, 0, price=True)], FAST, CHEAP) is None


def test_what_cannot_be_weighed_is_refused() -> None:
    with pytest.raises(ValueError, match="speed is 0"):
        score([SPEED], {"speed": 0.0})
    with pytest.raises(ValueError, match="zero or more"):
        normalised([Criterion("a", True, -1)])
    with pytest.raises(ValueError, match="zero or more"):
        normalised([Criterion("a", True, 0)])


def test_shares_of_the_weights_are_exact_for_two_criteria() -> None:
    # Utilities: FAST (ln 8, -ln 200), CHEAP (ln 4, -ln 50): they cross where w ln 2 = (1 - w) ln 4, at w = 2/3.
    found = weight_shares([SPEED, PRICE], {"fast": FAST, "cheap": CHEAP})
    assert found.of == pytest.approx({"fast": 1 / 3, "cheap": 2 / 3}, abs=1e-8)
    assert (found.error, found.draws) == (0.0, 0)
    assert weight_shares([SPEED], {"fast": FAST, "cheap": CHEAP}).of == {"fast": 1.0, "cheap": 0.0}


def test_shares_by_draws_agree_with_symmetry_and_are_the_same_each_time() -> None:
    values = {
        name: {key: math.e if key == best else 1.0 for key in "xyz"}
        for name, best in (("one", "x"), ("two", "y"), ("three", "z"))
    }
    criteria = [Criterion(key, True, 1) for key in "xyz"]
    found = weight_shares(criteria, values)
    assert found == weight_shares(criteria, values)
    for share in found.of.values():
        assert abs(share - 1 / 3) < 4 * found.error
    alike = weight_shares(criteria, {"one": values["one"], "other": values["one"]})
    assert alike.of == {"one": 0.5, "other": 0.5}


def test_draws_agree_with_the_exact_share() -> None:
    # A third criterion in which both are alike only thins the simplex: P(w1 ln 2 > w2 ln 4) = P(w1 > 2 w2) = 1/3.
    found = weight_shares([SPEED, PRICE, POWER], {"fast": FAST, "cheap": CHEAP})
    assert abs(found.of["fast"] - 1 / 3) < 4 * found.error


def test_the_chance_of_being_first_follows_the_scatter() -> None:
    certain = first_chances({"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 0.0}, {"a": math.inf, "b": math.inf})
    assert certain == {"a": 1.0, "b": 0.0}
    even = first_chances({"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 1.0}, {"a": 4.0, "b": 4.0})
    assert abs(even["a"] - 0.5) < 0.01
    # Two normal scores one standard error of their difference apart: Phi(1) = 0.8413
    apart = first_chances({"a": math.sqrt(2), "b": 0.0}, {"a": 1.0, "b": 1.0}, {"a": math.inf, "b": math.inf})
    assert abs(apart["a"] - 0.8413) < 0.01


def test_places_are_intervals() -> None:
    beats = {"a": {"c"}, "b": {"c"}}
    assert places(["a", "b", "c"], beats) == {"a": Place(1, 2), "b": Place(1, 2), "c": Place(3, 3)}
    assert places(["a", "b"], {}) == {"a": Place(1, 2), "b": Place(1, 2)}
    assert unbeaten(["a", "b", "c"], beats) == ["a", "b"]


def test_dominance_is_certain_or_likely() -> None:
    points = {
        "best": (Range(9, 8, 10), Range(-100, -100, -100)),
        "near": (Range(8.5, 7.5, 9.5), Range(-120, -120, -120)),
        "worse": (Range(5, 4, 6), Range(-110, -110, -110)),
        "cheap": (Range(3, 2, 4), Range(-10, -10, -10)),
    }
    found = dominance(points)
    assert {name: one for name, (one, _) in found.items()} == {
        "best": FRONT,
        "near": MAYBE,
        "worse": DOMINATED,
        "cheap": FRONT,
    }
    assert found["worse"][1] == ["best"]
    assert dominance({"a": (Range(1, 1, 1),), "b": (Range(1, 1, 1),)})["a"] == (FRONT, [])  # alike: none is better
