"""`python -m bench_model.evidence.schemas FOLDER`: writes the JSON Schema of every typed document, as committed in inventory/schemas."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench_model.documents.facts import Clock, Firmware, Identity, Tuning
from bench_model.documents.results import DriveTemperature, HardwareEvents, Reasoned
from bench_model.documents.run import Run
from bench_model.documents.struct import Struct
from bench_model.documents.telemetry import SensorCoverage, TelemetryAccount, TelemetrySummary
from bench_model.documents.verdict import Verdict
from bench_model.workloads.table import MODELS

VERDICT = "verdict.json"
PARTIAL = (Reasoned, TelemetryAccount)  # what a verdict reads of documents whose schemas are written by hand
TYPES: dict[str, type[Struct]] = {
    "run.json": Run,
    "results/identity.json": Identity,
    "facts/tuning.json": Tuning,
    "facts/tuning-verified.json": Tuning,
    "facts/tuning-after.json": Tuning,
    "facts/clock.json": Clock,
    "facts/firmware.json": Firmware,
    "telemetry/summary.json": TelemetrySummary,
    "telemetry/bmc/summary.json": TelemetrySummary,
    "results/sensor_coverage.json": SensorCoverage,
    "results/telemetry_account.json": TelemetryAccount,
    "results/drive_temperature.json": DriveTemperature,
    "results/hardware_events.json": HardwareEvents,
    "results/cost.json": Reasoned,
    "results/record_power.json": Reasoned,
    "results/dips.json": Reasoned,
    "results/throttling.json": Reasoned,
    **{f"results/{name}.json": model.result for name, model in MODELS.items() if model.result},
    **{one.file: one.kind for model in MODELS.values() for one in model.beside if one.kind},
}


def schemas() -> Iterator[tuple[str, str]]:
    """(file's name, text) of each schema: one for each type, named as the first document of that type."""
    named: dict[type[Struct], str] = {}
    every: dict[str, type[Struct]] = {**TYPES, VERDICT: Verdict}
    for file, kind in every.items():
        if kind not in PARTIAL:
            named.setdefault(kind, file)
    for kind, file in named.items():
        stem = file.rpartition("/")[2].removesuffix(".json").replace("_", "-")
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": file, **msgspec.json.schema(kind)}
        yield f"{stem}.schema.json", json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def main(folder: Path) -> None:
    for name, text in schemas():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
