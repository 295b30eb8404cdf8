"""One call in place of a loop of tasks: removing paths, and writing the evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playbook_runs import PlaybookRun, run_playbook


class Machine:
    """This machine, whose plays have one task."""

    def __init__(self, root: Path) -> None:
        """Write the inventory."""
        self.root = root
        self.inventory = root / "inventory.json"
        host = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
        self.inventory.write_text(json.dumps({"all": {"hosts": {"m": host}}}))

    def task(self, action: str, arguments: dict[str, Any], *options: str, **variables: Any) -> PlaybookRun:
        """Run one task."""
        play = self.root / "play.json"
        play.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [{action: arguments}]}]))
        return run_playbook(str(play), self.inventory, variables, *options)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Give a test its own inventory."""
    return Machine(tmp_path)


def test_paths_are_removed_in_one_call_and_nothing_else(machine: Machine, tmp_path: Path) -> None:
    """Told in check mode, removed once, unchanged again; what a link leads to and what others put there stay."""
    folder, kept = tmp_path / "install", tmp_path / "kept"
    (folder / "lib/deep").mkdir(parents=True)
    (folder / "lib/deep/file").write_text("x")
    (folder / "program").write_text("x")
    kept.mkdir()
    (kept / "data").write_text("precious")
    (folder / "link").symlink_to(kept)
    (folder / "dangling").symlink_to(tmp_path / "nowhere")
    names = ("program", "lib", "link", "dangling", "never-there")
    arguments = {"paths": [str(folder / name) for name in names], "empty_folder": str(folder)}

    check = machine.task("bench_absent", arguments, "--check")
    assert (check.code, check.changed) == (0, 1), check.output
    assert len(list(folder.iterdir())) == 4

    (folder / "of-somebody-else").write_text("x")
    first = machine.task("bench_absent", arguments)
    assert (first.code, first.changed) == (0, 1), first.output
    assert [path.name for path in folder.iterdir()] == ["of-somebody-else"]
    assert (kept / "data").read_text() == "precious"

    (folder / "of-somebody-else").unlink()
    second = machine.task("bench_absent", arguments)
    assert (second.code, second.changed) == (0, 0), second.output
    assert not folder.exists()


def test_a_relative_path_removes_nothing(machine: Machine, tmp_path: Path) -> None:
    """Below which folder it would be depends on who calls."""
    there = tmp_path / "there"
    there.write_text("x")
    run = machine.task("bench_absent", {"paths": [str(there), "relative/path"]})
    assert run.code != 0
    assert "relative/path is no absolute path; nothing was removed" in run.text
    assert there.exists()


def test_documents_are_written_as_they_are_and_never_in_check_mode(machine: Machine, tmp_path: Path) -> None:
    """Text of others stays text; an older document is replaced; modes are those of a bundle."""
    facts = tmp_path / "facts/deep"
    documents = {
        "tuning.json": {"settings": [{"id": "a", "read_back": "{{ 7 * 7 }} é", "n": None, "x": 1.5}]},
        "b.json": {},
    }
    arguments = {"directory": str(facts), "documents": "{{ found }}"}
    check = machine.task("bench_facts", arguments, "--check", found=documents)
    assert check.code == 0, check.output
    assert not facts.exists()

    facts.mkdir(parents=True)
    (facts / "tuning.json").write_text("older")
    run = machine.task("bench_facts", arguments, found=documents)
    assert (run.code, run.changed) == (0, 0), run.output
    assert {path.name: json.loads(path.read_text()) for path in facts.iterdir()} == documents
    assert (facts / "tuning.json").read_text().startswith('{\n  "settings": [\n    {\n      "id": "a"')
    assert (facts / "b.json").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("name", ["../outside.json", "..", "a/b.json"])
def test_a_document_stays_in_its_folder(machine: Machine, tmp_path: Path, name: str) -> None:
    """Refused before the first one is written."""
    facts = tmp_path / "facts"
    run = machine.task("bench_facts", {"directory": str(facts), "documents": {"good.json": {}, name: {}}})
    assert run.code != 0
    assert "is no file name; nothing was written" in run.text
    assert not facts.exists()


def test_a_folder_that_cannot_be_written_is_named(machine: Machine, tmp_path: Path) -> None:
    """A file stands where the folder should be: one message, no traceback."""
    blocked = tmp_path / "blocked"
    blocked.write_text("a file")
    run = machine.task("bench_facts", {"directory": str(blocked), "documents": {"a.json": {}}})
    assert run.code != 0
    assert f"{blocked} cannot be written" in run.text
    assert "Traceback" not in run.output
