"""A target that failed while the bench loaded it, as the target itself answered (docs/adr/0002).

The record's own result says so for the record and its read-back; every other workload leaves TARGET_FAILURE in place of its result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from msgspec import Meta, convert

from daq_bench.bench_model.documents.struct import Closed, Document
from daq_bench.bench_model.documents.tools.daqwriter import OF_DRIVE, OF_RAW_DRIVE, OfRawDrive
from daq_bench.bench_model.workloads.snb_record import target_failures

TARGET_FAILURE = "results/target_failure.json"
RECORD = "results/snb_record.json"
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


def failures_of(results: Mapping[str, Document]) -> Iterator[str]:
    """Returns a sentence for each answer by which the run's target is known to have failed. `results`: by file, sound ones."""
    if record := results.get(RECORD):
        yield from target_failures(record)
    if document := results.get(TARGET_FAILURE):
        found = convert(document, TargetFailure)
        if found.errno in answers_of_drive(found.tool, found.raw_drive):
            yield f"The target failed in {found.workload}, {found.during}: {found.said}"
