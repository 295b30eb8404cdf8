"""Document -> one HTML file and one PDF, from one HTML source.

Promise: the HTML stands alone (no script, no file beside it, no network, and a policy that forbids them); the same document gives the same
HTML, byte for byte; the PDF is PDF/UA-1 with the machine-readable data attached, or there is none.
"""

from __future__ import annotations

import base64
import hashlib
import io
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC
from typing import Any

import jinja2
import weasyprint
from weasyprint.urls import URLFetcher

from daq_bench.bench_model.base.places import REPOSITORY
from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.base.marks import command, visible
from daq_bench.bench_report.document.attachments import DESCRIPTIONS, POINT_HEADS, figure_rows
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.document import Document, Laid, Placed
from daq_bench.bench_report.document.outcome import GLYPHS, STATES, css_name
from daq_bench.bench_report.document.table import PAIRED, Table
from daq_bench.bench_report.output.legible import legible
from daq_bench.bench_report.output.pdf_tags import complete
from daq_bench.bench_report.output.printed import for_paper

TEMPLATES = REPOSITORY / "reports" / "templates"
LARGEST_LINKED = 400_000  # most bytes of a figure's points that the HTML carries itself; the PDF has larger ones
EVERYTHING = "Every text, cell and plotted number of this report, for machines"
MOST_COMPLAINT = 300  # characters: one on a figure quotes all of it
SMALL_TABLE, SMALL_TEXT = 4, 600  # rows and characters that stay together on one page
FRONT, CONTENTS = (
    '<div class="front">',
    "contents",
)  # in the templates: the first page, and the anchor of what follows it
FEW_COLUMNS = 3  # fit the screen of a phone side by side


def to_html(document: Document, laid: Laid, template: str, front: Mapping[str, Any], *, long: bool = False) -> str:
    """`template` extends document.html.j2 and sets the front page from `front`. A `long` document lists its figures and tables."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["prose"] = laid.numbers.prose
    environment.filters["command"] = command
    environment.filters["css_name"] = css_name
    environment.globals |= {
        "glyphs": GLYPHS | STATES,
        "points_link": _points_link,
        "summaries": _summaries,
        "is_small": _is_small,
        "is_cards": _is_cards,
        "paired": PAIRED,
    }
    css = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    html = visible(environment.get_template(template).render(document=document, laid=laid, css=css, long=long, **front))
    return "\n".join(line.rstrip() for line in html.splitlines() if line.strip()) + "\n"


def _is_small(table: Table) -> bool:
    return len(table.rows) <= SMALL_TABLE and sum(len(cell) for row in table.rows for cell in row) <= SMALL_TEXT


def _is_cards(table: Table) -> bool:
    """On a phone each row is a card with the heads in it. The summary leaves columns out instead: the next table has them."""
    return len(table.heads) > FEW_COLUMNS and table.name != "summary"


def _points_link(placed: Placed) -> str:
    """Returns the figure's points as a link that a browser saves; empty where they are too many to carry along."""
    if not isinstance(placed.part, Figure):
        return ""
    rows = [POINT_HEADS, *figure_rows(placed.label, placed.part)]
    text = "\n".join(",".join(f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row) for row in rows)
    encoded = base64.b64encode(visible(text).encode()).decode()
    return f"data:text/csv;charset=utf-8;base64,{encoded}" if len(encoded) <= LARGEST_LINKED else ""


def _summaries(figure: Figure) -> list[tuple[str, str, str, str, str]]:
    """Returns panel, series, n, least and most of each drawn line and bar, for those who cannot see it."""
    found = []
    for trace in figure.data:
        values = [value for value in (trace.y or trace.high) if value == value]
        if trace.series and trace.kind in ("line", "bars", "band") and values:
            found.append(
                (
                    trace.panel,
                    trace.series,
                    str(len(values)),
                    in_digits(min(values)),
                    f"{in_digits(max(values))} ({trace.y_label})",
                )
            )
    return found


def pages_of(html: str, title: str) -> weasyprint.Document:
    """Sets the pages without drawing them. `title` names the document in a complaint. A front that is longer than its page is followed by
    the contents at once: its last rows do not stand alone on the second."""
    fetcher = URLFetcher(allowed_protocols=("data",), fail_on_errors=True)  # the report must stand alone
    paper = for_paper(legible(html))
    with _complete(title):
        pages = weasyprint.HTML(string=paper, url_fetcher=fetcher).render()
        if any(CONTENTS in page.anchors for page in pages.pages[2:]):
            over = paper.replace(FRONT, FRONT.replace("front", "front over"), 1)
            pages = weasyprint.HTML(string=over, url_fetcher=fetcher).render()
        return pages


def to_pdf(pages: weasyprint.Document, html: str, document: Document) -> bytes:
    """PDF/UA-1 of `html`'s pages: tagged, with alternative texts, the document's attachments attached.

    Its dates are the run's: it says when it was measured, and the same document gives the same bytes."""
    attached = [
        weasyprint.Attachment(file_obj=io.BytesIO(content), name=name, description=DESCRIPTIONS.get(name, EVERYTHING), relationship="Data",
        created=document.finished, modified=document.finished)
        for name, content in sorted(document.attachments.items())
    ]  # fmt: skip
    moment = document.finished.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    pages.metadata.created = pages.metadata.modified = moment
    pages.metadata.attachments = [*(pages.metadata.attachments or ()), *attached]
    identifier = hashlib.sha256(html.encode()).digest()[:16]
    with _complete(document.title):
        return bytes(pages.write_pdf(pdf_variant="pdf/ua-1", pdf_identifier=identifier, finisher=complete))


@contextmanager
def _complete(title: str) -> Iterator[None]:
    """Raises BundleError if WeasyPrint logs an error within: a report with a hole in it is not a report."""
    with _complaints() as complaints:
        yield
    if complaints:
        raise BundleError(f"the PDF of {title}", f"could not be set completely: {complaints[0]:.{MOST_COMPLAINT}}")


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """Collects the errors that WeasyPrint would only log."""
    found: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    logger, handler = logging.getLogger("weasyprint"), Collector(logging.ERROR)
    before = logger.level, logger.propagate, list(logger.handlers)
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.ERROR)
    try:
        yield found
    finally:
        logger.level, logger.propagate, logger.handlers = before
