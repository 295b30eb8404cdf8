"""RAM below a target is found through every layer; drives are left alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.rig.on_candidate.reading.backing import memory_beneath
from daq_bench.rig.run.preflight import check_leads_to_drive


class Machine:
    """A made-up /sys and /proc, in which the target is on the device `7:1` of this test's own folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "sys/dev/block").mkdir(parents=True)
        (root / "proc/self").mkdir(parents=True)
        self.mounts("")

    def mounts(self, text: str) -> None:
        (self.root / "proc/self/mountinfo").write_text(text, encoding="utf-8")

    def device(self, name: str, number: str = "", below: str = "", file: str = "", part_of: str = "") -> None:
        folder = self.root / "sys/devices" / part_of / name
        (folder / "slaves").mkdir(parents=True)
        if number:
            (self.root / "sys/dev/block" / number).symlink_to(folder)
        if below:
            (folder / "slaves" / below).symlink_to(self.root / "sys/devices" / below)
        if file:
            (folder / "loop").mkdir()
            (folder / "loop/backing_file").write_text(f"{file}\n", encoding="utf-8")
        if part_of:
            (folder / "partition").write_text("1\n", encoding="utf-8")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def number_of(path: Path) -> str:
    number = path.stat().st_dev
    return f"{os.major(number)}:{os.minor(number)}"


@pytest.mark.parametrize("name", ["zram0", "ram3", "nullb0"])
def test_devices_of_memory_are_known_below_a_partition_and_an_array(machine: Machine, name: str) -> None:
    here = number_of(machine.root)
    machine.device(name)
    machine.device("md0", below=name)
    machine.device("dm-1", here, below="md0")
    assert memory_beneath(machine.root, machine.root) == f"dm-1 < md0 < {name}"


def test_a_partition_lies_on_its_drive(machine: Machine) -> None:
    machine.device("zram0")
    machine.device("zram0p1", number_of(machine.root), part_of="zram0")
    assert memory_beneath(machine.root, machine.root) == "zram0p1 < zram0"


def test_a_loop_over_a_file_in_memory_is_found_and_one_over_a_drives_file_is_not(machine: Machine) -> None:
    (machine.root / "image").touch()
    here = number_of(machine.root)
    machine.device("loop1", "7:1", file="/image")
    machine.device("nvme0n1", here)
    assert memory_beneath(machine.root, machine.root) == ""
    (machine.root / "sys/dev/block" / here).unlink()
    machine.mounts(f"20 1 {here} / / rw - tmpfs tmpfs rw\n")
    assert memory_beneath(machine.root, machine.root) == "tmpfs"
    machine.device("dm-0", below="loop1")
    (machine.root / "sys/dev/block/1:1").symlink_to(machine.root / "sys/devices/dm-0")
    from daq_bench.rig.on_candidate.reading import backing

    assert backing._of_number(1, 1, machine.root, machine.root, 0) == "dm-0 < loop1 < file /image < tmpfs"


def test_a_loop_whose_file_is_out_of_sight_is_not_taken_for_a_drive(machine: Machine) -> None:
    machine.device("loop1", number_of(machine.root), file="/gone/image (deleted)")
    assert "nobody can tell" in memory_beneath(machine.root, machine.root)


def test_layers_without_end_are_refused(machine: Machine) -> None:
    machine.device("dm-0", number_of(machine.root), below="dm-0")
    assert "layers, which nobody can follow" in memory_beneath(machine.root, machine.root)


def test_preflight_names_the_layers() -> None:
    check_leads_to_drive(Path("/srv"), "")
    with pytest.raises(RefusedError, match=r"does not lead to a drive .loop1 < file /dev/shm/x < tmpfs."):
        check_leads_to_drive(Path("/srv"), "loop1 < file /dev/shm/x < tmpfs")


def test_this_machines_shared_memory_is_memory() -> None:
    assert memory_beneath(Path("/dev/shm")) == "tmpfs"
