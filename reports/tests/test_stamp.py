"""The stamp follows from the rows, and the rows from the evidence: a stored verdict that differs is shown as a contradiction, never as an
outcome."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from bundle_factory import make
from factory_knobs import Knobs
from pypdf import PdfReader

from daq_bench.bench_report.__main__ import main
from daq_bench.bench_report.qualification.render import HTML_NAME, PDF_NAME, document_of, evidence_of, load_for, to_html
from daq_bench.bench_report.reading.load import load

MET = 1  # number of rows of `small` by result, whatever the stored verdict says of them
TITLE = "Qualification of this-machine: CONTRADICTORY (run-1)"
STAMP, WORDS = "\u2260 CONTRADICTORY", "Stored by another version of the bench, or altered; this bench judges:"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A FAIL whose pages are few."""
    knobs = Knobs(
        outcome="FAIL", requirements=3, masked=tuple(2**power for power in range(12, 26)), telemetry=False, duration_s=2.0,
    )  # fmt: skip
    return make(tmp_path_factory.mktemp("small") / "run-1", knobs)


@pytest.fixture
def bundle(tmp_path: Path, small: Path) -> Path:
    return Path(shutil.copytree(small, tmp_path / "run-1"))


def forge(root: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    document = json.loads((root / "verdict.json").read_text(encoding="utf-8"))
    change(document)
    (root / "verdict.json").write_text(json.dumps(document), encoding="utf-8")
    return root


def text_of(html: str) -> str:
    without = re.sub(r"<style.*?</style>|<svg.*?</svg>|<wbr>", "", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", without)))


def pages_of(pdf: PdfReader) -> list[str]:
    return [re.sub(r"\s+", " ", page.extract_text()) for page in pdf.pages]


def row(document: dict[str, Any], number: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = document["requirements"][number]
    return found


FORGERIES: dict[str, tuple[Callable[[dict[str, Any]], object], list[tuple[str, str, str]]]] = {
    "the outcome": (lambda d: d.update(outcome="PASS"), [("outcome", "PASS", "FAIL")]),
    "the mild word": (
        lambda d: d.update(outcome="INADMISSIBLE", declared_rehearsal=True),
        [("declared_rehearsal", "true", "false"), ("outcome", "INADMISSIBLE", "FAIL")],
    ),
    "one row": (lambda d: row(d).update(outcome="PASS"), [("SNB-01.outcome", "PASS", "FAIL")]),
    "one reason": (lambda d: row(d).update(reason="Met"), [("SNB-01.reason", "Met", "Missed")]),
    "a row removed": (lambda d: d["requirements"].pop(0), [("SNB-01", "no row", "a row with outcome FAIL")]),
    "a row entered twice": (lambda d: d["requirements"].append(row(d, 1)), [("SNB-02", "2 rows", "1 row")]),
    "everything": (
        lambda d: (d.update(outcome="PASS", findings=[], requirements=[row(d, 1)]), row(d).update(outcome="PASS")),
        [("outcome", "PASS", "FAIL"), ("SNB-01", "no row", "a row with outcome FAIL")],
    ),
}


def check_words(said: str, differences: list[tuple[str, str, str]]) -> None:
    """The verdict as judged again, each difference, and in two tables the rows' results as judged again: never the stored outcome's."""
    assert WORDS + " FAIL." in said
    assert all(" ".join(difference) in said for difference in differences)
    assert re.findall("\u2714\\s*(\\w+)", said) == 2 * MET * ["met"]


@pytest.mark.usefixtures("unsettled")
@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_verdict_is_stamped_contradictory(bundle: Path, name: str) -> None:
    change, differences = FORGERIES[name]
    found = load(forge(bundle, change))
    html, document = to_html(found), document_of(found, evidence_of(bundle, found))
    assert '<section class="verdict error" aria-label="Outcome">' in html and f"<title>{TITLE}</title>" in html
    check_words(text_of(html), differences)
    assert text_of(html).count(STAMP) == 2  # badge and running head
    assert document.title == TITLE and document.running_right.startswith(STAMP) and document.attachments == {}


def test_each_page_and_the_data_of_a_forged_verdict_are_stamped(bundle: Path) -> None:
    """With the forgery that changes most; setting pages takes seconds."""
    change, differences = FORGERIES["everything"]
    assert main(["render", str(forge(bundle, change))]) == 0
    pdf = PdfReader(bundle / PDF_NAME)
    pages = pages_of(pdf)
    assert all(STAMP in page for page in pages) and WORDS + " FAIL." in pages[0]
    check_words(" ".join(pages), differences)
    assert pdf.metadata and pdf.metadata.title == TITLE and "verdict.json" not in pdf.attachments
    assert text_of((bundle / HTML_NAME).read_text(encoding="utf-8")) == text_of(to_html(load(bundle)))
    stamped = json.loads((bundle / "report-data.json").read_text(encoding="utf-8"))["front"]["outcome"]
    assert (stamped["word"], stamped["css"]) == ("CONTRADICTORY", "error")


def test_the_rows_that_are_shown_are_those_that_were_judged_again(bundle: Path) -> None:
    found = load(forge(bundle, lambda d: row(d).update(outcome="PASS", measured=0.0, decision="met")))
    assert found.verdict is not None
    first = found.verdict.requirements[0]
    assert (first.outcome, first.measured) == ("FAIL", 1234)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("profiles/metrics.yml", None, "there is no such file"),
        ("profiles/requirements/dune-snb.yml", "[", "is not valid YAML"),
    ],
)
@pytest.mark.usefixtures("unsettled")
def test_what_cannot_be_judged_again_is_contradictory_with_the_reason(
    bundle: Path, name: str, content: str | None, why: str
) -> None:
    forge(bundle, lambda d: d.update(outcome="PASS"))
    if content is None:
        (bundle / name).unlink()
    else:
        (bundle / name).write_text(content, encoding="utf-8")
    said = text_of(to_html(load(bundle)))
    assert said.count(STAMP) == 2 and "\u2714" not in said
    assert "The bundle cannot be judged again: " in said and why in said


def test_the_event_that_told_the_outcome_does_not_stand_in_for_it(bundle: Path) -> None:
    event = {"time_utc": "2026-03-14T02:02:49Z", "kind": "verdict", "source": "judge", "text": "PASS", "data": {}}
    with (bundle / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(event) + "\n")
    assert "verdict" in [one.kind for one in load(bundle).events]
    assert "verdict" not in [one.kind for one in load(forge(bundle, lambda d: d.update(outcome="PASS"))).events]


@pytest.mark.usefixtures("unsettled")
def test_an_untouched_verdict_is_not_contradictory(bundle: Path) -> None:
    said = text_of(to_html(load(bundle)))
    assert "CONTRADICTORY" not in said and said.count("\u2718 REHEARSAL FAILED") >= 2


@pytest.mark.usefixtures("unsettled")
def test_a_pass_on_altered_evidence_is_no_green_one(tmp_path: Path) -> None:
    root = make(tmp_path / "run-1", Knobs(outcome="PASS", scale=1.0, scaled_down=False, requirements=1))
    sealed = load_for(root, altered=2)
    html = to_html(replace(sealed, provenance=replace(sealed.provenance, manifest_sha256="0" * 64)))
    assert '<section class="verdict error" aria-label="Outcome">' in html
    assert (
        text_of(html).replace("PASS \u00b7", "PASS").count("PASS altered since it was sealed: not a result") == 2
    )  # badge and running head
    assert "ALTERED since it was sealed: 2 files" in html
    assert '<section class="verdict pass" aria-label="Outcome">' in to_html(load(root))
