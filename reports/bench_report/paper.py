"""A document on several runs: HTML and PDF from one source, with the machine-readable document attached to the PDF.

Promise: as of a run's report (`render`): both files are complete or neither is touched, the HTML stands alone, and the same
input gives the same HTML, byte for byte."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import jinja2
import weasyprint
from weasyprint.urls import URLFetcher

from .errors import BundleError
from .figures.canvas import Figure
from .render import TEMPLATES, _complaints, _replace_all, unbroken
from .sections.section import Lacking, Part, Section
from .tables import Table

FOOT = "qualification report"  # of report.css, which a document of another kind replaces


@dataclass(frozen=True)
class Badge:
    """`css`: one of the classes that report.css and decision.css know."""

    word: str
    glyph: str
    css: str
    suffix: str = ""


@dataclass(frozen=True)
class Paper:
    """Finished text. `boxes`: (warning, lines). `moment`: when its newest evidence was made, which is the PDF's date."""

    kicker: str
    title: str
    meta: tuple[str, ...]
    running: str
    badge: Badge
    meaning: str
    reasons: tuple[str, ...]
    boxes: tuple[tuple[str, tuple[str, ...]], ...]
    summary: Table
    notes: tuple[str, ...]
    sections: tuple[Section, ...]
    keywords: tuple[str, ...]
    moment: datetime


def write(paper: Paper, folder: Path, stem: str, machine_readable: str) -> list[Path]:
    """`<stem>.html`, `.pdf` and `.json` in `folder`, which is made where it is missing."""
    html = to_html(paper)
    attached = f"{stem}.json"
    pdf = to_pdf(html, paper, {attached: machine_readable.encode("utf-8")})
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BundleError(str(folder), f"cannot be made: {error.strerror}", "Name a folder with -o") from error
    contents = {f"{stem}.html": html.encode("utf-8"), f"{stem}.pdf": pdf, attached: machine_readable.encode("utf-8")}
    _replace_all({folder / name: content for name, content in contents.items()})
    return [folder / name for name in contents]


def to_html(paper: Paper) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["unbroken"] = unbroken
    css = "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in ("report.css", "decision.css"))
    css = css.replace(FOOT, re.sub(r"[^a-z ]", "", paper.kicker.lower()))
    parts, number = {}, 0
    for section in paper.sections:
        shown = []
        for part in section.parts:
            number += isinstance(part, Figure)
            shown.append((_kind(part), part, number))
        parts[section.name] = shown
    return environment.get_template("decision.html.j2").render(paper=paper, css=css, parts=parts)


def _kind(part: Part) -> str:
    kinds: Sequence[tuple[type, str]] = ((Figure, "figure"), (Table, "table"), (Lacking, "lacking"))
    return next((name for kind, name in kinds if isinstance(part, kind)), "text")


def to_pdf(html: str, paper: Paper, attached: Mapping[str, bytes]) -> bytes:
    """PDF/UA-1: tagged, with alternative texts, dated like its newest evidence."""
    fetcher = URLFetcher(allowed_protocols=("data",), fail_on_errors=True)
    moment = paper.moment.astimezone(UTC)
    with _complaints() as complaints:
        document = weasyprint.HTML(string=html, url_fetcher=fetcher).render()
        document.metadata.created = document.metadata.modified = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        document.metadata.attachments = [
            weasyprint.Attachment(string=content, name=name, description="What this document says, for machines",
                                  created=moment, modified=moment, relationship="Data")
            for name, content in attached.items()
        ]  # fmt: skip
        pdf = bytes(document.write_pdf(pdf_variant="pdf/ua-1"))
    if complaints:
        raise BundleError(paper.kicker, f"could not be set completely: {complaints[0]}")
    return pdf
