"""A night of acceptance runs: one after another or several candidates at once, each compared with its baseline, documents after every run.

However one run ends, the next is started. SIGTERM or Ctrl-C ends the running one politely and skips the others; `--resume` goes on."""

from __future__ import annotations

import fcntl
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

from daq_bench.bench_model.base.calling import typed
from daq_bench.bench_model.base.errors import BenchError, RefusedError, in_words
from daq_bench.bench_model.bundle.files import find_struct
from daq_bench.bench_model.documents.nights import Job, NightDocument, NightRun, NightState, Word
from daq_bench.bench_model.documents.run import FINISHED
from daq_bench.bench_model.documents.struct import checked
from daq_bench.bench_model.documents.verdict import ERROR
from daq_bench.bench_model.nights import ocp_tv
from daq_bench.bench_model.nights.baseline import REGRESSED, compare
from daq_bench.bench_model.nights.night import Night, read_night
from daq_bench.bench_model.nights.outcome import (
    INTERRUPTED,
    REGRESSION,
    SKIPPED,
    STATUS,
    Entry,
    document,
    headline,
    outcome_of,
    status_of,
    summary,
    unfinished,
    worse,
)
from daq_bench.bench_model.nights.run_history import read_all, without_duplicates
from daq_bench.bench_model.nights.xunit import xunit
from daq_bench.rig.base.bundle import now_utc, point_latest, to_json, write_atomically
from daq_bench.rig.base.shell import LocalShell
from daq_bench.rig.base.terminal import say
from daq_bench.rig.checking.door import admit
from daq_bench.rig.nightly.baselines import Baselines
from daq_bench.rig.nightly.fleet import Fleet
from daq_bench.rig.nightly.housekeeping import NIGHT_LOCK, Housekeeping
from daq_bench.rig.nightly.job import Where, trust_of
from daq_bench.rig.nightly.lanes import Stop
from daq_bench.rig.nightly.notify import Teller, begun, changed, over, word_before
from daq_bench.rig.nightly.plan import Plan

DOCUMENT, SUMMARY, XUNIT, OCP = "nightly.json", "summary.txt", "xunit.xml", "ocp"
REPORT_S_MAX = 600.0
DONE = ("finished", "interrupted")
NOT_ENDED = "it had not ended when this was written: the night still runs, or was killed"


class Nightly:
    """One night. `execute` returns the exit status."""

    def __init__(self, plan: Plan, where: Where, folder: Path, console: Console, at_once: int = 1) -> None:
        """`folder`: the night's own, which may hold what an interrupted one left. `at_once`: candidates at the same time."""
        self._plan, self._where, self._folder, self._console = plan, where, folder, console
        self._started = now_utc()
        self._baselines = Baselines(folder.parent)
        self._at_once = at_once
        self._entries: list[Entry] = []
        self._stop = Stop("the night's time limit was reached")
        self._resumed: dict[Job, list[Entry]] = {}
        self._red: dict[str, frozenset[str]] = {}
        self._before: dict[Job, dict[str, Word]] = {}
        self._told: set[tuple[Job, str]] = set()
        self._teller = Teller(plan.notify, self._say)

    def carry_out(self, goes_on: bool) -> int:
        """Executes the night, or resumes it, while no other command is at it. Raises RefusedError where one is."""
        if goes_on:
            self._stored()  # names a folder that is no night, before anything is written into it
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._alone():
            if goes_on:
                self.resume()
            try:
                return self.execute()
            finally:
                self._teller.end()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with (self._folder / NIGHT_LOCK).open("a") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RefusedError(f"{self._folder} is a night that still runs. Wait until it has ended") from None
            yield

    def resume(self) -> None:
        """Keeps what an interrupted night had finished. Raises RefusedError when there is nothing left to do."""
        found = self._stored()
        kept: dict[Job, list[Entry]] = {}
        for one in found.runs:
            entry = _entry_of(one)
            kept.setdefault(entry.job, []).append(entry)
        again = {job for job, entries in kept.items() if any(unfinished(entry) for entry in entries)}
        self._resumed = {job: entries for job, entries in kept.items() if job not in again}
        self._started = found.started_utc
        self._plan = replace(self._plan, jobs=tuple(found.plan))
        if all(job in self._resumed for job in self._plan.jobs):
            raise RefusedError(
                f"{self._folder} is finished: there is nothing to resume. `daq-bench nightly` begins another"
            )

    def _stored(self) -> NightDocument:
        if (found := find_struct(self._folder, DOCUMENT, NightDocument)) is None:
            raise BenchError(
                f"{self._folder} holds no night (there is no {DOCUMENT}). Name one with {typed('--resume', 'nightly/<id>')}"
            )
        return found

    def execute(self) -> int:
        self._folder.mkdir(parents=True, exist_ok=True)
        point_latest(self._folder.parent, self._folder.name)
        if self._plan.time_limit_s is not None:
            self._stop.deadline = time.monotonic() + self._plan.time_limit_s
        earlier = stored_nights(self._folder.parent, self._say)
        self._red, self._before = regressed_runs(earlier), last_words(earlier, self._folder.name)
        self._teller.tell(begun(self._folder.name, [job.name for job in self._plan.jobs]))
        self._goes_on([entry for job in self._plan.jobs for entry in self._resumed.get(job, [])])
        fleet = Fleet(
            self._plan.jobs,
            self._where,
            self._folder,
            self._console,
            self._at_once,
            self._stop,
            limit_s=self._plan.run_limit_s,
        )
        self._entries = fleet.execute("the night", self._resumed, self._compared, self._goes_on)
        return self._conclude()

    def _goes_on(self, entries: list[Entry]) -> None:
        """Stores what is known so far: a night that is killed from here on is found, resumed, and called interrupted."""
        self._entries = entries
        try:
            self._write("running")
        except OSError as error:  # a full disk: the other runs have their own, and housekeeping makes room at the end
            self._say(f"warning: {self._folder} cannot be written ({in_words(error)}): the night goes on")
        self._tell_changes()

    def _tell_changes(self) -> None:
        """A run that was stopped says nothing new of its candidate."""
        for run in self._document("running", self._entries).runs:
            before, key = word_before(run, self._before), (run.job, run.target)
            if before and before != run.worst != INTERRUPTED and key not in self._told:
                self._teller.tell(changed(self._folder.name, run, before))
                self._told.add(key)

    def _compared(self, entry: Entry) -> Entry:
        """The entry with its comparison; a run that did not finish has none."""
        night = entry.night
        if night is None or night.state != FINISHED:
            return entry
        try:
            earlier = self._earlier(night)
            baseline = self._baselines.of(night, [one for one in earlier if one.id not in self._red])
        except BenchError as error:
            return replace(entry, outcome=worse(entry.outcome, ERROR), reason=str(error), likely_cause="", next_step="")
        if baseline is None:
            return replace(entry, reason=f"{entry.reason}; no baseline yet".removeprefix("; "))
        others = [one for one in earlier if one.task == night.task]
        found = compare(night, baseline, others, self._red, self._baselines.chosen(night))
        return replace(entry, baseline=baseline.id, comparisons=tuple(found))

    def _earlier(self, night: Night) -> list[Night]:
        """Good runs of the candidate that began before, in order, those among them that a night found worse.

        Raises BenchError where the clock jumped, so that nobody can tell which run is the last one."""
        found, _ = read_all([self._where.runs], night.candidate)
        good = [
            one for one in without_duplicates(found)[0]
            if one.state == FINISHED and one.good and one.id != night.id
        ]  # fmt: skip
        trust = trust_of(Job(candidate=night.candidate), self._where)
        good = [
            one for one, door in zip(good, admit([one.path for one in good], trust), strict=True) if not door.refusal
        ]
        now = datetime.now(UTC)
        if ahead := [one.id for one in good if one.started > now and one.task == night.task]:
            raise BenchError(
                f"the control node's clock jumped: {ahead[0]} seems to begin after now, so that nobody can tell which run was the last "
                f"good one. Set the clock right; move a run with a wrong date out of {self._where.runs}"
            )
        return sorted((one for one in good if one.started < night.started), key=lambda one: one.started)

    def _conclude(self) -> int:
        """Whatever cannot be written, the night's end is told: a disk that is full must not keep people from hearing of a FAIL."""
        interrupted = any(unfinished(entry) for entry in self._entries)
        gone: list[str] = []
        if self._plan.keeping and not interrupted:
            gone = self._keep_house()
        status, news, unwritten = status_of(self._entries), headline(self._entries), ""
        try:
            self._write("interrupted" if interrupted else "finished", gone)
            self._write_ocp()
            self._render()
        except OSError as error:
            unwritten = f"its documents cannot be written: {in_words(error)}"
            status, news = status if interrupted else STATUS[ERROR], f"{news}; {unwritten}"
            self._say(f"error: {self._folder}: {unwritten}. Make room; the runs' bundles have what was measured")
        runs = self._document("finished", self._entries).runs
        self._teller.tell(over(self._folder.name, runs, news, status, self._folder))
        if not interrupted and not unwritten:
            self._teller.beat()
        print(summary(self._entries, self._started, str(self._folder)), end="")
        return status

    def _keep_house(self) -> list[str]:
        tonight = [self._folder, *(entry.night.path for entry in self._entries if entry.night)]
        nights = self._folder.parent
        stored = [*stored_nights(nights, self._say), self._document("finished", self._entries)]
        house: Housekeeping | None = None
        try:
            house = Housekeeping(
                self._where.runs, nights, self._plan.keeping, self._baselines, tonight, self._say, compared_with(stored)
            )
            runs = [self._where.runs] if self._where.runs.is_dir() else []  # before the first run there is none
            gone = house.run(read_all(runs)[0])
        except (BenchError, OSError) as error:
            self._say(f"warning: housekeeping stopped: {in_words(error)}")
            return house.deleted if house else []
        self._say(f"housekeeping: {len(gone)} bundles and nights deleted")
        return gone

    def _write(self, state: NightState, deleted: Sequence[str] = ()) -> None:
        entries = self._entries
        if state not in DONE:
            ended = {entry.job for entry in entries}
            entries = [*entries, *(Entry(job, INTERRUPTED, NOT_ENDED) for job in self._plan.jobs if job not in ended)]
        write_atomically(self._folder / DOCUMENT, to_json(checked(self._document(state, entries, deleted))))
        write_atomically(self._folder / SUMMARY, summary(entries, self._started, str(self._folder)))
        write_atomically(self._folder / XUNIT, xunit(entries, self._folder.name))

    def _document(self, state: NightState, entries: Sequence[Entry], deleted: Sequence[str] = ()) -> NightDocument:
        times = (self._started, now_utc() if state in DONE else None)
        return document(entries, self._plan.jobs, state, self._folder.name, times, _versions(), deleted)

    def _write_ocp(self) -> None:
        for night in (entry.night for entry in self._entries if entry.night):
            try:
                lines = ocp_tv.lines(night.path, night)
            except (OSError, ValueError, KeyError, TypeError) as error:
                self._say(f"warning: {night.id} gives no OCP output ({error!r})")
                continue
            write_atomically(self._folder / OCP / f"{night.id}.jsonl", "\n".join(lines) + "\n")

    def _render(self) -> None:
        """nightly.html and a trend per task; without them the night's outcome stands all the same."""
        commands: list[list[str | Path]] = [["nightly", self._folder]]
        for task in {
            (n.candidate, n.scenario) for entry in self._entries if (n := entry.night) and n.state == FINISHED
        }:
            folder = self._folder / "trend" / "-".join(task)
            commands.append(
                ["trend", self._where.runs, "--candidate", task[0], "--scenario", task[1], "--output", folder]
            )
        for words in commands:
            try:
                LocalShell().run([sys.executable, "-m", "daq_bench.bench_report", *words], REPORT_S_MAX).check(
                    f"rendering the {words[0]} report"
                )
            except BenchError as error:
                self._say(f"warning: {error}")

    def _say(self, text: str) -> None:
        say(self._console, text)


def stored_nights(nights: Path, say: Callable[[str], None]) -> list[NightDocument]:
    """The nights of a folder, the oldest first."""
    found = []
    for file in nights.glob(f"*/{DOCUMENT}"):
        if file.parent.is_symlink():
            continue
        try:
            night = find_struct(file.parent, DOCUMENT, NightDocument)
        except BenchError as error:
            say(f"warning: {file} cannot be read ({error}): what that night found is not known")
            continue
        found += [night] if night else []
    return sorted(found, key=lambda night: night.started_utc)


def regressed_runs(nights: Sequence[NightDocument]) -> dict[str, frozenset[str]]:
    """Returns the runs that a night found worse, with the requirements: none is the last known good one of those after it. `baseline`
    accepts what changed."""
    return {
        run.run_id: frozenset(one.id for one in run.comparisons if one.result == REGRESSED)
        for night in nights
        for run in night.runs
        if run.run_id and run.worst == REGRESSION
    }


def compared_with(nights: Sequence[NightDocument]) -> set[str]:
    """Returns the runs with which each job was compared last: without them the next night knows no worse."""
    runs = (run for night in nights for run in night.runs if run.baseline)
    return set({(run.job, run.target): str(run.baseline) for run in runs}.values())


def last_words(nights: Sequence[NightDocument], but: str) -> dict[Job, dict[str, Word]]:
    """How each job ended on each target in the newest night other than `but` that came to know something of it."""
    found: dict[Job, dict[str, Word]] = {}
    for run in (run for night in nights if night.nightly != but for run in night.runs):
        if run.worst not in (INTERRUPTED, SKIPPED):
            found.setdefault(run.job, {})[run.target] = run.worst
    return found


def _entry_of(stored: NightRun) -> Entry:
    """An entry of an earlier nightly.json. Its comparison stands; the run is read and judged again from its bundle."""
    outcome, reason, night = stored.outcome, stored.reason, None
    if stored.run:
        try:
            night = read_night(Path(stored.run), warm=False)
            if (night.id, night.candidate) != (stored.run_id, stored.job.candidate):
                raise BenchError(f"{stored.run} is now run {night.id} of {night.candidate}")
            outcome = worse(outcome, outcome_of(night))
        except (OSError, ValueError, KeyError, TypeError, BenchError) as error:
            outcome, reason, night = worse(outcome, ERROR), f"{stored.run_id} does not count: {in_words(error)}", None
    same = outcome == stored.outcome  # else the stored advice is on another outcome
    return Entry(
        stored.job,
        outcome,
        reason,
        night,
        stored.baseline,
        tuple(stored.comparisons),
        stored.seconds,
        tuple(stored.marks),
        stored.likely_cause if same else "",
        stored.next_step if same else "",
    )


def _versions() -> dict[str, str]:
    return {"daq-storage-bench": version("daq-storage-bench"), "python": sys.version.split()[0]}


def new_folder(parent: Path) -> Path:
    """`<parent>/20260131T020000Z-nightly`, made here: of two nights that begin in one second each has its own."""
    while True:
        folder = parent / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-nightly"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            time.sleep(0.1)
        else:
            return folder
