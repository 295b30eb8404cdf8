"""A comparison of RAID sets with a reference drive on the virtual candidate: real md arrays that share their drives, and a fault."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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
DISTURBED = {"set": "nand-raid0", "round": 3, "throttle_drive": "VCNA0002", "bandwidth_size": "6MB"}


@pytest.fixture(scope="module")
def candidate() -> Iterator[VirtualCandidate]:
    with running_candidate(2 * 10**9, "-raid") as found:
        yield found


@pytest.fixture(scope="module")
def inventory(candidate: VirtualCandidate, inventory_of: Callable[..., Path]) -> Path:
    """With facts that only an inventory knows."""

    def change(entry: dict[str, Any]) -> None:
        entry["rack_units"] = {"value": 2, "source": "invented for this test"}
        entry["targets"]["reference"]["declared"] = {"published": "micron-x100"}
        entry["targets"]["nand-raid5"]["declared"] = {
            "drive_endurance": {"pbw": 10, "source": "invented for this test"},
            "drive_price": {"amount": 500, "currency": "EUR", "date": "2026-11-01", "source": "invented for this test"},
        }

    return inventory_of(candidate.instance, change)


def rig(*words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "daq_bench.rig", *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=1500, check=False, env=dict(os.environ))


@pytest.fixture(scope="module")
def compared(candidate: VirtualCandidate, inventory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of one whole comparison, a drive of one set throttled in its third round."""
    folder = tmp_path_factory.mktemp("comparison")
    scenario = load_scenario(LAYOUT.inventory / "scenarios" / "raid-vs-3dxp-emulated.yml").document
    scenario["id"] = "disturbed"
    scenario["workloads"]["raid_vs_3dxp"] |= {"hazards": [DISTURBED]}
    YAML_SAFE.dump(scenario, folder / "disturbed.yml")
    words = ["--candidate", candidate.instance.name, "--inventory", str(inventory)]
    words += ["--scenario", str(folder / "disturbed.yml"), "--requirement", "raid-vs-3dxp"]
    nowhere = f"http://127.0.0.1:{free_ports(1)[0]}"
    runs = Path(os.environ.get("KEEP_RUNS") or folder / "runs")
    done = rig("qualify", "--yes", *words, "--runs", str(runs), "--influx-url", nowhere)
    assert done.returncode == 0, done.stdout + done.stderr
    return (runs / "latest").resolve()


def test_all_targets_were_measured_in_one_run_and_are_described(compared: Path) -> None:
    run = document(compared / "run.json")
    assert run["target"]["name"] == "reference"
    further = {one["name"]: one for one in run["further_targets"]}
    assert {name: one["device"]["raid_level"] for name, one in further.items()} == {
        "nand-raid0": "raid0",
        "nand-raid5": "raid5",
    }
    for one in further.values():
        assert sorted(drive["serial"] for drive in one["drives"]) == ["VCNA0001", "VCNA0002", "VCNA0003"]
        assert one["layout"]["raid"]["chunk"] == "128KiB"
    found = document(compared / "results" / "raid_vs_3dxp.json")
    orders = [[visit["target"] for visit in one["visits"]] for one in found["rounds"] if one["group"] == 2]
    assert orders == [["reference", "nand-raid5"], ["nand-raid5", "reference"]] * 2


def test_parity_and_declared_facts_are_in_the_figures(compared: Path) -> None:
    targets = {one["name"]: one for one in document(compared / "results" / "raid_comparison.json")["targets"]}
    assert targets["nand-raid0"]["device_bytes_per_byte"] == pytest.approx(1, abs=0.1)
    assert targets["nand-raid5"]["device_bytes_per_byte"] >= 1.45  # three members for two of data
    assert targets["nand-raid5"]["md_threads_s_per_gb"] > 0
    assert targets["nand-raid0"]["md_threads_s_per_gb"] is None
    assert targets["nand-raid5"]["endurance_bytes"]["value"] < 3 * 10e15 / 1.45
    assert targets["nand-raid5"]["cost"]["total"] == 1500
    assert "published" in targets["reference"]["endurance_bytes"]["basis"]
    assert targets["nand-raid0"]["endurance_bytes"]["reason"].startswith("the inventory declares neither")
    for one in targets.values():
        assert one["rack_units"] == {"value": 2.0, "basis": "whole server, declared: invented for this test"}


def test_the_throttled_round_is_named_from_its_event_and_stays_in(compared: Path) -> None:
    comparison = document(compared / "results" / "raid_comparison.json")
    [disturbed] = [one for one in comparison["disturbed"] if (one["set"], one["round"]) == ("nand-raid0", 3)]
    assert "drive VCNA0002 is held to 6 MB/s" in disturbed["cause"]
    assert "throughput" in disturbed["seen_in"]
    [throughput] = [
        one for one in comparison["comparisons"] if (one["set"], one["quantity"]) == ("nand-raid0", "throughput")
    ]
    assert throughput["result"]["n"] == 4
    assert throughput["undisturbed"]["n"] <= 3
    assert throughput["undisturbed"]["ratio"] > throughput["result"]["ratio"]
    reasons = document(compared / "verdict.json")["reasons"]
    assert any("drive VCNA0002 is throttled in round 3 of nand-raid0" in reason for reason in reasons)


def test_everything_is_undone_and_the_bundle_gives_the_same_again(compared: Path, candidate: VirtualCandidate) -> None:
    assert candidate.run("find /opt /srv /var/lib/daq-storage-bench/runs -mindepth 1").strip() == ""
    assert " active " not in candidate.run("cat /proc/mdstat")
    assert candidate.run("wipefs --noheadings /dev/nvme*n1").strip() == ""
    checked = rig("check-bundle", str(compared))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_set_that_cannot_be_built_is_named_and_everything_is_undone(
    candidate: VirtualCandidate, inventory: Path, tmp_path: Path
) -> None:
    """Somebody uses a drive of the set: the guard refuses, nothing is measured on it, and the reference goes too."""
    candidate.run("mkfs.xfs -q -f /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_VCNA0003 && mkdir -p /mnt/own")
    candidate.run("mount /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_VCNA0003 /mnt/own")
    try:
        words = [
            "--candidate",
            candidate.instance.name,
            "--inventory",
            str(inventory),
            "--runs",
            str(tmp_path / "runs"),
        ]
        words += ["--scenario", "raid-vs-3dxp-emulated", "--requirement", "raid-vs-3dxp"]
        done = rig("qualify", "--yes", *words, "--influx-url", f"http://127.0.0.1:{free_ports(1)[0]}")
        assert done.returncode == 2, done.stdout + done.stderr
        assert "set 'nand-raid0' could not be made ready" in done.stdout
        assert "VCNA0003" in done.stdout
        assert "mounted" in done.stdout
        assert "/mnt/own" in candidate.run("cat /proc/mounts")
        assert candidate.run("find /srv -mindepth 1").strip() == ""
    finally:
        candidate.run("umount /mnt/own; wipefs --all /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_VCNA0003")
