"""Compares what a plan says will be written with what a loop device beneath the target counts while the run really writes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import small_runs
from loop_file_system import SIZE_BYTES, mounted_loop
from small_runs import INVENTORY, small_run, small_scenario

from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.rig.workloads.registry import WORKLOADS
from daq_bench.rig.workloads.shared.plan import UNIT_BYTES_PER_S, Ground, written_by

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a loop device takes root")

# Amounts beside which a journal's are small; rates that a loaded machine keeps.
LARGER: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "snb_record": (
        {"scale": 0.003, "duration_s": 2, "repetitions": 1},
        {"ring_size": "16MiB", "conditions": ["fresh", "preconditioned"], "precondition_size": "128MiB"},
    ),
    "latency_under_load": (
        {"scale": 0.003},
        {"load_factors": [0.5, 1.0], "seconds_per_point": 2, "ring_size": "16MiB"},
    ),
    "saturation": ({"repetitions": 2}, {"span_size": "128MiB", "write_budget": "400MB"}),
    "endurance": ({}, {"write_budget": "700MB"}),
    "raid_vs_3dxp": ({"scale": 0.001}, {"rounds": 2, "write_size": "48MiB", "block_size": "1MiB", "idle_s": 0}),
    "interference": (
        {"scale": 0.003, "duration_s": 2, "repetitions": 1},
        {"victims": ["burst"], "disturbers": ["checksums"]},
    ),
    "block_scan": ({}, {"block_sizes": ["1MiB", "8MiB"], "file_size": "64MiB", "tools": ["fio", "daqwriter"]}),
}


def measured_rate(bundle: Path) -> float:
    """B/s of a scan's points: its loops are closed, so that the drive decides how much they write."""
    scan = json.loads((bundle / "results" / "block_scan.json").read_text(encoding="utf-8"))
    points = [
        point for one in (scan, *scan["others"]) for point in (*one["points"], *one["large_blocks"]["repetitions"])
    ]
    return fmean(one["throughput_bytes_per_s"] for one in points)


@pytest.mark.parametrize("workload", LARGER)
def test_a_plan_names_what_is_then_written(
    tmp_path: Path, disk: Path, monkeypatch: pytest.MonkeyPatch, workload: str
) -> None:
    base, changes, parameters = small_runs.SMALL[workload]
    monkeypatch.setitem(
        small_runs.SMALL, workload, (base, {**changes, **LARGER[workload][0]}, {**parameters, **LARGER[workload][1]})
    )
    with mounted_loop(disk) as drive:
        os.sync()
        before = drive.written_bytes()
        bundle = small_run(tmp_path, drive.folder, workload)
        os.sync()
        written = drive.written_bytes() - before
    (tmp_path / "again").mkdir()
    scenario = load_scenario(small_scenario(tmp_path / "again", workload))
    candidate = load_candidate(INVENTORY / "lab.yml", small_runs.CANDIDATES.get(workload, "this-machine"))
    rate = measured_rate(bundle) if workload == "block_scan" else UNIT_BYTES_PER_S
    ground = Ground(SIZE_BYTES, None, rate, candidate=candidate)
    planned = written_by(WORKLOADS[workload].plan(scenario, ground))
    assert planned == pytest.approx(written, rel=0.1)
