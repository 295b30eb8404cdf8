#!/usr/bin/env python3
"""Gives a server's fans back to automatic control when nobody renews a lease any more.

Promises: as soon as the lease runs out, cannot be read or is gone, the BMC is sent the automatic sequence until it
accepts it, with growing pauses and a line in the log for each try; then the guard ends. While the guard lives it
holds a lock on `LEASE.guard`, so that anybody can tell. It ends without a command only when the lease was released.

A lease is a small file with an expiry time in seconds of CLOCK_BOOTTIME of the machine that the guard runs on: no step
of the wall clock moves it, and sleep counts. A lease of an earlier boot is void.

Runs where the fan commands are sent from: on the server itself (its own IPMI device) or on the control node (LAN; the
BMC's password is then in the guard's environment, never in a file or an argument). Python 3.9, standard library only.

    fan_guard.py start   --lease FILE --plan FILE --log FILE --seconds N [--unit NAME]   arm it (again)
    fan_guard.py renew   --lease FILE --seconds N     the lease now ends in N seconds; fails if no guard holds it
    fan_guard.py status  --lease FILE                 one line of JSON
    fan_guard.py release --lease FILE                 end the guard; it sends nothing
    fan_guard.py run     --lease FILE --plan FILE --log FILE     the guard itself, in the foreground
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

POLL_S = 1.0  # rarely enough not to disturb a measurement
COMMAND_S_MAX = 30.0
PAUSE_S_FIRST, PAUSE_S_MAX = 1.0, 60.0
START_S_MAX = 20.0
RELEASE_S_MAX = 40.0  # a guard that is just sending a command answers after COMMAND_S_MAX
LEASE_S_MAX = 7 * 24 * 3600.0
SYSTEMD_MARK = "/run/systemd/system"  # exists where systemd is the init system: sd_booted(3)


class GuardError(Exception):
    """States the obstacle and the remedy."""


def boottime_s() -> float:
    """Return the seconds since boot, those asleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_id() -> str:
    """Return the kernel's name for this boot."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
        return stream.read().strip()


def start_ticks(pid: int) -> int:
    """Return when a process was started, in clock ticks since boot: pid and this together name it for good."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
        return int(stream.read().rpartition(")")[2].split()[19])  # field 22 of proc(5)


def write_json(path: str, document: dict[str, Any]) -> None:
    """Replace a file as a whole."""
    new = f"{path}.new"
    with open(new, "w", encoding="utf-8") as stream:
        json.dump(document, stream)
        stream.write("\n")
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(new, path)


def read_json(path: str) -> dict[str, Any] | None:
    """Return a file's object; None where there is none or it is damaged."""
    try:
        with open(path, encoding="utf-8") as stream:
            document = json.load(stream)
    except (OSError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def remove(path: str) -> None:
    """Remove a file that may be gone already."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def take_lock(descriptor: int) -> bool:
    """Take a lock for good; with several tries, since a process that looks for a guard holds it for an instant."""
    for _attempt in range(20):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.05)
        else:
            return True
    return False


class Lease:
    """The lease file, the lock around changes of it, and the lock that its guard holds."""

    def __init__(self, path: str) -> None:
        """Name the files; touches none."""
        self.path, self.guard_path = path, f"{path}.guard"

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Let nobody change the lease between a look at it and the action that follows."""
        with open(f"{self.path}.lock", "w", encoding="ascii") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield

    def write(self, seconds: float) -> None:
        """Let the lease end in `seconds`; the caller holds the lock."""
        write_json(self.path, {"boot_id": boot_id(), "expires_boottime_s": boottime_s() + seconds})

    def remaining_s(self) -> float:
        """Return the seconds that are left; 0 for a lease that is gone, damaged or of another boot."""
        document = read_json(self.path) or {}
        expires = document.get("expires_boottime_s")
        if document.get("boot_id") != boot_id() or not isinstance(expires, (int, float)):
            return 0.0
        return max(0.0, expires - boottime_s())

    def released(self) -> bool:
        """Return whether the holder of the lease wants the guard gone."""
        return (read_json(self.path) or {}).get("released") is True

    def guard(self) -> dict[str, Any] | None:
        """Return the living guard's pid and start time; None where none holds the lock."""
        for _attempt in range(20):
            try:
                with open(self.guard_path, encoding="utf-8") as stream:
                    fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return None
            except FileNotFoundError:
                return None
            except BlockingIOError:
                document = read_json(self.guard_path)
                if document:
                    return document
            time.sleep(0.05)  # it holds the lock and is about to say who it is
        raise GuardError(f"{self.guard_path} is locked by a process that does not say who it is")


class Guard:
    """The process that waits for the end of the lease."""

    def __init__(self, lease: Lease, plan: dict[str, Any], log: str) -> None:
        """Take the plan: `command` (ipmitool with its connection) and `automatic` (steps with `send`, `optional`)."""
        self.lease, self.log_path = lease, log
        self.command: list[str] = list(plan["command"])
        self.steps: list[dict[str, Any]] = list(plan["automatic"])
        self.told_to_end = False

    def log(self, text: str) -> None:
        """Write one line; a full disk must not keep the fans from being given back."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        with contextlib.suppress(OSError), open(self.log_path, "a", encoding="utf-8") as stream:
            stream.write(f"{now} pid {os.getpid()}: {text}\n")

    def run(self) -> int:
        """Wait, act, end; 1 when another guard is at work already."""
        # Append mode: a second guard must not truncate the first one's entry.
        with open(self.lease.guard_path, "a", encoding="utf-8") as mark:
            if not take_lock(mark.fileno()):
                print(f"fan_guard: another guard holds {self.lease.guard_path}", file=sys.stderr)
                return 1
            mark.truncate(0)
            json.dump({"pid": os.getpid(), "start_ticks": start_ticks(os.getpid()), "boot_id": boot_id()}, mark)
            mark.flush()
            signal.signal(signal.SIGTERM, self._end)  # the machine goes down: give the fans back now
            signal.signal(signal.SIGINT, self._end)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            self.log(f"armed, {self.lease.remaining_s():.0f} s left")
            if self._wait():
                self._give_back()
            return 0

    def _end(self, number: int, _frame: object) -> None:
        self.told_to_end = True
        self.log(f"signal {number}")

    def _wait(self) -> bool:
        """Return True when the fans are to be given back, False when the lease was released."""
        while True:
            with self.lease.exclusive():
                if self.lease.released():
                    remove(self.lease.path)
                    self.log("released")
                    return False
                gone = not os.path.exists(self.lease.path)
                if gone or self.told_to_end or self.lease.remaining_s() <= 0:
                    remove(self.lease.path)  # from here on, renew is refused
                    self.log("lease vanished" if gone else "told to end" if self.told_to_end else "lease ran out")
                    return True
            time.sleep(POLL_S)

    def _give_back(self) -> None:
        """Send the automatic sequence until the BMC takes it."""
        pause_s, tries = PAUSE_S_FIRST, 0
        while True:
            tries += 1
            fault = self._send()
            if not fault:
                self.log(f"fans given back to automatic control (try {tries})")
                return
            self.log(f"try {tries} failed: {fault}; next in {pause_s:.0f} s")
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_S_MAX)

    def _send(self) -> str:
        """Send each step once; return the fault, or nothing."""
        for step in self.steps:
            argv = [*self.command, "raw", *step["send"]]
            try:
                done = subprocess.run(
                    argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=COMMAND_S_MAX, check=False
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                return f"{argv[0]}: {error}"
            if done.returncode != 0 and not step.get("optional"):
                return " ".join(done.stderr.split()) or f"{argv[0]} exited with {done.returncode}"
        return ""


def start(lease: Lease, arguments: argparse.Namespace) -> dict[str, Any]:
    """Set the lease, and start a guard unless one is at work; return its status once it holds its lock."""
    with lease.exclusive():
        running = lease.guard()
        # Not while a guard gives the fans back: it took the lease away and will end when the BMC has accepted.
        if running and not os.path.exists(lease.path):
            raise GuardError(
                f"a guard (pid {running.get('pid')}) is just giving the fans back; wait until it has ended"
                f" ({arguments.log}), then try again"
            )
        lease.write(arguments.seconds)
    if running is None:
        launch(arguments)
        deadline = time.monotonic() + START_S_MAX
        while lease.guard() is None:
            if time.monotonic() > deadline:
                raise GuardError(f"the guard did not start within {START_S_MAX:.0f} s; its log is {arguments.log}")
            time.sleep(0.05)
    return {**status(lease), "started": running is None}


def launch(arguments: argparse.Namespace) -> None:
    """Start the guard so that it outlives us: as a transient unit of systemd, or as a process of its own."""
    own = [sys.executable, os.path.abspath(__file__), "run"]
    own += ["--lease", arguments.lease, "--plan", arguments.plan, "--log", arguments.log]
    if arguments.unit and os.path.isdir(SYSTEMD_MARK):
        # systemd starts it again should it be killed: the lease is still there to be kept.
        unit = ["systemd-run", "--quiet", "--collect", f"--unit={arguments.unit}", "--property=Restart=on-failure"]
        done = subprocess.run([*unit, *own], capture_output=True, text=True, timeout=START_S_MAX, check=False)
        if done.returncode != 0:
            raise GuardError(f"systemd-run could not start the guard: {' '.join(done.stderr.split())}")
        return
    with open(arguments.log, "a", encoding="utf-8") as log:
        subprocess.Popen(own, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/")


def renew(lease: Lease, seconds: float) -> dict[str, Any]:
    """Let a lease that is in force end in `seconds`."""
    with lease.exclusive():
        left_s = lease.remaining_s()
        if left_s > 0:
            lease.write(seconds)
    if left_s <= 0:
        raise GuardError(
            f"{lease.path}: no lease is in force: the fans were given back; provision again for full speed"
        )
    if lease.guard() is None:
        raise GuardError(
            f"{lease.path}: no guard is at work (killed?): nothing would give the fans back; provision again,"
            " which starts one"
        )
    return status(lease)


def release(lease: Lease) -> dict[str, Any]:
    """End the guard without a command; returns once it is gone. One that gives the fans back is waited for."""
    with lease.exclusive():
        if lease.guard() is None:
            remove(lease.path)
        elif os.path.exists(lease.path):
            write_json(lease.path, {"boot_id": boot_id(), "released": True})
    deadline = time.monotonic() + RELEASE_S_MAX
    while lease.guard() is not None:
        if time.monotonic() > deadline:
            raise GuardError(f"{lease.path}: the guard did not end within {RELEASE_S_MAX:.0f} s; see its log")
        time.sleep(0.05)
    for path in (lease.guard_path, f"{lease.path}.lock"):
        remove(path)
    return status(lease)


def status(lease: Lease) -> dict[str, Any]:
    """Describe lease and guard."""
    guard = lease.guard()
    return {"guard": guard is not None, **(guard or {}), "remaining_s": round(lease.remaining_s(), 1)}


def seconds_of(text: str) -> float:
    """Check a lease's length."""
    value = float(text)
    if not 0 < value <= LEASE_S_MAX:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and {LEASE_S_MAX:.0f} s")
    return value


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    whole = argparse.ArgumentParser(
        prog="fan_guard.py", description="Lease on a server's fans at full speed.", allow_abbrev=False
    )
    commands = whole.add_subparsers(dest="command", required=True)
    for name in ("start", "run", "renew", "status", "release"):
        command = commands.add_parser(name, allow_abbrev=False)
        command.add_argument("--lease", required=True, help="the lease file")
        if name in ("start", "run"):
            command.add_argument("--plan", required=True, help="JSON: command, automatic")
            command.add_argument("--log", required=True, help="file that the guard appends to")
        if name in ("start", "renew"):
            command.add_argument("--seconds", required=True, type=seconds_of, help="length of the lease from now")
        if name == "start":
            command.add_argument("--unit", default="", help="name of the transient unit where systemd runs")
    return whole


def main(argv: list[str] | None = None) -> int:
    """Run one command; 1 with one line on stderr when it cannot be done."""
    arguments = parser().parse_args(argv)
    lease = Lease(os.path.abspath(arguments.lease))
    try:
        if arguments.command == "run":
            plan = read_json(arguments.plan) or {}
            if not isinstance(plan.get("command"), list) or not isinstance(plan.get("automatic"), list):
                raise GuardError(f"{arguments.plan} is missing or no plan of a guard; provision again, which writes it")
            return Guard(lease, plan, arguments.log).run()
        if arguments.command == "start":
            result = start(lease, arguments)
        elif arguments.command == "renew":
            result = renew(lease, arguments.seconds)
        elif arguments.command == "release":
            result = release(lease)
        else:
            result = status(lease)
    except (GuardError, OSError, ValueError, subprocess.TimeoutExpired) as error:
        print(f"fan_guard: {error}", file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
