"""Builds the storage of one target: purge, LBA format, array, file system, mount.

Promises: what it does to a drive is noted on disk before it is begun; each drive is looked at again just before its
first write; a drive that has changed meanwhile stops the building.
Runs on the candidate: Python 3.9, standard library only.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from typing import Any

from ansible.module_utils.bench_storage import memory
from ansible.module_utils.bench_storage.errors import StorageError
from ansible.module_utils.bench_storage.guard import find, identity_objections, usage_objections
from ansible.module_utils.bench_storage.layout import Layout
from ansible.module_utils.bench_storage.machine import SETTLE_S_MAX, Machine
from ansible.module_utils.bench_storage.nvme import SANITIZE_FAILED, SECURE_ERASE_USER_DATA
from ansible.module_utils.bench_storage.survey import Drive, usage_of, uuid_digits

FILESYSTEM_BLOCK_BYTES = 4096
POLL_S = 1.0
PROGRESS_NOTE_S = 10.0  # how often progress goes to disk
RESYNC_KIB_PER_S_MAX = 100_000_000  # no brake: nothing else uses the drives yet
REDUNDANT_COPIES = (1, 10)  # levels whose members hold copies, not parity


def commands_for(layout: Layout) -> list[str]:
    """Return the commands that building this layout needs."""
    commands = ["lsblk", "wipefs", "blockdev", f"mkfs.{layout.filesystem}", "mount", "umount"]
    commands += ["blkdiscard"] if layout.purge == "discard" else []
    commands += ["nvme"] if layout.purge in ("format", "sanitize") else []
    return [*commands, "mdadm"] if layout.raid else commands


def first_state(layout: Layout, drives: list[Drive]) -> dict[str, Any]:
    """Return what is remembered before the first write: also the UUIDs that are going to be given."""
    return {
        "target": layout.target,
        "phase": memory.BUILDING,
        "layout": layout.fingerprint(),
        "drives": [
            {
                "serial": drive.device.serial,
                "wwn": wanted.wwn,
                "model": drive.device.model,
                "size_bytes": drive.device.size_bytes,
                "lba_bytes_before": drive.facts.lba_bytes,
                "touched": False,
                "purged": "",
            }
            for wanted, drive in zip(layout.drives, drives)
        ],
        "array": {"name": layout.array_name, "uuid": str(uuid.uuid4())} if layout.raid else None,
        "filesystem": {"type": layout.filesystem, "label": layout.label, "uuid": str(uuid.uuid4())},
        "mount": {"directory": layout.directory, "made": []},
        "progress": "guard passed",
    }


def md_uuid(text: str) -> str:
    """Return a UUID as mdadm takes it: four groups of eight digits."""
    digits = uuid_digits(text)
    return ":".join(digits[start : start + 8] for start in range(0, 32, 8))


def create_command(layout: Layout, paths: list[str], array_uuid: str) -> list[str]:
    """Return the command that makes the array.

    Levels of copies (1, 10) start as clean: blocks that were never written may differ between the copies, but a new
    file system reads no block that it has not written, and a resync would disturb the measurement for hours. (A `check`
    of such an array counts those blocks as mismatches.) Levels of parity (5, 6) are synchronised: a partial write reads
    the old parity, and with a wrong one the loss of a drive would lose other data. No write-intent bitmap: an array of
    the bench lives for one run.
    """
    raid = layout.raid
    if raid is None:
        raise AssertionError("called for arrays only")
    command = ["mdadm", "--create", f"/dev/md/{layout.array_name}", "--run", "--metadata=1.2"]
    command += [f"--name={layout.array_name}", f"--uuid={md_uuid(array_uuid)}", f"--level={raid.level}"]
    command += [f"--chunk={raid.chunk_bytes // 1024}"] if raid.chunk_bytes else []
    command += ["--bitmap=none"] if raid.level else []
    command += ["--assume-clean"] if raid.level in REDUNDANT_COPIES else []
    return [*command, f"--raid-devices={len(paths)}", *paths]


def mkfs_command(layout: Layout, path: str, fs_uuid: str) -> list[str]:
    """Return the command that makes the file system, aligned to the array's chunks.

    No discard (the purge was to say what is on the drives) and no work left for later in the background (ext4's lazy
    initialisation would write during the measurement).
    """
    raid, members = layout.raid, len(layout.drives)
    striped = raid is not None and raid.chunk_bytes > 0
    width = raid.data_drives(members) if raid else 1
    chunk = raid.chunk_bytes if raid else 0
    if layout.filesystem == "xfs":
        stripe = ["-d", f"su={chunk},sw={width}"] if striped else []
        return ["mkfs.xfs", "-q", "-K", "-L", layout.label, "-m", f"uuid={fs_uuid}", *stripe, path]
    blocks = chunk // FILESYSTEM_BLOCK_BYTES
    extended = "nodiscard,lazy_itable_init=0,lazy_journal_init=0"
    extended += f",stride={blocks},stripe_width={blocks * width}" if striped else ""
    return [
        "mkfs.ext4",
        "-q",
        "-b",
        str(FILESYSTEM_BLOCK_BYTES),
        "-L",
        layout.label,
        "-U",
        fs_uuid,
        "-E",
        extended,
        path,
    ]


class Construction:
    """One building, step by step; `seconds_max` bounds each long wait (format, sanitize, resync)."""

    def __init__(
        self, machine: Machine, layout: Layout, state_file: str, state: dict[str, Any], seconds_max: int
    ) -> None:
        self.machine, self.layout = machine, layout
        self.state_file, self.state = state_file, state
        self.seconds_max = float(seconds_max)
        self.noted_at = 0.0
        self.planted: dict[int, tuple[bytes, int]] = {}  # by the drive's index: seed of its marks, size

    def note(self, text: str) -> None:
        """Put the progress on disk, where somebody who waits can read it, and into the system's log."""
        self.state["progress"] = text
        memory.save(self.state_file, self.state)
        self.machine.log(f"storage {self.layout.target}: {text}")

    def wait(self, holds: Callable[[], bool], progress: Callable[[], str]) -> None:
        """Wait for a drive or an array, noting how far it is."""

        def look() -> bool:
            if time.monotonic() - self.noted_at >= PROGRESS_NOTE_S:
                self.noted_at = time.monotonic()
                self.note(progress())
            return holds()

        self.machine.wait_until(look, self.seconds_max, f"target {self.layout.target}: {progress()}", POLL_S)

    def run(self, drives: list[Drive]) -> None:
        """Do everything; on return the target is mounted."""
        for index, drive in enumerate(drives):
            self.begin(index, drive)
        for index, drive in enumerate(drives):
            if self.layout.purge == "sanitize":
                self.await_sanitize(index, drive)
        path = self.make_array([drive.device.path for drive in drives]) if self.layout.raid else drives[0].device.path
        self.make_filesystem(path)
        self.mount(path)
        self.state["phase"] = memory.COMPLETE
        self.note("complete")

    def confirm(self, index: int, drive: Drive) -> None:
        """Refuse to write to a drive that is no longer what the guard saw."""
        now = find(self.layout.drives[index], self.machine.devices())
        said = [] if (now.path, now.number) == (drive.device.path, drive.device.number) else ["has another name now"]
        facts = usage_of(self.machine, now)
        said += identity_objections(now, facts) + usage_objections(now, facts)
        if said:
            raise StorageError(f"drive {now} changed after it was checked, and was left alone: {'; '.join(said)}")

    def begin(self, index: int, drive: Drive) -> None:
        """Take one drive: remove its signatures, set its LBA format, purge it (a sanitize is only started)."""
        self.confirm(index, drive)
        self.state["drives"][index]["touched"] = True
        self.note(f"erasing {drive.device.serial}")
        for device in reversed(drive.device.tree()):  # what lies on the drive before the table that it is found by
            self.machine.erase(device.path)
        self.machine.settle()
        if self.layout.purge != "none":
            self.planted[index] = self.machine.plant_marks(drive.device.path)
        started = time.monotonic()
        self.format(drive)
        if self.layout.purge == "discard":
            self.machine.run(["blkdiscard", drive.device.path], self.seconds_max)
        if self.layout.purge == "sanitize":
            if drive.abilities is None:
                raise AssertionError("the guard has refused other drives")
            action = f"--sanact={drive.abilities.sanitize_action}"
            self.machine.run(["nvme", "sanitize", drive.device.path, action])
            return
        self.purged(index, drive, f"{self.layout.purge} in {time.monotonic() - started:.1f} s")

    def purged(self, index: int, drive: Drive, how: str) -> None:
        """Note that a drive carries nothing of before any more, once that has been looked at."""
        if index in self.planted:
            how += self.proof(index, drive)
        self.state["drives"][index]["purged"] = how
        self.note(f"{self.state['drives'][index]['serial']}: {how}")

    def proof(self, index: int, drive: Drive) -> str:
        """Look for the marks that were written before the purge; after a format or sanitize not one may be left."""
        left, looked = self.machine.surviving_marks(drive.device.path, *self.planted.pop(index))
        if left and self.layout.purge != "discard":
            raise StorageError(
                f"drive {drive.device.serial}: {left} of {looked} marks that were written before the {self.layout.purge} still read"
                " after it: the drive did not do what it said, and its data is still there"
            )
        if not left:
            return f"; 0 of {looked} marks written before it still read"
        return f"; {left} of {looked} marks written before it still read: the discard took nothing or not all away"

    def format(self, drive: Drive) -> None:
        """Format NVM where the LBA format differs or the purge is a format; the two are one command."""
        wanted, now = self.layout.lba_bytes, drive.facts.lba_bytes
        erase = self.layout.purge == "format"
        if not erase and (not wanted or wanted == now):
            return
        if drive.abilities is None:
            raise AssertionError("the guard has refused other drives")
        format_nvm(
            self.machine, drive.device.path, drive.device.name, drive.abilities.format_for(wanted),
            wanted or now, SECURE_ERASE_USER_DATA if erase else 0, self.seconds_max,
        )  # fmt: skip

    def await_sanitize(self, index: int, drive: Drive) -> None:
        """Wait for a sanitize to end well."""
        path, serial = drive.device.path, drive.device.serial
        if drive.abilities is None:
            raise AssertionError("the guard has refused other drives")
        action = drive.abilities.sanitize_action
        started = time.monotonic()

        def over() -> bool:
            log = self.machine.sanitize_log(path)
            if not log.is_of(action):
                return False  # of an earlier one
            if log.status == SANITIZE_FAILED:
                raise StorageError(f"drive {serial}: the sanitize failed; nvme sanitize-log {path} has the reason")
            return log.completed

        self.wait(over, lambda: f"sanitizing {serial}: {self.machine.sanitize_log(path).done:.0%}")
        self.purged(index, drive, f"sanitize in {time.monotonic() - started:.1f} s")

    def make_array(self, paths: list[str]) -> str:
        """Make the array and wait until it will not work by itself any more; return its device file."""
        self.note("making the array")
        self.machine.run(create_command(self.layout, paths, self.state["array"]["uuid"]))
        self.machine.settle()
        path = os.path.realpath(f"/dev/md/{self.layout.array_name}")
        name = os.path.basename(path)
        speed = self.machine.block(name, "md", "sync_speed_max")
        if os.path.exists(speed) and self.machine.array_value(name, "sync_action") != "idle":
            with open(speed, "w", encoding="ascii") as stream:
                stream.write(str(RESYNC_KIB_PER_S_MAX))
            self.wait(
                lambda: self.machine.array_value(name, "sync_action") == "idle",
                lambda: f"synchronising the array: {self.machine.array_value(name, 'sync_completed')} sectors",
            )
        degraded = self.machine.array_value(name, "degraded")
        if degraded not in ("", "0"):
            raise StorageError(
                f"array {path} lacks {degraded} member(s) after it was made; the system's log has the reason"
            )
        # Without a purge, a file system of an array that the drives were in before may come to light again.
        self.machine.erase(path)
        return path

    def make_filesystem(self, path: str) -> None:
        """Make the file system."""
        self.note(f"making the file system on {path}")
        self.machine.run(mkfs_command(self.layout, path, self.state["filesystem"]["uuid"]), self.seconds_max)
        self.machine.settle()

    def mount(self, path: str) -> None:
        """Mount it, until the next reboot only, and give the folder to the user that the bench runs as."""
        missing, parent = [], self.layout.directory
        while not os.path.isdir(parent):
            missing.append(parent)
            parent = os.path.dirname(parent)
        self.state["mount"]["made"] = missing  # deepest first
        self.note(f"mounting {path}")
        mount(self.machine, self.layout, path)
        owner, group = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
        if owner.isdigit() and group.isdigit():  # Ansible became root by sudo: the load runs as that user
            os.chown(self.layout.directory, int(owner), int(group))


def mount(machine: Machine, layout: Layout, path: str) -> None:
    """Mount the target's file system at its directory."""
    os.makedirs(layout.directory, mode=0o755, exist_ok=True)
    machine.run(["mount", "-t", layout.filesystem, "-o", "noatime", path, layout.directory])


def format_nvm(
    machine: Machine, path: str, name: str, index: int, lba_bytes: int, erase: int, seconds_max: float
) -> None:
    """Run Format NVM and wait until the kernel sees the new block size. nvme-cli itself would wait 10 s for a Ctrl-C."""
    command = ["nvme", "format", path, f"--lbaf={index}", f"--ses={erase}", "--force"]
    machine.run([*command, f"--timeout={seconds_max * 1000:.0f}"], seconds_max + 5)
    machine.wait_until(
        lambda: machine.queue_number(name, "logical_block_size") == lba_bytes,
        SETTLE_S_MAX,
        f"{path}: the kernel sees logical blocks of {lba_bytes} B after nvme format",
    )
    machine.settle()
