"""The collectors, one subsystem per file: a new one joins these and is added to `system_collectors`.

Imports `devices`, `reading` and `base`. `inventory/metrics.yml` and bundles of the past name these files by their paths: they stay."""

from __future__ import annotations

from pathlib import Path

from telemetry_agent.collectors.block_device import BlockDevice
from telemetry_agent.collectors.cpu import Cpu
from telemetry_agent.collectors.cpu_frequency import CpuFrequency
from telemetry_agent.collectors.cpu_idle import CpuIdle
from telemetry_agent.collectors.cpu_throttle import CpuThrottle
from telemetry_agent.collectors.hardware.edac import Edac
from telemetry_agent.collectors.hardware.kernel_log import KernelLog
from telemetry_agent.collectors.interrupts import Interrupts
from telemetry_agent.collectors.ipmi import Ipmi
from telemetry_agent.collectors.md_array import MdArray
from telemetry_agent.collectors.memory import Memory
from telemetry_agent.collectors.memory_bandwidth import MemoryBandwidth
from telemetry_agent.collectors.network import Network
from telemetry_agent.collectors.network_link import NetworkLink
from telemetry_agent.collectors.numa import Numa
from telemetry_agent.collectors.pcie_errors import PcieErrors
from telemetry_agent.collectors.pcie_link import PcieLink
from telemetry_agent.collectors.pressure import Pressure
from telemetry_agent.collectors.processes import Processes
from telemetry_agent.collectors.rapl import Rapl
from telemetry_agent.collectors.smart import Smart
from telemetry_agent.collectors.temperature import Temperature
from telemetry_agent.reading.collector import Collector


def system_collectors(period_s: float, root: Path = Path("/")) -> list[Collector]:
    """Every collector of the machine under `root` (tests give a recorded tree)."""
    return [
        BlockDevice(period_s, root),
        Cpu(period_s, root),
        CpuFrequency(period_s, root),
        Memory(period_s, root),
        Pressure(period_s, root),
        Processes(period_s, root),
        Temperature(period_s, root),
        PcieLink(period_s, root),
        PcieErrors(period_s, root),
        KernelLog(period_s, root),
        Edac(period_s, root),
        Interrupts(period_s, root),
        Network(period_s, root),
        NetworkLink(period_s, root),
        Numa(period_s, root),
        MemoryBandwidth(period_s, root),
        CpuIdle(period_s, root),
        CpuThrottle(period_s, root),
        Rapl(period_s, root),
        MdArray(period_s, root),
        Smart(period_s, root),
        Ipmi(period_s, root),
    ]
