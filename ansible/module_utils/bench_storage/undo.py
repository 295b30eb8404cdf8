"""Undoes what was built for one target: unmount, stop the array, erase signatures, put the LBA format back.

Promises: touches only the drives that the state names, only those that building had begun to write to, and of these
only what the bench itself put there (recognised by the UUIDs in the state); anything else is refused and told. The data
from before the bench is gone and stays gone. Can be interrupted and run again at any point.
Runs on the candidate: Python 3.9, standard library only.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ansible.module_utils.bench_lsblk import Device, everything
from ansible.module_utils.bench_storage import memory
from ansible.module_utils.bench_storage.construct import format_nvm
from ansible.module_utils.bench_storage.devices import Mount
from ansible.module_utils.bench_storage.errors import StorageError
from ansible.module_utils.bench_storage.guard import find, usage_objections
from ansible.module_utils.bench_storage.layout import Wanted
from ansible.module_utils.bench_storage.machine import Machine
from ansible.module_utils.bench_storage.survey import usage_of, uuid_digits

USERS_NAMED_MAX = 5
FORMAT_S_MAX = 600.0


def record(
    target: str, what: str, subject: str, status: str, before: str = "", now: str = "", detail: str = ""
) -> dict[str, str]:
    """Return one record in the form of facts/tuning.json."""
    return {
        "id": f"storage-{what}", "role": "storage", "subject": f"{target}: {subject}", "asked": "as before the bench",
        "before": before, "applied": now if status == "applied" else "", "read_back": now, "status": status,
        "detail": detail,
    }  # fmt: skip


def users_of(directory: str) -> str:
    """Name a few processes that have something open below a directory."""
    found: dict[str, str] = {}
    for link in glob.glob("/proc/[0-9]*/cwd") + glob.glob("/proc/[0-9]*/fd/*"):
        try:
            path = os.readlink(link)
        except OSError:  # it ended meanwhile, or closed the file
            continue
        if path == directory or path.startswith(directory + "/"):
            pid = link.split("/")[2]
            found[pid] = f"{path} by process {pid}"
    return "; ".join(list(found.values())[:USERS_NAMED_MAX])


@dataclass
class Undoing:
    """One pass; `pretend` (check mode) only tells."""

    machine: Machine
    state_file: str
    state: dict[str, Any]
    pretend: bool = False
    records: list[dict[str, str]] = field(default_factory=list)
    changed: bool = False

    def run(self) -> None:
        """Undo step by step; one that fails is a record `refused`, and the state stays. A drive's keeps no other from its turn."""
        if not self.pretend:
            self.state["phase"] = memory.UNDOING
            memory.save(self.state_file, self.state)
        steps: list[tuple[str, str, Callable[[], None]]] = [
            ("mount", self.state["mount"]["directory"], self.unmount),
            ("array", "md", self.stop_array),
        ]
        steps += [
            ("drive", drive["serial"], partial(self.clear, drive)) for drive in self.state["drives"] if drive["touched"]
        ]
        steps.append(("directory", self.state["mount"]["directory"], self.remove_directories))
        for what, subject, step in steps:
            try:
                step()
            except (StorageError, OSError) as error:
                self.tell(what, subject, "refused", detail=str(error))
                if what != "drive":
                    return
        if not self.pretend and all(entry["status"] not in ("refused", "unsupported") for entry in self.records):
            memory.forget(self.state_file)

    def tell(self, what: str, subject: str, status: str, before: str = "", now: str = "", detail: str = "") -> None:
        """Add a record."""
        if self.pretend and status == "applied":
            detail = "check mode: would be done"
        self.records.append(record(self.state["target"], what, subject, status, before, now, detail))
        self.changed = self.changed or status == "applied"

    def is_own_filesystem(self, device: Device) -> bool:
        """Says whether a device carries the file system that the bench made."""
        return uuid_digits(self.machine.filesystem_uuid(device.path)) == uuid_digits(self.state["filesystem"]["uuid"])

    def is_own_mount(self, mount: Mount, device: Device) -> bool:
        """Says whether the mounted file system is the bench's. One that a failed drive makes unreadable is, by its place."""
        uuid = self.machine.filesystem_uuid(device.path)
        if uuid:
            return uuid_digits(uuid) == uuid_digits(self.state["filesystem"]["uuid"])
        return mount.directory == self.state["mount"]["directory"]

    def is_own_array(self, device: Device) -> bool:
        """Says whether a device is the array that the bench made."""
        return uuid_digits(self.machine.array_uuid(device.path)) == uuid_digits(self.state["array"]["uuid"])

    def is_own(self, device: Device) -> bool:
        """Says whether what a drive carries is the bench's: its array's superblock, or its file system."""
        if self.state["array"] is None:
            return self.is_own_filesystem(device)
        return uuid_digits(self.machine.member_uuid(device.path)) == uuid_digits(self.state["array"]["uuid"])

    def on_drives(self) -> list[Device]:
        """Return what is on the remembered drives that are there; nothing else is even looked at."""
        serials = {drive["serial"] for drive in self.state["drives"] if drive["touched"]}
        roots = [root for root in self.machine.devices() if root.serial in serials]
        return list(everything(roots).values())

    def unmount(self) -> None:
        """Unmount the bench's file system wherever it is mounted, also where its drive was pulled."""
        devices = {device.number: device for device in self.on_drives()}
        there = {device.number for root in self.machine.devices() for device in root.tree()}
        for mount in reversed(self.machine.mounts()):
            device = devices.get(mount.number)
            lost = mount.directory == self.state["mount"]["directory"] and mount.number not in there
            if not lost and (device is None or not self.is_own_mount(mount, device)):
                continue
            if not self.pretend:
                try:
                    self.machine.run(["umount", mount.directory])
                except StorageError as error:
                    users = users_of(mount.directory)
                    raise StorageError(f"{error}. In use: {users or 'by the kernel or another mount'}") from error
            what = f"{mount.filesystem} on {device.path if device else 'a drive that is gone'}"
            self.tell("mount", mount.directory, "applied", what, "unmounted")

    def stop_array(self) -> None:
        """Stop the bench's array; also what the system assembles, inactive, of a member that was pulled and is back (`md` to lsblk)."""
        if self.state["array"] is None:
            return
        for device in self.on_drives():
            if not device.type.startswith(("raid", "md")) or not self.is_own_array(device):
                continue
            if not self.pretend:
                self.machine.run(["mdadm", "--stop", device.path])
                self.machine.settle()
            self.tell("array", device.path, "applied", f"{device.type} {self.state['array']['name']}", "stopped")

    def clear(self, drive: dict[str, Any]) -> None:
        """Erase the bench's signatures from one drive and put its LBA format back."""
        serial = drive["serial"]
        try:
            device = find(Wanted(serial, drive["wwn"]), self.machine.devices())
        except StorageError as error:
            detail = f"not erased: {error}. It is remembered: run restore again when the drive is back"
            self.tell("drive", serial, "unsupported", detail=detail)
            return
        before = self.refuse_foreign(drive, device)
        lba_bytes = self.machine.queue_number(device.name, "logical_block_size")
        put_back = drive["lba_bytes_before"] if drive["lba_bytes_before"] != lba_bytes else 0
        if not before and not put_back:
            return
        if not self.pretend:
            for part in reversed(device.tree()):
                self.machine.erase(part.path)
            self.machine.settle()
            if put_back:
                index = self.machine.nvme_abilities(device.path).format_for(put_back)
                format_nvm(self.machine, device.path, device.name, index, put_back, 0, FORMAT_S_MAX)
        now = "no signature" + (f", logical blocks of {put_back} B" if put_back else "")
        detail = "the data from before the bench is gone"
        self.tell("drive", f"{serial} ({device.path})", "applied", ", ".join(before), now, detail)

    def refuse_foreign(self, drive: dict[str, Any], device: Device) -> list[str]:
        """Return the signatures to erase; StorageError where the drive is in use or carries what is not the bench's."""
        facts = usage_of(self.machine, device)
        said = [] if self.pretend else usage_objections(device, facts)
        if device.size_bytes != drive["size_bytes"]:
            said.append(f"has {device.size_bytes} B, had {drive['size_bytes']} B")
        found = [f"{kind} on {name}" for name, kinds in facts.signatures.items() for kind in kinds]
        # Before the purge was done, what it was to erase may still be there, and the consent to erase it stands.
        if found and drive["purged"] and not self.is_own(device):
            said.append(
                f"carries {', '.join(found)}, which the bench did not put there: nothing was erased. If it may go,"
                f" wipefs --all {device.path}; then run restore again"
            )
        if said:
            raise StorageError(f"drive {device}: {'; '.join(said)}")
        return found

    def remove_directories(self) -> None:
        """Remove the folders that were made for the mount point, if they are empty."""
        for directory in self.state["mount"]["made"]:
            if not os.path.isdir(directory):
                continue
            if os.listdir(directory) and not self.pretend:
                self.tell("directory", directory, "unchanged", now="kept", detail="it is not empty, so it was kept")
                return
            if not self.pretend:
                os.rmdir(directory)
            self.tell("directory", directory, "applied", "a folder", "removed")
