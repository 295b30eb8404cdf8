"""Documents of facts: the bench found and set them on the candidate (identity, tuning, clock)."""

from __future__ import annotations

from typing import Literal

from daq_bench.bench_model.documents.struct import Amount, Closed


class IdentityCheck(Closed, frozen=True):
    subject: str
    declared: str
    found: str
    ok: bool


class Identity(Closed, frozen=True):
    """results/identity.json. `planned`: subjects that the inventory asks to be checked."""

    schema_version: Literal[1]
    planned: list[str]
    checks: list[IdentityCheck]


class Setting(Closed, frozen=True):
    id: str
    role: str
    subject: str
    asked: str
    before: str
    applied: str
    read_back: str
    status: str
    detail: str

    @property
    def as_wanted(self) -> bool:
        """The asked value is in force, or nothing was asked."""
        return not self.asked or self.asked == "keep" or self.status in ("applied", "unchanged")


class Tuning(Closed, frozen=True):
    """facts/tuning.json and its two read-backs."""

    settings: list[Setting]


class FirmwarePart(Closed, frozen=True):
    """`name`: a drive's serial number, a network card's PCI address and port, or "system". `version` is null where it does not tell."""

    kind: Literal["drive", "bios", "bmc", "nic"]
    name: str
    version: str | None
    source: str


class FirmwareReading(Closed, frozen=True):
    when: str
    parts: list[FirmwarePart]


class Firmware(Closed, frozen=True):
    """facts/firmware.json: before the load, and after it."""

    schema_version: Literal[1]
    readings: list[FirmwareReading]


class ClockReading(Closed, frozen=True):
    when: str
    difference_s: float
    uncertainty_s: Amount


class Clock(Closed, frozen=True):
    """facts/clock.json."""

    schema_version: Literal[1]
    same_clock: bool
    readings: list[ClockReading]
