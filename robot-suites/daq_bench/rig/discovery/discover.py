"""Reaches a server, looks at it and at its BMC, and proposes an entry that the inventory's own loader takes."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from daq_bench.bench_model.base.calling import in_words, typed
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.bench_model.profiles.common import plain
from daq_bench.bench_model.profiles.connection_entries import LOCAL, PLAIN, TEMPLATE_MARKS
from daq_bench.bench_model.profiles.yaml_source import read_yaml
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.connection import connection_of
from daq_bench.rig.candidate.host import check_fit
from daq_bench.rig.candidate.machine import Machine, SshMachine, machine_of
from daq_bench.rig.candidate.ssh import UnreachableError
from daq_bench.rig.discovery.drives import judged
from daq_bench.rig.discovery.firmware import look
from daq_bench.rig.discovery.proposal import Found, inventory_text

TOOLS_FILE = Path("roles/bench_tools/vars/main.yml")
NO_NAMES = ("all", "ungrouped", "candidates")
QUESTION_S_MAX = 60.0
OPTIONS = {  # what the reader typed for a key of the inventory
    "ansible_host": "--host", "ansible_user": "--host", "ansible_ssh_private_key_file": "--key", "ansible_ssh_common_args": "--ssh-args",
    "bmc.address": "--bmc", "bmc.user": "--bmc", "bmc.ipmi_port": "--bmc-ipmi-port", "bmc.redfish_port": "--bmc-redfish-port",
    "bmc.redfish_ca_file": "--bmc-ca-file", "bmc.redfish_fingerprint": "--bmc-fingerprint", "bmc.cipher_suite": "--bmc-cipher-suite",
    "bmc.insecure": "--bmc-insecure", "bmc.vendor": "--bmc-vendor", "bmc.redfish_system": "--bmc-redfish-system",
}  # fmt: skip
VARIABLES = ("--host", "--key", "--ssh-args", "--bmc")  # of `make discover`, which takes the others in DISCOVER_OPTIONS
SET = re.compile(r"\b(" + "|".join(map(re.escape, OPTIONS)) + r")\b(?:: (true|\d+))?")


@dataclass(frozen=True)
class Request:
    """The server to look at. `host`: `local`, or [user@]address; `bmc`: the entry's block without vendor, or nothing."""

    host: str
    name: str = ""
    port: int | None = None
    key: Path | None = None
    ssh_arguments: str = ""
    bmc: dict[str, Any] | None = None


def discover(request: Request, layout: Layout) -> tuple[str, str]:
    """Returns the text of an inventory, and why the BMC that was named is left out of it.

    Raises BenchError that names the option, the server or the BMC, and the remedy."""
    variables = connection_variables(request)
    name = candidate_name(request)
    with reached(variables, name, layout) as machine:
        if as_root(machine, name) and isinstance(machine, SshMachine):
            variables["bench_become"] = True
            machine = machine_of(_connection(variables, name), machine.link.control, layout)
        check_fit(machine, layout, name)
        tools = known_tools(layout)
        seen = machine.call("discovery", *(tool for tool, package in tools.items() if package), timeout_s=300)
    bmc = request.bmc or {}
    found = Found(
        name=name,
        connection=variables,
        host=seen["host"],
        abilities=seen["abilities"],
        places=seen["places"],
        drives=judged(seen["drives"]),
        bmc=bmc,
        firmware=look(layout, name, bmc) if bmc else None,
        packages={tool: tools[tool] for tool in seen["abilities"]["missing_tools"]},
    )
    return checked(inventory_text(found), name), in_options(found.firmware.fault) if found.firmware else ""


def in_options(text: str) -> str:
    """A fault that names keys of the inventory, in what the reader of `discover` can type."""

    def option(key: re.Match[str]) -> str:
        name, value = OPTIONS[key[1]], True if key[2] == "true" else key[2]
        return typed(name, value) if name in VARIABLES else in_words(name, value)

    return SET.sub(option, text)


def checked(text: str, name: str) -> str:
    """The text, once the inventory's loader has taken it. Raises BenchError for a proposal that it would refuse."""
    with tempfile.TemporaryDirectory(prefix="daq-bench-") as folder:
        file = Path(folder) / "proposed.yml"
        file.write_text(text, encoding="utf-8")
        candidate = load_candidate(file, name)
    if any(target.destroy or (target.storage or {}).get("destroy") for target in candidate.targets):
        raise BenchError("the proposal would consent to erase a drive: this is a fault of the bench, please report it")
    return text


def connection_variables(request: Request) -> dict[str, Any]:
    """Ansible's variables of the entry. Raises BenchError for an invalid host, user, key or option."""
    if not request.host.strip():
        raise BenchError(
            f"no server is named. Name it with {typed('--host', 'user@server')}, or {typed('--host', LOCAL)} for this machine"
        )
    if request.host == LOCAL:
        return {"ansible_connection": LOCAL, "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    user, at, host = request.host.rpartition("@")
    if not PLAIN["ansible_host"].fullmatch(host) or (at and not PLAIN["ansible_user"].fullmatch(user)):
        raise BenchError(
            f"{typed('--host', repr(request.host))} is no user@server. Give a name or an address alone, and {typed('--port')} beside it"
        )
    variables: dict[str, Any] = {"ansible_host": host, **({"ansible_user": user} if user else {})}
    if request.port is not None:
        variables["ansible_port"] = request.port
    if request.key is not None:
        if not request.key.is_file():
            raise BenchError(f"{typed('--key', request.key)} is no file: name the private key that lets you in")
        variables["ansible_ssh_private_key_file"] = str(request.key.resolve())
    if request.ssh_arguments:
        try:
            shlex.split(request.ssh_arguments)
        except ValueError:
            raise BenchError(
                f"{typed('--ssh-args', repr(request.ssh_arguments))} has a quotation mark without its end. Close it"
            ) from None
        variables["ansible_ssh_common_args"] = request.ssh_arguments
    for key, value in variables.items():
        if isinstance(value, str) and (not value.isprintable() or any(mark in value for mark in TEMPLATE_MARKS)):
            raise BenchError(
                f"{typed(OPTIONS[key])} would be {value!r}: Ansible would expand the template in it. Choose another path or option"
            )
    return variables


def candidate_name(request: Request) -> str:
    """The name asked for, or the host's as a name of the inventory. Raises BenchError where it cannot be one."""
    name = request.name or request.host.rpartition("@")[2].replace(":", "-").replace("%", "-").lstrip("-.")
    if not PLAIN["name"].fullmatch(name) or name in NO_NAMES:
        raise BenchError(
            f"the candidate's name would be {name!r}: give another with {typed('--name')}, of letters, digits and ._-"
        )
    return name


def _connection(variables: dict[str, Any], name: str) -> Any:
    """The way that a run with this entry will go: it is read from an inventory, as then."""
    with tempfile.TemporaryDirectory(prefix="daq-bench-") as folder:
        file = Path(folder) / "lab.yml"
        YAML(typ="safe").dump({"all": {"children": {"candidates": {"hosts": {name: variables}}}}}, file)
        return connection_of(file, name)


@contextmanager
def reached(variables: dict[str, Any], name: str, layout: Layout) -> Iterator[Machine]:
    """The server's machine; its link is closed at the end. Raises BenchError in ssh's own words."""
    with tempfile.TemporaryDirectory(prefix="daq-bench-") as folder:
        machine = machine_of(_connection(variables, name), Path(folder) / "ssh", layout)
        if not isinstance(machine, SshMachine):
            yield machine
            return
        try:
            machine.link.open()
        except UnreachableError as error:
            remedy = f"Correct {typed('--host')}, {typed('--port')}, {typed('--key')} or {typed('--ssh-args')}"
            raise BenchError(
                f"{error.what.rstrip('.')}. {remedy}; `ssh-keyscan` shows a host key that is not known yet"
            ) from None
        try:
            yield machine
        finally:
            machine.link.close()


def as_root(machine: Machine, name: str) -> bool:
    """Says whether sudo is needed to be root there. Raises BenchError where there is neither root nor Python."""
    asked = machine.run(["id", "-u"], QUESTION_S_MAX)
    if asked.returncode != 0:
        said = " ".join(asked.stderr.split()) or "it printed nothing"
        raise BenchError(f"{name}: its Python cannot be started ({said}): install python3 (3.9 or newer) there")
    if asked.stdout.strip() == "0":
        return False
    if not machine.is_local:
        sudo = machine.run(["sudo", "--non-interactive", "id", "-u"], QUESTION_S_MAX)
        if sudo.returncode == 0 and sudo.stdout.strip() == "0":
            return True
    raise BenchError(
        f"{name}: its drives cannot be examined without root. Let the user become root without a password (sudo), or use "
        f"{typed('--host', 'root@server')}" + ("; for this machine run it as root" if machine.is_local else "")
    )


def known_tools(layout: Layout) -> dict[str, str]:
    """Debian package of each program that the role bench_tools wants on a candidate."""
    known = plain(read_yaml(layout.ansible / TOOLS_FILE).data)["__bench_tools_known"]
    return {name: tool["package"] for name, tool in known.items() if not tool.get("optional")}


def written(text: str, file: Path) -> None:
    """Stores the proposal in a file that was not there. Raises BenchError: an inventory is never overwritten."""
    try:
        with file.open("x", encoding="utf-8") as stream:
            try:
                stream.write(text)
                stream.flush()
            except OSError:
                file.unlink()  # a part of it would stand in the way of the next
                raise
    except FileExistsError:
        raise BenchError(
            f"{file} is there already and was not touched: choose another {typed('--out')}, and merge the two by hand"
        ) from None
    except OSError as error:
        raise BenchError(f"{file} cannot be written: {error.strerror}. Choose another {typed('--out')}") from None
