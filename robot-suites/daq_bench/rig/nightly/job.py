"""One job of a night: `python -m daq_bench.rig qualify` in a process of its own, and its outcome.

Each job has a process, so that a fault in one run cannot end the night, and so that a stop has the effect of an operator's Ctrl-C:
SIGTERM, upon which the run restores the machine and seals its bundle as interrupted."""

from __future__ import annotations

import glob
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError, ProfileError, RefusedError, in_words
from daq_bench.bench_model.documents.nights import Job, Word
from daq_bench.bench_model.documents.run import FINISHED
from daq_bench.bench_model.documents.verdict import ERROR
from daq_bench.bench_model.nights.night import read_night, read_run
from daq_bench.bench_model.nights.outcome import INTERRUPTED, SKIPPED, STATUS, Entry, outcome_of
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.bench_model.verdict.advice import advice_of
from daq_bench.bench_model.verdict.conclusion import conclude
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.shell import UNTIL_PARENT_DIES
from daq_bench.rig.candidate.lock import all_exclusive
from daq_bench.rig.candidate.trigger import VARIABLE
from daq_bench.rig.checking.door import Trust, admit
from daq_bench.rig.checking.own_profiles import Own
from daq_bench.rig.checking.signing import of_checker
from daq_bench.rig.run.clean_up import not_given_back

POLL_S = 0.2
CLEAN_UP_S_MAX = 1800.0  # a run that was told to stop restores BIOS settings too, which may take a reboot
LATE_S_MAX = 30.0  # a restore that took so long already, and is told to end
LAST_BYTES = 16384
CLOCK_STEP = timedelta(minutes=2)  # [P] by so much the clock may be set back between the process and its run
# Steps that open files are done for one candidate at a time: hundreds may begin, or end, at one moment, and ask for thousands of files.
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Where:
    """Folders and options that all runs share. `more`: further words of their command lines."""

    inventory: Path
    runs: Path
    influx_url: str | None = None
    more: tuple[str, ...] = ()
    meeting: str = ""  # the address of a common trigger


@dataclass(frozen=True)
class Ended:
    """Describes how a run's process ended. `stopped`: why it was told to, empty when it was not."""

    status: int
    seconds: float
    stopped: str
    overdue: bool = False  # it was told to because its own time was over, not everybody's
    killed: bool = False  # it did not put its machine back when it was told to stop


def run_job(job: Job, where: Where, log: Path, stop: Callable[[], str], limit_s: float | None = None) -> list[Entry]:
    """Runs the job to its end; one entry per target. `stop` is asked again and again: its text, when not empty, ends the run. So does
    `limit_s`, the most that one run may take: an error of this run alone."""
    try:
        with (
            _one_at_a_time,
            all_exclusive(load_candidate(where.inventory, job.candidate), "looking whether it is free"),
        ):
            pass
    except ProfileError:
        pass  # the run itself names the fault of the entry
    except RefusedError as error:
        return [Entry(job, SKIPPED, str(error))]
    with _one_at_a_time:
        before = _bundles(where.runs, job.candidate)
    since = datetime.now(UTC)
    more = {VARIABLE: where.meeting} if where.meeting else {}
    ended = _execute(command(job, where), log, stop, more, limit_s)
    if ended.killed:
        ended = replace(ended, stopped=f"{ended.stopped}; {_restored(job, where, log)}")
    with _one_at_a_time:
        made = sorted(path for path in _bundles(where.runs, job.candidate) - before if _is_of(path, job, since))
        found = [
            one for path in made for one in _given_back(_entry(job, path, ended, len(made), trust_of(job, where)), path)
        ]
        return [*found, *_unexplained(job, found, ended, log)] if found else [_without_bundle(job, ended, log)]


def trust_of(job: Job, where: Where) -> Trust:
    """The operator's own: the keys that the inventory names, and the very profiles that the job asks for."""
    signers = of_checker(where.inventory, ("allowed_signers",)).allowed_signers
    return Trust(signers, Own.named(Layout().inventory, job.scenario, job.requirement))


def command(job: Job, where: Where) -> list[str]:
    """The run's command line."""
    options = {
        "--candidate": job.candidate, "--scenario": job.scenario, "--requirement": job.requirement, "--target": job.target,
        "--scale": job.scale, "--duration": job.duration_s, "--inventory": where.inventory, "--runs": where.runs,
        "--influx-url": where.influx_url,
    }  # fmt: skip
    chosen = [str(word) for pair in options.items() if pair[1] is not None for word in pair]
    return [*UNTIL_PARENT_DIES, sys.executable, "-m", "daq_bench.rig", "qualify", *chosen, *where.more]


def restore_command(job: Job, where: Where) -> list[str]:
    """Returns the command that puts back what a killed run has left."""
    options = ["--candidate", job.candidate, "--inventory", str(where.inventory), "--runs", str(where.runs)]
    return [*UNTIL_PARENT_DIES, sys.executable, "-m", "daq_bench.rig", "restore", *options]


def _execute(
    argv: Sequence[str],
    log: Path,
    stop: Callable[[], str],
    more: Mapping[str, str],
    limit_s: float | None = None,
    clean_up_s_max: float | None = None,
) -> Ended:
    grace_s = CLEAN_UP_S_MAX if clean_up_s_max is None else clean_up_s_max
    since, stopped, told_at, overdue, killed = time.monotonic(), "", 0.0, False, False
    with (
        _one_at_a_time,
        log.open("ab") as output,
    ):  # the run's own from here on: a fleet of hundreds holds no file open for each
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **more},
        )  # fmt: skip
    while process.poll() is None:
        if not stopped and (stopped := stop()):
            process.send_signal(signal.SIGTERM)
            told_at = time.monotonic()
        elif not stopped and limit_s is not None and time.monotonic() - since > limit_s:
            stopped, overdue = f"it was stopped, as it took more than {limit_s / 3600:g} h (run_limit_h)", True
            process.send_signal(signal.SIGTERM)
            told_at = time.monotonic()
        if stopped and not killed and time.monotonic() - told_at > grace_s:
            os.killpg(process.pid, signal.SIGKILL)
            killed = True
        time.sleep(POLL_S)
    return Ended(process.returncode, time.monotonic() - since, stopped, overdue, killed)


def _restored(job: Job, where: Where, log: Path) -> str:
    """Puts back what a run that had to be killed left, as far as its candidate answers; says how that went."""
    began = time.monotonic()
    ended = _execute(
        restore_command(job, where), log, lambda: "late" if time.monotonic() - began > CLEAN_UP_S_MAX else "", {},
        clean_up_s_max=LATE_S_MAX,
    )  # fmt: skip
    if ended.status == 0:
        return f"it did not end by itself within {CLEAN_UP_S_MAX / 60:g} min and was killed; a restore after it put the machine back"
    return (
        f"it did not end by itself within {CLEAN_UP_S_MAX / 60:g} min and was killed; a restore after it failed (exit status "
        f"{ended.status}): `daq-bench restore --candidate {job.candidate}` once the machine answers"
    )


def _bundles(runs: Path, candidate: str) -> set[Path]:
    """Returns the candidate's bundles by the names that `Bundle.create` gives: a fleet asks this of a folder of thousands for each run."""
    found = runs.glob(f"*-{glob.escape(candidate)}-*/run.json") if runs.is_dir() else ()
    return {file.parent for file in found if not file.parent.is_symlink()}


def _is_of(bundle: Path, job: Job, since: datetime) -> bool:
    """Says whether the job's process made a new bundle: others may be copied into the folder while it runs, even of its own candidate. One
    that cannot be read counts as an error: nobody can tell when it began."""
    try:
        if json.loads((bundle / "run.json").read_text(encoding="utf-8"))["candidate"]["name"] != job.candidate:
            return False
    except (OSError, ValueError, KeyError, TypeError):
        return False
    try:
        return since - CLOCK_STEP <= read_run(bundle).started <= datetime.now(UTC) + CLOCK_STEP
    except (OSError, ValueError, TypeError):
        return True


def _unexplained(job: Job, entries: Sequence[Entry], ended: Ended, log: Path) -> list[Entry]:
    """A process that ended worse than its bundles say left something undone: a target without a run, a restoration, a report."""
    told = [entry.outcome for entry in entries]
    if ended.status == 0 or ended.status in {STATUS[word] for word in told} or {ERROR, INTERRUPTED} & set(told):
        return []
    if ended.stopped:
        return [Entry(job, _stopped(ended), f"stopped before all its targets were measured: {ended.stopped}")]
    reason = f"its process ended with exit status {ended.status}, of which its bundles say nothing: not all was done that was asked"
    return [Entry(job, ERROR, f"{reason}: {_last_words(log)}")]


def _without_bundle(job: Job, ended: Ended, log: Path) -> Entry:
    if ended.stopped:
        return Entry(job, _stopped(ended), f"stopped before its run began: {ended.stopped}", seconds=ended.seconds)
    return Entry(job, ERROR, f"no run began (exit status {ended.status}): {_last_words(log)}", seconds=ended.seconds)


def _last_words(log: Path) -> str:
    """Returns the last error that the run printed, else its last line."""
    said = log.read_bytes()[-LAST_BYTES:].decode("utf-8", "replace").strip().splitlines()
    nothing = "it said nothing" if os.statvfs(log).f_bavail else f"it said nothing, since the disk of {log} is full"
    told = next((line for line in reversed(said) if line.startswith("error: ")), said[-1] if said else nothing)
    return told.removeprefix("error: ")


def _entry(job: Job, path: Path, ended: Ended, of: int, trust: Trust) -> Entry:
    seconds = ended.seconds / of
    try:
        night = read_night(path, warm=False)
    except (OSError, ValueError, KeyError, TypeError, BenchError) as error:
        return Entry(
            job,
            ERROR,
            f"{path.name} came to no verdict that counts (exit status {ended.status}): {in_words(error)}",
            seconds=seconds,
        )
    (door,) = admit([path], trust)
    if door.refusal and night.state == FINISHED:
        return Entry(job, ERROR, f"{path.name} {door.refusal}", seconds=seconds)
    outcome, reason = outcome_of(night), conclude(night.verdict).reason
    advice = advice_of(path, read_run(path), night.verdict)
    cause, step = advice.cause, advice.step.line
    if outcome == INTERRUPTED and ended.stopped:
        outcome, reason = (
            _stopped(ended),
            f"{ended.stopped}; the run put the machine back and sealed its bundle as interrupted",
        )
        cause = step = ""  # the night says how it goes on
    return Entry(job, outcome, reason, night, seconds=seconds, marks=door.marks, likely_cause=cause, next_step=step)


def _given_back(entry: Entry, path: Path) -> list[Entry]:
    """The entry, with an ERROR beside it where something was not given back: whoever reads of a PASS looks no further."""
    try:
        left = not_given_back(Bundle.open(path))
    except (OSError, ValueError, BenchError):  # the entry says what is wrong with it
        return [entry]
    if not left:
        return [entry]
    if entry.outcome in (ERROR, INTERRUPTED):
        return [replace(entry, reason=f"{entry.reason}. {left}")]
    return [entry, Entry(entry.job, ERROR, f"{path.name}: {left}")]


def _stopped(ended: Ended) -> Word:
    """A run that everybody's end stopped is done again by a night that goes on; one that took too long would take as long again."""
    return ERROR if ended.overdue else INTERRUPTED
