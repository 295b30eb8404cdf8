"""Results are extracted twice: by the workload while it runs, and by `daq-bench check-bundle` from the output of the run's tools.

It is the same code both times (`Workload.run`). During the run it asks the candidate, and a journal keeps every answer; afterwards it
asks the journal and results/raw (rig.candidate.journal). A difference then was altered, or does not follow from the tools' output."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import convert

from daq_bench.bench_model.base.differing import differences, shown
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.files import read_json
from daq_bench.bench_model.bundle.provenance import digest_in
from daq_bench.bench_model.documents.run import FINISHED
from daq_bench.bench_model.documents.struct import Document, Struct
from daq_bench.bench_model.evidence.schemas import TYPES
from daq_bench.bench_model.evidence.soundness import fault_of
from daq_bench.bench_model.evidence.target_failures import (
    COMPARISON,
    PURGE_FAILURE,
    RECORD,
    TARGET_FAILURE,
    failure_of,
    failures_of,
    sentence,
)
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.journal import PLAIN, SUFFIX, Answers, DivergedError, Line, Replay, read_journal, recorded
from daq_bench.rig.workloads.registry import workloads_of
from daq_bench.rig.workloads.shared.base import Report, Workload
from daq_bench.rig.workloads.shared.target_failure import failure_behind

MOST_NAMED = 5  # differences of one file
RAW = "results/raw"
REMEDY = "If nothing was altered, another version of the bench made this bundle: check it with that one (run.json: git)"


def measured(context: RunContext, workload: Workload) -> Struct | None:
    """Runs a workload with a journal, writes its result and notes its events; None where the target failed, or its purge did, which
    is written in the result's place. Raises BenchError."""

    def report(text: str, step: int, steps: int, seconds: float) -> None:
        context.phase(workload.name, text, step, steps, seconds)

    with recorded(context.machine, context.raw, workload.name) as machine:
        file, document = _left_by(workload, replace(context, machine=machine), report)
        if fault := fault_of(file, document):
            raise BenchError(fault)
        context.bundle.write(file, document)
    if file != workload.result:
        return None
    result = convert(document, TYPES[file])
    for text, data in workload.notes(result):
        context.bundle.event("busy", workload.name, text, **data)
    return result


def failed_target(bundle: Bundle) -> str:
    """The first sentence on a target that has failed in this run, or that its purge left with data; empty: there is none."""
    found = {
        file: document
        for file in (RECORD, TARGET_FAILURE, COMPARISON, PURGE_FAILURE)
        if (document := bundle.read(file))
    }
    unpurged = failure_of(found)
    return next(failures_of(found), sentence(unpurged) if unpurged else "")


def _left_by(workload: Workload, context: RunContext, report: Report) -> tuple[str, Document]:
    """The workload's result, or what it leaves in its place: file and document."""
    try:
        return workload.result, workload.run(context, report)
    except BenchError as error:
        if failure := failure_behind(error):
            return failure.file, failure.document(workload.name)
        raise


@dataclass
class Extraction:
    """`again`: documents that were extracted again. `problems`: values that do not follow; `notes`: unanswered questions, with reasons."""

    again: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def extract_again(path: Path) -> Extraction:
    """Extracts every result of the bundle at `path` again and compares it with the stored one. Writes nothing there."""
    bundle, found = Bundle.open(path), Extraction()
    try:
        workloads = workloads_of(RunContext(bundle, Replay(Answers([], path), local=True)).scenario)
        journals = {one.name: read_journal(bundle.path / RAW, one.name) for one in workloads}
    except (BenchError, KeyError, TypeError, ValueError) as error:
        found.problems.append(f"results: cannot be extracted again: {error!r}")
        return found
    kept = [lines for lines in journals.values() if lines]
    if kept:
        found.problems += _raw_problems(bundle.path / RAW, kept)
        strangers = [
            f"{name}: the run did not leave it, and no result refers to it"
            for name in _strangers(bundle.path / RAW, kept)
        ]
        # A workload that was killed lists no files. Its run is no evidence of anything, so that nothing can be slipped under a result.
        killed = bundle.run.state != FINISHED and not all(lines[-1]["do"] == "end" for lines in kept)
        (found.notes if killed else found.problems).extend(strangers)
    for one in workloads:
        if lines := journals[one.name]:
            _extract(found, bundle, one, lines)
        else:
            _say_without(found, bundle, one, bool(kept))
    for file in (TARGET_FAILURE, PURGE_FAILURE):
        if (bundle.path / file).exists() and file not in found.again:
            found.problems.append(f"{file}: follows from nothing that a workload's tools said. {REMEDY}")
    return found


def _say_without(found: Extraction, bundle: Bundle, workload: Workload, others_have: bool) -> None:
    """Notes missing journals: one that is missing beside others was taken away; an older bench wrote none at all."""
    if not (bundle.path / workload.result).exists():
        return
    if others_have:
        found.problems.append(f"{RAW}/{workload.name}{SUFFIX}: missing, so that {workload.result} follows from nothing")
        return
    found.notes.append(f"{workload.result}: cannot be extracted again: made by an older bench, which kept no journal")


def _extract(found: Extraction, bundle: Bundle, workload: Workload, lines: Sequence[Line]) -> None:
    if not _ended(lines):
        if (bundle.path / workload.result).exists():
            _say_unfinished(found, bundle, workload)
        return
    with tempfile.TemporaryDirectory(prefix="daq-bench-extraction-") as folder:
        answers = Answers(lines[1:-1], bundle.path / RAW)
        try:
            again = _bare_copy(bundle, Path(folder))
            file, document = _left_by(
                workload, RunContext(again, Replay(answers, lines[0].get("local") is True)), _silent
            )
            again.write(file, document)
        except (DivergedError, BenchError) as error:
            found.problems.append(f"{workload.result}: cannot be extracted again: {error}. {REMEDY}")
        except Exception as error:  # a forged journal may hold anything
            text = f"{workload.result}: cannot be extracted again from {RAW} ({type(error).__name__}: {error})"
            found.problems.append(text)
        else:
            found.problems += _results_problems(bundle.path, again.path)
            found.problems += [f"{workload.result}: {text}. {REMEDY}" for text in answers.not_asked()[:MOST_NAMED]]
            found.problems += _rewritten_problems(bundle.path / RAW, again.path / RAW)
            found.again.append(file)


def _ended(lines: Sequence[Line]) -> bool:
    return lines[-1]["do"] == "end" and lines[-1].get("failed", "it does not say") is None


def _say_unfinished(found: Extraction, bundle: Bundle, workload: Workload) -> None:
    """Notes an unfinished result: a run that ended in an error may leave the beginning of one, which meets no requirement."""
    text = f"{workload.result}: cannot be extracted again: its journal has no end, so that the workload did not finish"
    passed = bundle.run.state == FINISHED
    (found.problems if passed else found.notes).append(text)


def _silent(text: str, step: int, steps: int, seconds: float) -> None:
    """Does nothing with announcements: nobody watches."""


def _bare_copy(bundle: Bundle, folder: Path) -> Bundle:
    """A bundle of the same run that has the profiles and no results yet."""
    name = bundle.run.run_id
    again = Bundle(folder / (name if PLAIN.fullmatch(name) else "run"), bundle.run)
    for part in (RAW, "telemetry", "facts"):
        (again.path / part).mkdir(parents=True)
    shutil.copytree(bundle.path / "profiles", again.path / "profiles", symlinks=True)
    return again


def _results_problems(stored: Path, again: Path) -> list[str]:
    """Compares everything that the workload wrote beside its raw files."""
    problems = []
    for file in sorted((again / "results").glob("*.json")):
        name = f"results/{file.name}"
        problems += [f"{name}: {text}" for text in _file_problems(stored, again, name)]
    return problems


def _file_problems(stored: Path, again: Path, name: str) -> list[str]:
    try:
        document = read_json(stored, name)
    except FileNotFoundError:
        return ["missing"]
    except BenchError as error:
        return [f"cannot be compared: {error}"]
    found = [
        f"{at or 'the document'} is {shown(one)}, extracted again {shown(other)}"
        for at, one, other in differences(document, read_json(again, name))
    ]
    more = [f"and {len(found) - MOST_NAMED} more differences"] if len(found) > MOST_NAMED else []
    return [*found[:MOST_NAMED], *more]


def _rewritten_problems(stored: Path, made: Path) -> list[str]:
    """Compares the raw files that the workload itself wrote from a tool's output. Fetched ones are copies."""
    return [
        f"{RAW}/{file.name}: is not what the tool said"
        for file in sorted(made.iterdir())
        if _digest(stored, file.name) != digest_in(made, file.name)
    ]


def _raw_problems(raw: Path, journals: Sequence[Sequence[Line]]) -> list[str]:
    """Compares the tools' own output with the files that the run left of it."""
    return [
        f"{RAW}/{name}: {'missing, or no plain file' if found is None else 'is not what the run left: another SHA-256'}"
        for name, digest in _left(journals).items()
        if (found := _digest(raw, name)) != digest
    ]


def _left(journals: Sequence[Sequence[Line]]) -> dict[str, str]:
    """Returns the files that the workloads say they left, each with its SHA-256."""
    return {name: digest for lines in journals for name, digest in (lines[-1].get("files") or {}).items()}


def _strangers(raw: Path, journals: Sequence[Sequence[Line]]) -> list[str]:
    left = _left(journals)
    names = sorted(file.name for file in raw.iterdir())
    return [f"{RAW}/{name}" for name in names if name not in left and not name.endswith(SUFFIX)]


def _digest(folder: Path, name: str) -> str | None:
    """Returns the file's hash; None where `folder` has no plain file of that name."""
    try:
        return digest_in(folder, name) if PLAIN.fullmatch(name) else None
    except (BenchError, FileNotFoundError):
        return None
