"""Text from inventories, tools and BMCs is data: templates in it that would run a command run none, and arrive unchanged."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bmc_runs import PASSWORD_VARIABLE, BmcBench
from planted import Field, Planted
from playbook_runs import Bench

from daq_bench.bench_model.base.errors import BenchError, ProfileError
from daq_bench.bench_model.profiles.candidates import Candidate, Target, load_candidate
from daq_bench.bench_model.profiles.yaml_source import dotted
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.connection import connection_of
from daq_bench.rig.candidate.machine import LocalMachine, Places
from daq_bench.rig.candidate.provision import Provisioner, provisioner, unsafe

HOSTS = ("all", "children", "candidates", "hosts")


@pytest.fixture
def plants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Planted:
    """Give a test templates; one of them names the environment variable that spares it the BMC's password file."""
    found = Planted(tmp_path)
    monkeypatch.setenv(found.text("bmc-password_env"), "unused")
    return found


@pytest.fixture
def planted(plants: Planted) -> Iterator[Planted]:
    """Give a test templates; whatever it does with them, it may not have expanded any."""
    yield plants
    assert plants.made() == []


def write_inventory(folder: Path, document: Any, name: str = "this-machine", **connection: Any) -> Path:
    """Write an inventory of one candidate, each field on a line of its own."""
    host = {
        "ansible_connection": "local",
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        **connection,
        "bench_candidate": document,
    }
    path = folder / "inventory.yml"
    path.write_text(json.dumps({"all": {"children": {"candidates": {"hosts": {name: host}}}}}, indent=1))
    return path


def ansible_for(bench: Bench, document: dict[str, Any]) -> Provisioner:
    """Return the rig's own Ansible for a candidate whose entry is `document`, also in the inventory."""
    bench.facts.mkdir(exist_ok=True)
    target = Target("x100", "scratch-file", str(bench.scratch), None, None)
    candidate = Candidate("this-machine", "", "local", False, {}, (target,), target, 1, document)
    layout, inventory = Layout(), write_inventory(bench.root, document)
    places = Places(bench.install, bench.state, bench.root / "raw", bench.root / "telemetry")
    return provisioner(layout, candidate, inventory, LocalMachine(layout), places, bench.facts, bench.scratch, "run")


def refusal(ansible: Provisioner, playbook: str, bench: Bench) -> str:
    """Run a playbook that must fail; return Ansible's output, its folded lines joined."""
    with pytest.raises(BenchError, match=f"playbook {playbook} failed"):
        ansible.run(playbook, **bench.variables, bench_bmc_password="unused")
    return (bench.facts / f"ansible-{playbook}-tuning.log").read_text()


def written(text: str) -> str:
    """Return how the text stands in Ansible's output, which folds long lines: its blanks do not count."""
    return "".join(text.replace("''", "'").split())


def names(planted: Planted, output: str) -> set[str]:
    """Return the fields whose template stands unchanged in Ansible's output."""
    shown = written(output)
    return {dotted(field.path) for field in planted.fields if written(planted.text(planted.name(field))) in shown}


def test_a_template_in_any_text_field_is_refused_by_line_and_field(planted: Planted) -> None:
    """Before Ansible is started. The fields come from the schema, so that a new one is in this test at once."""
    for field in planted.fields:
        file = write_inventory(planted.folder, planted.into(field))
        with pytest.raises(ProfileError) as refused:
            load_candidate(file, "this-machine")
        place, line = refused.value.place, file.read_text().splitlines()[refused.value.place.line - 1]
        assert place.field == dotted((*HOSTS, "this-machine", "bench_candidate", *field.path))
        assert planted.name(field) in line


@pytest.mark.parametrize("text", ["{% for x in y %}", "{# note #}", "a {{ b", "{{ 7*7 }}"])
def test_each_kind_of_template_is_refused(planted: Planted, text: str) -> None:
    """A description is free text otherwise."""
    file = write_inventory(planted.folder, {**planted.document, "description": text})
    with pytest.raises(ProfileError, match=r"description: .* holds a template\. Write the value itself"):
        load_candidate(file, "this-machine")


@pytest.mark.parametrize(
    "name",
    ["../../x", "{{ 7*7 }}", "all", "ungrouped", "candidates", "virtual[0:2]", "-oProxyCommand=x", "~x", "!x", "a,b", "a:b", "x\n", ""],
)  # fmt: skip
def test_a_name_that_is_more_than_a_name_is_refused(planted: Planted, name: str) -> None:
    """It becomes a folder's name and Ansible's --limit."""
    file = write_inventory(planted.folder, planted.document, name)
    with pytest.raises(ProfileError, match=r"is no plain name|is the name of a group") as refused:
        load_candidate(file, name)
    assert refused.value.place.line == 6
    if name not in ("all", "ungrouped", "candidates"):
        with pytest.raises(BenchError, match="is no plain name"):
            connection_of(file, name)


@pytest.mark.parametrize("key", ["ansible_host", "ansible_user"])
@pytest.mark.parametrize("text", ["-oProxyCommand=touch x", "a b", "$(touch x)", "a;b", "`x`"])
def test_a_host_or_user_that_ssh_would_take_for_more_is_refused(planted: Planted, key: str, text: str) -> None:
    """By line where it is written so; by name where a template comes to it."""
    written_so = write_inventory(planted.folder, planted.document, ansible_connection="ssh", **{key: text})
    with pytest.raises(ProfileError, match=rf"{key}: .* is no plain host or user"):
        load_candidate(written_so, "this-machine")
    template = "{{ '" + text + "' }}"
    expanded = write_inventory(planted.folder, planted.document, ansible_connection="ssh", **{key: template})
    with pytest.raises(BenchError, match=f"this-machine: {key} is '.*', which is no plain name"):
        connection_of(expanded, "this-machine")


def test_every_string_is_marked_at_any_depth() -> None:
    """Numbers, switches and nothing are no text."""
    assert unsafe({"a": ["x", ("y",), 1, True, None], "b": {"c": "z"}}) == {
        "a": [{"__ansible_unsafe": "x"}, [{"__ansible_unsafe": "y"}], 1, True, None],
        "b": {"c": {"__ansible_unsafe": "z"}},
    }


def test_the_planted_templates_do_harm_where_ansible_reads_the_inventory_by_itself(
    bench: Bench, plants: Planted
) -> None:
    """Without this, the tests below could not fail."""
    document = plants.into(*(field for field in plants.fields if not field.is_choice))
    ansible = ansible_for(bench, document)
    del ansible.variables["bench_candidate"]
    ansible.run("validate", **bench.variables)
    assert "made-by-bmc-user" in plants.made()


def test_ansible_expands_no_choice_of_an_entry(bench: Bench, planted: Planted) -> None:
    """Every text field at once, first without the target's kind, which is asked for before the rest."""
    kind, others = (field_named(planted, "kind", is_kind) for is_kind in (True, False))
    shown = names(planted, refusal(ansible_for(bench, planted.into(*others)), "validate", bench))
    assert {"tuning.cpu_governor", "tuning.pcie_link", "tuning.fan_mode", "tuning.bios_reboot"} <= shown
    assert planted.made() == []
    shown = names(planted, refusal(ansible_for(bench, planted.into(*kind, *others)), "validate", bench))
    assert "targets.x100.kind" in shown
    assert planted.made() == []
    shown = names(planted, refusal(ansible_for(bench, planted.into(*kind, *others)), "build_target", bench))
    assert {"targets.x100.storage.purge", "targets.x100.storage.filesystem"} <= shown


def field_named(planted: Planted, name: str, is_it: bool) -> list[Field]:
    """Return the fields whose last key is, or is not, `name`."""
    return [field for field in planted.fields if (field.path[-1] == name) is is_it]


def test_ansible_expands_no_free_text_of_an_entry(bench: Bench, planted: Planted) -> None:
    """Each run gets as far as the first thing that is not there; without it, the next gets further."""
    document = planted.into(*(field for field in planted.fields if not field.is_choice))
    (bench.sysfs / "devices/system/cpu").mkdir(parents=True)
    (bench.sysfs / "devices/system/cpu/online").write_text("0-7\n")
    tuning, raid = document["tuning"], document["targets"]["x100"]["storage"]["raid"]
    for holder, key, field in (
        (tuning, "nic", "tuning.nic[0]"),
        (raid, "chunk", "targets.x100.storage.raid.chunk"),
        (tuning, "cpu_isolated", "tuning.cpu_isolated"),
        (document["bmc"], "redfish_fingerprint", "bmc.address"),  # a pinned certificate needs no CA's file
        (document["bmc"], "redfish_ca_file", "bmc.redfish_ca_file"),
        (document, "bmc", "bmc.address"),
    ):
        assert field in names(planted, refusal(ansible_for(bench, document), "verify", bench))
        assert planted.made() == []
        del holder[key]


def fake(folder: Path, name: str, output: Any) -> None:
    """Put a tool there that answers everything with `output`."""
    answer = folder / f"{name}.json"
    answer.write_text(json.dumps(output))
    (folder / name).write_text(f"#!/bin/sh\nexec cat '{answer}'\n")
    (folder / name).chmod(0o755)


def test_ansible_expands_nothing_that_tools_and_kernel_answer(
    bench: Bench, planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The texts stand unchanged in the evidence."""
    tools = bench.root / "bin"
    tools.mkdir()
    row = {key: planted.text(f"lsblk-{key}") for key in ("serial", "model", "rev", "wwn")}
    fake(
        tools,
        "lsblk",
        {
            "blockdevices": [
                {"name": "fake0", "kname": "fake0", "path": "/dev/fake0", "maj:min": "8:0", "type": "disk", **row}
            ]
        },
    )
    fake(tools, "smartctl", {"smartctl": {}, "model_name": planted.text("smart")})
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    dmi = bench.sysfs / "class/dmi/id"
    dmi.mkdir(parents=True)
    for file in ("bios_version", "sys_vendor", "product_name", "board_name"):
        (dmi / file).write_text(planted.text(file) + "\n")
    (bench.queue / "scheduler").write_text(f"[{planted.text('scheduler').replace(' ', '')}]\n")
    document = {"targets": {"x100": {"kind": "scratch-file"}}, "tuning": {}}
    ansible_for(bench, document).run("verify", **bench.variables)
    settings = json.dumps(bench.document("tuning.json")["settings"])
    assert bench.document("smart.json")["devices"][0]["data"]["model_name"] == planted.text("smart")
    assert all(planted.text(name) in settings for name in ("bios_version", "lsblk-serial")), settings


def test_ansible_expands_nothing_that_a_bmc_answers(
    bmc_bench: BmcBench, planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The value of a firmware option is put on record as the BMC has it."""
    state_file = bmc_bench.device.directory / "bios.json"
    state = json.loads(state_file.read_text())
    state["current"] = dict.fromkeys(state["current"], planted.text("bios"))
    state_file.write_text(json.dumps(state))
    monkeypatch.setenv(PASSWORD_VARIABLE, bmc_bench.device.password)
    document = {**bmc_bench.candidate(), "targets": {"x100": {"kind": "scratch-file"}}, "tuning": {"bios_turbo": "on"}}
    ansible_for(bmc_bench, document).run("verify", **bmc_bench.variables)
    assert planted.text("bios") in bmc_bench.records()["bios-turbo"]["read_back"]
