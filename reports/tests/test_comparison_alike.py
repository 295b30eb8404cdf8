"""A comparison decides only what its data decide: what is not alike is named and not compared, and nobody wins by chance."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from comparison_runs import (
    ALL,
    FAST,
    METRICS,
    NEAR,
    PROFILE,
    SLOW,
    YAML_TEXT,
    Roots,
    changed,
    compared,
    html_of,
    plain,
    put,
    several,
    weights_file,
)
from evidence_factory import seal
from tender_factory import RATE, Run, drive, rate_of

from daq_bench.bench_model.base.errors import ProfileError
from daq_bench.bench_model.documents.comparison import ContenderFigure
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.base.units import THIN
from daq_bench.bench_report.comparison import words


def test_without_declared_weights_there_is_no_award(runs_of: Roots) -> None:
    """There is none however far apart they lie: the buyer weighs price and speed."""
    roots = runs_of(*several("fast", (19.9, 20.0, 20.1), price=1.0), *several("slow", (9.9, 10.0, 10.1), price=9000.0))
    found = compared(roots)
    assert (found.decision.kind, found.decision.best) == ("no award", None)
    assert (found.scores, found.score_contrasts, found.prices, found.criteria) == ([], [], [], [])
    assert rate_of(found).contrasts[0].better == "fast"  # the intervals are shown all the same
    text = plain(html_of(roots))
    assert "NO AWARD" in text and "DECIDED" not in text
    assert "No award is made: no weights were declared" in text
    assert "For an award: write weights.yml (docs/comparison.md) and name it: --weights FILE" in text
    assert "Compliance and ranking" in text


def test_what_lies_within_the_indifference_is_not_decided(runs_of: Roots, tmp_path: Path) -> None:
    roots = runs_of(*several("a", (10.22, 10.3, 10.38)), *several("b", (9.92, 10.0, 10.08)))
    for percent, kind in ((2, "tied"), (1, "clear"), (10, "tied")):
        weights = weights_file(tmp_path, f"weights: {{{RATE}: 1}}\nequivalence_percent: {percent}")
        found = compared(roots, weights=weights)
        assert found.decision.kind == kind, percent
        assert [one.verdict for one in rate_of(found).contrasts] == [one.verdict for one in found.score_contrasts]
    assert "is equivalent within 10 %" in " ".join(words.reasons(found)).replace(THIN, " ")


@pytest.mark.parametrize("level", ["equal", "met"])
def test_what_is_asked_for_exactly_is_met_or_missed_and_never_ranked(runs_of: Roots, level: str) -> None:
    lost = 0 if level == "equal" else 3
    found = compared(runs_of(*several("a", (11.9, 12.0, 12.1)), *several("b", (11.9, 12.0, 12.2), lost=lost)))
    one = next(one for one in found.requirements if one.id == "TND-03")
    assert (one.contrasts, one.unbeaten) == ([], [])
    assert [each.place for each in one.contenders] == [None, None]
    assert [each.decision for each in one.contenders] == ["met", "met" if not lost else "missed"]


def test_a_barred_candidate_stays_off_the_front(runs_of: Roots) -> None:
    """The candidate is the cheapest by far and, but for its missed requirement, would be on the front and ahead of another."""
    roots = runs_of(
        *several("good", (11.9, 12.0, 12.1), price=900.0),
        *several("dear", (11.4, 11.5, 11.6), price=950.0),
        *several("loser", (14.9, 15.0, 15.1), price=100.0, lost=7),
    )
    found = compared(roots)
    kinds = {one.name: (one.kind, one.by, one.barred) for one in found.pareto.points}
    assert kinds == {
        "good": ("front", [], False),
        "dear": ("dominated", ["good"], False),
        "loser": ("barred", [], True),
    }
    html = html_of(roots)
    assert "may not be chosen" in html
    tags = words.letters(found)
    assert f"Dominated (no better in either, worse in one): {tags['dear']} by {tags['good']}." in plain(html)
    assert "Barred: may not be chosen, so that it dominates nothing." in plain(html)
    assert (
        list(tags) == ["good", "dear", "loser"] and tags["good"] == "A"
    )  # the barred one last, though it is the fastest
    assert html.index("Compliance and ranking for each requirement</h2>") < html.index("What was compared</h2>")


def test_one_run_dominates_nobody_for_certain(runs_of: Roots) -> None:
    found = compared(runs_of(Run("a", rates=(12.0,), price=900.0), Run("b", rates=(11.0,), price=950.0)))
    assert [one.kind for one in found.pareto.points] == ["front", "maybe dominated"]


def test_no_front_without_one_that_may_be_chosen_or_in_two_currencies(runs_of: Roots, tmp_path: Path) -> None:
    roots = runs_of(*FAST, *NEAR, *several("c", (11.0, 11.1, 11.2), price=None, watts=None))
    assert compared(roots).pareto is None
    prices = tmp_path / "prices.yml"
    prices.write_text(
        'currency: USD\ndate: "2026-05-02"\nprices:\n  - {contender: near, amount: 1, source: offer 18}\n'
    )
    assert compared(roots[:6], prices=prices).pareto.x == "power_per_rate"


@pytest.mark.parametrize(
    ("name", "path", "value", "what", "barred"),
    [
        (PROFILE, ("conditions", "scale_min"), 0.2, "requirement profile.conditions.scale_min", ALL),
        (
            PROFILE,
            ("conditions", "target_kinds"),
            ["filesystem", "scratch-file"],
            "requirement profile.conditions.target_kinds",
            ALL,
        ),
        (PROFILE, ("requirements", 0, "guard_band"), 0.1, "requirement profile.requirements.TND-01.guard_band", [RATE]),
        (
            PROFILE,
            ("requirements", 0, "scales_with_load"),
            True,
            "requirement profile.requirements.TND-01.scales_with_load",
            [RATE],
        ),
        (PROFILE, ("requirements", 0, "bound"), 9.0, "requirement profile.requirements.TND-01.bound", [RATE]),
        (PROFILE, ("requirements", 0, "statistic"), "max", "requirement profile.requirements.TND-01.statistic", [RATE]),
        (
            PROFILE,
            ("requirements", 1, "comparison"),
            "at_least",
            "requirement profile.requirements.TND-02.comparison",
            ["TND-02"],
        ),
        (PROFILE, ("requirements", 0, "unit"), "MB/s", "requirement profile.requirements.TND-01.unit", [RATE]),
        (
            PROFILE,
            ("requirements", 1, "severity"),
            "mandatory",
            "requirement profile.requirements.TND-02.severity",
            ["TND-02"],
        ),
        (
            PROFILE,
            ("requirements", 1, "metric"),
            "demo.tail2",
            "requirement profile.requirements.TND-02.metric",
            ["TND-02"],
        ),
        (METRICS, ("results", "demo.tail", "nature"), "estimated", "metrics.demo.tail.nature", ["TND-02"]),
        (METRICS, ("results", "demo.tail", "better"), "more", "TND-02.larger is better", ["TND-02"]),
        (METRICS, ("results", "demo.tail", "path"), "[min(tail)]", "metrics.demo.tail.path", ["TND-02"]),
        (METRICS, ("results", "demo.rate", "interval"), "rate_interval[:]", "metrics.demo.rate.interval", [RATE]),
        (METRICS, ("results", "demo.rate", "samples"), "rate_series", "metrics.demo.rate.samples", [RATE]),
        ("run.json", ("scenario", "parameters", "duration_s"), 10, "scenario.parameters.duration_s", ALL),
        (
            "run.json",
            ("scenario", "parameters", "workloads", "demo", "block_size"),
            "1MiB",
            "workloads.demo.block_size",
            ALL,
        ),
        ("run.json", ("scenario", "parameters", "workloads", "demo", "tomorrow"), 1, "workloads.demo.tomorrow", ALL),
        ("run.json", ("scenario", "scale"), 0.5, "scenario.scale", ALL),
    ],
)
def test_what_is_not_alike_is_named_with_both_sides_and_not_compared(
    runs_of: Roots, weights: Path, name: str, path: tuple[str | int, ...], value: Any, what: str, barred: list[str]
) -> None:
    roots = list(runs_of(FAST[0], SLOW[0]))
    if value == "demo.tail2":
        for root in roots:
            put(
                root,
                METRICS,
                "results",
                "demo.tail2",
                value={
                    "description": "x",
                    "unit": "us",
                    "nature": "observed",
                    "file": "results/demo.json",
                    "path": "tail",
                },
            )
    put(roots[1], name, *path, value=value)
    found = compared(tuple(roots), weights=weights)
    (one,) = [one for one in found.unlike if one.what.endswith(what)]
    assert [len(names) for _, names in one.sides] == [1, 1]
    assert one.sides[0][0] != one.sides[1][0]
    apart = {each.id for each in found.requirements if each.not_compared}
    assert apart >= set(barred)
    if "metric" not in path:
        assert apart == set(barred)
    for each in found.requirements:
        assert not (each.id in apart and each.contrasts)
        assert each.id in apart or each.contrasts or each.comparison == "equal"
    if RATE in barred:
        assert (found.decision.kind, found.pareto) == ("no award", None)
    text = plain(html_of(tuple(roots), weights=weights))
    assert what in text and "Not compared, for the contenders are not alike in it" in text


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        (PROFILE, ("title",), "Another"), (PROFILE, ("requirements", 0, "text"), "Other words"),
        (METRICS, ("results", "demo.tail", "description"), "other words"),
        (METRICS, ("results", "demo.rate", "better"), "more"),  # the other is older than the field, and its bound says the same
        ("run.json", ("scenario", "seed"), 7),
        ("run.json", ("scenario", "file"), "elsewhere.yml"),
    ],
)  # fmt: skip
def test_words_and_seeds_may_differ(runs_of: Roots, name: str, path: tuple[str | int, ...], value: Any) -> None:
    roots = runs_of(*FAST, *SLOW)
    put(roots[-1], name, *path, value=value)
    assert compared(roots).unlike == []


def test_a_bundle_without_its_profile_is_refused(runs_of: Roots, weights: Path) -> None:
    """Without the profile nobody can judge the bundle again."""
    roots = runs_of(*FAST, *SLOW)
    (roots[-1] / PROFILE).unlink()
    seal(roots[-1])
    with pytest.raises(BundleError, match=r"cannot be judged again: .*there is no such file"):
        compared(roots, weights=weights)


def test_a_run_that_does_not_count_keeps_nothing_apart(runs_of: Roots) -> None:
    odd = Run("fast", 9, rates=(99.0,), outcome="INADMISSIBLE", scale=0.1, bound=1.0)
    assert compared(runs_of(*FAST, *SLOW, odd)).unlike == []


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ([Run("b", 1, rates=(10.0, 10.1, 10.2))], "what a value is counted by"),
        (several("b", (9.9, 10.0, 10.1), spread=None, lost=1), "interval of a run's value"),
        ([Run("b", n, rates=(10.0,) * 5) for n in (1, 2, 3)], "repetitions in a run"),
        (several("b", [10 + n / 100 for n in range(7)]), "number of values (more than 2 times)"),
    ],
)
def test_evidence_of_another_kind_is_not_held_against_it(
    runs_of: Roots, weights: Path, other: list[Run], what: str
) -> None:
    found = compared(runs_of(*FAST, *other), weights=weights)
    named = {one.what: one.sides for one in found.unlike if RATE in one.concerns}
    assert what in named
    assert {name for _, names in named[what] for name in names} == {"fast", "b"}
    assert rate_of(found).contrasts == []
    assert found.decision.kind == "no award"


def test_a_run_without_a_value_keeps_its_requirement_apart(runs_of: Roots) -> None:
    roots = runs_of(*FAST, *SLOW)
    put(roots[0], "results/demo.json", "tail", value=[None])
    found = compared(roots)
    (one,) = [one for one in found.unlike if one.what == "missing values"]
    assert one.concerns == ["TND-02"]
    assert rate_of(found).contrasts


def test_a_mandatory_requirement_that_a_run_does_not_judge_bars_it(runs_of: Roots) -> None:
    roots = runs_of(*FAST, *SLOW)
    asked = YAML_TEXT.load((roots[0] / PROFILE).read_text(encoding="utf-8"))["requirements"]
    put(roots[0], PROFILE, "requirements", value=asked[1:])
    barred = {one.name: one.barred for one in compared(roots).contenders}
    assert barred == {"fast": "not every mandatory requirement is met: TND-01 undecided", "slow": None}


def test_one_run_under_two_names_is_refused(runs_of: Roots, tmp_path: Path) -> None:
    one, two, other = runs_of(Run("a"), Run("a", 2), Run("b"))
    copy = tmp_path / "copy"
    shutil.copytree(one, copy)
    put(copy, "run.json", "run_id", value="another")
    with pytest.raises(BundleError, match=r"has the very telemetry of .*Name each run once"):
        compared((one, copy, other))
    put(copy, "run.json", "candidate", "name", value="c")
    put(copy, "run.json", "started_utc", value="2026-05-09T00:00:00.000Z")
    with pytest.raises(BundleError, match="has the very telemetry of"):
        compared((one, copy, other))
    began = json.loads((one / "run.json").read_text())["started_utc"]
    put(two, "run.json", "started_utc", value=began.replace(":00.000Z", ":59.000Z"))
    with pytest.raises(BundleError, match="was made in the same minutes on the same candidate and target as"):
        compared((one, two, other))


def test_runs_of_one_candidate_on_other_drives_are_no_repetitions(runs_of: Roots, weights: Path) -> None:
    swapped = Run("slow", 4, rates=(10.0,), price=700.0, drives=[drive("X", model="OTHER")])
    found = compared(runs_of(*FAST, *SLOW, swapped), weights=weights)
    assert [one.what for one in found.unlike] == ["drives of slow between its runs"]
    assert found.decision.kind == "no award"


def test_a_candidate_whose_runs_contradict_each_other_in_price_has_none(runs_of: Roots, weights: Path) -> None:
    found = compared(runs_of(*FAST, *SLOW, Run("slow", 4, rates=(10.0,), price=1.0)), weights=weights)
    (slow,) = [one for one in found.contenders if one.name == "slow"]
    assert slow.figures["cost"] == ContenderFigure(None, reason="its runs declare different ones: 700 and 1")
    assert found.decision.kind == "no award"


@pytest.mark.parametrize(
    ("prices", "message"),
    [
        (
            "{contender: fast, amount: .nan, source: x}",
            r"prices.yml:4: prices\[0\].amount: value nan is no finite number",
        ),
        ("{contender: fast, amount: .inf, source: x}", "amount: value inf is no finite number"),
        ("{contender: fast, amount: 1e400, source: x}", "amount: value inf is no finite number"),
        ("{contender: fast, amount: 0, source: x}", "amount: value 0 is too small. Write a number above 0"),
        ("{contender: fast, amount: -1, source: x}", "amount: value -1 is too small. Write a number above 0"),
        ("{contender: fast, source: x}", "key 'amount' is missing"),
        ("{contender: fast, amount: null, source: x}", "amount: has no value"),
        ("{contender: fast, amount: '5', source: x}", "'5' is not a number. Write a number"),
        (
            "{contender: fast, amount: 1, source: x}\n  - {contender: fast, amount: 2, source: y}",
            "'fast' has a price already. Give each one price",
        ),
        (
            "{drive_model: M, amount: 1, source: x}\n  - {drive_model: M, amount: 2, source: y}",
            r"prices\[1\].drive_model: 'M' has a price already",
        ),
        ("{contender: other, amount: 1, source: x}", "'other' is not compared here"),
    ],
)
def test_a_wrong_price_is_refused_with_its_line(runs_of: Roots, tmp_path: Path, prices: str, message: str) -> None:
    file = tmp_path / "prices.yml"
    file.write_text(f'currency: EUR\ndate: "2026-05-02"\nprices:\n  - {prices}\n', encoding="utf-8")
    with pytest.raises(ProfileError, match=message):
        compared(runs_of(FAST[0], SLOW[0]), prices=file)


def test_a_price_list_of_no_day_is_refused(runs_of: Roots, tmp_path: Path) -> None:
    file = tmp_path / "prices.yml"
    file.write_text(
        'currency: EUR\ndate: "2026-13-41"\nprices:\n  - {contender: fast, amount: 1, source: x}\n', encoding="utf-8"
    )
    with pytest.raises(ProfileError, match=r"prices.yml:2: date: '2026-13-41' is no day .*Write it as 2026-11-30"):
        compared(runs_of(FAST[0], SLOW[0]), prices=file)


def test_a_tie_is_a_tie(runs_of: Roots, weights: Path) -> None:
    roots = runs_of(*several("a", (11.9, 12.0, 12.1), price=900.0), *several("b", (12.1, 12.0, 11.9), price=900.0))
    found = compared(roots, weights=weights)
    assert found.decision.kind == "tied"
    assert [one.place for one in found.scores] == [[1, 2], [1, 2]]
    assert "A (a) and B cannot be told apart." in plain(html_of(roots, weights=weights))


def test_a_price_that_is_no_number_in_the_inventory_is_refused(runs_of: Roots, weights: Path) -> None:
    roots = runs_of(*FAST, *SLOW)
    for root in roots[3:]:
        changed(root, "profiles/lab.yml", lambda text: text.replace("amount: 700.0", "amount: .nan"))
    with pytest.raises(ProfileError, match=r"drive_price\.amount: value nan is no finite number"):
        compared(roots, weights=weights)
