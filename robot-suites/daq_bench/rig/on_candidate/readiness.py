"""Reads what stands in a run's way on a Linux machine, or would surprise its operator: `readiness.py {services, rooms, state, left}`.

Takes and prints JSON: {result: {clock_s, selinux, active, free_bytes, left, held}}. Reads only: `held` looks at the lock without taking it
for longer than the look, and `left` names files of a tuning that was not put back."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from daq_bench.rig.on_candidate.machine_lock import NAME, described, lock_folder, owner_of

ASK_S_MAX = 20.0
ENFORCE = Path("/sys/fs/selinux/enforce")


def selinux(file: Path = ENFORCE) -> str:
    """`enforcing`, `permissive`, or empty where the kernel has none."""
    try:
        return "enforcing" if file.read_text(encoding="ascii").strip() == "1" else "permissive"
    except OSError:
        return ""


def active(services: list[str]) -> list[str]:
    """Those that run; none where systemd does not."""
    try:
        done = subprocess.run(
            ["systemctl", "is-active", *services], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=ASK_S_MAX, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return []
    return [name for name, word in zip(services, done.stdout.split()) if word == "active"]


def free_bytes(place: Path) -> int:
    """Free bytes of the file system on which `place` is, or would be made."""
    while not place.exists():
        place = place.parent
    space = os.statvfs(place)
    return space.f_frsize * space.f_bavail


def held(file: Path) -> str:
    """Who holds the machine; empty for nobody. A mark without the kernel's lock is of a bench that is gone, or waits for a reboot."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        owner = owner_of(handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return f"in use {described(owner, handle)}"
        return f"left behind {described(owner, handle)}" if owner else ""
    finally:
        os.close(handle)


def left(state: Path, patterns: list[str]) -> list[str]:
    return sorted({file.name for pattern in patterns for file in state.glob(pattern)})


def main(asked: dict[str, Any]) -> dict[str, Any]:
    found = {
        "selinux": selinux(),
        "active": active(asked["services"]),
        "free_bytes": {place: free_bytes(Path(place)) for place in asked["rooms"]},
        "left": left(Path(asked["state"]), asked["left"]),
        "held": held(lock_folder() / NAME),
        "clock_s": time.time(),
    }
    return {"result": found}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))), flush=True)
