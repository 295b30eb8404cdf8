"""Result documents that follow from a bundle's own telemetry and results: computed at the end of a run, and again by `check-bundle`."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench_model.behaviour import cost, dip_documents, drive_temperature, record_power
from bench_model.bundle.evidence import Document
from bench_model.bundle.files import read_json, require_sound
from bench_model.evidence import sensor_coverage, telemetry_account
from bench_model.workloads import thermal as thermal_soak
from bench_model.workloads.concurrent_analysis import analysis as concurrent_analysis
from bench_model.workloads.endurance import projection as endurance_projection
from bench_model.workloads.hot_store import runs as hot_store_runs
from bench_model.workloads.lan import analysis as lan
from bench_model.workloads.raid_vs_3dxp import analysis as raid_comparison
from bench_model.workloads.saturation import analysis as saturation
from bench_model.workloads.streams_checksum import analysis as streams_checksum

Maker = Callable[[Path, Document], Document | None]  # None: the run has nothing to do with it

# Each from the run's own results and telemetry; none reads another.
MAKERS: dict[str, Maker] = {
    "results/drive_temperature.json": drive_temperature.of_bundle,
    "results/sensor_coverage.json": sensor_coverage.of_bundle,
    "results/cost.json": cost.of_bundle,
    "results/record_power.json": record_power.of_bundle,
    "results/dips.json": dip_documents.dips_of_bundle,
    "results/throttling.json": dip_documents.throttling_of_bundle,
    "results/thermal_soak.json": thermal_soak.of_bundle,
    endurance_projection.NAME: endurance_projection.of_bundle,
    "results/raid_comparison.json": raid_comparison.of_bundle,
    telemetry_account.NAME: telemetry_account.of_bundle,
    "results/streams_checksum_analysis.json": streams_checksum.of_bundle,
    hot_store_runs.NAME: hot_store_runs.of_bundle,
    "results/lan_analysis.json": lan.of_bundle,
    concurrent_analysis.NAME: concurrent_analysis.of_bundle,
    saturation.NAME: saturation.of_bundle,
}


@dataclass(frozen=True)
class Fault:
    """Why a document could not be made: a fault of the bench, or files that somebody altered since the run."""

    name: str
    reason: str
    traceback: str


def documents(bundle: Path) -> tuple[dict[str, Document], list[Fault]]:
    """Name and content of each derived document of `bundle`, whose run.json names the target; and those that could not be made.

    One that fails takes neither the others nor the verdict away: what it would have shown then counts as not measured."""
    require_sound(bundle)
    run: Document = read_json(bundle, "run.json")
    made: dict[str, Document] = {}
    faults: list[Fault] = []
    for name, make in MAKERS.items():
        try:
            document = make(bundle, run)
        except Exception as error:  # whatever a maker trips over, it is named and makes the run an ERROR
            faults.append(Fault(name, f"{type(error).__name__}: {error}", traceback.format_exc()))
            continue
        if document is not None:
            made[name] = document
    return made, faults
