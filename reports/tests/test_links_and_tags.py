"""The finished documents from inside: links, policy, tags, contents, attachments."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

from pdf_pages import text_of, words
from pypdf import PdfReader
from pypdf.generic import ArrayObject, DictionaryObject

from daq_bench.bench_model.bundle.provenance import REPORT_DATA
from daq_bench.bench_report.document.attachments import FIGURES_CSV, REQUIREMENTS
from daq_bench.bench_report.qualification.render import HTML_NAME, PDF_NAME


class Outside(HTMLParser):
    """Collects every reference out of the document, and the names that those within it use."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.ids: list[str] = []
        self.inner: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "xlink:href", "data", "poster", "action") and not (value or "").startswith(
                ("#", "data:")
            ):
                self.found.append(f"{tag} {name}={value}")
            if name in ("href", "xlink:href", "for", "aria-labelledby") and not (value or "").startswith("data:"):
                self.inner.append((value or "").lstrip("#"))
            self.inner += re.findall(r"url\(#([^)]+)\)", value or "")
        if tag in ("script", "link", "iframe", "object", "embed"):
            self.found.append(tag)


def test_the_html_stands_alone_and_its_references_hold(rendered: Path) -> None:
    html = (rendered / HTML_NAME).read_text(encoding="utf-8")
    parser = Outside()
    parser.feed(html)
    assert parser.found == []
    assert "@import" not in html and not re.search(r"url\((?![#\"']?#|data:)", html)
    assert len(parser.ids) == len(set(parser.ids))
    assert set(parser.inner) <= set(parser.ids)
    assert "default-src 'none'" in html and not re.search(r"\son\w+=", html)


def test_figures_can_be_enlarged_and_read_without_a_mouse(rendered: Path) -> None:
    html = (rendered / HTML_NAME).read_text(encoding="utf-8")
    figures = len(re.findall(r'<figure id="figure-\d+"', html))
    assert figures >= 4
    assert (
        len(
            re.findall(r'<input type="checkbox" class="zoom" id="zoom-figure-\d+" aria-label="Enlarge Figure \d+', html)
        )
        == figures
    )
    assert html.count("<summary>Numbers of Figure") == figures
    carried, attached = html.count("data:text/csv"), html.count("is in report-data.json, which is attached to the PDF")
    assert carried >= 3 and carried + attached == figures
    assert html.count('<g class="hover"') == figures


def elements(node: Any) -> Iterator[DictionaryObject]:
    """Every structure element below a node."""
    node = node.get_object()
    if isinstance(node, ArrayObject):
        for child in node:
            yield from elements(child)
    elif isinstance(node, DictionaryObject):
        if "/S" in node:
            yield node
        if "/K" in node:
            yield from elements(node["/K"])


def test_tags_give_headers_their_scope_figures_their_text_and_links_their_targets(rendered: Path) -> None:
    pdf = PdfReader(rendered / PDF_NAME)
    found = list(elements(pdf.root_object["/StructTreeRoot"]))
    kinds = Counter(str(one["/S"]) for one in found)
    assert {"/H1", "/H2", "/Table", "/TH", "/TD", "/Caption", "/Figure", "/Link", "/L", "/P"} <= set(kinds)
    headers = [one["/A"] for one in found if one["/S"] == "/TH"]
    assert {str(one["/Scope"]) for one in headers} == {"/Column", "/Row"} and len(headers) == kinds["/TH"]
    cells = [one["/A"] for one in found if one["/S"] == "/TD"]
    assert cells and all("/Headers" in one for one in cells)
    pictures = [one for one in found if one["/S"] == "/Figure"]
    assert len(pictures) >= 4 and all(len(str(one["/Alt"])) > 20 for one in pictures)
    for one in pictures:
        left, bottom, right, top = (float(value) for value in one["/A"]["/BBox"])
        assert 0 <= left < right <= 596 and 0 <= bottom < top <= 842
    levels = [int(str(one["/S"])[2:]) for one in found if re.fullmatch("/H[1-6]", str(one["/S"]))]
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels))


def test_every_link_of_the_pdf_leads_to_a_place_in_it_and_has_words(rendered: Path) -> None:
    pdf = PdfReader(rendered / PDF_NAME)
    named = set(pdf.named_destinations)
    links = [note.get_object() for page in pdf.pages for note in page.get("/Annots", ())]
    assert len(links) > 30
    for link in links:
        assert link["/Subtype"] == "/Link" and "/URI" not in link.get("/A", {})
        assert str(link["/Dest"]) in named
        assert link.get("/Contents")


def test_the_contents_give_the_page_on_which_a_section_begins(rendered: Path) -> None:
    pages = words(rendered / PDF_NAME)
    reader = PdfReader(rendered / PDF_NAME)
    begins = {item.title: reader.get_destination_page_number(item) for item in flat(reader.outline)}
    contents = re.sub(r"(?:\. ?){3,}", "", " ".join(text_of(page) for page in pages[1:3]))
    for title, number in begins.items():
        if re.match(r"\d+ |Appendix", title):
            assert f"{title} {number + 1}" in contents.replace("\u00a0", " "), title
    assert f"page 1 of {len(pages)}" in text_of(pages[0])


def flat(outline: Any) -> Iterator[Any]:
    for item in outline:
        if isinstance(item, list):
            yield from flat(item)
        else:
            yield item


def test_machine_readable_data_are_attached_and_are_the_bundles(rendered: Path, tmp_path: Path) -> None:
    pdf = rendered / PDF_NAME
    listed = subprocess.run(["pdfdetach", "-list", pdf], capture_output=True, text=True, check=True, timeout=60).stdout
    names = re.findall(r"^\d+: (.+)$", listed, flags=re.MULTILINE)
    assert names == sorted([FIGURES_CSV, REQUIREMENTS, REPORT_DATA, "verdict.json"])
    subprocess.run(["pdfdetach", "-saveall", "-o", tmp_path, pdf], check=True, timeout=60)
    assert (tmp_path / "verdict.json").read_bytes() == (rendered / "verdict.json").read_bytes()
    catalogue = PdfReader(pdf).root_object
    assert len(catalogue["/AF"]) == len(names) and all(
        one.get_object()["/AFRelationship"] == "/Data" for one in catalogue["/AF"]
    )


def test_fonts_are_embedded_and_cover_the_names(rendered: Path) -> None:
    fonts = subprocess.run(
        ["pdffonts", rendered / PDF_NAME], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    rows = [line.split() for line in fonts.splitlines()[2:]]
    assert rows and all("DejaVu" in row[0] for row in rows) and all(row[-5:-2] == ["yes", "yes", "yes"] for row in rows)
