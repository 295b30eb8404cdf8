"""Asks many drives side by side, so that one that hangs delays no other.

Promise: a sample waits `patience_s` at most for a drive, and not again for one that was late before: its answer is
taken by the next sample, with the time at which it was given. At most `parallel` drives are asked at a time, and a
late one does not count among them. No drive is asked again while it has not answered.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Callable, NamedTuple

from daq_bench.telemetry_agent.reading.collector import Unsupported

PATIENCE_S = 5.0
PARALLEL_MAX = 8


class DriveAnswer(NamedTuple):
    """The answers of one drive, and those that it refused. `refused`: this drive has no such information."""

    time_ns: int
    duration_s: float
    texts: Mapping[str, str]
    faults: tuple[str, ...] = ()
    refused: str = ""


# Asks one drive: (texts, faults). Raises Unsupported where there is nothing to ask, another exception on failure.
Ask = Callable[[str], tuple[Mapping[str, str], Sequence[str]]]


@dataclass
class _Drive:
    started_s: float = 0.0
    busy: bool = False
    late: bool = False
    answer: DriveAnswer | None = None  # not taken yet
    answered_s: float = field(default_factory=time.monotonic)  # the last good answer, or when the drive was first seen
    duration_s: float = 0.0


class DriveState(NamedTuple):
    """Describes how a drive stands after a sample. `staleness_s`: since its last good answer, or since it was first seen."""

    answered: bool
    duration_s: float
    staleness_s: float


class DrivePoll:
    """`sample` is only ever called from one thread."""

    def __init__(self, ask: Ask, patience_s: float = PATIENCE_S, parallel: int = PARALLEL_MAX) -> None:
        self._ask, self._patience_s, self._parallel = ask, patience_s, parallel
        self._drives: dict[str, _Drive] = {}
        self._changed = threading.Condition()

    def sample(self, names: Sequence[str]) -> tuple[dict[str, DriveAnswer], list[str]]:
        """Answers by drive, and a sentence for each drive that gave none."""
        with self._changed:
            self._drives = {name: self._drives.get(name) or _Drive() for name in names}
            answers = self._taken()
            idle = [name for name, drive in self._drives.items() if not drive.busy]
            for name in idle:
                if self._drives[name].late:
                    self._start(name)
            self._wait([name for name in idle if not self._drives[name].late])
            answers.update(self._taken(fresh=True))
            faults = [
                f"{name}: no answer for {time.monotonic() - drive.started_s:.0f} s"
                for name, drive in self._drives.items()
                if name not in answers
            ]
            return answers, faults

    def _taken(self, fresh: bool = False) -> dict[str, DriveAnswer]:
        """Returns the answers that came in. `fresh`: a late drive's answer, which may just have come, waits for the next sample."""
        found = {}
        for name, drive in self._drives.items():
            if drive.answer is not None and not (fresh and drive.late):
                found[name] = drive.answer
                drive.late = drive.answer.duration_s > self._patience_s
                drive.answer = None
        return found

    def state(self, name: str, answered: bool) -> DriveState:
        """After `sample`."""
        with self._changed:
            drive = self._drives[name]
            return DriveState(answered, drive.duration_s, time.monotonic() - drive.answered_s)

    def _wait(self, queue: list[str]) -> None:
        """Asks all in the queue, in turn; returns when each has answered or is late (the caller holds the lock)."""
        while True:
            now_s = time.monotonic()
            running = [drive for drive in self._drives.values() if drive.busy and not drive.late]
            for drive in running:
                drive.late = now_s - drive.started_s >= self._patience_s
            running = [drive for drive in running if not drive.late]
            while queue and len(running) < self._parallel:
                name = queue.pop(0)
                self._start(name)
                running.append(self._drives[name])
            if not running:
                return
            self._changed.wait(max(0.0, min(drive.started_s for drive in running) + self._patience_s - now_s))

    def _start(self, name: str) -> None:
        drive = self._drives[name]
        drive.busy, drive.started_s = True, time.monotonic()
        threading.Thread(target=self._query, args=(name, drive), name=f"smart {name}", daemon=True).start()

    def _query(self, name: str, drive: _Drive) -> None:
        refused = ""
        texts: Mapping[str, str] = {}
        faults: tuple[str, ...] = ()
        try:
            texts, said = self._ask(name)
            faults = tuple(said)
        except Unsupported as reason:
            refused = str(reason)
        except Exception as error:  # the thread's boundary: whatever it is, it is this drive's fault and no other's
            faults = (f"{name}: {error}" if str(error) else f"{name}: {type(error).__name__}",)
        with self._changed:
            now_s = time.monotonic()
            drive.busy, drive.duration_s = False, now_s - drive.started_s
            if texts:
                drive.answered_s = now_s
            drive.answer = DriveAnswer(time.time_ns(), drive.duration_s, texts, faults, refused)
            self._changed.notify()
