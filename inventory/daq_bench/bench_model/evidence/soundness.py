"""Is each document of a bundle what its writer leaves?

A document that lacks a field, has null where a number belongs, or holds a number that is not finite, is named and read no further.
A document with a type (`bench_model.evidence.schemas`) is held against it, any other against its JSON schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import convert

from daq_bench.bench_model.base.errors import BenchError, ProfileError
from daq_bench.bench_model.behaviour.others import NAME as OTHERS
from daq_bench.bench_model.bundle.evidence import FILES, Evidence
from daq_bench.bench_model.documents.derived import Others
from daq_bench.bench_model.documents.facts import Clock, Firmware, Identity, Tuning
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Document, not_finite, read
from daq_bench.bench_model.documents.telemetry import SensorCoverage, TelemetryAccount, TelemetrySummary
from daq_bench.bench_model.evidence.schemas import TYPES
from daq_bench.bench_model.profiles.yaml_source import SCHEMAS, check_document

RUN = "run.json"
SENSORS, ACCOUNT = "results/sensor_coverage.json", "results/telemetry_account.json"


@dataclass(frozen=True)
class Sound:
    """The evidence of one run as types. A document that the run never wrote, or that is not what its writer leaves, is None; `malformed`
    has the complaint about each of the latter. `results`: of workloads, those that are sound. `raw`: all of it, as read."""

    run: Run
    identity: Identity | None
    tuning: Tuning | None
    tuning_verified: Tuning | None
    tuning_after: Tuning | None
    telemetry: TelemetrySummary | None
    bmc_telemetry: TelemetrySummary | None
    clock: Clock | None
    firmware: Firmware | None
    sensors: SensorCoverage | None
    account: TelemetryAccount | None
    others: Others | None
    results: dict[str, Document]
    malformed: Mapping[str, str]
    raw: Evidence

    @staticmethod
    def of(evidence: Evidence) -> Sound:
        """Raises BenchError with the complaint where run.json itself is not sound: then nothing else can be judged."""
        malformed = faults(evidence)
        if RUN in malformed:
            raise BenchError(malformed[RUN])
        sound = evidence.without(malformed)
        typed: dict[str, Any] = {
            name: convert(getattr(sound, name), TYPES[file])
            for file, name in FILES.items()
            if getattr(sound, name) is not None
        }
        for name, file in (("sensors", SENSORS), ("account", ACCOUNT), ("others", OTHERS)):
            if file in sound.results:
                typed[name] = convert(sound.results[file], TYPES[file])
        absent = dict.fromkeys((*FILES.values(), "sensors", "account", "others"))
        run = convert(evidence.run, Run)
        return Sound(run=run, results=sound.results, malformed=malformed, raw=evidence, **{**absent, **typed})


def faults(evidence: Evidence) -> dict[str, str]:
    """The complaint, by file, about each document of a run that is not what its writer leaves."""
    found = {file: fault_of(file, document) for file, document in evidence.documents()}
    return {file: complaint for file, complaint in found.items() if complaint}


def fault_of(file: str, document: Document) -> str:
    """Returns the fault of one document; empty when it has none."""
    odd = not_finite(document, file)
    if odd:
        return odd
    kind = TYPES.get(file)
    try:
        if kind is not None:
            read(document, kind, file)
        if kind is None and (SCHEMAS / f"{schema_of(file)}.schema.json").is_file():
            check_document(document, schema_of(file), file)
    except (BenchError, ProfileError) as error:
        return f"{file} is not what the bench writes: {error}"
    return ""


def schema_of(file: str) -> str:
    """`results/block_scan.json`: `block-scan`."""
    return file.rpartition("/")[2].removesuffix(".json").replace("_", "-")
