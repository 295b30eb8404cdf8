"""Tells what is printed of the HTML: every word that paper shows, every figure with its description, and no page with a hole."""

from __future__ import annotations

import base64
import re

import pytest

from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.output.printed import for_paper
from daq_bench.bench_report.output.typeset import MOST_COMPLAINT, TEMPLATES, pages_of

PLOT = (
    '<svg class="plot" role="img" aria-labelledby="a-title" viewBox="0 0 9 9" xmlns="http://www.w3.org/2000/svg">'
    '<title id="a-title">rate &lt; 5 &quot;GB/s&quot;</title><text x="1" y="5">in it</text>'
    '<g class="hover" fill="transparent"><circle r="4"><title>spot</title></circle></g><!--hover--></svg>'
)
PAGE = (
    f'<p>before</p><figure><div class="plot-frame">{PLOT}</div><figcaption>below</figcaption>'
    f'<details class="numbers"><summary>Numbers</summary></details></figure>{PLOT}<p>after</p>'
)


def test_figures_become_images_that_hold_all_but_what_a_pointer_shows() -> None:
    paper = for_paper(PAGE)
    found = re.findall(r'<img class="plot" alt="([^"]*)" src="data:image/svg\+xml;base64,([^"]*)">', paper)
    assert [alt for alt, _ in found] == ["rate &lt; 5 &quot;GB/s&quot;"] * 2
    assert {base64.b64decode(content).decode() for _, content in found} == {re.sub(r'<g class="hover".*-->', "", PLOT)}
    assert re.sub(r"<[^>]*>", " ", paper).split() == ["before", "below", "after"]


def test_a_page_without_figures_stays_as_it_is() -> None:
    assert for_paper("<p>words</p><svg><title>a sign</title></svg>") == "<p>words</p><svg><title>a sign</title></svg>"


@pytest.mark.parametrize(
    "figure", [PLOT.replace("<text", "<broken"), '<img alt="a photograph" src="data:image/png;base64,AAAA">']
)
def test_a_figure_that_cannot_be_read_is_an_error_and_no_hole(figure: str) -> None:
    with pytest.raises(BundleError, match=r"the PDF of a report: could not be set completely: .*image") as caught:
        pages_of(f"<p>words</p>{figure}{'<!-- long -->' * 100}", "a report")
    assert len(str(caught.value)) < MOST_COMPLAINT + 100


def test_a_front_that_is_longer_than_its_page_is_followed_by_the_contents_at_once() -> None:
    def pages(rows: int) -> list[set[str]]:
        css = (TEMPLATES / "report.css").read_text(encoding="utf-8")
        front = f'<div class="front">{"<p>a row</p>" * rows}</div>'
        html = f'<html lang="en"><style>{css}</style><body>{front}<nav id="contents" class="contents">Contents</nav></body></html>'
        return [set(page.anchors) for page in pages_of(html, "a report").pages]

    assert pages(3) == [set(), {"contents"}]
    assert pages(60) == [set(), {"contents"}]
