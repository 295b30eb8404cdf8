"""Runs of several candidates, each in a process of its own: a night's, and those of `daq-bench qualify --candidates a,b --jobs 2`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from daq_bench.bench_model.base.errors import in_words
from daq_bench.bench_model.documents.nights import Job
from daq_bench.bench_model.documents.verdict import ERROR
from daq_bench.bench_model.nights.outcome import NOT_BEGUN, SKIPPED, Entry
from daq_bench.rig.base.terminal import say
from daq_bench.rig.nightly.job import Where, run_job
from daq_bench.rig.nightly.lanes import Board, Stop, run_lanes, stoppable
from daq_bench.rig.nightly.meeting import Meeting, held


@dataclass
class Fleet:
    """Jobs in the plan's order, up to `at_once` candidates at the same time. One that fails, breaks or is refused leaves the others alone.

    `logs`: the folder of what the runs print. `stop` is told by SIGTERM and Ctrl-C, and asked before and during each job."""

    jobs: Sequence[Job]
    where: Where
    logs: Path
    console: Console
    at_once: int
    stop: Stop
    meeting: Meeting | None = None  # by which their bursts begin together
    limit_s: float | None = None  # the most that one job may take

    def execute(
        self,
        what: str,
        kept: Mapping[Job, list[Entry]] | None = None,
        compared: Callable[[Entry], Entry] = lambda entry: entry,
        ended: Callable[[list[Entry]], None] = lambda entries: None,
    ) -> list[Entry]:
        """Returns the entries in the plan's order. `what` is the command, for the words of a stop; jobs that are `kept` are not run again;
        `compared` completes each entry; `ended` gets all entries whenever a job has ended."""
        self.logs.mkdir(parents=True, exist_ok=True)
        board, done, writing = Board(self.jobs, self.console), dict[int, list[Entry]](), threading.Lock()

        def one(place: int) -> None:
            try:
                entries = (kept or {}).get(self.jobs[place]) or self._one(place, board, compared)
            finally:
                if self.meeting:
                    self.meeting.left(self.jobs[place].candidate)
            board.ended(place, entries)
            with writing:
                done[place] = entries
                ended(_in_order(done))

        with stoppable(self.stop, what), board.shown(self.at_once), self._met():
            run_lanes(self.jobs, self.where.inventory, self.at_once, one)
        return _in_order(done)

    @contextmanager
    def _met(self) -> Iterator[None]:
        """The runs know the meeting by its address, if there is one."""
        if self.meeting is None:
            yield
            return
        with held(self.meeting) as address:
            self.where = replace(self.where, meeting=address)
            yield

    def _one(self, place: int, board: Board, compared: Callable[[Entry], Entry]) -> list[Entry]:
        job, number = self.jobs[place], place + 1
        if reason := self.stop():
            return [Entry(job, SKIPPED, f"{NOT_BEGUN}{reason}")]
        log = self.logs / f"{number:02d}-{job.candidate}.log"
        self._say(f"{number} of {len(self.jobs)}: {job.name} (its output: {log})")
        board.begins(place, log)
        try:
            entries = [compared(entry) for entry in run_job(job, self.where, log, self.stop, self.limit_s)]
        except OSError as error:  # of the control node: its log cannot be written, or no process can begin
            entries = [Entry(job, ERROR, f"no run could be begun or read: {in_words(error)}")]
        for entry in entries:
            self._say(f"  {job.name}: {entry.word}: {entry.reason or 'nothing to report'}")
        return entries

    def _say(self, text: str) -> None:
        say(self.console, text)


def _in_order(done: Mapping[int, list[Entry]]) -> list[Entry]:
    return [entry for place in sorted(done) for entry in done[place]]
