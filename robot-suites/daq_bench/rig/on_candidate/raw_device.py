"""Purges a whole drive or gives it back, under the claim of `daqwriter guard`, which starts this program.

`purge SERIAL PATH METHOD`; `release SERIAL PATH`. The claimed descriptor's number stands in DAQWRITER_CLAIM; without it the program does
nothing. Prints {result} or {error}."""

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

from daq_bench.candidate_kit.lsblk import COMMAND, SYS_BLOCK, devices_of
from daq_bench.candidate_kit.tools import said

BLKDISCARD, BLKRRPART, BLKGETSIZE64 = 0x1277, 0x125F, 0x80081272  # linux/fs.h
DISCARD_STEP_BYTES = 2**36
END_BYTES = 2**20  # bytes at a drive's start and end: every signature that libblkid knows lies in there
SAMPLES, SAMPLE_BYTES = 64, 4096
MARK = b"daq-bench purge " * (SAMPLE_BYTES // 16)


class RefusalError(Exception):
    """The drive is not written to, or cannot be treated as asked; the text says why."""


def signatures(path: str) -> list[str]:
    """Returns the types that libblkid finds on the drive now."""
    return said("wipefs", "--noheadings", "--output", "TYPE", path).split()


class Drive:
    """The drive that the guard claimed."""

    def __init__(self, serial: str, path: str) -> None:
        self.serial, self.path = serial, path
        self.fd = int(os.environ.get("DAQWRITER_CLAIM", "-1"))
        try:
            held = os.fstat(self.fd)
        except OSError:
            raise RefusalError(f"drive {serial} is not claimed: start this through `daqwriter guard`") from None
        if not stat.S_ISBLK(held.st_mode) or held.st_rdev != Path(path).stat().st_rdev:
            raise RefusalError(f"{path} is not the device that was claimed; run again")
        self.size_bytes = int(struct.unpack("Q", fcntl.ioctl(self.fd, BLKGETSIZE64, b"\0" * 8))[0])

    def purge(self, method: str) -> dict[str, Any]:
        """Gives every block back to the drive; returns the method, the size and the share that then reads as zeros.

        The sampled places are written to before: on a drive that nobody has used yet, zeros would not show that the purge leaves them."""
        for offset in self._places():
            os.pwrite(self.fd, MARK, offset)
        os.fsync(self.fd)
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
        listed = devices_of(said(*COMMAND), SYS_BLOCK)
        serial = next((one.serial for one in listed if one.path == str(Path(self.path).resolve())), "")
        namespaces = sum(1 for one in listed if serial and one.serial == serial)
        if namespaces != 1:
            raise RefusalError(
                f"drive {self.serial} has {namespaces} namespaces, and format may erase all. Ask for purge: discard"
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

    def _places(self) -> list[int]:
        """Returns the offsets of the sampled places, evenly spread."""
        room = self.size_bytes - SAMPLE_BYTES
        return [room * number // (SAMPLES - 1) // SAMPLE_BYTES * SAMPLE_BYTES for number in range(SAMPLES)]

    def _zero_share(self) -> float:
        """Returns the share of the sampled places that read back as zeros, past the page cache."""
        fd = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
        try:
            with mmap.mmap(-1, SAMPLE_BYTES) as page:
                zeros = 0
                for offset in self._places():
                    page[:] = b"\xff" * SAMPLE_BYTES
                    os.preadv(fd, [page], offset)
                    zeros += page[:] == b"\0" * SAMPLE_BYTES
        finally:
            os.close(fd)
        return zeros / SAMPLES

    def release(self) -> dict[str, Any]:
        """Zeroes both ends and reads them back, so that no file system, array or partition table is found there."""
        before, zeros = signatures(self.path), b"\0" * END_BYTES
        for offset in (0, max(0, self.size_bytes - END_BYTES)):
            os.pwrite(self.fd, zeros[: self.size_bytes], offset)
        os.fsync(self.fd)
        try:
            fcntl.ioctl(self.fd, BLKRRPART)
        except OSError as error:
            partitions = error.strerror
        else:
            partitions = "read again"
        left = signatures(self.path)
        if left:
            raise RefusalError(
                f"drive {self.serial} still carries {', '.join(left)} after both its ends were zeroed. Wipe it by hand (wipefs --all)"
            )
        return {
            "path": self.path,
            "size_bytes": self.size_bytes,
            "signatures_before": before,
            "partition_table": partitions,
        }


def main(arguments: list[str]) -> dict[str, Any]:
    command, serial, path, *more = arguments
    try:
        drive = Drive(serial, path)
        return {"result": drive.purge(more[0]) if command == "purge" else drive.release()}
    except RefusalError as error:
        return {"error": str(error)}
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return {"error": f"drive {serial}: {error}"}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
