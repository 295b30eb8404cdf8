"""A whole run bundle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from daq_bench.bench_model.documents.events import Event
from daq_bench.bench_model.documents.facts import Setting
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Kind, read
from daq_bench.bench_model.documents.verdict import Verdict
from daq_bench.bench_model.evidence.target_failures import COMPARISON, RECORD, TARGET_FAILURE, failures_of
from daq_bench.bench_model.profiles.published import PublishedDevice
from daq_bench.bench_model.verdict.advice import Grounds
from daq_bench.bench_model.verdict.judging import Again
from daq_bench.bench_model.workloads.block_scan import BlockScan
from daq_bench.bench_model.workloads.snb_record import Repetition
from daq_bench.bench_report.reading.dataset.machine import Smart
from daq_bench.bench_report.reading.dataset.provenance import Provenance
from daq_bench.bench_report.reading.dataset.record import Series
from daq_bench.bench_report.reading.dataset.telemetry import Accounting, HostSeries, Phase


@dataclass(frozen=True)
class Bundle:
    """`verdict`: as this bench computes it from the evidence, None where the run was never judged, or cannot be judged again.
    `again`: that judgement beside the verdict that the bundle stores; None where it stores none."""

    run: Run
    verdict: Verdict | None
    again: Again | None
    results: Mapping[str, Any]  # results/<name>.json by name, as JSON, for the sections of the workloads
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
    grounds: Grounds = field(default_factory=Grounds)

    @property
    def target_failures(self) -> tuple[str, ...]:
        """The verdict's sentences on a target that failed while the bench loaded it, where they decide the outcome."""
        if self.verdict is None or self.verdict.outcome != "FAIL":
            return ()
        documents = {f"results/{name}.json": result for name, result in self.results.items()}
        told = {
            file: value
            for file in (RECORD, TARGET_FAILURE, COMPARISON)
            if isinstance(value := documents.get(file), dict)
        }
        known = tuple(failures_of(told))
        return tuple(reason for reason in self.verdict.reasons if known and reason.startswith(known))

    def result(self, name: str, kind: type[Kind]) -> Kind | None:
        """results/<name>.json as its type; None where the run left none. Raises BenchError for a damaged one, with its field."""
        if name not in self.results:
            return None
        return read(self.results[name], kind, f"results/{name}.json")
