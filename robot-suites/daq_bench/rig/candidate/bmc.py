"""The candidate's BMC as a run uses it: ipmitool over the LAN, the fans' duty, and the lease of their full speed.

A duty is commanded only while provisioning's guard holds the fans under its lease. Its commands are data: `duty` in
ansible/roles/fans/vars/main/vendors.yml. The lease is renewed for as long as the run lives: when the bench dies, nobody renews it, and
the guard (ansible/roles/fans/files/fan_guard.py) gives the fans back to automatic control."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.shell import Completed, LocalShell, Shell
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.candidate.provision import bmc_secret

CALL_S_MAX = 60.0
RENEW_EVERY_S = 15.0
LEASE_S = 120.0
LEFT_S = 4 * 3600.0  # as after a plain `daq-bench provision`
LEASE_FILE = "fans-lease.json"

PERCENT = "percent"  # stands in a sequence for the duty
Send = Callable[[list[str]], Completed]


@dataclass(frozen=True)
class FanDuty:
    """`obstacle` says why the duty cannot be commanded; None where it can. `vendor` is an entry of vendors.yml."""

    obstacle: str | None
    vendor: dict[str, Any]
    send: Send | None = None

    def set(self, percent: int) -> str | None:
        """Sends the duty; returns the reason when it could not: below the vendor's least, or refused by the BMC."""
        least = self.vendor["duty"]["least_percent"]
        if percent < least:
            return f"{percent} % is below {least} %, the least that the inventory of vendors allows"
        return self._sequence(self.vendor["duty"]["send"], percent)

    def give_back(self, slowed: bool) -> None:
        """Full speed, as provisioning left it. `slowed`: a duty was in force, so that also optional steps must be taken now.

        Raises BenchError: the run then ends, and `restore` or the end of the guard's lease gives the fans back."""
        needed = [step["send"] for step in self.vendor["full"] if slowed or not step.get("optional")]
        refusal = self._sequence(needed)
        if refusal:
            raise BenchError(f"the fans could not be set to full speed again: {refusal}")

    def _sequence(self, steps: list[list[int | str]], percent: int = 0) -> str | None:
        if self.send is None:
            raise BenchError(f"the fans' duty cannot be commanded: {self.obstacle}")
        for step in steps:
            words = [f"0x{percent if byte == PERCENT else int(byte):02x}" for byte in step]
            done = self.send(words)
            if done.returncode != 0:
                return f"the BMC did not take raw {' '.join(words)}: {' '.join(done.stderr.split())}"
        return None


def fan_duty(layout: Layout, candidate: Candidate, machine: Machine, bundle: Bundle) -> FanDuty:
    """Returns the duty control of this run's candidate, or the reason why there is none."""
    bmc = candidate.document.get("bmc")
    if not bmc:
        return FanDuty("the inventory entry has no BMC (bench_candidate.bmc)", {})
    if not _guarded(bundle):
        return FanDuty(
            "no guard holds the fans: provisioning arms one for tuning fan_mode: full, where the BMC takes it", {}
        )
    file = layout.repository / "ansible" / "roles" / "fans" / "vars" / "main" / "vendors.yml"
    vendors = YAML(typ="safe").load(file)["__fans_vendors"]
    vendor = vendors.get(bmc.get("vendor", ""), {})
    if not vendor:
        return FanDuty("bench_candidate.bmc.vendor is not named, so that no sequence for a duty is known", {})
    if "duty" not in vendor:
        return FanDuty(vendor.get("unsupported", f"no sequence for a duty is known for {bmc['vendor']}"), {})
    return FanDuty(None, vendor, _sender(layout, candidate, machine, bmc))


def _sender(layout: Layout, candidate: Candidate, machine: Machine, bmc: dict[str, Any]) -> Send:
    """Sends over the LAN from here where the BMC has an address, as the guard does; else in band on the candidate."""
    if "address" in bmc:
        return lambda words: over_lan(bmc, lan_password(layout, candidate) or "", "raw", *words)
    return lambda words: machine.run(["ipmitool", "raw", *words], timeout_s=CALL_S_MAX)


def lan_password(layout: Layout, candidate: Candidate) -> str | None:
    """The password of a BMC that the inventory gives an address; None where it has none or its variable is not set."""
    bmc = candidate.document.get("bmc", {})
    return {**os.environ, **bmc_secret(layout, candidate)}.get(bmc["password_env"]) if "address" in bmc else None


def over_lan(bmc: dict[str, Any], password: str, *words: str) -> Completed:
    """Runs ipmitool against the BMC's address; the password is in its environment, and in no argument."""
    lan = ["-I", "lanplus", "-H", bmc["address"], "-p", str(bmc.get("ipmi_port", 623)), "-U", bmc["user"]]
    lan += ["-C", str(bmc.get("cipher_suite", 17)), "-N", "2", "-R", "3", "-E"]
    return LocalShell().run(["ipmitool", *lan, *words], CALL_S_MAX, {"IPMI_PASSWORD": password, "LC_ALL": "C"})


def _guarded(bundle: Bundle) -> bool:
    """Says whether provisioning armed a guard: not where full speed was not asked for, cannot be set, or was there before."""
    settings = (bundle.read("facts/tuning.json") or {"settings": []})["settings"]
    return any(one["id"] == "fan-guard" and one["status"] in ("applied", "unchanged") for one in settings)


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
    """The run's lease; None where no guard is armed."""
    if not _guarded(bundle):
        return None
    bmc = candidate.document["bmc"]
    if "address" in bmc:
        program = layout.repository / "ansible" / "roles" / "fans" / "files" / "fan_guard.py"
        lease = layout.state_directory(candidate.name) / LEASE_FILE
        return FanLease(LocalShell(), [sys.executable, program, "renew", "--lease", lease], bundle)
    places = machine.places(candidate.name, bundle.path)
    program, lease = places.programs / "fan_guard.py", places.state / LEASE_FILE
    return FanLease(machine, ["python3", program, "renew", "--lease", lease], bundle)
