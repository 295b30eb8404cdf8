"""The guard of a whole drive that a run may overwrite, and what is done to it under that guard.

Promises: a drive is found by its serial or WWN, and nothing is written to it unless it is a whole drive that nothing uses, that no set
of drives claims, that the inventory consents to lose, and that daqwriter's own interlock accepts. The drive is then claimed (O_EXCL:
no mount, RAID or daqwriter can take it) and looked at again; a command is started by replacing this program, so that the
claim lasts exactly as long as the command does.

`check SERIAL DESTROY DAQWRITER`; `run SERIAL DESTROY DAQWRITER PATH COMMAND ...`, PATH being where the command will write; `purge SERIAL
DESTROY DAQWRITER METHOD`; `release SERIAL DESTROY DAQWRITER`. DESTROY is yes or no; DAQWRITER is empty where the program is not on the
candidate yet. Prints {result} or {error}; `run` prints what the command prints, and leaves with REFUSED when the guard refuses."""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import stat
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

REFUSED = 77  # exit status of `run` when the command was not started
TOOL_S_MAX = 240  # ends a hang; the caller's limit is longer
COLUMNS = "NAME,KNAME,PATH,TYPE,SIZE,RO,SERIAL,WWN,FSTYPE,LABEL,UUID,PARTUUID,PARTLABEL,MOUNTPOINT"
BLKDISCARD, BLKRRPART, BLKSSZGET = 0x1277, 0x125F, 0x1268  # linux/fs.h
DISCARD_STEP_BYTES = 2**36
END_BYTES = 2**20  # of a drive's start and end: every signature that libblkid knows lies in there
SAMPLES, SAMPLE_BYTES = 64, 4096
LEAST_RECORD = ("--duration=0.01", "--links=1", "--ring-size=1MiB", "--block-size=4KiB")
# Signatures of sets: other drives, perhaps of another machine, belong to them, so that consent to lose one drive's data says too little.
SETS = (
    "linux_raid_member",
    "isw_raid_member",
    "ddf_raid_member",
    "LVM2_member",
    "zfs_member",
    "bcache",
    "ceph_bluestore",
    "drbd",
)


class RefusalError(Exception):
    """Why the drive is not written to."""


def said(*argv: str) -> str:
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, timeout=TOOL_S_MAX).stdout.decode(
        "utf-8", "replace"
    )


def tree(node: dict[str, Any]) -> list[dict[str, Any]]:
    """The device and everything on it."""
    return [node, *(below for child in node.get("children", []) for below in tree(child))]


def find(serial: str, roots: list[dict[str, Any]]) -> dict[str, Any]:
    """The one whole drive with this serial or WWN, of lsblk's roots."""
    same = [
        node for node in roots if serial and serial in ((node["serial"] or "").strip(), (node["wwn"] or "").strip())
    ]
    if not same:
        there = ", ".join(
            f"{node['path']} {node['serial'].strip()}" for node in roots if (node["serial"] or "").strip()
        )
        raise RefusalError(
            f"no drive has the serial {serial}; this machine has: {there or 'none with a serial'}. Correct drive_serial"
        )
    if len(same) > 1:
        there = ", ".join(f"{node['path']} (wwn {node['wwn'] or 'none'})" for node in same)
        raise RefusalError(
            f"{len(same)} devices have the serial {serial}: {there}. Name the WWN of one as drive_serial"
        )
    return same[0]


def signatures(drive: dict[str, Any]) -> dict[str, list[str]]:
    """By device name, what libblkid finds on the drive and on its partitions now (not what udev remembers)."""
    found = {}
    for node in tree(drive):
        if node["type"] in ("disk", "part"):
            types = said("wipefs", "--noheadings", "--output", "TYPE", node["path"]).split()
            if types:
                found[node["kname"]] = types
    return found


def names_of(node: dict[str, Any]) -> set[str]:
    """How fstab may call the device."""
    keys = (("uuid", "UUID"), ("label", "LABEL"), ("partuuid", "PARTUUID"), ("partlabel", "PARTLABEL"))
    names = {f"{word}={node[key]}" for key, word in keys if node[key]}
    return names | {f"/dev/disk/by-{word.lower()}/{node[key]}" for key, word in keys if node[key]} | {node["path"]}


def objections(
    drive: dict[str, Any], found: dict[str, list[str]], consent: bool, fstab: str, command_line: str
) -> list[str]:
    """Everything that speaks against writing to the drive. Pure. Consent overrides only the last: that something would be lost."""
    texts = []
    if drive["type"] != "disk":
        texts.append(f"it is a {drive['type']}, not a whole drive")
    if drive["ro"] in (True, 1, "1"):
        texts.append("it is read-only")
    named = {
        line.split()[0].replace('"', "")
        for line in fstab.splitlines()
        if line.strip() and not line.lstrip().startswith("#")
    }
    named |= {word.split("=", 1)[1] for word in command_line.split() if word.startswith(("root=", "resume="))}
    for node in tree(drive):
        name = node["kname"]
        if node["mountpoint"]:
            use = (
                "swap space in use: swapoff it"
                if node["mountpoint"] == "[SWAP]"
                else f"mounted at {node['mountpoint']}: unmount it"
            )
            texts.append(f"{name} is {use}")
        if node["type"] not in ("disk", "part"):
            texts.append(f"it is held by {name} ({node['type']}): stop or remove that first")
        if names_of(node) & named:
            texts.append(f"{name} is named by /etc/fstab or the kernel's command line: it belongs to this system")
        sets = [kind for kind in found.get(name, []) if kind in SETS]
        if sets:
            texts.append(
                f"{name} belongs to a set of drives ({', '.join(sets)}): take it out of that set and wipe it first"
            )
    if not consent:
        held = ", ".join(f"{'/'.join(types)} on {name}" for name, types in sorted(found.items()))
        held = held or "no known signature (which does not mean no data)"
        texts.append(f"it holds {held}, and there is no consent to lose it: write destroy: true into the target")
    return texts


class Drive:
    """A drive that passed the guard. `path` is its device node, claimed from `claim` on."""

    def __init__(self, serial: str, consent: bool, daqwriter: str) -> None:
        roots = json.loads(said("lsblk", "--json", "--bytes", "--output", COLUMNS))["blockdevices"]
        node = find(serial, roots)
        self.serial, self.path, self.size_bytes = serial, str(node["path"]), int(node["size"])
        self.fd = -1
        self.signatures = signatures(node)
        self._namespaces = sum(1 for root in roots if node["serial"] and root["serial"] == node["serial"])
        fstab, command_line = (
            Path(file).read_text(encoding="utf-8") if Path(file).exists() else ""
            for file in ("/etc/fstab", "/proc/cmdline")
        )
        texts = objections(node, self.signatures, consent, fstab, command_line)
        if texts:
            raise RefusalError(f"drive {serial} ({self.path}) is not written to: {'; '.join(texts)}")
        self._number = Path(self.path).stat().st_rdev
        if daqwriter:
            self._ask(daqwriter, consent)

    def _ask(self, daqwriter: str, consent: bool) -> None:
        """daqwriter's own interlock, by a dry run."""
        argv = [
            daqwriter,
            "minidaq",
            "--dry-run",
            f"--target={self.path}",
            f"--allow-serial={self.serial}",
            *LEAST_RECORD,
        ]
        argv += [f"--destroy={self.serial}"] if consent else []
        asked = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=TOOL_S_MAX, check=False)
        if asked.returncode != 0:
            raise RefusalError(
                f"daqwriter refuses drive {self.serial}: {asked.stderr.decode('utf-8', 'replace').strip()}"
            )

    def claim(self) -> None:
        """Holds the drive from now on; what was examined is what is held."""
        try:
            self.fd = os.open(self.path, os.O_RDWR | os.O_EXCL)
        except OSError as error:
            raise RefusalError(
                f"drive {self.serial} ({self.path}) cannot be claimed: {error.strerror}; something uses it"
            ) from None
        status = os.fstat(self.fd)
        if not stat.S_ISBLK(status.st_mode) or status.st_rdev != self._number:
            raise RefusalError(f"{self.path} became another device while it was examined; run again")

    def facts(self) -> dict[str, Any]:
        return {"path": self.path, "size_bytes": self.size_bytes, "signatures": self.signatures}

    def logical_block_bytes(self) -> int:
        return int(struct.unpack("i", fcntl.ioctl(self.fd, BLKSSZGET, b"\0" * 4))[0])

    def purge(self, method: str) -> dict[str, Any]:
        """Gives every block back to the drive; says what then reads as zeros."""
        if method == "discard":
            self._discard()
            tool = "BLKDISCARD"
        else:
            tool = self._format()
        return {"tool": tool, "size_bytes": self.size_bytes, "zero_share": self._zero_share(), "samples": SAMPLES}

    def _discard(self) -> None:
        for start in range(0, self.size_bytes, DISCARD_STEP_BYTES):
            length = min(DISCARD_STEP_BYTES, self.size_bytes - start)
            try:
                fcntl.ioctl(self.fd, BLKDISCARD, struct.pack("QQ", start, length))
            except OSError as error:
                raise RefusalError(
                    f"drive {self.serial} cannot discard its blocks ({error.strerror}), so that it cannot be purged that way. "
                    "Ask for purge: format (NVMe)"
                ) from None

    def _format(self) -> str:
        """NVMe Format with erasure of the user data, in the LBA format that is in force."""
        if self._namespaces != 1:
            raise RefusalError(
                f"drive {self.serial} has {self._namespaces} namespaces, and format may erase all. Ask for purge: discard"
            )
        argv = ["nvme", "format", self.path, "--ses=1", "--force"]
        try:
            done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        except FileNotFoundError:
            raise RefusalError("nvme-cli is not on this candidate. Install it, or ask for purge: discard") from None
        if done.returncode != 0:
            raise RefusalError(
                f"drive {self.serial} cannot be formatted: {done.stdout.decode('utf-8', 'replace').strip()}. Ask for purge: discard"
            )
        return " ".join(argv)

    def _zero_share(self) -> float:
        """Share of evenly spread places that read back as zeros, past the page cache."""
        fd = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
        try:
            with mmap.mmap(-1, SAMPLE_BYTES) as page:
                zeros = 0
                for number in range(SAMPLES):
                    offset = (self.size_bytes - SAMPLE_BYTES) * number // (SAMPLES - 1) // SAMPLE_BYTES * SAMPLE_BYTES
                    page[:] = b"\xff" * SAMPLE_BYTES
                    os.preadv(fd, [page], offset)
                    zeros += page[:] == b"\0" * SAMPLE_BYTES
        finally:
            os.close(fd)
        return zeros / SAMPLES

    def release(self) -> dict[str, Any]:
        """Leaves nothing that could be taken for a file system, an array or a partition table: both ends are zeroed and read back."""
        zeros = b"\0" * END_BYTES
        for offset in (0, max(0, self.size_bytes - END_BYTES)):
            os.pwrite(self.fd, zeros[: self.size_bytes], offset)
        os.fsync(self.fd)
        try:
            fcntl.ioctl(self.fd, BLKRRPART)
        except OSError as error:
            partitions = error.strerror
        else:
            partitions = "read again"
        left = said("wipefs", "--noheadings", "--output", "TYPE", self.path).split()
        if left:
            raise RefusalError(
                f"drive {self.serial} still carries {', '.join(left)} after both its ends were zeroed. Wipe it by hand (wipefs --all)"
            )
        return {
            "path": self.path,
            "size_bytes": self.size_bytes,
            "signatures_before": self.signatures,
            "partition_table": partitions,
        }


def main(arguments: list[str]) -> dict[str, Any]:
    command, serial, destroy, daqwriter, *more = arguments
    try:
        drive = Drive(serial, destroy == "yes", daqwriter)
        if command == "check":
            return {"result": drive.facts()}
        if command == "run" and more[0] != drive.path:
            raise RefusalError(
                f"drive {serial} is {drive.path} now, and the command would write to {more[0]}, which is another: run again"
            )
        drive.claim()
        if command == "purge":
            return {"result": drive.purge(more[0])}
        if command == "release":
            return {"result": drive.release()}
        os.set_inheritable(drive.fd, True)  # the claim passes to the command
        os.execvp(more[1], more[1:])
    except RefusalError as error:
        return {"error": str(error)}
    except (OSError, subprocess.SubprocessError) as error:
        return {"error": f"drive {serial}: {error}"}
    raise AssertionError("os.execvp does not return")


if __name__ == "__main__":
    answer = main(sys.argv[1:])
    if sys.argv[1] == "run":
        print(answer["error"], file=sys.stderr)
        sys.exit(REFUSED)
    print(json.dumps(answer))
