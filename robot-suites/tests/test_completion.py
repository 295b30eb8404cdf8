"""The completion of `daq-bench`: what is offered, and that bash, zsh and fish themselves offer it."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from daq_bench.rig.base.completing import FILES, Table, offered
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.cli import main

HANG_S = 300.0
TABLE: Table = {
    "qualify": {
        "--candidate": ["<candidates>"], "--candidates": ["<candidates>"], "--target": ["<targets>"],
        "--scenario": ["<scenarios>"], "--scale": [FILES], "--json": [],
    },
    "doctor": {"": ["<candidates>"], "--json": []},
    "judge": {"": ["<runs>"]},
    "tables": {"": ["<runs>"], "--format": ["csv", "parquet"]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "right"),
    [
        (["doc"], ["doctor"]),
        (["--v"], ["--version"]),
        (["qualify", "--ca"], ["--candidate", "--candidates"]),
        (["qualify", "--candidate", "virt"], ["virtual"]),
        (["qualify", "--candidate=virt"], ["--candidate=virtual"]),  # as zsh and fish part the line
        (["qualify", "--candidate", "=", "virt"], ["virtual"]),  # as bash does
        (["qualify", "--candidate", "="], ["this-machine", "this-machine-twice", "virtual"]),
        (["qualify", "--candidates", "virtual,this-machine-"], ["virtual,this-machine-twice"]),
        (["qualify", "--scenario", "snb-100s"], ["snb-100s-nominal", "snb-100s"]),
        (["qualify", "--candidate", "virtual", "--target", "nand-raid5"], ["nand-raid5"]),
        (["qualify", "--candidate=virtual", "--target", "ref"], ["reference"]),
        (["qualify", "--candidate", "=", "virtual", "--target", "=", "ref"], ["reference"]),
        (["qualify", "--target", ""], []),  # this machine's only target has no name: a folder is meant
        (["qualify", "--candidate", "nemo", "--target", ""], []),
        (["qualify", "--inventory", "/none.yml", "--candidate", ""], []),  # and no traceback
        (["doctor", "this-machine-"], ["this-machine-twice"]),
        (["doctor", "--json", "this-machine-"], ["this-machine-twice"]),
        (["tables", "runs/x", "--format", "p"], ["parquet"]),
        (["qualify", "--scale", "0"], []),
        (["nemo", "--x"], []),
        (["nemo", ""], []),
    ],
)
def test_each_place_of_a_line_has_what_may_stand_there(words: list[str], right: list[str]) -> None:
    assert sorted(offered(TABLE, words)) == sorted(right)


@pytest.fixture
def script(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> str:
    """The script for a shell, and `daq-bench` of this checkout first on PATH."""
    assert main(["completion", request.param]) == 0
    return f'PATH="{Path(sys.executable).parent}:$PATH"\n{capsys.readouterr().out}'


def run_shell(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=Layout().repository, capture_output=True, text=True, timeout=HANG_S, check=False)


@pytest.mark.parametrize("script", ["bash"], indirect=True)
def test_bash_offers_values_and_files(script: str) -> None:
    lines = (
        ("daq-bench", "qualify", "--candidates", "virtual,this-machine-"),
        ("daq-bench", "validate", "--inventory", "READM"),
    )
    ask = "COMP_WORDS=({}); COMP_CWORD=3; _daq_bench; echo ${{COMPREPLY[@]}}"
    asked = [ask.format(" ".join(line)) for line in lines]
    done = run_shell("bash", "--norc", "-c", "\n".join([script, *asked]))
    assert done.stdout.split() == ["virtual,this-machine-twice", "README.md"], done.stderr


@pytest.mark.parametrize("script", ["fish"], indirect=True)
def test_fish_offers_values_and_files(script: str) -> None:
    lines = (
        "daq-bench qualify --candidate=this-machine-",
        "daq-bench tables runs/x --format ",
        "daq-bench validate --inventory=READM",
    )
    asked = [f"complete -C {line!r} | string replace --regex '\\t.*' ''" for line in lines]
    path, rest = script.split("\n", 1)
    text = "\n".join([path.replace("PATH=", "set -x PATH ").replace(':$PATH"', '" $PATH'), rest, *asked])
    done = run_shell("fish", "--no-config", "-c", text)
    assert done.stdout.split() == ["--candidate=this-machine-twice", "csv", "parquet", "--inventory=README.md"], (
        done.stderr
    )


@pytest.fixture
def zsh() -> Iterator[int]:
    """The terminal of an interactive zsh that reads no file of the user's."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(Layout().repository)
        os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb", "PS1": ""})
    try:
        yield terminal
    finally:
        os.close(terminal)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def until(terminal: int, pattern: bytes) -> bytes:
    """Returns what the terminal shows until it shows `pattern`; fails where that never comes."""
    seen, end_s = b"", time.monotonic() + HANG_S
    while time.monotonic() < end_s:
        if select.select([terminal], [], [], 1.0)[0]:
            seen += os.read(terminal, 65536)
            if re.search(pattern, seen):
                return seen
    pytest.fail(f"zsh never showed {pattern!r}: {seen[-2000:]!r}")


@pytest.mark.parametrize("script", ["zsh"], indirect=True)
def test_zsh_completes_what_was_typed(script: str, zsh: int, tmp_path: Path) -> None:
    (tmp_path / "completion.zsh").write_text(f"autoload -U compinit; compinit -u -D\n{script}", encoding="utf-8")
    os.write(zsh, f"source {tmp_path}/completion.zsh; echo rea''dy\n".encode())
    until(zsh, rb"ready\r")
    for typed, completed in (
        (b"daq-bench qualify --candidate=this-machine-t", b"-twice"),
        (b"daq-bench validate --inventory READ", b"README.md"),
    ):
        os.write(zsh, typed + b"\t")
        until(zsh, re.escape(completed))
        os.write(zsh, b"\x15")  # clears the line
