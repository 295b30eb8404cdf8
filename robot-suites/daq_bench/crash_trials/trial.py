"""One trial: a real run in which a process is killed at a seeded moment; then the judge, `restore` and `resume` in a seeded order."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from daq_bench.bench_model.bundle.files import find_document
from daq_bench.crash_trials.candidate import LightCandidate
from daq_bench.crash_trials.processes import HERE, KINDS, THERE, VARIABLE, Moment, inside, kill_at, marked
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.telemetry.influx_server import LocalInflux

PROFILES = Path(__file__).resolve().parent / "profiles"
SCENARIO, REQUIREMENT = (PROFILES / kind / "crash-burst.yml" for kind in ("scenarios", "requirements"))
RUN_S_MAX = 600.0
# Campaigns side by side never share it: the server of one took over the port, and the points, of one that the other had killed (seed 63).
PORT = 18700 + os.getpid() % 500 * 20  # or one of the next, where another program has it
# A kind's least number of processes in a run, and how long one lives or may be waited with (s).
LIVES = {
    "rig": (1, 60.0), "robot": (1, 15.0), "ansible": (4, 5.0), "ssh": (1, 40.0), "agent": (1, 16.0), "daqwriter": (4, 3.0),
    "fio": (2, 1.5), "influxd": (1, 45.0),
}  # fmt: skip


@dataclass(frozen=True)
class Spec:
    """`mend_first`: `restore` comes before what goes on; else the resumed run has to give everything back. `goes_on`: a mended candidate
    gets the resumed run at once; else the next trial's run follows on it."""

    seed: int
    moment: Moment
    mend_first: bool
    goes_on: bool = True


def spec_of(seed: int) -> Spec:
    """The same seed is always the same trial; eight seeds in a row kill each kind once."""
    draw = random.Random(f"crash trial {seed}")
    kind = KINDS[seed % len(KINDS)]
    count, longest_s = LIVES[kind]
    moment = Moment(kind, draw.randint(1, count), draw.uniform(0.0, longest_s))
    mend_first = draw.random() < 0.5
    return Spec(seed, moment, mend_first, not mend_first or draw.random() < 0.3)


@dataclass(frozen=True)
class Said:
    """Describes how a command of the bench ended."""

    status: int
    text: str


class Bench(ABC):
    """The files that a run of the bench needs beside a candidate: inventory, profiles, runs, locks and InfluxDB; nothing of the user's.

    `phase_s_max`: a run's record begins within this time, and the run ends within twice as much behind it. `strike_s_max`: what strikes
    so long after the begin of a load strikes in it."""

    phase_s_max, strike_s_max = 300.0, 1.5

    def __init__(
        self,
        name: str,
        entry: dict[str, Any],
        folder: Path,
        influx: LocalInflux,
        profiles: tuple[Path, Path] = (SCENARIO, REQUIREMENT),
    ) -> None:
        self.name, self.folder, self.influx, self.profiles = name, folder, influx, profiles
        for below in ("tmp", "locks"):
            (folder / below).mkdir(parents=True, exist_ok=True)
        self.token = f"{name}-{os.getpid()}"
        self.environment = {
            **os.environ, VARIABLE: self.token, "DAQ_BENCH_LOCK_DIR": str(folder / "locks"),
            "TMPDIR": str(folder / "tmp"), "XDG_STATE_HOME": str(folder / "state"),
            # Ansible's own connections must not be shared with those of other trials.
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(folder / "cp"),
        }  # fmt: skip
        self.declare(entry)

    def declare(self, entry: dict[str, Any]) -> None:
        """Writes the inventory that the next command reads."""
        YAML(typ="safe").dump({"all": {"children": {"candidates": {"hosts": {self.name: entry}}}}}, self.lab)

    @property
    def lab(self) -> Path:
        return self.folder / "lab.yml"

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    def influx_url(self) -> str:
        """Where its InfluxDB is, which is started where it does not run."""
        return self.influx.start(PORT)

    def command(self, name: str, *words: str) -> list[str]:
        return [sys.executable, "-m", "daq_bench.rig", name, *words]

    def qualify(self) -> list[str]:
        scenario, requirement = map(str, self.profiles)
        # The plan takes a scan at the unit's pace for tens of GB; the loop devices are slower, and nobody's.
        own = ["--yes", "--scenario", scenario, "--requirement", requirement, "--runs", str(self.runs)]
        return self.command("qualify", *self.who, *own, "--influx-url", self.influx_url())

    @property
    def who(self) -> list[str]:
        return ["--candidate", self.name, "--inventory", str(self.lab)]

    @contextmanager
    def started(self, argv: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
        """The command runs in a session of its own, and does not outlive the block."""
        with log.open("wb") as file:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=self.environment,
                cwd=Layout().repository,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(RUN_S_MAX)

    def said(self, name: str, argv: list[str]) -> Said:
        """A command to its end; its text is both streams. One that hangs has no status that the contract knows."""
        log = self.folder / f"{name}.log"
        with self.started(argv, log) as process:
            try:
                status = process.wait(RUN_S_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                status = process.wait() - 1000
        return Said(status, log.read_text(encoding="utf-8", errors="replace"))

    def rig(self, name: str, *words: str) -> Said:
        return self.said(name, self.command(name, *words))

    def newest(self) -> Path | None:
        latest = self.runs / "latest"
        return latest.resolve() if latest.exists() else None

    @abstractmethod
    def wait_for_load(self, phase: str) -> None:
        """Returns when the load of the phase that has begun stores data."""


class Place(Bench):
    """A trial's light candidate, and the bench beside it."""

    def __init__(self, candidate: LightCandidate, folder: Path, influx: LocalInflux) -> None:
        super().__init__(candidate.name, candidate.entry(), folder, influx)
        self.candidate = candidate

    def wait_for_load(self, phase: str) -> None:
        time.sleep(1.0)

    def look(self, kind: str) -> dict[int, str]:
        if kind in THERE:
            return inside(self.candidate.container.pid)
        if kind in HERE:
            return marked(self.token)
        pid = self.influx.running_pid()
        return {pid: "influxd"} if pid else {}


@dataclass(frozen=True)
class Killed:
    """A run whose process was killed. `spool`: the agent's lines on the candidate just then; `victim`: empty where nobody was."""

    bundle: Path | None
    status: int
    text: str
    victim: str
    phase: str
    spool: frozenset[str]


def killed_run(place: Place, moment: Moment) -> Killed:
    """Makes a run and kills once in it."""
    before = place.newest()
    log = place.folder / "qualify.log"
    with place.started(place.qualify(), log) as process:
        victim = kill_at(moment, lambda: place.look(moment.kind), lambda: process.poll() is None)
        bundle = _new(place, before)
        phase, spool = phase_of(bundle), spooled(place.candidate, bundle)
        try:
            status = process.wait(RUN_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait() - 1000
    text = log.read_text(encoding="utf-8", errors="replace")
    return Killed(_new(place, before), status, text, victim, phase, spool)


def _new(place: Place, before: Path | None) -> Path | None:
    newest = place.newest()
    return newest if newest != before else None


def phase_of(bundle: Path | None) -> str:
    """The phase that the run was in."""
    file = bundle / "events.jsonl" if bundle else None
    if file is None or not file.exists():
        return "before the bundle"
    *lines, _ = file.read_text(encoding="utf-8").split("\n")
    phases = [event["source"] for event in map(json.loads, lines) if event["kind"] == "phase"]
    return str(phases[-1]) if phases else "provision"


def spooled(candidate: LightCandidate, bundle: Path | None) -> frozenset[str]:
    """The whole lines that the agent has stored on the candidate."""
    file = (
        candidate.root / "var/lib/daq-storage-bench/runs" / (bundle.name if bundle else "none") / "telemetry/points.lp"
    )
    try:
        return frozenset(file.read_text(encoding="utf-8").split("\n")[:-1])
    except OSError:
        return frozenset()


def document(bundle: Path | None, name: str) -> dict[str, Any]:
    """A JSON document of the bundle; empty where there is none."""
    return (find_document(bundle, name) if bundle else None) or {}


def wait_until(holds: Any, seconds: float) -> bool:
    """Says whether `holds` came true in time."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.2)
    return True
