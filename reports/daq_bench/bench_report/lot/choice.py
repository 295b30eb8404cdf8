"""Tells which runs of a folder of thousands a lot report is about: those with drives of its model that did what the newest of them did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from daq_bench.bench_model.base.calling import a_run
from daq_bench.bench_model.base.nearest import nearest
from daq_bench.bench_model.documents.run import FINISHED
from daq_bench.bench_model.nights.bundle_facts import DRIVES
from daq_bench.bench_model.nights.night import Night
from daq_bench.bench_model.nights.run_history import read_all
from daq_bench.bench_report.base.errors import BundleError

MOST_NAMED = 10


def bundles_of(paths: Sequence[Path], model: str | None) -> list[Path]:
    """Each path that is a bundle (or nothing at all: its reader says so), and the runs of each that is a folder of bundles.

    Raises BundleError for a folder without runs of the model, and for one with several models where none is chosen."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir() and not (path / "run.json").exists():
            found += [night.path for night in _chosen(path, model)]
        else:
            found.append(path)
    return found


def _chosen(folder: Path, model: str | None) -> list[Night]:
    nights, _ = read_all([folder])
    finished = [night for night in nights if night.state == FINISHED]
    models = sorted({one for night in finished for one in _models(night)})
    if model is None and len(models) > 1:
        told = ", ".join(models[:MOST_NAMED]) + (f" and {len(models) - MOST_NAMED} more" * (len(models) > MOST_NAMED))
        raise BundleError(
            str(folder), f"its runs have drives of {len(models)} models: {told}", "Choose one with --model"
        )
    own = [night for night in finished if model in (None, *_models(night))]
    if not own:
        if model is None:
            raise BundleError(
                str(folder), "it holds no finished run that counts", f"Name a folder of runs, or bundles: {a_run()}"
            )
        problem = f"no finished run that counts has a drive of model {model!r}"
        raise BundleError(str(folder), problem, nearest(model, models))
    newest = max(own, key=lambda night: (night.started, night.id))
    return [night for night in own if (night.task, night.requirement) == (newest.task, newest.requirement)]


def _models(night: Night) -> Iterator[str]:
    """The model of each drive, which a run's facts state before the drive's link."""
    for (group, _), told in night.facts.items():
        if group == DRIVES:
            yield told.partition(", ")[0]
