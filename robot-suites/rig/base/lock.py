"""One run at a time on a machine: two benchmarks at once would each measure the other."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from bench_model.base.errors import RefusedError


def lock_path(candidate: str) -> Path:
    """The lock file of `candidate`; DAQ_BENCH_LOCK_DIR moves it, for tests."""
    return Path(os.environ.get("DAQ_BENCH_LOCK_DIR", tempfile.gettempdir())) / f"daq-storage-bench-{candidate}.lock"


@contextmanager
def exclusive(candidate: str, what: str, subject: str = "candidate") -> Iterator[None]:
    """Holds the candidate's lock (or that of another `subject`). Raises RefusedError that names the holder when another run has it.

    The kernel releases the lock when its holder dies, so there is never a stale one to remove."""
    path = lock_path(candidate)
    with _opened(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = file.read().strip() or "another process"
            raise RefusedError(
                f"{subject} {candidate!r} is being qualified by {holder}. Two runs at once would measure each other; "
                f"wait until it has ended (lock: {path})"
            ) from None
        if file.writable():
            file.seek(0)
            file.truncate()
            file.write(f"process {os.getpid()}: {what}\n")
            file.flush()
        yield


def _opened(path: Path) -> IO[str]:
    """The lock file, made if it is not there; only readable where it belongs to another user, which locks as well."""
    # Without O_CREAT first: in a sticky world-writable folder the kernel refuses O_CREAT on another user's file.
    try:
        return os.fdopen(os.open(path, os.O_RDWR), "r+")
    except PermissionError:
        return os.fdopen(os.open(path, os.O_RDONLY), "r")
    except FileNotFoundError:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        os.fchmod(handle, 0o666)  # whatever the umask: another user of the machine must be able to say that he holds it
        return os.fdopen(handle, "r+")
