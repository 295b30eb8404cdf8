"""The scans on a candidate behind SSH: the booted virtual one, a whole qualification with every scan in it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daq_bench.virtual_candidate.candidate import VirtualCandidate
from daq_bench.virtual_candidate.ports import free_ports

pytestmark = [pytest.mark.virtual, pytest.mark.campaign]

RESULTS = ("block_scan", "thread_scan", "minidaq_scan", "latency_under_load")


def reference_alone(candidate: dict[str, Any]) -> None:
    """One target, and little to tune."""
    del candidate["tuning"]["fan_mode"]
    candidate["targets"] = {"reference": candidate["targets"]["reference"]}


def test_every_scan_runs_on_a_candidate_behind_ssh(
    virtual_machine: VirtualCandidate, inventory_of: Callable[..., Path], tmp_path: Path
) -> None:
    inventory = inventory_of(virtual_machine.instance, reference_alone)
    words = ["--candidate", virtual_machine.instance.name, "--inventory", str(inventory)]
    words += ["--scenario", "scans-emulated", "--requirement", "scans-emulated", "--runs", str(tmp_path / "runs")]
    words += ["--influx-url", f"http://127.0.0.1:{free_ports(1)[0]}"]  # none is there: the run goes on without
    done = subprocess.run(
        [sys.executable, "-m", "daq_bench.rig", "qualify", *words],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    bundle = (tmp_path / "runs" / "latest").resolve()
    verdict = json.loads((bundle / "verdict.json").read_text(encoding="utf-8"))
    assert verdict["outcome"] == "INADMISSIBLE", done.stdout + done.stderr
    assert any(reason.startswith("The candidate is a virtual machine") for reason in verdict["reasons"])
    for name in RESULTS:
        document = json.loads((bundle / "results" / f"{name}.json").read_text(encoding="utf-8"))
        points = [p for scan in document.get("scans", [document]) for p in scan["points"]]
        assert points and all(point["admissible"] or point["reason"] for point in points), name
    assert (bundle / "results" / "raw" / "fio-32768-4-threads_bw.log").is_file()
    assert (bundle / "report.pdf").stat().st_size > 10_000
    assert virtual_machine.run("find /srv /var/lib/daq-storage-bench/runs -mindepth 1").strip() == ""
