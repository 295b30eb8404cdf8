"""The first page: enough for a reader who reads nothing else."""

from __future__ import annotations

from collections import Counter
from typing import Any

from daq_bench.bench_model.documents.run import FINISHED
from daq_bench.bench_model.verdict.advice import Advice, NextStep, advise, next_step
from daq_bench.bench_report.base.marks import see_section, see_table
from daq_bench.bench_report.base.units import utc
from daq_bench.bench_report.document.outcome import NOT_RECORDED
from daq_bench.bench_report.document.section import Pair
from daq_bench.bench_report.qualification import view
from daq_bench.bench_report.qualification.findings import MOST, Remark, findings, limits
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.tables.drives import drive_lines

MOST_DRIVE_LINES = 4


def content(bundle: Bundle) -> dict[str, Any]:
    run = bundle.run
    outcome, advised = view.outcome_of(bundle), advice(bundle)
    found = findings(bundle)
    remarks = [one for one in found if not one.of or not outcome.meaning.startswith(f"Missed {one.of} ")]  # said there
    shown = MOST - (len(found) - len(remarks))
    incomplete = bundle.verdict is None or run.state != FINISHED
    return {
        "run": run, "outcome": outcome, "started": utc(run.started),
        "finished": utc(run.finished) if run.finished else None, "cause": advised.cause,
        "next": advised.step, "remarks": remarks[:shown],
        "more_findings": _more(remarks[shown:]),
        "incomplete": [f"{lack} ({name})" for name, lack in bundle.missing] if incomplete else [],
        "limits": limits(bundle), "demand": view.demand_cells(bundle), "bought": bought(bundle),
    }  # fmt: skip


def advice(bundle: Bundle) -> Advice:
    """The likely cause and the next step: those of the model, but for a bundle on which nobody may rest."""
    verdict, run = bundle.verdict, bundle.run
    if bundle.provenance.altered or (bundle.again and bundle.again.contradicts):
        check = f"daq-bench check-bundle runs/{run.run_id}"
        return Advice("", NextStep("Rest nothing on this bundle. Ask for the sealed original, and check it:", (check,)))
    if verdict is None:
        return Advice("", next_step(run, None, bundle.grounds))
    return advise(run, verdict, bundle.grounds)


def _more(remarks: list[Remark]) -> str:
    """Counts the findings of each kind in the other sections."""
    if not remarks:
        return ""
    kinds = Counter(one.kind for one in remarks)
    told = "; ".join(f"{kind.lower()} ({number})" for kind, number in kinds.items())
    return f"Further findings, in {see_section('findings')}: {told}."


def bought(bundle: Bundle) -> list[Pair]:
    """Returns the facts about the purchase: the machine, its drives, the job, and the source of the requirements."""
    run = bundle.run
    who = {pair.label: pair.value for pair in view.candidate_pairs(bundle) if pair.known}
    candidate = [who[label] for label in ("Description", "Processor", "Memory", "System") if label in who]
    drives = drive_lines(bundle)
    shown = [*drives[:MOST_DRIVE_LINES]]
    if len(drives) > MOST_DRIVE_LINES:
        shown.append(f"{len(drives) - MOST_DRIVE_LINES} more kinds")
    source = f"; load after {run.scenario.parameters['source']}" if run.scenario.parameters.get("source") else ""
    profile = f"{run.requirement.title or run.requirement.id} ({run.requirement.file or run.requirement.id})"
    return [
        Pair("Candidate", " \u00b7 ".join(candidate) or NOT_RECORDED, bool(candidate)),
        Pair("Drives", f"{'; '.join(shown)}. {see_table('drives')}.", True) if shown
        else Pair("Drives", "no single drive was recorded", False),
        view.target_pair(bundle),
        Pair("Job", f"{run.scenario.file or run.scenario.id}{source}"),  # its title stands above
        Pair("Requirements", profile),
    ]  # fmt: skip
