"""A machine that cannot be a candidate is refused with what, where and a remedy, before anything of it is changed."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.host import check_fit, unfit
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.candidate.travelling import source_of
from daq_bench.rig.discovery.doctor import halves

EL9: dict[str, Any] = {"machine": "x86_64", "glibc": "2.34", "python": "3.9.21", "libraries": ["libc.so.6"]}


class Saying(LocalMachine):
    """A machine behind a link, as far as the rule looks: it answers one question."""

    is_local = False

    def __init__(self, **said: Any) -> None:
        super().__init__()
        self._said = {**EL9, **said}
        self.asked: list[str] = []

    def call(self, program: str, *arguments: str | Path, timeout_s: float = 0.0) -> Any:
        self.asked.append(program)
        return self._said


def layout(folder: Path) -> Layout:
    """A checkout in which nothing is built: what the programs will need is known all the same."""
    (folder / "ansible").symlink_to(Layout().ansible)
    return Layout(folder)


@pytest.mark.parametrize(
    ("said", "messages"),
    [
        ({}, []),
        ({"glibc": "2.31"}, []),  # Debian 11
        ({"glibc": "2.35"}, []),  # Ubuntu 22.04
        (
            {"glibc": "2.28", "python": "3.6.8"},  # EL 8
            [
                "daqwriter, hotstore, netprobe: needs glibc 2.31 and the candidate has 2.28. Install a newer system there",
                "its Python is 3.6.8, and Ansible and the agent need 3.9 or newer. Install one there",
            ],
        ),
        ({"glibc": ""}, ["needs glibc 2.31 and the candidate has another C library (musl?). Install a system with"]),
        ({"machine": "aarch64"}, ["built for x86_64 and the candidate is aarch64. Use a control node of the"]),
    ],
)
def test_a_system_is_taken_or_refused_by_name(
    said: dict[str, str], messages: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    machine = Saying(**said)
    found = unfit(machine, layout(tmp_path))
    assert len(found) == len(messages)
    assert all(message in one for message, one in zip(messages, found, strict=True))
    assert machine.asked == ["runtime"]
    for wrong, remedy in map(halves, found):
        assert remedy.startswith(("Install ", "Use a control node "))
        assert "Install" not in wrong
    if found:
        with pytest.raises(RefusedError, match=r"^old cannot be a candidate: .*\. Nothing was changed$"):
            check_fit(machine, Layout(tmp_path), "old")


@pytest.mark.parametrize("said", [{"glibc": None}, {"glibc": "new"}, {"python": "3.x"}, {"libraries": {}}, {"more": 1}])
def test_an_account_that_is_none_is_an_error(said: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"which are no versions|the candidate's account of its system"):
        unfit(Saying(**said), layout(tmp_path))


def test_a_damaged_program_of_ours_is_named(tmp_path: Path) -> None:
    here = layout(tmp_path)
    here.hotstore.parent.mkdir(parents=True)
    here.hotstore.write_bytes(b"\x7fELF\x02\x01 torn")
    with pytest.raises(BenchError, match=r"hotstore is damaged: .* Build it again"):
        unfit(Saying(), here)


def test_this_machine_is_not_asked() -> None:
    assert unfit(LocalMachine(), Layout()) == []


def test_the_question_is_put_in_the_words_of_an_old_python(tmp_path: Path) -> None:
    text = source_of("runtime")
    ast.parse(text, feature_version=(3, 6))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", text], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    said = json.loads(done.stdout)["result"]
    assert sorted(said) == sorted(EL9)
    assert "libc.so.6" in said["libraries"]
