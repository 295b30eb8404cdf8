"""Nights and tenders ask the metric which values are better, and the side of a bound only where the metric does not say."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from msgspec import structs
from nights_factory import NightPlan, write_night

from daq_bench.bench_model.base.direction import Better, larger_is_better
from daq_bench.bench_model.nights.baseline import IMPROVED, REGRESSED, SAME, compare
from daq_bench.bench_model.nights.night import Night, read_night
from daq_bench.bench_model.nights.run_history import history_of
from daq_bench.bench_model.nights.trend import trend_of
from daq_bench.bench_model.tender.contenders import RUNS, Contender, Question, Series
from daq_bench.bench_model.tender.tables import ranking


@pytest.mark.parametrize(
    ("better", "comparison", "larger"),
    [
        ("more", "at_most", True),
        ("less", "at_least", False),
        ("less", "equal", False),
        ("neither", "at_least", True),
        ("neither", "equal", None),
        (None, "at_most", False),
        (None, "equal", None),
    ],
)
def test_the_metric_decides_before_the_bound(better: Better | None, comparison: str, larger: bool | None) -> None:
    assert larger_is_better(better, comparison) is larger


def asked(night: Night, identifier: str, **changes: object) -> Night:
    """The night with a row of its verdict changed."""
    rows = [structs.replace(row, **changes) if row.id == identifier else row for row in night.rows]
    return replace(night, verdict=structs.replace(night.verdict, requirements=rows))


@pytest.mark.parametrize(("rate", "result"), [(7.0, REGRESSED), (10.0, SAME), (13.0, IMPROVED)])
def test_an_upper_bound_on_a_rate_makes_no_slower_night_a_better_one(tmp_path: Path, rate: float, result: str) -> None:
    """As one that shows a record which memory took."""
    plans = [NightPlan(0), NightPlan(1, rate=rate)]
    before, after = (
        asked(read_night(write_night(tmp_path, plan)), "R-01", comparison="at_most", better="more") for plan in plans
    )
    assert {one.id: one.result for one in compare(after, before, [])}["R-01"] == result


def test_a_count_that_must_be_zero_and_grows_has_changed_for_the_worse(tmp_path: Path) -> None:
    plans = [NightPlan(number, lost=float(number % 2 + 7 * (number >= 12))) for number in range(24)]
    nights = [asked(read_night(write_night(tmp_path, plan)), "R-03", better="less") for plan in plans]
    (track,) = [one for one in trend_of(history_of(nights, [], "server-a")).tracks if one.row.id == "R-03"]
    assert [(one.step.index, one.worse) for one in track.steps] == [(12, True)]


def test_a_tender_ranks_by_the_metric_and_not_by_the_side_of_an_advisory_bound() -> None:
    question = Question("R-9", "no memory", "x.rate", "at_most", 20.0, "GB/s", "advisory", 0.02, "max", "more")
    fast, slow = (
        Contender(name, RUNS, {"R-9": Series(values)}, {"R-9": "met"}, {})
        for name, values in (("fast", (11.9, 12.0, 12.1)), ("slow", (9.9, 10.0, 10.1)))
    )
    found = ranking(question, [fast, slow], [])
    assert (found.larger_is_better, found.unbeaten, found.contrasts[0].better) == (True, ["fast"], "fast")
