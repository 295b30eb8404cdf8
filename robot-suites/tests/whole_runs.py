"""A run as a user starts it, in a process of its own, and the documents of the bundle that it leaves."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader

from daq_bench.rig.base.settings import Layout
from daq_bench.virtual_candidate.ports import free_ports


def document(folder: Path, name: str = "") -> dict[str, Any]:
    """The JSON file `name` of a folder, or the file itself."""
    loaded: dict[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
    return loaded


def rig(*words: str, timeout_s: float = 900) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "daq_bench.rig", *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, check=False)


def check_bundle(bundle: Path) -> None:
    checked = rig("check-bundle", str(bundle))
    assert checked.returncode == 0, checked.stdout + checked.stderr


@dataclass(frozen=True)
class Finished:
    """A whole run: its bundle, where its target was, and how the command ended."""

    bundle: Path
    disk: Path
    done: subprocess.CompletedProcess[str]

    def document(self, name: str) -> dict[str, Any]:
        return document(self.bundle, name)

    def verdict(self) -> dict[str, Any]:
        """The verdict of a rehearsal, which is INADMISSIBLE, or FAIL on a machine that misses the scaled bounds, and never PASS."""
        verdict = self.document("verdict.json")
        assert verdict["outcome"] in ("INADMISSIBLE", "FAIL"), self.done.stdout + self.done.stderr
        assert "Traceback" not in self.done.stderr, self.done.stderr
        return verdict

    def texts(self) -> list[str]:
        return [finding["text"] for finding in self.verdict()["findings"]]

    def decisions(self, *ids: str) -> list[str]:
        found = {one["id"]: one["decision"] for one in self.verdict()["requirements"]}
        return [found[one] for one in ids]

    def report(self) -> str:
        pages = PdfReader(self.bundle / "report.pdf").pages
        return " ".join(" ".join(page.extract_text() for page in pages).split())


@contextmanager
def rehearsed(folders: pytest.TempPathFactory, scenario: str, *options: str) -> Iterator[Finished]:
    """Runs a rehearsal without InfluxDB: none is at a free port. Its target is empty when it has ended."""
    folder, disk = folders.mktemp(scenario), Layout().build / "tests" / scenario
    argv = [
        *(sys.executable, "-m", "daq_bench.rig", "qualify", "--scenario", scenario, *options),
        *("--runs", str(folder / "runs"), "--target", str(disk)),
        *("--influx-url", f"http://127.0.0.1:{free_ports(1)[0]}"),
    ]
    # A run of the user's own neither waits nor is waited for.
    environment = {**os.environ, "DAQ_BENCH_LOCK_DIR": str(folders.mktemp("locks"))}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=3000, check=False, env=environment)
    assert list(disk.iterdir()) == [], "scratch files were left behind"
    yield Finished((folder / "runs" / "latest").resolve(), disk, done)
    shutil.rmtree(disk)
