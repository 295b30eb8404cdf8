"""The comparison with the baseline by intervals, and what a night ends with."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from nights_factory import NightPlan, write_night
from test_conclusion import row as lost_row

from daq_bench.bench_model.documents.nights import Comparison, Job, NightDocument
from daq_bench.bench_model.documents.struct import as_document, read
from daq_bench.bench_model.documents.verdict import Verdict
from daq_bench.bench_model.nights import baseline
from daq_bench.bench_model.nights.baseline import IMPROVED, REGRESSED, SAME, UNDECIDED, compare
from daq_bench.bench_model.nights.night import Night, read_night
from daq_bench.bench_model.nights.outcome import STATUS, Entry, document, headline, status_of, summary


def night(runs: Path, plan: NightPlan) -> Night:
    return read_night(write_night(runs, plan))


def compared(
    runs: Path, before: NightPlan, after: NightPlan, earlier: list[NightPlan], **more: Any
) -> dict[str, Comparison]:
    known = [night(runs, plan) for plan in earlier]
    return {one.id: one for one in compare(night(runs, after), night(runs, before), known, **more)}


@pytest.mark.parametrize(("rate", "result"), [(7.0, REGRESSED), (9.5, SAME), (9.95, SAME), (13.0, IMPROVED)])
def test_until_the_spread_is_known_only_a_collapse_counts(tmp_path: Path, rate: float, result: str) -> None:
    """One earlier night: the spread is taken for 5 %, and 0.1 of the profile's 0.8 %, over two requirements, is tonight's."""
    found = compared(tmp_path, NightPlan(0, bound=1.0), NightPlan(1, rate=rate, bound=1.0), [])["R-01"]
    assert found.result == result
    assert found.interval is not None and found.difference == pytest.approx(rate - 10.0)
    # z(0.0004) x 0.5 x sqrt(2) = 3.3528 x 0.7071 = 2.371 either way
    assert found.interval[1] - found.interval[0] == pytest.approx(2 * 2.371, abs=0.01)
    assert "assumed, since too few runs show it" in found.method and "99% for all requirements together" in found.method


def test_a_step_within_the_spread_of_nights_is_none_and_one_beyond_it_is_seen_in_its_third_night(
    tmp_path: Path,
) -> None:
    nights = [NightPlan(n, rate=10 + 0.05 * (-1) ** n) for n in range(20)]
    results = []
    for number in (20, 21, 22):
        tonight = NightPlan(number, rate=9.7)
        results.append(compared(tmp_path / str(number), nights[0], tonight, nights[1:])["R-01"])
        nights.append(tonight)
    assert [one.result for one in results] == [SAME, REGRESSED, REGRESSED]
    assert "mean of the last 3 nights against 18 earlier good runs" in results[2].method or "20" in results[2].method
    assert results[2].baseline == pytest.approx(10.0, abs=0.02)
    wide = [NightPlan(n, rate=10 + 0.6 * (-1) ** n) for n in range(20)]
    assert compared(tmp_path / "wide", wide[0], NightPlan(30, rate=9.5), wide[1:])["R-01"].result == SAME


def test_without_an_interval_only_several_nights_worse_than_enough_others_decide(tmp_path: Path) -> None:
    few = compared(tmp_path / "few", NightPlan(0), NightPlan(30, late=9.0), [NightPlan(1 + n) for n in range(5)])
    assert few["R-02"].result == UNDECIDED and "too few" in few["R-02"].method
    many = [NightPlan(n, late=4 + n * 7 % 19 / 100) for n in range(19)]
    for late, result in ((9.0, REGRESSED), (4.05, SAME)):
        last = [NightPlan(40 + n, late=9.0) for n in range(2)]
        found = compared(tmp_path / result, many[0], NightPlan(50, late=late), [*many[1:], *last])["R-02"]
        assert (found.result, found.baseline) == (result, pytest.approx(4.09, abs=0.05))
    one = compared(tmp_path / "one", many[0], NightPlan(50, late=9.0), many[1:])["R-02"]
    assert one.result == SAME


def test_what_somebody_accepted_begins_a_level_and_keeps_the_spread(tmp_path: Path) -> None:
    old = [NightPlan(n, rate=10 + 0.05 * (-1) ** n) for n in range(12)]
    new = NightPlan(20, rate=9.5)
    found = compared(tmp_path, new, NightPlan(21, rate=9.45), old, accepted=True)["R-01"]
    assert (found.result, found.baseline) == (SAME, 9.5) and "between nights" in found.method
    assert compared(tmp_path / "not", old[0], NightPlan(21, rate=9.45), old[1:])["R-01"].result == REGRESSED


def test_a_longer_profile_alarms_no_more_often(tmp_path: Path) -> None:
    run = night(tmp_path, NightPlan(0))
    assert [baseline._together(run, severity) for severity in ("mandatory", "advisory")] == [2, 1]


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


@pytest.mark.parametrize(
    ("outcomes", "first", "status"),
    [
        (["ERROR", *["FAIL"] * 6], "FAIL: 7 runs on 2 candidates (6 FAIL, 1 ERROR)", 2),
        (["PASS", "interrupted", "FAIL"], "FAIL: 3 runs on 3 candidates (1 FAIL, 1 interrupted, 1 PASS)", 130),
        (["INADMISSIBLE", "ERROR"], "ERROR: 2 runs on 2 candidates (1 ERROR, 1 INADMISSIBLE)", 2),
        (["skipped", "INADMISSIBLE"], "INADMISSIBLE: 2 runs on 2 candidates (1 INADMISSIBLE, 1 skipped)", 3),
        (["PASS", "rehearsal"], "REHEARSAL: 2 runs on 2 candidates (1 REHEARSAL, 1 PASS)", 0),
        ([], "skipped: 0 runs on 0 candidates (nothing was planned)", 3),
    ],
)
def test_a_server_that_fails_heads_the_night_and_the_exit_status_keeps_its_order(
    outcomes: list[str], first: str, status: int
) -> None:
    """Its reader at 7 a.m. has to go to that server; a bench that broke says nothing about any."""
    entries = [entry(outcome) for outcome in outcomes]
    lines = summary(entries, "2026-03-01", "nightly/x").splitlines()
    assert lines[0] == first
    assert (lines[1] == f"c-{first.split(':')[0]}: why") is (status != 0 and bool(outcomes))
    made = document(entries, [one.job for one in entries], "finished", "n", ("2026-03-01", None), {})
    assert (made.exit_status, STATUS[made.outcome]) == (status, status), "programs read what they read before"


def test_of_two_servers_that_fail_the_one_that_lost_data_is_told_first(tmp_path: Path) -> None:
    late: dict[str, Any] = {"comparison": "at_least", "unit": "GB/s", "bound": 9.0, "scaled_bound": 9.0}
    rows = {
        "late": [lost_row(2, "missed", **late, measured=1.0, margin=-8.0, margin_percent=-89.0)],
        "lost": [lost_row(1, "missed")],
    }
    whole = read_night(write_night(tmp_path, NightPlan(0)), warm=False)
    entries = [
        Entry(Job(name), "FAIL", f"why {name}", replace(whole, verdict=Verdict(1, "FAIL", [], 1.0, False, [], found)))
        for name, found in rows.items()
    ]
    assert summary(entries, "today", "n").splitlines()[1] == "lost: why lost"
    assert summary(entries[::-1], "today", "n").splitlines()[1] == "lost: why lost"


def test_the_mail_gives_cause_and_step_and_none_that_an_older_bench_did_not_store() -> None:
    bad = replace(entry("FAIL"), likely_cause="nvme0n1 at 77 degC", next_step="Do not accept it: `daq-bench qualify`")
    lines = [line.strip() for line in summary([bad, entry("ERROR")], "today", "n").splitlines()]
    at = lines.index("why")
    assert lines[at + 1 : at + 3] == ["Likely cause: nvme0n1 at 77 degC", "Next: Do not accept it: `daq-bench qualify`"]
    assert not any(line.startswith(("Likely", "Next")) for line in lines[at + 3 :])
    stored = as_document(document([bad], [bad.job], "finished", "n", ("2026-03-01", None), {}))
    for key in ("likely_cause", "next_step"):
        del stored["runs"][0][key]
    assert read(stored, NightDocument, "nightly.json").runs[0].next_step == ""


def test_a_run_that_only_became_worse_is_not_told_that_nothing_is_open(tmp_path: Path) -> None:
    night = read_night(write_night(tmp_path, NightPlan(0)), warm=False)
    one = replace(entry("PASS", (WORSE,)), night=night, baseline="before", next_step="Nothing is open.")
    text = summary([one], "today", "n")
    assert "Nothing is open" not in text
    assert "Next: Find out what changed since before (docs/trend.md)" in text and f"baseline runs/{night.id}`" in text


def test_the_mail_says_subject_runs_and_status() -> None:
    text = summary([entry("PASS", (WORSE,)), entry("skipped")], "2026-03-01", "nightly/x")
    assert text.splitlines()[0] == headline([entry("PASS", (WORSE,)), entry("skipped")])
    assert text.splitlines()[0] == "regression: 2 runs on 2 candidates (1 regression, 1 skipped)"
    assert "Exit status: 1" in text
