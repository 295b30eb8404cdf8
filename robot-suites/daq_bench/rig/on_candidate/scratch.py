"""The run's own folder on the target. Only files that the bench itself names are ever removed from it.

`folder DIRECTORY` (makes sure that it is there), `create DIRECTORY RUN`, `remove FOLDER`, `remove-stale DIRECTORY`; prints {result} or
{error}."""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path
from typing import Any

PREFIX = "daq-bench-"
MARKER = ".daq-storage-bench-scratch"
OWN_FILES = (
    MARKER,
    "workload-*.bin",  # of a workload that has no name of its own here
    "block-scan*.bin",
    "snb-record-*.daq",
    "thread-scan*.bin",
    "daqwriter-write-*.bin",
    "minidaq-scan*",
    "latency-under-load*.daq",
    "steady-state.bin",
    "precondition*.bin",
    "thermal.bin",
    "endurance.bin",
    "saturation.bin",
    "interference-*",
    "raid-vs-3dxp.*",
    "streams-checksum-*/manifest.jsonl",
    "streams-checksum-*/run.*.events",
    "concurrent-analysis-*.img",
    "concurrent-analysis-*/events-*.root",
    "concurrent-analysis-*/set.json",
)
OWN_FOLDERS = ("streams-checksum-*", "concurrent-analysis-*")  # empty by then, or something foreign is in them


FAILED = (errno.EIO, errno.ENODEV, errno.ENXIO, errno.ESHUTDOWN)  # of a file system whose drive is gone


class ForeignFilesError(Exception):
    """The folder holds files that the bench did not put there."""


def create(directory: Path, run_id: str) -> Path:
    """Makes `directory/daq-bench-<run id>` with its marker."""
    scratch = directory / f"{PREFIX}{run_id}"
    scratch.mkdir()
    (scratch / MARKER).touch()
    return scratch


def remove(scratch: Path) -> int:
    """Removes the folder and the bench's files in it; returns the bytes given back. Raises ForeignFilesError."""
    freed = 0
    for pattern in OWN_FILES:
        for file in scratch.glob(pattern):
            freed += file.stat().st_blocks * 512
            file.unlink()
    try:
        for pattern in OWN_FOLDERS:
            for folder in scratch.glob(pattern):
                folder.rmdir()
        scratch.rmdir()
    except FileNotFoundError:
        return freed
    except OSError:
        names = ", ".join(sorted(path.name for path in scratch.iterdir()))
        raise ForeignFilesError(
            f"scratch folder {scratch} holds files that the bench did not make ({names}). Move them away"
        ) from None
    return freed


def remove_stale(directory: Path) -> list[tuple[str, int]]:
    """Removes what killed runs left behind; the caller holds the candidate's lock. Returns (folder, bytes) of each."""
    if not directory.is_dir():
        return []
    stale = [folder for folder in directory.glob(f"{PREFIX}*") if (folder / MARKER).is_file()]
    return [(folder.name, remove(folder)) for folder in stale]


def main(arguments: list[str]) -> dict[str, Any]:
    """Runs one command; a fault that the user can mend comes back as {error}."""
    command, path = arguments[0], Path(arguments[1])
    try:
        if command in ("folder", "create"):
            path.mkdir(parents=True, exist_ok=True)
        if command == "folder":
            return {"result": str(path)}
        if command == "create":
            return {"result": str(create(path, arguments[2]))}
        if command == "remove":
            return {"result": remove(path)}
        return {"result": {"removed": remove_stale(path), "failed": None}}
    except ForeignFilesError as error:
        return {"error": str(error)}
    except OSError as error:
        if command == "remove-stale" and error.errno in FAILED:
            return {"result": {"removed": [], "failed": f"{path}: {error.strerror}"}}
        return {"error": f"{path}: {error.strerror}. Correct target.directory in the inventory"}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
