"""The unit in which a sensor of a BMC states its value, and the names of sensors that share one.

Promise: one rule for the agent and for the role that sets the fans. Ansible's modules import this file as
`ansible.module_utils.bench_bmc.ipmi_units`, so that it imports no other of the kit.
"""

from __future__ import annotations

PERCENT_FLAG, DUTY_MAX = "% ", 100.0
PERCENT, RPM = "percent", "RPM"


def unit_of(told: str, value: float, name: str) -> str:
    """ipmitool's unit without the flag of a percentage where that is wrong: some BMCs set it for all of their sensors ("54 % degrees C",
    "4700 % RPM": the examples of StarlingX' hardware monitor). A fan of which it is true runs at that share of its full speed."""
    if not told.startswith(PERCENT_FLAG) or "%" in name:
        return told
    unit = told[len(PERCENT_FLAG) :]
    return PERCENT if unit == RPM and 0 < value <= DUTY_MAX else unit


def numbered(name: str, number: int) -> str:
    """The name of the first, second, ... sensor that a BMC calls so: none hides another."""
    return name if number == 1 else f"{name} #{number}"
