"""The fleet's part of `make bench`: it runs, and a size that failed misses its criteria."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from daq_bench.fleet_bench.fleet import FLEET, judge


def point(candidates: int, cpu_s: float, *, failed: bool = False) -> dict[str, Any]:
    quantities = {"cpu_s": {"median": cpu_s}, "max_rss_bytes": {"median": 1e8 + candidates}}
    errors = {FLEET: "it ended"} if failed else {}
    return {"key": {"candidates": candidates}, "contenders": {FLEET: quantities}, "errors": errors}


def test_a_size_that_failed_misses_both_criteria() -> None:
    """The largest ones did, and what was left of the line held."""
    whole = [point(size, 0.1 * size) for size in (1, 8, 150)]
    assert [one.met for one in judge(whole)] == [True, True]
    assert [one.met for one in judge([*whole[:2], point(150, 15.0, failed=True)])] == [False, False]


@pytest.mark.integration  # runs the fleet's own command
def test_a_trial_runs_the_fleets_command(tmp_path: Path) -> None:
    staged, folder = tmp_path / "staged", tmp_path / "trial"
    folder.mkdir()
    for argv in (
        ["daq_bench.simulation.laboratory", str(staged), "2"],
        ["daq_bench.fleet_bench.trial", "2", str(folder), str(staged)],
    ):
        said = subprocess.run([sys.executable, "-m", *argv], capture_output=True, text=True, timeout=300)
        assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout.splitlines()[-1]).keys() == {"seconds", "cpu_s", "max_rss_bytes"}
