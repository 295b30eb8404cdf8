"""Page 1 of a comparison decides: recommendation, matrix and plot stand on it, by the places of their words on paper."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from bundle_factory import _block_scan
from comparison_runs import FAST, SLOW, Roots, compared, several, weights_file
from evidence_factory import conclude
from factory_knobs import Knobs
from pdf_pages import Word, text_of, words
from tender_factory import RATE, Run, write

from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.bench_report.__main__ import main
from daq_bench.bench_report.comparison import first_page
from daq_bench.bench_report.comparison import words as said
from daq_bench.bench_report.comparison.curve_figures import curve_figures
from daq_bench.bench_report.comparison.curves import _on_one_grid
from daq_bench.bench_report.comparison.document import paper_of

PAGE_PT = 297 * 72 / 25.4
MOMENT = datetime(2026, 11, 1, tzinfo=UTC)


def pages_of(roots: tuple[Path, ...], out: Path, *options: str) -> list[list[Word]]:
    assert main(["compare", *map(str, roots), *options, "-o", str(out)]) == 0
    return words(out / "comparison.pdf")


def place(page: list[Word], text: str) -> Word:
    return next(word for word in page if word.text == text)


def test_page_one_has_recommendation_matrix_and_plot_of_six_candidates(runs_of: Roots, tmp_path: Path) -> None:
    rates = (14.4, 12.9, 11.6, 10.8, 9.9, 8.1)
    names = [f"server-{letter}" for letter in "uvwxyz"]
    runs = [
        run
        for number, (name, rate) in enumerate(zip(names, rates, strict=True))
        for run in several(name, (rate - 0.02, rate, rate + 0.02), price=900.0 - 50 * number)
    ]
    weights = weights_file(tmp_path, f"weights: {{{RATE}: 1}}")
    pages = pages_of(runs_of(*runs), tmp_path / "out", "--weights", str(weights))
    first = pages[0]
    text = text_of(first)
    assert "Choose A (server-u). By your weights it is best" in text.replace("\u202f", " ")
    assert text.count("3 PASS") == 5 and "3 FAIL" in text  # the first row: all runs of each, with their outcomes
    heads = [place(first, name) for name in names]
    assert [head.left for head in heads] == sorted(head.left for head in heads) and len(
        {head.top for head in heads}
    ) == 1
    for head, rate in zip(heads, rates, strict=True):  # the value of each stands below its own head
        value = next(word for word in first if word.text == f"{rate:g}")
        assert head.left - 15 < value.left < head.right and value.top > head.top
    axis = [word for word in first if word.text == "(EUR)"]
    assert axis and axis[-1].top > max(word.top for word in first if word.text == "TND-04")
    assert {"margin", "price", "(EUR)"} <= {
        word.text for word in first if word.top > 0.5 * PAGE_PT
    }  # the plot's own axis and line
    assert len([page for page in pages if "Price against margin." in text_of(page)]) == 1


def test_of_eight_candidates_six_stand_on_page_one_and_two_after_it(runs_of: Roots) -> None:
    found = compared(runs_of(*(run for n in range(8) for run in several(f"c{n}", (10 + n / 9, 10.05 + n / 9)))))
    front, (more,) = first_page.front_matrix(found), first_page.further_matrices(found)
    assert [head.split()[0] for head in front.heads[1:]] == list("ABCDEF")
    assert [head.split()[0] for head in more.heads[1:]] == ["G", "H"]
    assert "2 more candidates" in front.caption


def test_a_fail_is_not_hidden_by_a_later_pass(runs_of: Roots) -> None:
    runs = [Run("a", 1, rates=(8.0,)), *(Run("a", number, rates=(12.0,)) for number in (2, 3, 4))]
    odd = Run("b", 9, rates=(99.0,), outcome="INADMISSIBLE", reason="The clock was off")
    found = compared(runs_of(*runs, *several("b", (10.0, 10.1)), odd))
    tags = said.letters(found)
    table = first_page.front_matrix(found)
    rows = {row[0].split()[0]: dict(zip(tags, row[1:], strict=True)) for row in table.rows}
    assert rows["Runs"] == {"a": "1\u202fFAIL, 3\u202fPASS", "b": "2\u202fPASS; 1\u202fINADMISSIBLE not used"}
    assert rows["May"] == {"a": "no: missed", "b": "yes, chosen"}
    assert rows[RATE] == {
        "a": "\u2718 10.84",
        "b": "\u2714 10.05",
    }  # (8 x 12^3)^(1/4): the geometric mean of all four; what one run missed is missed
    assert "what one run missed is missed" in first_page.rule(found)


def test_runs_that_do_not_count_are_one_column_for_each_candidate(runs_of: Roots) -> None:
    runs = [
        Run(name, number, rates=(rate,), outcome="INADMISSIBLE")
        for number, (name, rate) in enumerate((("a", 10.0), ("b", 11.0), ("a", 12.0), ("b", 8.0)), 1)
    ]
    found = compared(runs_of(*runs))
    table = first_page.front_matrix(found)
    assert [head.split()[1] for head in table.heads[1:]] == list(said.letters(found)) == ["a", "b"]
    rate = next(row for row in table.rows if row[0].startswith(RATE))
    assert rate[1].endswith(" 10.95") and rate[2] == "\u2718 9.381"  # geometric means
    assert first_page.margin_figure(found) is not None


@pytest.mark.parametrize("price", [None, 900.0])
def test_the_plot_of_a_comparison_is_in_percent_of_what_is_asked(runs_of: Roots, price: float | None) -> None:
    found = compared(
        runs_of(
            *several("a", (11.9, 12.0, 12.1), price=price, watts=None),
            *several("b", (9.9, 10.0, 10.1), price=price, watts=None),
        )
    )
    figure = first_page.margin_figure(found)
    assert figure is not None and figure.title == (
        "Margin over the throughput asked for" if price is None else "Price against margin"
    )
    drawn = [y for trace in figure.data for y in (trace.y if price else trace.x)]
    assert any(abs(value - 100 * (12.0 / 9.24288 - 1)) < 0.01 for value in drawn)
    assert any(abs(value - 100 * (10.0 / 9.24288 - 1)) < 0.02 for value in drawn)


def test_without_weights_the_first_page_says_what_each_choice_gives_and_costs(runs_of: Roots) -> None:
    found = compared(runs_of(*FAST, *SLOW))
    assert found.decision.kind == "no award"
    assert said.meaning(found).replace("\u202f", " ") == (
        "No award is made: no weights were declared. A (fast) is 20 % faster than B (slow); A costs 200 EUR more."
    )


def with_scan(root: Path, factor: float) -> Path:
    scan = json.loads(json.dumps(_block_scan(Knobs(), np.random.default_rng(1))))
    for point in (*scan["points"], *scan["large_blocks"]["repetitions"]):
        point["throughput_bytes_per_s"] = point["throughput_bytes_per_s"] and factor * point["throughput_bytes_per_s"]
    write(root, "results/block_scan.json", scan)
    conclude(root)
    return root


def test_curves_are_medians_of_all_runs_and_need_two_candidates(runs_of: Roots) -> None:
    roots = runs_of(*several("a", (10.0, 10.1, 10.2)), *several("b", (11.0, 11.1)))
    assert not compared(roots).curves
    for root, factor in zip(roots[:3], (1.0, 1.2, 2.0), strict=True):
        with_scan(root, factor)
    assert not compared(roots).curves  # one candidate alone has the evidence
    for root in roots[3:]:
        with_scan(root, 3.0)
    found = compared(roots)
    check_document(as_document(found), "comparison", "comparison.json")
    scan = next(one for one in found.curves if one.name == "rate-by-block-size")
    a, b = scan.contenders
    assert (a.name, a.runs, b.name, b.runs) == ("a", 3, "b", 2)
    for (size, middle, low, high), (other, triple, *_) in zip(a.points, b.points, strict=True):
        assert size == other
        assert (middle / low, high / low, triple / low) == pytest.approx((1.2, 2.0, 3.0), rel=1e-6)
    figure = next(one for one in curve_figures(found) if one.name == "curves-rate-by-block-size")
    assert {trace.y_label for trace in figure.data} == {"rate (GB/s)"}
    assert "curves" in [one.name for one in paper_of(found, "x", MOMENT).sections]


def test_candidates_whose_lines_coincide_share_one(runs_of: Roots) -> None:
    roots = tuple(
        with_scan(root, factor)
        for root, factor in zip(runs_of(Run("a"), Run("b"), Run("c")), (1.0, 1.004, 2.0), strict=True)
    )
    found = compared(roots)
    figure = next(one for one in curve_figures(found) if one.name == "curves-rate-by-block-size")
    lines = {trace.series for trace in figure.data if trace.kind == "line" and len(trace.x) > 1}
    assert {"A  a = B", "C  c"} <= lines and "B  b" not in lines


def test_passes_of_other_lengths_lie_on_one_grid() -> None:
    quick = [(float(written), 2.0) for written in range(2, 1201, 2)]
    slow = [(float(written), 1.0) for written in range(1, 601)]
    made = _on_one_grid({"a": [quick], "b": [slow], "c": [[]]})
    assert made["a"] == [[(20.0 * number, 2.0) for number in range(1, 61)]]
    assert made["b"] == [[(20.0 * number, 1.0) for number in range(1, 31)]] and made["c"] == [[]]


def test_no_page_but_the_last_is_less_than_half_full(runs_of: Roots, tmp_path: Path) -> None:
    roots = runs_of(*several("a", (11.9, 12.0, 12.1), price=900.0), *several("b", (11.5, 11.8, 12.1), price=800.0))
    weights = weights_file(tmp_path, f"weights: {{{RATE}: 1}}")
    pages = pages_of(
        tuple(with_scan(root, 1 + n / 9) for n, root in enumerate(roots)), tmp_path / "out", "--weights", str(weights)
    )
    for page in pages[:-1]:
        inner = [word.bottom for word in page if word.bottom < PAGE_PT - 45]
        assert max(inner) > PAGE_PT / 2
