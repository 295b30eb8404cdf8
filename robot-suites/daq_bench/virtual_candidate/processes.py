"""Long-running processes, recorded by pid and start time: a recycled pid is never taken for ours, and never signalled."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from daq_bench.virtual_candidate.files import read_json, write_json

# Every process of an instance carries its state directory in this variable, those that its children start too.
MARK = "VIRTUAL_CANDIDATE_DIRECTORY"
_STARTED = 21  # field of /proc/<pid>/stat, counted from 0
_STATE = 2


@dataclass(frozen=True)
class Identity:
    """One process for as long as the machine is up: pids recur, a pid with its start time does not."""

    pid: int
    started_ticks: int
    boot: str


def identity_of(pid: int) -> Identity | None:
    """The identity of the process; None when there is none, or only a zombie of an ended one."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name in parentheses may itself hold spaces and parentheses.
    fields = ["", "", *text.rpartition(")")[2].split()]
    if fields[_STATE] in "ZX":
        return None
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return Identity(pid, int(fields[_STARTED]), boot)


def start(
    record: Path, argv: Sequence[str | Path], directory: Path, log: Path, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Starts `argv` in a session of its own, its output appended to `log`, and writes down who it is in `record`."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(word) for word in argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd=directory,
            env={**os.environ, **(env or {}), MARK: str(directory)},
        )
    identity = identity_of(process.pid)
    if identity:
        write_json(record, vars(identity))
    return process


def running(record: Path) -> Identity | None:
    """The recorded process, if it is alive."""
    known = read_json(record)
    if not known:
        return None
    _reap(known["pid"])
    found = identity_of(known["pid"])
    return found if found == Identity(**known) else None


def stop(record: Path, grace_s: float = 5.0, number: signal.Signals = signal.SIGTERM) -> bool:
    """Ends the recorded process and forgets it. False when it was not running."""
    identity = running(record)
    if identity:
        end(identity, grace_s, number)
    record.unlink(missing_ok=True)
    return identity is not None


def end(identity: Identity, grace_s: float = 5.0, number: signal.Signals = signal.SIGTERM) -> None:
    """Asks a process to end, kills it after `grace_s`, and returns when it is gone."""
    try:
        # The descriptor is bound to the process, not to its pid: the signal reaches the identified process and no other.
        handle = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return
    try:
        if identity_of(identity.pid) != identity:
            return
        for signal_number, wait_s in ((number, grace_s), (signal.SIGKILL, 10.0)):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal_number)
            if select.select([handle], [], [], wait_s)[0]:
                break
    finally:
        os.close(handle)
    _reap(identity.pid)


def strays(directory: Path) -> list[Identity]:
    """Processes of this user that belong to the instance in `directory`, recorded or not; never the caller itself.

    Finds also processes that a start which was killed half-way did not record."""
    wanted = f"{MARK}={directory}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
        except OSError:  # another user's, or just ended
            continue
        if wanted in environment and int(folder.name) != os.getpid():
            identity = identity_of(int(folder.name))
            if identity:
                found.append(identity)
    return found


def _reap(pid: int) -> None:
    """Collects the exit status where the process is a child of this very one, so that it does not stay a zombie."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
