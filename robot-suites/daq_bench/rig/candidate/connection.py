"""The way to a candidate, from Ansible's own variables in its inventory entry, so that Ansible and the rig go the same way."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.profiles.connection_entries import KINDS, LOCAL, PLAIN, SSH

VARIABLES = (
    "ansible_connection",
    "ansible_host",
    "ansible_port",
    "ansible_user",
    "ansible_ssh_private_key_file",
    "ansible_private_key_file",
    "ansible_ssh_common_args",
    "ansible_ssh_extra_args",
    "ansible_python_interpreter",
    "bench_become",
)


@dataclass(frozen=True)
class Connection:
    """`kind` is local or ssh. `options`: words for ssh before the destination. Holds no password: keys only."""

    kind: str
    name: str
    host: str = ""
    user: str = ""
    port: int = 22
    options: tuple[str, ...] = field(default_factory=tuple)
    python: str = "python3"
    become: bool = False

    @property
    def destination(self) -> str:
        return f"{self.user}@{self.host}" if self.user else self.host

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Connection:
        values = json.loads(text)
        return Connection(**{**values, "options": tuple(values["options"])})


def connection_of(inventory: Path, candidate: str) -> Connection:
    """Returns the connection of `candidate`, templates and group variables resolved. Raises BenchError that names file and variable."""
    return _connection(inventory, candidate, variables_of(inventory, candidate, VARIABLES))


def variables_of(inventory: Path, candidate: str, names: Sequence[str]) -> dict[str, Any]:
    """Returns those variables of `names` that `candidate` has, as Ansible resolves them. Raises BenchError that names the file, or the
    folder that Ansible cannot make: it wants one at its import, which commands without a candidate do without."""
    _require_plain(inventory, candidate, "name", candidate)
    # Loading these takes a quarter of a start, and most commands ask for no variable.
    from ansible.errors import AnsibleError

    try:
        from ansible.inventory.manager import InventoryManager
        from ansible.parsing.dataloader import DataLoader
        from ansible.template import Templar
        from ansible.vars.manager import VariableManager
    except AnsibleError as error:
        raise BenchError(
            f"the library of Ansible cannot begin: {error}. Set ANSIBLE_HOME to a folder that may be written"
        ) from None
    try:
        loader = DataLoader()
        manager = InventoryManager(loader=loader, sources=[str(inventory)])
        host = manager.get_host(candidate)
        if host is None:
            raise BenchError(f"{inventory}: has no candidate {candidate!r}")
        variables = VariableManager(loader=loader, inventory=manager).get_vars(host=host)
        templar = Templar(loader=loader, variables=variables)
        return {name: templar.template(variables[name]) for name in names if name in variables}
    except AnsibleError as error:
        raise BenchError(f"{inventory}: the connection of {candidate!r} cannot be read: {error}") from None


def _require_plain(inventory: Path, candidate: str, what: str, text: str) -> str:
    """Returns `text` when no shell, path or command line can take it for more than a name; else raises BenchError."""
    if PLAIN[what].fullmatch(text):
        return text
    raise BenchError(
        f"{inventory}: {candidate}: {what} is {text!r}, which is no plain name. Correct it: a name or an address alone"
    )


def _connection(inventory: Path, candidate: str, found: dict[str, Any]) -> Connection:
    asked = str(found.get("ansible_connection", SSH))
    become = bool(found.get("bench_become", False))
    kind = KINDS.get(asked)
    if kind == LOCAL:
        return Connection(LOCAL, candidate, become=become)
    if kind is None:
        raise BenchError(
            f"{inventory}: {candidate}: ansible_connection is {asked!r}; the bench reaches a candidate by {SSH} or {LOCAL}"
        )
    try:
        port = int(found.get("ansible_port", 22))
    except ValueError:
        port = 0
    if not 0 < port < 2**16:
        raise BenchError(
            f"{inventory}: {candidate}: ansible_port is {found['ansible_port']!r}; give a number from 1 to 65535"
        )
    key = found.get("ansible_ssh_private_key_file") or found.get("ansible_private_key_file")
    options = ["-o", f"IdentityFile={key}", "-o", "IdentitiesOnly=yes"] if key else []
    for name in ("ansible_ssh_common_args", "ansible_ssh_extra_args"):
        options += shlex.split(str(found.get(name, "")))
    user = str(found.get("ansible_user") or "")
    return Connection(
        kind=SSH,
        name=candidate,
        host=_require_plain(inventory, candidate, "ansible_host", str(found.get("ansible_host", candidate))),
        user=_require_plain(inventory, candidate, "ansible_user", user) if user else "",
        port=port,
        options=tuple(options),
        python=str(found.get("ansible_python_interpreter", "python3")),
        become=become,
    )
