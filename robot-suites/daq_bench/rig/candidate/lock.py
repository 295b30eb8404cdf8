"""One run at a time on a machine: two benchmarks at once would each measure the other.

These are the locks of this control node: by the candidate's name, and by what the inventory says the machine is, so that a second entry
for the same BMC or the same drives finds them taken. The candidate's own lock (rig.candidate.machine_lock) holds against other control
nodes."""

from __future__ import annotations

import fcntl
import os
import re
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError, RefusedError, in_words
from daq_bench.bench_model.bundle.files import read_text
from daq_bench.bench_model.profiles.candidates import Candidate
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
