"""Recorded /proc and /sys trees, each in one readable file, and a clock that stands where a test puts it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace

import pytest
from agent_helpers import FIXTURES, T0_NS

from daq_bench.telemetry_agent.base.point import Encoder, Point
from daq_bench.telemetry_agent.collectors.block_device import BlockDevice
from daq_bench.telemetry_agent.collectors.md_array import MdArray
from daq_bench.telemetry_agent.collectors.memory import Memory
from daq_bench.telemetry_agent.collectors.network import Network
from daq_bench.telemetry_agent.collectors.network_link import NetworkLink
from daq_bench.telemetry_agent.collectors.numa import Numa
from daq_bench.telemetry_agent.collectors.pcie_errors import PcieErrors
from daq_bench.telemetry_agent.collectors.pcie_link import PcieLink
from daq_bench.telemetry_agent.collectors.pressure import Pressure
from daq_bench.telemetry_agent.collectors.processor.cpu import Cpu
from daq_bench.telemetry_agent.collectors.processor.cpu_frequency import CpuFrequency
from daq_bench.telemetry_agent.collectors.processor.cpu_idle import CpuIdle
from daq_bench.telemetry_agent.collectors.processor.cpu_throttle import CpuThrottle
from daq_bench.telemetry_agent.collectors.processor.interrupts import Interrupts
from daq_bench.telemetry_agent.collectors.processor.memory_bandwidth import MemoryBandwidth
from daq_bench.telemetry_agent.collectors.processor.rapl import Rapl
from daq_bench.telemetry_agent.reading import collector as collector_module
from daq_bench.telemetry_agent.reading.collector import Collector, Reading

FOLDER = FIXTURES / "two_sockets"
STEP_S = 10.0
Make = Callable[[float, Path], Collector]
# Every collector of a host's own files.
HOST: tuple[Make, ...] = (
    BlockDevice, Cpu, CpuFrequency, CpuIdle, CpuThrottle, Interrupts, MdArray, Memory, MemoryBandwidth, Network,
    NetworkLink, Numa, PcieErrors, PcieLink, Pressure, Rapl,
)  # fmt: skip
NVME0 = "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0"
NIC = "sys/devices/pci0000:5d/0000:5d:00.0/0000:5e:00.0"
CPU0 = "sys/devices/system/cpu/cpu0"


def unpack(name: str, root: Path) -> Path:
    """Write the tree's files and links below `root`, over what is there; each file keeps its inode."""
    path: Path | None = None
    content: list[str] = []
    for line in [*(FOLDER / f"{name}.tree").read_text(encoding="utf-8").splitlines(keepends=True), "== "]:
        if line.startswith(("== ", "-> ")) and path is not None:
            write(path, "".join(content))
            path = None
        if line.startswith("-> "):
            link, target = line[3:].split()
            (root / link).parent.mkdir(parents=True, exist_ok=True)
            (root / link).symlink_to(target)
        elif line.startswith("== "):
            file, _, value = line[3:].rstrip("\n").partition(" = ")
            path, content = root / file, [value + "\n"] if value else []
        else:
            content.append(line)
    return root


def write(path: Path, content: str | bytes) -> Path:
    """Replace a file's content; the folders above it are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def remove(path: Path) -> None:
    """A file or a whole folder, as when a device is unplugged."""
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


class Clock:
    """Both clocks of the agent, which stand still between two calls of `advance`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)
        # The agent's own clock never gives a stamp twice; here all collectors read at one moment.
        stamps = SimpleNamespace(stamp_ns=lambda: T0_NS + int((self.now_s - 1000.0) * 1e9))
        monkeypatch.setattr(collector_module, "CLOCK", stamps)

    def advance(self, seconds: float = STEP_S) -> None:
        """Let time pass."""
        self.now_s += seconds


def sample(collector: Collector, previous: Reading | None = None) -> tuple[Reading, list[Point]]:
    """One sample, as the scheduler takes it."""
    reading = collector.read()
    return reading, collector.parse(reading, previous)


def lines(points: Iterable[Point]) -> list[str]:
    """Line protocol in a fixed order."""
    encoder = Encoder({})
    return sorted(encoder.encode(point) for point in points)
