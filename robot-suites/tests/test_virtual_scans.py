"""The scans on a candidate behind SSH: the booted virtual one, a whole qualification with every scan in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from rig.influx_server import free_port
from rig.settings import Layout
from virtual_candidate.candidate import VirtualCandidate

pytestmark = [pytest.mark.virtual, pytest.mark.campaign]

LAYOUT = Layout()
YAML_SAFE = YAML(typ="safe")
RESULTS = ("block_scan", "thread_scan", "minidaq_scan", "latency_under_load")


def inventory_of(virtual_machine: VirtualCandidate, folder: Path) -> Path:
    """The shipped inventory with this candidate's ports and keys, its reference drive as the only target, and little to tune."""
    at = virtual_machine.instance
    document = YAML_SAFE.load(LAYOUT.inventory / "lab.yml")
    host = document["all"]["children"]["candidates"]["hosts"]["virtual"]
    known = f"-o UserKnownHostsFile='{at.ssh / 'known_hosts'}' -o StrictHostKeyChecking=yes"
    host |= {"ansible_port": at.ports.ssh, "ansible_ssh_common_args": known}
    host["ansible_ssh_private_key_file"] = str(at.ssh / "id_ed25519")
    candidate = host["bench_candidate"]
    candidate["bmc"] |= {"ipmi_port": at.ports.ipmi, "redfish_port": at.ports.redfish}
    candidate["bmc"] |= {"redfish_ca_file": str(at.tls / "ca.pem"), "password_file": str(at.password_file)}
    candidate["tuning"] = {"aio_max_nr": 1048576, "queue_scheduler": "none"}
    candidate["targets"] = {"reference": candidate["targets"]["reference"]}
    file = folder / "lab.yml"
    YAML_SAFE.dump({"all": {"children": {"candidates": {"hosts": {at.name: host}}}}}, file)
    return file


def test_every_scan_runs_on_a_candidate_behind_ssh(virtual_machine: VirtualCandidate, tmp_path: Path) -> None:
    words = ["--candidate", virtual_machine.instance.name, "--inventory", str(inventory_of(virtual_machine, tmp_path))]
    words += ["--scenario", "scans-emulated", "--requirement", "scans-emulated", "--runs", str(tmp_path / "runs")]
    words += ["--influx-url", f"http://127.0.0.1:{free_port(18586)}"]  # none is there: the run goes on without
    done = subprocess.run(
        [sys.executable, "-m", "rig", "qualify", *words], capture_output=True, text=True, timeout=1200, check=False
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
