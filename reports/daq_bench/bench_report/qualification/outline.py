"""Bundle -> the qualification report's sections, in the order in which a reader who was not there needs them.

Promise: every section names its missing parts; a workload that a run was not asked for has no section.
"""

from __future__ import annotations

from collections.abc import Sequence

from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.verdict.conclusion import conclude
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.outcome import GLYPHS
from daq_bench.bench_report.document.section import Bullets, Code, Facts, Heading, Lacking, Part, Section, Warned
from daq_bench.bench_report.document.table import Table, pairs_table
from daq_bench.bench_report.figures.blocks import block_figure
from daq_bench.bench_report.figures.drives import drives_figure
from daq_bench.bench_report.figures.heat_and_rate import heat_and_rate_figure
from daq_bench.bench_report.figures.host import host_figure
from daq_bench.bench_report.figures.record import record_figures
from daq_bench.bench_report.figures.written import written_figure
from daq_bench.bench_report.qualification import view
from daq_bench.bench_report.qualification.findings import RULE, findings_table, reasons_of_verdict
from daq_bench.bench_report.qualification.glossary import TERMS
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.sections.registry import sections_of
from daq_bench.bench_report.sections.telemetry_account import telemetry_account_section
from daq_bench.bench_report.tables import measured as tables_measured
from daq_bench.bench_report.tables import requirements as requirement_table
from daq_bench.bench_report.tables import run as tables
from daq_bench.bench_report.tables.drives import drive_table, smart_table
from daq_bench.bench_report.tables.hardware import hardware_parts
from daq_bench.bench_report.tables.provenance import provenance_table
from daq_bench.bench_report.tables.raw import raw_tables
from daq_bench.bench_report.workloads.latency_under_load.figures import latency_figure
from daq_bench.bench_report.workloads.snb_record.buffer import buffer_figure
from daq_bench.bench_report.workloads.snb_record.latency_time import latency_time_figure
from daq_bench.bench_report.workloads.snb_record.repetitions import repetition_figures

SEALS = (
    "The hash at the foot of every page is that of MANIFEST.sha256, which holds the hash of every file of the evidence. A "
    "signature proves that the holder of its key vouched for exactly these files, not that what they say is true, nor when it was signed. "
    "Without a signature nobody vouches: whoever alters the files can write the hashes anew. "
    "REPORTS.sha256 seals this report; report-data.json holds every number of it for machines, unrounded where the bundle has more digits, "
    "and is also attached to the PDF."
)
ON_FIRST_PAGE = frozenset({"Description", "Processor", "Memory", "System", "Target", "Scenario", "Requirements"})
ALWAYS_DEFINED = frozenset({"GB, GiB", "Scale", "Margin", "Met, missed, undecided"})
NO_RECORD = "no record result (results/snb_record.json), so nothing can be said about lost superchunks."


def sections(bundle: Bundle) -> tuple[Section, ...]:
    made = (
        _requirements(bundle), _findings(bundle), _candidate(bundle), _tuning(bundle), *_workloads(bundle), *sections_of(bundle),
        _host(bundle), telemetry_account_section(bundle), _health(bundle), _events(bundle), _environment(bundle), _reproduce(bundle),
        _provenance(bundle),
    )  # fmt: skip
    found = [one for one in made if one is not None]
    return (*found, *_appendices(bundle, found))


def _or(part: Part | None, lacking: str) -> list[Part]:
    return [Lacking(lacking)] if part is None else [part]


def _requirements(bundle: Bundle) -> Section:
    parts = _or(requirement_table.requirement_table(bundle), "no requirement was judged in this run.")
    shared = requirement_table.shared_reason(bundle)
    if shared:
        parts.append(f"Rows without a reason: {shared[0].lower()}{shared[1:]}.")
    sources = view.profile_sources(bundle)
    if sources:
        parts.append(sources)
    return Section("requirements", "Requirements", (*parts, *requirement_table.notes(bundle)))


def _findings(bundle: Bundle) -> Section | None:
    table = findings_table(bundle)
    if table is None:
        return None
    reasons = reasons_of_verdict(bundle)
    told: list[Part] = [Heading("Why the verdict is what it is"), Bullets(reasons)] if reasons else []
    return Section("findings", "Findings", (table, RULE, *told))


def _candidate(bundle: Bundle) -> Section:
    drives = drive_table(bundle)
    return Section(
        "candidate", "The candidate",
        (Facts(tuple(pair for pair in view.candidate_pairs(bundle) if pair.label not in ON_FIRST_PAGE)),
         *_or(drives, "the run recorded no device.")),
    )  # fmt: skip


def _workloads(bundle: Bundle) -> list[Section]:
    """Returns the sections of the two oldest workloads, where the run asked for them or has results."""
    asked = bundle.run.scenario.workloads
    record = "snb_record" in asked or bool(bundle.repetitions)
    scan = "block_scan" in asked or bundle.block_scan is not None
    return [
        *([_record(bundle)] if record else []),
        *([_scan(bundle)] if scan else []),
        *([_integrity(bundle)] if record else []),
    ]


def _record(bundle: Bundle) -> Section:
    around = buffer_figure(bundle)
    drawn: list[Part] = [*record_figures(bundle), *([around] if around else []), *repetition_figures(bundle)]
    found = (latency_time_figure(bundle), latency_figure(bundle), tables_measured.latency_table(bundle))
    latency: list[Part] = [part for part in found if part]
    return Section(
        "record", "The record",
        (
            *(drawn or [Lacking("no record was written, or it left no series to draw.")]),
            *(latency or [Lacking("no latency was recorded.")]),
        ),
    )  # fmt: skip


def _scan(bundle: Bundle) -> Section:
    figure: Figure | None = block_figure(bundle)
    found = (tables_measured.block_table(bundle), tables_measured.large_blocks_table(bundle))
    parts: list[Part] = _or(figure, "no admissible point of a block-size scan.")
    parts += [one for one in (written_figure(bundle),) if one]
    return Section("scan", "Block-size scan", (*parts, *(table for table in found if table)))


def _integrity(bundle: Bundle) -> Section:
    written, verified = tables_measured.written_table(bundle), tables_measured.verified_table(bundle)
    found = (written, verified, tables_measured.fault_table(bundle), tables_measured.parameter_table(bundle))
    parts: list[Part] = [table for table in found if table]
    if written is None:
        parts.append(Lacking(NO_RECORD))
    elif verified is None:
        parts.append(Lacking("the record was not read back."))
    return Section("integrity", "Record integrity", tuple(parts))


def _host(bundle: Bundle) -> Section:
    parts = _or(host_figure(bundle), "no telemetry of the candidate was collected.")
    parts += [figure for figure in (drives_figure(bundle), heat_and_rate_figure(bundle)) if figure]
    if bundle.host and bundle.host.torn:
        parts.append(
            "The last line of telemetry/points.lp is cut short, as an interrupted run leaves it; it is not used."
        )
    parts += _or(tables.accounting_words(bundle), "no telemetry accounting (telemetry/summary.json).")
    collectors = tables.collector_table(bundle)
    parts += [part for part in (collectors, tables.collectors_without_gap(bundle)) if part]
    return Section("host", "The candidate during the run", tuple(parts))


def _tuning(bundle: Bundle) -> Section:
    if bundle.tuning is None:
        return Section("tuning", "Tuning", (Lacking("no tuning was recorded (facts/tuning.json)."),))
    kept = tables.tuning_left_alone(bundle)
    found = [part for part in (tables.tuning_table(bundle), kept) if part]
    return Section("tuning", "Tuning", tuple(found))


def _health(bundle: Bundle) -> Section:
    lacking = "no health record of a drive (facts/smart-before.json, facts/smart-after.json)."
    parts = [*_or(smart_table(bundle), lacking), *hardware_parts(bundle)]
    return Section("health", "The drives' health before and after", tuple(parts))


def _events(bundle: Bundle) -> Section:
    parts = _or(tables.event_table(bundle), "no events (events.jsonl).")
    if bundle.missing:
        parts += [Heading("Not in the bundle"), Bullets(tuple(f"{lack} ({name})" for name, lack in bundle.missing))]
    return Section("events", "Events", tuple(parts))


def _environment(bundle: Bundle) -> Section:
    run = bundle.run
    parts: list[Part] = []
    if run.versions:
        named = ", ".join(f"{name}\u00a0{version}" for name, version in run.versions.items() if version is not None)
        parts.append(f"Software that took part: {named}.")
    around = pairs_table(("Environment", "Value"), _surroundings(run), "The bench's surroundings.", "environment")
    if around:
        parts.append(around)
    return Section("environment", "Environment and versions", tuple(parts or [Lacking("no versions were recorded.")]))


def _surroundings(run: Run) -> list[tuple[str, str]]:
    return [(key, str(value)) for key, value in (run.host_environment or {}).items() if value is not None]


def _reproduce(bundle: Bundle) -> Section:
    run = bundle.run
    here = f"runs/{run.run_id}"
    parts: list[Part] = [Code("On the same candidate, from the bench's repository:", tuple(view.commands(bundle)))]
    if run.git and run.git.dirty:
        parts.append(
            Warned("The bench had uncommitted changes", "when it ran: the commit alone does not reproduce it.")
        )
    if not (run.git and run.git.commit):
        parts.append(Lacking("the commit of the bench was not recorded."))
    parts.append(Code(
        "To judge and report again from the recorded evidence, without the candidate:",
        tuple(f"daq-bench {command} {here}" for command in ("judge", "report", "check-bundle")),
    ))  # fmt: skip
    hands, count = view.by_hand(bundle)
    if hands:
        several = (
            f" (one of each kind; {count} measurements in results/raw/ have such a script)"
            if count > len(hands)
            else ""
        )
        parts.append(Code(
            f"To run one measurement of fio by hand, on the candidate: its script gives the job file beside it its values{several}.",
            tuple(hands),
        ))  # fmt: skip
    told = "; ".join(f"{pair.label.lower()}: {pair.value}" for pair in view.contents_pairs(bundle))
    parts.append(f"Where everything is. {told[:1].upper()}{told[1:]}.")
    return Section("reproduce", "How to reproduce this run", tuple(parts))


def _provenance(bundle: Bundle) -> Section:
    command = f"ALLOWED_SIGNERS=FILE daq-bench check-bundle runs/{bundle.run.run_id}"
    return Section(
        "provenance", "Provenance",
        (
            provenance_table(bundle.provenance),
            SEALS,
            Code("To verify both seals, the verdict and every number of this report:", (command,)),
        ),
    )  # fmt: skip


def _said(sections: Sequence[Section]) -> str:
    """Returns the words of all parts, in which a term of the glossary may occur."""
    found: list[str] = []
    for part in (part for section in sections for part in section.parts):
        if isinstance(part, Table):
            found += [part.caption, *part.heads, *(cell for row in part.rows for cell in row)]
        elif isinstance(part, Figure):
            found += [part.title, part.see, part.caption, *(trace.series for trace in part.data)]
        elif isinstance(part, str):
            found.append(part)
    return " ".join(found).lower()


def _appendices(bundle: Bundle, sections: Sequence[Section]) -> list[Section]:
    said = _said(sections)
    outcome = conclude(bundle.verdict).word if bundle.verdict else ""
    used = tuple(
        row
        for row in TERMS
        if row[0] in (*ALWAYS_DEFINED, outcome)
        or (row[0] not in GLYPHS and any(word.lower() in said for word in row[0].split(", ")))
    )
    terms = Table(("Term", "Meaning"), "tt", used, "Terms as this report uses them.", "terms")
    raw = raw_tables(bundle)
    return [
        Section("terms", "Definitions", (terms,), appendix=True),
        *([Section("raw", "Unrounded figures", tuple(raw), appendix=True, printed=False)] if raw else []),
    ]
