"""Programs for the candidate as one text: they run where nothing of the bench is installed."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from daq_bench.rig.candidate import travelling
from daq_bench.rig.candidate.travelling import ON_CANDIDATE, source_of

ARGUMENT_BYTES_MAX = 128 << 10  # longest argument of a command (Linux, MAX_ARG_STRLEN)


def run(source: str, *arguments: str, where: Path) -> subprocess.CompletedProcess[str]:
    """Runs the text in an interpreter that finds no package but its own library's."""
    argv = [sys.executable, "-I", "-S", "-c", source, *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, cwd=where)


def test_a_program_that_imports_ours_takes_it_along(tmp_path: Path) -> None:
    done = run(source_of("network_port"), "lo", where=tmp_path)
    assert json.loads(done.stdout)["result"]["interface"] == "lo", done.stderr
    plan = {"network": {"kind": "host", "node": "node0", "interface": "none9", "addresses": {}}, "processes": []}
    done = run(source_of("network_nodes"), json.dumps(plan), where=tmp_path)
    assert "there is no interface none9" in json.loads(done.stdout)["error"], done.stderr


def test_a_program_takes_the_kit_along_and_the_rule_with_it(tmp_path: Path) -> None:
    """No part of ours is on the candidate: the loader's own copy answers."""
    source = source_of("drive_wear")
    done = run(source, where=tmp_path)
    assert json.loads(done.stdout)["result"]["drives"] == [], done.stderr
    asked = (
        "print(plausible.__name__, plausible.HIGHEST['available_spare_percent'], plausible.is_running_degrees(-273.15))"
    )
    done = run(f"{source}\n{asked}", where=tmp_path)
    assert done.stdout.splitlines()[1:] == ["daq_bench.candidate_kit.plausible 100 False"], done.stderr


def test_a_program_that_imports_nothing_of_ours_is_its_file() -> None:
    assert source_of("scratch") == (ON_CANDIDATE / "scratch.py").read_text(encoding="utf-8")


MODULES = sorted(
    ".".join(file.relative_to(ON_CANDIDATE).with_suffix("").parts) for file in ON_CANDIDATE.rglob("[a-z]*.py")
)


def test_a_program_is_found_by_its_name_alone_whichever_room_it_lies_in() -> None:
    """Journals of the past name programs so."""
    names = [name.rpartition(".")[2] for name in MODULES]
    assert len(set(names)) == len(names)
    assert source_of("backing") == (ON_CANDIDATE / "reading" / "backing.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", MODULES)
def test_every_program_fits_one_argument_and_needs_the_standard_library_alone(name: str) -> None:
    source = source_of(name)
    compile(source, name, "exec")
    for node in ast.walk(ast.parse((ON_CANDIDATE / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8"))):
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for module in modules:
            assert (
                module.startswith((*travelling.PACKAGES, *travelling.OURS))
                or module.partition(".")[0] in sys.stdlib_module_names
            ), module
    assert len(source.encode()) < ARGUMENT_BYTES_MAX / 2  # the SSH link quotes it once more


def test_modules_come_behind_what_they_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once, under the name and with the words of its file in a traceback."""
    texts = {
        "top": "from daq_bench.rig.on_candidate import low\nfrom daq_bench.rig.on_candidate.middle import twice\nprint(twice(low.ONE))\n",
        "middle": "from daq_bench.rig.on_candidate import low\n\n\ndef twice(value: int) -> int:\n    return value * 2 * low.ONE\n",
        "low": "print('once')\nONE = 1\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(travelling, "ON_CANDIDATE", tmp_path)
    done = run(source_of("top"), where=tmp_path)
    assert done.stdout.split() == ["once", "2"], done.stderr
