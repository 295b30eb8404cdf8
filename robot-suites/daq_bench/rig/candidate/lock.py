"""One run at a time on a machine: two benchmarks at once would each measure the other.

These are the locks of this control node: by the candidate's name, and by what the inventory says the machine is, so that a second entry
for the same BMC or the same drives finds them taken. `MachineLock` is the lock on the candidate itself: a bench finds its holder from any
control node, inventory or name."""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import subprocess
import time
import urllib.parse
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, RefusedError, in_words
from daq_bench.bench_model.bundle.files import read_text
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.rig.base.output import EndlessOutputError, dropped, taken
from daq_bench.rig.candidate.machine import Machine, SshMachine
from daq_bench.rig.candidate.ssh import HOLD_S_MAX
from daq_bench.rig.on_candidate import machine_lock as there
from daq_bench.rig.on_candidate.machine_lock import LockError, age, began, lock_folder, opened, user_name


def lock_path(candidate: str) -> Path:
    """The lock file of `candidate`; DAQ_BENCH_LOCK_DIR moves it, for tests."""
    return lock_folder() / f"daq-storage-bench-{urllib.parse.quote(candidate, safe='')[:200]}.lock"


def identities(candidate: Candidate) -> list[str]:
    """Returns the identities of the machine, whatever the inventory calls it: its name, its BMC, each drive that the entry names."""
    bmc = candidate.document.get("bmc", {})
    serials = {serial for target in candidate.targets for serial in target.serials}
    serials |= {drive["serial"] for drive in candidate.identity.get("drives", [])}
    found = [candidate.name]
    if "address" in bmc:
        found.append(f"bmc {bmc['address'].lower()} {bmc.get('ipmi_port', 623)} {bmc.get('redfish_port', 443)}")
    return found + [f"its drive {serial.strip()}" for serial in sorted(serials)]


@contextmanager
def all_exclusive(candidate: Candidate, what: str) -> Iterator[None]:
    """Holds every identity of the candidate. Raises RefusedError as `exclusive`."""
    with ExitStack() as stack:
        for identity in identities(candidate):
            stack.enter_context(exclusive(identity, f"{what} (candidate {candidate.name})"))
        yield


@contextmanager
def exclusive(candidate: str, what: str, subject: str = "candidate") -> Iterator[None]:
    """Holds the candidate's lock (or that of another `subject`). Raises RefusedError that names the holder when another run has it.

    The kernel releases the lock when its holder dies, so there is never a stale one to remove."""
    path = lock_path(candidate)
    try:
        handle = opened(path)
    except (OSError, LockError) as error:
        raise RefusedError(f"the lock {path} cannot be opened: {in_words(error)}") from None
    with os.fdopen(handle, "r" if _only_readable(handle) else "r+", errors="replace") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = " ".join(file.read(500).split()) or "another process"
            since = age(time.time() - os.fstat(handle).st_mtime)
            raise RefusedError(
                f"{subject} {candidate!r} is being qualified by {holder}, for {since}. Two runs at once would measure each other; "
                f"wait until it has ended (lock: {path})"
            ) from None
        if file.writable():
            file.seek(0)
            file.truncate()
            file.write(f"process {os.getpid()}: {what}, of {user_name()}\n")
            file.flush()
        yield


def holder_since_s(candidate: str, what: str) -> float | None:
    """When the process began that took the candidate's lock last, to do `what`; s since 1970 UTC. None where it is gone. Takes no lock.

    Whoever compares it with what the process did finds out a number that the kernel has given to another process since."""
    path = lock_path(candidate)
    try:
        found = re.match(rf"process (\d{{1,9}}): {re.escape(what)}", read_text(path.parent, path.name, "replace"))
        if (
            not found or not Path(f"/proc/{found[1]}/cmdline").read_bytes()
        ):  # of a process that has ended and was not waited for
            return None
    except (BenchError, OSError):
        return None
    ticks = began(int(found[1])).rpartition(":")[2]
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - int(ticks) / os.sysconf("SC_CLK_TCK") if ticks else None
    return None if age_s is None else time.time() - age_s


def _only_readable(handle: int) -> bool:
    return fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY


GRACE_S = 10.0
_given_up: set[str] = set()  # marks of this process that it could not take away: they keep it from nothing


class SilentError(BenchError):
    """The candidate was reached, and said nothing of its lock."""


class MachineLock:
    """Held between `take` and `give_back`. `renew` takes it again on a candidate that was rebooted meanwhile."""

    def __init__(self, machine: Machine, candidate: str, what: str, returns_s: float) -> None:
        """`returns_s`: the longest time that a reboot may keep us away from the candidate."""
        pid = os.getpid()
        self._machine, self._candidate = machine, candidate
        self._me: dict[str, Any] = {
            "id": uuid.uuid4().hex, "text": f"process {pid} of {there.user_name()} on {socket.gethostname()}: {what}",
            "node": there.machine_id(), "pid": pid, "began": there.began(pid), "since_s": time.time(), "returns_s": returns_s,
        }  # fmt: skip
        self._handle: int | None = None
        self._holder: subprocess.Popen[bytes] | None = None

    def take(self) -> str:
        """Takes the lock; returns the message about an owner who is gone. Raises RefusedError that names a living one."""
        return self._asked("hold")

    def break_open(self) -> str:
        """Forgets an owner who is gone and returns its name. Raises RefusedError while it lives."""
        return self._asked("break")

    def renew(self) -> None:
        if self._holder is not None and self._holder.poll() is not None:
            self.take()

    def demand_held(self) -> None:
        """Raises BenchError where the lock was lost since it was taken: the connection that held it has ended."""
        if self._holder is not None and self._holder.poll() is not None:
            raise BenchError(
                f"the lock on candidate {self._candidate!r} was lost while the run went on, as the connection that held it ended: another "
                "bench may have used the machine. Run it again"
            )

    def give_back(self) -> None:
        if self._handle is not None:
            there.write_owner(self._handle, None)
            os.close(self._handle)
        if self._holder is not None and not self._released():
            # Provisioning and restoration may reboot the candidate: the connection that held the lock is gone, and our mark is still there.
            try:
                assert isinstance(self._machine, SshMachine)
                self._machine.link.open()
                self.take()
                self._released()
            except BenchError:
                _given_up.add(self._me["id"])
        self._handle = self._holder = None

    def _released(self) -> bool:
        """Asks the holder to take our mark away; says whether it did. It has ended in any case."""
        assert self._holder is not None
        with suppress(OSError, ValueError):
            if dropped(self._holder, GRACE_S, there.RELEASE + b"\n"):
                return self._holder.returncode == 0
        self._holder.kill()
        self._holder.wait()
        return False

    def _asked(self, command: str) -> str:
        gone = sorted(_given_up)
        while True:
            me = {**self._me, "gone": gone}
            answer = self._over_ssh(command, me) if isinstance(self._machine, SshMachine) else self._here(command, me)
            if "result" in answer:
                return str(answer["result"])
            owner = answer.get("owner")
            # The candidate cannot see that a process of this control node has ended.
            if (
                owner
                and owner["node"] == me["node"]
                and owner["id"] not in gone
                and there.began(owner["pid"]) != owner["began"]
            ):
                gone.append(owner["id"])
                continue
            remedy = (
                "wait until it has ended"
                if command == "break"
                else (
                    f"wait until it has ended; if it is gone, `daq-bench unlock --candidate {self._candidate}` forgets it"
                )
            )
            raise RefusedError(
                f"the machine behind candidate {self._candidate!r} cannot be had: {answer['error']}. Two runs at once would "
                f"measure, and tune, each other: {remedy}"
            )

    def _here(self, command: str, me: dict[str, Any]) -> dict[str, Any]:
        handle = None
        try:
            handle = there.opened(there.lock_folder() / there.NAME)
            result = there.acquire(handle, me) if command == "hold" else there.broken(handle, me)
        except (OSError, there.LockError) as error:
            if handle is not None:
                os.close(handle)
            return {"error": in_words(error), "owner": getattr(error, "owner", None)}
        if command == "hold":
            self._handle = handle
        else:
            os.close(handle)
        return {"result": result}

    def _over_ssh(self, command: str, me: dict[str, Any]) -> dict[str, Any]:
        assert isinstance(self._machine, SshMachine)
        words = self._machine.program("machine_lock", command, json.dumps(me))
        holder, line = self._machine.link.hold(words)
        try:
            answer = _answer(line)
        except (ValueError, KeyError, TypeError, RecursionError):
            holder.kill()
            raise SilentError(f"candidate {self._candidate!r} cannot be locked: {_last_words(holder)}") from None
        if command == "hold" and "result" in answer:
            self._holder = holder
        else:
            holder.kill()
            dropped(holder, GRACE_S)
        return answer


def _last_words(holder: subprocess.Popen[bytes]) -> str:
    """Returns the last words of a holder that was killed. Its ssh's master keeps the streams open while its command has not ended."""
    try:
        said = taken(holder, GRACE_S)[1].strip().splitlines()
    except (subprocess.TimeoutExpired, EndlessOutputError):
        return f"it did not answer within {HOLD_S_MAX:.0f} s, and the command that asked it does not end"
    return said[-1][:500] if said else "it said nothing"


@contextmanager
def machine_locked(machine: Machine, candidate: str, what: str, returns_s: float) -> Iterator[str]:
    """Holds the machine; yields the message about a lock that was left behind, or nothing."""
    lock = MachineLock(machine, candidate, what, returns_s)
    said = lock.take()
    machine.lock = lock
    try:
        yield said
    finally:
        machine.lock = None
        lock.give_back()


def _answer(line: str) -> dict[str, Any]:
    """Returns what the candidate's program says: {result}, or {error, owner}. Raises the errors of a line that is neither."""
    said = json.loads(line)
    if not isinstance(said, dict):
        raise TypeError(line)
    if "result" in said:
        return {"result": str(said["result"])}
    owner = said.get("owner")
    known = (
        {"id": str(owner["id"]), "node": str(owner["node"]), "pid": int(owner["pid"]), "began": str(owner["began"])}
        if owner
        else None
    )
    return {"error": str(said["error"])[:1000], "owner": known}
