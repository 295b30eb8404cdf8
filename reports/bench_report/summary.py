"""What reports on several runs need of each bundle, in bounded memory: documents whole, telemetry as envelopes with their statistics.

`load_summaries` reads one bundle after the other (two at a time): of ten runs of ten million points each, the points of two are in memory
at once. What a run with a sealed telemetry/columns.npz costs does not depend on its spool's size in bytes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench_model.columns import Column

from .dataset import Provenance, Run, Samples, Verdict
from .envelope import MAX_DRAWN_POINTS, thinned
from .fields import Node
from .load import results_in, run_in, verdict_in
from .provenance import provenance_of
from .telemetry import NS, columns_of

WORKERS = 2
PARALLEL_FROM = 2  # bundles


@dataclass(frozen=True)
class Envelope:
    """One field of one series over a run. `n`, `low`, `mean` and `high` are of all samples; `t_s` (from the run's start) and `values`
    hold at most MAX_DRAWN_POINTS of them, every extreme of every stretch among them."""

    n: int
    low: float
    mean: float
    high: float
    t_s: Samples
    values: Samples


Key = tuple[str, tuple[tuple[str, str], ...], str]  # measurement, tags, field


@dataclass(frozen=True)
class RunSummary:
    """`envelopes` hold the fields of bench_model.column_file.DRAWN, in the units of their names; `points`: lines of the spool."""

    root: Path
    run: Run
    verdict: Verdict | None
    results: Mapping[str, Node]
    provenance: Provenance
    points: int
    envelopes: Mapping[Key, Envelope]

    def of(self, measurement: str, field: str) -> dict[str, Envelope]:
        """The envelopes of one field by the text of their tags."""
        return {
            " ".join(value for _, value in tags): one
            for (name, tags, of), one in self.envelopes.items()
            if (name, of) == (measurement, field)
        }


def load_summary(root: Path) -> RunSummary:
    """The summary of one bundle. Raises BundleError that names file, field and value."""
    run = run_in(root)
    found = columns_of(root)
    start_s = run.started.timestamp()
    columns = found.found if found else {}
    return RunSummary(
        root=root,
        run=run,
        verdict=verdict_in(root),
        results=results_in(root),
        provenance=provenance_of(root),
        points=found.lines if found else 0,
        envelopes={key: _envelope(column, start_s) for key, column in columns.items() if len(column.values)},
    )


def load_summaries(roots: Sequence[Path]) -> Iterator[RunSummary]:
    """The summaries in the order of `roots`, as they come."""
    if len(roots) < PARALLEL_FROM or (os.cpu_count() or 1) < WORKERS:
        yield from map(load_summary, roots)
        return
    with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("fork")) as pool:
        yield from pool.map(load_summary, roots)


def _envelope(column: Column, start_s: float) -> Envelope:
    times, values = column.times_ns, column.values
    if np.any(np.diff(times) < 0):
        order = np.argsort(times, kind="stable")
        times, values = times[order], values[order]
    t_s, drawn = thinned((times / NS - start_s), values, MAX_DRAWN_POINTS)
    return Envelope(len(values), float(values.min()), float(values.mean()), float(values.max()), t_s, drawn)
