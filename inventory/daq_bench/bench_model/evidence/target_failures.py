"""A target that failed while the bench loaded it, as the target itself answered (docs/adr/0002).

The record's own result says so for the record and its read-back, and that of a comparison for its sets; every other workload leaves
TARGET_FAILURE in place of its result. PURGE_FAILURE stands there for a drive that a purge left with data: nobody can tell whether it gave
its blocks back, so that its workload ended there, before it wrote what could decide nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, convert

from daq_bench.bench_model.documents.struct import Closed, Document
from daq_bench.bench_model.documents.tools.daqwriter import OF_DRIVE, OF_RAW_DRIVE, OfRawDrive
from daq_bench.bench_model.workloads.snb_record import target_failures

TARGET_FAILURE = "results/target_failure.json"
RECORD = "results/snb_record.json"
COMPARISON = "results/raid_vs_3dxp.json"
OWN_OF_FIO = {"EILSEQ", "ETIMEDOUT"}  # fio's own answers to a failed verification and to a latency beyond its limit


class TargetFailure(Closed, frozen=True):
    """`workload`: that broke off. `during`: the part of it. `errno`: the target's answer. `raw_drive`: there was no file system between.
    `said`: the tool's own words."""

    schema_version: Literal[1]
    workload: str
    during: str
    tool: Literal["fio", "daqwriter"]
    errno: OfRawDrive
    raw_drive: bool
    said: Annotated[str, Meta(min_length=1)]


def answers_of_drive(tool: str, raw_drive: bool) -> frozenset[str]:
    """Returns the errnos by which `tool` shows that the drive failed."""
    known = OF_RAW_DRIVE if raw_drive else OF_DRIVE
    return known - OWN_OF_FIO if tool == "fio" else known


def failures_of(results: Mapping[str, Document], carried: str = "") -> Iterator[str]:
    """Returns a sentence for each answer by which the target that is judged is known to have failed. `results`: by file, sound ones.
    `carried`: which drives carry the run's own target; with it, a set's sentence names its own drives, too."""
    end = f". {carried}" if carried else ""
    if record := results.get(RECORD):
        yield from (f"{text}{end}" for text in target_failures(record))
    if document := results.get(TARGET_FAILURE):
        found = convert(document, TargetFailure)
        if found.errno in answers_of_drive(found.tool, found.raw_drive):
            yield f"The target failed in {found.workload}, {found.during}: {found.said}{end}"
    if comparison := results.get(COMPARISON):
        yield from _of_judged_set(comparison, bool(carried))


def _of_judged_set(document: Document, names_drives: bool) -> Iterator[str]:
    """The first failure of the set that a comparison judges: whatever follows it is its consequence."""
    name = document["judged_set"]
    for one in document["rounds"]:
        for part in (visit[part] for visit in one["visits"] if visit["target"] == name for part in ("write", "paced")):
            if part["failed"] and part.get("errno") in answers_of_drive("daqwriter", raw_drive=False):
                text = f"The set {name} failed in round {one['round']}: {part['reason']}"
                drives = [
                    (drive["name"], drive["model"], drive["serial"]) for drive in document["targets"][name]["drives"]
                ]
                yield f"{text}. {carried_by(drives)}" if names_drives else text
                return


def carried_by(drives: Sequence[tuple[str, str | None, str | None]]) -> str:
    """The sentence on the drives that carry a target. `drives`: name, model and serial of each."""
    named = [f"{name} ({model or 'no model'}, serial {serial or 'not told'})" for name, model, serial in drives]
    return (
        f"It lies on {', '.join(named)}" if named else "Which drives carry it is not known, so that none can be blamed"
    )


PURGE_FAILURE = "results/purge_failure.json"
REMEDIES = {
    "discard": "Set workloads.{workload}.purge: format in a copy of the scenario (NVMe Format with erasure), or choose a drive that reads "
    "zeros after a discard",
    "format": "Set workloads.{workload}.purge: discard in a copy where the requirement profile takes it, ask the drive's maker for a "
    "firmware whose Format leaves zeros, or choose another drive",
}


class PurgeFailure(Closed, frozen=True):
    """`workload`: that ended. `label`: of what the drive was purged for. `zero_share`: share of the sampled places that read as zeros."""

    schema_version: Literal[1]
    workload: str
    label: str
    serial: str
    method: Literal["discard", "format"]
    zero_share: Annotated[float, Meta(ge=0, lt=1)]


def in_words(method: str, zero_share: float) -> str:
    """Says what the purge left, for the report and for a person who goes on all the same."""
    return (
        f"After the purge ({method}) {zero_share:.0%} of the sampled places read as zeros: whether the drive gave all of its blocks back "
        "is not known"
    )


def failure_of(results: Mapping[str, Document]) -> PurgeFailure | None:
    """`results`: by file, sound ones."""
    document = results.get(PURGE_FAILURE)
    return convert(document, PurgeFailure) if document else None


def sentence(failure: PurgeFailure) -> str:
    remedy = REMEDIES[failure.method].format(workload=failure.workload)
    told = in_words(failure.method, failure.zero_share)
    return f"{failure.workload} ended before {failure.label} was written to drive {failure.serial}. {told}. {remedy}"
