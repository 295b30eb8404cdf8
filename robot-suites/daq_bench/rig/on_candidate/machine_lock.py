"""One bench at a time on this machine, whichever control node or inventory entry it comes from: `machine_lock.py hold|break OWNER`.

`hold` prints {result} once the lock is held, or {error, owner}, and holds it until standard input closes; `release` there gives it back.
OWNER is JSON: {id, text, node, pid, began, since_s, returns_s}; the file carries it, so that a lock outlives a reboot of this machine in
which the owner waits. `break` forgets an owner that is gone. The kernel gives the lock back when its holder dies; the file's time says when
the holder was last there."""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import signal
import stat
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

RENEW_S = 5.0
END_S_MAX = 25.0  # a command that is ended with its connection gets 15 s to clean up
FOLDER_VARIABLE = "DAQ_BENCH_LOCK_DIR"
RELEASE = b"release"
NAME = "daq-storage-bench.lock"


class LockError(Exception):
    """Another owner has the lock. `owner` names him where only his control node can say whether he lives."""

    def __init__(self, text: str, owner: dict[str, Any] | None = None) -> None:
        super().__init__(text)
        self.owner = owner


def lock_folder() -> Path:
    """Returns a folder that outlives a reboot and that any user may use; DAQ_BENCH_LOCK_DIR moves it, for tests and shared file systems."""
    return Path(os.environ.get(FOLDER_VARIABLE, "/var/tmp"))


def opened(path: Path) -> int:
    """Opens the lock file, made if it is not there; only for reading where it belongs to another user, which locks as well.

    A link or a pipe of that name neither leads to a write elsewhere nor hangs the bench."""
    # Without O_CREAT first: in a sticky world-writable folder the kernel refuses O_CREAT on another user's file.
    flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(path, os.O_RDWR | flags)
    except PermissionError:
        handle = os.open(path, os.O_RDONLY | flags)
    except FileNotFoundError:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o666)
        os.fchmod(handle, 0o666)  # whatever the umask: another user of the machine must be able to say that he holds it
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise LockError(f"{path} is no regular file. Remove it")
    return handle


def owner_of(handle: int) -> dict[str, Any] | None:
    """Returns the owner that the file names; None without one, and for text that no bench wrote."""
    try:
        found = json.loads(os.pread(handle, 4096, 0).decode("utf-8"))
        return {
            "id": str(found["id"]),
            "text": "".join(one for one in str(found["text"]) if one.isprintable())[:300],
            "node": str(found["node"]),
            "pid": int(found["pid"]),
            "began": str(found["began"]),
            "since_s": float(found["since_s"]),
            "returns_s": min(7200.0, max(0.0, float(found["returns_s"]))),
        }
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def write_owner(handle: int, owner: dict[str, Any] | None) -> None:
    try:
        os.ftruncate(handle, 0)
        if owner:
            os.pwrite(handle, json.dumps(owner).encode("utf-8"), 0)
            os.fsync(handle)
    except OSError:
        if owner and owner_of(handle):  # another user's file, only readable: the kernel's lock holds without words
            return


def user_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user may have none
        return f"user {os.getuid()}"


def machine_id() -> str:
    try:
        return Path("/etc/machine-id").read_text(encoding="ascii").strip()
    except OSError:
        return os.uname().nodename


def began(pid: int) -> str:
    """Returns when a process began, in the kernel's ticks since boot, with the boot; empty for one that is not there."""
    try:
        ticks = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text(encoding='ascii').strip()}:{ticks}"
    except (OSError, IndexError):
        return ""


def sessions(handle: int) -> list[int]:
    """Returns the processes of sshd below which a process holds this lock: the connections whose end gives it back."""
    name, found = Path(f"/proc/self/fd/{handle}").readlink(), []
    for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
        words = line.split()
        if words[1] == "FLOCK" and _has_open(int(words[4]), name):
            found.append(_sshd_above(int(words[4])))
    return [pid for pid in found if pid]


def _has_open(pid: int, name: Path) -> bool:
    try:
        return any(file.readlink() == name for file in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def _sshd_above(pid: int) -> int:
    while pid > 1:
        try:
            text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return 0
        if text.partition("(")[2].rpartition(")")[0].startswith("sshd"):
            return pid
        pid = int(text.rpartition(")")[2].split()[1])
    return 0


def taken(handle: int, me: dict[str, Any]) -> bool:
    """Takes the kernel's lock. Where the owner's bench is gone and sshd has not noticed it, since the network was cut, the connection that
    holds the lock is ended first, and with it the commands that still run over it. Returns False while the owner lives."""
    deadline = time.monotonic() + END_S_MAX
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            owner = owner_of(handle)
            if owner is None or owner["id"] not in me.get("gone", []) or time.monotonic() > deadline:
                return False
        for pid in sessions(handle):
            with suppress(OSError):
                os.kill(pid, signal.SIGTERM)
        time.sleep(0.2)


def described(owner: dict[str, Any] | None, handle: int) -> str:
    if owner is None:
        return "by a process that left no name"
    seen = max(0.0, time.time() - os.fstat(handle).st_mtime)
    return f"by {owner['text']}, for {age(time.time() - owner['since_s'])} (last seen {age(seen)} ago)"


def age(seconds: float) -> str:
    return f"{max(0.0, seconds) / 60:.0f} min" if seconds >= 90 else f"{max(0.0, seconds):.0f} s"


def lives(owner: dict[str, Any], me: dict[str, Any]) -> bool | None:
    """Says whether the owner's process runs, as seen here or by his control node (`gone`); None where nobody has looked."""
    if owner["id"] in me.get("gone", []):
        return False
    if owner["node"] != machine_id():
        return None
    return bool(owner["began"]) and began(owner["pid"]) == owner["began"]


def acquire(handle: int, me: dict[str, Any]) -> str:
    """Takes the lock; returns the message about an owner who is gone. Raises LockError that names the owner."""
    if not taken(handle, me):
        raise LockError(f"it is in use {described(owner_of(handle), handle)}", owner_of(handle))
    owner, said = owner_of(handle), ""
    if owner and owner["id"] != me["id"]:
        alive = lives(owner, me)
        silent_s = time.time() - os.fstat(handle).st_mtime
        if alive or (alive is None and silent_s < owner["returns_s"]):
            raise LockError(f"it is in use {described(owner, handle)}; its owner may be waiting for a reboot", owner)
        said = f"its lock was left behind {described(owner, handle)}"
    write_owner(handle, me)
    return said


def broken(handle: int, me: dict[str, Any]) -> str:
    """Forgets an owner that is gone. Raises LockError while he lives."""
    if not taken(handle, me):
        raise LockError(f"its owner lives: it is in use {described(owner_of(handle), handle)}", owner_of(handle))
    owner = owner_of(handle)
    if owner is None:
        return "it was not locked"
    alive = lives(owner, me)
    if alive or (alive is None and owner["node"] == me["node"]):
        raise LockError(f"its owner lives: it is in use {described(owner, handle)}", owner)
    said = f"it was locked {described(owner, handle)}"
    write_owner(handle, None)
    return said


def _renew(handle: int, end: threading.Event) -> None:
    while not end.wait(RENEW_S):
        try:
            os.utime(handle)
        except OSError:
            return


def main(argv: list[str]) -> int:
    command, me = argv[0], json.loads(argv[1])
    try:
        handle = opened(lock_folder() / NAME)
        result = acquire(handle, me) if command == "hold" else broken(handle, me)
    except (OSError, LockError) as error:
        print(json.dumps({"error": str(error), "owner": getattr(error, "owner", None)}), flush=True)
        return 0
    print(json.dumps({"result": result}), flush=True)
    if command == "hold":
        end = threading.Event()
        threading.Thread(target=_renew, args=(handle, end), daemon=True).start()
        # sshd closes it when the bench or the network is gone: then the owner stays written, since he may come back after a reboot.
        while said := os.read(0, 4096):
            if RELEASE in said:
                write_owner(handle, None)
        end.set()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
