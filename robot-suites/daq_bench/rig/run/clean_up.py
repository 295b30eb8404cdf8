"""Gives back what a run has taken, whatever happens: every resource registers its clean-up as soon as it may have to be given back.

Whoever holds the candidate's lock takes back the things that a killed bench has left, since their owner is gone: an agent that still
collects, points without a bundle, folders, scratch files, a dead socket."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.telemetry_files import CURSOR_FILE, OWN, POINTS_FILE, SUMMARY_FILE
from daq_bench.bench_model.profiles.connection_entries import PLAIN
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.candidate.machine import STATE, Machine, SshMachine
from daq_bench.rig.checking.sealing import sealed
from daq_bench.rig.on_candidate.machine_lock import began
from daq_bench.rig.telemetry.remote_agent import end_service

RUNS = STATE / "runs"
SPOOL = (POINTS_FILE, SUMMARY_FILE, CURSOR_FILE)  # workload.lp stays ours: the bench wrote into it to its last moment
SOCKETS = "daq-bench-ssh-"
CLEAN_UP = "clean-up"  # the source of the events on what could not be given back
# A socket's path may have 107 bytes: the folder's name, the socket's, and what ssh puts behind it while it makes it, take up to 52.
TEMPORARY_MAX, SHORT_FOLDER = 55, Path("/tmp")
Say = Callable[[str], None]


class Place(Enum):
    """A resource's place in the order of clean-up; its value is how messages call it."""

    RETURN = "reboot"  # a candidate that is being rebooted can give nothing else back
    TARGETS = "target"
    BMC_AGENT = "telemetry of the BMC"
    TUNING = "tuning"
    AGENT = "telemetry"


def not_given_back(bundle: Bundle) -> str:
    """One sentence on what a run could not give back, with the command that does; empty where nothing is left."""
    events = bundle.events() if bundle.events_file.exists() else []
    left = [one.text.partition(":")[0] for one in events if (one.kind, one.source) == ("error", CLEAN_UP)]
    if not left:
        return ""
    named = ", ".join(dict.fromkeys(left))
    again = f"daq-bench restore --candidate {bundle.run.candidate.name}"
    return f"Not everything could be given back ({named}). `{again}` does it once the cause is removed"


class CleanUp:
    """One stack of clean-ups. The places have a fixed order; within a place the latest resource goes first.

    An error of a clean-up is recorded, keeps no other from running, and does not hide how the run itself ended."""

    def __init__(self, bundle: Bundle, say: Callable[[str], None], *, is_local: bool) -> None:
        self._bundle, self._say = bundle, say
        self._stack = ExitStack()
        # The stack is emptied from its end. On a candidate behind SSH the agent is a part of what `restore` takes away.
        last = (Place.AGENT, Place.TUNING) if is_local else (Place.TUNING, Place.AGENT)
        places = (*last, Place.BMC_AGENT, Place.TARGETS, Place.RETURN)
        self._places = {place: self._stack.enter_context(ExitStack()) for place in places}

    def add(self, place: Place, step: Callable[[], object], name: str | None = None) -> None:
        """Registers `step`; `name` replaces the place's name in messages. Raises KeyError after `close`."""
        self._places[place].callback(self._tried, name or place.value, step)

    def _tried(self, name: str, step: Callable[[], object]) -> None:
        try:
            step()
        except (BenchError, OSError) as error:
            self._say(f"warning: {name} could not be cleaned up: {error}")
            with suppress(OSError):  # of the bundle's disk: said above, and it ends the run (`Qualification`)
                self._bundle.event("error", CLEAN_UP, f"{name}: {error}")

    def close(self) -> None:
        """Gives everything back; a second call does nothing. Raises a fault of the bench itself after all have had their turn."""
        with signals_ignored():
            self._places.clear()
            self._stack.close()

    def __enter__(self) -> CleanUp:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def interrupts_as_exceptions() -> Iterator[None]:
    """SIGTERM stops a run as Ctrl-C does: by an exception that every clean-up sees."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handlers({signal.SIGINT: stop, signal.SIGTERM: stop}):
        yield


@contextmanager
def signals_ignored() -> Iterator[None]:
    """A second Ctrl-C must not cut a clean-up short: it would leave a record of many GB, or a tuned machine, behind."""

    def ignore(number: int, frame: FrameType | None) -> None:
        """A handler, not SIG_IGN: children would inherit that and could no longer be ended politely."""

    with _handlers({signal.SIGINT: ignore, signal.SIGTERM: ignore}):
        yield


@contextmanager
def _handlers(wanted: dict[int, Callable[[int, FrameType | None], Any]]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def take_back(machine: Machine, runs: Path, say: Say) -> None:
    """Ends the agent of a killed run, brings what it stored into that run's bundle below `runs`, and removes the run's folders.

    Folders of a run that has no bundle there stay: another control node may still want what is in them."""
    if not isinstance(
        machine, SshMachine
    ):  # here the kernel ends the agent with its bench, and the spool is in the bundle
        return
    argv: list[str | Path] = ["find", RUNS, "-mindepth", "1", "-maxdepth", "1", "-type", "d", "-printf", "%f\\n"]
    listed = machine.run(argv, timeout_s=60)
    names = sorted(listed.stdout.splitlines()) if listed.returncode == 0 else []  # no bench has been there
    if names:
        end_service(machine)
    for name in names:
        bundle = _bundle_of(machine, runs, name)
        if bundle is None:
            say(
                f"{RUNS / name} on the candidate is of a run that has no bundle in {runs}: remove it if nobody wants its telemetry"
            )
            continue
        if not sealed(bundle):
            for file in SPOOL:
                if machine.run(["test", "-e", RUNS / name / OWN / file], timeout_s=60).returncode == 0:
                    machine.fetch(RUNS / name / OWN / file, bundle / OWN / file)
        machine.run(["rm", "-r", "-f", "--", RUNS / name], timeout_s=120).check(f"removing {RUNS / name}")
        say(f"took back what the killed run {name} had left on the candidate")


def _bundle_of(machine: SshMachine, runs: Path, name: str) -> Path | None:
    """The bundle of the run `name`, if it is one of this very candidate: the candidate itself says the names."""
    if not PLAIN["name"].fullmatch(name):
        return None
    try:
        found = Bundle.open(runs / name)
    except BenchError:
        return None
    return found.path if found.run.candidate.name == machine.link.connection.name else None


def remove_scratch(machine: Machine, directories: Iterable[Path], say: Say) -> list[str]:
    """Removes the scratch files of runs that were killed; returns what is said of each file system that has failed."""
    failed = []
    for directory in directories:
        found = machine.call("scratch", "remove-stale", directory)
        failed += [found["failed"]] if found["failed"] else []
        for folder, size in found["removed"]:
            say(f"removed {folder} ({size / 1e9:.1f} GB), left behind by a run that was killed")
    return failed


@contextmanager
def socket_folder(process: int) -> Iterator[Path]:
    """A short path of our own, also where the user's temporary folder has a long one. Those of benches that are gone are removed."""
    parent = Path(tempfile.gettempdir())
    if len(os.fsencode(parent)) > TEMPORARY_MAX:
        parent = SHORT_FOLDER
    for old in parent.glob(f"{SOCKETS}*"):
        pid = old.name.removeprefix(SOCKETS).partition("-")[0]
        if pid.isdigit() and not began(int(pid)) and not old.is_symlink():
            with suppress(FileNotFoundError, PermissionError):  # another bench removes it too; another user's stays
                shutil.rmtree(old)
    with tempfile.TemporaryDirectory(prefix=f"{SOCKETS}{process}-", dir=parent) as folder:
        yield Path(folder)
