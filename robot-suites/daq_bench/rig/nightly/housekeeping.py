"""Deletes bundles and nights as the plan says: passes by number, everything by age and size. Nothing is deleted that the plan does not ask.

A folder is a bundle or a night by its name (the moment at which it began, as in its id) and its document; others are left alone. The bench
first hides what it deletes, so that a bench that dies in the middle leaves no half bundle for others to find; the next night removes it.
Other nights and runs may be at work in the same folders: what they have removed is gone, and what they write stays."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError, in_words
from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.bundle.dates import moment_of_id
from daq_bench.bench_model.bundle.files import bytes_on_disk, states_of
from daq_bench.bench_model.bundle.provenance import REPORTS_MANIFEST
from daq_bench.bench_model.documents.verdict import PASS
from daq_bench.bench_model.nights.night import Night
from daq_bench.rig.checking.sealing import altered_evidence, sealed
from daq_bench.rig.nightly.baselines import Baselines, task_key

BUNDLE, NIGHT = "run.json", "nightly.json"
LATEST = "latest"
NIGHT_LOCK = ".lock"  # a night holds it while it runs
QUIET_S_MIN = 86400.0  # [P] a bundle that lacks a seal, and in which somebody wrote since, may be of a run that goes on
DELETING = ".deleting-"
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


class Housekeeping:
    """One night's. `tonight`: the bundles and the night that are never deleted, whatever their age; `compared`: names of the bundles with
    which each job was compared last."""

    def __init__(
        self, runs: Path, nights: Path, keeping: Keeping, baselines: Baselines, tonight: Sequence[Path],
        say: Callable[[str], None], compared: Collection[str] = (),
    ) -> None:  # fmt: skip
        self._folders, self._keeping, self._say = {runs.resolve(): BUNDLE, nights.resolve(): NIGHT}, keeping, say
        self._runs, self._now = runs.resolve(), datetime.now(UTC)
        self._tonight = {path.resolve() for path in tonight}
        self._protected = {*baselines.paths(), *self._tonight}
        self._protected |= {(folder / LATEST).resolve() for folder in self._folders}
        self._named = {*keeping.named, *compared}
        self.deleted: list[str] = []

    def run(self, known: Sequence[Night]) -> list[str]:
        """Returns the names of what was deleted. `known`: the bundles in `runs` that others may rest on."""
        for folder in self._folders:
            for rest in folder.glob(f"{DELETING}*"):
                self._remove(rest)
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
                f"warning: all {len(old)} bundles and nights before tonight's are older than keep_days, {in_digits(days, 15)}: "
                "none was deleted for its age. See that the control node's clock is right; the next night deletes them"
            )
            return
        self._delete(one.path for one in old)

    def _shrink(self, bytes_max: float) -> None:
        """Deletes the oldest until the rest fits. Says so where what may not be deleted is too large already."""
        found = self._on_disk()
        left = sum(bytes_on_disk(one.path) for one in found)
        for one in found:
            if left <= bytes_max:
                return
            size = bytes_on_disk(one.path)
            if self._delete([one.path]):
                left -= size
        if left > bytes_max:
            held, allowed = (in_digits(size / BYTES_OF_GB) for size in (left, bytes_max))
            self._say(
                f"warning: bundles and nights have {held} GB, and keep_gb allows {allowed}: what is "
                "left is tonight's or of a run that may go on, a baseline, named in `keep`, or differs from its manifest. Move some of it "
                "elsewhere, or allow more"
            )

    def _on_disk(self) -> list[Kept]:
        """Bundles and nights, the oldest first; without those whose date lies ahead of now."""
        found = []
        for folder, document in self._folders.items():
            for path in folder.iterdir() if folder.is_dir() else ():
                began = moment_of_id(path.name)
                if began and not path.is_symlink() and (path / document).is_file():
                    found.append(Kept(path, began, max(began, _last_change(path))))
        return sorted((one for one in found if one.last_change <= self._now), key=lambda one: one.began)

    def _delete(self, paths: Iterable[Path]) -> bool:
        """Deletes those that may be; says whether all of them were."""
        whole = True
        for path in paths:
            if (
                path in self._protected
                or path.name in self._named
                or self._goes_on(path)
                or not _as_it_was_sealed(path)
            ):
                whole = False
                continue
            hidden = path.with_name(f"{DELETING}{path.name}")
            try:
                path.rename(hidden)
            except FileNotFoundError:  # another night deleted it
                continue
            except OSError as error:
                self._say(f"warning: {path} cannot be deleted: {in_words(error)}")
                whole = False
                continue
            whole &= self._remove(hidden)
            self.deleted.append(path.name)
        return whole

    def _remove(self, hidden: Path) -> bool:
        """Removes what no reader finds any more; says so, and says no, where something of it stays. A link's end is left alone."""
        try:
            if hidden.is_symlink() or not hidden.is_dir():
                hidden.unlink(missing_ok=True)
            else:
                shutil.rmtree(hidden)
        except FileNotFoundError:  # another night is at it
            return True
        except OSError as error:
            self._say(f"warning: {hidden} cannot be removed: {in_words(error)}. The next night tries it again")
            return False
        return True

    def _goes_on(self, path: Path) -> bool:
        """Says whether a run or a night may still write there."""
        if (path / NIGHT).is_file():
            return night_runs(path)
        whole = sealed(path) and (path / REPORTS_MANIFEST).is_file()
        return not whole and (self._now - _last_change(path)).total_seconds() < QUIET_S_MIN


def night_runs(folder: Path) -> bool:
    """Says whether a command is at that night now."""
    try:
        with (folder / NIGHT_LOCK).open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _last_change(path: Path) -> datetime:
    """When something was last written into it: a run that goes on for weeks is as old as its newest telemetry."""
    paths = (path, *_entries(path), *_entries(path / "telemetry"))
    return datetime.fromtimestamp(max((found.st_mtime for found in states_of(paths)), default=0.0), UTC)


def _entries(folder: Path) -> list[Path]:
    """Returns what the folder holds; an empty list where it is gone or may not be read. (Path.glob raises when it goes in the middle.)"""
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def _as_it_was_sealed(path: Path) -> bool:
    """False for a bundle that was altered since: somebody will want to know. An unsealed bundle has nothing to differ from."""
    if not sealed(path):
        return True
    try:
        return not altered_evidence(path)
    except BenchError:
        return False
