"""The comparison report from bundles to paper: contenders ranked or refused, differences marked, and the pages that a board reads."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from comparison_runs import (
    FAST,
    METRICS,
    PROFILE,
    SLOW,
    Roots,
    compared,
    html_of,
    plain,
    put,
    several,
    weights_file,
)
from evidence_factory import conclude
from pypdf import PdfReader
from raid_configurations import INVENTORY, make_raid_run
from tender_factory import HEAT, LOST, RATE, REQUIREMENTS, Run, drive, rate_of, write

from daq_bench.bench_model.base.errors import BenchError, ProfileError
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.bench_report.__main__ import main
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.comparison import first_page, tables, unranked, words
from daq_bench.bench_report.comparison.analysis import Asked, compare
from daq_bench.bench_report.comparison.conditions import inlet_temperature
from daq_bench.bench_report.comparison.document import paper_of
from daq_bench.bench_report.document.section import Bullets
from daq_bench.bench_report.output.paper import document_of

GOLDEN = Path(__file__).parent / "recorded" / "comparison.json"


def numbers_agree(one: Any, other: Any) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        return bool(one == pytest.approx(other, rel=1e-6, abs=1e-9))
    if isinstance(one, dict):
        return (
            isinstance(other, dict) and one.keys() == other.keys() and all(numbers_agree(one[k], other[k]) for k in one)
        )
    if isinstance(one, list):
        return len(one) == len(other) and all(map(numbers_agree, one, other))
    return bool(one == other)


def test_the_document_is_the_golden_one(runs_of: Roots, weights: Path) -> None:
    found = as_document(compared(runs_of(*FAST, *SLOW), weights=weights))
    approved = json.loads(GOLDEN.read_text(encoding="utf-8"))
    for run in (*found["runs"], *approved["runs"]):  # the manifests' hashes change with the form of any file
        assert re.fullmatch("[0-9a-f]{64}", run.pop("manifest_sha256"))
    assert numbers_agree(approved, found)


def test_the_better_one_is_named_with_the_price_that_would_change_it(runs_of: Roots, weights: Path) -> None:
    found = compared(runs_of(*FAST, *SLOW), weights=weights)
    ranking = next(one for one in found.requirements if one.id == RATE)
    assert [one.place for one in ranking.contenders] == [[1, 1], [2, 2]]
    (contrast,) = ranking.contrasts
    assert (contrast.method, contrast.verdict, contrast.better) == ("welch", "better", "fast")
    assert contrast.estimate == pytest.approx(1.2, rel=0.001)
    # Equal weights of throughput, price, power and endurance; the last two are alike: 1.2 times the speed, 9/7 the price.
    assert found.decision.best == "slow"
    prices = {one.name: one for one in found.prices}
    assert prices["fast"].break_even == pytest.approx(700 * contrast.estimate, rel=1e-6)
    assert prices["slow"].break_even == pytest.approx(900 / contrast.estimate, rel=1e-6)


def test_who_cannot_be_told_from_the_best_is_said_with_how_many_more_runs(runs_of: Roots, tmp_path: Path) -> None:
    weights = weights_file(tmp_path, f"weights: {{{RATE}: 1}}")
    found = compared(
        runs_of(*several("fast", (11.9, 12.0, 12.1)), *several("near", (11.1, 11.5, 11.9))), weights=weights
    )
    assert found.decision.kind == "tied"
    (near,) = found.decision.near
    assert near.verdict == "undecided" and near.more_runs > 0
    again = runs_of(
        *several("fast-b", (11.9, 12.0, 12.1), price=9000.0), *several("near-b", (11.1, 11.5, 11.9), price=6900.0)
    )
    text = plain(html_of(again, weights=weights))
    assert "NOT TOLD APART" in text
    assert "cannot be told from it" in text
    assert f"about {near.more_runs} more of each would decide" in text
    more = near.more_runs
    assert (
        f"Choose B (near-b), which costs 2100 EUR less than A (fast-b); or make about {more} more runs of each to tell them apart."
        in text
    )
    without = compared(
        runs_of(*several("x", (11.9, 12.0, 12.1), price=None), *several("y", (11.1, 11.5, 11.9))), weights=weights
    )
    assert "costs" not in words.meaning(without)


def test_an_inadmissible_run_is_listed_and_never_ranked(runs_of: Roots) -> None:
    odd = Run("fast", 9, rates=(99.0,), outcome="INADMISSIBLE", reason="The clock was off")
    found = compared(runs_of(*FAST, odd, *SLOW, Run("broken", rates=(99.0,), outcome="ERROR", reason="The agent died")))
    ranking = next(one for one in found.requirements if one.id == RATE)
    assert max(max(one.values) for one in ranking.contenders) < 13
    assert found.not_ranked == ["broken"]
    assert {run.reason for run in found.runs if not run.ranked} == {
        "the bench failed: The agent died",
        "The clock was off",
    }
    assert any(
        "is not ranked: no run of it counts (ERROR: the bench failed: The agent died)" in one
        for one in words.reasons(found)
    )


def test_who_misses_a_mandatory_requirement_cannot_be_chosen(runs_of: Roots) -> None:
    found = compared(runs_of(*SLOW, *several("cheap", (8.0, 8.1, 7.9), price=1.0)))
    assert found.decision.kind == "only one may be chosen"
    assert found.decision.best == "slow"
    barred = next(one for one in found.contenders if one.name == "cheap").barred
    assert barred == "FAIL in 3 of its 3 runs: misses TND-01"


def test_nothing_that_counts_gives_a_document_without_a_ranking(runs_of: Roots) -> None:
    roots = runs_of(Run("a", outcome="INADMISSIBLE"), Run("b", outcome="ERROR"))
    assert compared(roots).decision.kind == "nobody may be chosen"
    assert "This evidence allows no choice" in plain(html_of(roots))


def test_runs_that_do_not_count_stand_side_by_side_unranked_and_marked_on_every_page(runs_of: Roots) -> None:
    """A new user's first two rehearsals show what they measured, and nobody can take that for a ranking."""
    less: dict[str, Any] = {"outcome": "INADMISSIBLE", "reason": "", "scale": 0.1, "bound": 1.0}
    roots = runs_of(Run("a", rates=(1.2,), **less), Run("b", rates=(1.1,), **less))
    found = compared(roots)
    assert (found.contenders, found.scores, found.decision.kind) == ([], [], "nobody may be chosen")
    assert [one.name for one in found.unranked] == ["a", "b"]
    rates = [next(row.measured for row in one.rows if row.id == RATE) for one in found.unranked]
    assert rates == [1.2, 1.1]
    text = plain(html_of(roots))
    assert "1.200 GB/s" in text and "1.100 GB/s" in text and "this run only (n = 1)" in text
    assert "They rank nothing" in text and "a: REHEARSAL, 0.1 of the load" in text and "a: INADMISSIBLE" not in text
    paper = paper_of(found, "make compare", compare(Asked(roots))[1][-1].moment)
    assert document_of(paper, {}).running_right.endswith("REHEARSAL, UNRANKED")
    assert paper.summary.name == "matrix"
    # Nine sections of which five said no more than that something is missing.
    assert [one.name for one in paper.sections] == ["unranked", "compared", "conditions", "missing", "method"]
    (missing,) = next(one for one in paper.sections if one.name == "missing").parts
    assert isinstance(missing, Bullets) and len(set(missing.items)) == len(missing.items) >= 3


def test_a_rehearsal_that_failed_ranks_and_competes_no_more_than_one_that_passed(runs_of: Roots) -> None:
    """It may have missed at a tenth of the load, and another at the whole load: neither a loss of this candidate nor a win of that one."""
    less: dict[str, Any] = {"scale": 0.1, "bound": 1.0, "reason": ""}
    roots = runs_of(*FAST, Run("a", rates=(0.8,), **less))
    found = compared(roots)
    assert [one.name for one in found.contenders] == ["fast"] and found.not_ranked == ["a"]
    (run,) = (one for one in found.runs if one.contender == "a")
    assert (run.outcome, run.word, run.ranked) == (
        "FAIL",
        "REHEARSAL FAILED",
        False,
    ) and "missed TND-01" in run.reason
    text = plain(html_of(roots))
    assert "a: REHEARSAL FAILED, 0.1 of the load" in text and "1 OF 2 NOT RANKED" in text
    alone = compared(runs_of(Run("c", rates=(0.8,), **less), Run("d", rates=(0.7,), **less)))
    assert (alone.contenders, alone.decision.kind) == ([], "nobody may be chosen")
    assert unranked.mark(alone) == unranked.REHEARSAL


def test_evidence_that_is_invalid_does_not_become_a_rehearsal_by_its_smaller_load(runs_of: Roots) -> None:
    less: dict[str, Any] = {"outcome": "INADMISSIBLE", "reason": "The clock was off", "scale": 0.1, "bound": 1.0}
    roots = runs_of(Run("a", **less), Run("b", **less))
    text = plain(html_of(roots))
    assert "NOT EVIDENCE, UNRANKED" in text and "a: INADMISSIBLE, 0.1 of the load" in text and "REHEARSAL" not in text


def test_unranked_runs_of_one_candidate_stand_beside_each_other(runs_of: Roots) -> None:
    runs = [Run(name, number, outcome="INADMISSIBLE") for number, name in enumerate(("b", "a", "b", "a"), 1)]
    assert [one.name for one in compared(runs_of(*runs)).unranked] == ["a", "a", "b", "b"]


def test_a_comparison_of_runs_that_all_count_has_no_unranked_part(runs_of: Roots) -> None:
    roots = runs_of(*FAST, *SLOW)
    assert not compared(roots).unranked and "UNRANKED" not in html_of(roots)


def test_a_run_beside_those_that_count_is_shown_but_not_on_top(runs_of: Roots) -> None:
    roots = runs_of(*FAST, *SLOW, Run("odd", rates=(99.0,), outcome="INADMISSIBLE", reason="The clock was off"))
    found = compared(roots)
    assert [one.name for one in found.unranked] == ["odd"]
    sections = [one.name for one in paper_of(found, "x", compare(Asked(roots))[1][-1].moment).sections]
    assert sections[:2] == ["ranking", "compared"] and sections[-3:] == ["unranked", "missing", "method"]
    text = plain(html_of(roots))
    assert "1 OF 3 NOT RANKED" in text and "NOT EVIDENCE" not in text


def test_without_a_price_that_has_weight_there_is_no_award(runs_of: Roots, tmp_path: Path, weights: Path) -> None:
    roots = runs_of(*FAST, *several("slow", (9.9, 10.0, 10.1), price=None))
    found = compared(roots, weights=weights)
    assert (found.decision.kind, found.decision.best, found.scores) == ("no award", None, [])
    assert found.pareto.x == "power_per_rate"
    text = plain(html_of(roots, weights=weights))
    assert "NO AWARD" in text
    assert "weight was given to price, and slow lacks a value above zero for it" in text
    assert "no price" in text
    prices = tmp_path / "prices.yml"
    prices.write_text(
        'currency: EUR\ndate: "2026-05-02"\nprices:\n  - {contender: slow, amount: 1200, source: offer 18}\n',
        encoding="utf-8",
    )
    priced = compared(roots, prices=prices, weights=weights)
    assert "cost" in {one.key for one in priced.criteria}
    assert [one.price for one in priced.prices] == [900, 1200]


def test_prices_in_two_currencies_are_no_missing_prices_and_weights_that_were_left_out_are_named(
    runs_of: Roots, tmp_path: Path, weights: Path
) -> None:
    prices = tmp_path / "prices.yml"
    text = 'currency: USD\ndate: "2026-05-02"\nprices:\n  - {contender: slow, amount: 1200, source: offer 18}\n'
    prices.write_text(text, encoding="utf-8")
    text = plain(html_of(runs_of(*FAST, *SLOW), prices=prices, weights=weights))
    assert "their prices are in EUR and USD" in text and "The prices are in different currencies" in text
    assert "not both have a price" not in text and "Not all have a price" not in text
    assert "Your weights could not be used: price left out" in text and "(from the weights file)" not in text


def test_names_that_differ_at_their_ends_are_told_apart_in_the_matrix(runs_of: Roots) -> None:
    names = [f"supplier-with-a-long-name-{end}" for end in ("alpha", "omega")]
    table = first_page.front_matrix(compared(runs_of(*(run for name in names for run in several(name, (11.9, 12.1))))))
    assert table.heads[1].endswith("alpha") and table.heads[2].endswith("omega")


def test_weights_decide(runs_of: Roots, tmp_path: Path) -> None:
    weights = weights_file(tmp_path, "weights: {TND-01: 9, cost: 1}\nequivalence_percent: 1")
    found = compared(runs_of(*FAST, *SLOW), weights=weights)
    assert found.decision.best == "fast"
    assert [one.share for one in found.criteria] == [0.9, 0.1]
    assert sum(one.weight_share for one in found.scores) == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("weights: {TND-99: 1}", r"weights.yml:1: weights.TND-99: 'TND-99' is no criterion here. Use one of TND-01"),
        ("weights: {cost: 0}", "no weight is above zero"),
        ("wieghts: {cost: 1}", "unknown key 'wieghts'. Did you mean weights"),
        (
            "weights:\n  cost: 1\n  TND-03: 5",
            r"weights.yml:3: weights.TND-03: 'TND-03' asks for exactly 0.* count: it is met or missed",
        ),
        ("weights: {TND-03: 0}", "it is met or missed and cannot be scored. Remove it"),
        ("weights: {TND-04: 1}", "is in degrees, of which no ratio can be taken"),
        (
            "weights: {cost: 1}\nequivalence_percent_of: {TND-03: 5}",
            "weights.yml:2: equivalence_percent_of.TND-03: .*cannot be scored",
        ),
        (
            "weights: {cost: .nan}",
            r"weights.yml:1: weights.cost: value nan is no finite number. Correct it",
        ),
        ("weights: {cost: .inf}", "weights.cost: value inf is no finite number"),
        ("weights: {cost: 1e400}", "weights.cost: value inf is no finite number"),
        ("weights: {cost: 1" + 400 * "0" + "}", r"weights.cost: value 10+\.\.\. is no finite number"),
        ("weights: {cost: 1.0e300}", r"value 1e\+300 is too large. Write at most"),
        ("weights: {cost: -1}", "value -1 is too small. Write at least 0"),
        ("weights: {cost: null}", "weights.cost: has no value"),
        ("weights: {cost: true}", "True is not a number"),
        ("weights: {}", r"weights.yml:1: weights: has too few keys \(0\). Write at least 1"),
        ("weights: {cost: 1, cost: 2}", "not valid YAML"),
        (
            "weights: {cost: 1}\nequivalence_percent: .inf",
            "weights.yml:2: equivalence_percent: value inf is no finite number",
        ),
        ("weights: {cost: 1}\nequivalence_percent: 5000", "value 5000 is too large. Write at most 100"),
    ],
)
def test_a_wrong_weights_file_is_refused_with_its_line(
    runs_of: Roots, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    weights = tmp_path / "weights.yml"
    weights.write_text(text, encoding="utf-8")
    roots = [str(root) for root in runs_of(FAST[0], SLOW[0])]
    assert main(["compare", *roots, "--weights", str(weights), "-o", str(tmp_path / "out")]) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            Run("b", scenario="other"),
            "its scenario id differs from that of .*: demo against other. Compare runs of one scenario",
        ),
        (Run("a", 2), "2 runs of 1 candidate; a comparison takes 2 to 8"),
    ],
)
def test_what_answers_another_question_is_refused(runs_of: Roots, other: Run, message: str) -> None:
    with pytest.raises(BundleError, match=message):
        compared(runs_of(Run("a"), other))


def test_nine_candidates_and_a_run_named_twice_are_refused(runs_of: Roots, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="9 runs of 9 candidates"):
        compared(runs_of(*(Run(f"c{number}") for number in range(9))))
    (root,) = runs_of(Run("twice"))
    with pytest.raises(BundleError, match=f"{root}: is named twice. Name each run once"):
        compared((root, root))
    copy = shutil.copytree(root, tmp_path / "copy" / root.name)
    with pytest.raises(
        BundleError, match=f"{copy}: is run {root.name}, of which {root} is another copy. Name each run once"
    ):
        compared((root, copy))


def test_conditions_that_differ_are_marked(runs_of: Roots) -> None:
    roots = runs_of(
        Run("a", inlet=22.0),
        Run(
            "b",
            kernel="6.12.0",
            fio="3.38",
            governor="schedutil",
            inlet=28.0,
            drives=[drive("X", firmware="NEW")],
        ),
    )
    marked = {one.what: one for one in compared(roots).conditions}
    assert {
        "kernel", "version of fio", "tuning cpu-governor", "ambient temperature (air inlet, mean)", "firmware of SAMSUNG MZWLO7T6HBLA",
    } == set(marked)  # fmt: skip
    assert all(one.between for one in marked.values())
    assert "The contenders were not measured under the same conditions" in plain(html_of(roots))


@pytest.mark.parametrize("rates", [((12.0,), (10.0,)), ((12.0, 12.01, 12.02), (10.0, 10.01, 10.02))])
def test_one_run_each_shows_its_interval_and_decides_nothing(
    runs_of: Roots, tmp_path: Path, rates: tuple[tuple[float, ...], tuple[float, ...]]
) -> None:
    weights = weights_file(tmp_path, f"weights: {{{RATE}: 1}}")
    found = compared(runs_of(Run("a", rates=rates[0]), Run("b", rates=rates[1])), weights=weights)
    (contrast,) = rate_of(found).contrasts
    assert contrast.interval[0] > 1.02
    assert (contrast.verdict, contrast.better) == ("undecided", None)
    assert found.decision.kind == "tied"
    assert all(one.chance_first is None for one in found.scores)
    assert "repetitions of a single run" in plain(
        html_of(runs_of(Run("c", rates=(12.0, 12.1)), Run("d", rates=(10.0, 10.1))))
    )


def test_eight_candidates_with_long_and_foreign_names_are_set(runs_of: Roots, tmp_path: Path) -> None:
    long = "ExtraordinarilyLongVendorNameWithoutAnySpaces" * 2
    names = [long, "\u0441\u0435\u0440\u0432\u0435\u0440-\u03b1\u03b2\u03b3", *(f"c{number}" for number in range(6))]
    runs = [
        run
        for index, name in enumerate(names)
        for run in several(name, (10 + index / 9, 10.05 + index / 9), price=100 + index)
    ]
    out = tmp_path / "out"
    assert main(["compare", *map(str, runs_of(*runs)), "-o", str(out)]) == 0
    pdf = out / "comparison.pdf"
    text = subprocess.run(["pdftotext", "-layout", str(pdf), "-"], check=True, capture_output=True, text=True).stdout
    for words_ in (
        "8 candidates",
        "What is not distinguishable",
        "Holm",
        "page 1 of",
        "\u0441\u0435\u0440\u0432\u0435\u0440",
    ):
        assert words_ in text
    reader = PdfReader(pdf)
    assert list(reader.attachments) == ["comparison-data.json", "comparison.json", "figure-data.csv"]
    assert json.loads(reader.attachments["comparison.json"][0]) == json.loads((out / "comparison.json").read_text())
    assert reader.trailer["/Root"]["/MarkInfo"]["/Marked"]
    assert "Runs and outcomes" in reader.pages[0].extract_text()
    for page in reader.pages:
        assert re.search(r"evidence of 16 runs [0-9a-f]{64}", page.extract_text())
    named = sorted(map(str, (tmp_path / "runs").iterdir()), reverse=True)  # the order of naming does not matter
    assert main(["compare", *named, "--check", str(out / "comparison.json")]) == 0


def test_a_changed_document_or_bundle_is_found(
    runs_of: Roots, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roots, out = runs_of(*FAST[:2], *SLOW[:2]), tmp_path / "out"
    assert main(["compare", *map(str, roots), "-o", str(out)]) == 0
    again = ["compare", *map(str, roots), "--check", str(out / "comparison.json")]
    assert main(again) == 0
    verdict = roots[0] / "verdict.json"
    document = json.loads(verdict.read_text())
    document["requirements"][0]["measured"] += 0.001
    verdict.write_text(json.dumps(document))
    assert main(again) == 2
    assert f"{roots[0]}: was altered since it was sealed (verdict.json)" in capsys.readouterr().err
    conclude(roots[0])
    results = json.loads((roots[0] / "results" / "demo.json").read_text())
    write(roots[0], "results/demo.json", {**results, "rate": [rate + 1e6 for rate in results["rate"]]})
    conclude(roots[0])
    assert main(again) == 1
    assert "these bundles give" in capsys.readouterr().err
    assert main([*again, "-o", "elsewhere"]) == 2
    assert "takes either -o DIR or --check JSON" in capsys.readouterr().err


def test_a_broken_bundle_is_named(runs_of: Roots, tmp_path: Path) -> None:
    roots = runs_of(Run("a"), Run("b"))
    with pytest.raises(BenchError, match=r"is no run bundle \(run.json is missing\)"):
        compared((tmp_path, roots[0]))
    (roots[1] / "verdict.json").write_text("{", encoding="utf-8")
    with pytest.raises(BundleError, match=r"was altered since it was sealed \(verdict\.json\)"):
        compared(roots)


def test_the_configurations_of_one_run_are_paired_where_they_shared_rounds(tmp_path: Path) -> None:
    root = make_raid_run(tmp_path / "raid")
    found = compared((root,))
    assert found.kind == "configurations"
    names = [one.name for one in found.contenders]
    assert names == ["reference", "nand-raid0", "nand-raid5"]
    rate = found.requirements[0]
    methods = {(one.first, one.second): one.method for one in rate.contrasts}
    assert methods["reference", "nand-raid0"] == "paired"
    assert methods["nand-raid0", "nand-raid5"] == "welch"  # each in a group of its own
    assert not any("ratio" in one.metric for one in found.requirements)
    assert next(one for one in found.contenders if one.name == "nand-raid5").barred
    assert "RAID and 3D XPoint: 3 configurations of one run" in plain(html_of((root,)))


@pytest.mark.parametrize("outcome", ["PASS", "INADMISSIBLE"])
def test_the_sets_report_has_latency_cpu_of_md_and_published_devices(tmp_path: Path, outcome: str) -> None:
    root = make_raid_run(tmp_path / "raid", outcome)
    shutil.copytree(INVENTORY / "devices" / "published", root / "profiles" / "devices" / "published")
    conclude(root)
    found = compared((root,))
    check_document(as_document(found), "comparison", "comparison.json")
    text = plain(html_of((root,)))
    assert "Latency, CPU of md, and published devices" in text
    drawn = ("Micron X100, measured by others", "never measurements of this bench")
    assert not [one for one in ("md threads, s/GB", "p99.9", "0.0200", *drawn) if one not in text]
    assert "Abed Abud et al., 3D XPoint storage buffer for DUNE (2021), section 4" in text
    assert ("UNRANKED" in text) == (outcome != "PASS")


def test_configurations_of_a_run_that_does_not_count_are_not_ranked(tmp_path: Path) -> None:
    found = compared((make_raid_run(tmp_path / "raid", "INADMISSIBLE"),))
    assert (found.contenders, len(found.not_ranked)) == ([], 3)


def test_the_cost_of_ownership_is_shown_where_the_buyer_named_a_tariff(runs_of: Roots, tmp_path: Path) -> None:
    roots = runs_of(*several("a", (10.0, 10.1, 10.2), watts=50.0), *several("b", (12.0, 12.1, 12.2), watts=None))
    file = tmp_path / "prices.yml"
    priced = (
        'currency: EUR\ndate: "2026-11-01"\nprices:\n- {contender: a, amount: 12000, source: offer}\n'
        "- {contender: b, amount: 9000, source: offer}\n"
    )
    file.write_text(priced, encoding="utf-8")
    assert "Total cost of ownership" not in plain(html_of(roots, prices=file))
    file.write_text(f"{priced}energy: {{price_per_kwh: 0.25, hours: 20000, source: tariff}}\n", encoding="utf-8")
    found = compared(roots, prices=file)
    own = {one.name: one.figures for one in found.contenders}
    assert own["a"]["ownership"].value == pytest.approx(12000 + 50 * 10.1 / 1000 * 20000 * 0.25)
    assert own["b"]["ownership"].value is None
    check_document(as_document(found), "comparison", "comparison.json")
    text = plain(html_of(roots, prices=file))
    assert "Total cost of ownership" in text and "not known: the server's power was not measured" in text.replace(
        "&#39;", "'"
    )
    file.write_text(f"{priced}energy: {{price_per_kwh: 0, hours: 20000, source: tariff}}\n", encoding="utf-8")
    with pytest.raises(ProfileError, match="price_per_kwh"):
        compared(roots, prices=file)


@pytest.mark.parametrize(
    ("ipmi", "mean"),
    [("", 22.0), ("ipmi_sensor,entity=55.1,sensor=Inlet temperature_degc=25.0 1\n", 25.0)],
)
def test_the_inlet_is_told_by_redfish_where_ipmi_does_not(tmp_path: Path, ipmi: str, mean: float) -> None:
    """By one of them alone: a mean of both would belong to neither."""
    spool = tmp_path / "telemetry" / "points.lp"
    spool.parent.mkdir()
    intake = "redfish_sensor,chassis=1,resource=Thermal,sensor=Inlet temperature_degc="
    spool.write_text(f"{ipmi}{intake}21.0 2\n{intake}23.0 3\n")
    assert inlet_temperature(SimpleNamespace(root=tmp_path)) == mean  # type: ignore[arg-type]


def test_counts_are_whole_numbers_and_a_unit_without_a_name_is_left_out(runs_of: Roots) -> None:
    lost = [Run("lossy", number, rates=(12.0,), lost=3.0, heats=(10.0,)) for number in (1, 2, 3)]
    found = compared(runs_of(*FAST, *lost))
    table = tables.ranking(found)
    rows = {row[0].split()[0]: row for row in table.rows}
    assert rows[LOST][0] == f"{LOST} Nothing is lost" and rows[HEAT][0].endswith("(K, advisory)")
    place = table.heads.index(tables.letters(found)["lossy"])
    assert rows[LOST][place].split(": ")[-1] == f"3 {tables.SIGNS['missed']}"
    assert rows[HEAT][place].split(": ")[-1] == f"10 {tables.SIGNS['met']}"


def test_power_per_throughput_is_what_its_requirement_judges(runs_of: Roots) -> None:
    """The worst record decides the requirement; the table beside speed says the same number under the same name."""
    roots = runs_of(*several("one", (11.9, 12.0, 12.1)), *several("two", (9.9, 10.0, 10.1)))
    metric = {"description": "power over rate", "unit": "W/(GB/s)", "nature": "observed", "file": "results/record_power.json",
              "path": "records[].w_per_gb_per_s"}  # fmt: skip
    asked = {"id": "TND-05", "text": "Draws at most 100 W per GB/s", "metric": "snb_record.power_per_rate", "comparison": "at_most",
             "bound": 100, "unit": "W/(GB/s)", "statistic": "max", "severity": "advisory", "source": "[P]"}  # fmt: skip
    for root in roots:
        file = root / "results/record_power.json"
        document = json.loads(file.read_text(encoding="utf-8"))
        document["records"] = [{**document["records"][0], "w_per_gb_per_s": watts} for watts in (70.0, 90.0)]
        file.write_text(json.dumps(document), encoding="utf-8")
        put(root, METRICS, "results", "snb_record.power_per_rate", value=metric)
        put(root, PROFILE, "requirements", value=[*REQUIREMENTS, asked])
    found = compared(roots)
    judged = next(one for one in found.requirements if one.id == "TND-05")
    for one in found.contenders:
        value = next(each.value for each in judged.contenders if each.name == one.name)
        assert value == one.figures["power_per_rate"].value == 90
    assert "W per GB/s is the value that TND-05 judges" in tables.figures(found).caption
