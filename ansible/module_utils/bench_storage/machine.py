"""The edge: everything that the storage role reads from and does to the machine. Decides nothing.

Tests put another lister or other commands in its place.
Runs on the candidate: Python 3.9, standard library only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ansible.module_utils.bench_lsblk import COMMAND, Device
from ansible.module_utils.bench_storage.devices import (
    Mount,
    is_named,
    parse_fstab,
    parse_lsblk,
    parse_mountinfo,
    parse_root,
    parse_swaps,
    parse_wipefs,
)
from ansible.module_utils.bench_storage.errors import StorageError
from ansible.module_utils.bench_storage.marks import open_exclusively, plant, surviving
from ansible.module_utils.bench_storage.nvme import Abilities, Sanitizing, parse_abilities, parse_sanitize_log

DIRECTORIES = ("/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/sbin")
PACKAGES = {
    "mdadm": "mdadm", "mkfs.xfs": "xfsprogs", "mkfs.ext4": "e2fsprogs", "nvme": "nvme-cli",
    "blkdiscard": "util-linux", "blockdev": "util-linux", "wipefs": "util-linux", "lsblk": "util-linux",
    "mount": "mount", "umount": "mount",
}  # fmt: skip
COMMAND_S_MAX = 120.0
SETTLE_S_MAX = 30.0


def text_of(path: str) -> str:
    """Return a small file's text, stripped; empty where there is none."""
    if not os.path.isfile(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read().strip()


class Machine:
    """This machine. `log` takes a line of progress."""

    def __init__(self, log: Callable[[str], None], sysfs_root: str = "/sys") -> None:
        self.log = log
        self.sysfs_root = sysfs_root

    # commands

    def find(self, command: str) -> str | None:
        """Return a command's path; the tools that matter here are often outside a login's PATH."""
        return shutil.which(command, path=os.pathsep.join((os.environ.get("PATH", ""), *DIRECTORIES)))

    def require(self, commands: list[str]) -> None:
        """Refuse to begin without a command that will be needed."""
        missing = [command for command in commands if self.find(command) is None]
        if missing:
            packages = ", ".join(sorted({PACKAGES.get(command, command) for command in missing}))
            raise StorageError(
                f"this machine lacks {', '.join(missing)}: install {packages}, or set bench_install_packages: true"
            )

    def run_raw(self, argv: list[str], seconds_max: float = COMMAND_S_MAX) -> bytes:
        """Run a command and return what it prints; StorageError quotes its complaint."""
        found = self.find(argv[0])
        if found is None:
            raise StorageError(f"{argv[0]} is not installed (package {PACKAGES.get(argv[0], argv[0])})")
        environment = {**os.environ, "LC_ALL": "C"}
        try:
            done = subprocess.run(
                [found, *argv[1:]], stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds_max,
                env=environment, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise StorageError(f"{' '.join(argv)} did not end within {seconds_max:.0f} s") from error
        if done.returncode != 0:
            said = " ".join((done.stderr or done.stdout).decode(errors="replace").split()) or "no message"
            raise StorageError(f"{' '.join(argv)} failed (exit status {done.returncode}): {said}")
        return done.stdout

    def run(self, argv: list[str], seconds_max: float = COMMAND_S_MAX) -> str:
        """Run a command and return its text."""
        return self.run_raw(argv, seconds_max).decode(errors="replace")

    def settle(self) -> None:
        """Let udev finish with what has just appeared or gone; without udev there is nothing to wait for."""
        if self.find("udevadm") and os.path.exists("/run/udev/control"):
            self.run(["udevadm", "settle", f"--timeout={SETTLE_S_MAX:.0f}"], SETTLE_S_MAX + 5)

    def wait_until(self, holds: Callable[[], bool], seconds_max: float, what: str, pause_s: float = 0.2) -> None:
        """Poll until something holds; StorageError when it does not in time."""
        end = time.monotonic() + seconds_max
        while not holds():
            if time.monotonic() >= end:
                raise StorageError(f"{what}: not within {seconds_max:.0f} s")
            time.sleep(pause_s)

    # what is there

    def devices(self) -> list[Device]:
        """List the block devices."""
        return parse_lsblk(self.run(list(COMMAND)), Path(self.sysfs_root, "block"))

    def mounts(self) -> list[Mount]:
        """List the mounts of this process's namespace, which is the system's."""
        return parse_mountinfo(text_of("/proc/self/mountinfo"))

    def mounts_elsewhere(self, numbers: set[str]) -> dict[str, list[str]]:
        """Return the mounts of these devices (major:minor) in other mount namespaces, by number: each with a process that is in it.

        A container's namespace starts as a copy of the system's, and keeps a drive busy that was unmounted here since.
        """
        seen = {os.readlink("/proc/self/ns/mnt")}
        found: dict[str, list[str]] = {}
        for process in sorted(filter(str.isdigit, os.listdir("/proc")), key=int):
            with suppress(OSError):  # a process that has ended meanwhile holds nothing
                namespace = os.readlink(f"/proc/{process}/ns/mnt")
                if namespace in seen:
                    continue
                there = f"in the mount namespace of process {process} ({text_of(f'/proc/{process}/comm')})"
                for mount in parse_mountinfo(text_of(f"/proc/{process}/mountinfo")):
                    if mount.number in numbers:
                        found.setdefault(mount.number, []).append(f"{mount.directory} {there}")
                seen.add(namespace)
        return found

    def swap_files(self) -> list[str]:
        """Return the real paths of the swap devices in use."""
        return [os.path.realpath(path) for path in parse_swaps(text_of("/proc/swaps"))]

    def names_of(self, device: Device) -> str:
        """Say which part of the system's own configuration names the device; empty where none does."""
        root = parse_root(text_of("/proc/cmdline"))
        if root and is_named(device, root, os.path.realpath(root)):
            return "root= of the kernel's command line"
        for text, directory in parse_fstab(text_of("/etc/fstab")):
            if is_named(device, text, os.path.realpath(text)):
                return f"/etc/fstab ({directory})"
        return ""

    def exclusive_refusal(self, path: str, wait_s: float = 0.0) -> str:
        """Return why the kernel does not give the device exclusively; empty where it does. Writes nothing.

        Another look at the drive (udev's, a second survey's) holds it for an instant: a busy one is asked again for wait_s.
        """
        try:
            os.close(open_exclusively(path, os.O_RDONLY, wait_s))
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def signatures(self, path: str) -> list[str]:
        """Return the types of all signatures on a device, read from the device and not from udev's memory."""
        return sorted(
            {signature["type"] for signature in parse_wipefs(self.run(["wipefs", "--no-act", "--json", path]))}
        )

    def erase(self, path: str) -> None:
        """Erase all signatures; StorageError where they read afterwards, behind the kernel's cache: wipefs succeeds in the cache."""
        self.run(["wipefs", "--all", path])
        self.run(["blockdev", "--flushbufs", path])
        left = self.signatures(path)
        if left:
            raise StorageError(
                f"{path} still carries {', '.join(left)} after wipefs --all: the drive does not take writes (the kernel's log says why)"
            )

    def block(self, name: str, *parts: str) -> str:
        """Return a path below a block device's sysfs directory."""
        return os.path.join(self.sysfs_root, "block", name, *parts)

    def holders(self, name: str) -> dict[str, list[str]]:
        """Return what is made of a drive and of its partitions, straight from sysfs."""
        directory = self.block(name)
        entries = os.listdir(directory) if os.path.isdir(directory) else []
        partitions = [entry for entry in entries if os.path.exists(os.path.join(directory, entry, "partition"))]
        found = {name: os.path.join(directory, "holders")}
        found.update({entry: os.path.join(directory, entry, "holders") for entry in partitions})
        return {part: sorted(os.listdir(path)) for part, path in found.items() if os.path.isdir(path)}

    def queue_number(self, name: str, file: str) -> int:
        """Return a number of the device's queue; 0 where the kernel has none."""
        text = text_of(self.block(name, "queue", file))
        return int(text) if text.isdigit() else 0

    def kernel_serial(self, name: str) -> str:
        """Return the serial that the driver itself gives."""
        return text_of(self.block(name, "device", "serial"))

    def array_value(self, name: str, file: str) -> str:
        """Return one value of an md array."""
        return text_of(self.block(name, "md", file))

    def array_members(self, name: str) -> list[str]:
        """Return the names of an array's members in the order of their slots."""
        slots = {}
        directory = self.block(name, "md")
        for entry in os.listdir(directory) if os.path.isdir(directory) else []:
            slot = text_of(os.path.join(directory, entry, "slot"))
            if entry.startswith("dev-") and slot.isdigit():
                slots[int(slot)] = entry[len("dev-") :]
        return [slots[slot] for slot in sorted(slots)]

    def array_uuid(self, path: str) -> str:
        """Return a running array's UUID as mdadm writes it."""
        lines = self.run(["mdadm", "--detail", "--export", path]).splitlines()
        return next((line[len("MD_UUID=") :] for line in lines if line.startswith("MD_UUID=")), "")

    def member_uuid(self, path: str) -> str:
        """Return the UUID of the array that a member's superblock names; empty where it has none."""
        if "linux_raid_member" not in self.signatures(path):
            return ""
        lines = self.run(["mdadm", "--examine", "--export", path]).splitlines()
        return next((line[len("MD_UUID=") :] for line in lines if line.startswith("MD_UUID=")), "")

    def filesystem_uuid(self, path: str) -> str:
        """Return the UUID of the file system on a device, read from the device; empty where there is none."""
        found = parse_wipefs(self.run(["wipefs", "--no-act", "--json", path]))
        return next((str(entry["uuid"]) for entry in found if entry["type"] in ("xfs", "ext4") and entry["uuid"]), "")

    def is_nvme(self, name: str) -> bool:
        """Says whether the drive takes NVMe commands."""
        return name.startswith("nvme")

    def nvme_abilities(self, path: str) -> Abilities:
        """Ask an NVMe drive what it can do."""
        controller = self.run_raw(["nvme", "id-ctrl", path, "--raw-binary"])
        return parse_abilities(controller, self.run_raw(["nvme", "id-ns", path, "--raw-binary"]))

    def sanitize_log(self, path: str) -> Sanitizing:
        """Ask how a sanitize stands."""
        return parse_sanitize_log(self.run_raw(["nvme", "sanitize-log", path, "--raw-binary"]))

    def plant_marks(self, path: str) -> tuple[bytes, int]:
        """Write marks all over a drive whose data is to go."""
        return plant(path)

    def surviving_marks(self, path: str, seed: bytes, size: int) -> tuple[int, int]:
        """Count the marks that still read."""
        return surviving(path, seed, size)
