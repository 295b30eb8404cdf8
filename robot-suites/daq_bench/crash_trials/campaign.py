"""Trials one after another on one candidate: each seed's row says what was killed, in which phase, and what the judge objects to."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.rows import add_rows, rows_in
from daq_bench.crash_trials import judge
from daq_bench.crash_trials.candidate import DIRECTORY, LightCandidate, light_candidates
from daq_bench.crash_trials.processes import marked
from daq_bench.crash_trials.trial import Killed, Place, Said, Spec, document, killed_run, spec_of
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.telemetry.influx_server import LocalInflux

Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Row:
    """One trial. `victim`: the command line that was killed, empty where the run ended first; `resumed`: how the next run ended."""

    seed: int
    kind: str
    phase: str
    victim: str
    outcome: str
    resumed: str
    objections: list[str]
    seconds: float

    @property
    def struck(self) -> bool:
        return bool(self.victim)


def trial(place: Place, spec: Spec) -> Row:
    """Runs, kills, judges, mends and resumes."""
    began, kind = time.monotonic(), spec.moment.kind
    killed = killed_run(place, spec.moment)
    if kind == "influxd":
        place.influx_url()
    found = judge.outcome(killed, kind) if killed.victim else []
    # A killed bench leaves the agent's service, which goes on collecting until the candidate is restored or the run resumed.
    found += judge.processes_ended(place, but="telemetry_agent.pyz" if kind == "rig" else "")
    found += judge.recorded_while_tuned(place.candidate) + judge.bundle_is_readable(place, killed)
    if spec.mend_first:
        found += mended(place)
    resumed = "not asked"
    if spec.goes_on:
        resumed = _gone_on(place, killed, found)
        found += judge.is_as_before(place.candidate)
    if not spec.mend_first:
        found += mended(place)
    found += judge.telemetry_is_kept(place, killed) + judge.control_node_is_clean(place)
    verdict = str(document(killed.bundle, "verdict.json").get("outcome", "none"))
    return Row(
        spec.seed, kind, killed.phase, killed.victim[:80], verdict, resumed, found, round(time.monotonic() - began, 1)
    )


def mended(place: Place) -> list[str]:
    """One command mends the candidate, and breaks the lock of an owner that is gone."""
    said = place.rig("restore", *place.who, "--runs", str(place.runs))
    found = [] if said.status == 0 else [f"restore ended with {said.status}: {' '.join(said.text.split())[-300:]}"]
    return found + judge.is_as_before(place.candidate)


def _gone_on(place: Place, killed: Killed, found: list[str]) -> str:
    """The outcome of the run that goes on from the killed one; what it must not do is added to `found`."""
    bundle = killed.bundle
    if bundle is not None and document(bundle, "run.json").get("state") == "finished":
        found += judge.telemetry_is_in_influxdb(place, bundle)
        refused = place.rig("resume", str(bundle))
        found += [] if refused.status == 2 and "nothing to resume" in refused.text else ["a finished run is resumed"]
        return "not needed"
    said = _next_run(place, bundle)
    newest = place.newest()
    verdict = str(document(newest, "verdict.json").get("outcome", "none")) if newest != bundle else "none"
    if said.status not in (0, 3) or verdict not in ("PASS", "INADMISSIBLE"):
        found.append(f"the run that goes on ended with {said.status}, {verdict}: {' '.join(said.text.split())[-300:]}")
    elif newest is not None:
        found += judge.processes_ended(place) + judge.telemetry_is_in_influxdb(place, newest)
    return verdict


def _next_run(place: Place, bundle: Path | None) -> Said:
    """`daq-bench resume`; a run that was killed before it had a bundle is asked for again."""
    if bundle is not None and document(bundle, "run.json"):
        return place.rig("resume", "--yes", str(bundle))
    return place.said("again", place.qualify())


def canary(place: Place) -> None:
    """Plants what nobody can overlook. Raises BenchError where the judge does not object to each: then the trials see nothing."""
    candidate = place.candidate
    candidate.command(f"echo 77777 > /proc/sys/fs/aio-max-nr; mkdir {DIRECTORY}/daq-bench-planted")
    stray = subprocess.Popen(["sleep", "60"], env=place.environment)
    try:
        left = judge.is_as_before(candidate) + judge.recorded_while_tuned(candidate)
        left += marked(place.token).values()
    finally:
        stray.kill()
        stray.wait()
        candidate.command(f"echo 65536 > /proc/sys/fs/aio-max-nr; rmdir {DIRECTORY}/daq-bench-planted")
    for planted in ("left tuned", "daq-bench-planted", "without a record", "sleep 60"):
        if not any(planted in one for one in left):
            raise BenchError(
                f"the canary was not found: the judge overlooks what was planted ({planted}); it saw {left}"
            )


@contextmanager
def place_of(folder: Path) -> Iterator[Place]:
    """A candidate with all that its trials need. Ends and removes everything. Raises BenchError where a killed campaign left its own."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise BenchError(
            f"{folder} is left of a campaign that was killed. End what still runs in it (systemd-nspawn, influxd), and remove it"
        ) from None
    influx = LocalInflux(Layout().influxd, folder / "influxdb")
    try:
        with light_candidates(folder, 1) as (candidate,):
            made = Place(candidate, folder, influx)
            yield made
    finally:
        influx.stop()
        forget(candidate)
        shutil.rmtree(folder)


def forget(candidate: LightCandidate) -> None:
    """Returns what the bench keeps of a candidate on this machine."""
    layout = Layout()
    for kept in (layout.state_directory(candidate.name), layout.build / "facts" / candidate.name):
        if kept.exists():
            shutil.rmtree(kept)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Two campaigns never share the rows of one folder. Raises BenchError for the second."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w", encoding="ascii") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BenchError(
                f"another campaign runs in {folder}. Wait for its end, or make this one in a clone of its own"
            ) from None
        yield


def rows_of(file: Path, kind: type[Kept]) -> list[Kept]:
    """The rows of earlier trials."""
    return msgspec.convert(rows_in(file), list[kind])  # type: ignore[valid-type]


def run(seeds: Sequence[int], file: Path, work: Path) -> Iterator[Row]:
    """Makes the trials whose rows are missing, on a new candidate after each to which the judge objected."""
    done = {row.seed for row in rows_of(file, Row)}
    left = [seed for seed in seeds if seed not in done]
    while left:
        with place_of(work / f"from-{left[0]}") as place:
            canary(place)
            while left:
                row = trial(place, spec_of(left.pop(0)))
                add_rows(file, [asdict(row)])
                if row.objections:
                    shutil.copytree(
                        place.runs, file.parent / "kept" / f"seed-{row.seed}", symlinks=True, dirs_exist_ok=True
                    )
                yield row
                if row.objections:
                    break
