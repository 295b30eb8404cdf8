"""The collectors, one subsystem per file: a new one joins these, or a folder of theirs, and is added to `system_collectors`.

Imports `devices`, `reading` and `base`. `inventory/metrics.yml` and bundles of the past name these files by their paths: they stay."""

from __future__ import annotations

from pathlib import Path

from daq_bench.telemetry_agent.collectors.block_device import BlockDevice
from daq_bench.telemetry_agent.collectors.hardware.edac import Edac
from daq_bench.telemetry_agent.collectors.hardware.kernel_log import KernelLog
from daq_bench.telemetry_agent.collectors.ipmi import Ipmi
from daq_bench.telemetry_agent.collectors.md_array import MdArray
from daq_bench.telemetry_agent.collectors.memory import Memory
from daq_bench.telemetry_agent.collectors.network import Network
from daq_bench.telemetry_agent.collectors.network_link import NetworkLink
from daq_bench.telemetry_agent.collectors.numa import Numa
from daq_bench.telemetry_agent.collectors.pcie_errors import PcieErrors
from daq_bench.telemetry_agent.collectors.pcie_link import PcieLink
from daq_bench.telemetry_agent.collectors.pressure import Pressure
from daq_bench.telemetry_agent.collectors.processes import Processes
from daq_bench.telemetry_agent.collectors.processor.cpu import Cpu
from daq_bench.telemetry_agent.collectors.processor.cpu_frequency import CpuFrequency
from daq_bench.telemetry_agent.collectors.processor.cpu_idle import CpuIdle
from daq_bench.telemetry_agent.collectors.processor.cpu_throttle import CpuThrottle
from daq_bench.telemetry_agent.collectors.processor.interrupts import Interrupts
from daq_bench.telemetry_agent.collectors.processor.memory_bandwidth import MemoryBandwidth
from daq_bench.telemetry_agent.collectors.processor.rapl import Rapl
from daq_bench.telemetry_agent.collectors.smart import Smart
from daq_bench.telemetry_agent.collectors.temperature import Temperature
from daq_bench.telemetry_agent.reading.collector import Collector


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
