"""The candidate's memory of how it was before the bench tuned it: ``tuning-before.json``.

Promises: a value once remembered is not overwritten until it was restored or the machine was rebooted
(all settings are of the running kernel only, so a reboot has undone them); the file is replaced as a whole
and is on disk before ``remember`` returns; two plays at once take turns.
Runs on the candidate: Python 3.9, standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

# The parts of a record of facts/tuning.json
FIELDS = ("id", "role", "subject", "asked", "before", "applied", "read_back", "status", "detail")
SCHEMA_VERSION = 1


class StateError(Exception):
    """The state file cannot be used; the text names it and the remedy."""


class State:
    """The remembered values, keyed by setting id; valid for one boot."""

    def __init__(self, path: str, boot_id: str) -> None:
        """Load ``path`` if it exists and stems from the boot ``boot_id``."""
        self.path = path
        self.boot_id = boot_id
        self.settings: dict[str, dict[str, Any]] = {}
        self.stale = False  # the file stems from an earlier boot: nothing of it is in force any more
        if os.path.exists(path):
            self._load()

    def _load(self) -> None:
        remedy = (
            "the values from before tuning are in the run bundles' facts/tuning.json: put them back by hand or reboot,"
            " then remove the file"
        )
        document = stored(self.path, ("boot_id", "settings"), StateError, remedy)
        self.stale = document["boot_id"] != self.boot_id
        if not self.stale:
            self.settings = document["settings"]

    def remember(self, setting_id: str, role: str, subject: str, bracketed: bool, values: dict[str, str]) -> bool:
        """Keep the first value of each path; return whether anything was new."""
        saved = self.settings.setdefault(
            setting_id, {"role": role, "subject": subject, "bracketed": bracketed, "values": {}}
        )
        new = {path: value for path, value in values.items() if path not in saved["values"]}
        saved["values"].update(new)
        return bool(new)

    def of_role(self, role: str) -> list[str]:
        """Return the ids remembered for one role, in the order in which they were applied."""
        return [setting_id for setting_id, saved in self.settings.items() if saved["role"] == role]

    def forget(self, setting_id: str) -> None:
        """Drop a setting that holds its first value again."""
        del self.settings[setting_id]

    def save(self) -> None:
        """Replace the file, or remove it when nothing is left to restore."""
        if not self.settings:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)
            return
        document = {"schema_version": SCHEMA_VERSION, "boot_id": self.boot_id, "settings": self.settings}
        replace_whole(self.path, document)


def stored(path: str, names: Iterable[str], error: type[Exception], remedy: str) -> dict[str, Any]:
    """Return these parts of a state file of this release; raise `error`, which names file and remedy, where they are not there."""
    try:
        with open(path, encoding="utf-8") as stream:
            document = json.load(stream)
        version, parts = document["schema_version"], {name: document[name] for name in names}
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise error(f"{path}: not a readable state file ({problem}); {remedy}") from problem
    if version != SCHEMA_VERSION:
        raise error(
            f"{path}: schema_version is {version}, this release knows {SCHEMA_VERSION};"
            " run restore.yml of the release that wrote it"
        )
    return parts


def replace_whole(path: str, document: dict[str, Any]) -> None:
    """Replace a file that holds one JSON document; it and its name are on disk when this returns."""
    new = f"{path}.new"
    with open(new, "w", encoding="utf-8") as stream:
        json.dump(document, stream, indent=2)
        stream.write("\n")
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(new, path)
    sync_folder(os.path.dirname(path))


def sync_folder(directory: str) -> None:
    """Put a folder's entries on disk."""
    descriptor = os.open(directory or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(directory: str) -> Iterator[None]:
    """Hold the state directory's lock, so that two plays do not interleave read and write."""
    os.makedirs(directory, mode=0o755, exist_ok=True)
    with open(os.path.join(directory, ".lock"), "w", encoding="utf-8") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def tuning_record(setting_id: str, **fields: str) -> dict[str, str]:
    """Return a whole record; fields not given are empty."""
    record = dict.fromkeys(FIELDS, "")
    record.update(id=setting_id, **fields)
    return record
