"""Parsing of /proc and /sys: "vm" is recorded; "server" has, in the real formats, what that machine lacks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from agent_helpers import T0_NS, by_tag, machine, two_readings

from daq_bench.telemetry_agent.collectors import system_collectors
from daq_bench.telemetry_agent.collectors.block_device import BlockDevice, disk_lines
from daq_bench.telemetry_agent.collectors.memory import Memory, parse_meminfo
from daq_bench.telemetry_agent.collectors.pcie_link import link_fields
from daq_bench.telemetry_agent.collectors.pressure import Pressure, parse_pressure
from daq_bench.telemetry_agent.collectors.processor.cpu import STAT_BEFORE, Cpu, cpu_lines, fractions, ticks_of
from daq_bench.telemetry_agent.collectors.processor.cpu_frequency import CpuFrequency
from daq_bench.telemetry_agent.collectors.temperature import Temperature
from daq_bench.telemetry_agent.reading.collector import HeldFile, Reading, Unsupported


def test_block_device_reports_whole_disks_and_md_only() -> None:
    """No partition, loop, zram, dm or optical device."""
    disks = by_tag(two_readings(lambda root: BlockDevice(1.0, root), "server"), "device")
    assert sorted(disks) == ["md127", "nvme0n1", "nvme1n1", "sda"]
    assert sorted(by_tag(two_readings(lambda root: BlockDevice(1.0, root), "vm"), "device")) == ["vda"]


def test_block_device_counts_bytes_and_derives_rates() -> None:
    """18,000,000 sectors of 512 B in 2 s are 4.608 GB/s; 1800 ms of I/O time in 2 s are 90 %."""
    disk = by_tag(two_readings(lambda root: BlockDevice(1.0, root), "server"), "device")["nvme0n1"]
    assert disk == {
        "read_ios": 1100,
        "read_bytes": 4_505_600,
        "write_ios": 12000,
        "written_bytes": 9_728_000_000,
        "in_flight": 32,
        "io_time_ms": 2300,
        "read_bytes_per_s": 204_800.0,
        "written_bytes_per_s": 4_608_000_000.0,
        "busy_fraction": 0.9,
        "queue_depth": pytest.approx(60.11 / 2),
        "read_latency_s": pytest.approx(0.0001),
        "write_latency_s": pytest.approx(0.00601),
        "discard_ios": 0,
        "discarded_bytes": 0,
        "flush_ios": 13,
        "flush_latency_s": 0.0,
    }


def test_block_device_recorded_write_of_50_mib_appears() -> None:
    """Between the two recordings of this machine dd wrote 50 MiB with O_DIRECT (and the system a little)."""
    disk = by_tag(two_readings(lambda root: BlockDevice(1.0, root), "vm"), "device")["vda"]
    assert disk["written_bytes"] == 213_178_440 * 512
    assert disk["written_bytes_per_s"] == (213_178_440 - 213_075_440) * 512 / 2.0
    assert disk["written_bytes_per_s"] * 2 > 50 * 1024**2


def test_block_device_serials_come_from_nvme_scsi_and_virtio() -> None:
    """Each transport publishes its serial elsewhere; md has none and then no tag."""
    for name, expected in (
        ("server", {"nvme0n1": "PHAL0512345678P", "nvme1n1": "PHAL0587654321P", "sda": "S2R8NX0J"}),
        ("vm", {"vda": "overlayblk"}),
    ):
        points = two_readings(lambda root: BlockDevice(1.0, root), name)
        serials = {dict(p.tags)["device"]: dict(p.tags)["serial"] for p in points if "serial" in dict(p.tags)}
        assert serials == expected


def test_a_reset_counter_gives_no_rate() -> None:
    """nvme1n1 was exchanged between the readings: its counters fell, a negative rate would be nonsense."""
    disk = by_tag(two_readings(lambda root: BlockDevice(1.0, root), "server"), "device")["nvme1n1"]
    assert disk["written_bytes"] == 24 * 512
    assert "written_bytes_per_s" not in disk
    assert "busy_fraction" not in disk


def test_readings_too_close_give_counters_without_rates() -> None:
    """A sample 1 ms after another would show one finished write as a spike."""
    disk = by_tag(two_readings(lambda root: BlockDevice(1.0, root), "server", apart_s=0.001), "device")["nvme0n1"]
    assert disk["written_bytes"] == 9_728_000_000
    assert "written_bytes_per_s" not in disk


def test_block_device_forgets_the_serial_of_a_removed_disk(tmp_path: Path) -> None:
    """The name may return as another drive."""
    root = tmp_path / "machine"
    shutil.copytree(machine("server", 0), root)
    collector = BlockDevice(1.0, root)
    assert collector.read().texts["disk:nvme0n1"] == "PHAL0512345678P"
    diskstats = root / "proc/diskstats"
    before = diskstats.read_text()
    shutil.rmtree(root / "sys/block/nvme0n1")
    diskstats.write_text("".join(line for line in before.splitlines(keepends=True) if " nvme0n1 " not in line))
    assert "disk:nvme0n1" not in collector.read().texts
    (root / "sys/block/nvme0n1/device").mkdir(parents=True)
    (root / "sys/block/nvme0n1/device/serial").write_text("OTHER\n")
    diskstats.write_text(before)
    assert collector.read().texts["disk:nvme0n1"] == "OTHER"


def test_a_short_diskstats_line_is_an_error() -> None:
    """Never silently less data."""
    with pytest.raises(ValueError, match="columns"):
        disk_lines("   8       0 sda 1 2 3\n")


def cores_of(name: str) -> dict[str, dict[str, object]]:
    """Shares by core: of a second ago in the first reading, of now in the second."""
    first, second = (Cpu(1.0, machine(name, step)) for step in (0, 1))
    before, after = first.read(), second.read()
    texts = {**after.texts, STAT_BEFORE: before.texts["stat"]}
    return by_tag(second.parse(Reading(T0_NS, 102.0, texts), Reading(T0_NS, 100.0, before.texts)), "core")


def test_cpu_fractions_are_the_ticks_between_readings() -> None:
    """cpu0: 60 user, 20 nice, 100 system, 10 idle, 5 iowait, 2 irq, 3 softirq of 200 ticks."""
    cores = cores_of("server")
    assert sorted(cores) == ["0", "1", "total"]
    assert cores["0"] == {
        "busy_fraction": 0.925,
        "user_fraction": 0.4,
        "system_fraction": 0.5,
        "iowait_fraction": 0.025,
        "irq_fraction": 0.01,
        "softirq_fraction": 0.015,
        "steal_fraction": 0.0,
        "idle_fraction": 0.05,
    }


def test_cpu_fractions_sum_to_one_even_when_iowait_runs_backwards() -> None:
    """cpu1's iowait fell from 50 to 49, which proc(5) allows."""
    for name in ("server", "vm"):
        for fields in cores_of(name).values():
            parts = [value for field, value in fields.items() if field != "busy_fraction"]
            assert sum(parts) == pytest.approx(1.0)
            assert min(parts) >= 0.0


def test_cpu_without_ticks_has_no_fractions() -> None:
    """Nothing to divide by."""
    ticks = ticks_of(cpu_lines((machine("vm", 0) / "proc/stat").read_text())["total"])
    assert fractions(ticks, ticks) is None


def test_cpu_frequency_prefers_cpufreq_and_falls_back_to_cpuinfo() -> None:
    """kHz and MHz both become hertz."""
    server = by_tag(two_readings(lambda root: CpuFrequency(1.0, root), "server"), "core")
    assert server == {"0": {"frequency_hz": 3_299_998_000}, "1": {"frequency_hz": 1_500_000_000}}
    vm = by_tag(two_readings(lambda root: CpuFrequency(1.0, root), "vm"), "core")
    assert vm == {"0": {"frequency_hz": 2_596_132_000}, "1": {"frequency_hz": 2_596_132_000}}


def test_cpu_frequency_is_unsupported_without_either(tmp_path: Path) -> None:
    """ARM's cpuinfo has no frequency."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("processor\t: 0\nBogoMIPS\t: 50.00\n")
    with pytest.raises(Unsupported, match="cpu MHz"):
        CpuFrequency(1.0, tmp_path).read()


def test_memory_is_in_bytes() -> None:
    """meminfo's kB are KiB."""
    (point,) = two_readings(lambda root: Memory(1.0, root), "server")
    assert point.fields == {
        "total_bytes": 527_942_784 * 1024,
        "free_bytes": 400_000_000 * 1024,
        "available_bytes": 480_000_000 * 1024,
        "cached_bytes": 70_000_000 * 1024,
        "dirty_bytes": 2_097_152,
        "writeback_bytes": 524_288,
        "huge_pages": 0,
    }


def test_a_missing_meminfo_line_is_named() -> None:
    """Not a zero."""
    with pytest.raises(ValueError, match="MemAvailable"):
        parse_meminfo("MemTotal: 1 kB\nMemFree: 1 kB\nCached: 1 kB\nDirty: 1 kB\nWriteback: 1 kB\n")


def test_pressure_counts_and_derives_the_stalled_fraction() -> None:
    """0.5 s of stall in 2 s are 25 %; the old kernel of this machine has no "full" for cpu."""
    points = two_readings(lambda root: Pressure(1.0, root), "server")
    table = {(dict(p.tags)["resource"], dict(p.tags)["kind"]): p.fields for p in points}
    assert sorted(table) == [
        ("cpu", "some"),
        ("io", "full"),
        ("io", "some"),
        ("memory", "full"),
        ("memory", "some"),
    ]
    assert table["cpu", "some"] == {"stalled_us": 1_500_000, "avg10_percent": 12.5, "stalled_fraction": 0.25}
    assert len(two_readings(lambda root: Pressure(1.0, root), "vm")) == 6


def test_pressure_is_unsupported_without_psi(tmp_path: Path) -> None:
    """And the reason says so."""
    with pytest.raises(Unsupported, match="PSI"):
        Pressure(1.0, tmp_path).read()
    with pytest.raises(ValueError, match="total"):
        parse_pressure("some avg10=0.00\n", "cpu")


def test_temperature_names_sensors_drives_and_their_own_limits() -> None:
    """NVMe's 65261.85 degrees mean "no limit"; a zone may be below zero."""
    points = two_readings(lambda root: Temperature(1.0, root), "server")
    sensors = {dict(point.tags)["sensor"]: point for point in points}
    composite = sensors["hwmon0/temp1"]
    assert dict(composite.tags) == {
        "chip": "nvme", "device": "nvme0n1", "label": "Composite", "sensor": "hwmon0/temp1",
    }  # fmt: skip
    assert composite.fields == {"temperature_degc": 39.85, "warning_degc": 69.85, "critical_degc": 76.85}
    assert sensors["hwmon0/temp2"].fields == {"temperature_degc": 41.85}
    assert dict(sensors["hwmon1/temp1"].tags) == {
        "chip": "k10temp",
        "label": "Tctl",
        "sensor": "hwmon1/temp1",
    }
    assert dict(sensors["hwmon2/temp1"].tags)["device"] == "sda"
    assert dict(sensors["thermal_zone0"].tags)["chip"] == "acpitz"
    assert sensors["thermal_zone0"].fields == {"temperature_degc": -1.5}


def test_temperature_is_unsupported_where_there_is_no_sensor() -> None:
    """As on this virtual machine; never silently."""
    with pytest.raises(Unsupported, match="no sensor"):
        Temperature(1.0, machine("vm", 0)).read()


def test_one_unreadable_sensor_is_a_fault_and_the_others_count(tmp_path: Path) -> None:
    """A thermal zone without a driver answers with an error for ever (a directory stands in for its EIO)."""
    root = tmp_path / "machine"
    shutil.copytree(machine("server", 0), root)
    (root / "sys/class/thermal/thermal_zone0/temp").unlink()
    (root / "sys/class/thermal/thermal_zone0/temp").mkdir()
    reading = Temperature(1.0, root).read()
    assert len(reading.texts) == 4
    assert reading.faults == ("thermal_zone0: Is a directory",)


@pytest.mark.parametrize(("speed", "width"), [("Unknown", "4"), ("16.0 GT/s PCIe", "0"), ("Unknown speed", "63")])
def test_an_unknown_pcie_link_is_no_point(speed: str, width: str) -> None:
    """A link looks like this after its drive was pulled."""
    assert link_fields(speed, width) is None


def test_a_held_file_is_read_afresh_and_whole(tmp_path: Path) -> None:
    """One handle, always from offset 0, also beyond one read's size."""
    path = tmp_path / "file"
    path.write_text("x" * 200_000)
    held = HeldFile(path)
    assert held.text() == "x" * 200_000
    path.write_text("short")
    assert held.text() == "short"
    held.close()


def test_parsing_does_not_read_the_system(root: Path) -> None:
    """Every collector's points depend on its readings alone: the same again after the machine is gone."""
    shutil.copytree(machine("server", 0) / "sys/class/hwmon", root / "sys/class/hwmon")
    own = Path("/proc/self/stat").read_text(encoding="utf-8")
    for file, text in (("dev/kmsg", ""), ("sys/devices/system/edac/mc/mc0/ce_count", "0\n"), ("proc/7/stat", own)):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    collectors = [each for each in system_collectors(1.0, root) if each.name not in ("smart", "ipmi")]  # ask programs
    readings = [collector.read() for collector in collectors]
    shutil.rmtree(root)
    for collector, reading in zip(collectors, readings, strict=True):
        later = Reading(reading.time_ns, reading.monotonic_s + 1.0, reading.texts)
        assert collector.parse(later, reading) == collector.parse(later, reading)
