"""The way to a candidate as its inventory writes it: slips in the names of variables, ways that the bench cannot go, absent files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ansible
import pytest
from ansible import constants
from ruamel.yaml import YAML

from daq_bench.bench_model.base.errors import ProfileError
from daq_bench.bench_model.profiles.candidates import absent_files_of, load_candidate
from daq_bench.bench_model.profiles.connection_entries import INSTEAD, KNOWN

INVENTORY = """\
all:
  vars: {{{everybody}}}
  children:
    candidates:
      vars: {{{group}}}
      hosts:
        one:
          {own}
          bench_candidate:
            description: d
            identity: {{architectures: [x86_64]}}
            transient_buffer: 1GiB
            tuning: {{}}
            target: {{kind: filesystem, directory: /a}}
"""


def write(folder: Path, own: str, group: str = "", everybody: str = "") -> Path:
    file = folder / "lab.yml"
    file.write_text(INVENTORY.format(own=own, group=group, everybody=everybody), encoding="utf-8")
    return file


def refusal(file: Path) -> ProfileError:
    with pytest.raises(ProfileError) as caught:
        load_candidate(file, "one")
    return caught.value


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("ansible_hosts", "ansible_host"),
        ("ansible_Host", "ansible_host"),
        ("ansible_usr", "ansible_user"),
        ("ansible_prot", "ansible_port"),
        ("ansible_conection", "ansible_connection"),
        ("ansible_ssh_private_keyfile", "ansible_ssh_private_key_file"),
        ("ansible_ssh_comon_args", "ansible_ssh_common_args"),
        ("ansible_becom_method", "ansible_become_method"),
        ("ansible_python_interpretor", "ansible_python_interpreter"),
        ("anisble_host", "ansible_host"),
        ("ansiblehost", "ansible_host"),
        ("bench_becom", "bench_become"),
        ("bench_package_dir", "bench_packages_dir"),
        ("bench_candidates", "bench_candidate"),
    ],
)
def test_a_slip_in_a_variables_name_is_refused_with_the_nearest_one(tmp_path: Path, slip: str, meant: str) -> None:
    error = refusal(write(tmp_path, f"{slip}: x"))
    assert error.place.line == 8
    assert str(error).startswith(
        f"{tmp_path}/lab.yml:8: all.children.candidates.hosts.one.{slip}: there is no variable {slip!r}. Did you mean {meant}"
    )


@pytest.mark.parametrize(("written", "meant"), INSTEAD.items())
def test_a_variable_that_ansible_alone_would_follow_is_refused_with_the_one_that_both_follow(
    tmp_path: Path, written: str, meant: str
) -> None:
    error = refusal(write(tmp_path, f"{written}: x"))
    assert f"the bench's own ssh does not read {written!r}, though Ansible does. Write {meant}" in str(error)


@pytest.mark.parametrize(
    ("place", "line"), [({"group": "ansible_usr: root"}, 5), ({"everybody": "ansible_usr: root"}, 2)]
)
def test_a_slip_is_found_in_a_groups_variables(tmp_path: Path, place: dict[str, str], line: int) -> None:
    error = refusal(write(tmp_path, "ansible_host: h", **place))
    assert (error.place.line, error.problem) == (line, "there is no variable 'ansible_usr'")


@pytest.mark.parametrize(
    "own",
    [
        "ansible_rack", "ansible_site_name", "my_ansible_host_list", "rack", "bench", "bench_room", "hosts", "user", "port",
        # Ansible's facts, which a user may set by hand
        "ansible_hostname", "ansible_user_id", "ansible_user_dir", "ansible_user_shell", "ansible_distribution", "ansible_os_family",
        "ansible_facts", "ansible_local", "ansible_fqdn", "ansible_python", "ansible_python_version", "ansible_service_mgr",
        "ansible_interfaces", "ansible_nodename", "ansible_ssh_host_key_rsa_public", "ansible_memtotal_mb", "ansible_check_mode",
        "ansible_verbosity", "ansible_psrp_user", "ansible_podman_extra_args", "ansible_network_cli_ssh_type", "ansible_user_uid",
        "ansible_username", "ansible_jump_host", "ansible_address", "ansible_region", "ansible_group",
        *(name for name in KNOWN if name != "bench_candidate"),
    ],
)  # fmt: skip
def test_a_variable_of_the_users_own_is_nobodys_slip(tmp_path: Path, own: str) -> None:
    value = {"ansible_connection": "local", "ansible_port": "22"}.get(own, "x")
    assert load_candidate(write(tmp_path, f"{own}: {value}"), "one").name == "one"


def _variables(node: Any) -> set[str]:
    """The names below each `vars:` of a plugin's documentation."""
    if isinstance(node, list):
        return set().union(*map(_variables, node))
    if not isinstance(node, dict):
        return set()
    told = node.get("vars") if isinstance(node.get("vars"), list) else []
    return {str(one["name"]) for one in told if "name" in one}.union(*map(_variables, node.values()))


def documented(*places: str) -> set[str]:
    """The variables that plugins of Ansible's document; `connection/*` stands for all of a kind."""
    plugins, names = Path(str(ansible.__file__)).parent / "plugins", set[str]()
    for file in (file for place in places for file in plugins.glob(f"{place}.py")):
        text = file.read_text(encoding="utf-8")
        if found := re.search(r"DOCUMENTATION = r?(\"\"\"|''')(.*?)\1", text, re.DOTALL):
            names |= _variables(YAML(typ="safe", pure=False).load(found[2]))
    return {one for one in names if one.startswith("ansible_")}


def test_the_known_names_are_those_of_ansibles_own_documentation() -> None:
    names = documented(
        "connection/ssh", "connection/local", "become/sudo", "become/su", "shell/sh", "doc_fragments/shell_common",
        "doc_fragments/connection_pipelining",
    ) | set(constants.COMMON_CONNECTION_VARS)  # fmt: skip
    assert len(names) > 50, "no longer finds them"
    assert names - {*KNOWN, *INSTEAD} == set()


def test_nothing_that_ansible_documents_is_taken_for_a_slip(tmp_path: Path) -> None:
    mapped = {name for names in constants.MAGIC_VARIABLE_MAPPING.values() for name in names}
    names = documented("connection/*", "become/*", "shell/*", "doc_fragments/*") | mapped
    assert len(names) > 100, "no longer finds them"
    values = {"ansible_connection": "ssh", "ansible_port": "22"}
    own = "\n          ".join(f"{name}: {values.get(name, 'x')}" for name in sorted(names - INSTEAD.keys()))
    assert load_candidate(write(tmp_path, own), "one").name == "one"


@pytest.mark.parametrize("kind", ["docker", "paramiko", "winrm", "ansible.builtin.paramiko_ssh", "SSH", "7"])
def test_a_way_that_the_bench_cannot_go_is_refused_by_name(tmp_path: Path, kind: str) -> None:
    error = refusal(write(tmp_path, f"ansible_connection: {kind}"))
    assert error.place.line == 8
    assert error.problem == f"the bench reaches no candidate by {kind!r}"
    assert error.remedy == "Write ssh, or local for the machine that the bench runs on"


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        ("ssh", "ssh"),
        ("smart", "ssh"),
        ("ansible.builtin.ssh", "ssh"),
        ("local", "local"),
        ("ansible.builtin.local", "local"),
        ('"{{ way }}"', "ssh"),
    ],
)
def test_a_way_that_the_bench_can_go_is_taken(tmp_path: Path, kind: str, way: str) -> None:
    assert load_candidate(write(tmp_path, f"ansible_connection: {kind}"), "one").connection == way


@pytest.mark.parametrize(
    ("own", "group", "everybody", "way"),
    [
        ("", "", "ansible_connection: local", "local"),
        ("", "ansible_connection: ssh", "ansible_connection: local", "ssh"),
        ("ansible_connection: local", "ansible_connection: ssh", "", "local"),
    ],
)
def test_the_nearest_group_says_the_way_of_an_entry_that_does_not(
    tmp_path: Path, own: str, group: str, everybody: str, way: str
) -> None:
    assert load_candidate(write(tmp_path, own, group, everybody), "one").connection == way


@pytest.mark.parametrize(
    ("own", "problem"),
    [
        ("ansible_host:", "has no value"),
        ("ansible_connection: null", "has no value"),
        ("ansible_port: 0", "'0' is no port"),
        ("ansible_port: ssh", "'ssh' is no port"),
        ("ansible_port: 65536", "'65536' is no port"),
        ("ansible_host: a b", "'a b' is no plain host or user"),
        ('ansible_ssh_common_args: "-o ProxyJump=\'x"', "has a quotation mark without its partner"),
    ],
)
def test_a_value_that_leads_nowhere_is_refused(tmp_path: Path, own: str, problem: str) -> None:
    error = refusal(write(tmp_path, own))
    assert (error.place.line, error.problem) == (8, problem)


FULL = """ansible_host: h
          ansible_ssh_private_key_file: "{{{{ inventory_dir }}}}/key"
          ansible_ssh_common_args: "-o UserKnownHostsFile='{{{{inventory_dir}}}}/known_hosts' -oStrictHostKeyChecking={strict} -i other"
          bench_packages_dir: /nowhere/packages"""


def absent(file: Path, environment: dict[str, str] | None = None) -> dict[str, str]:
    """Field and what is said of it."""
    load_candidate(file, "one")
    found = absent_files_of(file, "one", file.parent, environment or {})
    assert all(one.place.file == file and one.place.line > 0 and one.remedy for one in found)
    return {one.place.field.rpartition(".")[2]: one.problem for one in found}


def test_each_absent_file_is_named_until_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = write(tmp_path, FULL.format(strict="yes"))
    (tmp_path / "other").touch()
    named = {
        "ansible_ssh_private_key_file": f"there is no file {tmp_path}/key",
        "ansible_ssh_common_args": f"there is no file {tmp_path}/known_hosts",
        "bench_packages_dir": "there is no file /nowhere/packages",
    }
    assert absent(file) == named
    (tmp_path / "key").touch()
    del named["ansible_ssh_private_key_file"]
    assert absent(file) == named
    (tmp_path / "known_hosts").touch()
    del named["ansible_ssh_common_args"]
    assert absent(file) == named
    (tmp_path / "other").unlink()
    assert absent(file) == {**named, "ansible_ssh_common_args": f"there is no file {tmp_path}/other"}


@pytest.mark.parametrize("strict", ["no", "accept-new"])
def test_ssh_makes_the_file_of_known_hosts_where_it_asks_nobody(tmp_path: Path, strict: str) -> None:
    (tmp_path / "key").touch()
    file = write(tmp_path, FULL.format(strict=strict).replace("-i other", ""))
    assert list(absent(file)) == ["bench_packages_dir"]


@pytest.mark.parametrize(
    "own",
    [
        "ansible_ssh_private_key_file: \"{{ lookup('pipe', 'touch ran') }}\"",
        'ansible_ssh_common_args: "-o UserKnownHostsFile=/nowhere/%h"',
        'ansible_ssh_common_args: "-o UserKnownHostsFile=none"',
        "ansible_ssh_common_args: \"-o UserKnownHostsFile='/nowhere/a /dev/null'\"",
        'ansible_ssh_common_args: "{{ one }}\'"',
        f"ansible_ssh_private_key_file: {__file__}",
        "{ansible_connection: local, ansible_ssh_private_key_file: /nowhere/key}",
    ],
)
def test_a_file_that_nobody_needs_or_that_only_ansible_knows_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = own.strip("{}").replace(", ", "\n          ") if own.startswith("{") else own
    assert absent(write(tmp_path, lines)) == {}
    assert not (tmp_path / "ran").exists()


def test_a_name_that_no_file_can_have_is_an_absent_file(tmp_path: Path) -> None:
    for name in (f"/nowhere/{'x' * 300}", f"{__file__}/key"):
        assert absent(write(tmp_path, f"ansible_ssh_private_key_file: {name}")) == {
            "ansible_ssh_private_key_file": f"there is no file {name}"
        }


BMC = """
            bmc: {{address: 192.0.2.1, user: u, password_env: LAB_PASSWORD, password_file: secret, redfish_ca_file: ca.pem{more}}}"""


def test_the_bmcs_files_are_looked_for_where_a_run_looks_for_them(tmp_path: Path) -> None:
    file = tmp_path / "lab.yml"
    text = INVENTORY.format(own="ansible_host: h", group="", everybody="")
    file.write_text(text.rstrip("\n") + BMC.format(more=""), encoding="utf-8")
    both = {
        "redfish_ca_file": f"there is no file {tmp_path}/ca.pem",
        "password_file": f"there is no file {tmp_path}/secret",
    }
    assert absent(file) == both
    assert list(absent(file, {"LAB_PASSWORD": "x"})) == ["redfish_ca_file"], "the variable comes before the file"
    (password,) = [
        one for one in absent_files_of(file, "one", tmp_path, {}) if one.place.field.endswith("password_file")
    ]
    assert password.remedy == "Write the BMC's password into it, or set the environment variable LAB_PASSWORD"
    for name in ("secret", "ca.pem"):
        (tmp_path / name).touch()
    assert absent(file) == {}


def test_what_the_virtual_candidate_makes_itself_has_that_remedy(tmp_path: Path) -> None:
    file = write(tmp_path, 'ansible_private_key_file: "{{ inventory_dir }}/build/virtual/ssh/key"')
    (found,) = absent_files_of(file, "one", tmp_path, {})
    assert found.remedy == "`make virtual-up` makes it"
