"""A whole run bundle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bench_model.documents.verdict import Verdict
from bench_model.profiles.published import PublishedDevice
from bench_model.verdict.judging import Again
from bench_report.base.fields import Node
from bench_report.reading.dataset.block_scan import BlockScan
from bench_report.reading.dataset.machine import Setting, Smart
from bench_report.reading.dataset.provenance import Provenance
from bench_report.reading.dataset.record import Repetition, Series
from bench_report.reading.dataset.run import Run
from bench_report.reading.dataset.telemetry import Accounting, Event, HostSeries, Phase


@dataclass(frozen=True)
class Bundle:
    """`verdict`: as this bench computes it from the evidence, None where the run was never judged, or cannot be judged again.
    `again`: that judgement beside the verdict that the bundle stores; None where it stores none."""

    run: Run
    verdict: Verdict | None
    again: Again | None
    results: Mapping[str, Node]  # results/<name>.json by name, for the sections of the workloads
    published: Mapping[str, PublishedDevice]  # by id: others' statements about their devices, no measurements
    block_scan: BlockScan | None
    repetitions: tuple[Repetition, ...]
    live_series: Series | None  # the writer's own records, for a run that left no result
    tuning: tuple[Setting, ...] | None
    tuning_after: tuple[Setting, ...] | None
    smart_before: tuple[Smart, ...] | None
    smart_after: tuple[Smart, ...] | None
    events: tuple[Event, ...]
    phases: tuple[Phase, ...]
    host: HostSeries | None
    accounting: Accounting | None
    missing: tuple[tuple[str, str], ...]  # (file, what the report therefore lacks)
    files: frozenset[str]
    provenance: Provenance = field(default_factory=Provenance)
