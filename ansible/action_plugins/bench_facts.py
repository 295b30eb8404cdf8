"""Writes the documents of `bench_facts` into the run bundle, in Ansible's own process on the control node.

A task that copies a document starts an interpreter twice; a play has up to four documents. Never `changed`: the evidence
of a run is no change of the candidate. In check mode nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.plugins.filter.core import to_nice_json


def write(path: Path, text: str) -> None:
    """Write the file as a whole: what was there before stays until the new one is complete."""
    beside = path.with_name(f".{path.name}.new")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.chmod(0o644)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


class ActionModule(ActionBase):
    """The action `bench_facts`: `directory`, and `documents` by file name."""

    TRANSFERS_FILES = False
    _VALID_ARGS = frozenset({"directory", "documents"})

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Write the documents."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validated, arguments = self.validate_argument_spec(
            {
                "directory": {"type": "path", "required": True},
                "documents": {"type": "dict", "required": True},
            }
        )
        directory, documents = Path(arguments["directory"]), arguments["documents"]
        wrong = [name for name in documents if Path(name).name != name or name in ("", ".", "..")]
        if wrong or not directory.is_absolute():
            named = f"document {wrong[0]!r} is no file name" if wrong else f"directory {directory} is no absolute path"
            raise AnsibleActionFail(f"bench_facts: {named}; nothing was written")
        if not self._task.check_mode:
            try:
                directory.mkdir(mode=0o755, parents=True, exist_ok=True)
                for name, document in documents.items():
                    write(directory / name, to_nice_json(document, indent=2, sort_keys=False) + "\n")
            except OSError as error:
                raise AnsibleActionFail(
                    f"{error.filename or directory} cannot be written: {error.strerror}. Make {directory} writable, or free some space"
                ) from error
        return result | {"changed": False, "written": sorted(documents)}
