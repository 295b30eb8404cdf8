"""Bad input of the host collectors: cut off, empty, no numbers, too large. It is an error with its text, never a zero."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded_tree import CPU0, NIC, NVME0, Clock, Make, sample, write

from daq_bench.telemetry_agent.base.point import Point
from daq_bench.telemetry_agent.collectors.block_device import BlockDevice
from daq_bench.telemetry_agent.collectors.md_array import MdArray
from daq_bench.telemetry_agent.collectors.memory import Memory
from daq_bench.telemetry_agent.collectors.network import Network
from daq_bench.telemetry_agent.collectors.network_link import NetworkLink
from daq_bench.telemetry_agent.collectors.numa import Numa
from daq_bench.telemetry_agent.collectors.pcie_errors import PcieErrors
from daq_bench.telemetry_agent.collectors.pressure import Pressure
from daq_bench.telemetry_agent.collectors.processor.cpu import Cpu
from daq_bench.telemetry_agent.collectors.processor.cpu_frequency import CpuFrequency
from daq_bench.telemetry_agent.collectors.processor.cpu_idle import CpuIdle
from daq_bench.telemetry_agent.collectors.processor.cpu_throttle import CpuThrottle
from daq_bench.telemetry_agent.collectors.processor.interrupts import Interrupts
from daq_bench.telemetry_agent.collectors.processor.memory_bandwidth import MemoryBandwidth
from daq_bench.telemetry_agent.collectors.processor.rapl import Rapl


def corrupted(make: Make, root: Path, clock: Clock, file: str, content: str | bytes) -> list[Point]:
    """Points of a second sample, whose file holds something else than the first's."""
    collector = make(1.0, root)
    before, _ = sample(collector)
    write(root / file, content)
    clock.advance()
    return sample(collector, before)[1]


TABLES: tuple[tuple[Make, str], ...] = (
    (BlockDevice, "proc/diskstats"),
    (Cpu, "proc/stat"),
    (Memory, "proc/meminfo"),
    (Interrupts, "proc/interrupts"),
    (Network, "proc/net/dev"),
    (Numa, "sys/devices/system/node/node1/numastat"),
    (Numa, "sys/devices/system/node/node1/meminfo"),
    (PcieErrors, f"{NVME0}/aer_dev_correctable"),
    (PcieErrors, f"{NVME0}/aer_dev_fatal"),
    (Pressure, "proc/pressure/io"),
)


@pytest.mark.parametrize(("make", "file"), TABLES)
def test_a_table_that_is_cut_off_or_empty_is_an_error_that_names_it(
    make: Make, file: str, root: Path, clock: Clock
) -> None:
    """Never fewer devices or zeros."""
    whole = (root / file).read_bytes()
    for keep in (0.0, 0.2, 0.45, 0.7):
        cut = whole[: int(len(whole) * keep)].rstrip(b"\n")
        with pytest.raises(ValueError, match=Path(file).name):
            corrupted(make, root, clock, file, cut)
        write(root / file, whole)


# Those that have a last line of their own, or lines that must be there; lists of devices may end after any line.
COMPLETE = [(make, file) for make, file in TABLES if make not in (BlockDevice, Interrupts, Pressure)]


@pytest.mark.parametrize(("make", "file"), COMPLETE)
def test_a_table_cut_off_at_the_end_of_a_line_is_an_error(make: Make, file: str, root: Path, clock: Clock) -> None:
    """Where its end is known."""
    kept = (root / file).read_text().splitlines(keepends=True)[: 3 if make is Memory else 1]
    with pytest.raises(ValueError, match=Path(file).name):
        corrupted(make, root, clock, file, "".join(kept))


BAD_VALUES = (
    b"\n",
    b"no such counter\n",
    b"-5\n",
    b"12.5\n",
    b"18446744073709551615\n",  # 2^64 - 1
    b"9" * 5000 + b"\n",
    "\u0663\u0664\n".encode(),  # digits, though not these
    b"1_000\n",
    b"\xff\xfe\x00\n",
)
ATTRIBUTES: tuple[tuple[Make, str], ...] = (
    (CpuFrequency, f"{CPU0}/cpufreq/scaling_cur_freq"),
    (CpuFrequency, f"{CPU0}/cpufreq/scaling_max_freq"),
    (CpuIdle, f"{CPU0}/cpuidle/state1/time"),
    (CpuThrottle, f"{CPU0}/thermal_throttle/core_throttle_count"),
    (MemoryBandwidth, "sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes"),
    (NetworkLink, f"{NIC}/net/ens2f0np0/carrier_changes"),
    (NetworkLink, f"{NIC}/net/ens2f0np0/speed"),
    (Rapl, "sys/class/powercap/intel-rapl:0/energy_uj"),
)


@pytest.mark.parametrize(("make", "file"), ATTRIBUTES)
def test_an_attribute_that_is_no_count_is_an_error_that_holds_it(
    make: Make, file: str, root: Path, clock: Clock
) -> None:
    """The error holds the first 200 characters of the attribute; the value never becomes a zero."""
    good = (root / file).read_bytes()
    for bad in BAD_VALUES:
        if bad == b"\n" and file.endswith("degraded"):
            continue  # an array that is being assembled
        with pytest.raises(ValueError, match=r"whole number|more than a point can hold") as caught:
            corrupted(make, root, clock, file, bad)
        assert bad.decode("utf-8", "replace").strip()[:200].replace("\x00", "\\x00") in str(caught.value)
        assert len(str(caught.value)) < 500
        write(root / file, good)


HOSTILE: tuple[tuple[Make, str, str, str, str], ...] = (
    (BlockDevice, "proc/diskstats", "nvme0n1 1000", "nvme0n1 -1000", "nvme0n1: whole numbers .* '-1000"),
    (BlockDevice, "proc/diskstats", " 100000000 400000", " 99999999999999999 400000", "more bytes than a point"),
    (Cpu, "proc/stat", "cpu0 10000", "cpu0 ten", "whole numbers .* 'ten"),
    (Cpu, "proc/stat", "cpu  82800 80 40000 640000 800 0 400 0 0 0", "cpu  1 2", "3 columns"),
    (Cpu, "proc/stat", "cpu  ", "gpu  ", "no line for all CPUs"),
    (Interrupts, "proc/interrupts", "CPU0", "core", "no heading of CPUs in .*core"),
    (Network, "proc/net/dev", "|bytes", "|octets", "no table"),
    (Network, "proc/net/dev", "bond0: 1000000000000", "bond0: 1e12", "bond0: whole numbers .*1e12"),
    (Numa, "sys/devices/system/node/node0/numastat", "other_node 10100", "other_node -1", "numastat: other_node"),
    (Numa, "sys/devices/system/node/node0/numastat", "local_node", "near_node", "no line local_node"),
    (Memory, "proc/meminfo", "HugePages_Free:    16384", "HugePages_Free:    some", "HugePages_Free: .*'some'"),
    (Memory, "proc/meminfo", "Dirty:              2048 kB", "Dirty:              2 MB", "unknown unit"),
    (PcieErrors, f"{NVME0}/aer_dev_nonfatal", "TOTAL_ERR_NONFATAL", "TOTAL_ERR_OTHER", "TOTAL_ERR_OTHER 0' is not"),
    (PcieErrors, f"{NVME0}/aer_dev_fatal", "TLP 0", "TLP many", "aer_dev_fatal: TLP: .*'many'"),
    (Pressure, "proc/pressure/cpu", "avg10=0.00", "avg10=nan", "lacks avg10 or total"),
    (Pressure, "proc/pressure/cpu", "total=1000000", "total=-1", "whole number .*'-1'"),
    (Pressure, "proc/pressure/io", "some", "none", "'none avg10"),
)
ARRAY = "sys/block/md127/md"
ONE_VALUE: tuple[tuple[str, str, str], ...] = (
    ("degraded", "no such counter", "degraded: a whole number"),
    ("dev-nvme0n1/errors", "-5", "errors: a whole number"),
    ("raid_disks", "11 (10) x", "raid_disks: a whole number"),
    ("sync_completed", "half", "'half' is no progress"),
    ("sync_completed", "5 / 0", "'5 / 0' is no progress"),
    ("array_state", "", "array_state: is empty"),
)


@pytest.mark.parametrize(("file", "bad", "complaint"), ONE_VALUE)
def test_one_bad_value_of_an_array_costs_that_value_and_is_named(
    file: str, bad: str, complaint: str, root: Path, clock: Clock
) -> None:
    """The other arrays, members and values stay."""
    collector = MdArray(2.0, root)
    sound = {(point.tags, name) for point in collector.parse(collector.read(), None) for name in point.fields}
    write(root / ARRAY / file, bad + "\n")
    reading = collector.read()
    left = {(point.tags, name) for point in collector.parse(reading, None) for name in point.fields}
    assert len(reading.faults) == 1 and complaint in reading.faults[0]
    assert left <= sound and len(sound - left) <= 1


def test_an_array_that_is_reshaped_counts_its_new_disks(root: Path, clock: Clock) -> None:
    """The kernel then writes `11 (10)`: the number to come, and the one from before."""
    write(root / ARRAY / "raid_disks", "11 (10)\n")
    collector = MdArray(2.0, root)
    reading = collector.read()
    assert reading.faults == ()
    (array,) = [point for point in collector.parse(reading, None) if point.tags == (("device", "md127"),)]
    assert array.fields["raid_disks"] == 11


@pytest.mark.parametrize(("make", "file", "good", "bad", "complaint"), HOSTILE)
def test_a_malformed_line_is_an_error_with_its_text(
    make: Make, file: str, good: str, bad: str, complaint: str, root: Path, clock: Clock
) -> None:
    """Also where the rest of the file is sound."""
    text = (root / file).read_text()
    assert good in text
    with pytest.raises(ValueError, match=complaint):
        corrupted(make, root, clock, file, text.replace(good, bad, 1))


@pytest.mark.parametrize(("make", "file"), [*TABLES[:5], *ATTRIBUTES, (MdArray, f"{ARRAY}/degraded")])
def test_ten_megabytes_are_refused_and_not_taken_in(make: Make, file: str, root: Path) -> None:
    """An attribute of one device is a fault beside the others; the whole machine's table fails the sample."""
    write(root / file, b"8" * 10_000_000)
    if file.startswith("proc"):
        with pytest.raises(ValueError, match=r"more than 8388608 B, it begins with b'8888"):
            make(1.0, root).read()
        return
    faults = make(1.0, root).read().faults
    assert [len(fault) < 500 and "more than 65536 B, it begins with '8888" in fault for fault in faults] == [True]
