"""Concurrent analysis on the virtual candidate: a drive beside a real md RAID0, the reader in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from whole_runs import document

from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.rig.base.settings import Layout
from daq_bench.virtual_candidate.candidate import VirtualCandidate
from daq_bench.virtual_candidate.ports import free_ports
from daq_bench.virtual_candidate.testing import running_candidate

pytestmark = [pytest.mark.virtual, pytest.mark.campaign]

LAYOUT = Layout()
YAML_SAFE = YAML(typ="safe")
NEEDED = ("pip", "uproot", "awkward", "distributed", "scipy")
SMALL = {
    "sparse": {"events": 4000, "files": 4, "event_size": "1000B", "cluster_events": 500},
    "full": {"events": 400, "files": 4, "event_size": "6000B", "cluster_events": 50},
}


@pytest.fixture(scope="module")
def candidate() -> Iterator[VirtualCandidate]:
    with running_candidate(2 * 10**9, "-analysis") as found:
        yield found


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reader's libraries for the Python of this machine, which is the guest's (both are of the same distribution)."""
    folder = tmp_path_factory.mktemp("wheels")
    argv = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--only-binary",
        ":all:",
        "--dest",
        str(folder),
        *NEEDED,
    ]
    subprocess.run(argv, check=True, timeout=900)
    return folder


@pytest.fixture(scope="module")
def measured(
    candidate: VirtualCandidate,
    inventory_of: Callable[..., Path],
    wheels: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The bundle of a run on the single drive and on the RAID0 of three."""
    folder = tmp_path_factory.mktemp("analysis")
    inventory = inventory_of(candidate.instance, lambda entry: None)
    lab = YAML_SAFE.load(inventory)
    lab["all"]["children"]["candidates"]["hosts"][candidate.instance.name]["bench_analysis_wheels"] = str(wheels)
    YAML_SAFE.dump(lab, inventory)
    scenario = load_scenario(LAYOUT.inventory / "scenarios" / "concurrent-analysis-rehearsal.yml").document
    scenario |= {"id": "two-storages", "repetitions": 4}
    scenario["workloads"]["concurrent_analysis"] |= {
        "storages": ["reference", "nand-raid0"], "sets": SMALL, "layouts": ["ttree"], "drop_caches": True,
        "farm": {"nodes": 2, "rounds": 2},
    }  # fmt: skip
    YAML_SAFE.dump(scenario, folder / "two-storages.yml")
    argv = [
        *(
            sys.executable,
            "-m",
            "daq_bench.rig",
            "qualify",
            "--yes",
            "--candidate",
            candidate.instance.name,
            "--inventory",
            str(inventory),
        ),
        *("--scenario", str(folder / "two-storages.yml"), "--requirement", "concurrent-analysis"),
        *("--runs", str(folder / "runs"), "--influx-url", f"http://127.0.0.1:{free_ports(1)[0]}"),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=7200, check=False, env=dict(os.environ))
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return (folder / "runs" / "latest").resolve()


def test_both_storages_were_read_from_their_own_devices(measured: Path) -> None:
    found = document(measured / "results" / "concurrent_analysis.json")
    by_name = {one["name"]: one for one in found["storages"]}
    assert by_name["nand-raid0"]["devices"][0].startswith("md") and by_name["reference"]["devices"][0].startswith(
        "nvme"
    )
    rates = document(measured / "results" / "concurrent_analysis_rates.json")
    assert {one["storage"] for one in rates["series"] if one["peak_bytes_per_s"]} >= {"reference", "nand-raid0"}
    assert all(one["coldness"] >= 1 for one in rates["points"])


def test_the_physics_is_the_same_on_both(measured: Path) -> None:
    rates = document(measured / "results" / "concurrent_analysis_rates.json")
    assert rates["judged"]["wrong_results"] == 0, rates["physics"]


def test_an_emulated_candidate_never_passes(measured: Path) -> None:
    assert document(measured / "verdict.json")["outcome"] != "PASS"
