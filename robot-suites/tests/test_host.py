"""The machine's own account of itself: drives behind partitions and md, PCIe link, identity."""

import json
import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.bench_storage.devices import parse_lsblk
from ansible.module_utils.bench_storage.errors import StorageError
from multipath_tree import unpack_multipath

from daq_bench.bench_model.documents.run import Drive, Host
from daq_bench.bench_model.documents.struct import read
from daq_bench.bench_model.profiles.candidates import Target as DeclaredTarget
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.candidate_kit.cpu_model import cpu_model
from daq_bench.candidate_kit.lsblk import COMMAND, Device, devices_of, everything, serial_of
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.host import Node, Survey, Target, check_identity, survey
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.on_candidate.reading import probe
from daq_bench.rig.on_candidate.reading.probe import describe, device_of, listed, os_name, revision_of

LAYOUT = Layout()
CANDIDATE = load_candidate(LAYOUT.inventory / "lab.yml", "this-machine")
HOST = Host(architecture="x86_64", cpu_model="AMD EPYC 7302", cpus=32, memory_bytes=512 * 2**30)
NVME = Device(
    "nvme0n1",
    "/dev/nvme0n1",
    "259:0",
    "disk",
    750_156_374_016,
    "Micron X100",
    "2109ABCD",
    wwn="eui.1",
    transport="nvme",
)


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


def drive_of(node: Device, block: Path) -> Drive:
    return read(describe(node, block), Drive, "lsblk")


def read_all(devices: Iterable[Device], block: Path = Path("/nowhere")) -> list[Node]:
    return [read(listed(one, block), Node, "lsblk") for one in devices]


def known(*devices: Device) -> dict[str, Device]:
    return {one.number: one for one in devices}


def test_a_drives_place_in_the_machine_is_read_from_sysfs(tmp_path: Path) -> None:
    assert drive_of(NVME, sysfs(tmp_path)) == Drive(
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


def test_a_multipath_drives_place_is_its_controllers(tmp_path: Path) -> None:
    """Its block device hangs on a virtual subsystem, which has no NUMA node and no link."""
    block = unpack_multipath(tmp_path) / "sys/block"
    device = drive_of(replace(NVME, name="nvme10n1", serial="S10"), block)
    assert (device.numa_node, device.pcie_link, device.firmware) == (1, "8.0 GT/s PCIe x2", "GPNA5B3Q")


@pytest.mark.parametrize(
    ("shown", "kept", "whole"),
    [
        ("1A01", "01.01A01", "01.01A01"),  # the three of 007revad/Synology_HDD_db#407
        ("82.0", "82.00A82", "82.00A82"),
        ("SC60", "SC60", "SC60"),
        ("01.01A01", "01.01A01", "01.01A01"),  # util-linux 2.39
        ("E005", "", "E005"),  # no udev, or nothing of this drive
        ("E006", "E005", "E006"),  # updated since
        ("", "1.0", ""),
    ],
)
def test_a_sata_drive_s_firmware_is_whole(tmp_path: Path, shown: str, kept: str, whole: str) -> None:
    if kept:
        (tmp_path / "b8:0").write_text(f"S:disk/by-id/x\nE:ID_MODEL=X\nE:ID_REVISION={kept}\n")
    drive = replace(NVME, name="sda", number="8:0", transport="sata", firmware=shown)
    assert revision_of(drive, tmp_path) == whole


@pytest.mark.parametrize(("speed", "width"), [("Unknown", "63"), ("16.0 GT/s PCIe", "0"), ("fast", "4")])
def test_a_link_that_the_kernel_does_not_know_is_none(tmp_path: Path, speed: str, width: str) -> None:
    """So the agent has it, and provisioning: 63 lanes are all ones of a drive that was pulled."""
    block = sysfs(tmp_path)
    for name, text in (("speed", speed), ("width", width)):
        (tmp_path / f"devices/pci0000:80/0000:81:00.0/current_link_{name}").write_text(f"{text}\n")
    assert drive_of(NVME, block).pcie_link is None


@pytest.mark.parametrize(
    ("told", "rotational"), [("0", False), ("1", True), (False, False), (True, True), (None, False)]
)
def test_a_flag_may_be_a_text(told: Any, rotational: bool) -> None:
    """lsblk before 2.33 (balena-io/etcher#2614)."""
    (found,) = devices_of(
        json.dumps({"blockdevices": [{"kname": "a", "maj:min": "8:0", "type": "disk", "rota": told}]}), None
    )
    assert found.rotational is rotational


# In /sys/block: where SCSI and ATA (page 80h of sd, Linux' scsi_sysfs.c), NVMe and virtio each have the serial; pages that hold no serial.
PAGE = b"\x00\x80\x00\x14        1906E1E8FDEB"
SERIALS: dict[str, tuple[str, bytes, str]] = {
    "sda": ("device/vpd_pg80", PAGE, "1906E1E8FDEB"),  # util-linux/util-linux#2653: a CT500MX500SSD1 without a serial
    "sdb": ("device/vpd_pg80", b"\x00\x80\x00\x08ZC1A2B3C", "ZC1A2B3C"),
    "nvme0n1": ("device/serial", b"S64HNE0R504123      \n", "S64HNE0R504123"),
    "vda": ("serial", b"11111111111111111111", "11111111111111111111"),  # rockstor/rockstor-core#673
    "sdc": ("device/vpd_pg80", b"\x00\x83\x00\x08ZC1A2B3C", ""),  # another page
    "sdd": ("device/vpd_pg80", b"\x00\x80\x00\x14ZC1A", ""),  # cut off
    "sde": ("device/model", b"no serial", ""),
}


@pytest.mark.parametrize("name", SERIALS)
def test_a_serial_that_udev_does_not_tell_is_the_kernels(name: str, tmp_path: Path) -> None:
    file, text, serial = SERIALS[name]
    (tmp_path / name / file).parent.mkdir(parents=True)
    (tmp_path / name / file).write_bytes(text)
    row = {"name": name, "kname": name, "path": f"/dev/{name}", "maj:min": "8:0", "type": "disk", "size": 500107862016}

    def listed(said: str | None, sys_block: Path | None) -> str:
        (found,) = devices_of(json.dumps({"blockdevices": [{**row, "serial": said}]}), sys_block)
        return found.serial

    assert listed(None, tmp_path) == serial == serial_of(tmp_path / name)
    assert (listed("1906E1E8FDEB", tmp_path), listed(None, None)) == ("1906E1E8FDEB", "")


def test_this_machine_s_drives_have_the_serials_that_its_kernel_knows() -> None:
    known = {one.name: one.serial for one in probe.block_devices().values()}
    told = {folder.name: serial_of(folder) for folder in Path("/sys/block").iterdir()}
    assert {name for name, serial in told.items() if serial and name in known} <= {n for n, s in known.items() if s}


def test_what_a_virtual_disk_does_not_report_is_none(tmp_path: Path) -> None:
    device = drive_of(Device("vda", "/dev/vda", "254:0", "disk", 1), tmp_path)
    assert (device.model, device.serial, device.firmware, device.numa_node, device.pcie_link) == (None,) * 5


def number_of(path: Path) -> str:
    """MAJOR:MINOR of the device that carries `path`."""
    number = path.stat().st_dev
    return f"{os.major(number)}:{os.minor(number)}"


def test_the_drive_under_a_partition_is_found(tmp_path: Path) -> None:
    partition = replace(NVME, name="nvme0n1p2", number=number_of(tmp_path), type="part", parent="nvme0n1")
    assert device_of(tmp_path, known(NVME, partition)) is NVME
    assert device_of(tmp_path, known(NVME)) is None


def test_an_array_is_the_target_and_its_members_are_its_drives(tmp_path: Path) -> None:
    block = sysfs(tmp_path)
    slaves = block / "md127" / "slaves"
    for member in ("nvme0n1", "nvme1n1p1"):
        (slaves / member).mkdir(parents=True)
    (block / "md127" / "md").mkdir()
    (block / "md127" / "md" / "level").write_text("raid0\n", encoding="ascii")
    # lsblk lists an array below its first member.
    array = Device("md127", "/dev/md127", number_of(tmp_path), "raid0", 1, parent="nvme0n1")
    second = replace(NVME, name="nvme1n1", number="259:1", serial="2109EF")
    part = Device("nvme1n1p1", "/dev/nvme1n1p1", "259:2", "part", 1, parent="nvme1n1")
    devices = known(NVME, second, part, array)
    node = device_of(tmp_path, devices, block)
    assert node is not None
    device = drive_of(node, block)
    assert (device.name, device.raid_level, device.members) == ("md127", "raid0", ["nvme0n1", "nvme1n1p1"])
    found = Survey(HOST, read_all(devices.values(), block), Target("xfs", 1, device), 0.0)
    assert [drive.serial for drive in found.drives_of(device)] == ["2109ABCD", "2109EF"]


@pytest.mark.parametrize(
    ("layers", "carrier", "serials"),
    [
        # a volume over two drives: ibm-s390-linux/s390-tools#80, where the tool saw the first alone; lvmteam/lvm2#134
        ({"dm-0": ("lvm", ["sda", "sdb"])}, "dm-0", ["A", "B"]),
        # ... as LVM's own RAID, whose images lie one on each
        ({"dm-0": ("lvm", ["sda"]), "dm-1": ("lvm", ["sdb"]), "dm-2": ("lvm", ["dm-0", "dm-1"])}, "dm-2", ["A", "B"]),
        # ... which is encrypted, and has a partition
        (
            {"dm-0": ("lvm", ["sda", "sdb"]), "dm-1": ("crypt", ["dm-0"]), "dm-2": ("part", ["dm-1"])},
            "dm-0",
            ["A", "B"],
        ),
        # two paths to one SAS drive (multipath -ll: dak180/FreeNAS-Report#32), and a volume on them
        ({"dm-0": ("mpath", ["sda", "sdc"]), "dm-1": ("lvm", ["dm-0"])}, "dm-0", ["A", "A"]),
        # one path is left
        ({"dm-0": ("mpath", ["sda"]), "dm-1": ("part", ["dm-0"])}, "sda", ["A"]),
        # an array of two parts of one drive counts that drive once
        ({"md1": ("raid0", ["sda1", "sda2"]), "dm-0": ("lvm", ["md1"])}, "md1", ["A"]),
        # hetrixtools/agent#43: a volume in a partition that is encrypted
        ({"dm-0": ("crypt", ["sda2"]), "dm-1": ("lvm", ["dm-0"])}, "sda", ["A"]),
    ],
)
def test_a_volume_rests_on_all_of_its_drives(
    tmp_path: Path, layers: dict[str, tuple[str, list[str]]], carrier: str, serials: list[str]
) -> None:
    """lsblk's PKNAME names one of the layers below: with it the others' writes, wear and temperatures would be nobody's."""
    block = tmp_path / "block"
    parts = {f"sda{number}": ("part", ["sda"]) for number in (1, 2)}
    listing = [
        replace(NVME, name=name, serial=serial, number=f"8:{number}")
        for number, (name, serial) in enumerate({"sda": "A", "sdb": "B", "sdc": "A"}.items())
    ]
    for number, (name, (kind, below)) in enumerate({**parts, **layers}.items()):
        for one in below if kind != "part" or name.startswith("dm-") else ():
            (block / name / "slaves" / one).mkdir(parents=True)
        listing.append(Device(name, f"/dev/{name}", f"253:{number}", kind, 1, parent=below[0]))
    listing[-1] = replace(listing[-1], number=number_of(tmp_path))
    devices = known(*listing)
    node = device_of(tmp_path, devices, block)
    assert node is not None
    device = drive_of(node, block)
    found = Survey(HOST, read_all(devices.values(), block), Target("xfs", 1, device), 0.0)
    assert (device.name, [drive.serial for drive in found.drives_of(device)]) == (carrier, serials)
    declared = replace(CANDIDATE, target=DeclaredTarget("", "filesystem", str(tmp_path), "A", None))
    checks = check_identity(declared, found)
    assert checks[-1].ok is (set(serials) == {"A"})
    assert checks[-1].found == ", ".join(dict.fromkeys(serials))


def test_this_machine_describes_itself() -> None:
    found = survey(LocalMachine(), Path(__file__).parent)
    assert (found.host.cpus or 0) >= 1
    assert (found.host.memory_bytes or 0) > 2**28
    assert found.host.kernel
    assert found.devices
    assert found.target is not None
    assert found.target.filesystem
    assert survey(LocalMachine(), Path("/nowhere/at/all")).target is None


def test_texts_of_the_kernel_are_parsed() -> None:
    assert os_name('NAME="x"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n') == "Debian GNU/Linux 12 (bookworm)"
    assert (
        cpu_model("processor : 0\nmodel name\t: AMD EPYC 7302 16-Core Processor\n") == "AMD EPYC 7302 16-Core Processor"
    )
    assert (os_name(""), cpu_model("")) == ("unknown", None)
    assert (
        cpu_model("processor : 0\ncpu\t\t: POWER9, altivec supported\nclock : 2GHz\nmodel\t: 8335-GTW\n")
        == "POWER9, altivec supported"
    )
    assert cpu_model("system type\t: generic\n\nprocessor\t: 0\nModel Name\t: Loongson-3A5000\n") == "Loongson-3A5000"
    assert cpu_model("cpu family\t: 6\ncpu MHz\t: 2000\nmodel\t: 85\n") is None


def identity(
    declared: dict[str, Any], devices: list[Device], target: Drive | None = None, **storage: Any
) -> dict[str, bool]:
    aim = DeclaredTarget("", "filesystem", "/mnt", "2109ABCD" if target else None, storage or None)
    candidate = replace(CANDIDATE, identity=declared, targets=(aim,), target=aim)
    found = Survey(HOST, read_all(devices), Target("xfs", 1, target), 0.0)
    return {check.subject: check.ok for check in check_identity(candidate, found)}


NAMESPACES = [
    replace(NVME, name=f"nvme0n{number}", path=f"/dev/nvme0n{number}", wwn=f"eui.{number}", size_bytes=size * 10**9)
    for number, size in ((1, 500), (2, 3340))
]


@pytest.mark.parametrize(
    ("capacity", "ok"), [("500GB", True), ("3.34TB", True), ("3.84TB", False), ("1TB", False), ("0.49TB", False)]
)
def test_each_namespace_of_a_drive_may_be_declared(capacity: str, ok: bool) -> None:
    """They have its serial, and capacities of their own (linux-nvme/nvme-cli#454): an entry that `discover` proposes names them all."""
    found = identity({"drives": [{"serial": "2109ABCD", "capacity": capacity}]}, NAMESPACES)
    assert found == {"drive 2109ABCD": True, "capacity of 2109ABCD": ok}


@pytest.mark.parametrize(
    ("name", "wwn", "names"),
    [
        ("2109ABCD", "", ["nvme0n1", "nvme0n2"]),
        ("2109ABCD", "EUI.2", ["nvme0n2"]),
        ("eui.2", "", ["nvme0n2"]),
        ("2109ABCD", "eui.3", []),
        ("other", "", []),
    ],
)
def test_a_drive_is_named_by_its_serial_and_its_wwn(name: str, wwn: str, names: list[str]) -> None:
    part = replace(NVME, name="nvme0n1p1", type="part", parent="nvme0n1")
    found = Survey(HOST, read_all([*NAMESPACES, part]), None, 0.0)
    assert [node.kname for node in found.named(name, wwn)] == names
    assert found.path_of(name) == ((found.named(name) and Path(found.named(name)[0].path)) or None)


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


@pytest.mark.parametrize(
    ("declared", "transport", "same"),
    [
        ("01.01A01", "sas", True),
        ("1A01", "sata", True),
        ("1A02", "sata", False),
        ("A01", "sata", False),
        ("1A01", "nvme", False),
    ],
)
def test_a_firmware_may_be_declared_as_an_older_lsblk_shows_it(declared: str, transport: str, same: bool) -> None:
    """util-linux before 2.39 has the last four characters of a SATA drive's, and discovery wrote them into inventories."""
    drive = replace(NVME, transport=transport, firmware="01.01A01")
    found = identity({"drives": [{"serial": "2109ABCD", "firmware": declared}]}, [drive])
    assert found["firmware of 2109ABCD"] is same


def test_the_target_folder_must_lie_on_the_declared_drive(tmp_path: Path) -> None:
    drive = drive_of(NVME, tmp_path)
    assert identity({"cpus_min": 1}, [NVME], drive)["drive under the target folder"] is True
    other = drive_of(replace(NVME, serial="X"), tmp_path)
    assert identity({"cpus_min": 1}, [NVME], other)["drive under the target folder"] is False
    built = identity({"cpus_min": 1}, [NVME], drive, drives=["2109ABCD", "2109EF"], filesystem="xfs")
    assert built["drives under the target folder"] is False


@pytest.mark.parametrize(
    "said",
    [
        "",
        "lsblk: unknown option",
        "{}",
        "[]",
        '{"blockdevices": null}',
        '{"blockdevices": [{}]}',
        '{"blockdevices": [1]}',
    ],
)
def test_a_survey_that_cannot_read_lsblk_says_so_in_words(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An lsblk that is too old, or another program by that name, prints such things."""
    words = r"lsblk's list of drives cannot be read .* util-linux 2\.34 or newer"
    monkeypatch.setattr(probe, "said", lambda *words: said)
    with pytest.raises(SystemExit, match=words):
        probe.block_devices()
    with pytest.raises(StorageError, match=words):
        parse_lsblk(said)


REAL = [file.read_text(encoding="utf-8") for file in sorted(LAYOUT.inventory.glob("corpus/lsblk-*/raw"))]


@pytest.mark.parametrize("text", [*REAL, subprocess.run(COMMAND, check=True, capture_output=True, text=True).stdout])
def test_real_lists_of_lsblk_are_read_whole(text: str) -> None:
    """util-linux's own test data as three versions print it, a guest's, and this machine's: each device once, what lies on it above it."""
    found = everything(devices_of(text, None))
    kept = re.findall(r'"kname": ?"([^"]+)"', text)
    assert [one.name for one in found.values()] == list(dict.fromkeys(kept))
    assert kept and {node.kname for node in read_all(found.values())} == set(kept)
    for one in found.values():
        assert {child.parent for child in one.children if child.parent} <= {below.name for below in found.values()}
        assert one.size_bytes >= 0 and one.path.startswith("/dev/") and one.tree()[0] is one


def test_a_volume_stands_below_each_of_its_drives_and_is_listed_once() -> None:
    (file,) = LAYOUT.inventory.glob("corpus/lsblk-2-38-lvm/raw")
    roots = devices_of(file.read_text(encoding="utf-8"), None)
    carriers = [root.name for root in roots if [child.name for child in root.children] == ["dm-0"]]
    assert carriers == ["loop0", "loop1", "loop2", "loop3"]
    assert [one.name for one in everything(roots).values()].count("dm-0") == 1
    (boot,) = [one for one in everything(roots).values() if one.mount_point == "/boot"]
    assert (boot.name, boot.parent, boot.rotational) == ("sda2", "sda", False)
