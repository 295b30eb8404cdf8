"""A document on several runs: its first page, and the way to its files.

Promise: as for a run's report, all files are complete or none is touched, and the same input gives the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.calling import typed
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.direct_labels import shortened
from daq_bench.bench_report.document.document import Document, lay_out
from daq_bench.bench_report.document.outcome import Outcome
from daq_bench.bench_report.document.section import Section
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.output import typeset
from daq_bench.bench_report.output.publishing import Names, files_of, replace_all

TEMPLATE = "decision.html.j2"
MOST_RUNNING = 80  # characters of the running head, which has one line


@dataclass(frozen=True)
class Badge:
    """`css`: one of the classes that report.css and decision.css know."""

    word: str
    glyph: str
    css: str
    suffix: str = ""


def badge_of(outcome: Outcome) -> Badge:
    return Badge(outcome.word, outcome.glyph, outcome.css, outcome.suffix)


@dataclass(frozen=True)
class Paper:
    """Finished text. `boxes`: (warning, lines). `moment`: when its newest evidence was made, which is the PDF's date. `seal`: see
    provenance.seal_of_runs."""

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
    seal: str
    mark: str = ""  # stands on every page beside the badge
    figure: Figure | None = None  # on the first page


def write(paper: Paper, folder: Path, stem: str, machine_readable: str) -> list[Path]:
    """Writes `<stem>.html`, `.pdf`, `.json` and `-data.json` into `folder`, which it makes where it is missing."""
    content = machine_readable.encode()
    names = Names(f"{stem}.html", f"{stem}.pdf", f"{stem}-data.json")
    found = files_of(document_of(paper, {f"{stem}.json": content}), TEMPLATE, _front(paper), names)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BundleError(
            str(folder), f"cannot be made: {error.strerror}", f"Name a folder with {typed('--output')}"
        ) from error
    contents = {folder / name: each for name, each in {**found, f"{stem}.json": content}.items()}
    replace_all(contents)
    return list(contents)


def to_html(paper: Paper) -> str:
    document = document_of(paper, {})
    return typeset.to_html(document, lay_out(document), TEMPLATE, _front(paper))


def document_of(paper: Paper, attachments: dict[str, bytes]) -> Document:
    return Document(
        kind=paper.kicker,
        title=f"{paper.kicker}: {paper.title}",
        subject=f"{paper.kicker}: {paper.meaning}",
        keywords=paper.keywords,
        running_left=shortened(paper.running, MOST_RUNNING),
        running_right=" ".join(
            part for part in (paper.badge.glyph, paper.badge.word, paper.mark and f"\u00b7 {paper.mark}") if part
        ),
        seal=paper.seal,
        finished=paper.moment,
        front=(paper.summary, *((paper.figure,) if paper.figure else ())),
        sections=paper.sections,
        attachments=attachments,
    )


def _front(paper: Paper) -> dict[str, Any]:
    names: Sequence[str] = ("title", "meta", "badge", "meaning", "reasons", "boxes", "notes", "mark")
    return {name: getattr(paper, name) for name in names}
