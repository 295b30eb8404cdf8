"""Chooses each task's baseline: the run that somebody set, else the last known good."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError, RefusedError, in_words
from daq_bench.bench_model.bundle.files import parse_json
from daq_bench.bench_model.bundle.provenance import MANIFEST, digest_of
from daq_bench.bench_model.documents.admission import named
from daq_bench.bench_model.documents.nights import Baseline
from daq_bench.bench_model.documents.nights import Baselines as Stored
from daq_bench.bench_model.documents.run import FINISHED
from daq_bench.bench_model.documents.struct import checked, read
from daq_bench.bench_model.nights.night import Night, read_night
from daq_bench.rig.base.bundle import Bundle, now_utc, to_json, write_atomically
from daq_bench.rig.checking.agreement import changes_since

FILE, LOCK = "baselines.json", ".baselines.lock"


class Baselines:
    """`<folder>/baselines.json`: a run for each task, with its manifest's hash, so that an altered one is noticed.

    A night takes hours, in which somebody may set another: the file is read whenever it is asked."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        _read(self._file)  # a damaged file ends the command before its first run

    def choose(self, path: Path) -> str:
        """Makes the run at `path` the baseline of what it did; returns its id. Raises RefusedError when nothing may be compared with it."""
        bundle = Bundle.open(path)
        if changes := changes_since(bundle):
            raise RefusedError(
                f"{path} was altered since its run ({named(changes, '; ')}): it cannot be a baseline. Use a sound copy, or another run"
            )
        night = read_night(bundle.path, warm=False)  # refuses what others may not rest on
        if night.state != FINISHED or not night.good:
            raise RefusedError(
                f"{path} ended {night.state} with {night.outcome}: only a PASS or a declared rehearsal can be a baseline. "
                "`daq-bench list runs` shows them"
            )
        chosen = Baseline(str(bundle.path), night.id, digest_of(bundle.path / MANIFEST), now_utc())
        with _alone(self._file.with_name(LOCK)):
            known = _read(self._file) | {task_key(night): chosen}
            write_atomically(self._file, to_json(checked(Stored(1, known))))
        return night.id

    def of(self, night: Night, earlier: Sequence[Night]) -> Night | None:
        """The baseline of `night`'s task: the one that was set, else the newest good one of `earlier`; None where there is neither.

        Raises BenchError when the one that was set is gone or altered, or was never one of this task."""
        known = _read(self._file).get(task_key(night))
        if known is None:
            return next((one for one in reversed(earlier) if one.good and one.task == night.task), None)
        path = Path(known.run)
        if not (path / MANIFEST).is_file() or digest_of(path / MANIFEST) != known.manifest_sha256:
            raise BenchError(
                f"the baseline {known.run_id} is gone or altered ({path}); set another: daq-bench baseline runs/<id>"
            )
        found = read_night(path, warm=False)
        if (found.id, task_key(found)) != (known.run_id, task_key(night)) or found.state != FINISHED or not found.good:
            raise BenchError(
                f"{self._file} names {path} as the baseline of {task_key(night)}, and it is a run of {task_key(found)} that ended "
                f"{found.state} with {found.outcome}; set another: daq-bench baseline runs/<id>"
            )
        return found

    def chosen(self, night: Night) -> bool:
        """Says whether somebody set the baseline of `night`'s task."""
        return task_key(night) in _read(self._file)

    def paths(self) -> set[Path]:
        return {Path(known.run).resolve() for known in _read(self._file).values()}


def task_key(night: Night) -> str:
    """Returns a run's task as a key of the file."""
    parts = (night.candidate, night.target, night.scenario, f"scale {night.scale:g}", f"{night.duration_s or 0:g} s")
    return " | ".join(parts)


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Two that set a baseline at once: neither loses the other's."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _read(file: Path) -> dict[str, Baseline]:
    if not file.exists():
        return {}
    try:
        return read(parse_json(file.read_bytes(), str(file)), Stored, str(file)).baselines
    except (OSError, BenchError) as error:
        raise BenchError(f"{file} cannot be read ({in_words(error)}). Remove it, and set the baselines again") from None
