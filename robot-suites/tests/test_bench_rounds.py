"""Order of the repetitions, pairing, and the rule of the further rounds."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_rounds.measuring.ratios import spread, summary, wants_more
from daq_bench.bench_rounds.measuring.rounds import Comparison, Contender, Point, run_points
from daq_bench.bench_rounds.measuring.sample import Sample


class Quiet:
    def begin(self, text: str, expected_s: float) -> None:
        pass


def contender(name: str, rates: Iterable[float], rounds: int | None = None) -> Contender:
    values = iter(rates)
    return Contender(name, lambda: Sample(next(values)), 1.0, rounds)


def point(ours: Iterable[float], theirs: Iterable[float], rounds: int = 5, most: int = 15) -> Point:
    sides = [contender("ours", ours), contender("theirs", theirs)]
    return Point({}, "point", sides, [Comparison("rate", "ours", "theirs")], rounds, most)


def test_summary_of_known_ratios() -> None:
    found = summary([0.9, 1.0, 1.2, 1.1, 0.8])
    assert (found["n"], found["median"], found["min"], found["max"]) == (5, 1.0, 0.8, 1.2)
    assert found["spread"] == pytest.approx(0.2)  # quartiles 0.9 and 1.1
    assert found["interval"] == [0.8, 1.2]  # five pairs: 93.75 %
    assert summary([1.0, 1.1, 1.2, 1.3])["interval"] is None
    assert summary(range(1, 12))["interval"] == [3, 9]
    assert summary([])["median"] is None
    assert summary([0.0, 0.0])["spread"] is None  # such as counts of losses: JSON has no NaN


def test_wide_ratios_want_more_until_the_limit() -> None:
    wide = [1.0, 1.2, 0.8, 1.1, 0.9]
    assert wants_more(wide, 15)
    assert not wants_more(wide, 5)
    assert not wants_more([1.0, 1.01, 0.99, 1.0, 1.02], 15)


@given(st.lists(st.floats(0.2, 5.0), min_size=5, max_size=14), st.floats(0.01, 100.0))
def test_the_rule_does_not_look_at_which_side_wins(ratios: list[float], factor: float) -> None:
    """Making one side faster throughout moves every ratio across 1 and leaves the rule's answer."""
    assert spread([factor * ratio for ratio in ratios]) == pytest.approx(spread(ratios))


def test_order_alternates_and_ratios_pair_by_round() -> None:
    one = point(ours=[10, 30], theirs=[5, 10], rounds=2, most=2)
    run_points([one], Quiet(), extra_s=0)
    assert [r.contender for r in one.repetitions] == ["ours", "theirs", "theirs", "ours"]
    assert one.ratios(one.comparisons[0]) == [2.0, 3.0]


def test_points_take_turns() -> None:
    order: list[str] = []

    def noting(name: str) -> Contender:
        return Contender(name, lambda: order.append(name) or Sample(1.0), 1.0)  # type: ignore[func-returns-value]

    points = [Point({}, name, [noting(name)], [], 2, 2) for name in ("a", "b")]
    run_points(points, Quiet(), extra_s=0)
    assert order == ["a", "b", "a", "b"]


def test_only_scattering_points_get_further_rounds_up_to_the_limit() -> None:
    steady = point(itertools.repeat(1.0), itertools.repeat(1.0))
    wild = point(itertools.cycle([1.0, 2.0]), itertools.repeat(1.0))
    run_points([steady, wild], Quiet(), extra_s=1e9)
    assert (steady.rounds_done, steady.stopped_by) == (5, "rounds")
    assert (wild.rounds_done, wild.stopped_by) == (15, "limit")
    assert len(wild.document()["repetitions"]) == 30


def test_further_rounds_end_when_the_ratios_agree() -> None:
    settling = point([1.0, 1.5, 1.0, 1.5, 1.0, *[1.0] * 10], itertools.repeat(1.0))
    run_points([settling], Quiet(), extra_s=1e9)
    assert settling.stopped_by == "spread"
    assert 5 < settling.rounds_done < 15


def test_further_rounds_end_with_their_time() -> None:
    wild = point(itertools.cycle([1.0, 2.0]), itertools.repeat(1.0))
    seconds = itertools.count(0, 10)
    run_points([wild], Quiet(), extra_s=25, now=lambda: next(seconds))
    assert (wild.rounds_done, wild.stopped_by) == (7, "time")


def test_a_contender_that_failed_is_shown_and_not_run_again() -> None:
    def broken() -> Sample:
        raise BenchError("no space left")

    sides = [contender("ours", [1.0] * 3), Contender("theirs", broken, 1.0), contender("third", [2.0] * 3)]
    comparisons = [Comparison("rate", "ours", "theirs"), Comparison("other", "third", "ours")]
    one = Point({}, "point", sides, comparisons, 3, 3)
    run_points([one], Quiet(), extra_s=0)
    document = one.document()
    assert document["errors"] == {"theirs": "no space left"}
    assert document["ratios"]["rate"]["n"] == 0
    assert document["ratios"]["other"]["n"] == 3
    assert sum(r["contender"] == "theirs" for r in document["repetitions"]) == 1


def test_a_contender_that_fails_later_loses_its_ratios() -> None:
    def second_time_broken(calls: list[None]) -> Sample:
        calls.append(None)
        if len(calls) == 2:
            raise BenchError("gone")
        return Sample(1.0)

    calls: list[None] = []
    sides = [Contender("ours", lambda: second_time_broken(calls), 1.0), contender("theirs", [1.0] * 3)]
    one = Point({}, "point", sides, [Comparison("rate", "ours", "theirs")], 3, 3)
    run_points([one], Quiet(), extra_s=0)
    assert one.document()["ratios"]["rate"]["median"] is None


def test_a_contender_may_run_once_only() -> None:
    once = Point({}, "point", [contender("always", [1.0] * 3), contender("once", [1.0], rounds=1)], [], 3, 3)
    run_points([once], Quiet(), extra_s=0)
    assert len(once.samples("once")) == 1
    assert once.expected_s() == 4.0
