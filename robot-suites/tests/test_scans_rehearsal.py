"""The scenario scans-rehearsal as a user runs it on this machine: every scan, its figures, its verdict, and nothing left behind."""

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

from rig.base.settings import Layout
from rig.telemetry.influx_server import free_port

pytestmark = [pytest.mark.integration, pytest.mark.campaign]

LAYOUT = Layout()
PORT = 18486
RESULTS = ("block_scan", "thread_scan", "minidaq_scan", "latency_under_load")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, subprocess.CompletedProcess[str]]]:
    """One whole run: (bundle, how the command ended)."""
    folder = tmp_path_factory.mktemp("scans-rehearsal")
    disk = LAYOUT.build / "tests" / "scans-rehearsal"
    locks = tmp_path_factory.mktemp("locks")  # a run of the user's own neither waits nor is waited for
    argv = [
        *(sys.executable, "-m", "rig", "qualify", "--scenario", "scans-rehearsal", "--requirement", "dune-scans"),
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


def test_the_run_ends_with_a_verdict_that_is_no_pass(finished: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """INADMISSIBLE, or FAIL on a machine that does not even reach the scaled bounds; never PASS at a tenth of the load."""
    bundle, done = finished
    verdict = document(bundle, "verdict.json")
    assert verdict["outcome"] in ("INADMISSIBLE", "FAIL"), done.stdout + done.stderr
    assert done.returncode in ((0, 3) if verdict["outcome"] == "INADMISSIBLE" else (1,))
    texts = [finding["text"] for finding in verdict["findings"]]
    for words in (
        "thread_scan asks for less than the requirement profile demands: threads is [1, 2, 5, 10]",
        "0.1 of one readout unit",
        "seconds_per_point is 1.2 where at least 30 is demanded",
    ):
        assert any(words in text for text in texts), words
    judged = {entry["metric"]: entry for entry in verdict["requirements"]}
    for entry in judged.values():
        assert entry["measured"] is not None or entry["reason"].startswith("Not measured: "), entry


@pytest.mark.parametrize("name", RESULTS)
def test_every_scan_left_its_points(finished: tuple[Path, subprocess.CompletedProcess[str]], name: str) -> None:
    found = document(finished[0], f"results/{name}.json")
    points = found["points"] if "points" in found else [p for scan in found["scans"] for p in scan["points"]]
    assert len(points) >= 4
    assert all(point["admissible"] or point["reason"] for point in points)


def test_the_report_has_every_section_and_names_published_figures_as_such(
    finished: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    text = " ".join(" ".join(page.extract_text() for page in PdfReader(finished[0] / "report.pdf").pages).split())
    for words in ("Block-size scan", "Thread scan", "MiniDAQ against request size", "Latency under load"):
        assert words in text, words
    assert "Published, not measured here: Micron X100" in text


def test_the_bundle_gives_the_same_verdict_again(finished: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    argv = [sys.executable, "-m", "rig", "check-bundle", str(finished[0])]
    checked = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert (finished[0] / "profiles" / "devices" / "published" / "micron-x100.yml").is_file()
