"""The storage role on real block devices of our own (loop devices): built, refused, left alone, interrupted, undone."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bench_storage_build as module
import pytest
from ansible.module_utils.bench_storage import memory
from ansible.module_utils.bench_storage.errors import StorageError
from ansible.module_utils.bench_storage.machine import Machine
from loop_drives import LoopDrives, can_use_loop_devices, mounts_of, signatures

pytestmark = pytest.mark.skipif(
    not can_use_loop_devices(), reason="makes loop devices and file systems: needs root, losetup, xfsprogs, e2fsprogs"
)


class Interrupted(BaseException):
    """An exception like that of Ctrl-C: nothing in the module catches it."""


class Interruptible(Machine):
    """This machine, with a command at which the module dies: before it is run, or just after."""

    def __init__(self, command: str = "", after: bool = False) -> None:
        super().__init__(log=lambda text: None)
        self.command, self.after = command, after
        self.ran: list[str] = []

    def run_raw(self, argv: list[str], seconds_max: float = 120.0) -> bytes:
        """Run it, unless this is the moment."""
        fatal = " ".join(argv).startswith(self.command) if self.command else False
        if fatal and not self.after:
            raise Interrupted
        output = super().run_raw(argv, seconds_max)
        self.ran.append(argv[0])
        if fatal:
            raise Interrupted
        return output


class Candidate:
    """A candidate with one loop drive, on which the module is called as Ansible calls it."""

    def __init__(self, root: Path, drives: LoopDrives) -> None:
        self.drives, self.path = drives, drives.add("LOOP1")
        self.directory, self.state = root / "mnt/ref", root / "state"
        self.state_file = self.state / "storage-ref.json"
        self.target = "ref"
        self.layout: dict[str, Any] = {
            "drives": ["LOOP1"], "destroy": True, "purge": "discard", "lba_bytes": None, "raid": None, "filesystem": "xfs",
        }  # fmt: skip

    def run(self, mode: str = "build", machine: Machine | None = None, pretend: bool = False, **changes: Any) -> Any:
        """Call the module's core."""
        options = {
            "mode": mode, "state_dir": str(self.state), "target": self.target, "directory": str(self.directory),
            "layout": {**self.layout, **changes}, "free_bytes_min": 0, "wait_s": 60,
        }  # fmt: skip
        return module.run_mode(options, machine or Interruptible(), pretend)

    def statuses(self, result: Any) -> dict[str, str]:
        """Return each record's status by its aspect."""
        return {record["id"][len("storage-") :]: record["status"] for record in result.records}


@pytest.fixture
def candidate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Candidate]:
    """Give a test a candidate with one empty drive."""
    with LoopDrives(tmp_path) as drives:
        for name, value in drives.environment().items():
            monkeypatch.setenv(name, value)
        yield Candidate(tmp_path, drives)


def mkfs(path: str, label: str = "home") -> None:
    """Put somebody's file system on a drive."""
    subprocess.run(["mkfs.ext4", "-q", "-L", label, path], check=True)


@pytest.mark.parametrize("filesystem", ["xfs", "ext4"])
def test_a_drive_is_built_left_alone_the_second_time_and_given_back(candidate: Candidate, filesystem: str) -> None:
    """Purge, file system and mount; changed once; undone without a trace but for the data that was there."""
    mkfs(candidate.path)
    built = candidate.run(filesystem=filesystem)
    assert built.changed
    assert candidate.statuses(built) == {
        "purge": "applied", "lba": "unchanged", "array": "unchanged", "filesystem": "applied", "mount": "applied",
    }  # fmt: skip
    assert mounts_of(candidate.path) == [str(candidate.directory)]
    assert "noatime" in next(r["read_back"] for r in built.records if r["id"] == "storage-mount")
    assert signatures(candidate.path) == [filesystem]
    (candidate.directory / "record").write_text("data")

    machine = Interruptible()
    second = candidate.run(machine=machine, filesystem=filesystem)
    assert not second.changed
    assert set(candidate.statuses(second).values()) == {"unchanged"}
    assert not {"blkdiscard", f"mkfs.{filesystem}", "mount"} & set(machine.ran)
    assert (candidate.directory / "record").read_text() == "data"
    assert set(candidate.statuses(candidate.run("verify", filesystem=filesystem)).values()) == {"unchanged"}

    undone = candidate.run("undo")
    assert undone.changed
    assert set(candidate.statuses(undone).values()) == {"applied"}, [record["detail"] for record in undone.records]
    assert (mounts_of(candidate.path), signatures(candidate.path)) == ([], [])
    assert not candidate.directory.exists()
    assert not candidate.state_file.exists()
    assert not candidate.run("undo").changed


def test_check_mode_tells_what_would_be_lost_and_touches_nothing(candidate: Candidate) -> None:
    """It names serial, model and contents."""
    mkfs(candidate.path)
    result = candidate.run(pretend=True)
    assert result.changed
    assert result.plan[0].startswith("would destroy drive LOOP1 (Loop Drive, /dev/loop")
    assert "ext4" in result.plan[0]
    assert signatures(candidate.path) == ["ext4"]
    assert not candidate.state.exists()
    candidate.run()
    assert candidate.run("undo", pretend=True).changed
    assert mounts_of(candidate.path) == [str(candidate.directory)]


def refused(candidate: Candidate, message: str, **changes: Any) -> None:
    """Assert that building is refused, naming the reason, with nothing written and nothing remembered."""
    before = signatures(candidate.path)
    machine = Interruptible()
    with pytest.raises(StorageError, match=message):
        candidate.run(machine=machine, **changes)
    assert set(machine.ran) <= {"lsblk", "wipefs", "udevadm"}
    assert signatures(candidate.path) == before
    assert not candidate.state_file.exists()


def test_a_serial_that_is_not_there_is_refused(candidate: Candidate) -> None:
    """The drives that are there are listed."""
    refused(candidate, r"no drive has the serial LOOP2; this machine has: .*LOOP1 \(Loop Drive", drives=["LOOP2"])


def test_all_drives_are_checked_before_the_first_is_written(candidate: Candidate) -> None:
    """The first drive passes and stays untouched, because the second does not."""
    mkfs(candidate.path)
    refused(
        candidate, "nothing was written. no drive has the serial LOOP2", drives=["LOOP1", "LOOP2"], raid={"level": 0}
    )


def test_a_mounted_drive_is_refused_also_with_consent(candidate: Candidate, tmp_path: Path) -> None:
    """The message says where it is mounted."""
    mkfs(candidate.path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    subprocess.run(["mount", candidate.path, str(elsewhere)], check=True)
    refused(candidate, f"is mounted at {elsewhere}: unmount it")


def test_a_drive_that_something_holds_open_exclusively_is_refused(candidate: Candidate) -> None:
    """ZFS or a virtual machine may hold it so, which no list shows."""
    descriptor = os.open(candidate.path, os.O_RDONLY | os.O_EXCL)
    try:
        refused(candidate, "refuses to open it exclusively")
    finally:
        os.close(descriptor)


def test_a_drive_that_a_container_still_has_mounted_is_refused_by_the_name_of_its_process(
    candidate: Candidate, tmp_path: Path
) -> None:
    """A mount namespace is a copy of the system's: what is unmounted here stays mounted there, as after `ip netns exec`."""
    mkfs(candidate.path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    subprocess.run(["mount", candidate.path, str(elsewhere)], check=True)
    container = subprocess.Popen(
        ["unshare", "--mount", "--", "sh", "-c", "echo; read _"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert container.stdout and container.stdout.readline() == b"\n"
        subprocess.run(["umount", str(elsewhere)], check=True)
        where = f"is mounted at {elsewhere} in the mount namespace of process {container.pid} (sh): unmount it there"
        refused(candidate, re.escape(where))
    finally:
        container.communicate()
    candidate.run()
    candidate.run("undo")


def test_a_drive_that_another_program_looks_at_for_an_instant_is_built(candidate: Candidate) -> None:
    """A survey of the whole machine opens each drive exclusively; it ended a restore that met it."""
    descriptor = os.open(candidate.path, os.O_RDONLY | os.O_EXCL)
    closing = threading.Timer(0.5, os.close, (descriptor,))
    closing.start()
    try:
        candidate.run()
    finally:
        closing.join()
    assert candidate.state_file.exists()
    candidate.run("undo")


def test_without_consent_a_drive_with_data_and_one_without_are_refused(candidate: Candidate) -> None:
    """Nothing is made without it, not even on an empty drive."""
    refused(candidate, "without destroy: true", destroy=False)
    mkfs(candidate.path)
    refused(candidate, "without destroy: true", destroy=False)


def test_without_consent_a_target_that_matches_is_accepted_and_one_that_does_not_is_refused(
    candidate: Candidate,
) -> None:
    """The role verifies a target that somebody made by hand; it never makes it anew and never undoes it."""
    subprocess.run(["mkfs.xfs", "-q", candidate.path], check=True)
    candidate.directory.mkdir(parents=True)
    subprocess.run(["mount", candidate.path, str(candidate.directory)], check=True)
    accepted = candidate.run(destroy=False, purge="none")
    assert not accepted.changed
    assert set(candidate.statuses(accepted).values()) == {"unchanged"}
    with pytest.raises(StorageError, match="asked ext4, found xfs"):
        candidate.run(destroy=False, filesystem="ext4")
    assert not candidate.run("undo").changed
    assert mounts_of(candidate.path) == [str(candidate.directory)]


def test_a_partition_table_goes_only_with_consent_and_completely(candidate: Candidate) -> None:
    """A table is a signature like any other."""
    write_partition_table(candidate.path)
    assert signatures(candidate.path) == ["dos"]
    candidate.run(purge="none")
    assert signatures(candidate.path) == ["xfs"]


def test_a_mounted_partition_is_refused_by_its_name(candidate: Candidate, tmp_path: Path) -> None:
    """The whole drive has no mount of its own."""
    write_partition_table(candidate.path)
    subprocess.run(["partx", "--add", candidate.path], check=True)
    partition, elsewhere = f"{candidate.path}p1", tmp_path / "elsewhere"
    elsewhere.mkdir()
    mkfs(partition)
    subprocess.run(["mount", partition, str(elsewhere)], check=True)
    try:
        refused(candidate, f"{Path(partition).name} is mounted at {elsewhere}: unmount it")
    finally:
        subprocess.run(["umount", str(elsewhere)], check=True)
        subprocess.run(["partx", "--delete", candidate.path], check=True)


def write_partition_table(path: str) -> None:
    """Write a table with one partition of 8 MiB at 1 MiB."""
    entry = bytes([0, 0, 2, 0, 0x83, 0, 0, 0]) + (2048).to_bytes(4, "little") + (16384).to_bytes(4, "little")
    with open(path, "r+b") as device:  # noqa: PTH123 - a device file
        device.write(bytes(446) + entry + bytes(48) + b"\x55\xaa")


def test_a_member_of_a_set_is_refused_also_with_consent(candidate: Candidate) -> None:
    """Another drive, perhaps of another machine, belongs to it."""
    write_md_superblock(candidate.path)
    assert signatures(candidate.path) == ["linux_raid_member"]
    refused(candidate, r"belongs to a set of drives \(linux_raid_member\)")


def write_md_superblock(path: str) -> None:
    """Write the least that libblkid takes for a member of an md array (struct mdp_superblock_1, md_p.h)."""
    block = bytearray(512)
    block[0:4] = (0xA92B4EFC).to_bytes(4, "little")
    block[4:8] = (1).to_bytes(4, "little")
    block[16:32] = bytes(range(16))
    block[144:152] = (8).to_bytes(8, "little")  # super_offset: where this block lies, in sectors
    total = sum(int.from_bytes(block[at : at + 4], "little") for at in range(0, 256, 4))
    block[216:220] = ((total & 0xFFFFFFFF) + (total >> 32)).to_bytes(4, "little")
    with open(path, "r+b") as device:  # noqa: PTH123 - a device file
        device.seek(4096)
        device.write(block)


def test_a_folder_that_is_not_empty_is_not_hidden_by_the_mount(candidate: Candidate) -> None:
    """Somebody's files stay visible."""
    candidate.directory.mkdir(parents=True)
    (candidate.directory / "notes").touch()
    refused(candidate, "is not empty, and mounting there would hide")


def test_another_request_than_what_was_built_is_refused_until_it_is_undone(candidate: Candidate) -> None:
    """A changed inventory never makes a second purge by itself."""
    candidate.run()
    with pytest.raises(StorageError, match=r"was built with another purge, filesystem .*restore\.yml"):
        candidate.run(filesystem="ext4", purge="none")
    assert signatures(candidate.path) == ["xfs"]


def test_a_drive_of_another_target_is_refused_by_that_targets_name(candidate: Candidate) -> None:
    """The remedy is to give that one back first."""
    candidate.run()
    candidate.target = "other"
    with pytest.raises(StorageError, match=r"target other wants LOOP1, on which target ref was built .*restore\.yml"):
        candidate.run()
    assert mounts_of(candidate.path) == [str(candidate.directory)]


def test_after_a_reboot_the_target_is_mounted_again_and_not_made_again(candidate: Candidate) -> None:
    """The mount is in no fstab; the data is kept."""
    candidate.run()
    (candidate.directory / "record").write_text("data")
    subprocess.run(["umount", str(candidate.directory)], check=True)
    assert candidate.run(pretend=True).plan == ["would mount the target ref again; nothing would be erased"]
    again = candidate.run()
    assert again.changed
    assert (candidate.directory / "record").read_text() == "data"
    assert set(candidate.statuses(again).values()) == {"unchanged"}


MOMENTS = [
    (command, after)
    for command in ("wipefs --all", "blkdiscard", "mkfs.xfs", "mount")
    for after in (False, True)
]  # fmt: skip


@pytest.mark.parametrize(("command", "after"), MOMENTS)
@pytest.mark.parametrize("remedy", ["undo", "build"])
def test_an_interruption_at_any_step_can_be_undone_and_built_over(
    candidate: Candidate, command: str, after: bool, remedy: str
) -> None:
    """The role writes each step to disk before it begins it, so that nothing of the bench's is ever unknown."""
    mkfs(candidate.path)
    with pytest.raises(Interrupted):
        candidate.run(machine=Interruptible(command, after))
    state = memory.load(str(candidate.state_file))
    assert state is not None
    assert state["phase"] == memory.BUILDING
    assert state["drives"][0]["touched"]
    if remedy == "undo":
        candidate.run("undo")
        assert (mounts_of(candidate.path), signatures(candidate.path)) == ([], [])
        assert not candidate.directory.exists()
        assert not candidate.state_file.exists()
    else:
        assert candidate.run().changed
        assert mounts_of(candidate.path) == [str(candidate.directory)]


def test_an_interrupted_undo_is_finished_by_the_next(candidate: Candidate) -> None:
    """This holds also for an interruption after the unmount and before the signature was erased."""
    candidate.run()
    with pytest.raises(Interrupted):
        candidate.run("undo", machine=Interruptible("wipefs --all"))
    assert mounts_of(candidate.path) == []
    assert signatures(candidate.path) == ["xfs"]
    assert set(candidate.statuses(candidate.run("undo")).values()) == {"applied"}
    assert not candidate.state_file.exists()


def test_undo_leaves_a_drive_alone_that_somebody_has_used_since(candidate: Candidate) -> None:
    """Another file system than the bench's is refused, told, and remembered."""
    candidate.run()
    subprocess.run(["umount", str(candidate.directory)], check=True)
    subprocess.run(["mkfs.ext4", "-q", "-F", candidate.path], check=True)
    result = candidate.run("undo")
    assert candidate.statuses(result) == {"drive": "refused", "directory": "applied"}
    assert "which the bench did not put there: nothing was erased" in result.records[0]["detail"]
    assert signatures(candidate.path) == ["ext4"]
    assert candidate.state_file.exists()


def test_undo_of_a_target_in_use_names_the_process_and_keeps_the_memory(candidate: Candidate) -> None:
    """A shell left in the folder is the usual cause."""
    candidate.run()
    with subprocess.Popen(["sleep", "60"], cwd=candidate.directory) as sleeper:
        result = candidate.run("undo")
        sleeper.terminate()
    assert candidate.statuses(result) == {"mount": "refused"}
    assert f"by process {sleeper.pid}" in result.records[0]["detail"]
    assert not any(record["status"] == "applied" for record in result.records)
    assert set(candidate.statuses(candidate.run("undo")).values()) == {"applied"}


def test_undo_without_the_drive_says_so_and_finishes_when_it_is_back(candidate: Candidate) -> None:
    """A drive that was pulled must not make the machine's restore fail for ever."""
    candidate.run()
    subprocess.run(["umount", str(candidate.directory)], check=True)
    candidate.drives.tell(serial="GONE")
    result = candidate.run("undo")
    assert candidate.statuses(result)["drive"] == "unsupported"
    assert "run restore again when the drive is back" in result.records[0]["detail"]
    candidate.drives.tell()
    candidate.run("undo")
    assert signatures(candidate.path) == []
    assert not candidate.state_file.exists()


def test_a_file_system_that_a_failed_drive_makes_unreadable_is_unmounted_by_its_place(candidate: Candidate) -> None:
    """The first member of a RAID 0, with the superblock, was pulled in the record: the array stayed busy, and nothing was given back."""
    candidate.run()

    class Unreadable(Interruptible):
        def filesystem_uuid(self, path: str) -> str:
            return "" if mounts_of(path) else super().filesystem_uuid(path)

    candidate.run("undo", machine=Unreadable())
    assert (mounts_of(candidate.path), signatures(candidate.path)) == ([], [])
    assert not candidate.state_file.exists()


def test_an_unreadable_file_system_at_another_place_is_left_alone(candidate: Candidate, tmp_path: Path) -> None:
    """By its place alone nothing but the bench's own directory is unmounted."""
    candidate.run()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    subprocess.run(["mount", "--move", str(candidate.directory), str(elsewhere)], check=True)

    class Unreadable(Interruptible):
        def filesystem_uuid(self, path: str) -> str:
            return ""

    found = candidate.run("undo", machine=Unreadable())
    assert mounts_of(candidate.path) == [str(elsewhere)]
    assert any(record["status"] == "refused" and "is mounted at" in record["detail"] for record in found.records)
    assert candidate.state_file.exists()
    candidate.run("undo")


def test_a_drive_that_changes_between_check_and_write_is_left_alone(candidate: Candidate) -> None:
    """The drive is looked at again just before its first write."""
    mkfs(candidate.path)

    class Meanwhile(Interruptible):
        def settle(self) -> None:
            """Do nothing: the module does not come this far."""

        def require(self, commands: list[str]) -> None:
            super().require(commands)
            self.checks = 0

        def exclusive_refusal(self, path: str, wait_s: float = 0.0) -> str:
            self.checks += 1
            return "Device or resource busy" if self.checks == 2 else super().exclusive_refusal(path, wait_s)

    with pytest.raises(StorageError, match="changed after it was checked, and was left alone"):
        candidate.run(machine=Meanwhile())
    assert signatures(candidate.path) == ["ext4"]
    candidate.run("undo")
    assert signatures(candidate.path) == ["ext4"]  # never begun, so never erased
    assert not candidate.state_file.exists()


def test_a_damaged_memory_is_refused_by_name(candidate: Candidate) -> None:
    """Building over it would lose what is known of the drives."""
    candidate.state.mkdir()
    candidate.state_file.write_text("{")
    with pytest.raises(StorageError, match=r"storage-ref\.json: not a readable state file"):
        candidate.run()


def test_one_target_is_undone_and_the_other_stays(candidate: Candidate) -> None:
    """So that a drive can serve the next set while the reference stays mounted; before, the next set is refused."""
    root, other = candidate.directory.parent, candidate.drives.add("LOOP2")

    def run(mode: str, target: str, *serials: str) -> Any:
        candidate.target, candidate.directory = target, root / target
        return candidate.run(mode, drives=list(serials))

    assert run("build", "ref", "LOOP1").changed
    assert run("build", "set-a", "LOOP2").changed
    with pytest.raises(StorageError, match="target set-b wants LOOP2, on which target set-a was built"):
        run("build", "set-b", "LOOP2")
    undone = run("undo_target", "set-a", "LOOP2")
    assert {record["subject"].partition(":")[0] for record in undone.records} == {"set-a"}
    assert not run("undo_target", "set-a", "LOOP2").changed
    assert run("build", "set-b", "LOOP2").changed
    assert (mounts_of(candidate.path), mounts_of(other)) == ([str(root / "ref")], [str(root / "set-b")])
    run("undo", "ref", "LOOP1")
    assert (mounts_of(candidate.path), mounts_of(other)) == ([], [])
