"""Bundle -> report.html and report.pdf, from one HTML source, and report-data.json with every number of theirs.

Promise: all files are complete or none is touched; the HTML stands alone (no script, no file beside it, no
network), and the same bundle gives the same files, byte for byte.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
import weasyprint
from markupsafe import Markup, escape
from weasyprint.urls import URLFetcher

from bench_model.provenance import REPORT_DATA

from . import report_data, requirement_table, tables, tables_measured, view
from .dataset import Bundle
from .errors import BundleError
from .figures.blocks import block_figure
from .figures.canvas import Figure
from .figures.host import host_figure
from .figures.latency import latency_figure
from .figures.plotted import collecting
from .figures.record import record_figures
from .glossary import TERMS
from .load import load
from .provenance import made_by, provenance_table
from .sections.registry import sections_of
from .sections.section import Lacking, Part

TEMPLATES = Path(__file__).resolve().parent.parent / "templates"
HTML_NAME, PDF_NAME = "report.html", "report.pdf"
QUANTITY = re.compile(r"\(?[^\s(]*\u202f[^\s,;)]+\)?|\d[\d.]*\s[kMGT]?i?B(?:/s)?\b|\bn = \S+")
FIRST_SECTIONS = (
    ("requirements", "Requirements"),
    ("candidate", "The candidate"),
)
OF_WORKLOADS = {"snb_record": ("record", "The record"), "block_scan": ("scan", "Block-size scan")}
LAST_SECTIONS = (
    ("host", "The candidate during the run"),
    ("tuning", "Tuning"),
    ("events", "Events and deviations"),
    ("environment", "Environment and versions"),
    ("reproduce", "How to reproduce this run"),
    ("provenance", "Provenance"),
    ("terms", "Definitions"),
)


def render(bundle_path: Path, reports_key: str | None = None, altered: int = 0) -> tuple[Path, ...]:
    """Writes the reports into the bundle and returns their paths."""
    made = reports_of(load_for(bundle_path, reports_key, altered))
    targets = {bundle_path / name: content for name, content in made.items()}
    _replace_all(targets)
    return tuple(targets)


def load_for(bundle_path: Path, reports_key: str | None = None, altered: int = 0) -> Bundle:
    """The bundle for reports that will be signed by `reports_key`, and after so many files were `altered`."""
    bundle = load(bundle_path)
    return replace(bundle, provenance=replace(bundle.provenance, reports_key=reports_key, altered=altered))


def reports_of(bundle: Bundle) -> dict[str, bytes]:
    """Name and content of each report."""
    with collecting() as drawn:
        content = _content(bundle)
    html = _to_html(content)
    data = report_data.to_text(report_data.document(content, drawn, made_by())).encode("utf-8")
    return {HTML_NAME: html.encode("utf-8"), PDF_NAME: to_pdf(html, bundle, data), REPORT_DATA: data}


def to_html(bundle: Bundle) -> str:
    return _to_html(_content(bundle))


def _to_html(content: Mapping[str, Any]) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["unbroken"] = unbroken
    return environment.get_template("report.html.j2").render(**content)


def unbroken(text: str) -> Markup:
    """The text with every number and its unit kept on one line; "GB/s" would else break behind its stroke."""
    parts: list[str] = []
    at = 0
    for match in QUANTITY.finditer(text):
        parts += [escape(text[at : match.start()]), Markup('<span class="q">{}</span>').format(match.group())]
        at = match.end()
    return Markup("").join([*parts, escape(text[at:])])


def _content(bundle: Bundle) -> dict[str, Any]:
    record, scan, latency, host = (
        record_figures(bundle),
        block_figure(bundle),
        latency_figure(bundle),
        host_figure(bundle),
    )
    own = sections_of(bundle)
    drawn = [part for section in own for part in section.parts if isinstance(part, Figure)]
    figures = [*record, *(figure for figure in (latency, scan) if figure), *drawn, *([host] if host else [])]
    run = bundle.run
    titles = [*FIRST_SECTIONS, *_fixed_sections(bundle), *((one.name, one.title) for one in own), *LAST_SECTIONS]
    return {
        "css": (TEMPLATES / "report.css").read_text(encoding="utf-8"),
        "bundle": bundle, "run": run, "outcome": view.outcome_of(bundle),
        "title": f"Qualification of {run.candidate.name}",
        "keywords": ", ".join(["qualification", run.scenario_id, run.requirement_id, run.run_id]),
        "started": view.utc(run.started), "finished": view.utc(run.finished) if run.finished else None,
        "sections": [(number, name, title) for number, (name, title) in enumerate(titles, 1)],
        "own_sections": [(one.name, [_part(part) for part in one.parts]) for one in own],
        "shown": {name for name, _ in titles},
        "candidate": view.candidate_pairs(bundle),
        "devices": [(device.name, view.device_pairs(device)) for device in run.target.devices] if run.target else [],
        "demand": view.demand_cells(bundle), "requirements": requirement_table.requirement_rows(bundle),
        "facts": view.fact_lines(bundle), "shared_reason": requirement_table.shared_reason(bundle),
        "shared_n": requirement_table.shared_n(bundle), "requirement_notes": requirement_table.notes(bundle),
        "record_figures": record, "scan_figure": scan, "latency_figure": latency, "host_figure": host,
        "number_of": {figure.name: number for number, figure in enumerate(figures, 1)},
        "tables": _tables(bundle), "provenance": bundle.provenance, "commands": view.commands(bundle), "terms": TERMS,
    }  # fmt: skip


def _fixed_sections(bundle: Bundle) -> list[tuple[str, str]]:
    """Of the two oldest workloads those that the run asked for or has results of."""
    held = {"snb_record": bool(bundle.repetitions), "block_scan": bundle.block_scan is not None}
    shown = [name for name in OF_WORKLOADS if name in bundle.run.workloads or held[name]]
    integrity = [("integrity", "Record integrity")] if "snb_record" in shown else []
    return [*(OF_WORKLOADS[name] for name in shown), *integrity]


def _part(part: Part) -> tuple[str, Part]:
    kinds = {Figure: "figure", tables.Table: "table", Lacking: "lacking", str: "text"}
    return kinds[type(part)], part


def _tables(bundle: Bundle) -> Mapping[str, tables.Table | None]:
    run = bundle.run
    makers = (
        tables_measured.block_table, tables_measured.latency_table, tables.tuning_table,
        tables_measured.written_table, tables_measured.verified_table,
        tables_measured.fault_table, tables.event_table, tables.accounting_table, tables.collector_table, tables.smart_table,
        tables_measured.parameter_table,
    )  # fmt: skip
    made = {maker.__name__.removesuffix("_table"): maker(bundle) for maker in makers}
    made["provenance"] = provenance_table(bundle.provenance)
    made["versions"] = tables.pairs_table(("Software", "Version"), run.versions, "Software that took part.", "versions")
    made["environment"] = tables.pairs_table(
        ("Environment", "Value"), run.environment, "The bench's surroundings.", "environment"
    )
    return made


def to_pdf(html: str, bundle: Bundle, data: bytes) -> bytes:
    """PDF/UA-1: tagged, with alternative texts, `data` attached. Its dates are the run's: it says when it was measured, and the
    same bundle gives the same bytes."""
    fetcher = URLFetcher(allowed_protocols=("data",), fail_on_errors=True)  # the report must stand alone
    moment = (bundle.run.finished or bundle.run.started).astimezone(UTC)
    with _complaints() as complaints:
        document = weasyprint.HTML(string=html, url_fetcher=fetcher).render()
        document.metadata.created = document.metadata.modified = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        document.metadata.attachments = [_attached(data, moment)]
        pdf = bytes(
            document.write_pdf(pdf_variant="pdf/ua-1", pdf_identifier=hashlib.sha256(html.encode()).digest()[:16])
        )
    if complaints:
        raise BundleError(PDF_NAME, f"could not be set completely: {complaints[0]}")
    return pdf


def _attached(data: bytes, moment: datetime) -> Any:
    return weasyprint.Attachment(
        string=data, name=REPORT_DATA, description="Every number of this report, for machines", created=moment, modified=moment,
        relationship="Data",
    )  # fmt: skip


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """What WeasyPrint would only log as an error: a report with a hole in it is not a report."""
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
