"""Chooses each task's baseline: the run that somebody set, else the last known good; and the bundles that may be deleted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from bench_model.base.errors import BenchError, RefusedError, in_words
from bench_model.bundle.provenance import MANIFEST, digest_of
from bench_model.documents.nights import Baseline
from bench_model.documents.nights import Baselines as Stored
from bench_model.documents.struct import checked, read
from bench_model.nights.night import FINISHED, Night, read_night
from rig.base.bundle import Bundle, now_utc, to_json, write_text_atomically
from rig.checking.sealing import altered_evidence, sealed

FILE = "baselines.json"


class Baselines:
    """`<folder>/baselines.json`: a run for each task, with its manifest's hash, so that an altered one is noticed."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        self._known = _read(self._file)

    def choose(self, path: Path) -> str:
        """Makes the run at `path` the baseline of what it did; returns its id. Raises RefusedError when it is none to compare with."""
        bundle = Bundle.open(path)
        changes = [change.text for change in altered_evidence(bundle.path)]
        if changes:
            raise RefusedError(f"{path} was altered since its run ({'; '.join(changes[:3])}): it cannot be a baseline")
        night = read_night(bundle.path, warm=False)  # refuses what others may not rest on
        if night.state != FINISHED or not night.good:
            raise RefusedError(
                f"{path} ended {night.state} with {night.outcome}: only a run that missed nothing can be a baseline"
            )
        self._known[task_key(night)] = Baseline(
            str(bundle.path), night.id, digest_of(bundle.path / MANIFEST), now_utc()
        )
        write_text_atomically(self._file, to_json(checked(Stored(1, self._known))))
        return night.id

    def of(self, night: Night, earlier: Sequence[Night]) -> Night | None:
        """The baseline of `night`'s task: the one that was set, else the newest good one of `earlier`; None where there is neither.

        Raises BenchError when the one that was set is gone or altered."""
        known = self._known.get(task_key(night))
        if known is None:
            return next((one for one in reversed(earlier) if one.good and one.task == night.task), None)
        path = Path(known.run)
        if not (path / MANIFEST).is_file() or digest_of(path / MANIFEST) != known.manifest_sha256:
            raise BenchError(
                f"the baseline {known.run_id} is gone or altered ({path}); set another: make baseline RUN=runs/<id>"
            )
        return read_night(path, warm=False)

    def paths(self) -> set[Path]:
        return {Path(known.run).resolve() for known in self._known.values()}


def task_key(night: Night) -> str:
    """Returns a run's task as a key of the file."""
    parts = (night.candidate, night.target, night.scenario, f"scale {night.scale:g}", f"{night.duration_s or 0:g} s")
    return " | ".join(parts)


def prune(runs: Path, keep: int, baselines: Baselines, nights: Sequence[Night]) -> list[str]:
    """Deletes bundles of PASS beyond the newest `keep` of each task; returns their names.

    It never deletes one that did not pass, a baseline, the one that `latest` names, or one that differs from its manifest."""
    protected = {*baselines.paths(), (runs / "latest").resolve()}
    passed: dict[str, list[Night]] = {}
    for night in sorted(nights, key=lambda one: one.started):
        if night.outcome == "PASS" and night.path.resolve().parent == runs.resolve():
            passed.setdefault(task_key(night), []).append(night)
    gone = []
    for group in passed.values():
        for night in group[: max(0, len(group) - keep)]:
            path = night.path.resolve()
            if path not in protected and sealed(path) and not altered_evidence(path):
                shutil.rmtree(path)
                gone.append(path.name)
    return gone


def _read(file: Path) -> dict[str, Baseline]:
    if not file.exists():
        return {}
    try:
        return read(json.loads(file.read_text(encoding="utf-8")), Stored, str(file)).baselines
    except (OSError, ValueError, BenchError) as error:
        raise BenchError(f"{file} cannot be read ({in_words(error)}). Remove it, and set the baselines again") from None
