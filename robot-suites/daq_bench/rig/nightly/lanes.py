"""Several candidates at the same time: jobs that meet on a machine stand in one lane, and a lane's jobs follow one another.

Two entries meet where they share a BMC, a drive or a peer of the data network, whatever the inventory calls them. Jobs of the control
node itself begin when all others have ended: a run that is driven from a busy machine is measured by it, one *on* it would be disturbed."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from daq_bench.bench_model.base.errors import ProfileError
from daq_bench.bench_model.documents.nights import Job
from daq_bench.bench_model.nights.outcome import Entry
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.rig.base.terminal import printable
from daq_bench.rig.candidate.lock import identities

THIS_MACHINE = "the control node"
LAST_BYTES = 2048
WAITING, RUNNING = "waiting", "running"
RANK = {RUNNING: 1, WAITING: 2, "PASS": 3, "": 3}  # on the table; every other outcome comes first
ROWS_MIN, LINES_BESIDE = 3, 3  # its head, and room for what is said above it


def lanes_of(jobs: Sequence[Job], inventory: Path, at_once: int) -> list[list[int]]:
    """Returns the jobs' places in the plan, by lane, each in the plan's order; the control node's own lane comes last. With `at_once` 1
    there is a single lane: the plan."""
    if at_once == 1:
        return [list(range(len(jobs)))]
    lanes: list[tuple[set[str], list[int]]] = []
    for place, job in enumerate(jobs):
        machines, places = _machines(job, inventory), [place]
        for lane in [lane for lane in lanes if lane[0] & machines]:
            machines, places = machines | lane[0], lane[1] + places
            lanes.remove(lane)
        lanes.append((machines, sorted(places)))
    lanes.sort(key=lambda lane: (THIS_MACHINE in lane[0], lane[1]))
    return [places for _, places in lanes]


def _machines(job: Job, inventory: Path) -> set[str]:
    """Returns all that the job may disturb; an unreadable entry's name for itself: the run itself will say what is wrong with it."""
    try:
        candidate = load_candidate(inventory, job.candidate)
    except ProfileError:
        return {job.candidate}
    peers = {peer["host"] for peer in candidate.document.get("network", {}).get("peers", [])}
    own = {THIS_MACHINE} if candidate.connection == "local" else set()
    return {*identities(candidate), *peers, *own}


def run_lanes(jobs: Sequence[Job], inventory: Path, at_once: int, one: Callable[[int], None]) -> None:
    """Calls `one` with each job's place, in up to `at_once` threads. Raises what it raised first, when all lanes have ended."""
    lanes = lanes_of(jobs, inventory, at_once)
    own = lanes.pop() if len(lanes) > 1 and THIS_MACHINE in _machines(jobs[lanes[-1][0]], inventory) else []

    def along(lane: list[int]) -> None:
        for place in lane:
            one(place)

    with ThreadPoolExecutor(min(at_once, len(lanes) or 1)) as workers:
        for ended in as_completed([workers.submit(along, lane) for lane in lanes]):
            ended.result()
    along(own)


@dataclass
class Stop:
    """The reason why everything has to end now; each wait asks for it. `at_deadline`: the reason once `deadline` (monotonic, s) is over."""

    at_deadline: str = ""
    deadline: float | None = None
    reason: str = ""

    def __call__(self) -> str:
        if not self.reason and self.deadline is not None and time.monotonic() >= self.deadline:
            self.reason = self.at_deadline
        return self.reason


@contextmanager
def stoppable(stop: Stop, what: str) -> Iterator[None]:
    """Lets SIGTERM (systemd's stop) and Ctrl-C end `what`, not the process: the running jobs put their machines back first."""

    def told(number: int, frame: FrameType | None) -> None:
        stop.reason = stop.reason or f"{what} was stopped by {signal.Signals(number).name}"

    before = {number: signal.signal(number, told) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass
class Board:
    """The live table of all jobs, on a terminal: waiting, running with the last line that the run printed, or its outcome."""

    jobs: Sequence[Job]
    console: Console
    _since: dict[int, tuple[float, Path]] = field(default_factory=dict)
    _ended: dict[int, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def shown(self, at_once: int) -> Iterator[None]:
        if at_once == 1 or not self.console.is_terminal:
            yield
            return
        with Live(get_renderable=self._table, console=self.console, refresh_per_second=1):
            yield

    def begins(self, place: int, log: Path) -> None:
        with self._lock:
            self._since[place] = (time.monotonic(), log)

    def ended(self, place: int, entries: Sequence[Entry]) -> None:
        with self._lock:
            self._ended[place] = ", ".join(entry.worst for entry in entries)

    def _table(self) -> Group:
        """As many jobs as the terminal has room for: what did not pass, then what runs, then the others; the rest is counted."""
        with self._lock:
            ended, since = dict(self._ended), dict(self._since)
        places = range(len(self.jobs))
        state = {place: ended.get(place, RUNNING if place in since else WAITING) for place in places}
        order = sorted(places, key=lambda place: (RANK.get(state[place], 0), place))
        room = max(ROWS_MIN, self.console.height - LINES_BESIDE)
        chosen = order if len(order) <= room else order[: room - 1]
        table = Table("candidate", "state", "for", "last said", box=None)
        for place in sorted(chosen):
            told = ("", "")
            if state[place] == RUNNING:
                begun, log = since[place]
                told = (f"{time.monotonic() - begun:.0f} s", _last_line(log))
            name = Text(self.jobs[place].name, no_wrap=True, overflow="ellipsis")
            table.add_row(name, state[place], told[0], Text(printable(told[1]), no_wrap=True, overflow="ellipsis"))
        left = Counter(state[place] for place in order[len(chosen) :])
        told_left = ", ".join(f"{number} {name}" for name, number in left.items())
        return Group(table, Text(f"and {told_left}", no_wrap=True, overflow="ellipsis")) if left else Group(table)


def _last_line(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - LAST_BYTES))
            said = file.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    return next((line.strip().split("\r")[-1].strip() for line in reversed(said) if line.strip()), "")
