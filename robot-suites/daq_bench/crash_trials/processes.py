"""The processes of one trial, on both sides, and the moment at which one of them is killed."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "DAQ_BENCH_TRIAL"  # every process that the bench starts here inherits it
POLL_S = 0.01
# How each kind is known by its command line. Those of the candidate run in its container.
HERE = {
    "rig": r"-m daq_bench.rig (qualify|resume)",
    "robot": r"-m robot ",
    "ansible": r"ansible-playbook",
    "ssh": r"ssh .*-N .*ControlMaster=yes",
}
THERE = {"agent": r"telemetry_agent\.pyz run", "daqwriter": r"^/opt/\S*daqwriter ", "fio": r"^fio "}
KINDS = (*HERE, *THERE, "influxd")
IDLE = r"systemd|dbus-daemon|agetty|^sshd: |\(sd-pam\)"  # of a candidate on which nothing of the bench runs


def words_of(pid: int) -> str:
    """The command line; empty for a process that has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def marked(token: str) -> dict[int, str]:
    """The living processes of this machine that carry the trial's mark, by number."""
    mark, found = f"{VARIABLE}={token}\0".encode(), {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            carries = mark in (folder / "environ").read_bytes() + b"\0"
        except OSError:
            continue
        words = words_of(int(folder.name)) if carries else ""
        if words:
            found[int(folder.name)] = words
    return found


def inside(container: int) -> dict[int, str]:
    """The living processes of a container, by their number on this machine."""
    children: dict[int, list[int]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(file.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        children.setdefault(parent, []).append(int(file.parent.name))
    found, waiting = {}, children.get(container, [])
    while waiting:
        pid = waiting.pop()
        waiting += children.get(pid, [])
        if words := words_of(pid):
            found[pid] = words
    return found


def of_the_bench(container: int) -> list[str]:
    """The command lines on a candidate that are not its own."""
    return sorted(words for words in inside(container).values() if not re.search(IDLE, words))


@dataclass(frozen=True)
class Moment:
    """`delay_s` after the `nth` process of the kind was first seen; where that has ended by then, the next one is killed."""

    kind: str
    nth: int
    delay_s: float


def kill_at(moment: Moment, look: Callable[[], dict[int, str]], alive: Callable[[], bool]) -> str:
    """Kills one process outright and returns its command line; empty where the run ended before the moment came."""
    pattern = re.compile((HERE | THERE).get(moment.kind, "influxd"))
    seen: list[int] = []
    due: float | None = None
    while alive():
        living = {pid: words for pid, words in look().items() if pattern.search(words) and "setpriv" not in words}
        seen += [pid for pid in living if pid not in seen]
        if due is None and len(seen) >= moment.nth:
            due = time.monotonic() + moment.delay_s
        if due is not None and time.monotonic() >= due and living:
            pid = max(living)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            return living[pid]
        time.sleep(POLL_S)
    return ""
