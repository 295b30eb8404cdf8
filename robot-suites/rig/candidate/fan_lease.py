"""Keeps the fans at full speed for as long as this run lives, by renewing the lease that the fans role has armed.

When the bench dies, nobody renews it, and the guard (ansible/roles/fans/files/fan_guard.py) gives the fans back to automatic control."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from bench_model.base.errors import BenchError
from bench_model.profiles.candidates import Candidate
from rig.base.bundle import Bundle
from rig.base.settings import Layout
from rig.base.shell import LocalShell, Shell
from rig.candidate.machine import Machine

RENEW_EVERY_S = 15.0
LEASE_S = 120.0
LEFT_S = 4 * 3600.0  # as after a plain `make provision`
CALL_S_MAX = 60.0
LEASE_FILE = "fans-lease.json"


class FanLease:
    """Renews from a thread between `start` and `stop`. `argv` renews once, run by `shell`; the seconds are added to it."""

    def __init__(self, shell: Shell, argv: list[str | Path], bundle: Bundle) -> None:
        self._shell, self._renew, self._bundle = shell, argv, bundle
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="fan-lease", daemon=True)
        self._said: str | None = None

    def start(self) -> None:
        """Shortens the lease of provisioning to this run's. Raises BenchError when there is none in force."""
        self._renewed(LEASE_S)
        self._thread.start()

    def _renewed(self, seconds: float) -> None:
        self._shell.run([*self._renew, f"--seconds={seconds:g}"], timeout_s=CALL_S_MAX).check(
            "renewing the fans' lease"
        )

    def stop(self, keep: bool) -> None:
        """Ends the renewals. `keep`: the tuning stays in force; otherwise `restore` follows, which releases the lease."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
            if keep:
                self._renewed(LEFT_S)

    def _loop(self) -> None:
        while not self._stop.wait(RENEW_EVERY_S):
            try:
                self._renewed(LEASE_S)
                self._said = None
            except BenchError as error:
                # The read-back after the load judges the effect on the evidence; the event here only records time and cause.
                if str(error) != self._said:
                    self._bundle.event("error", "fans", str(error))
                self._said = str(error)


def fan_lease(layout: Layout, candidate: Candidate, machine: Machine, bundle: Bundle) -> FanLease | None:
    """The run's lease; None where provisioning armed no guard: full speed was not asked for, cannot be set, or was there before."""
    settings = (bundle.read("facts/tuning.json") or {"settings": []})["settings"]
    if not any(one["id"] == "fan-guard" and one["status"] in ("applied", "unchanged") for one in settings):
        return None
    bmc = candidate.document["bmc"]
    if "address" in bmc:
        program = layout.repository / "ansible" / "roles" / "fans" / "files" / "fan_guard.py"
        lease = layout.state_directory(candidate.name) / LEASE_FILE
        return FanLease(LocalShell(), [sys.executable, program, "renew", "--lease", lease], bundle)
    places = machine.places(candidate.name, bundle.path)
    program, lease = places.programs / "fan_guard.py", places.state / LEASE_FILE
    return FanLease(machine, ["python3", program, "renew", "--lease", lease], bundle)
