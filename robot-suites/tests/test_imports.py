"""No start of the bench waits for a library that it does not need; what decides under load has loaded its own before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import scipy

from daq_bench.bench_model.behaviour.equilibrium import EFFECTIVE_MIN

ROOT = Path(__file__).resolve().parents[2]
AT_ONCE = (
    "daq_bench.bench_model.verdict.judging",
    "daq_bench.rig.cli.runs",
    "daq_bench.rig.run.qualify",
    "daq_bench.rig.workloads.registry",
)


def test_a_large_library_is_loaded_when_it_is_asked_and_not_at_each_start() -> None:
    """Each takes a quarter of a second to a half, as much as the bench's own four hundred modules."""
    libraries = {"ansible.inventory.manager", "influxdb_client", "scipy.signal", "scipy.special", "scipy.stats"}
    shows = f"print(*sorted(set(sys.modules) & {libraries}))"
    watches = "daq_bench.rig.workloads.thermal.watch.Watch()"  # decides under load: what it needs is there before
    text = f"import sys, {', '.join(AT_ONCE)}; {shows}; {watches}; {shows}"
    path = {"PYTHONPATH": f"{ROOT / 'inventory'}:{ROOT / 'robot-suites'}:{ROOT / 'agents'}"}
    made = subprocess.run([sys.executable, "-c", text], env=path, capture_output=True, text=True, check=True)
    assert made.stdout.splitlines() == ["", "scipy.special"]


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.9875, 0.99999])
def test_the_bound_of_an_asymptote_is_that_of_scipy_stats(confidence: float) -> None:
    assert scipy.special.fdtri(1, EFFECTIVE_MIN, confidence) == scipy.stats.f.ppf(confidence, 1, EFFECTIVE_MIN)
