"""The decision between contenders, from their values alone: awards, indifference, pairs, evidence that is not alike."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from daq_bench.bench_model.documents.comparison import Decision
from daq_bench.bench_model.tender.buyer_files import Weights
from daq_bench.bench_model.tender.contenders import (
    COST,
    ENDURANCE,
    POWER,
    REPETITIONS,
    ROUNDS,
    RUNS,
    Backing,
    Contender,
    Difference,
    Figure,
    Question,
    Series,
    unlike_evidence,
)
from daq_bench.bench_model.tender.tender import document

RATE = Question("R-1", "rate", "x.rate", "at_least", 9.0, "GB/s", "mandatory", 0.02, "min")
RATE_ONLY = Weights({"R-1": 1.0})
HERE = Figure(None, "nowhere")


def contender(
    name: str, *values: float | None, units: str = RUNS, price: float | None = 100.0, **more: Any
) -> Contender:
    figures = {COST: Figure(price, "offer"), "rack_units": HERE, ENDURANCE: HERE}
    return Contender(name, units, {"R-1": Series(values)}, {"R-1": "met"}, figures, currency="EUR", **more)


def decided(*contenders: Contender, weights: Weights = RATE_ONLY, **more: Any) -> Decision:
    return document(contenders, [RATE], "R-1", weights, **more).decision


FAST, SLOW = contender("fast", 11.9, 12.0, 12.1), contender("slow", 9.9, 10.0, 10.1)


def test_an_award_needs_weights_and_gives_the_remedy() -> None:
    assert (decided(FAST, SLOW).kind, decided(FAST, SLOW).best) == ("clear", "fast")
    found = decided(FAST, SLOW, weights=Weights())
    assert (found.kind, found.best) == ("no award", None)
    assert [one.text for one in found.why] == ["no weights were declared"]
    assert "--weights FILE" in found.why[0].remedy


def test_the_indifference_of_a_requirement_is_that_of_a_score_by_it() -> None:
    near = contender("near", 11.1, 11.2, 11.3)
    assert decided(FAST, near).kind == "clear"
    found = decided(FAST, near, weights=Weights({"R-1": 1.0}, margins_percent={"R-1": 12.0}))
    assert (found.kind, found.near[0].verdict) == ("tied", "equivalent")


@pytest.mark.parametrize("lead", [1.0195, 1.02])
def test_pairs_have_the_whole_indifference_too(lead: float) -> None:
    """On logarithms, where a rate's ratio lives, a margin must not be taken twice."""
    rounds = tuple((0, number, number % 2) for number in range(8))
    others = tuple((0, number, (number + 1) % 2) for number in range(8))
    wave = [1 + 1e-6 * (number % 3) for number in range(8)]
    one = contender("one", *(10 * lead * each for each in wave), units=ROUNDS, positions=rounds)
    other = contender(
        "other", *(10 * each * (1 + 1e-7 * n) for n, each in enumerate(wave)), units=ROUNDS, positions=others
    )
    found = document([one, other], [RATE], "R-1", RATE_ONLY)
    assert found.score_contrasts[0].method == "paired"
    assert found.score_contrasts[0].margin == pytest.approx(0.02)
    assert found.decision.kind == "tied"


def test_pairs_that_contradict_the_means_decide_nothing() -> None:
    """`a` is slower in every round that both were measured in, and has rounds of its own in which it flies."""
    shared = [10 + 0.01 * (number % 3) for number in range(8)]
    positions = tuple((0, number, number % 2) for number in range(8))
    a = contender(
        "a", *shared, *([100.0] * 8), units=ROUNDS, positions=(*positions, *((1, number, 0) for number in range(8)))
    )
    b = contender(
        "b", *(1.1 * each + 0.001 * n for n, each in enumerate(shared)), units=ROUNDS,
        positions=tuple((0, number, 1 - number % 2) for number in range(8)),
    )  # fmt: skip
    found = document([a, b], [RATE], "R-1", RATE_ONLY)
    assert found.score_contrasts[0].better == "b"
    assert found.scores[0].name == "a"
    assert found.decision.kind == "tied"


@pytest.mark.parametrize("missing", [None, math.nan, math.inf])
def test_a_missing_value_helps_nobody(missing: float | None) -> None:
    holed = contender("fast", 11.9, missing, 12.1)
    found = document([holed, SLOW], [RATE], "R-1", RATE_ONLY)
    assert found.decision.kind == "no award"
    assert [one.what for one in found.unlike] == ["missing values"]
    assert (found.requirements[0].contrasts, found.pareto) == ([], None)


@pytest.mark.parametrize("price", [None, math.nan, math.inf, 0.0, -5.0])
def test_a_price_that_is_none_decides_nothing(price: float | None) -> None:
    odd = contender("slow", 9.9, 10.0, 10.1, price=price)
    found = decided(FAST, odd, weights=Weights({"R-1": 1.0, COST: 1.0}))
    assert found.kind == "no award"
    assert "slow lacks a value above zero for it" in found.why[0].text


def test_one_that_is_left_is_said_to_be_left_and_none_is_chosen_of_none() -> None:
    barred = replace(SLOW, barred="FAIL in its run")
    assert (decided(FAST, barred).kind, decided(FAST, barred).best) == ("only one may be chosen", "fast")
    assert decided(replace(FAST, barred="x"), barred).kind == "nobody may be chosen"


def test_who_may_be_chosen_must_have_answered_the_same_question() -> None:
    barred = replace(SLOW, barred="FAIL in its run")
    load = Difference("scenario.scale", (("1", ("a",)), ("0.1", ("b",))))
    assert decided(FAST, barred, defined=[load]).kind == "no award"
    advisory = replace(load, concerns=("R-2",))
    assert decided(FAST, SLOW, defined=[advisory]).kind == "clear"


def backed(name: str, *backing: Backing, units: str = RUNS) -> Contender:
    own = contender(name, *([10.0] * len(backing)), units=units)
    return replace(own, series={"R-1": Series(own.series["R-1"].values, backing=backing)})


@pytest.mark.parametrize(
    ("one", "other", "statistic", "unlike"),
    [
        (Backing(3, 100, True), Backing(3, 100, True), "min", []),
        (Backing(3, 100, True), Backing(4, 100, True), "min", ["repetitions in a run"]),
        (Backing(3, 100, True), Backing(6, 100, True), "median", []),
        (Backing(3, 100, True), Backing(7, 100, True), "median", ["repetitions in a run"]),
        (Backing(3, 100, True), Backing(3, 200, True), "min", []),
        (Backing(3, 100, True), Backing(3, 201, True), "min", ["samples of a value"]),
        (Backing(3, 100, True), Backing(3, None, True), "min", ["samples of a value"]),
        (Backing(3, 100, True), Backing(3, 100, False), "min", ["interval of a run's value"]),
    ],
)
def test_what_a_value_rests_on_must_be_alike(one: Backing, other: Backing, statistic: str, unlike: list[str]) -> None:
    found = unlike_evidence("R-1", statistic, [backed("a", one, one), backed("b", other, other)])
    assert [each.what for each in found] == unlike
    mixed = unlike_evidence("R-1", statistic, [backed("a", one, other), backed("b", one, other)])
    assert [each.what for each in mixed] == unlike  # runs of one candidate that are unlike are no repetitions


def test_values_must_be_counted_alike_and_in_like_numbers() -> None:
    single = Backing(1, None, True)
    pair = [backed("a", single, single), backed("b", *[single] * 4), backed("c", *[single] * 5)]
    assert unlike_evidence("R-1", "median", pair[:2]) == []
    (counted,) = unlike_evidence("R-1", "median", [pair[0], pair[2]])
    assert counted.sides == (("2", ("a",)), ("5", ("c",)))
    (units,) = unlike_evidence("R-1", "median", [pair[0], backed("d", single, single, units=REPETITIONS)])
    assert units.sides == ((RUNS, ("a",)), (REPETITIONS, ("d",)))
    assert unlike_evidence(POWER, "median", pair) == []  # nobody has any
