"""Native NVMe multipath: each collector reads every controller of a drive, and counts the drive once, under its own name."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from agent_helpers import fake_program
from multipath_tree import diskstats, unpack_multipath
from recorded_tree import Clock, sample, write

from daq_bench.analysis_reader import device
from daq_bench.candidate_kit.nvme_paths import drive_of_path, drives_of_controller
from daq_bench.telemetry_agent.base.point import Point
from daq_bench.telemetry_agent.collectors.block_device import BlockDevice
from daq_bench.telemetry_agent.collectors.hardware.kernel_log import KernelLog
from daq_bench.telemetry_agent.collectors.pcie_link import PcieLink
from daq_bench.telemetry_agent.collectors.processor.interrupts import Interrupts
from daq_bench.telemetry_agent.collectors.smart import Smart
from daq_bench.telemetry_agent.collectors.temperature import Temperature
from daq_bench.telemetry_agent.reading.collector import Unsupported


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Its drives' paths have written, their heads nothing: sysstat/sysstat#341."""
    root = unpack_multipath(tmp_path / "root")
    (root / "proc").mkdir()
    (root / "proc/diskstats").write_text(diskstats({"nvme10c65n1": 600, "nvme10c66n1": 400, "nvme11c65n1": 7}))
    return root


def tagged(points: list[Point], key: str) -> list[str]:
    return [dict(point.tags)[key] for point in points]


def test_two_drives_are_counted_each_with_all_its_paths(tree: Path, clock: Clock) -> None:
    _, points = sample(BlockDevice(1.0, tree))
    found = {dict(p.tags)["device"]: (dict(p.tags)["serial"], p.fields["written_bytes"]) for p in points}
    assert found == {"nvme10n1": ("S10", 1000 * 512), "nvme11n1": ("S11", 7 * 512)}


def test_each_controllers_sensor_names_its_drive(tree: Path) -> None:
    _, points = sample(Temperature(1.0, tree))
    found = sorted((dict(p.tags)["device"], dict(p.tags)["sensor"], p.fields["temperature_degc"]) for p in points)
    assert found == [
        ("nvme10n1", "hwmon0/temp1", 40.0),
        ("nvme10n1", "hwmon1/temp1", 41.0),
        ("nvme11n1", "hwmon10/temp1", 40.0),
    ]


def test_smart_asks_each_drive_once_and_no_path(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = tmp_path / "asked"
    monkeypatch.setenv("PATH", fake_program(tmp_path / "bin", "smartctl", f"echo $* >>{said}; exit 2\n"))
    with contextlib.suppress(OSError, Unsupported):
        Smart(10.0, tree).read()
    assert {line.split("/dev/")[-1] for line in said.read_text().splitlines() if "/dev/" in line} == {
        "nvme10n1",
        "nvme11n1",
    }


def test_the_second_controllers_link_and_interrupts_go_by_its_path(tree: Path) -> None:
    _, points = sample(PcieLink(1.0, tree))
    assert sorted(tagged(points, "device")) == ["nvme10c65n1", "nvme10n1", "nvme11n1"]
    assert {point.fields["lanes"] for point in points} == {2}
    (tree / "proc/interrupts").write_text("           CPU0\n 100:  5  PCI-MSI\n")
    reading = Interrupts(1.0, tree).read()
    vectors = {key: text.split("|")[-1] for key, text in reading.texts.items() if key.startswith("device:")}
    assert vectors == {"device:nvme10n1": "101", "device:nvme10c65n1": "100", "device:nvme11n1": "110"}


def test_the_kernels_controller_is_told_by_the_drive_behind_it(tree: Path) -> None:
    """nvme6 leads to nvme10n1, and nvme10 to nvme11n1: their numbers name other drives."""
    names = KernelLog(1.0, tree)._names()
    assert {name: names[name] for name in ("nvme6", "nvme33", "nvme10")} == {
        "nvme6": "nvme10n1", "nvme33": "nvme10n1", "nvme10": "nvme11n1",
    }  # fmt: skip
    assert (names["0000:b7:00.0"], names["0000:b8:00.0"]) == ("nvme10c65n1", "nvme10n1")


def test_a_controller_with_its_drives_number_keeps_its_name(tmp_path: Path) -> None:
    """Without multipath nothing is renamed, nor is a controller that lists no drive."""
    (tmp_path / "sys/class/nvme/nvme1/nvme1n1").mkdir(parents=True)
    (tmp_path / "sys/class/nvme/nvme2/hwmon1").mkdir(parents=True)
    assert KernelLog(1.0, tmp_path)._names() == {}


@pytest.mark.parametrize("name", ["nvme0n1", "nvme0c1n1p1", "nvme0c1", "xnvme0c1n1", "nvme0c1n1\n", "", "nvmec1n1"])
def test_what_is_no_path_is_no_drives_path(name: str) -> None:
    assert drive_of_path(name) is None


def test_a_controllers_other_entries_are_no_drives(tmp_path: Path) -> None:
    for name in ("nvme7c9n2", "nvme7c9n1", "ng7n1", "nvme_subsystem", "nvmen1", "hwmon3", "nvme7n1p1"):
        (tmp_path / name).mkdir()
    assert drives_of_controller(tmp_path) == ["nvme7n1", "nvme7n2"]
    assert drives_of_controller(tmp_path / "gone") == []


def test_the_analysis_counts_what_a_multipath_drives_paths_read(tmp_path: Path) -> None:
    for name, sectors in (("nvme0n1", 0), ("nvme0c0n1", 5), ("nvme0c1n1", 3), ("nvme0c1n2", 90), ("nvme1n1", 4)):
        write(tmp_path / name / "stat", f"1 0 {sectors} 0 0 0 0 0 0 0 0\n")
    assert device.read_bytes(["nvme0n1", "nvme1n1"], tmp_path) == {"nvme0n1": 8 * 512, "nvme1n1": 4 * 512}
