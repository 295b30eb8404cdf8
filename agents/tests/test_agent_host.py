"""The host collectors over a two-socket server: whole readings against golden line protocol, and what changes in a run."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from agent_helpers import by_tag
from recorded_tree import FOLDER, HOST, NVME0, Clock, Make, lines, remove, sample, unpack, write

from daq_bench.telemetry_agent.base.point import INT64_MAX, Point
from daq_bench.telemetry_agent.collectors import system_collectors
from daq_bench.telemetry_agent.collectors.block_device import BlockDevice, is_whole_disk
from daq_bench.telemetry_agent.collectors.md_array import MdArray
from daq_bench.telemetry_agent.collectors.network import Network
from daq_bench.telemetry_agent.collectors.numa import Numa
from daq_bench.telemetry_agent.collectors.pcie_errors import PcieErrors
from daq_bench.telemetry_agent.collectors.pcie_link import PcieLink
from daq_bench.telemetry_agent.collectors.processor.cpu_idle import CpuIdle
from daq_bench.telemetry_agent.collectors.processor.interrupts import Interrupts
from daq_bench.telemetry_agent.collectors.processor.memory_bandwidth import MemoryBandwidth
from daq_bench.telemetry_agent.collectors.processor.rapl import Rapl
from daq_bench.telemetry_agent.collectors.temperature import LOOK_EVERY_S, Temperature
from daq_bench.telemetry_agent.reading.collector import Every, Reading, Unsupported


def second_points(root: Path, clock: Clock, *trees: str) -> list[Point]:
    """All points of the second readings, 10 s after the first."""
    collectors = [make(0.1, root) for make in HOST]
    before = {collector.name: sample(collector)[0] for collector in collectors}
    for tree in trees:
        unpack(tree, root)
    clock.advance()
    return [point for one in collectors for point in sample(one, before[one.name])[1]]


@pytest.mark.parametrize(("golden", "trees"), [("healthy", ["healthy_1"]), ("failing", ["healthy_1", "failing_1"])])
def test_every_point_of_a_server_is_as_written_out(golden: str, trees: list[str], root: Path, clock: Clock) -> None:
    """Whole, so that nothing is added or lost without notice."""
    found = lines(second_points(root, clock, *trees))
    expected = FOLDER / f"{golden}.lp"
    if os.environ.get("WRITE_GOLDEN"):
        expected.write_text("".join(found))
    assert found == expected.read_text(encoding="utf-8").splitlines(keepends=True)


def test_what_cannot_be_told_is_a_fault_beside_the_points(root: Path, clock: Clock) -> None:
    """A memory domain whose counter the kernel has given to another."""
    unpack("failing_1", root)
    reading, points = sample(MemoryBandwidth(1.0, root))
    assert sorted(by_tag(points, "domain")) == ["L3-00"]
    assert sorted(fault.rpartition(" ")[2] for fault in reading.faults) == [
        "Error",
        "Unassigned",
        "Unassigned",
        "Unavailable",
    ]
    assert reading.faults[0].startswith(f"{root}/sys/fs/resctrl/mon_data/mon_L3_01/mbm_total_bytes: the kernel says")


ABSENT = {
    "block_device": "no whole disk",
    "cpu": "No such file",
    "cpu_frequency": "No such file",
    "cpu_idle": "no cpuidle driver",
    "cpu_throttle": "only Intel's processors",
    "interrupts": "msi_irqs",
    "md_array": "mdadm",
    "memory": "No such file",
    "memory_bandwidth": "mount resctrl before the run",
    "network": "a kernel without a network",
    "network_link": "no interface with a device",
    "numa": "a kernel without NUMA",
    "pcie_errors": "a kernel without AER",
    "pcie_link": "no drive or network interface that shows a PCIe link",
    "pressure": "PSI",
    "rapl": "intel_rapl_msr",
}


@pytest.mark.parametrize("make", HOST)
def test_absent_hardware_is_unsupported_with_a_reason(make: Make, tmp_path: Path) -> None:
    """Every Linux has /proc/stat, /proc/meminfo and /proc/cpuinfo: without those it is a failure."""
    (tmp_path / "sys/block").mkdir(parents=True)
    write(tmp_path / "proc/diskstats", "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0\n")
    collector = make(1.0, tmp_path)
    kind = OSError if ABSENT[collector.name] == "No such file" else Unsupported
    with pytest.raises(kind, match=ABSENT[collector.name]):
        collector.read()


def test_names_that_are_no_text_are_made_readable(root: Path, clock: Clock) -> None:
    """An interface may be called by any bytes."""
    (root / "sys/class/net/bond0").rename(root / "sys/class/net" / os.fsdecode(b"b\xff"))
    table = (root / "proc/net/dev").read_bytes().replace(b"       bond0:", b"          b\xff:")
    write(root / "proc/net/dev", table)
    _, points = sample(Network(1.0, root))
    assert sorted(by_tag(points, "interface")) == ["b\ufffd", "docker0", "ens2f0np0"]
    assert len(lines(points)) == 3


def test_counters_that_began_again_give_no_rates(root: Path, clock: Clock, tmp_path: Path) -> None:
    """As after a driver was loaded anew or a machine was started again: read the other way round."""
    later = unpack("healthy_1", unpack("healthy_0", tmp_path / "later"))
    derived = {}
    for make in (BlockDevice, CpuIdle, Interrupts, MemoryBandwidth, Network, Numa):
        reading, _ = sample(make(1.0, later))
        clock.advance()
        _, points = sample(make(1.0, root), reading)
        derived[make.name] = {
            dict(point.tags).get("device") or dict(point.tags).get("interface") or point.measurement
            for point in points
            for field in point.fields
            if field.endswith(("_per_s", "_fraction", "_latency_s", "queue_depth"))
        }
    assert derived == {
        "block_device": {"sdb"},  # nothing was written to it, and nothing fell
        "cpu_idle": set(),
        "interrupts": set(),
        "memory_bandwidth": set(),
        "network": {"docker0"},
        "numa": set(),
    }


def test_diskstats_times_wrap_at_32_bits_and_a_device_that_keeps_no_time_has_no_latency(
    root: Path, clock: Clock
) -> None:
    """sda's time in the queue was 4294967.1 s and is 0.8 s; md127 counts requests alone."""
    disks = {
        dict(p.tags)["device"]: p.fields
        for p in second_points(root, clock, "healthy_1")
        if p.measurement == "block_device"
    }
    assert disks["sda"]["queue_depth"] == pytest.approx((804 + 2**32 - 4294967100) / 1000 / 10)
    assert disks["sda"]["write_latency_s"] == pytest.approx((704 + 2**32 - 4294967000) / 1000 / 100)
    assert not {"write_latency_s", "queue_depth"} & set(disks["md127"])


def test_an_unplugged_drive_is_gone_and_the_others_stay(root: Path, clock: Clock) -> None:
    """In mid-run, with its files held open or known."""
    makes: tuple[Make, ...] = (BlockDevice, Interrupts, PcieErrors, PcieLink)
    collectors = [make(1.0, root) for make in makes]
    before = [sample(collector)[0] for collector in collectors]
    remove(root / "sys/block/nvme0n1")
    remove(root / NVME0)
    for file, gone in (("diskstats", " nvme0n1 "), ("interrupts", "  nvme0q")):
        kept = [line for line in (root / "proc" / file).read_text().splitlines(keepends=True) if gone not in line]
        write(root / "proc" / file, "".join(kept))
    clock.advance()
    for collector, earlier in zip(collectors, before, strict=True):
        reading, points = sample(collector, earlier)
        assert reading.faults == ()
        devices = set(by_tag(points, "device"))
        assert "nvme1n1" in devices and "nvme0n1" not in devices, collector.name


def test_a_drive_that_goes_while_it_is_read_is_a_fault(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files are still listed and answer ENODEV."""
    refuse(monkeypatch, "0000:3b:00.0/aer_dev_fatal", OSError(19, "No such device"))
    reading, points = sample(PcieErrors(1.0, root))
    assert reading.faults == (f"{root.resolve()}/{NVME0}/aer_dev_fatal: No such device",)
    fields = {dict(point.tags)["function"]: point.fields for point in points}
    assert "fatal" not in fields["0000:3b:00.0"] and "correctable" in fields["0000:3b:00.0"]


def refuse(monkeypatch: pytest.MonkeyPatch, part: str, error: OSError) -> None:
    """Opening a file whose path holds `part` fails."""
    really_open = os.open

    def guarded(path: Any, *arguments: Any, **keywords: Any) -> int:
        if part in str(path):
            raise error
        return really_open(path, *arguments, **keywords)

    monkeypatch.setattr(os, "open", guarded)


def test_a_refused_permission_is_named_with_its_remedy(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RAPL's counters are open to root alone."""
    refuse(monkeypatch, "energy_uj", PermissionError(13, "Permission denied"))
    with pytest.raises(
        Unsupported, match="energy_uj: Permission denied: RAPL is open to root alone, run the agent as root"
    ):
        Rapl(1.0, root).read()
    refuse(monkeypatch, "numastat", PermissionError(13, "Permission denied"))
    assert len(Numa(1.0, root).read().faults) == 2
    refuse(monkeypatch, "node", PermissionError(13, "Permission denied"))
    with pytest.raises(OSError, match="numastat: Permission denied"):
        Numa(1.0, root).read()


def test_an_energy_counter_without_its_range_is_a_fault_of_its_domain(root: Path) -> None:
    """Where it begins again could not be told; the other domains are counted."""
    write(root / "sys/class/powercap/intel-rapl:1/max_energy_range_uj", "\n")
    reading, points = sample(Rapl(1.0, root))
    assert any("package-1: max_energy_range_uj: a whole number is expected, not ''" in one for one in reading.faults)
    domains = {dict(point.tags)["domain"] for point in points}
    assert "package-0" in domains and "package-1" not in domains


def test_every_is_true_once_per_period_at_multiples_of_it() -> None:
    """A late call takes its turn, and the next is at its own time."""
    every = Every(1.0)
    times = (10.3, 10.9, 11.0, 11.5, 12.9, 13.0, 13.1, 17.2, 17.9)
    assert [time_s for time_s in times if every.due(time_s)] == [10.3, 11.0, 12.9, 13.0, 17.2]


def test_a_drive_with_native_multipath_is_found_behind_its_subsystem(root: Path) -> None:
    """The drive hangs on a virtual subsystem, which links to its controllers; a path's own name is no drive."""
    subsystem = root / "sys/devices/virtual/nvme-subsystem/nvme-subsys0"
    (subsystem / "nvme0n1").mkdir(parents=True)
    (subsystem / "nvme0").symlink_to(root / NVME0 / "nvme/nvme0")
    (subsystem / "nvme0n1/device").symlink_to(subsystem)
    (root / "sys/block/nvme0c0n1").symlink_to(root / NVME0 / "nvme/nvme0/nvme0n1")
    remove(root / "sys/block/nvme0n1")
    (root / "sys/block/nvme0n1").symlink_to(subsystem / "nvme0n1")
    _, points = sample(PcieLink(1.0, root))
    assert sorted(by_tag(points, "device")) == ["ens2f0np0", "nvme0n1", "nvme1n1"]


def test_an_array_that_is_made_during_the_run_appears_and_goes(root: Path, clock: Clock) -> None:
    """The machine could make one: so it is not unsupported before."""
    shutil.move(root / "sys/devices/virtual/block/md127", root / "aside")
    collector = MdArray(1.0, root)
    assert sample(collector)[1] == []
    shutil.move(root / "aside", root / "sys/devices/virtual/block/md127")
    assert len(sample(collector)[1]) == 3
    write(root / "sys/block/md127/md/level", "raid0\n")
    for name in ("degraded", "sync_action", "sync_completed", "mismatch_cnt"):
        remove(root / "sys/block/md127/md" / name)
    (array,) = [point for point in sample(collector)[1] if len(point.tags) == 1]
    assert array.fields == {"state": "clean", "level": "raid0", "raid_disks": 2}


def test_every_collector_runs_on_this_machine_or_says_why_not() -> None:
    """For real, twice: points that the wire takes, or a reason of several words."""
    collectors = {one.name: one for one in system_collectors(1.0) if one.name not in ("smart", "ipmi")}
    readings = {}
    for name, collector in collectors.items():
        try:
            readings[name], points = sample(collector)
        except Unsupported as reason:
            assert len(str(reason).split()) > 3, name
            assert name not in ("block_device", "cpu", "memory"), reason
        else:
            lines(points)
    time.sleep(0.3)
    for name, earlier in readings.items():
        period_s = collectors[name].period_s
        _, points = sample(collectors[name], earlier._replace(monotonic_s=earlier.monotonic_s - period_s))
        # A machine may have no array, and its kernel nothing to complain of.
        assert lines(points) or name in ("md_array", "kernel_log"), name


def test_paces_are_fast_for_the_cheap_ones_alone() -> None:
    """Those of one or a few held files; the others are never asked more often than once a second, some of them in the same thread."""
    collectors = [one for one in system_collectors(0.1) if one.name not in ("smart", "ipmi")]
    fast = {one.name for one in collectors if getattr(one, "pace", None) == "fast"}
    assert fast == {"block_device", "cpu", "network"}
    assert all(one.period_s == 0.1 for one in collectors if one.name in fast)
    prompt = {one.name for one in collectors if getattr(one, "pace", None) == "prompt"}
    assert prompt == {"memory", "pressure", "cpu_frequency"}
    assert all(one.period_s >= 1.0 for one in collectors if one.name not in fast)


def test_a_sensor_that_answers_nonsense_fails_with_its_text(tmp_path: Path) -> None:
    """A drive below zero is cold, and a word is nothing."""
    write(tmp_path / "sys/class/thermal/thermal_zone0/type", "acpitz\n")
    for text in ("warm", "", "--5", "1e5", "99999999999999999999"):
        write(tmp_path / "sys/class/thermal/thermal_zone0/temp", text + "\n")
        with pytest.raises(OSError, match="no temperature .*: millidegrees are expected, not '" + text):
            sample(Temperature(1.0, tmp_path))
        write(tmp_path / "sys/class/hwmon/hwmon0/temp1_input", "41000\n")
        reading, points = sample(Temperature(1.0, tmp_path))
        assert [point.fields["temperature_degc"] for point in points] == [41.0]
        assert reading.faults == (f"thermal_zone0: temperature: millidegrees are expected, not {text + chr(10)!r}",)
        (tmp_path / "sys/class/hwmon/hwmon0/temp1_input").unlink()


def test_a_chip_whose_name_passes_to_another_drive_is_that_drives(tmp_path: Path, clock: Clock) -> None:
    """nvme0n1 is pulled, and nvme4n1, put in, gets its hwmon0: neither reading is the other drive's, also where it is parsed late."""

    def put_in(drive: str, limit: int) -> None:
        (tmp_path / f"sys/class/hwmon/hwmon0/device/{drive}").mkdir(parents=True)
        (tmp_path / f"sys/block/{drive}/device").mkdir(parents=True)
        write(tmp_path / "sys/class/hwmon/hwmon0/temp1_input", "41000\n")
        write(tmp_path / "sys/class/hwmon/hwmon0/temp1_max", f"{limit}\n")

    def told(reading: Reading) -> list[tuple[str, Any]]:
        found = collector.parse(reading, None)
        return [
            (dict(point.tags)["device"], point.fields["warning_degc"])
            for point in found
            if "device" in dict(point.tags)
        ]

    write(tmp_path / "sys/class/thermal/thermal_zone0/temp", "30000\n")
    put_in("nvme0n1", 70000)
    collector = Temperature(1.0, tmp_path)
    first = collector.read()
    (tmp_path / "sys/class/hwmon/hwmon0").rename(tmp_path / "pulled")
    (tmp_path / "pulled/temp1_input").unlink()
    collector._sensors["hwmon0/temp1"].file.close()  # sysfs: the next read of what is held open fails
    gone = collector.read()
    assert gone.faults == ("hwmon0/temp1: No such file or directory",)
    put_in("nvme4n1", 85000)
    assert told(collector.read()) == [("nvme4n1", 85.0)]
    assert (told(first), told(gone)) == ([("nvme0n1", 70.0)], [])


def test_a_drive_that_is_put_in_later_is_read(tmp_path: Path, clock: Clock) -> None:
    write(tmp_path / "sys/class/hwmon/hwmon0/temp1_input", "41000\n")
    collector = Temperature(1.0, tmp_path)
    assert len(sample(collector)[1]) == 1
    write(tmp_path / "sys/class/hwmon/hwmon1/temp1_input", "45000\n")
    clock.advance(LOOK_EVERY_S)
    assert [point.fields["temperature_degc"] for point in sample(collector)[1]] == [41.0, 45.0]


def test_a_drive_under_native_multipath_keeps_its_name(tmp_path: Path) -> None:
    """The controller lists its path nvme1c1n1; the drive that is written to, and that is throttled, is nvme1n1."""
    for folder in ("sys/class/hwmon/hwmon3/device/nvme1c1n1", "sys/block/nvme1n1/device", "sys/block/nvme1c1n1/device"):
        (tmp_path / folder).mkdir(parents=True)
    write(tmp_path / "sys/class/hwmon/hwmon3/temp1_input", "38850\n")
    _, points = sample(Temperature(1.0, tmp_path))
    assert dict(points[0].tags)["device"] == "nvme1n1"
    found = [name for name in ("nvme1c1n1", "nvme1n1") if is_whole_disk(tmp_path / "sys/block", name)]
    assert found == ["nvme1n1"]


def test_the_largest_count_that_a_point_holds_passes(root: Path) -> None:
    """2^63 - 1, and not one more."""
    write(root / "sys/fs/resctrl/daq/mon_data/mon_L3_00/mbm_total_bytes", "0\n")
    file = write(root / "sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes", f"{INT64_MAX}\n")
    _, points = sample(MemoryBandwidth(1.0, root))
    assert by_tag(points, "domain")["L3-00"]["total_bytes"] == INT64_MAX
    lines(points)
    write(file, f"{INT64_MAX + 1}\n")
    with pytest.raises(ValueError, match=f"'{INT64_MAX + 1}' is more than a point can hold"):
        sample(MemoryBandwidth(1.0, root))
