"""Documents about more than one run: an own template with report.css -> HTML and PDF, written whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
import weasyprint
from weasyprint.urls import URLFetcher

from .errors import BundleError
from .figures.canvas import Figure
from .render import TEMPLATES, _complaints, _replace_all, unbroken
from .tables import Table

KIND = "qualification report"  # what report.css writes at the foot of a page


@dataclass(frozen=True)
class Section:
    """`parts` in order: a figure, a table, or a paragraph."""

    name: str
    title: str
    parts: tuple[Figure | Table | str, ...]


def to_html(template: str, kind: str, sections: Sequence[Section], content: Mapping[str, Any]) -> str:
    """`kind` stands at the foot of each page, such as `trend report`. Figures and tables are numbered in order."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["unbroken"] = unbroken
    parts = [part for section in sections for part in section.parts]
    css = (TEMPLATES / "report.css").read_text(encoding="utf-8").replace(KIND, kind)
    return environment.get_template(template).render(
        css=css,
        own_css=(TEMPLATES / "pages.css").read_text(encoding="utf-8"),
        kind=kind,
        sections=[(number, one, [(_kind(part), part) for part in one.parts]) for number, one in enumerate(sections, 1)],
        figure_number={one.name: n for n, one in enumerate([p for p in parts if isinstance(p, Figure)], 1)},
        table_number={one.name: n for n, one in enumerate([p for p in parts if isinstance(p, Table)], 1)},
        **content,
    )


def _kind(part: Figure | Table | str) -> str:
    return "figure" if isinstance(part, Figure) else "table" if isinstance(part, Table) else "text"


def to_pdf(html: str, moment: datetime) -> bytes:
    """PDF/UA-1; its date is that of the newest run. Raises BundleError where anything could not be set."""
    fetcher = URLFetcher(allowed_protocols=("data",), fail_on_errors=True)
    with _complaints() as complaints:
        document = weasyprint.HTML(string=html, url_fetcher=fetcher).render()
        document.metadata.created = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        pdf = bytes(document.write_pdf(pdf_variant="pdf/ua-1"))
    if complaints:
        raise BundleError("the PDF", f"could not be set completely: {complaints[0]}")
    return pdf


def write(folder: Path, contents: Mapping[str, str | bytes]) -> list[Path]:
    """Writes every file or none; makes the folder. Raises BundleError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BundleError(str(folder), f"cannot be made: {error.strerror}") from error
    made = {folder / name: text.encode("utf-8") if isinstance(text, str) else text for name, text in contents.items()}
    _replace_all(made)
    return list(made)
