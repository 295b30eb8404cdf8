"""Document -> its files: HTML, PDF, and a JSON document with every number of both, which the PDF carries too.

Promise: the same document gives the same bytes; all files take their places together, or none does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.whole_files import written_beside
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.document import report_data
from daq_bench.bench_report.document.attachments import document_attachments
from daq_bench.bench_report.document.document import Document, lay_out
from daq_bench.bench_report.document.made_by import made_by
from daq_bench.bench_report.output import typeset

LONG_PAGES = 20  # from this number on, readers look for a figure or a table by its list


@dataclass(frozen=True)
class Names:
    """File names of one kind of report."""

    html: str
    pdf: str
    data: str


def files_of(document: Document, template: str, front: Mapping[str, Any], names: Names) -> dict[str, bytes]:
    """Returns name and content of each file. `template` sets the front page from `front` (see typeset.to_html)."""
    laid = lay_out(document)
    html = typeset.to_html(document, laid, template, front)
    data = report_data.to_text(report_data.document_data(document, laid, front, made_by())).encode()
    whole = replace(document, attachments={**document.attachments, **document_attachments(laid), names.data: data})
    pages = typeset.pages_of(html, document.title)
    if len(pages.pages) >= LONG_PAGES:
        html = typeset.to_html(document, laid, template, front, long=True)
        pages = typeset.pages_of(html, document.title)
    return {names.html: html.encode(), names.pdf: typeset.to_pdf(pages, html, whole), names.data: data}


def replace_all(contents: Mapping[Path, bytes]) -> None:
    """Writes every file beside its target first; only when all are on disk do they take their places."""
    written: list[tuple[Path, Path]] = []
    try:
        for target, content in contents.items():
            written.append((written_beside(target, content, durable=True), target))
        while written:
            temporary, target = written[0]
            temporary.replace(target)
            written.pop(0)
    except OSError as error:
        raise BundleError(
            str(next(iter(contents)).parent), f"the report cannot be written: {error.strerror}"
        ) from error
    finally:
        for temporary, _ in written:
            temporary.unlink(missing_ok=True)
