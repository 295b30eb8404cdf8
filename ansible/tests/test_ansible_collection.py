"""The Ansible content as a collection: nothing is missing, every name of ours is whole, every module says truly what it takes."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ANSIBLE = Path(__file__).resolve().parents[1]
WHOLE = "daq.storage_bench"


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("collection")
    script = ANSIBLE / "bootstrap" / "collection.py"
    for _ in range(2):  # over an earlier one, too
        done = subprocess.run([sys.executable, script, folder], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def ansible(collection: Path, program: str, *words: str) -> subprocess.CompletedProcess[str]:
    empty = collection.parents[2] / "empty.cfg"
    empty.touch()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
        "ANSIBLE_COLLECTIONS_PATH": str(collection.parents[2]),
        "ANSIBLE_CONFIG": str(empty),
        "LC_ALL": "C.UTF-8",
    }
    argv = [str(Path(sys.executable).parent / program), *words]
    return subprocess.run(
        argv, cwd=collection, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_all_content_is_there_under_whole_names(collection: Path) -> None:
    for folder, place in (("library", "plugins/modules"), ("filter_plugins", "plugins/filter"), ("roles", "roles")):
        names = {file.name for file in (ANSIBLE / folder).iterdir() if file.name != "__pycache__"}
        assert {file.name for file in (collection / place).iterdir()} == names
    texts = {file: file.read_text(encoding="utf-8") for file in collection.rglob("*") if file.is_file()}
    assert not [file for file, text in texts.items() if re.search(r"ansible\.module_utils(\.| import )bench_", text)]
    filters = r"\|\s*(tuning_record|tuning_lines|affinity_settings|pcie_link_records|writer_cpus_record)\b"
    assert not [file for file, text in texts.items() if file.suffix == ".yml" and re.search(filters, text)]
    assert sum(text.count(f"| {WHOLE}.tuning_record") for text in texts.values()) >= 3
    assert yaml.safe_load((collection / "galaxy.yml").read_text(encoding="utf-8"))["license"] == ["Apache-2.0"]


def test_every_module_is_documented_in_the_collection(collection: Path) -> None:
    names = [f"{WHOLE}.{file.stem}" for file in sorted((ANSIBLE / "library").glob("bench_*.py"))]
    done = ansible(collection, "ansible-doc", "--json", *names)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert sorted(told) == names
    for name, one in told.items():
        module = (ANSIBLE / "library" / f"{name.rpartition('.')[2]}.py").read_text(encoding="utf-8")
        assert one["doc"].get("options") or "argument_spec={}" in module, name
        assert one["examples"].strip() and one["return"], name


def _documentation(file: Path) -> dict[str, Any]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    told = next(
        node for node in tree.body if isinstance(node, ast.Assign) and "DOCUMENTATION" in ast.unparse(node.targets)
    )
    return dict(yaml.safe_load(ast.literal_eval(told.value)))


def test_the_action_takes_what_its_documentation_says() -> None:
    told = _documentation(ANSIBLE / "library" / "bench_facts.py")["options"]
    source = (ANSIBLE / "action_plugins" / "bench_facts.py").read_text(encoding="utf-8")
    call = next(
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "validate_argument_spec"
    )
    taken = ast.literal_eval(call.args[0])
    assert taken == {name: {key: one[key] for key in ("type", "required")} for name, one in told.items()}


@pytest.mark.parametrize("playbook", ["provision", "verify", "restore"])
def test_a_playbook_of_the_collection_finds_its_roles_and_modules(collection: Path, playbook: str) -> None:
    done = ansible(collection, "ansible-playbook", "--syntax-check", "-i", "localhost,", f"{WHOLE}.{playbook}")
    assert done.returncode == 0, done.stderr


def test_a_filter_of_the_collection_works_by_its_whole_name(collection: Path, tmp_path: Path) -> None:
    words = f"'x' | {WHOLE}.tuning_record(role='r', subject='s', status='applied')"
    task = {"ansible.builtin.debug": {"msg": "{{ " + words + " }}"}}
    play = [{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [task]}]
    file = tmp_path / "play.yml"
    file.write_text(yaml.safe_dump(play), encoding="utf-8")
    done = ansible(collection, "ansible-playbook", "-i", "localhost,", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"status": "applied"' in done.stdout
