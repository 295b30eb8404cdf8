"""Deletes bundles and nights as the plan says: passes by number, everything by age and size. Nothing is deleted that the plan does not ask.

A folder is a bundle or a night by its name (the moment at which it began, as in its id) and its document; others are left alone. The bench
first hides what it deletes, so that a bench that dies in the middle leaves no half bundle for others to find; the next night removes it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.nights.night import Night
from daq_bench.bench_model.nights.outcome import PASS
from daq_bench.rig.checking.sealing import altered_evidence, sealed
from daq_bench.rig.nightly.baselines import Baselines, task_key

BUNDLE, NIGHT = "run.json", "nightly.json"
LATEST = "latest"
DELETING = ".deleting-"
STAMP = re.compile(r"(\d{8}T\d{6})Z-")
BYTES_OF_GB = 1e9


@dataclass(frozen=True)
class Keeping:
    """Limits. None: no limit. `passes`: of each task; `days` since it began; `gb` of bundles and nights in all; `named`: by name."""

    passes: int | None = None
    days: float | None = None
    gb: float | None = None
    named: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return any(limit is not None for limit in (self.passes, self.days, self.gb))


EVERYTHING = Keeping()


@dataclass(frozen=True)
class Kept:
    """A bundle or a night on disk."""

    path: Path
    began: datetime
    last_change: datetime

    @property
    def bytes_on_disk(self) -> int:
        return sum(one.lstat().st_blocks * 512 for one in (self.path, *self.path.rglob("*")))


class Housekeeping:
    """One night's. `tonight`: the bundles and the night that are never deleted, whatever their age."""

    def __init__(
        self, runs: Path, nights: Path, keeping: Keeping, baselines: Baselines, tonight: Sequence[Path],
        say: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._folders, self._keeping, self._say = {runs.resolve(): BUNDLE, nights.resolve(): NIGHT}, keeping, say
        self._runs, self._now = runs.resolve(), datetime.now(UTC)
        self._tonight = {path.resolve() for path in tonight}
        self._protected = {*baselines.paths(), *self._tonight}
        self._protected |= {(folder / LATEST).resolve() for folder in self._folders}
        self.deleted: list[str] = []

    def run(self, known: Sequence[Night]) -> list[str]:
        """Returns the names of what was deleted. `known`: the bundles in `runs` that others may rest on."""
        for folder in self._folders:
            for rest in folder.glob(f"{DELETING}*"):
                shutil.rmtree(rest)
        if self._keeping.passes is not None:
            self._delete(self._surplus_passes(known, self._keeping.passes))
        if self._keeping.days is not None:
            self._delete_older(self._keeping.days)
        if self._keeping.gb is not None:
            self._shrink(self._keeping.gb * BYTES_OF_GB)
        return self.deleted

    def _surplus_passes(self, known: Sequence[Night], keep: int) -> list[Path]:
        """Bundles of PASS beyond the newest `keep` of each task. One that seems to begin after now is not the newest: a clock jumped. It is
        not counted."""
        passed: dict[str, list[Night]] = {}
        for night in sorted(known, key=lambda one: one.started):
            if night.outcome == PASS and night.path.resolve().parent == self._runs and night.started <= self._now:
                passed.setdefault(task_key(night), []).append(night)
        return [night.path.resolve() for group in passed.values() for night in group[: max(0, len(group) - keep)]]

    def _delete_older(self, days: float) -> None:
        """Where all that is not tonight's would go, the clock has jumped, or the bench rested for so long: a person looks first."""
        found = [one for one in self._on_disk() if one.path not in self._tonight]
        old = [one for one in found if one.last_change < self._now - timedelta(days=days)]
        if old and len(old) == len(found):
            self._say(
                f"warning: all {len(old)} bundles and nights before tonight's are older than keep_days, {days:g}: none was deleted for its "
                "age. See that the control node's clock is right; the next night deletes them"
            )
            return
        self._delete(one.path for one in old)

    def _shrink(self, bytes_max: float) -> None:
        """Deletes the oldest until the rest fits. Says so where what may not be deleted is too large already."""
        found = self._on_disk()
        left = sum(one.bytes_on_disk for one in found)
        for one in found:
            if left <= bytes_max:
                return
            size = one.bytes_on_disk
            if self._delete([one.path]):
                left -= size
        if left > bytes_max:
            self._say(
                f"warning: bundles and nights have {left / BYTES_OF_GB:.4g} GB, and keep_gb allows {bytes_max / BYTES_OF_GB:.4g}: what is "
                "left is tonight's, a baseline, named in `keep`, or differs from its manifest. Move some of it elsewhere, or allow more"
            )

    def _on_disk(self) -> list[Kept]:
        """Bundles and nights, the oldest first; without those whose date lies ahead of now."""
        found = []
        for folder, document in self._folders.items():
            for path in folder.iterdir() if folder.is_dir() else ():
                stamp = STAMP.match(path.name)
                if stamp and not path.is_symlink() and (path / document).is_file():
                    began = datetime.strptime(stamp[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
                    found.append(Kept(path, began, max(began, _last_change(path))))
        return sorted((one for one in found if one.last_change <= self._now), key=lambda one: one.began)

    def _delete(self, paths: Iterable[Path]) -> bool:
        """Deletes those that may be; says whether all of them were."""
        whole = True
        for path in paths:
            if path in self._protected or path.name in self._keeping.named or not _as_it_was_sealed(path):
                whole = False
                continue
            hidden = path.with_name(f"{DELETING}{path.name}")
            path.rename(hidden)
            shutil.rmtree(hidden)
            self.deleted.append(path.name)
        return whole


def _last_change(path: Path) -> datetime:
    """When something was last written into it: a run that goes on for weeks is as old as its newest telemetry."""
    files = (path, *path.glob("*"), *path.glob("telemetry/*"))
    return datetime.fromtimestamp(max(one.lstat().st_mtime for one in files), UTC)


def _as_it_was_sealed(path: Path) -> bool:
    """False for a bundle that was altered since: somebody will want to know. An unsealed bundle has nothing to differ from."""
    if not sealed(path):
        return True
    try:
        return not altered_evidence(path)
    except BenchError:
        return False
