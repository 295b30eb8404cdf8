"""Modules travel with their bytecode, and archives are kept: what may be reused, and what must not."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from ansible.executor import module_common
from ansible.parsing.dataloader import DataLoader
from playbook_runs import ANSIBLE, Bench

sys.path.insert(0, str(ANSIBLE / "callback_plugins"))
import bench_compiled

PLAY = "[{hosts: candidates, gather_facts: false, tasks: [{ansible.builtin.stat: {path: /}}]}]"


def answer_of(archive: Path) -> str:
    """Import `answer` from the archive in a new interpreter, as a candidate does."""
    argv = [sys.executable, "-c", "import answer; print(answer.VALUE)"]
    done = subprocess.run(argv, env={"PYTHONPATH": str(archive)}, text=True, capture_output=True, check=True)
    return done.stdout.strip()


def archive_with_bytecode(path: Path, magic: bytes = importlib.util.MAGIC_NUMBER) -> Path:
    """Return an archive whose source says 2 and whose bytecode was made when it said 1."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("answer.py", "VALUE = 1\n")
        bench_compiled.add_compiled(archive)
        bytecode = archive.read("answer.pyc")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("answer.py", "VALUE = 2\n")
        archive.writestr("answer.pyc", magic + bytecode[4:])
    return path


def test_the_bytecode_is_used(tmp_path: Path) -> None:
    """The interpreter takes it without asking the source."""
    assert answer_of(archive_with_bytecode(tmp_path / "a.zip")) == "1"


def test_another_version_of_python_ignores_the_bytecode(tmp_path: Path) -> None:
    """A candidate's Python may be older or newer."""
    assert answer_of(archive_with_bytecode(tmp_path / "a.zip", magic=b"\x00\x01\r\n")) == "2"


def test_ansible_puts_the_bytecode_into_what_it_sends_and_keeps_it(bench: Bench) -> None:
    """Another version of Ansible may put its archives together in another way: this notices it."""
    play = bench.root / "stat.yml"
    play.write_text(PLAY)
    done = bench.run(str(play))
    assert done.code == 0, done.output
    newest = max(bench_compiled.ARCHIVES.iterdir(), key=lambda folder: folder.stat().st_mtime)
    kept = next(path for path in newest.glob("*stat-*") if path.suffix != ".lock")
    sent = bench.root / "sent.zip"
    sent.write_bytes(base64.b64decode(module_common._CachedModule.load(str(kept)).zip_data))
    names = zipfile.ZipFile(sent).namelist()
    assert "ansible/module_utils/basic.pyc" in names
    assert {f"{name}c" for name in names if name.endswith(".py")} <= set(names)


def test_a_changed_module_has_other_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive of an older source must never reach a candidate."""
    module = tmp_path / "bench_x.py"
    module.write_text("1")
    monkeypatch.setattr(bench_compiled.constants, "DEFAULT_MODULE_PATH", [str(tmp_path)])
    first = bench_compiled.fingerprint()
    assert bench_compiled.fingerprint() == first
    module.write_text("2")
    assert bench_compiled.fingerprint() != first


@pytest.fixture
def archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the plug-in a build folder and a call of Ansible of its own."""
    folder = tmp_path / "build/ansible-modules"
    monkeypatch.setattr(bench_compiled, "ARCHIVES", folder)
    (tmp_path / "call").mkdir()
    monkeypatch.setattr(bench_compiled.constants, "DEFAULT_LOCAL_TMP", str(tmp_path / "call"), raising=False)
    return folder


def test_an_incomplete_archive_is_dropped_and_a_complete_one_kept(archives: Path, tmp_path: Path) -> None:
    """A full disk or a crash must not end every later provision."""
    whole = module_common._CachedModule(zip_data=b"", metadata=None, source_mapping={})
    kept = archives / bench_compiled.fingerprint()
    kept.mkdir(mode=0o700, parents=True)
    archives.chmod(0o700)
    whole.dump(str(kept / "whole"))
    (kept / "cut").write_bytes((kept / "whole").read_bytes()[:-9])
    (kept / "empty").touch()
    bench_compiled.keep_archives()
    assert [path.name for path in (tmp_path / "call/ansiballz_cache").iterdir()] == ["whole"]


@pytest.mark.parametrize("writable", ["", "the fingerprint's own"])
def test_a_folder_that_others_may_write_is_not_used(archives: Path, tmp_path: Path, writable: str) -> None:
    """A file there would run as root on the candidate."""
    own = archives / bench_compiled.fingerprint()
    own.mkdir(mode=0o700, parents=True)
    archives.chmod(0o700)
    (own if writable else archives).chmod(0o777)
    bench_compiled.keep_archives()
    assert not os.path.lexists(tmp_path / "call/ansiballz_cache")


def test_archives_that_nobody_used_for_a_day_are_removed(archives: Path) -> None:
    """Every change of a module would leave its megabytes behind."""
    for name, age_s in (("old", 2 * bench_compiled.UNUSED_S_MAX), ("new", 0.0)):
        (archives / name).mkdir(mode=0o700, parents=True)
        archives.chmod(0o700)
        at_s = (archives / name).stat().st_mtime - age_s
        os.utime(archives / name, (at_s, at_s))
    bench_compiled.keep_archives()
    assert sorted(path.name for path in archives.iterdir()) == sorted(["new", bench_compiled.fingerprint()])


def test_a_file_of_variables_is_parsed_once_for_all_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ansible asks for it with each task; another Ansible that asks in another way is noticed."""
    file = tmp_path / "vars.yml"
    file.write_text("a: 1\n")
    monkeypatch.setattr(DataLoader, "load_from_file", DataLoader.load_from_file)  # put back afterwards
    bench_compiled.parse_once()
    loader = DataLoader()
    asked = {"unsafe": True, "cache": "vaulted", "trusted_as_template": True}  # VariableManager.get_vars
    first = loader.load_from_file(str(file), **asked)
    assert first == {"a": 1}
    assert loader.load_from_file(str(file), **asked) is first
    assert DataLoader().load_from_file(str(file), **asked) is not first


def test_a_task_s_process_finds_filters_and_plug_ins_loaded(bench: Bench) -> None:
    """Loading them anew was half of a task's time on this side. A filter tells what the process that runs it had at its start."""
    plugins = bench.root / "filter_plugins"
    plugins.mkdir()
    (plugins / "where.py").write_text(
        "import os\nLOADED_BY = os.getpid()\nclass FilterModule:\n"
        "    def filters(self):\n        return {'loaded_here': lambda value: LOADED_BY == os.getpid()}\n"
    )
    play = bench.root / "where.yml"
    said = "here: {{ 1 | loaded_here }}"
    play.write_text(
        json.dumps(
            [{"hosts": "candidates", "gather_facts": False, "tasks": [{"ansible.builtin.debug": {"msg": said}}]}]
        )
    )
    bench.environment["ANSIBLE_FILTER_PLUGINS"] = str(plugins)
    done = bench.run(str(play))
    assert done.code == 0, done.output
    assert "here: false" in done.text.lower()
