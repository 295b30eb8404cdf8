"""Result documents that follow from a bundle's own telemetry and results: computed at the end of a run, and again by `check-bundle`."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path

from daq_bench.bench_model.behaviour import (
    cost,
    dip_documents,
    drive_temperature,
    hardware_events,
    others,
    record_power,
    surroundings,
    wear_of_run,
)
from daq_bench.bench_model.bundle.files import read_json, require_sound
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Document, Struct, as_document, read
from daq_bench.bench_model.evidence import sensor_coverage, telemetry_account
from daq_bench.bench_model.evidence.soundness import fault_of
from daq_bench.bench_model.workloads.model import Maker
from daq_bench.bench_model.workloads.table import MODELS

# Each from the run's own results and telemetry; none reads another. First those that belong to no workload.
MAKERS: dict[str, Maker] = {
    "results/drive_temperature.json": drive_temperature.of_bundle,
    "results/sensor_coverage.json": sensor_coverage.of_bundle,
    "results/cost.json": cost.of_bundle,
    "results/record_power.json": record_power.of_bundle,
    others.NAME: others.of_bundle,
    "results/dips.json": dip_documents.dips_of_bundle,
    "results/throttling.json": dip_documents.throttling_of_bundle,
    hardware_events.NAME: hardware_events.of_bundle,
    wear_of_run.NAME: wear_of_run.of_bundle,
    surroundings.NAME: surroundings.of_bundle,
    telemetry_account.NAME: telemetry_account.of_bundle,
    **{one.file: one.make for model in MODELS.values() for one in model.beside if one.make},
}


@dataclass(frozen=True)
class Fault:
    """Why a document could not be made: a fault of the bench, or files that somebody altered since the run."""

    name: str
    reason: str
    traceback: str


def documents(bundle: Path) -> tuple[dict[str, Document], list[Fault]]:
    """Name and content of each derived document of `bundle`, whose run.json names the target; and those that could not be made.

    Each is held against its type or schema before anybody stores it. One that fails takes neither the others nor the verdict away: what
    it would have shown then counts as not measured."""
    require_sound(bundle)
    run = read(read_json(bundle, "run.json"), Run, "run.json")
    made: dict[str, Document] = {}
    faults: list[Fault] = []
    for name, make in MAKERS.items():
        try:
            document = make(bundle, run)
        except Exception as error:  # whatever a maker trips over, it is named and makes the run an ERROR
            faults.append(Fault(name, f"{type(error).__name__}: {error}", traceback.format_exc()))
            continue
        if document is None:
            continue
        if isinstance(document, Struct):
            document = as_document(document)
        if odd := fault_of(name, document):
            faults.append(Fault(name, odd, odd))
        else:
            made[name] = document
    return made, faults
