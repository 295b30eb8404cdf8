"""Tells what each command of `analysis_reader` (agents/daq_bench/analysis_reader) leaves, as types: a set, points, a farm, a slow disk."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from daq_bench.bench_model.documents.struct import Closed, Count, Ordinal
from daq_bench.bench_model.workloads.concurrent_analysis.document import (
    Device,
    Kind,
    Limits,
    Node,
    Record,
    Result,
    Round,
    SetTruth,
    Shape,
)


class SetFile(Closed, frozen=True):
    name: str
    bytes: Count
    events: Count


class AnalysisSet(Closed, frozen=True):
    """analysis_reader generate: a set of ROOT files and its truth."""

    schema_version: Literal[1]
    shape: Shape
    files: Annotated[list[SetFile], Meta(min_length=1)]
    bytes: Count
    truth: SetTruth
    versions: dict[str, str]


class Pass(Closed, frozen=True, kw_only=True):
    """N jobs over a set."""

    analysis: Kind
    workers: Ordinal
    files: Ordinal
    drop_caches: bool
    devices: list[Device]
    records: Annotated[list[Record], Meta(min_length=1)]
    result: Result


class AnalysisPoints(Closed, frozen=True):
    """analysis_reader points: a pass for each N."""

    schema_version: Literal[1]
    points: Annotated[list[Pass], Meta(min_length=1)]


class HeldPass(Pass, frozen=True, kw_only=True):
    repetition: Ordinal


class AnalysisSlowDisk(Closed, frozen=True):
    """analysis_reader slow-disk: passes on a loop device that is held back. `controller`: of cgroups, version 1 or 2."""

    schema_version: Literal[1]
    controller: Literal["blkio", "io"]
    limits: Limits
    points: Annotated[list[HeldPass], Meta(min_length=1)]


class AnalysisFarm(Closed, frozen=True):
    """analysis_reader farm: nodes alone and together."""

    schema_version: Literal[1]
    analysis: Kind
    nodes: Annotated[list[Node], Meta(min_length=2)]
    rounds: Annotated[list[Round], Meta(min_length=1)]
