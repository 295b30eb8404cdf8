"""The storage role on the virtual candidate's NVMe drives: arrays, LBA formats, a build that dies, drives in use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playbook_runs import ANSIBLE

from daq_bench.virtual_candidate.candidate import VirtualCandidate

pytestmark = pytest.mark.virtual

REFERENCE, NAND = "VCXP0001", ["VCNA0001", "VCNA0002", "VCNA0003"]
STATE, DIRECTORY = "/var/lib/daq-storage-bench-test", "/srv/daq-bench-test/target"
MODULE_S_MAX = 900


class Guest:
    """Calls the module on the guest as a playbook does, without a playbook's other tasks."""

    def __init__(self, machine: VirtualCandidate, root: Path) -> None:
        self.machine, self.inventory = machine, root / "inventory.json"
        ssh = machine.instance.ssh
        host = {
            "ansible_host": "127.0.0.1",
            "ansible_port": machine.instance.ports.ssh,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(ssh / "id_ed25519"),
            "ansible_ssh_common_args": f"-o UserKnownHostsFile={ssh / 'known_hosts'} -o StrictHostKeyChecking=yes",
            "ansible_python_interpreter": "/usr/bin/python3",
        }
        self.inventory.write_text(json.dumps({"all": {"hosts": {"guest": host}}}))

    def start(self, mode: str, *arguments: str, **layout: Any) -> subprocess.Popen[str]:
        """Begin a call of the module that builds."""
        options: dict[str, Any] = {"mode": mode, "state_dir": STATE}
        if mode != "undo":
            options |= {"target": "test", "directory": DIRECTORY, "layout": layout}
        return self.begin("bench_storage_build", options, *arguments)

    def begin(self, module: str, options: dict[str, Any], *arguments: str) -> subprocess.Popen[str]:
        """Begin a call of a module."""
        command = [sys.executable, "-m", "ansible", "adhoc", "--inventory", str(self.inventory), "guest"]
        command += ["--module-name", module, "--args", json.dumps(options), *arguments]
        environment = {
            **os.environ,
            "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"),
            "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
            "ANSIBLE_FORCE_COLOR": "0",
        }
        return subprocess.Popen(command, cwd="/", env=environment, text=True, stdout=subprocess.PIPE)

    def call(self, mode: str, *arguments: str, **layout: Any) -> dict[str, Any]:
        """Make a call of the module that builds and return its result, also of a failure."""
        return self.result(self.start(mode, *arguments, **layout))

    def describe(self, **options: Any) -> dict[str, Any]:
        """Make a call of the module that describes the target."""
        return self.result(self.begin("bench_storage_target", {"path": DIRECTORY, **options}))

    @staticmethod
    def result(begun: subprocess.Popen[str]) -> dict[str, Any]:
        """Return the result of a call once it has ended."""
        output, _error = begun.communicate(timeout=MODULE_S_MAX)
        _host, arrow, document = output.partition(" => ")
        assert arrow, output
        result: dict[str, Any] = json.loads(document)
        return result

    def blocks(self) -> dict[str, dict[str, Any]]:
        """Return the drives by serial, each with block size, file system type and what is on it."""
        text = self.machine.run("lsblk --json --output NAME,SERIAL,LOG-SEC,FSTYPE,TYPE,MOUNTPOINT")
        return {row["serial"]: row for row in json.loads(text)["blockdevices"] if row["serial"]}

    def path(self, serial: str) -> str:
        """Return a drive's device file."""
        return f"/dev/{self.blocks()[serial]['name']}"


@pytest.fixture
def guest(virtual_machine: VirtualCandidate, tmp_path: Path) -> Iterator[Guest]:
    """Give a test the guest with empty drives, and see that they are empty again afterwards."""
    made = Guest(virtual_machine, tmp_path)
    yield made
    made.call("undo")
    assert all(made.blocks()[serial]["fstype"] is None for serial in [REFERENCE, *NAND])
    assert virtual_machine.run(f"find {STATE} -name 'storage-*.json'") == ""


def statuses(result: dict[str, Any]) -> dict[str, str]:
    """Return each record's status by its aspect."""
    return {record["id"][len("storage-") :]: record["status"] for record in result["records"]}


def test_a_stripe_of_4_kib_blocks_is_built_left_alone_and_given_back(guest: Guest) -> None:
    """LBA format, array in the order given, xfs aligned to it; all of it undone, the LBA format too."""
    layout = {
        "drives": ["VCNA0002", "VCNA0001"], "destroy": True, "purge": "format", "lba_bytes": 4096,
        "raid": {"level": 0, "chunk": "128KiB"}, "filesystem": "xfs",
    }  # fmt: skip
    check = guest.call("build", "--check", **layout)
    assert [line.split(" (")[0] for line in check["plan"][:2]] == [
        "would destroy drive VCNA0002",
        "would destroy drive VCNA0001",
    ]
    built = guest.call("build", **layout)
    assert statuses(built) == dict.fromkeys(("purge", "lba", "array", "filesystem", "mount"), "applied"), built
    drives = guest.blocks()
    assert [drives[serial]["log-sec"] for serial in NAND[:2]] == [4096, 4096]
    (array,) = drives["VCNA0002"]["children"]
    assert (array["type"], array["fstype"], array["mountpoint"]) == ("raid0", "xfs", DIRECTORY)
    shape = guest.machine.run(f"cat /sys/block/{array['name']}/md/chunk_size; xfs_info {DIRECTORY}")
    assert shape.split()[0] == "131072"
    assert "sunit=32" in shape  # blocks of 4 KiB
    assert "swidth=64 blks" in shape
    again = guest.call("build", **layout)
    assert not again["changed"]
    assert set(statuses(again).values()) == {"unchanged"}
    undone = guest.call("undo")
    assert set(statuses(undone).values()) == {"applied"}, undone
    assert [guest.blocks()[serial]["log-sec"] for serial in NAND[:2]] == [512, 512]


def lock_holder(guest: Guest) -> str:
    """Return the process that holds the role's lock on the guest: the module itself."""
    return guest.machine.run(
        f'inode=$(stat -c %i {STATE}/.lock) && awk -v i=$inode \'$2 == "FLOCK" && $6 ~ ":" i "$" {{print $5}}\' /proc/locks'
    ).strip()


def test_a_build_that_dies_while_its_array_synchronises_is_undone(guest: Guest) -> None:
    """The array has no file system yet and is nobody's but the bench's: its UUID was on disk before it was made."""
    layout = {"drives": NAND, "destroy": True, "raid": {"level": 5, "chunk": "64KiB"}, "filesystem": "xfs"}
    building = guest.start("build", **layout)
    deadline = time.monotonic() + MODULE_S_MAX
    while "active raid5" not in guest.machine.run("cat /proc/mdstat"):
        assert building.poll() is None, building.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.2)
    guest.machine.run(f"kill -KILL {lock_holder(guest)}")
    building.communicate(timeout=MODULE_S_MAX)
    assert '"phase": "building"' in guest.machine.run(f"cat {STATE}/storage-test.json")
    undone = guest.call("undo")
    assert statuses(undone)["array"] == statuses(undone)["drive"] == "applied", undone
    assert "active" not in guest.machine.run("cat /proc/mdstat")


def shut_down(guest: Guest) -> None:
    """Wait until the file system has noticed that a drive is gone: it then answers nothing but errors."""
    deadline = time.monotonic() + 60
    while "error" not in guest.machine.run(f"touch {DIRECTORY}/x 2>&1; sync; stat {DIRECTORY} 2>&1; true"):
        assert time.monotonic() < deadline
        time.sleep(0.5)


def test_a_stripe_whose_first_drive_was_pulled_is_given_back_and_the_drive_once_it_is_there_again(guest: Guest) -> None:
    """Its file system answers nothing and has no readable UUID; udev assembles a drive that is back into an inactive array."""
    guest.call("build", drives=NAND, destroy=True, raid={"level": 0, "chunk": "128KiB"}, filesystem="xfs")
    guest.machine.run(f"dd if=/dev/zero of={DIRECTORY}/record bs=1M count=64 oflag=direct")
    guest.machine.hazards.pull(NAND[0])
    try:
        shut_down(guest)
        assert "Input/output error" in guest.describe()["msg"]
        told = guest.describe(failed_is_told=True)
        (record,) = told["records"]
        assert (record["id"], record["status"], record["read_back"]) == (
            "storage-target",
            "mismatch",
            "Input/output error",
        )
        assert (told["target"]["filesystem"], told["target"]["mount_point"]) == ("xfs", DIRECTORY)
        assert {drive["serial"] for drive in told["drives"]} >= set(NAND[1:2])
        undone = guest.call("undo")
        said = {record["status"]: record["detail"] for record in undone["records"] if record["id"] == "storage-drive"}
        assert (
            f"no drive has the serial {NAND[0]}" in said["unsupported"] and "refused" not in statuses(undone).values()
        ), undone
        assert DIRECTORY not in guest.machine.run("cat /proc/mounts")
    finally:
        guest.machine.hazards.put_back(NAND[0])
    deadline = time.monotonic() + 60
    while "inactive" not in guest.machine.run("cat /proc/mdstat"):
        assert time.monotonic() < deadline, guest.machine.run("cat /proc/mdstat; lsblk")
        time.sleep(0.5)
    undone = guest.call("undo")
    assert (statuses(undone)["array"], statuses(undone)["drive"]) == ("applied", "applied"), undone


def test_a_drive_that_takes_no_writes_is_remembered_until_its_signatures_are_gone(guest: Guest) -> None:
    """wipefs succeeds in the kernel's cache; the other drive has its turn, and the next pass erases the first."""
    guest.call("build", drives=NAND[:2], destroy=True, raid={"level": 0, "chunk": "128KiB"}, filesystem="ext4")
    guest.machine.hazards.fail_writes(NAND[0])
    try:
        undone = guest.call("undo")
        said = [
            (one["subject"], one["status"], one["detail"]) for one in undone["records"] if one["id"] == "storage-drive"
        ]
        assert [status for _, status, _ in said] == ["refused", "applied"], undone
        assert NAND[0] in said[0][0]
        assert "still carries linux_raid_member" in said[0][2]
    finally:
        guest.machine.hazards.release_writes(NAND[0])
    undone = guest.call("undo")
    assert statuses(undone)["drive"] == "applied", undone


def test_a_mounted_drive_and_a_foreign_array_are_refused_with_consent(guest: Guest) -> None:
    """All drives are judged at once, and none is touched."""
    reference, first, second = (guest.path(serial) for serial in (REFERENCE, *NAND[:2]))
    guest.machine.run(f"mkfs.ext4 -q {reference} && mkdir -p /mnt/home && mount {reference} /mnt/home")
    guest.machine.run(f"mdadm --create /dev/md/theirs --run --level=1 --raid-devices=2 --bitmap=none {first} {second}")
    try:
        result = guest.call("build", drives=[REFERENCE, *NAND], destroy=True, raid={"level": 0})
        assert "nothing was written" in result.get("msg", ""), result
        assert f"{Path(reference).name} is mounted at /mnt/home: unmount it" in result["msg"]
        assert "(raid1): stop or remove that first" in result["msg"]
        assert "belongs to a set of drives (linux_raid_member)" in result["msg"]
        assert guest.machine.run("mount | grep -c /mnt/home").strip() == "1"
    finally:
        guest.machine.run(f"umount /mnt/home; mdadm --stop /dev/md/theirs; wipefs -qa {reference} {first} {second}")
