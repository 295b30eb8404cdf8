"""Brings files to a candidate in one archive: two calls of a module and one transfer, where a copy of each took six.

The candidate says first which files it lacks or has otherwise; nothing else travels. In check mode nothing does."""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase


def checksum(path: str) -> str:
    """Return the file's SHA-256."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class ActionModule(ActionBase):
    """The action `bench_programs`: `folder` on the candidate; `files`, each with `source` here, `name` there and `mode`."""

    TRANSFERS_FILES = True
    _VALID_ARGS = frozenset({"folder", "files"})

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask what differs, send that, have it put into place."""
        super().run(tmp, task_vars)
        _validated, arguments = self.validate_argument_spec(
            {
                "folder": {"type": "path", "required": True},
                "files": {"type": "list", "elements": "dict", "required": True},
            }
        )
        try:
            files = [
                {"name": one["name"], "mode": one["mode"], "sha256": checksum(one["source"])}
                for one in arguments["files"]
            ]
        except OSError as error:
            raise AnsibleActionFail(
                f"{error.filename} cannot be read: {error.strerror}. Build it (make build), or correct the path"
            ) from error
        wanted = {"folder": arguments["folder"], "files": files}
        result = self._on_candidate(wanted, task_vars)
        if result.get("failed") or not result["differ"] or self._task.check_mode:
            return result
        sources = {one["name"]: one["source"] for one in arguments["files"]}
        folder = self._make_tmp_path()
        try:
            with tempfile.NamedTemporaryFile(dir=constants.DEFAULT_LOCAL_TMP, suffix=".tar") as whole:
                with tarfile.open(fileobj=whole, mode="w") as archive:
                    for name in result["differ"]:
                        archive.add(Path(sources[name]).resolve(), arcname=name, recursive=False)
                whole.flush()
                there = self._connection._shell.join_path(folder, "programs.tar")
                self._transfer_file(whole.name, there)
            self._fixup_perms2((folder, there), execute=False)
            return self._on_candidate({**wanted, "archive": there}, task_vars)
        finally:
            self._remove_tmp_path(folder)

    def _on_candidate(self, arguments: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """Call the module of the same name, also as part of a collection."""
        called: dict[str, Any] = self._execute_module(
            module_name=self._task.action, module_args=arguments, task_vars=task_vars
        )
        return called
