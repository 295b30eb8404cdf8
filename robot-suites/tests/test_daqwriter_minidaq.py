"""`daqwriter minidaq` itself: its JSON keeps to its schemas in every mode, and the properties that came later are there."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.shell import LocalShell

LAYOUT = Layout()
SMALL = ["--duration=0.3", "--links=2", "--superchunk-rate=2000", "--ring-size=4MiB", "--block-size=256KiB"]
TRIGGERED = ["--mode=triggered", "--request-size=100KiB"]
MODES: dict[str, list[str]] = {
    "continuous": [],
    "zero-copy": ["--data-path=zero-copy"],
    "triggered": [*TRIGGERED, "--trigger-rate=20"],
    "unpaced": ["--unpaced", "--bytes=20MB"],
    "unpaced requests": [*TRIGGERED, "--unpaced", "--bytes=20MB", "--data-path=zero-copy"],
    "two applications": ["--applications=2", "--engine=io_uring"],
    "two writers": ["--writers=2"],
    "two applications of two writers": ["--applications=2", "--writers=2", "--unpaced", "--bytes=20MB"],
}


def minidaq(folder: Path, *options: str) -> tuple[int, dict[str, Any]]:
    result = folder / "minidaq.json"
    argv = [str(LAYOUT.daqwriter), "minidaq", f"--json={result}", f"--target={folder / 'record'}", *SMALL, *options]
    completed = LocalShell().run(argv, timeout_s=60)
    return completed.returncode, json.loads(result.read_text(encoding="utf-8"))


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_is_described(disk: Path, mode: str) -> None:
    status, document = minidaq(disk, *MODES[mode])
    check_document(document, "daqwriter-minidaq", mode)
    assert (status, document["status"]) == (0, "complete")
    counts = document["superchunks"]
    assert counts["offered"] == counts["stored"] + counts["lost"] + counts["abandoned"] > 0
    assert {"trigger", "applications", "engine_note"} <= set(document)
    assert {"mode", "paced", "data_path", "applications"} <= set(document["parameters"])
    assert (document["trigger"] is None) == ("triggered" not in mode and "requests" not in mode)
    assert sum(one["stored"] for one in document["applications"]) == counts["stored"]
    loads = [(load["bytes_per_s"], load["duration_s"]) for load in document["transient_buffer"]["extrapolated"]]
    assert (10e9, 100) in loads and (10e9, 120) in loads
    for load in document["transient_buffer"]["extrapolated"]:
        assert 0 < load["estimate_bytes"] <= load["upper_bound_bytes"]


@pytest.mark.parametrize("mode", [[], [*TRIGGERED, "--trigger-rate=30"], ["--writers=2"]])
def test_a_search_is_described_and_leaves_no_record(disk: Path, mode: list[str]) -> None:
    status, document = minidaq(disk, "--search", "--search-resolution=0.3", *mode)
    check_document(document, "daqwriter-minidaq-search", "search")
    assert (status, document["status"]) == (0, "complete")
    assert document["highest_bytes_per_s"] <= document["asked_bytes_per_s"]
    assert [trial["stood"] for trial in document["trials"]].count(True) >= 2
    assert not list(disk.glob("record*"))


def test_a_search_that_is_interrupted_before_its_first_trial_says_so(disk: Path) -> None:
    result = disk / "minidaq.json"
    # Unpaced and without --bytes it would go on for a minute.
    small = [option for option in SMALL if not option.startswith("--duration")]
    command = [str(LAYOUT.daqwriter), "minidaq", f"--json={result}", f"--target={disk / 'record'}"]
    search = subprocess.Popen([*command, *small, "--duration=60", "--search"], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 20
    while not list(disk.glob("record*")) and search.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    search.send_signal(signal.SIGINT)
    said = search.communicate(timeout=120)[1]
    assert "did not complete" in said
    document = json.loads(result.read_text(encoding="utf-8"))
    check_document(document, "daqwriter-minidaq-search", "search")
    assert search.returncode != 0
    assert (document["status"], document["trials"], document["highest_bytes_per_s"]) == ("interrupted", [], None)
    assert not list(disk.glob("record*"))
