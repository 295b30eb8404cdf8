"""A run.json in which nothing is wrong, for studies and tests that need one and look at some fields of it only."""

from __future__ import annotations

from typing import Any

import msgspec

from daq_bench.bench_model.documents.run import CandidateOfRun, Drive, RequirementOfRun, Run, ScenarioOfRun, TargetOfRun


def candidate(name: str = "imaginary", **changes: Any) -> CandidateOfRun:
    found = CandidateOfRun(
        name=name,
        description="An imaginary server",
        transient_buffer_bytes=128 * 10**9,
        virtual=False,
        connection="local",
    )
    return msgspec.structs.replace(found, **changes)


def target(*drives: Drive, **changes: Any) -> TargetOfRun:
    return msgspec.structs.replace(TargetOfRun(kind="filesystem", filesystem="xfs", drives=list(drives)), **changes)


def drive(name: str, model: str | None = "Imaginary 9000", serial: str | None = "IMG1", **changes: Any) -> Drive:
    return msgspec.structs.replace(Drive(name=name, model=model, serial=serial), **changes)


def scenario(identifier: str = "imaginary", **changes: Any) -> ScenarioOfRun:
    found = ScenarioOfRun(id=identifier, scale=1.0, seed=1, repetitions=1, repetitions_max=1, parameters={})
    return msgspec.structs.replace(found, **changes)


def some_run(**changes: Any) -> Run:
    found = Run(
        schema_version=1,
        run_id="20260131T120000Z-imaginary",
        state="running",
        state_reason=None,
        started_utc="2026-01-31T12:00:00.000Z",
        finished_utc=None,
        candidate=candidate(),
        target=target(drive("nvme0n1")),
        scenario=scenario(),
        requirement=RequirementOfRun("dune-snb"),
        demand=None,
        declared_limits=[],
    )
    return msgspec.structs.replace(found, **changes)
