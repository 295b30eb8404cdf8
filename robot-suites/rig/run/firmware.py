"""The firmware of the candidate's drives, BIOS, BMC and network cards before and after the load: facts/firmware.json."""

from __future__ import annotations

import os
import time
from typing import Any

from bench_model.base.errors import BenchError
from bench_model.profiles.candidates import Candidate
from rig.base.settings import Layout
from rig.base.shell import LocalShell
from rig.candidate.machine import Machine
from rig.candidate.provision import bmc_secret
from rig.on_candidate.firmware import BMC_PAUSE_S, BMC_TRIES, bmc_version, part
from rig.telemetry.bmc_agent import may_read_in_band

FILE = "facts/firmware.json"
BMC_S_MAX = 60.0


class FirmwareLog:
    """Readings in the order in which they were taken; `document` is as it stands in the bundle."""

    def __init__(self, layout: Layout, candidate: Candidate, machine: Machine) -> None:
        self._layout, self._candidate, self._machine = layout, candidate, machine
        self._readings: list[dict[str, Any]] = []

    def note(self, when: str) -> None:
        """Asks every part. Raises BenchError when the candidate does not answer; a part that does not has no version."""
        in_band = ["bmc"] if may_read_in_band(self._candidate) else []
        parts = self._machine.call("firmware", *in_band)
        if not any(one["kind"] == "bmc" for one in parts):
            parts += self._bmc_over_lan()
        self._readings.append({"when": when, "parts": parts})

    def document(self) -> dict[str, Any]:
        """facts/firmware.json."""
        return {"schema_version": 1, "readings": self._readings}

    def _bmc_over_lan(self) -> list[dict[str, Any]]:
        """The BMC that the inventory gives an address; none where it has none or no password."""
        told = self._candidate.document.get("bmc", {})
        if "address" not in told:
            return []
        secret = {**os.environ, **bmc_secret(self._layout, self._candidate)}.get(told["password_env"])
        if not secret:
            return []
        argv = [
            "ipmitool",
            "-I",
            "lanplus",
            "-H",
            told["address"],
            "-p",
            str(told.get("ipmi_port", 623)),
            "-U",
            told["user"],
        ]
        argv += ["-C", str(told.get("cipher_suite", 17)), "-N", "2", "-R", "3", "-E", "mc", "info"]
        version = None
        for left in reversed(range(BMC_TRIES)):
            try:
                version = bmc_version(
                    LocalShell().run(argv, BMC_S_MAX, {"IPMI_PASSWORD": secret, "LC_ALL": "C"}).stdout
                )
            except BenchError:
                version = None
            if version or not left:
                break
            time.sleep(BMC_PAUSE_S)
        return [part("bmc", "system", version, "ipmitool over LAN")]
