"""Command lines: no parser of the project takes an abbreviation, and a slip of the pen is answered with the nearest names. And what else
holds for every source: no room has more modules than can be looked over."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from daq_bench.bench_model.base.command_line import Parser
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.cli import COMMANDS, PROGRAMS, main, parser

ROOT = Layout().repository


def sources() -> list[Path]:
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def abbreviating(text: str) -> Iterator[str]:
    """Parsers of a source that would take an abbreviation: each needs allow_abbrev=False, or a class that says so."""
    if "Parser" not in text and "add_parser" not in text:  # most: parsing all of them takes a minute
        return
    tree = ast.parse(text)
    exact = {"Parser"}  # of daq_bench.bench_model.base.command_line
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any("ArgumentParser" in ast.unparse(base) for base in node.bases):
            if "allow_abbrev=False" in ast.unparse(node):
                exact.add(node.name)
            else:
                yield f"{node.lineno}: class {node.name}"
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        said = any(word.arg == "allow_abbrev" and ast.unparse(word.value) == "False" for word in node.keywords)
        if name == "ArgumentParser" and not said:
            yield f"{node.lineno}: ArgumentParser"
        # A sub-command's parser is of its parent's class, but has the settings of nobody.
        plain = re.search(r"argparse\.ArgumentParser\(|[= ]ArgumentParser\(", text)
        if name == "add_parser" and not said and plain and not re.search(r"[= ](_?Parser)\(", text):
            yield f"{node.lineno}: add_parser"


def test_no_room_has_more_than_16_modules() -> None:
    modules = [file for file in sources() if "tests" not in file.parts and file.name != "__init__.py"]
    rooms = Counter(str(file.parent.relative_to(ROOT)) for file in modules)
    assert len(rooms) > 50, "no longer finds the rooms"
    assert {room: count for room, count in rooms.items() if count > 16} == {}


def test_no_parser_takes_an_abbreviation() -> None:
    found, faults = 0, []
    for file in sources():
        text = file.read_text(encoding="utf-8")
        found += len(re.findall(r"\b(?:ArgumentParser|_?Parser)\(", text))
        faults += [f"{file.relative_to(ROOT)}:{fault}" for fault in abbreviating(text)]
    assert found > 20, "no longer finds the parsers"
    assert faults == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("import argparse\nargparse.ArgumentParser(prog='x')", 1),
        ("import argparse\nargparse.ArgumentParser(allow_abbrev=True)", 1),
        ("import argparse\nargparse.ArgumentParser(allow_abbrev=False)", 0),
        ("from argparse import ArgumentParser\nArgumentParser()", 1),
        ("import argparse\nclass P(argparse.ArgumentParser): pass", 1),
        ("import argparse\np = argparse.ArgumentParser(allow_abbrev=False)\np.add_subparsers().add_parser('x')", 1),
        (
            "import argparse\np = argparse.ArgumentParser(allow_abbrev=False)\np.add_subparsers().add_parser('x', allow_abbrev=False)",
            0,
        ),
        ("p = Parser()\np.add_subparsers().add_parser('x')", 0),
    ],
)
def test_the_look_for_parsers_finds_those_that_abbreviate(text: str, count: int) -> None:
    assert len(list(abbreviating(text))) == count


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["qualify", "--scal", "0.1"], "there is no option --scal. Did you mean --scale"),
        (["qualify", "--candidat=x"], "there is no option --candidat. Did you mean --candidate"),
        (["qualfy"], "there is no command 'qualfy'. Did you mean qualify?"),
        (["qualify", "x"], "'x' is too much: nothing more was expected"),
        (["tables", "runs/x", "--output", "y", "--format", "parket"], "there is no 'parket'. Did you mean parquet?"),
        (["list", "scenario"], "there is no 'scenario'. Did you mean scenarios?"),
        (["completion", "tcsh"], "there is no 'tcsh'. Known: bash, zsh, fish"),
    ],
)
def test_a_slip_gets_the_nearest_names(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    text = capsys.readouterr().err
    assert ended.value.code == 2
    assert said in text
    assert text.count("\n") == 1
    assert len(text) < 250


def test_a_sub_commands_parser_is_as_exact(capsys: pytest.CaptureFixture[str]) -> None:
    top = Parser(prog="x")
    top.add_subparsers(required=True).add_parser("up").add_argument("--memory")
    with pytest.raises(SystemExit):
        top.parse_args(["up", "--mem", "3"])
    assert "x up: error: there is no option --mem. Did you mean --memory?" in capsys.readouterr().err
    assert vars(top.parse_args(["up", "--memory", "3"])) == {"memory": "3"}


@pytest.mark.parametrize(
    "script",
    ["ansible/roles/fans/files/fan_guard.py", "agents/daq_bench/telemetry_agent", "agents/daq_bench/analysis_reader"],
)
def test_what_runs_on_a_candidate_takes_no_abbreviation(script: str) -> None:
    words = {"fan_guard.py": ["status", "--leas", "x"], "telemetry_agent": ["status", "--spool", "x"]}.get(
        Path(script).name, ["points", "--se", "x"]
    )
    if script.endswith(".py"):
        argv = [sys.executable, str(ROOT / script), *words]
    else:
        argv = [sys.executable, "-m", f"daq_bench.{Path(script).name}", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "required" in done.stderr or "unrecognized" in done.stderr


def documented() -> list[tuple[str, str]]:
    """(place, command line) of each `daq-bench ...` in the documents."""
    found = []
    for file in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")]):
        if file.name == "CHANGELOG.md":
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            for text in re.findall(
                r"`[^`]*?(daq-bench [a-z][^`]*)`|(?:^|\$ +|^ {4}|=\S+ )(daq-bench [a-z][^`#]*)", line
            ):
                found.append((f"{file.relative_to(ROOT)}:{number}", (text[0] or text[1]).strip()))
    return found


def test_commands_and_options_of_the_documents_exist() -> None:
    commands = next(action.choices for action in parser()._actions if action.dest == "command")
    assert commands is not None
    faults, lines = [], documented()
    for place, line in lines:
        try:
            words = shlex.split(line.rstrip("\\"))[1:]
        except ValueError:  # a quotation that goes on in the next line
            words = line.split()[1:]
        if words[0] not in COMMANDS and words[0] not in PROGRAMS:
            faults.append(f"{place}: {line}: no command {words[0]}")
        elif words[0] in COMMANDS:
            known = dict(commands)[words[0]]._option_string_actions
            faults += [
                f"{place}: {line}: no option {word}"
                for word in words
                if word.startswith("--") and word.partition("=")[0] not in known
            ]
    assert len(lines) > 100
    assert faults == []
