"""Small sets of ROOT files for the analysis reader's tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from daq_bench.analysis_reader import dataset
from daq_bench.analysis_reader.shape import FULL, TTREE, Shape

REPOSITORY = Path(__file__).resolve().parents[2]


def shape(kind: str = FULL, layout: str = TTREE, **changes: Any) -> Shape:
    small = {
        "events": 1200,
        "files": 4,
        "event_bytes": 3000,
        "cluster_events": 100,
        "compression": "zlib-1",
        "seed": 11,
    }
    return Shape(kind, layout, **{**small, **changes})


def files_of(folder: Path) -> list[Path]:
    return [folder / entry["name"] for entry in dataset.load(folder)["files"]]
