"""The control node's or candidate's memory of how a BMC was before the bench changed it, as one small JSON file.

Promises: on disk before ``save`` returns; replaced as a whole; a damaged or foreign file is refused, never overwritten.
Unlike the kernel's settings these outlive a reboot, so that the file does too.
Python 3.9, standard library only.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

from ansible.module_utils.bench_state import SCHEMA_VERSION, replace_whole, stored


class FirstValuesError(Exception):
    """The file cannot be used; the text names it and the remedy."""


class FirstValues:
    """The values before the first change; ``values`` is empty where nothing was changed yet."""

    def __init__(self, path: str, subject: str) -> None:
        """Load ``path`` if it exists; ``subject`` names the BMC that it must be of."""
        self.path, self.subject = path, subject
        self.values: dict[str, Any] = {}
        if os.path.exists(path):
            self._load()

    def _load(self) -> None:
        remedy = "put the values from before back by hand (they are in the run bundles' facts/tuning.json), then remove the file"
        document = stored(self.path, ("subject", "values"), FirstValuesError, remedy)
        subject, values = document["subject"], document["values"]
        if not isinstance(values, dict):
            raise FirstValuesError(f"{self.path}: not a readable state file (its values are no map); {remedy}")
        if subject != self.subject:
            raise FirstValuesError(
                f"{self.path}: it holds the values of {subject}, the inventory now names {self.subject};"
                " restore with the former entry first, or remove the file if that BMC is gone"
            )
        self.values = values

    def save(self) -> None:
        """Replace the file, or remove it when nothing is left to restore."""
        if not self.values:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)
            return
        os.makedirs(os.path.dirname(self.path), mode=0o755, exist_ok=True)
        document = {"schema_version": SCHEMA_VERSION, "subject": self.subject, "values": self.values}
        replace_whole(self.path, document)
