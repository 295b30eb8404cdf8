"""The scenario concurrent-analysis-rehearsal as a user runs it here: cold points, right physics, a slow disk, a farm."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader

from bench_model.workloads.concurrent_analysis.analysis import document as rates_of
from rig.base.settings import Layout
from rig.telemetry.influx_server import free_port

pytestmark = [pytest.mark.integration, pytest.mark.campaign]

LAYOUT = Layout()
Finished = tuple[Path, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    """One whole run: (bundle, how the command ended)."""
    folder = tmp_path_factory.mktemp("analysis-rehearsal")
    disk = LAYOUT.build / "tests" / "analysis-rehearsal"
    argv = [
        *(sys.executable, "-m", "rig", "qualify", "--scenario", "concurrent-analysis-rehearsal"),
        *("--runs", str(folder / "runs"), "--target", str(disk)),
        *("--influx-url", f"http://127.0.0.1:{free_port(18596)}"),  # none is there: the run goes on without
    ]
    environment = {**os.environ, "DAQ_BENCH_LOCK_DIR": str(tmp_path_factory.mktemp("locks"))}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=3000, check=False, env=environment)
    assert list(disk.iterdir()) == [], "scratch files were left behind"
    loops = subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True).stdout
    assert str(disk) not in loops, "a loop device was left behind"
    yield (folder / "runs" / "latest").resolve(), done
    shutil.rmtree(disk)


def document(bundle: Path, name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((bundle / name).read_text(encoding="utf-8"))
    return loaded


def test_what_does_not_depend_on_speed_is_met_and_the_run_is_no_pass(finished: Finished) -> None:
    bundle, done = finished
    verdict = document(bundle, "verdict.json")
    assert verdict["outcome"] in ("INADMISSIBLE", "FAIL"), done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    decisions = {one["id"]: one["decision"] for one in verdict["requirements"]}
    assert [decisions[f"ANA-0{number}"] for number in (2, 3)] == ["met"] * 2
    texts = " ".join(finding["text"] for finding in verdict["findings"])
    assert "sets.sparse.events is 40000 where at least 10000000 is demanded" in texts


def test_every_point_was_read_from_the_device(finished: Finished) -> None:
    rates = document(finished[0], "results/concurrent_analysis_rates.json")
    assert rates["judged"]["coldness_min"] >= 1, rates["invalid"]
    assert {one["n"] for one in rates["series"][0]["points"]} == {6}


def test_the_slow_disk_is_slower_than_the_target(finished: Finished) -> None:
    found = document(finished[0], "results/concurrent_analysis.json")
    rates = document(finished[0], "results/concurrent_analysis_rates.json")
    slow = next(one for one in found["storages"] if one["kind"] == "slow-disk")
    if os.geteuid() != 0:
        assert "could not be measured" in slow["reason"]
        return
    assert slow["reason"] is None, slow["reason"]
    peaks = {
        (one["storage"], one["analysis"]): one["peak_bytes_per_s"]
        for one in rates["series"]
        if one["layout"] == "ttree"
    }
    own = found["storages"][0]["name"]
    assert peaks["slow-disk", "full"] < peaks[own, "full"]


def test_what_follows_is_recomputed_and_the_bundle_is_whole(finished: Finished) -> None:
    bundle, _ = finished
    assert rates_of(document(bundle, "results/concurrent_analysis.json")) == document(
        bundle, "results/concurrent_analysis_rates.json"
    )
    argv = [sys.executable, "-m", "rig", "check-bundle", str(bundle)]
    checked = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    text = "".join(page.extract_text() for page in PdfReader(bundle / "report.pdf").pages)
    for words in ("Analysis rate against workers: full", "Farm: aggregate rate", "Mass spectrum"):
        assert words in text, words
