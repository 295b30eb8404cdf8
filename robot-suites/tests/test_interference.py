"""The DAQ day: what is refused beforehand, that disturbers overlap and end, and a real pair on this machine's disk."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from small_runs import altered, refusal

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.workloads.interference import workload as interference
from daq_bench.rig.workloads.interference.activities import KINDS, Setting
from daq_bench.rig.workloads.shared.fio_job import JobFiles

LAYOUT = Layout()
SLEEP = 604


scenario = partial(altered, "interference-rehearsal")
refused = partial(refusal, interference.check)


def test_what_has_nothing_to_compare_is_refused() -> None:
    assert "nothing would disturb readers" in refused(scenario(victims=["burst", "readers"], disturbers=["readers"]))
    without = scenario()
    del without.workloads["interference"]["network"]
    assert "disturbers: network has no parameters" in refused(without)
    assert "duration_s is missing" in refused(replace(scenario(), duration_s=None))


def test_space_is_asked_for_the_longest_burst_and_the_files() -> None:
    need = interference.WORKLOAD.need(scenario(disturbers=["burst", "readers"]))
    burst = 9.24288e9 * 0.02 * interference.disturber_s(2.0)
    assert need.size_bytes == int(burst) + 256 * 2**20
    assert "a burst of 0.1849 GB/s x" in need.arithmetic


def test_traffic_over_loopback_is_said_whatever_is_demanded() -> None:
    whole = altered("interference")
    for one in (scenario(), whole):
        assert [text.split(":")[0] for text in interference.WORKLOAD.limits(one)] == [
            "The network traffic goes over loopback, since network.peer names no server of iperf3"
        ]


def spec(victim_s: float, disturber_s: float) -> str:
    return json.dumps(
        {
            "victim": {"name": "victim", "argv": ["sleep", str(victim_s)]},
            "disturbers": [{"name": "disturber", "argv": ["sleep", str(disturber_s)]}],
            "services": [],
            "lead_s": 0.5,
            "sample_s": 0.1,
            "limit_s": 60,
        }
    )


def test_disturbers_begin_before_and_end_after_their_victim() -> None:
    said = LocalMachine().call("together", spec(1, SLEEP))
    disturber, victim = said["disturbers"][0], said["victim"]
    assert disturber["started_s"] + 0.4 < victim["started_s"] < victim["ended_s"]
    assert disturber["alive_at_end"]
    assert disturber["returncode"] == -signal.SIGINT
    assert disturber["samples"][0][0] < victim["started_s"]
    assert not LocalMachine().call("together", spec(1, 0.8))["disturbers"][0]["alive_at_end"]


def test_what_cannot_be_started_is_named_and_nothing_is_left() -> None:
    document = json.loads(spec(1, SLEEP))
    document["victim"]["argv"] = ["no-such-program"]
    said = LocalMachine().call("together", json.dumps(document))
    assert said["victim"]["returncode"] == 127  # setpriv's own word for it
    document["services"] = [{"name": "a service", "argv": ["false"]}]
    with pytest.raises(BenchError, match="a service ended at once"):
        LocalMachine().call("together", json.dumps(document))
    assert sleeping() == []


def sleeping() -> list[str]:
    listed = subprocess.run(["ps", "-e", "-o", "pid=,args="], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if line.strip().partition(" ")[2] == f"sleep {SLEEP}"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_bench_that_is_ended_takes_all_of_them_with_it(number: signal.Signals) -> None:
    code = f"from daq_bench.rig.candidate.machine import LocalMachine\nLocalMachine().call('together', {spec(SLEEP, SLEEP)!r})\n"
    bench = subprocess.Popen(
        [sys.executable, "-c", code], cwd=LAYOUT.repository / "robot-suites", stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 30
    while len(sleeping()) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(sleeping()) == 2
    bench.send_signal(number)
    bench.wait()
    while sleeping() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sleeping() == []


def test_real_pairs_of_a_reader_and_checksums(disk: Path, tmp_path: Path) -> None:
    parameters = scenario(victims=["readers"], disturbers=["writers", "checksums"]).workloads["interference"]
    parameters["readers"] = {**parameters["readers"], "file_size": 64 * 2**20}
    parameters["writers"] = {**parameters["writers"], "file_size": 64 * 2**20}
    setting = Setting(
        LAYOUT.daqwriter,
        interference.demand_of(scenario()),
        parameters,
        disk,
        JobFiles(LocalMachine(), tmp_path, tmp_path),
        1,
    )
    kept: list[str] = []
    plan = interference.Plan.of(setting, 2.0, 1)
    document = interference.run_interference(LocalMachine(), plan, lambda *_: None, lambda name, _: kept.append(name))
    check_document(document, "interference", "results/interference.json")
    assert [(cell["victim"], cell["disturber"]) for cell in document["cells"]] == [
        ("readers", "writers"),
        ("readers", "checksums"),
        ("readers", "all"),
    ]
    assert len(kept) == 6
    assert list(disk.iterdir()) == []
    for cell in document["cells"]:
        pair = cell["pairs"][0]
        assert pair["alone_first"]
        assert (pair["slowdown"] is None) == bool(pair["reason"]), pair
    assert any(cell["slowdown"] for cell in document["cells"]), document["reasons"]


def test_every_activity_that_a_scenario_may_name_is_there() -> None:
    schema = json.loads(
        (LAYOUT.inventory / "schemas" / "workload-interference.schema.json").read_text(encoding="utf-8")
    )
    assert schema["properties"]["victims"]["items"]["enum"] == list(KINDS)
