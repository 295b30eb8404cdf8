"""Chooses the collectors that an agent runs: all of the machine's, some by name, and a BMC on the network instead of the machine's own.

A second agent on the control node with `--collectors=ipmi_lan,redfish` reads the BMC of a candidate that cannot read it itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from daq_bench.telemetry_agent.collectors import system_collectors
from daq_bench.telemetry_agent.collectors.hardware.redfish import Redfish
from daq_bench.telemetry_agent.collectors.ipmi import Ipmi
from daq_bench.telemetry_agent.devices.redfish_service import Address
from daq_bench.telemetry_agent.reading.collector import Collector


@dataclass(frozen=True)
class Choice:
    """`only` and `without` are collectors' names; `ipmi_lan` are ipmitool's arguments for a BMC on the network, `redfish` is its other
    service."""

    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    ipmi_lan: tuple[str, ...] = ()
    redfish: Address | None = None

    def collectors(self, period_s: float, root: Path = Path("/")) -> list[Collector]:
        """Raises ValueError that names a collector which is unknown, or that none is left."""
        found = system_collectors(period_s, root)
        if self.ipmi_lan:
            found = [each for each in found if not isinstance(each, Ipmi)]
            found.append(Ipmi(period_s, root, self.ipmi_lan))
        if self.redfish:
            found.append(Redfish(period_s, self.redfish))
        names = [each.name for each in found]
        for name in (*self.only, *self.without):
            if name not in names:
                raise ValueError(f"there is no collector {name!r}: choose from {', '.join(names)}")
        kept = [each for each in found if (not self.only or each.name in self.only) and each.name not in self.without]
        if not kept:
            raise ValueError("no collector is left to run")
        return kept
