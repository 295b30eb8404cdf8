"""The finished reports: the facts that a reader must find, the faults that may not happen, and the longest time they may take."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pdf_pages import Word, outside_of_margins, overlapping, text_of
from pdf_pages import words as words_of
from pypdf import PdfReader

from daq_bench.bench_report.__main__ import main
from daq_bench.bench_report.output import typeset
from daq_bench.bench_report.qualification.render import HTML_NAME, PDF_NAME, to_html
from daq_bench.bench_report.reading.load import load

Maker = Callable[..., Path]
SECONDS_MAX = 15.0  # of this process; the machine may be busy with others
ID_COLUMN_ENDS = 60.0  # points from the left of the page
SCALED = "Not a qualification at full scale"


def rendered(root: Path) -> PdfReader:
    assert main(["render", str(root)]) == 0
    return PdfReader(root / PDF_NAME)


def whole_text(pdf: PdfReader) -> str:
    return re.sub(r"\s+", " ", " ".join(page.extract_text() for page in pdf.pages))


def test_the_pdf_says_what_a_tender_needs(bundle_with: Maker) -> None:
    root = bundle_with()
    began = time.process_time()
    pdf = rendered(root)
    assert time.process_time() - began < SECONDS_MAX
    whole = whole_text(pdf)
    page_one = re.sub(r"\s+", " ", pdf.pages[0].extract_text())
    for words in (
        "REHEARSAL",
        "Further findings",
        "Requirements in short",
        SCALED,
        "The load is 0.1 of one readout unit",
        "this-machine",
        "not reported by the device",
        "10 GB/s",
        "8.608 GiB/s",
    ):
        assert words in page_one, words
    assert all(f"SNB-{number:02d}" in whole for number in range(1, 10))
    for words in (
        "9.243 GB/s \u00d7 0.1 = 0.9243 GB/s",
        "95 % CI",
        "results/snb_record.json",
        "unsupported",
        "changed during the run",
        "Table 2. Requirements in full",
        "daq-bench judge runs/run-1",
        "--scale 0.1 --duration 20",
    ):
        assert words in whole, words
    assert f"page 1 of {len(pdf.pages)}" in page_one and 7 <= len(pdf.pages) <= 16
    check_tags_and_description(pdf)


def bookmarks(outline: list[Any]) -> list[str]:
    return [title for item in outline for title in (bookmarks(item) if isinstance(item, list) else [str(item.title)])]


def check_tags_and_description(pdf: PdfReader) -> None:
    root, data = pdf.root_object, pdf.metadata
    assert "/StructTreeRoot" in root and str(root["/Lang"]) == "en"
    assert data is not None and data.title == "Qualification of this-machine: REHEARSAL (run-1)"
    assert data.author and data.subject and "dune-snb" in str(data["/Keywords"])
    assert "pdfuaid" in str(pdf.xmp_metadata.stream.get_data() if pdf.xmp_metadata else "")
    titles = bookmarks(pdf.outline)
    assert any("Requirements" in title for title in titles) and any("Definitions" in title for title in titles)


@pytest.mark.parametrize(
    ("outcome", "scale", "word"),
    [
        ("PASS", 0.1, "PASS"), ("FAIL", 0.1, "FAIL"), ("ERROR", 0.1, "ERROR"), ("INADMISSIBLE", 0.1, "REHEARSAL"),
        ("INADMISSIBLE", 1.0, "INADMISSIBLE"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("unsettled")
def test_each_outcome_is_a_word_and_a_sign(bundle_with: Maker, outcome: str, scale: float, word: str) -> None:
    html = to_html(load(bundle_with(outcome=outcome, requirements=1, scale=scale, scaled_down=scale < 1)))
    badge = html[html.index('class="badge"') :][:400]
    sign = {"PASS": "\u2714", "FAIL": "\u2718", "ERROR": "\u26a0", "INADMISSIBLE": "\u2298"}[outcome]
    assert word in badge and sign in badge


@pytest.mark.usefixtures("unsettled")
def test_a_pass_at_reduced_scale_never_stands_alone(bundle_with: Maker) -> None:
    reduced = to_html(load(bundle_with(outcome="PASS")))
    assert reduced.count("at reduced scale: not a qualification") == 2  # badge and running head
    whole = to_html(load(bundle_with(outcome="PASS", scale=1.0, scaled_down=False)))
    assert "at reduced scale" not in whole and SCALED not in whole


def test_the_same_bundle_gives_the_same_html(bundle_with: Maker) -> None:
    root = bundle_with()
    assert to_html(load(root)) == to_html(load(root))


@pytest.mark.usefixtures("unsettled")
def test_names_are_text_never_markup(bundle_with: Maker) -> None:
    root = bundle_with()
    run = json.loads((root / "run.json").read_text(encoding="utf-8"))
    run["candidate"]["name"] = '<script>alert("1")</script> & co'
    (root / "run.json").write_text(json.dumps(run), encoding="utf-8")
    html = to_html(load(root))
    assert "<script" not in html and "&lt;script&gt;" in html
    assert "'<script>alert" not in html.replace("&#39;", "'")


ODD: dict[str, tuple[dict[str, Any], tuple[int, int]]] = {
    "interrupted": ({"interrupted": True}, (5, 11)),
    "broken before any workload": ({"early_error": True}, (4, 8)),
    "nothing to draw": ({"telemetry": False, "hdr": False, "masked": tuple(2**power for power in range(12, 26))}, (6, 17)),
    "long names": ({"long_names": True, "requirements": 6, "device_reports": True}, (9, 20)),
    "other scripts, many of everything": (
        {"non_latin": True, "outcome": "FAIL", "faults": 40, "repetitions": 12, "cores": 96, "temperature": True}, (11, 24),
    ),
    "sixty-four drives": ({"drives": 64, "smart_worse": True, "requirements": 1, "temperature": True}, (8, 30)),
    "two hundred requirements": ({"requirements": 200, "telemetry": False}, (20, 60)),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_bundles_do_not_break_the_page(bundle_with: Maker, name: str) -> None:
    assert shutil.which("pdftotext"), "pdftotext (package poppler-utils) is needed to look at the pages"
    knobs, (least, most) = ODD[name]
    root = bundle_with(**knobs)
    pdf = rendered(root)
    assert least <= len(pdf.pages) <= most
    pages = words_of(root / PDF_NAME)
    assert outside_of_margins(pages) == []
    assert overlapping(pages) == []
    if name == "two hundred requirements":
        check_rows_and_heads(pages)


def check_rows_and_heads(pages: list[list[Word]]) -> None:
    """Each page of the table has its head, and no row lies on two pages: each has as many results as names."""
    of_table = [page for page in pages if sum(word.text.startswith("results/") for word in page) >= 5]
    assert len(of_table) >= 10
    for page in of_table:
        text = text_of(page)
        assert "Requirement and evidence" in text
        results = len(re.findall("[\u2714\u2718?\u2013]\\s(?:met|missed|undecided|not measured)", text))
        rows = [word.text for word in page if word.left < ID_COLUMN_ENDS and re.fullmatch(r"SNB-\d+", word.text)]
        assert results == len(rows), rows


@pytest.mark.usefixtures("unsettled")
def test_a_partial_bundle_says_what_is_missing(bundle_with: Maker) -> None:
    html = to_html(load(bundle_with(interrupted=True))).replace("<wbr>", "")
    for words in (
        "NO VERDICT",
        "This bundle is incomplete",
        "results/snb_record.json",
        "no requirement was judged",
        "Record as far as it came",
    ):
        assert words in html, words
    broken = to_html(load(bundle_with(early_error=True)))
    for words in (
        "no telemetry of the candidate was collected",
        "no admissible point of a block-size scan",
        "no record was written",
    ):
        assert words in broken, words


@pytest.mark.usefixtures("unsettled")
def test_a_missing_proof_is_marked(bundle_with: Maker) -> None:
    root = bundle_with()
    (root / "results/block_scan.json").unlink()
    assert "(not in the bundle)" in to_html(load(root))


def test_a_bad_bundle_leaves_the_old_reports_untouched(bundle_with: Maker, capsys: pytest.CaptureFixture[str]) -> None:
    root = bundle_with()
    for name in (HTML_NAME, PDF_NAME):
        (root / name).write_text("the old one", encoding="utf-8")
    (root / "verdict.json").write_text("{", encoding="utf-8")
    before = sorted(path.name for path in root.iterdir())
    assert main(["render", str(root)]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"error: {root}/verdict.json is not valid JSON (") and message.count("\n") == 1
    assert sorted(path.name for path in root.iterdir()) == before
    assert all((root / name).read_text(encoding="utf-8") == "the old one" for name in (HTML_NAME, PDF_NAME))


def test_a_full_disk_leaves_the_old_reports_untouched(bundle_with: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    root = bundle_with(telemetry=False)
    (root / HTML_NAME).write_text("the old one", encoding="utf-8")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(typeset, "pages_of", lambda *_: SimpleNamespace(pages=[]))  # setting them takes seconds
    monkeypatch.setattr(typeset, "to_pdf", lambda *_: b"%PDF-1.7")
    monkeypatch.setattr("os.fsync", full)
    assert main(["render", str(root)]) == 2
    assert (root / HTML_NAME).read_text(encoding="utf-8") == "the old one"
    assert not [path for path in root.iterdir() if path.name.startswith(".")]


@pytest.mark.usefixtures("unsettled")
def test_a_run_without_a_record_has_no_chapter_on_one(bundle_with: Maker) -> None:
    """A scenario of other workloads must not read as a record that went missing."""
    folder = bundle_with()
    run = json.loads((folder / "run.json").read_text())
    run["scenario"]["parameters"]["workloads"] = {"block_scan": {}}
    run["demand"] = None
    (folder / "run.json").write_text(json.dumps(run))
    (folder / "results" / "snb_record.json").unlink()
    bundle = load(folder)
    html = to_html(bundle)
    assert "results/snb_record.json" not in dict(bundle.missing)
    assert "The record</h2>" not in html and "Record integrity" not in html
    assert "Block-size scan</h2>" in html
