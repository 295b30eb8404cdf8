"""Checks that a bundle's reports follow from its evidence: renders them again and compares first the numbers, then the looks.

Promise: a difference that another renderer, library or font explains is reported as such, with the parts that nobody can confirm then."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from daq_bench.bench_model.base.differing import differences, shown
from daq_bench.bench_model.bundle.files import find_document, read_bytes
from daq_bench.bench_model.bundle.provenance import REPORT_DATA
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.document.report_data import traces_in, values_in
from daq_bench.bench_report.document.table import LINE
from daq_bench.bench_report.qualification.render import HTML_NAME, PDF_NAME, reports_of
from daq_bench.bench_report.reading.dataset.provenance import DIFFERENT

SHOWN = 10
MADE_BY = "made_by"
UNSEEN_TAGS = ("style", "script", "svg")


def compared(root: Path, reports_key: str | None) -> dict[str, Any]:
    """Returns `problems`, `notes` and a `summary` of the comparison. Raises BenchError for a bundle that cannot be rendered."""
    stored = find_document(root, REPORT_DATA)
    if stored is None:
        raise BundleError(REPORT_DATA, "is missing")
    made = reports_of(root, reports_key, 0, stated_different(stored))
    again = json.loads(made[REPORT_DATA])
    other = other_versions(stored.get(MADE_BY), again[MADE_BY])
    problems = _numbers(stored, again, other)
    notes = [f"the reports were rendered with {other}"] if other else []
    if not problems and not other and read_bytes(root, REPORT_DATA) != made[REPORT_DATA]:
        problems.append(f"{REPORT_DATA}: says the same, but in other bytes than it is written in")
    for name, words in ((HTML_NAME, words_of_html), (PDF_NAME, words_of_pdf)):
        found = _looks(name, root, made[name], words, other)
        (notes if found and found.startswith("note: ") else problems).extend(
            [found.removeprefix("note: ")] if found else []
        )
    plotted = traces_in(again)
    return {
        "problems": problems,
        "notes": notes,
        "summary": f"{values_in(again) - plotted} texts and numbers, {plotted} plotted values, as in the reports",
    }


def stated_different(stored: Mapping[str, Any]) -> list[str]:
    """Returns the fields that the stored report itself calls different from its renderer's: a report that names none does no harm.

    `daq-bench check-bundle` finds by itself whether they differ from the checker's own."""
    sections = stored.get("sections")
    for section in sections if isinstance(sections, list) else []:
        parts = section.get("parts") if isinstance(section, dict) and section.get("name") == "provenance" else None
        for part in parts if isinstance(parts, list) else []:
            content = part.get("content") if isinstance(part, dict) else None
            for row in content.get("rows", []) if isinstance(content, dict) else []:
                if isinstance(row, list) and len(row) == 2 and row[0] == DIFFERENT:
                    return str(row[1]).split(LINE)
    return []


def other_versions(stored: object, now: dict[str, str]) -> str:
    """Names the renderer and libraries of the stored reports that differ from the installed ones; empty when all are the same."""
    if not isinstance(stored, dict):
        return "an unknown renderer"
    changed = [key for key in sorted(stored.keys() | now.keys()) if stored.get(key) != now.get(key)]
    named = {"renderer_sha256": "another version of this bench's renderer"}
    return ", ".join(named.get(key) or f"{key} {stored.get(key)} (here {now.get(key)})" for key in changed)


def _numbers(stored: dict[str, Any], again: dict[str, Any], other: str) -> list[str]:
    """Returns the differing numbers and texts, each by its name."""
    before, now = ({key: value for key, value in one.items() if key != MADE_BY} for one in (stored, again))
    found = list(islice(differences(before, now, near=0), 10_000))
    why = (
        f". They were rendered with {other}: check with that to tell another formula from an alteration"
        if other
        else ""
    )
    lines = [f"{REPORT_DATA}: {at} is {shown(one, 60)}, recomputed {shown(two, 60)}" for at, one, two in found[:SHOWN]]
    if found:
        lines.append(f"{REPORT_DATA}: {len(found)} numbers or texts are not what the evidence gives{why}")
    return lines


def _looks(name: str, root: Path, made: bytes, words: Any, other: str) -> str | None:
    """Says whether a file differs in its words, or only in how they are set; None where it is the same."""
    try:
        stored = read_bytes(root, name)
    except OSError as error:
        return f"{name}: cannot be read: {error.strerror}"
    if stored == made:
        return None
    try:
        before, now = words(stored), words(made)
    except (ValueError, PyPdfError, KeyError, TypeError, AttributeError, RecursionError, MemoryError) as error:
        return f"{name}: cannot be read ({error})"
    if before != now:
        pairs = zip_longest(before, now, fillvalue="")
        first = next(f"{stated!r:.60}, where it gives {given!r:.60}" for stated, given in pairs if stated != given)
        why = f"; it was rendered with {other}, and only that can confirm it" if other else ""
        return f"{name}: does not say what the evidence gives, first at {first}{why}"
    if other:
        return f"note: {name}: the same words, set by other versions; its layout cannot be compared"
    if name == PDF_NAME and fonts_of(stored) != fonts_of(made):
        return (
            f"note: {name}: the same words, set with other fonts than are installed here; its layout cannot be compared"
        )
    return f"{name}: the same words, but drawn or set differently from what the evidence gives"


class _Words(HTMLParser):
    """Collects the words that a reader of the page sees; the figures' numbers are compared by themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unseen += tag in UNSEEN_TAGS

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in UNSEEN_TAGS

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.found += data.split()


def words_of_html(content: bytes) -> list[str]:
    parser = _Words()
    parser.feed(content.decode("utf-8"))
    return parser.found


def words_of_pdf(content: bytes) -> list[str]:
    """Returns the words without white space and breaks, which belong to the layout."""
    pages = PdfReader(io.BytesIO(content)).pages
    return re.sub(r"\s+", " ", " ".join(page.extract_text() for page in pages)).split()


def fonts_of(content: bytes) -> set[str]:
    """Returns names of the fonts in a PDF, without the mark of their subset."""
    found: set[str] = set()
    for page in PdfReader(io.BytesIO(content)).pages:
        for font in (page.get("/Resources", {}).get("/Font") or {}).values():
            found.add(str(font.get_object().get("/BaseFont", "")).partition("+")[2])
    return found
