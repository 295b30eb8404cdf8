"""Tells where a bundle keeps its telemetry: the candidate's agent's spool, and beside it the one of the agent on the control node that
read the candidate's BMC over the network, where the candidate could not."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path

from daq_bench.bench_model.bundle.files import plain_file
from daq_bench.bench_model.bundle.line_protocol import Point, points_of

OWN, BMC = Path("telemetry"), Path("telemetry/bmc")
SPOOLS = (OWN, BMC)
POINTS_FILE, SUMMARY_FILE, CURSOR_FILE = "points.lp", "summary.json", "cursor.json"


def spool_folders(bundle: Path) -> list[Path]:
    """The folders of `bundle` that hold a spool."""
    return [bundle / spool for spool in SPOOLS if plain_file(bundle, f"{spool}/{POINTS_FILE}")]


def points_files(bundle: Path) -> tuple[Path, ...]:
    """The spools of `bundle`; none where the run was never watched."""
    return tuple(folder / POINTS_FILE for folder in spool_folders(bundle))


def points_of_bundle(
    bundle: Path, measurements: Collection[str], fields: Collection[str] | None = None
) -> Iterator[Point]:
    """The points of the wanted measurements, spool by spool, each in its own order, with the wanted fields only (None: all).

    Raises ValueError that names file and line."""
    return chain.from_iterable(points_of(file, measurements, fields) for file in points_files(bundle))
