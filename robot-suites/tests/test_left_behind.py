"""Tells what the next bench takes back after one that was killed: points, folders, sockets; never what somebody else may want."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest
from daq_bench.audit.good.small_run import candidate, some_run

from daq_bench.bench_model.profiles.candidates import Candidate, Target
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.shell import Completed
from daq_bench.rig.candidate.connection import Connection
from daq_bench.rig.candidate.machine import SshMachine
from daq_bench.rig.candidate.ssh import SshLink
from daq_bench.rig.checking.sealing import seal_evidence
from daq_bench.rig.cli import candidate as cli
from daq_bench.rig.run.clean_up import RUNS, SOCKETS, socket_folder, take_back


class There(SshMachine):
    """A candidate that is a folder of this machine; its commands are real, its paths below `root`, its service is a word."""

    def __init__(self, root: Path, listed: str = "") -> None:
        super().__init__(SshLink(Connection("ssh", "server"), root / "no-link"))
        self.root, self.listed, self.asked = root, listed, list[str]()

    def run(self, argv: Sequence[str | Path], timeout_s: float, env: Mapping[str, str] | None = None) -> Completed:
        words = [str(self.root) + str(word) if str(word).startswith(str(RUNS)) else str(word) for word in argv]
        self.asked.append(" ".join(map(str, argv)))
        if words[0] == "systemctl":
            return Completed(tuple(words), 0, "", "")
        if words[0] == "find" and self.listed:
            return Completed(tuple(words), 0, self.listed, "")
        done = subprocess.run(words, capture_output=True, text=True, timeout=timeout_s, check=False)
        return Completed(tuple(words), done.returncode, done.stdout, done.stderr)

    def fetch(self, path: Path, local: Path) -> None:
        local.write_bytes(Path(f"{self.root}{path}").read_bytes())

    def folder(self, run: str) -> Path:
        return Path(f"{self.root}{RUNS}") / run


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def killed(runs: Path, there: There, of: str = "server", text: str = "a\nb\n") -> Bundle:
    """A bundle whose run was killed when the agent had stored more than the bundle has."""
    bundle = Bundle.create(runs, of, "", "trial")
    bundle.begin(some_run(state="running", candidate=candidate(of)))
    spool = there.folder(bundle.id) / "telemetry"
    spool.mkdir(parents=True)
    (spool / "points.lp").write_text(text, encoding="utf-8")
    (spool / "workload.lp").write_text("carried\n", encoding="utf-8")
    (bundle.path / "telemetry" / "points.lp").write_text("a\n", encoding="utf-8")
    bundle.workload_file.write_text("carried\nand not carried\n", encoding="utf-8")
    return bundle


def test_points_come_into_the_bundle_of_the_killed_run_and_the_folder_goes(runs: Path, tmp_path: Path) -> None:
    there, said = There(tmp_path / "there"), list[str]()
    bundle = killed(runs, there)
    take_back(there, runs, said.append)
    assert (bundle.path / "telemetry" / "points.lp").read_text(encoding="utf-8") == "a\nb\n"
    assert "and not carried" in bundle.workload_file.read_text(encoding="utf-8")  # the bench wrote to its last moment
    assert not there.folder(bundle.id).exists()
    assert there.asked.index("systemctl stop daq-bench-agent.service") < there.asked.index(
        f"rm -r -f -- {RUNS / bundle.id}"
    )
    assert said == [f"took back what the killed run {bundle.id} had left on the candidate"]
    take_back(there, runs, said.append)
    assert len(said) == 1


def test_a_sealed_bundle_gets_nothing_more(runs: Path, tmp_path: Path) -> None:
    there = There(tmp_path / "there")
    bundle = killed(runs, there)
    seal_evidence(bundle.path)
    take_back(there, runs, print)
    assert (bundle.path / "telemetry" / "points.lp").read_text(encoding="utf-8") == "a\n"
    assert not there.folder(bundle.id).exists()


def test_a_run_of_somebody_else_keeps_its_folder(runs: Path, tmp_path: Path) -> None:
    there, said = There(tmp_path / "there"), list[str]()
    elsewhere = there.folder("20260101T000000Z-server-trial")
    elsewhere.mkdir(parents=True)
    take_back(there, runs, said.append)
    assert elsewhere.exists()
    assert "has no bundle in" in said[0]


@pytest.mark.parametrize("name", ["..", "../runs", "a/b", "-rf", ""])
def test_names_are_the_candidates_words_and_lead_nowhere(runs: Path, tmp_path: Path, name: str) -> None:
    there = There(tmp_path / "there", listed=f"{name}\n")
    killed(runs, there)
    take_back(there, runs, print)
    assert not any(asked.startswith(("rm", "test")) for asked in there.asked)


def test_a_candidate_cannot_name_the_run_of_another_one(runs: Path, tmp_path: Path) -> None:
    there = There(tmp_path / "there")
    other = killed(runs, there, of="another")
    take_back(there, runs, print)
    assert (other.path / "telemetry" / "points.lp").read_text(encoding="utf-8") == "a\n"
    assert there.folder(other.id).exists()


@pytest.fixture
def short() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def test_folders_of_sockets_go_with_benches_that_are_gone(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead, living, foreign = (short / f"{SOCKETS}{name}" for name in (f"{ended.pid}-a", f"{os.getppid()}-b", "x"))
    for folder in (dead, living, foreign):
        folder.mkdir()
    with socket_folder(os.getpid()) as own:
        assert not dead.exists() and living.exists() and foreign.exists() and own.is_dir()
        assert own.parent == short
    assert not own.exists()


def test_a_temporary_folder_with_a_long_path_keeps_no_socket(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ssh called it `too long for Unix domain socket`, and the bench told the user to correct the inventory."""
    long = short / ("x" * 60)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with socket_folder(os.getpid()) as own, socket.socket(socket.AF_UNIX) as made:
        assert own.parent == Path("/tmp")
        made.bind(str(own / f"ssh.{'X' * 16}"))
    assert not own.exists() and list(long.iterdir()) == []


def test_a_failed_file_system_is_told_and_what_the_others_hold_is_removed(tmp_path: Path) -> None:
    """A drive that was pulled: what the bench built there is undone with all that is on it; a file system of the user's keeps files."""
    built = Target("built", "filesystem", "/srv/dead", None, {"drives": ["S1"], "destroy": True})
    theirs = replace(built, name="theirs", directory="/srv/theirs", storage=None)
    whole = replace(built, name="whole", directory="/srv/whole")
    asked, said = list[str](), list[str]()

    class Failing(There):
        def call(self, program: str, *arguments: str | Path, timeout_s: float = 60) -> Any:
            asked.append(str(arguments[1]))
            dead = str(arguments[1]) != "/srv/whole"
            failed = f"{arguments[1]}: Input/output error" if dead else None
            return {"removed": [] if dead else [["daq-bench-killed", 5 * 10**9]], "failed": failed}

    @dataclass(frozen=True)
    class Entry:
        name: str
        targets: tuple[Target, ...]
        target: Target = built

    there = Failing(tmp_path)
    entry = Entry("server", (built, theirs, whole))
    kept = cli._take_back(there, cast(Candidate, entry), Layout(), tmp_path / "runs", said.append)
    assert asked == ["/srv/dead", "/srv/theirs", "/srv/whole"]
    assert kept == ["/srv/theirs: Input/output error"]
    assert said == ["removed daq-bench-killed (5.0 GB), left behind by a run that was killed"]
