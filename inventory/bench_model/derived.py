"""Result documents that follow from a bundle's own telemetry and results: computed at the end of a run, and again by `check-bundle`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from bench_model import (
    cost,
    dip_documents,
    drive_temperature,
    endurance_projection,
    raid_comparison,
    record_power,
    sensor_coverage,
    thermal_soak,
)
from bench_model.evidence import Document

Maker = Callable[[Path, Document], Document | None]  # None: the run has nothing to do with it

# In this order: a later one may read what an earlier one wrote.
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
}


def documents(bundle: Path) -> dict[str, Document]:
    """Name and content of each derived document of `bundle`, whose run.json names the target."""
    run: Document = json.loads((bundle / "run.json").read_text(encoding="utf-8"))
    made = {name: make(bundle, run) for name, make in MAKERS.items()}
    return {name: document for name, document in made.items() if document is not None}
