"""Result documents that follow from a bundle's own telemetry and results: computed at the end of a run, and again by `check-bundle`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from bench_model import drive_temperature, raid_comparison
from bench_model.evidence import Document

Maker = Callable[[Path, Document], Document | None]  # None: the run has nothing that it would follow from

# In this order: a later one may read what an earlier one wrote.
MAKERS: dict[str, Maker] = {
    "results/drive_temperature.json": drive_temperature.of_bundle,
    "results/raid_comparison.json": raid_comparison.of_bundle,
}


def documents(bundle: Path) -> dict[str, Document]:
    """Name and content of each derived document of `bundle`, whose run.json names the target."""
    run: Document = json.loads((bundle / "run.json").read_text(encoding="utf-8"))
    made = ((name, make(bundle, run)) for name, make in MAKERS.items())
    return {name: document for name, document in made if document is not None}
