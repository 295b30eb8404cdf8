"""A run bundle -> report.html and report.pdf beside its evidence.

Promise: both files are complete or neither is touched, and the same bundle gives the same HTML, byte for byte.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import first_page, outline, requirement_table, typeset, view
from .dataset import Bundle
from .document import Document, Laid, lay_out
from .errors import BundleError
from .figures.canvas import shortened
from .load import load

HTML_NAME, PDF_NAME = "report.html", "report.pdf"
KIND, TEMPLATE = "Qualification report", "report.html.j2"
VERDICT_NAME = "verdict.json"
MOST_NAME, MOST_ID = 24, 56  # characters of the running head, which has one line


def render(bundle_path: Path) -> tuple[Path, Path]:
    """Writes the two reports into the bundle and returns their paths."""
    bundle = load(bundle_path)
    document = document_of(bundle, _evidence(bundle_path))
    laid = lay_out(document)
    html = _html(bundle, document, laid)
    pdf = typeset.to_pdf(html, document, laid)
    targets = (bundle_path / HTML_NAME, bundle_path / PDF_NAME)
    _replace_all(dict(zip(targets, (html.encode("utf-8"), pdf), strict=True)))
    return targets


def to_html(bundle: Bundle) -> str:
    document = document_of(bundle)
    return _html(bundle, document, lay_out(document))


def document_of(bundle: Bundle, evidence: Mapping[str, bytes] | None = None) -> Document:
    """`evidence`: files of the bundle to attach to the PDF, by name."""
    run, outcome = bundle.run, view.outcome_of(bundle)
    summary = requirement_table.summary_table(bundle)
    return Document(
        kind=KIND,
        title=f"Qualification of {run.candidate.name}: {outcome.word} ({run.run_id})",
        subject=f"Qualification report: candidate {run.candidate.name}, scenario {run.scenario_id}, requirements {run.requirement_id}",
        keywords=("qualification", run.scenario_id, run.requirement_id, run.run_id),
        running_left=f"{shortened(run.candidate.name, MOST_NAME)} \u00b7 {shortened(run.run_id, MOST_ID)}",
        running_right=" ".join(part for part in (outcome.glyph, outcome.word, outcome.suffix) if part),
        finished=run.finished or run.started,
        front=(summary,) if summary else (),
        sections=outline.sections(bundle),
        attachments=evidence or {},
    )


def _html(bundle: Bundle, document: Document, laid: Laid) -> str:
    front: dict[str, Any] = first_page.content(bundle)
    return typeset.to_html(document, laid, TEMPLATE, front)


def _evidence(root: Path) -> dict[str, bytes]:
    path = root / VERDICT_NAME
    return {VERDICT_NAME: path.read_bytes()} if path.is_file() else {}


def _replace_all(contents: Mapping[Path, bytes]) -> None:
    """Writes every file beside its target first; only when all are on disk do they take their places."""
    written: list[tuple[str, Path]] = []
    try:
        for target, content in contents.items():
            written.append((_write_beside(target, content), target))
        while written:
            temporary, target = written[0]
            Path(temporary).replace(target)
            written.pop(0)
    except OSError as error:
        raise BundleError(
            str(next(iter(contents)).parent), f"the report cannot be written: {error.strerror}"
        ) from error
    finally:
        for temporary, _ in written:
            Path(temporary).unlink(missing_ok=True)


def _write_beside(target: Path, content: bytes) -> str:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fchmod(stream.fileno(), 0o644)
            os.fsync(stream.fileno())
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
    return name
