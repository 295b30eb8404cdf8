"""The describing modules: target, host, drive health, tool versions; and the record filters."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import bench_host_facts
import bench_records
import bench_smart
import bench_storage_target as storage
import bench_tool_versions
import pytest
from ansible.errors import AnsibleFilterError
from ansible.module_utils import bench_state

from daq_bench.candidate_kit import smartctl
from daq_bench.telemetry_agent.devices import smartctl_json

MOUNTINFO = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
23 22 0:21 / /tmp rw,nosuid - tmpfs tmpfs rw,size=1g
24 22 9:0 / /data/my\\040disk rw,noatime shared:2 - xfs /dev/md0 rw,attr2
25 24 9:1 / /data/my\\040disk rw,noatime - xfs /dev/md1 rw
"""


@pytest.mark.parametrize(
    ("path", "point", "filesystem", "number"),
    [
        ("/srv/x", "/", "ext4", "254:0"),
        ("/tmp/a", "/tmp", "tmpfs", "0:21"),
        ("/tmpfile", "/", "ext4", "254:0"),
        ("/data/my disk/scratch", "/data/my disk", "xfs", "9:1"),
    ],
)
def test_a_path_belongs_to_its_innermost_and_latest_mount(path: str, point: str, filesystem: str, number: str) -> None:
    """Prefixes are whole components, escapes are undone, an overmount hides what it covers."""
    mount = storage.mount_of(path, MOUNTINFO)
    assert (mount["mount_point"], mount["filesystem"], mount["device_number"]) == (point, filesystem, number)


def test_mount_options_join_mount_and_filesystem_options() -> None:
    """`discard` is the filesystem's, `relatime` the mount's; both bear on a measurement."""
    assert storage.mount_of("/", MOUNTINFO)["mount_options"] == ["rw", "relatime", "discard"]


def test_the_device_beneath_is_found_without_a_mount_entry(tmp_path: Path) -> None:
    """In a chroot whose root is no mount point no entry leads to the target; the file itself names its device."""
    device = tmp_path.stat().st_dev
    expected = f"{os.major(device)}:{os.minor(device)}" if os.major(device) else None
    assert storage.device_number(str(tmp_path), {}) == expected


def test_a_target_that_does_not_answer_is_told_by_the_list_of_mounts_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The innermost mount is that of the failed file system, and nothing of it is asked."""
    array = tmp_path / "dev/block/9:1"
    array.mkdir(parents=True)
    monkeypatch.setattr(storage, "mountinfo", lambda: MOUNTINFO)
    error = OSError(errno.EIO, os.strerror(errno.EIO), "/data/my disk/scratch")
    target, (record,) = storage.describe_failed("/data/my disk/scratch", error, str(tmp_path), {})
    assert (target["failed"], target["filesystem"], target["free_bytes"]) == ("Input/output error", "xfs", None)
    assert target["device"]["name"] == "9:1"
    assert (record["status"], record["read_back"]) == ("mismatch", "Input/output error")


def test_a_target_that_is_not_there_is_not_taken_for_the_file_system_above_it(tmp_path: Path) -> None:
    """Else the health of the system's own drive would stand for the target's."""
    path = str(tmp_path / "gone")
    with pytest.raises(ValueError, match="does not exist") as refused:
        storage.describe_target(path, "/sys", {})
    target, (record,) = storage.describe_failed(path, refused.value, "/sys", {})
    assert (target["device"], target["mount_point"], storage.drives_of(target["device"])) == (None, None, [])
    assert "does not exist" in record["read_back"]


def fake_drive(root: Path, name: str, node: str, serial: str) -> Path:
    """Lay out one NVMe drive on a PCIe slot and return its block directory."""
    slot = root / "devices/pci0/slot" / name
    block = slot / "nvme" / name
    for folder in (block / "device", block / "queue", block / "slaves"):
        folder.mkdir(parents=True)
    texts = {
        slot / "numa_node": node, slot / "current_link_speed": "16.0 GT/s PCIe", slot / "current_link_width": "4",
        block / "size": "2048", block / "queue/rotational": "0", block / "device/model": "Fast Drive",
        block / "device/serial": serial, block / "device/firmware_rev": "FW1", block / "wwid": "eui.01",
    }  # fmt: skip
    for path, text in texts.items():
        path.write_text(text + "\n")
    return block


def test_a_drive_is_described_from_sysfs_where_lsblk_is_silent(tmp_path: Path) -> None:
    """NUMA node and link are found at the PCIe function, some levels above the block device."""
    device = storage.device_tree(str(fake_drive(tmp_path, "nvme0n1", "1", "S1")), {})
    assert device == {
        "name": "nvme0n1", "path": "/dev/nvme0n1", "model": "Fast Drive", "serial": "S1", "firmware": "FW1",
        "wwn": "eui.01", "size_bytes": 1048576, "numa_node": 1, "rotational": False, "transport": None,
        "pcie_link": "16.0 GT/s PCIe x4", "members": [],
    }  # fmt: skip


def test_an_array_lists_its_drives_and_a_partition_its_disk(tmp_path: Path) -> None:
    """The settings and the health data are the drives', not the array's or the partition's."""
    first, second = fake_drive(tmp_path, "nvme0n1", "0", "S1"), fake_drive(tmp_path, "nvme1n1", "-1", "S2")
    partition = first / "nvme0n1p1"
    partition.mkdir()
    (partition / "partition").write_text("1\n")
    array = tmp_path / "devices/virtual/block/md0"
    (array / "slaves").mkdir(parents=True)
    (array / "slaves/nvme0n1p1").symlink_to(partition)
    (array / "slaves/nvme1n1").symlink_to(second)
    device = storage.device_tree(str(array), {})
    assert device["name"] == "md0"
    assert [drive["name"] for drive in storage.drives_of(device)] == ["nvme0n1", "nvme1n1"]
    assert device["members"][1]["numa_node"] is None  # the kernel says -1 where it knows none


def test_direct_io_is_tried_without_leaving_a_file(tmp_path: Path) -> None:
    """The probe's file has no name, so the directory stays empty."""
    assert storage.direct_io(str(tmp_path))["status"] in ("supported", "unsupported", "unknown")
    assert os.listdir(tmp_path) == []


def test_direct_io_is_unknown_where_the_directory_cannot_be_used() -> None:
    """A directory in which nothing can be created gives a reason, not a verdict."""
    assert storage.direct_io("/proc")["status"] == "unknown"


def test_a_warning_before_smartctl_s_document_is_told() -> None:
    """Its own drive database may have a fault, which says nothing about the drive."""
    warning = "smartctl: /etc/smart_drivedb.h(12): Syntax error, preset rejected"
    record = bench_smart.entry("/dev/sda", 0, warning + '\n{"temperature": {"current": 30}}', "")
    assert (record["status"], record["data"]) == ("read", {"temperature": {"current": 30}})
    assert record["detail"] == warning


def test_smart_health_bits_come_with_data() -> None:
    """Exit status 64 (errors in the log) is the drive's condition, not a failed reading."""
    record = bench_smart.entry("/dev/sda", 64, json.dumps({"smartctl": {}, "x": 1}), "")
    assert (record["status"], record["data"]["x"]) == ("read", 1)
    assert "64" in record["detail"]


def test_smart_s_exit_status_is_said_in_smartctl_s_own_meaning() -> None:
    """A failed command or an old entry of a log is no problem of the drive; what it says of itself is."""
    for status, words in (
        (4, "this says nothing about its health"),
        (64, "its log of errors has entries"),
        (8, "a problem"),
    ):
        detail = bench_smart.entry("/dev/sda", status, json.dumps({"smartctl": {}, "x": 1}), "")["detail"]
        assert words in detail and ("a problem of the drive" in detail) is (status == 8)


def test_a_controller_s_volume_has_no_health() -> None:
    """Neither by smartctl's own word nor by 0 degrees beside a failed command; a drive with data has."""
    cold = {"temperature": {"current": 0, "drive_trip": 0}}
    for status, data in ((0, cold | {"smart_support": {"available": False}}), (4, cold)):
        record = bench_smart.entry("/dev/sda", status, json.dumps(data), "")
        assert record["status"] == "unsupported" and record["detail"] == smartctl.VOLUME
    assert bench_smart.entry("/dev/sda", 4, json.dumps({"temperature": {"current": 31}}), "")["status"] == "read"


CORPUS = Path(__file__).parents[2] / "inventory/corpus"
ANSWERS = sorted(CORPUS.glob("smartctl-*/raw"))


@pytest.mark.parametrize("raw", ANSWERS, ids=[one.parent.name for one in ANSWERS])
def test_provisioning_and_the_agent_read_the_same_drives(raw: Path) -> None:
    """Both read health data of a real answer of the corpus, or neither does; both say the same words of a volume."""
    text = raw.read_text(encoding="utf-8")
    document = json.loads(text)
    if "devices" in document or json.loads((raw.parent / "case.json").read_text())["kind"] != "smartctl":
        return  # a scan
    fault = smartctl_json.answer_fault(document)
    record = bench_smart.entry("/dev/x", document["smartctl"]["exit_status"], text, "")
    assert (record["status"] == "read") is (fault is None)
    if fault is not None and smartctl.VOLUME in fault:
        assert record["detail"] == smartctl.VOLUME


def test_smart_of_a_device_without_any_is_unsupported_with_the_reason() -> None:
    """smartctl's own message is the reason."""
    output = json.dumps({"smartctl": {"messages": [{"string": "/dev/vda: Unable to detect device type"}]}})
    record = bench_smart.entry("/dev/vda", 1, output, "")
    assert (record["status"], record["data"]) == ("unsupported", None)
    assert record["detail"] == "/dev/vda: Unable to detect device type"


def test_smart_output_that_is_no_json_is_unsupported_not_empty_data() -> None:
    """Garbage must never pass as a drive without errors."""
    record = bench_smart.entry("/dev/sda", 0, "", "option --json not known")
    assert (record["status"], record["data"]) == ("unsupported", None)
    assert "option --json not known" in record["detail"]


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ("fio-3.33\n", "3.33"),
        ("lsblk from util-linux 2.38.1\n", "2.38.1"),
        ("Python 3.11.7\n", "3.11.7"),
        ("smartctl 7.3 2022-02-28 r5338 [x86_64]\n", "7.3"),
        ("daqwriter 0.1.0-dev+abc\n", "0.1.0-dev+abc"),
        ("no number here\n", "unstated"),
    ],
)
def test_the_version_is_the_first_number_of_the_output(output: str, version: str) -> None:
    """The outputs are as each tool prints them."""
    assert bench_tool_versions.version_in(output) == version


def test_os_release_and_cpu_and_memory_are_parsed() -> None:
    """Quotes go; a processor whose kernel prints no name has none; KiB become bytes."""
    release = bench_host_facts.os_release('ID=ubuntu\nID_LIKE=debian\nPRETTY_NAME="Ubuntu 24.04 LTS"\n# x=y\n')
    assert (release["ID_LIKE"], release["PRETTY_NAME"]) == ("debian", "Ubuntu 24.04 LTS")
    assert bench_host_facts.cpu_model("processor: 0\nmodel name\t: AMD EPYC 7302\n") == "AMD EPYC 7302"
    assert bench_host_facts.cpu_model("processor: 0\nBogoMIPS: 50\n") is None
    assert bench_host_facts.memory_bytes("MemTotal:       1024 kB\n") == 1048576


def test_numa_nodes_are_listed_in_order(tmp_path: Path) -> None:
    """Node 10 comes after node 2."""
    for node in ("node10", "node2"):
        folder = tmp_path / "devices/system/node" / node
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text("0-3\n")
        (folder / "meminfo").write_text(f"Node {node[4:]} MemTotal:   2048 kB\n")
    nodes = bench_host_facts.numa(str(tmp_path))
    assert [(node["node"], node["cpus"], node["memory_bytes"]) for node in nodes] == [
        (2, "0-3", 2097152),
        (10, "0-3", 2097152),
    ]


def test_a_record_is_whole_and_needs_a_reason_where_it_is_no_success() -> None:
    """A report must never have to guess why."""
    record = bench_records.tuning_record("fan-mode", role="fans", status="unsupported", detail="no BMC")
    assert tuple(record) == bench_records.FIELDS == bench_state.FIELDS
    with pytest.raises(AnsibleFilterError, match="needs its reason"):
        bench_records.tuning_record("fan-mode", status="unsupported")
    with pytest.raises(AnsibleFilterError, match="status is 'ok'"):
        bench_records.tuning_record("fan-mode", status="ok")
    with pytest.raises(AnsibleFilterError, match="unknown field colour"):
        bench_records.tuning_record("fan-mode", status="unchanged", colour="red")
