"""Takes back what a killed bench has left: an agent that still collects, points without a bundle, folders, scratch files, a dead socket.

Whoever holds the candidate's lock may take it back: its owner is gone."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
# A socket's path may have 107 bytes: the folder's name, the socket's, and what ssh puts behind it while it makes it, take up to 52.
TEMPORARY_MAX, SHORT_FOLDER = 55, Path("/tmp")
Say = Callable[[str], None]


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
