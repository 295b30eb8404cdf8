"""Fans as data: a vendor's raw sequences, and what a set of speeds says. Pure; talks to no machine.

Python 3.9, standard library only.
"""

from __future__ import annotations

from typing import Any, Optional

Rpm = dict[str, Optional[float]]  # None: a sensor without a reading
HELD = 0.95  # a fan that keeps 95 % of its speed holds it: sensors count in steps of 75 to 140 RPM
SETTLED = 0.03  # two readings that differ by less: the fan has arrived


class Vendor:
    """One vendor's entry of the role's data (roles/fans/vars): raw sequences, as data."""

    def __init__(self, key: str, data: dict[str, Any]) -> None:
        """Keep the entry."""
        self.key, self.data = key, data

    @property
    def unsupported(self) -> str:
        """Why there is no known way, empty where there is one."""
        return str(self.data.get("unsupported", ""))

    @property
    def tells_mode(self) -> bool:
        """Says whether there is a command that reads the mode."""
        return "modes" in self.data

    def steps(self, name: str) -> list[dict[str, Any]]:
        """Return the sequence `full` or `automatic`, each byte as ipmitool takes it."""
        return [
            {"send": as_bytes(step["send"]), "optional": bool(step.get("optional", False))} for step in self.data[name]
        ]

    def mode_name(self, number: int) -> str:
        """Return what the vendor calls a mode."""
        names = {int(byte): str(name) for byte, name in self.data["modes"]["names"].items()}
        return names.get(number, f"mode {number}")

    def is_full(self, mode: str) -> bool:
        """Says whether a mode that was read is the one in which all fans run at full speed."""
        return mode == str(self.data["modes"]["full"])

    def steps_to(self, number: int) -> list[dict[str, Any]]:
        """Return the sequence that sets a mode that was read before."""
        return [{"send": as_bytes([*self.data["modes"]["write"], number]), "optional": False}]


def as_bytes(numbers: list[int]) -> list[str]:
    """Write bytes as ipmitool takes them."""
    return [f"0x{int(number):02x}" for number in numbers]


def speeds(fans: Rpm) -> str:
    """Return all fans' speeds for people."""
    return ", ".join(f"{name} {rpm:.0f} RPM" if rpm is not None else f"{name} no reading" for name, rpm in fans.items())


def stopped(fans: Rpm) -> list[str]:
    """Name the fans that stand still."""
    return [name for name, rpm in fans.items() if rpm == 0]


def fallen(before: Rpm, now: Rpm) -> list[str]:
    """Name the fans that run slower than they did, with both speeds."""
    return [
        f"{name} fell from {was:.0f} to {now.get(name) or 0:.0f} RPM"
        for name, was in before.items()
        if was and (now.get(name) or 0) < HELD * was
    ]


def settled(last: Rpm, now: Rpm) -> bool:
    """Says whether no fan changes its speed any more."""
    return all(abs((now.get(name) or 0) - (rpm or 0)) <= SETTLED * max(rpm or 0, 1) for name, rpm in last.items())
