"""Keeps the storage role's state of one target: `storage-<target>.json` on the candidate.

Promises: on disk (file and folder) before the first destructive step, with the UUIDs that the array and the file system
are going to have, so that after an interruption at any point the role can tell the bench's own data from others';
replaced as a whole. Unlike kernel settings it outlives a reboot, because the data on the drives does.
Runs on the candidate: Python 3.9, standard library only.
"""

from __future__ import annotations

import glob
import os
from typing import Any

from ansible.module_utils.bench_state import SCHEMA_VERSION, replace_whole, stored, sync_folder
from ansible.module_utils.bench_storage.errors import StorageError

BUILDING, COMPLETE, UNDOING = "building", "complete", "undoing"
KEYS = ("target", "phase", "layout", "drives", "array", "filesystem", "mount", "progress")


def path_of(directory: str, target: str) -> str:
    """Return the state file of a target."""
    return os.path.join(directory, f"storage-{target}.json")


def remembered(directory: str) -> list[str]:
    """Return the state files of all targets."""
    return sorted(glob.glob(os.path.join(directory, "storage-*.json")))


def load(path: str) -> dict[str, Any] | None:
    """Return the state, or None where nothing was built; StorageError where it cannot be read."""
    if not os.path.exists(path):
        return None
    remedy = (
        "unmount the target, stop its array and wipefs the drives by hand (docs/own-hardware.md), then remove the file"
    )
    return stored(path, KEYS, StorageError, remedy)


def save(path: str, state: dict[str, Any]) -> None:
    """Replace the file; it and its name are on disk when this returns."""
    replace_whole(path, {"schema_version": SCHEMA_VERSION, **{key: state[key] for key in KEYS}})


def forget(path: str) -> None:
    """Remove the file: nothing of this target is left."""
    os.unlink(path)
    sync_folder(os.path.dirname(path))
