"""Runs one command, the victim, while others, the disturbers, run: `together.py SPEC` (JSON). Prints {result} or {error}.

SPEC: {victim: {name, argv}, disturbers: [...], services: [...], lead_s, sample_s, limit_s}. Services (a server that a client
needs) start first, then the disturbers; after `lead_s` the victim starts, and when it has ended the others are ended.
Each disturber's progress (CPU time, bytes read and written) is sampled throughout, so that a reader of the result can
tell whether it was really at work. All processes end with this program, however it ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, NoReturn

# The kernel sends SIGTERM to what this program started when it dies without a word.
UNTIL_PARENT_DIES = ["setpriv", "--pdeathsig", "TERM", "--"]
GRACE_S = 10.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
SERVICE_S = 0.5


class TogetherError(Exception):
    """A command could not be run; the text becomes {error}."""


class Task:
    """One command that runs now, its output kept in files, its progress sampled."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.name, self.argv = spec["name"], spec["argv"]
        self.samples: list[list[float]] = []
        self._output: tuple[BinaryIO, BinaryIO] = (tempfile.TemporaryFile(), tempfile.TemporaryFile())  # noqa: SIM115 - read at the end
        self.started_s = time.time()
        self.ended_s: float | None = None
        try:
            self.process = subprocess.Popen(
                [*UNTIL_PARENT_DIES, *self.argv],
                stdin=subprocess.DEVNULL,
                stdout=self._output[0],
                stderr=self._output[1],
            )
        except OSError as error:
            raise TogetherError(f"{self.argv[0]} cannot be started: {error.strerror}") from None

    def alive(self) -> bool:
        if self.process.poll() is None:
            return True
        if self.ended_s is None:
            self.ended_s = time.time()
        return False

    def sample(self) -> None:
        """Adds [time, CPU s, bytes read, bytes written] of the process with all its threads."""
        try:
            folder = Path("/proc") / str(self.process.pid)
            fields = (folder / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
            counts = dict(line.split(": ") for line in (folder / "io").read_text(encoding="ascii").splitlines())
        except (OSError, ValueError):
            return  # it has just ended, which the caller sees
        cpu_s = (int(fields[11]) + int(fields[12])) / TICKS_PER_S
        self.samples.append([time.time(), cpu_s, float(counts["read_bytes"]), float(counts["write_bytes"])])

    def end(self) -> None:
        for number, wait_s in ((signal.SIGINT, GRACE_S), (signal.SIGKILL, 5.0)):
            if self.process.poll() is None:
                self.process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(wait_s)

    def document(self) -> dict[str, Any]:
        texts = []
        for file in self._output:
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
        return {
            "name": self.name,
            "started_s": self.started_s,
            "ended_s": self.ended_s,
            "returncode": self.process.returncode,
            "stdout": texts[0],
            "stderr": texts[1][-2000:],
            "samples": self.samples,
        }


def run(spec: dict[str, Any]) -> dict[str, Any]:
    """The result; every task has ended when it returns or raises."""
    tasks: list[Task] = []
    try:
        for service in spec["services"]:
            tasks.append(Task(service))
            time.sleep(SERVICE_S)
            if not tasks[-1].alive():
                raise TogetherError(f"{service['name']} ended at once: {tasks[-1].document()['stderr'].strip()}")
        disturbers = []
        for one in spec["disturbers"]:
            disturbers.append(Task(one))
            tasks.append(disturbers[-1])
        watched = list(disturbers)
        _watch(watched, spec["lead_s"] if disturbers else 0.0, spec["sample_s"], None)
        victim = Task(spec["victim"])
        tasks.append(victim)
        _watch([*watched, victim], spec["limit_s"], spec["sample_s"], victim)
        if victim.alive():
            raise TogetherError(f"{victim.name} did not end within {spec['limit_s']:.0f} s")
        for one in disturbers:
            one.sample()
        alive = [one.alive() for one in disturbers]
        ended_s = time.time()
    finally:
        for task in reversed(tasks):
            task.end()
    return {
        "victim": {**victim.document(), "ended_s": victim.ended_s or ended_s},
        "disturbers": [{**one.document(), "alive_at_end": was} for one, was in zip(disturbers, alive)],
    }


def _watch(tasks: list[Task], seconds: float, sample_s: float, until: Task | None) -> None:
    """Samples for `seconds`, or until `until` has ended."""
    deadline = time.monotonic() + seconds
    due = time.monotonic()
    while time.monotonic() < deadline and (until is None or until.alive()):
        if time.monotonic() >= due:
            for task in tasks:
                task.sample()
            due += sample_s
        time.sleep(0.01)


def stop(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    try:
        print(json.dumps({"result": run(json.loads(sys.argv[1]))}))
    except TogetherError as failure:
        print(json.dumps({"error": str(failure)}))
    except KeyboardInterrupt:
        sys.exit(130)
