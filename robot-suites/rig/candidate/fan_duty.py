"""Commands a duty of all fans through the BMC, and full speed again; only while provisioning's guard holds the fans under its lease.

The commands are data: `duty` in ansible/roles/fans/vars/main/vendors.yml. If the bench dies, the guard gives the fans back."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML

from bench_model.base.errors import BenchError
from bench_model.profiles.candidates import Candidate
from rig.base.bundle import Bundle
from rig.base.settings import Layout
from rig.base.shell import Completed, LocalShell
from rig.candidate.machine import Machine
from rig.candidate.provision import bmc_secret

CALL_S_MAX = 60.0
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
    settings = (bundle.read("facts/tuning.json") or {"settings": []})["settings"]
    if not any(one["id"] == "fan-guard" and one["status"] in ("applied", "unchanged") for one in settings):
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
    if "address" not in bmc:
        return lambda words: machine.run(["ipmitool", "raw", *words], timeout_s=CALL_S_MAX)
    secret = {**os.environ, **bmc_secret(layout, candidate)}.get(bmc["password_env"], "")
    lan = ["-I", "lanplus", "-H", bmc["address"], "-p", str(bmc.get("ipmi_port", 623)), "-U", bmc["user"]]
    lan += ["-C", str(bmc.get("cipher_suite", 17)), "-N", "2", "-R", "3", "-E"]
    # The password is in ipmitool's environment, and in no argument.
    return lambda words: LocalShell().run(["ipmitool", *lan, "raw", *words], CALL_S_MAX, {"IPMI_PASSWORD": secret})
