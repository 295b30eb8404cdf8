"""The scenario streams-checksum-rehearsal as a user runs it here: comparisons, demand, files, figures, and nothing left behind."""

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

from bench_model.workloads.streams_checksum.analysis import document as analysis_of
from rig.base.settings import Layout
from rig.telemetry.influx_server import free_port

pytestmark = [pytest.mark.integration, pytest.mark.campaign]

LAYOUT = Layout()
PORT = 18586
Finished = tuple[Path, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    """One whole run: (bundle, how the command ended)."""
    folder = tmp_path_factory.mktemp("streams-rehearsal")
    disk = LAYOUT.build / "tests" / "streams-rehearsal"
    locks = tmp_path_factory.mktemp("locks")  # a run of the user's own neither waits nor is waited for
    argv = [
        *(sys.executable, "-m", "rig", "qualify", "--scenario", "streams-checksum-rehearsal"),
        *("--runs", str(folder / "runs"), "--target", str(disk)),
        *("--influx-url", f"http://127.0.0.1:{free_port(PORT)}"),  # none is there: the run goes on without
    ]
    environment = {**os.environ, "DAQ_BENCH_LOCK_DIR": str(locks)}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=1500, check=False, env=environment)
    assert list(disk.iterdir()) == [], "scratch files were left behind"
    yield (folder / "runs" / "latest").resolve(), done
    shutil.rmtree(disk)


def document(bundle: Path, name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((bundle / name).read_text(encoding="utf-8"))
    return loaded


def test_the_verdict_is_no_pass_and_what_does_not_depend_on_speed_is_met(finished: Finished) -> None:
    bundle, done = finished
    verdict = document(bundle, "verdict.json")
    assert verdict["outcome"] in ("INADMISSIBLE", "FAIL"), done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    decisions = {one["id"]: one["decision"] for one in verdict["requirements"]}
    assert [decisions[f"SCK-0{number}"] for number in range(1, 6)] == ["met"] * 5
    texts = [finding["text"] for finding in verdict["findings"]]
    assert any("one server's share: 0.05 GB/s (sustained)" in text for text in texts)


def test_every_comparison_has_its_pairs_and_the_analysis_follows_from_them(finished: Finished) -> None:
    found = document(finished[0], "results/streams_checksum.json")
    assert {len(one["pairs"]) for one in found["comparisons"]} == {6}
    assert {"switched-off", "small-events", "application", "ceiling"} <= {one["kind"] for one in found["comparisons"]}
    assert analysis_of(found) == document(finished[0], "results/streams_checksum_analysis.json")


def test_the_paced_runs_are_in_the_telemetry_too(finished: Finished) -> None:
    lines = (finished[0] / "telemetry" / "points.lp").read_text(encoding="utf-8").splitlines()
    assert any(line.startswith("daqwriter,command=streams,") and "phase=record" in line for line in lines)


def test_the_report_shows_it_and_the_bundle_is_whole(finished: Finished) -> None:
    text = "".join(page.extract_text() for page in PdfReader(finished[0] / "report.pdf").pages)
    for words in ("What handing out an event", "normalised to the original", "What each stream has of the throughput"):
        assert words in text, words
    argv = [sys.executable, "-m", "rig", "check-bundle", str(finished[0])]
    checked = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
