"""The way to a candidate as its inventory writes it: Ansible's variables in its entry and its groups, checked without Ansible, since a
template may run commands, and the files that an entry names.

The names are those of ansible-core's ssh and local connection, of sudo and su, and of its POSIX shell
(https://docs.ansible.com/ansible/latest/reference_appendices/special_variables.html#connection-variables, and each plugin's page)."""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import ProfileError
from daq_bench.bench_model.base.nearest import nearest
from daq_bench.bench_model.profiles.yaml_source import Key, YamlSource

LOCAL, SSH = "local", "ssh"
# All that Ansible takes for the two; smart is its older name for ssh.
KINDS = {LOCAL: LOCAL, SSH: SSH, "smart": SSH, "ansible.builtin.local": LOCAL, "ansible.builtin.ssh": SSH}
TEMPLATE_MARKS = ("{{", "{%", "{#")  # Jinja's

# Texts that are plain names in a path, a host pattern of Ansible and a command line, and nothing else there.
PLAIN = {
    "name": re.compile(r"\w[\w.-]{0,252}"),  # letters of any script
    "ansible_host": re.compile(r"[A-Za-z0-9:][A-Za-z0-9.:_%-]{0,252}"),
    "ansible_user": re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\\$-]{0,252}"),
}

ANSIBLE = "ansible_"
_NAMES = """
    connection host user port timeout pipelining password private_key_file private_key_passphrase module_compression network_os
    connection_user control_path control_path_dir host_key_checking docker_extra_args
    shell_type shell_executable shell_allow_world_readable_temp remote_tmp async_dir system_tmpdirs common_remote_group admin_users
    python_interpreter perl_interpreter ruby_interpreter interpreter_python_fallback python_module_rlimit_nofile facts_modules
    no_target_syslog target_log_info deprecation_warnings verbosity connection_path
    ssh_pass ssh_password ssh_password_mechanism ssh_private_key_file ssh_private_key_passphrase ssh_common_args ssh_extra_args
    ssh_executable ssh_host_key_checking ssh_pipelining ssh_pkcs11_provider ssh_retries ssh_timeout ssh_transfer_method ssh_use_tty
    ssh_verbosity sshpass_prompt scp_executable scp_extra_args sftp_executable sftp_extra_args sftp_batch_mode
    local_become_strip_preamble local_become_success_timeout
    become become_method become_user become_pass become_password become_exe become_flags
    sudo_user sudo_pass sudo_exe sudo_flags sudo_chdir su_user su_pass su_exe su_flags su_prompt_l10n
"""
# Ansible would go this way, and the bench's own ssh another: it reads the second name alone.
INSTEAD = {
    "ansible_ssh_host": "ansible_host",
    "ansible_ssh_user": "ansible_user",
    "ansible_ssh_port": "ansible_port",
    "ansible_ssh_args": "ansible_ssh_common_args",
    "ansible_ssh_private_key": "ansible_ssh_private_key_file",
    "ansible_private_key": "ansible_private_key_file",
}
BENCH = (
    "bench_candidate", "bench_become", "bench_packages_dir", "bench_install_packages", "bench_bmc_password", "bench_influxdb",
    "bench_signing", "bench_nightly", "bench_analysis_wheels",
)  # fmt: skip
# Variables of plugins that the bench does not use, for a machine that other playbooks reach by them.
OF_OTHERS = tuple(
    f"{ANSIBLE}{plugin}_"
    for plugin in (
        "winrm",
        "psrp",
        "paramiko",
        "docker",
        "podman",
        "httpapi",
        "network",
        "netconf",
        "libssh",
        "runas",
        "win",
        "aws_ssm",
    )
)
KNOWN = (*(f"{ANSIBLE}{name}" for name in _NAMES.split()), *BENCH)
# [P] Shares of equal letters: without ansible_, which all have; and of a whole name whose beginning is misspelt. Names of Ansible's facts
# (ansible_hostname, ansible_user_id) are further away.
ALIKE, ALIKE_WHOLE = 0.75, 0.9
OPTIONAL = (
    "ansible_port",
    "ansible_host",
    "ansible_user",
    "ansible_connection",
)  # to be left out, never without a value
SSH_WORDS = ("ansible_ssh_common_args", "ansible_ssh_extra_args")
KEYS = ("ansible_ssh_private_key_file", "ansible_private_key_file")
VIRTUAL, MADE = "/build/virtual", "`make virtual-up` makes it"
GROUPS: tuple[tuple[str, ...], ...] = (("all", "children", "candidates", "vars"), ("all", "vars"))  # the nearer first


def check_connection(source: YamlSource, at: tuple[str, ...]) -> None:
    """Raises ProfileError for a variable of the entry, or of its groups, that leads nowhere. Templates are Ansible's, and are checked
    once it has expanded them."""
    for place, variables in _variables(source, at):
        for name in variables:
            _check_name(source, (*place, name), str(name))
        for name, text in _plain_texts(source, place, variables):
            _check_text(source, (*place, name), name, text)


def connection_of_entry(source: YamlSource, at: tuple[str, ...]) -> str:
    """LOCAL or SSH, as the entry says it, else the nearest of its groups. A template is taken for SSH: a machine that may be another."""
    said = (
        variables["ansible_connection"] for _, variables in _variables(source, at) if "ansible_connection" in variables
    )
    return KINDS.get(str(next(said, SSH)), SSH)


def _variables(source: YamlSource, at: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    for place in (at, *GROUPS):
        node: Any = source.data
        for key in place:
            node = node.get(key) if isinstance(node, dict) else None
        if isinstance(node, dict):
            yield place, node


def _check_name(source: YamlSource, at: tuple[Key, ...], name: str) -> None:
    if name in INSTEAD:
        wrong = f"the bench's own ssh does not read {name!r}, though Ansible does"
        raise source.error(at, wrong, f"Write {INSTEAD[name]}")
    if near := _meant(name):
        raise source.error(
            at,
            f"there is no variable {name!r}",
            f"{nearest(name, near)} A variable of your own needs a name less like it",
        )


def _meant(name: str) -> list[str]:
    """Known names that this one is a slip for; none for a known one, and for one of the user's own."""
    if name in KNOWN or name.startswith(OF_OTHERS):
        return []
    folded = name.casefold()
    if not folded.startswith(ANSIBLE):
        return difflib.get_close_matches(folded, KNOWN, cutoff=ALIKE_WHOLE)
    endings = [one.removeprefix(ANSIBLE) for one in KNOWN if one.startswith(ANSIBLE)]
    return [f"{ANSIBLE}{one}" for one in difflib.get_close_matches(folded.removeprefix(ANSIBLE), endings, cutoff=ALIKE)]


def _plain_texts(source: YamlSource, place: tuple[str, ...], variables: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in (*OPTIONAL, *SSH_WORDS):
        if name not in variables:
            continue
        if variables[name] is None:
            raise source.error((*place, name), "has no value", "Write one, or remove the line")
        text = str(variables[name])
        if not any(mark in text for mark in TEMPLATE_MARKS):
            yield name, text


def _check_text(source: YamlSource, at: tuple[Key, ...], name: str, text: str) -> None:
    if name in PLAIN and not PLAIN[name].fullmatch(text):
        raise source.error(at, f"{text!r} is no plain host or user", "Give a name or an address alone")
    if name == "ansible_connection" and text not in KINDS:
        wrong = f"the bench reaches no candidate by {text!r}"
        raise source.error(at, wrong, f"Write {SSH}, or {LOCAL} for the machine that the bench runs on")
    if name == "ansible_port" and not (text.isascii() and text.isdecimal() and 0 < int(text) < 2**16):
        raise source.error(at, f"{text!r} is no port", "Give a number from 1 to 65535")
    if name in SSH_WORDS:
        try:
            shlex.split(text)
        except ValueError:
            raise source.error(at, "has a quotation mark without its partner", "Close the quotation") from None


def absent_files(
    source: YamlSource, at: tuple[str, ...], home: Path, environment: Mapping[str, str]
) -> list[ProfileError]:
    """The files that the candidate's entry names and this machine lacks, each with its remedy. `home`: where the BMC's files begin.

    No error: they may be made later, and a file that a template names is Ansible's to find. `{{ inventory_dir }}` alone is known here."""
    return [
        source.error(place, f"there is no file {file}", MADE if f"{VIRTUAL}/" in str(file) else remedy)
        for place, files, remedy in _named_files(source, at, home, environment)
        if not any(map(_may_be_there, files))
        for file in files[:1]
    ]


def _may_be_there(file: Path) -> bool:
    """Also where this user may not look."""
    try:
        return file.exists()
    except OSError as error:
        return isinstance(error, PermissionError)


def _named_files(
    source: YamlSource, at: tuple[str, ...], home: Path, environment: Mapping[str, str]
) -> Iterator[tuple[tuple[Key, ...], list[Path], str]]:
    """Field, the files of which one must be there, and the remedy."""
    variables: dict[str, tuple[tuple[Key, ...], str]] = {}
    for place, some in reversed(list(_variables(source, at))):
        variables.update({str(name): ((*place, name), _expanded(source.file, value)) for name, value in some.items()})
    if connection_of_entry(source, at) == SSH:
        yield from _files_of_ssh(variables)
    if "bench_packages_dir" in variables:
        where, text = variables["bench_packages_dir"]
        yield where, _paths([text], Path.cwd()), "Make this folder and put the candidate's packages into it"
    bmc = source.data
    for key in (*at, "bench_candidate"):
        bmc = bmc[key]
    bmc, where = bmc.get("bmc") or {}, (*at, "bench_candidate", "bmc")
    if "redfish_ca_file" in bmc:
        remedy = "Put the certificate there by which the BMC's can be checked"
        yield (*where, "redfish_ca_file"), _paths([bmc["redfish_ca_file"]], home), remedy
    if "password_file" in bmc and bmc.get("password_env") not in environment:
        remedy = f"Write the BMC's password into it, or set the environment variable {bmc.get('password_env')}"
        yield (*where, "password_file"), _paths([bmc["password_file"]], home), remedy


def _files_of_ssh(
    variables: Mapping[str, tuple[tuple[Key, ...], str]],
) -> Iterator[tuple[tuple[Key, ...], list[Path], str]]:
    remedy = "Name a private key whose public key the candidate knows (`ssh-keygen` makes the two)"
    for name in KEYS:
        if name in variables:
            where, text = variables[name]
            yield where, _of_ssh([text]), remedy
    for name in SSH_WORDS:
        where, text = variables.get(name, ((), ""))
        options = _ssh_options(text)
        if "identityfile" in options:
            yield where, _of_ssh([options["identityfile"]]), remedy
        asks = options.get("stricthostkeychecking", "ask") not in ("no", "off", "accept-new")  # else ssh makes the file
        if "userknownhostsfile" in options and asks:
            files = _of_ssh(shlex.split(options["userknownhostsfile"]))
            yield where, files, "Log in once by hand with the same options and accept the host key"


def _expanded(inventory: Path, value: object) -> str:
    return re.sub(r"\{\{\s*inventory_dir\s*\}\}", lambda _: str(inventory.resolve().parent), str(value))


def _paths(names: Iterable[str], folder: Path) -> list[Path]:
    """Those of the names that say by themselves which file they are: no template, no word that ssh or a shell replaces."""
    told = [
        one for one in names if one and one != "none" and not any(mark in one for mark in (*TEMPLATE_MARKS, "%", "$"))
    ]
    return [Path(os.path.normpath(folder / one)) for one in told]


def _of_ssh(names: Iterable[str]) -> list[Path]:
    return _paths(map(os.path.expanduser, names), Path.cwd())


def _ssh_options(text: str) -> dict[str, str]:
    """The options of ssh's command line that name files, and whether an unknown host key is refused; ssh takes the first of each."""
    found: dict[str, str] = {}
    try:
        words = iter(shlex.split(text))
    except ValueError:  # one that a template would close
        return found
    for word in words:
        if word[:2] == "-i":
            found.setdefault("identityfile", word[2:] or next(words, ""))
        elif word[:2] == "-o":
            name, _, value = re.sub(r"[\s=]+", "=", (word[2:] or next(words, "")).strip(), count=1).partition("=")
            found.setdefault(name.casefold(), value.strip())
    return found
