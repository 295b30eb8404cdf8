"""One call in place of a loop of tasks: bringing programs, removing paths, and writing the evidence."""

from __future__ import annotations

import json
import os
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


def test_files_are_brought_in_one_archive_and_only_those_that_differ(machine: Machine, tmp_path: Path) -> None:
    """Told in check mode, brought once, unchanged again; a changed file, and a changed mode, are put right."""
    folder, sources = tmp_path / "there/install", tmp_path / "sources"
    sources.mkdir()
    (sources / "program").write_bytes(bytes(range(256)) * 4096)
    (sources / "real").write_text("library")
    (sources / "link").symlink_to(sources / "real")  # as a build folder has libraries
    files = [
        {"name": "program", "source": str(sources / "program"), "mode": "0755"},
        {"name": "lib/b.so.1", "source": str(sources / "link"), "mode": "0644"},
    ]
    arguments = {"folder": str(folder), "files": files}
    check = machine.task("bench_programs", arguments, "--check")
    assert (check.code, check.changed) == (0, 1), check.output
    assert not folder.exists()

    umask = os.umask(0o077)  # as hardened systems have it
    first = machine.task("bench_programs", arguments)
    os.umask(umask)
    assert (first.code, first.changed) == (0, 1), first.output
    program, library = folder / "program", folder / "lib/b.so.1"
    assert program.read_bytes() == (sources / "program").read_bytes()
    assert (library.read_text(), library.is_symlink()) == ("library", False)
    assert [path.stat().st_mode & 0o777 for path in (folder.parent, folder, program, library.parent, library)] == [
        *(0o755, 0o755, 0o755, 0o755, 0o644),
    ]
    kept = program.stat().st_ino
    second = machine.task("bench_programs", arguments)
    assert (second.code, second.changed) == (0, 0), second.output

    library.write_text("damaged")
    program.chmod(0o700)
    (folder / "of-somebody-else").write_text("x")
    third = machine.task("bench_programs", arguments)
    assert (third.code, third.changed) == (0, 1), third.output
    assert (library.read_text(), program.stat().st_mode & 0o777, program.stat().st_ino) == ("library", 0o755, kept)
    assert sorted(path.name for path in folder.rglob("*")) == ["b.so.1", "lib", "of-somebody-else", "program"]


@pytest.mark.parametrize("name", ["../outside", "/outside", "lib/../../outside"])
def test_a_file_stays_below_its_folder(machine: Machine, tmp_path: Path, name: str) -> None:
    """Refused before anything is made."""
    (tmp_path / "source").write_text("x")
    files = [{"name": name, "source": str(tmp_path / "source"), "mode": "0644"}]
    run = machine.task("bench_programs", {"folder": str(tmp_path / "install"), "files": files})
    assert run.code != 0
    assert "is no path below an absolute folder; nothing was written" in run.text
    assert not (tmp_path / "install").exists()


def test_a_program_that_was_not_built_is_named(machine: Machine, tmp_path: Path) -> None:
    """One message with the remedy; the candidate is not asked."""
    files = [{"name": "program", "source": str(tmp_path / "nowhere"), "mode": "0755"}]
    run = machine.task("bench_programs", {"folder": str(tmp_path / "install"), "files": files})
    assert run.code != 0
    assert f"{tmp_path / 'nowhere'} cannot be read: No such file or directory. Build it (make build)" in run.text
    assert "Traceback" not in run.output
    assert not (tmp_path / "install").exists()


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
