"""Readings of the candidate at several moments of a run, as evidence: what it is against the inventory (results/identity.json), its clock
against ours (facts/clock.json), so that telemetry lies beside events, and the firmware of its drives, BIOS, BMC
and network cards before and after the load (facts/firmware.json)."""

from __future__ import annotations

import time

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.facts import (
    Clock,
    ClockReading,
    Firmware,
    FirmwarePart,
    FirmwareReading,
    Identity,
    IdentityCheck,
)
from daq_bench.bench_model.documents.struct import read
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.bmc import lan_password, over_lan
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey, check_identity, planned_checks, survey
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.on_candidate.reading.firmware import BMC_PAUSE_S, BMC_TRIES, bmc_version
from daq_bench.rig.telemetry.bmc_agent import may_read_in_band

CLOCK_FILE, FIRMWARE_FILE = "facts/clock.json", "facts/firmware.json"


def compare(context: RunContext) -> list[IdentityCheck]:
    """Makes all checks that the inventory declares, and writes results/identity.json."""
    context.phase("identity", "comparing the candidate with the inventory", 1, 1, 1.0)
    checks = check_identity(context.candidate, survey(context.machine, context.target_path))
    context.bundle.write("results/identity.json", Identity(1, planned_checks(context.candidate), checks))
    return checks


class ClockLog:
    """Readings in the order in which they were taken. On this machine there is one clock and nothing to compare."""

    def __init__(self) -> None:
        self._readings: list[ClockReading] = []

    def note(self, when: str, found: Survey, before_s: float, after_s: float) -> None:
        """Notes a survey that the candidate answered between `before_s` and `after_s` by our clock."""
        difference_s = round(found.clock_s - (before_s + after_s) / 2, 6)
        self._readings.append(ClockReading(when, difference_s, round((after_s - before_s) / 2, 6)))

    def document(self, same_clock: bool) -> Clock:
        """facts/clock.json: the candidate's clock minus the control node's, s."""
        return Clock(1, same_clock, [] if same_clock else list(self._readings))


class FirmwareLog:
    """Readings in the order in which they were taken; `document` is as it stands in the bundle."""

    def __init__(self, layout: Layout, candidate: Candidate, machine: Machine) -> None:
        self._layout, self._candidate, self._machine = layout, candidate, machine
        self._readings: list[FirmwareReading] = []

    def note(self, when: str) -> None:
        """Asks every part. Raises BenchError when the candidate does not answer; a part that does not has no version."""
        in_band = ["bmc"] if may_read_in_band(self._candidate) else []
        told = {"when": when, "parts": self._machine.call("firmware", *in_band)}
        parts = read(told, FirmwareReading, "the candidate's account of its firmware").parts
        if not any(one.kind == "bmc" for one in parts):
            parts = parts + self._bmc_over_lan()
        self._readings.append(FirmwareReading(when, parts))

    def document(self) -> Firmware:
        """facts/firmware.json."""
        return Firmware(1, list(self._readings))

    def _bmc_over_lan(self) -> list[FirmwarePart]:
        """The BMC that the inventory gives an address; none where it has none or no password."""
        secret = lan_password(self._layout, self._candidate)
        if not secret:
            return []
        version = None
        for left in reversed(range(BMC_TRIES)):
            try:
                version = bmc_version(over_lan(self._candidate.document["bmc"], secret, "mc", "info").stdout)
            except BenchError:
                version = None
            if version or not left:
                break
            time.sleep(BMC_PAUSE_S)
        return [FirmwarePart("bmc", "system", version, "ipmitool over LAN")]
