"""A run bundle -> report.html, report.pdf and report-data.json beside its evidence.

Promise: the files are complete or none is touched, and the same bundle gives the same files, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from daq_bench.bench_model.bundle.files import read_bytes
from daq_bench.bench_model.bundle.provenance import REPORT_DATA
from daq_bench.bench_model.verdict.judging import VERDICT
from daq_bench.bench_report.document.direct_labels import shortened
from daq_bench.bench_report.document.document import Document, lay_out
from daq_bench.bench_report.output import typeset
from daq_bench.bench_report.output.publishing import Names, files_of, replace_all
from daq_bench.bench_report.qualification import first_page, outline, view
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.tables import requirements as requirement_table
from daq_bench.bench_report.tables.provenance import different_fields

HTML_NAME, PDF_NAME = "report.html", "report.pdf"
NAMES = Names(HTML_NAME, PDF_NAME, REPORT_DATA)
KIND, TEMPLATE = "Qualification report", "report.html.j2"
MOST_NAME, MOST_ID = 24, 56  # characters of the running head, which has one line


def render(
    root: Path, reports_key: str | None = None, altered: int = 0, different: Sequence[str] = ()
) -> tuple[Path, ...]:
    """Writes the reports into the bundle and returns their paths."""
    targets = {root / name: content for name, content in reports_of(root, reports_key, altered, different).items()}
    replace_all(targets)
    return tuple(targets)


def reports_of(
    root: Path, reports_key: str | None = None, altered: int = 0, different: Sequence[str] = ()
) -> dict[str, bytes]:
    """Name and content of each report (see load_for)."""
    bundle = load_for(root, reports_key, altered, different)
    return files_of(document_of(bundle, evidence_of(root, bundle)), TEMPLATE, first_page.content(bundle), NAMES)


def load_for(root: Path, reports_key: str | None = None, altered: int = 0, different: Sequence[str] = ()) -> Bundle:
    """The bundle for reports that will be signed by `reports_key`, after so many files of the evidence were `altered`, and where fields of
    its profiles are `different` from those of whoever renders."""
    bundle = load(root)
    said = {"reports_key": reports_key, "altered": altered, "different": different_fields(different)}
    return replace(bundle, provenance=replace(bundle.provenance, **said))  # type: ignore[arg-type]


def to_html(bundle: Bundle) -> str:
    document = document_of(bundle)
    return typeset.to_html(document, lay_out(document), TEMPLATE, first_page.content(bundle))


def document_of(bundle: Bundle, evidence: Mapping[str, bytes] | None = None) -> Document:
    """`evidence`: files of the bundle to attach to the PDF, by name."""
    run, outcome = bundle.run, view.outcome_of(bundle)
    front = (view.contradictions_table(bundle), requirement_table.summary_table(bundle))
    return Document(
        kind=KIND,
        title=f"Qualification of {run.candidate.name}: {outcome.word} ({run.run_id})",
        subject=f"Qualification report: candidate {run.candidate.name}, scenario {run.scenario.id}, requirements {run.requirement.id}",
        keywords=("qualification", run.scenario.id, run.requirement.id, run.run_id),
        running_left=f"{shortened(run.candidate.name, MOST_NAME)} \u00b7 {shortened(run.run_id, MOST_ID)}",
        running_right=" \u00b7 ".join(part for part in (f"{outcome.glyph} {outcome.word}", outcome.suffix) if part),
        seal=f"SIMULATED, {bundle.provenance.footer}" if run.simulated else bundle.provenance.footer,
        finished=run.finished or run.started,
        front=tuple(table for table in front if table),
        sections=outline.sections(bundle),
        attachments=evidence or {},
    )


def evidence_of(root: Path, bundle: Bundle) -> dict[str, bytes]:
    """Returns the files to attach. A verdict that contradicts its own evidence is not handed on with the report."""
    if bundle.again is None or bundle.again.contradicts:
        return {}
    return {VERDICT: read_bytes(root, VERDICT)}
