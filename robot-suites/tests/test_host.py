"""The machine's own account of itself: drives behind partitions and md, PCIe link, identity."""

from pathlib import Path
from typing import Any

import pytest

from bench_model.profiles import load_candidate
from rig.host import (
    Device,
    block_devices,
    check_identity,
    cpu_model,
    describe,
    device_of,
    filesystem_of,
    host_facts,
    os_name,
)
from rig.settings import Layout
from rig.shell import LocalShell

CANDIDATE = load_candidate(Layout().inventory / "lab.yml", "this-machine")
HOST = {"architecture": "x86_64", "cpu_model": "AMD EPYC 7302", "cpus": 32, "memory_bytes": 512 * 2**30}
NVME: dict[str, Any] = {
    "name": "nvme0n1",
    "path": "/dev/nvme0n1",
    "kname": "nvme0n1",
    "type": "disk",
    "size": 750_156_374_016,
    "model": "Micron X100 ",
    "serial": "2109ABCD",
    "rev": None,
    "wwn": "eui.1",
    "rota": False,
    "tran": "nvme",
    "pkname": None,
    "maj:min": "259:0",
}


def sysfs(root: Path) -> Path:
    """A fake /sys/block with nvme0n1 behind a PCIe function on NUMA node 1."""
    function = root / "devices" / "pci0000:80" / "0000:81:00.0"
    controller = function / "nvme" / "nvme0"
    controller.mkdir(parents=True)
    (function / "numa_node").write_text("1\n", encoding="ascii")
    (function / "current_link_speed").write_text("8.0 GT/s PCIe\n", encoding="ascii")
    (function / "current_link_width").write_text("16\n", encoding="ascii")
    (controller / "firmware_rev").write_text("E2MU110 \n", encoding="ascii")
    block = root / "block" / "nvme0n1"
    block.mkdir(parents=True)
    (block / "device").symlink_to(controller)
    return root / "block"


def test_a_drives_place_in_the_machine_is_read_from_sysfs(tmp_path: Path) -> None:
    assert describe(NVME, sysfs(tmp_path)) == Device(
        name="nvme0n1",
        model="Micron X100",
        serial="2109ABCD",
        firmware="E2MU110",
        wwn="eui.1",
        size_bytes=750_156_374_016,
        numa_node=1,
        rotational=False,
        transport="nvme",
        pcie_link="8.0 GT/s PCIe x16",
    )


def test_what_a_virtual_disk_does_not_report_is_none(tmp_path: Path) -> None:
    bare = {**NVME, "model": None, "serial": "", "wwn": None, "tran": None}
    device = describe(bare, tmp_path)
    assert (device.model, device.serial, device.firmware, device.numa_node, device.pcie_link) == (None,) * 5


def test_the_drive_under_a_partition_is_found(tmp_path: Path) -> None:
    number = tmp_path.stat().st_dev
    partition = {
        **NVME,
        "kname": "nvme0n1p2",
        "type": "part",
        "pkname": "nvme0n1",
        "maj:min": f"{number >> 8}:{number & 255}",
    }
    found = device_of(tmp_path, [NVME, partition])
    assert found is not None
    assert found.name == "nvme0n1"
    assert device_of(tmp_path, [NVME]) is None


def test_this_machine_describes_itself() -> None:
    host = host_facts()
    assert host["cpus"] >= 1
    assert host["memory_bytes"] > 2**28
    assert host["kernel"]
    assert filesystem_of(Path(__file__), LocalShell())
    assert block_devices(LocalShell())


def test_texts_of_the_kernel_are_parsed() -> None:
    assert os_name('NAME="x"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n') == "Debian GNU/Linux 12 (bookworm)"
    assert (
        cpu_model("processor : 0\nmodel name\t: AMD EPYC 7302 16-Core Processor\n") == "AMD EPYC 7302 16-Core Processor"
    )
    assert (os_name(""), cpu_model("")) == ("unknown", "unknown")


def identity(declared: dict[str, Any], devices: list[dict[str, Any]], target: Device | None = None) -> dict[str, bool]:
    candidate = CANDIDATE.__class__(
        **{**CANDIDATE.__dict__, "identity": declared, "drive_serial": target and "2109ABCD"}
    )
    return {check["subject"]: check["ok"] for check in check_identity(candidate, HOST, devices, target)}


def test_only_what_is_declared_is_checked() -> None:
    assert identity({"cpus_min": 32}, []) == {"CPUs": True}


@pytest.mark.parametrize(
    ("declared", "subject"),
    [
        ({"architectures": ["aarch64"]}, "architecture"),
        ({"cpu_model": "EPYC 9654"}, "CPU model"),
        ({"cpus_min": 33}, "CPUs"),
        ({"memory_min": "513GiB"}, "memory"),
        ({"drives": [{"serial": "OTHER"}]}, "drive OTHER"),
        ({"drives": [{"serial": "2109ABCD", "model": "P5800X"}]}, "model of 2109ABCD"),
        ({"drives": [{"serial": "2109ABCD", "firmware": "E2"}]}, "firmware of 2109ABCD"),
    ],
)
def test_each_difference_is_found(declared: dict[str, Any], subject: str) -> None:
    assert identity(declared, [NVME])[subject] is False


def test_the_target_folder_must_lie_on_the_declared_drive(tmp_path: Path) -> None:
    drive = describe(NVME, tmp_path)
    assert identity({"cpus_min": 1}, [NVME], drive)["drive under the target folder"] is True
    other = describe({**NVME, "serial": "X"}, tmp_path)
    assert identity({"cpus_min": 1}, [NVME], other)["drive under the target folder"] is False
