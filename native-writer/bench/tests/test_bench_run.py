"""Runs the command for real on one tiny point: daqwriter and fio write to this machine's disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from daq_bench.bench_rounds import cli
from daq_bench.writer_bench import write


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "QUICK_BLOCKS", [1 << 20])
    monkeypatch.setattr(write, "QUICK_THREADS", [2])
    monkeypatch.setattr(write, "SMALLEST_SPAN_BYTES", 64 << 20)


def arguments(disk: Path, daqwriter: Path, *more: str) -> list[str]:
    return [f"--scratch={disk / 'scratch'}", f"--output={disk / 'out'}", f"--daqwriter={daqwriter}", "--quick", *more]


@pytest.mark.usefixtures("tiny")
def test_quick_write(disk: Path, daqwriter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = cli.main(arguments(disk, daqwriter, "--parts=memory,write"))
    document = json.loads((disk / "out" / "write.json").read_text())
    (point,) = document["points"]
    assert point["label"] == "1 MiB x 2"
    assert point["ratios"]["throughput"]["n"] == 3
    runs = [(one["contender"], one["sample"]) for one in point["repetitions"] if "huge" not in one["contender"]]
    sides = ["daqwriter", "fio", "daqwriter, io_uring", "fio, io_uring"]
    assert [name for name, _ in runs] == [*sides, *sides[::-1], *sides]
    by_engine = {one["contender"]: one["sample"]["argv"] for one in point["repetitions"]}
    assert (
        "--engine=io_uring" in by_engine["daqwriter, io_uring"] and "--section=io_uring" in by_engine["fio, io_uring"]
    )
    assert all(sample["bytes_per_s"] > 0 and sample["cpu_s_per_gb"] > 0 for _, sample in runs)
    assert not document["counts_as_claim"]
    assert document["machine"]["filesystem"] and document["versions"]["fio"].startswith("fio-")
    memory = json.loads((disk / "out" / "memory.json").read_text())
    assert [one["label"] for one in memory["points"]] == ["write: daqwriter", "write: daqwriter, io_uring"]
    assert memory["criteria"][0]["met"]
    summary = (disk / "out" / "summary.md").read_text()
    shown = capsys.readouterr()
    assert shown.out == summary
    assert "Not a claim: quick look" in summary
    missed = [one["id"] for one in (*document["criteria"], *memory["criteria"]) if not one["met"]]
    assert status == (cli.MISSED if missed else cli.ALL_HOLD)
    assert all(name in summary for name in missed)
    assert list((disk / "scratch").iterdir()) == []


@pytest.mark.usefixtures("tiny")
def test_a_tool_that_refuses_is_shown_as_failed(
    disk: Path, daqwriter: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(write, "DEPTH", 0)
    assert cli.main(arguments(disk, daqwriter, "--parts=write")) == cli.MISSED
    assert "1 MiB x 2: daqwriter failed: " in capsys.readouterr().out


def test_usage(disk: Path, daqwriter: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--parts=wrote"])
    assert ended.value.code == cli.USAGE
    assert "'wrote'" in capsys.readouterr().err
    assert cli.main(arguments(disk, disk / "absent", "--parts=write")) == cli.USAGE
    assert "make setup" in capsys.readouterr().err
    assert cli.main(arguments(disk, daqwriter, "--parts=memory")) == cli.USAGE
    assert "run one of them" in capsys.readouterr().err


def test_interrupted_run_removes_its_files_and_tells(disk: Path, daqwriter: Path) -> None:
    words = [sys.executable, "-m", "daq_bench.bench_rounds", *arguments(disk, daqwriter, "--parts=write")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    while not list(disk.glob("scratch/*/*.bin")) and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == cli.INTERRUPTED
    assert "interrupted" in said and "Not run: write" in said
    assert list((disk / "scratch").iterdir()) == []
    assert not (disk / "out" / "write.json").exists()
