"""A drive that a purge left with data: nobody can tell whether it gave its blocks back, so that its workload ended there, before it wrote
what could decide nothing (docs/adr/0002). The workload leaves PURGE_FAILURE in place of its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, convert

from daq_bench.bench_model.documents.struct import Closed, Document

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
