"""The comparison report from bundles to paper: who is ranked, who is refused, what is marked, what a board reads on its pages."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader
from raid_configurations import make_raid_run
from tender_factory import RATE, Run, drive, make_run, seal

from bench_report.__main__ import main
from bench_report.comparison import words
from bench_report.comparison.analysis import Asked, compare
from bench_report.comparison.document import paper_of
from bench_report.errors import BundleError
from bench_report.paper import to_html

Roots = Callable[..., tuple[Path, ...]]
GOLDEN = Path(__file__).parent / "recorded" / "comparison.json"


@pytest.fixture
def runs_of(tmp_path: Path) -> Roots:
    def make(*runs: Run) -> tuple[Path, ...]:
        return tuple(make_run(tmp_path / "runs", run) for run in runs)

    return make


def several(name: str, rates: Sequence[float], **changes: Any) -> list[Run]:
    """One run for each rate."""
    return [Run(name, number, rates=(rate,), **changes) for number, rate in enumerate(rates, 1)]


FAST = several("fast", (11.9, 12.0, 12.1), price=900.0)
NEAR = several("near", (11.6, 11.8, 12.0), price=880.0)
SLOW = several("slow", (9.9, 10.0, 10.1), price=700.0)


def compared(roots: tuple[Path, ...], **asked: Any) -> dict[str, Any]:
    return compare(Asked(roots, **asked))[0]


def html_of(roots: tuple[Path, ...], **asked: Any) -> str:
    found, sources = compare(Asked(roots, **asked))
    return to_html(paper_of(found, "make compare", sources[-1].moment))


def plain(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html.replace("\u202f", " ")))


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


def test_the_document_is_the_golden_one(runs_of: Roots) -> None:
    found = json.loads(json.dumps(compared(runs_of(*FAST, *SLOW))))
    approved = json.loads(GOLDEN.read_text(encoding="utf-8"))
    for run in (*found["runs"], *approved["runs"]):  # the manifests' hashes change with the form of any file
        assert re.fullmatch("[0-9a-f]{64}", run.pop("manifest_sha256"))
    assert numbers_agree(approved, found)


def test_the_better_one_is_named_with_the_price_that_would_change_it(runs_of: Roots) -> None:
    found = compared(runs_of(*FAST, *SLOW))
    ranking = next(one for one in found["requirements"] if one["id"] == RATE)
    assert [one["place"] for one in ranking["contenders"]] == [[1, 1], [2, 2]]
    (contrast,) = ranking["contrasts"]
    assert (contrast["method"], contrast["verdict"], contrast["better"]) == ("welch", "better", "fast")
    assert contrast["estimate"] == pytest.approx(1.2, rel=0.001)
    # Equal weights of throughput, price, power and endurance; the last two are alike: 1.2 times the speed, 9/7 the price.
    assert found["decision"]["best"] == "slow"
    prices = {one["name"]: one for one in found["prices"]}
    assert prices["fast"]["break_even"] == pytest.approx(700 * contrast["estimate"], rel=1e-6)
    assert prices["slow"]["break_even"] == pytest.approx(900 / contrast["estimate"], rel=1e-6)


def test_who_cannot_be_told_from_the_best_is_said_with_how_many_more_runs(runs_of: Roots) -> None:
    found = compared(runs_of(*several("fast", (11.9, 12.0, 12.1)), *several("near", (11.4, 11.8, 12.2))))
    assert found["decision"]["kind"] == "tied"
    (near,) = found["decision"]["near"]
    assert near["verdict"] == "undecided" and near["more_runs"] > 0
    text = plain(html_of(runs_of(*several("fast-b", (11.9, 12.0, 12.1)), *several("near-b", (11.4, 11.8, 12.2)))))
    assert "NOT TOLD APART" in text
    assert "cannot be told from it" in text
    assert f"about {near['more_runs']} more of each would decide" in text


def test_an_inadmissible_run_is_listed_and_never_ranked(runs_of: Roots) -> None:
    odd = Run("fast", 9, rates=(99.0,), outcome="INADMISSIBLE", reason="The clock was off")
    found = compared(runs_of(*FAST, odd, *SLOW, Run("broken", rates=(99.0,), outcome="ERROR", reason="The agent died")))
    ranking = next(one for one in found["requirements"] if one["id"] == RATE)
    assert max(max(one["values"]) for one in ranking["contenders"]) < 13
    assert found["not_ranked"] == ["broken"]
    assert {run["reason"] for run in found["runs"] if not run["ranked"]} == {"The agent died", "The clock was off"}
    assert any("is not ranked: no run of it counts (ERROR: The agent died)" in one for one in words.reasons(found))


def test_who_misses_a_mandatory_requirement_cannot_be_chosen(runs_of: Roots) -> None:
    found = compared(runs_of(*SLOW, *several("cheap", (8.0, 8.1, 7.9), price=1.0)))
    assert found["decision"]["kind"] == "only one may be chosen"
    assert found["decision"]["best"] == "slow"
    barred = next(one for one in found["contenders"] if one["name"] == "cheap")["barred"]
    assert barred == "FAIL in 3 of its 3 runs: misses TND-01"


def test_nothing_that_counts_gives_a_document_without_a_ranking(runs_of: Roots) -> None:
    roots = runs_of(Run("a", outcome="INADMISSIBLE"), Run("b", outcome="ERROR"))
    assert compared(roots)["decision"]["kind"] == "nobody may be chosen"
    assert "None of them may be chosen on this evidence" in plain(html_of(roots))


def test_without_a_price_the_ranking_is_made_without_it_and_says_so(runs_of: Roots, tmp_path: Path) -> None:
    roots = runs_of(*FAST, *several("slow", (9.9, 10.0, 10.1), price=None))
    found = compared(roots)
    assert "cost" not in {one["key"] for one in found["criteria"]}
    assert found["decision"]["best"] == "fast"
    assert found["pareto"]["x"] == "power_per_rate"
    text = plain(html_of(roots))
    assert "Decided without price: B lacks it" in text
    assert "no price" in text
    prices = tmp_path / "prices.yml"
    prices.write_text(
        'currency: EUR\ndate: "2026-05-02"\nprices:\n  - {contender: slow, amount: 1200, source: offer 18}\n',
        encoding="utf-8",
    )
    priced = compared(roots, prices=prices)
    assert "cost" in {one["key"] for one in priced["criteria"]}
    assert [one["price"] for one in priced["prices"]] == [900, 1200]


def test_weights_decide(runs_of: Roots, tmp_path: Path) -> None:
    weights = tmp_path / "weights.yml"
    weights.write_text("weights: {TND-01: 9, cost: 1}\nequivalence_percent: 1\n", encoding="utf-8")
    found = compared(runs_of(*FAST, *SLOW), weights=weights)
    assert found["decision"]["best"] == "fast"
    assert [one["share"] for one in found["criteria"]] == [0.9, 0.1]
    assert sum(one["weight_share"] for one in found["scores"]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("weights: {TND-99: 1}", r"weights.yml:1: weights.TND-99: 'TND-99' is no criterion here. Use one of TND-01"),
        ("weights: {cost: 0}", "no weight is above zero"),
        ("wieghts: {cost: 1}", "unknown key 'wieghts'. Did you mean 'weights'"),
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
        (Run("b", bound=9.0), "its requirement TND-01 differs from that of"),
        (Run("a", 2), "2 runs of 1 candidate; a comparison takes 2 to 8"),
    ],
)
def test_what_answers_another_question_is_refused(runs_of: Roots, other: Run, message: str) -> None:
    with pytest.raises(BundleError, match=message):
        compared(runs_of(Run("a"), other))


def test_nine_candidates_and_a_run_named_twice_are_refused(runs_of: Roots) -> None:
    with pytest.raises(BundleError, match="9 runs of 9 candidates"):
        compared(runs_of(*(Run(f"c{number}") for number in range(9))))
    (root,) = runs_of(Run("twice"))
    with pytest.raises(BundleError, match="Name each run once"):
        compared((root, root))


def test_conditions_that_differ_are_marked(runs_of: Roots) -> None:
    roots = runs_of(
        Run("a", inlet=22.0),
        Run(
            "b",
            kernel="6.12.0",
            fio="3.38",
            governor="schedutil",
            inlet=28.0,
            scale=0.5,
            drives=[drive("X", firmware="NEW")],
        ),
    )
    marked = {one["what"]: one for one in compared(roots)["conditions"]}
    assert {
        "kernel", "version of fio", "tuning cpu-governor", "load, share of one readout unit",
        "ambient temperature (air inlet, mean)", "firmware of SAMSUNG MZWLO7T6HBLA",
    } == set(marked)  # fmt: skip
    assert all(one["between"] for one in marked.values())
    assert "The contenders were not measured under the same conditions" in plain(html_of(roots))


def test_one_run_each_is_compared_by_the_runs_own_intervals(runs_of: Roots) -> None:
    found = compared(runs_of(Run("a", rates=(12.0,)), Run("b", rates=(10.0,))))
    (contrast,) = next(one for one in found["requirements"] if one["id"] == RATE)["contrasts"]
    assert (contrast["method"], contrast["better"]) == ("mover", "a")
    assert "repetitions of a single run" in plain(
        html_of(runs_of(Run("c", rates=(12.0, 12.1)), Run("d", rates=(10.0, 10.1))))
    )


def test_eight_candidates_with_long_and_foreign_names_are_set(runs_of: Roots, tmp_path: Path) -> None:
    long = "ExtraordinarilyLongVendorNameWithoutAnySpaces" * 2
    names = [long, "\u0441\u0435\u0440\u0432\u0435\u0440 \u03b1\u03b2\u03b3", *(f"c{number}" for number in range(6))]
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
    assert "Place" in reader.pages[0].extract_text()
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
    assert "verdict.json: was altered since the run was sealed" in capsys.readouterr().err
    seal(roots[0])
    assert main(again) == 1
    assert "these bundles give" in capsys.readouterr().err
    assert main(["compare", *map(str, roots)]) == 2
    assert "needs either -o DIR or --check JSON" in capsys.readouterr().err


def test_a_broken_bundle_is_named(runs_of: Roots, tmp_path: Path) -> None:
    roots = runs_of(Run("a"), Run("b"))
    with pytest.raises(BundleError, match="is missing, so this folder is not a run bundle"):
        compared((tmp_path, roots[0]))
    (roots[1] / "verdict.json").write_text("{", encoding="utf-8")
    with pytest.raises(BundleError, match=r"verdict\.json: line 1"):
        compared(roots)


def test_the_configurations_of_one_run_are_paired_where_they_shared_rounds(tmp_path: Path) -> None:
    root = make_raid_run(tmp_path / "raid")
    found = compared((root,))
    assert found["kind"] == "configurations"
    names = [one["name"] for one in found["contenders"]]
    assert names == ["reference", "nand-raid0", "nand-raid5"]
    rate = found["requirements"][0]
    methods = {(one["first"], one["second"]): one["method"] for one in rate["contrasts"]}
    assert methods["reference", "nand-raid0"] == "paired"
    assert methods["nand-raid0", "nand-raid5"] == "welch"  # each in a group of its own
    assert not any("ratio" in one["metric"] for one in found["requirements"])
    assert next(one for one in found["contenders"] if one["name"] == "nand-raid5")["barred"]
    assert "3 configurations of one run" in plain(html_of((root,)))


def test_configurations_of_a_run_that_does_not_count_are_not_ranked(tmp_path: Path) -> None:
    found = compared((make_raid_run(tmp_path / "raid", "INADMISSIBLE"),))
    assert (found["contenders"], len(found["not_ranked"])) == ([], 3)
