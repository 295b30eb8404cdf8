"""The comparison with the baseline by intervals, and what a night ends with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from nights_factory import NightPlan, write_night

from daq_bench.bench_model.documents.nights import Comparison, Job
from daq_bench.bench_model.nights.baseline import IMPROVED, REGRESSED, SAME, UNDECIDED, compare
from daq_bench.bench_model.nights.night import Night, read_night
from daq_bench.bench_model.nights.outcome import Entry, headline, status_of, summary


def night(runs: Path, plan: NightPlan) -> Night:
    return read_night(write_night(runs, plan))


def compared(runs: Path, before: NightPlan, after: NightPlan, earlier: list[NightPlan]) -> dict[str, Comparison]:
    known = [night(runs, plan) for plan in earlier]
    return {one.id: one for one in compare(night(runs, after), night(runs, before), known)}


@pytest.mark.parametrize(("rate", "result"), [(9.5, REGRESSED), (9.95, SAME), (10.6, IMPROVED)])
def test_a_difference_counts_when_its_interval_leaves_out_zero(tmp_path: Path, rate: float, result: str) -> None:
    found = compared(tmp_path, NightPlan(0), NightPlan(1, rate=rate), [])["R-01"]
    assert found.result == result
    assert found.interval is not None
    # MOVER of two symmetrical intervals: half widths add in quadrature.
    assert found.interval[1] - found.interval[0] == pytest.approx(2 * (0.1**2 + 0.1**2) ** 0.5)
    assert "unknown" in found.method


def test_the_spread_between_nights_widens_the_interval(tmp_path: Path) -> None:
    """The same fall of 0.5 GB/s, where nights differ by as much anyway."""
    earlier = [NightPlan(10 + n, rate=10 + 0.6 * (-1) ** n) for n in range(8)]
    found = compared(tmp_path, NightPlan(0), NightPlan(30, rate=9.5), earlier)["R-01"]
    assert found.result == SAME
    assert "8 earlier good runs" in found.method


def test_without_an_interval_only_a_rank_among_enough_runs_decides(tmp_path: Path) -> None:
    few = compared(tmp_path / "few", NightPlan(0), NightPlan(30, late=9.0), [NightPlan(1 + n) for n in range(5)])[
        "R-02"
    ]
    assert few.result == UNDECIDED
    many = [NightPlan(1 + n, late=4 + n / 100) for n in range(19)]
    assert compared(tmp_path / "many", NightPlan(0), NightPlan(30, late=9.0), many)["R-02"].result == REGRESSED
    assert compared(tmp_path / "same", NightPlan(0), NightPlan(30, late=4.05), many)["R-02"].result == SAME


def test_a_fact_regresses_when_it_was_met_and_is_missed(tmp_path: Path) -> None:
    assert compared(tmp_path, NightPlan(0), NightPlan(1, lost=2.0), [])["R-03"].result == REGRESSED


def test_what_the_baseline_has_not_is_not_compared(tmp_path: Path) -> None:
    before = night(tmp_path, NightPlan(0, first="R-99"))
    found = compare(night(tmp_path, NightPlan(1)), before, [])
    assert found[0].result == UNDECIDED


def entry(outcome: str, comparisons: tuple[Comparison, ...] = ()) -> Entry:
    return Entry(Job(f"c-{outcome}"), outcome, "why", comparisons=comparisons)


WORSE = Comparison("R-01", "mandatory", REGRESSED, 10.0, 9.0, -1.0, (-1.2, -0.8), "how")


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [
        (["PASS"], 0),
        (["PASS", "rehearsal"], 0),
        (["PASS", "skipped"], 3),
        (["PASS", "INADMISSIBLE"], 3),
        (["INADMISSIBLE", "FAIL"], 1),
        (["FAIL", "ERROR"], 2),
        (["ERROR", "interrupted"], 130),
        ([], 3),
    ],
)
def test_the_exit_status_is_that_of_the_worst(outcomes: list[str], status: int) -> None:
    assert status_of([entry(outcome) for outcome in outcomes]) == status


def test_a_regression_fails_the_night_and_an_advisory_one_does_not() -> None:
    assert status_of([entry("PASS", (WORSE,))]) == 1
    advisory = Comparison("R-01", "advisory", REGRESSED, 10.0, 9.0, -1.0, None, "how")
    assert status_of([entry("PASS", (advisory,))]) == 0


def test_the_mail_says_subject_runs_and_status() -> None:
    text = summary([entry("PASS", (WORSE,)), entry("skipped")], "2026-03-01", "nightly/x")
    assert text.splitlines()[0] == headline([entry("PASS", (WORSE,)), entry("skipped")])
    assert text.splitlines()[0] == "regression: 2 runs on 2 candidates (1 regression, 1 skipped)"
    assert "Exit status: 1" in text
