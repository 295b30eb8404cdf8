"""A run as Open Compute's Test & Validation output, version 2.0: JSON Lines, one artifact a line.

Specification: opencomputeproject/ocp-diag-core, json_spec. Written here rather than by its Python package, which stamps every line with
the moment of writing: ours carry the run's own times, and the same bundle gives the same lines. The tests replay each line through that
package (`ocptv`) and demand the same."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from daq_bench.bench_model.bundle.files import read_structs
from daq_bench.bench_model.documents.events import Event
from daq_bench.bench_model.documents.run import FINISHED, Drive, Run
from daq_bench.bench_model.documents.struct import utc_text
from daq_bench.bench_model.documents.verdict import Judgement
from daq_bench.bench_model.nights.bundle_facts import BIOS, FIRMWARE, KERNEL, SOFTWARE
from daq_bench.bench_model.nights.night import Night, read_run
from daq_bench.bench_model.statistics.repetitions import CONFIDENCE

Body = dict[str, Any]
SCHEMA_VERSION = {"major": 2, "minor": 0}
VALIDATORS = {"at_least": "GREATER_THAN_OR_EQUAL", "at_most": "LESS_THAN_OR_EQUAL", "equal": "EQUAL"}
# A verdict that does not count says nothing of the device: UNKNOWN, and NOT_APPLICABLE for the whole run.
DIAGNOSES = {"PASS": "PASS", "FAIL": "FAIL"}


@dataclass(frozen=True)
class Span:
    """Describes when a workload ran."""

    start: datetime
    end: datetime


def lines(bundle: Path, night: Night) -> list[str]:
    """The file's lines. Raises OSError, ValueError or KeyError for a bundle that is not as the bench writes it."""
    run = read_run(bundle)
    events = read_structs(bundle, "events.jsonl", Event)
    stamped = sorted(_artifacts(run, events, night), key=lambda one: one[0])
    first = min(night.started, stamped[0][0])
    return [
        json.dumps({**body, "sequenceNumber": number, "timestamp": utc_text(moment)}, ensure_ascii=False)
        for number, (moment, body) in enumerate([(first, {"schemaVersion": SCHEMA_VERSION}), *stamped])
    ]


def _artifacts(run: Run, events: Sequence[Event], night: Night) -> Iterator[tuple[datetime, Body]]:
    end = max(night.finished or night.started, night.started)
    yield night.started, _of_run({"testRunStart": _run_start(run, night)})
    spans = _spans(events, night.started, end)
    for number, (workload, rows) in enumerate(_by_workload(night.rows).items()):
        yield from _step(str(number), workload, rows, spans.get(workload, Span(night.started, end)), night)
    for event in events:
        if event.kind == "error":
            text = f"{event.source}: {event.text}"
            yield (
                _within(event, night.started, end),
                _of_run({"error": {"symptom": "bench-error", "message": text, "softwareInfoIds": []}}),
            )
    for finding in night.verdict.findings:
        severity = "ERROR" if finding.invalidates else "WARNING"
        yield end, _of_run({"log": {"severity": severity, "message": finding.text}})
    ended = "ERROR" if night.state != FINISHED or night.outcome == "ERROR" else "COMPLETE"
    yield end, _of_run({"testRunEnd": {"status": ended, "result": DIAGNOSES.get(night.outcome, "NOT_APPLICABLE")}})


def _of_run(body: Body) -> Body:
    return {"testRunArtifact": body}


def _of_step(step: str, body: Body) -> Body:
    return {"testStepArtifact": {"testStepId": step, **body}}


def _run_start(run: Run, night: Night) -> Body:
    parameters = {
        "scenario": run.scenario.id, "scale": run.scenario.scale, "seed": run.scenario.seed, "requirement": night.requirement,
        "target": night.target, "duration_s": night.duration_s, "run_id": night.id,
    }  # fmt: skip
    asked = f"python -m daq_bench.rig qualify --candidate {night.candidate} --scenario {night.scenario} --requirement {night.requirement}"
    return {
        "name": f"daq-storage-bench {night.scenario}",
        "version": (run.git and run.git.commit) or "unstated",
        "commandLine": asked,
        "parameters": {name: value for name, value in parameters.items() if value is not None},
        "dutInfo": _dut(run, night),
    }


def _dut(run: Run, night: Night) -> Body:
    """Software (kernel, BIOS, firmware, tools) and hardware (the server, its target's drives) as the run found them."""
    facts = [(group, name, value) for (group, name), value in sorted(night.facts.items())]
    kinds = {KERNEL: "SYSTEM", BIOS: "FIRMWARE", FIRMWARE: "FIRMWARE", SOFTWARE: "APPLICATION"}
    chosen = [(f"{group} {name}", value, kinds[group]) for group, name, value in facts if group in kinds]
    drives = run.target.drives or list(filter(None, (run.target.device,)))
    return {
        "dutInfoId": night.candidate,
        "name": run.candidate.hostname or night.candidate,
        "platformInfos": [{"info": run.candidate.cpu_model or run.candidate.architecture or "unstated"}],
        "softwareInfos": [
            {"softwareInfoId": f"software-{number}", "name": name, "version": value, "softwareType": kind}
            for number, (name, value, kind) in enumerate(chosen)
        ],
        "hardwareInfos": [_hardware(number, drive) for number, drive in enumerate(drives)],
    }


def _hardware(number: int, drive: Drive) -> Body:
    known = {
        "hardwareInfoId": f"drive-{number}",
        "name": drive.model or drive.name,
        "version": drive.firmware,
        "location": drive.name,
        "serialNumber": drive.serial,
    }
    return {name: str(value) for name, value in known.items() if value}


def _by_workload(rows: Sequence[Judgement]) -> dict[str, list[Judgement]]:
    found: dict[str, list[Judgement]] = {}
    for row in rows:
        found.setdefault(row.metric.partition(".")[0], []).append(row)
    return found


def _step(
    step: str, workload: str, rows: Sequence[Judgement], span: Span, night: Night
) -> Iterator[tuple[datetime, Body]]:
    yield span.start, _of_step(step, {"testStepStart": {"name": workload}})
    for row in rows:
        if row.measured is not None:
            yield span.end, _of_step(step, {"measurement": _measurement(row)})
        counts = "" if row.severity == "mandatory" else "advisory: "
        diagnosis = {
            "verdict": f"{row.id.lower()}-{row.decision or ('not-measured' if row.measured is None else 'not-decided')}",
            "type": DIAGNOSES.get(row.outcome, "UNKNOWN"),
            "message": f"{counts}{row.text}: {row.outcome}. {row.reason}",
        }
        yield span.end, _of_step(step, {"diagnosis": diagnosis})
    measured = any(row.measured is not None for row in rows)
    status = "COMPLETE" if measured else "SKIP" if night.state == FINISHED else "ERROR"
    yield span.end, _of_step(step, {"testStepEnd": {"status": status}})


def _measurement(row: Judgement) -> Body:
    details: Body = {"requirement": row.id, "statistic": row.statistic, "n": row.n, "severity": row.severity}
    if row.confidence_interval:
        name = "interval95" if row.confidence == CONFIDENCE else "interval"
        details |= {name: list(row.confidence_interval), "method": row.interval_method}
    validator = {"name": row.id, "type": VALIDATORS[row.comparison], "value": row.scaled_bound}
    return {"name": row.metric, "value": row.measured, "unit": row.unit, "validators": [validator], "metadata": details}


def _spans(events: Sequence[Event], start: datetime, end: datetime) -> dict[str, Span]:
    """From a workload's first phase to the first phase of another after its last."""
    phases = [(_within(event, start, end), event.source) for event in events if event.kind == "phase"]
    found: dict[str, Span] = {}
    for number, (moment, source) in enumerate(phases):
        ended = next((other for other, name in phases[number + 1 :] if name != source), end)
        found[source] = Span(found[source].start if source in found else moment, ended)
    return found


def _within(event: Event, start: datetime, end: datetime) -> datetime:
    """The event's time, kept inside of the run: lines are in the order of time whatever a clock did."""
    return min(max(event.time, start), end)
