"""The write budget over a killed bench, Ctrl-C and resumption, on this machine's own disk and by its kernel's counter."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from whole_runs import document

from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.rig.base.settings import Layout

pytestmark = [pytest.mark.integration, pytest.mark.campaign]

LAYOUT = Layout()
YAML_SAFE = YAML(typ="safe")
NAME = "endurance-resume"
BUDGET, STEP = 12_000_000_000, 2**30
NOWHERE = "http://127.0.0.1:18998"  # no InfluxDB: the runs go on without


@pytest.fixture
def asked(tmp_path: Path, disk: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A candidate of its own, so that its account is nobody else's."""
    monkeypatch.setenv("DAQ_BENCH_LOCK_DIR", str(tmp_path))
    host = YAML_SAFE.load(LAYOUT.inventory / "lab.yml")["all"]["children"]["candidates"]["hosts"]["this-machine"]
    host["bench_candidate"] |= {"target": {"kind": "scratch-file", "directory": str(disk)}, "tuning": {}}
    inventory = tmp_path / "lab.yml"
    YAML_SAFE.dump({"all": {"children": {"candidates": {"hosts": {NAME: host}}}}}, inventory)
    scenario = load_scenario(LAYOUT.inventory / "scenarios" / "endurance-rehearsal.yml").document
    scenario["id"] = "resumed"
    scenario["workloads"]["endurance"] |= {"write_budget": BUDGET, "step_size": STEP, "file_size": STEP}
    YAML_SAFE.dump(scenario, tmp_path / "resumed.yml")
    yield [
        *("--candidate", NAME, "--inventory", str(inventory), "--scenario", str(tmp_path / "resumed.yml")),
        *("--requirement", "endurance", "--runs", str(tmp_path / "runs"), "--influx-url", NOWHERE),
    ]
    for folder in (LAYOUT.state_directory(NAME), LAYOUT.install_directory(NAME)):
        if folder.exists():  # a run that was refused made none
            shutil.rmtree(folder)


def rig(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "daq_bench.rig", *words], capture_output=True, text=True, timeout=500, check=False
    )


def interrupted(words: list[str], runs: Path, number: signal.Signals) -> tuple[Path, int, str]:
    """Starts a run and sends it a signal while its second step is reserved: (bundle, exit status, what it said)."""
    before = (runs / "latest").resolve() if (runs / "latest").exists() else None
    deadline = time.monotonic() + 300
    with subprocess.Popen(
        [sys.executable, "-m", "daq_bench.rig", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as run:
        while time.monotonic() < deadline:
            assert run.poll() is None, run.communicate()[0]
            bundle = (runs / "latest").resolve()
            ledger = bundle / "results" / "endurance_ledger.json"
            if bundle != before and ledger.exists():
                mine = [entry for entry in document(ledger)["entries"] if entry["run"] == bundle.name]
                if len(mine) > 1 and mine[-1]["charged_bytes"] is None:
                    run.send_signal(number)
                    said = run.communicate(timeout=300)[0]
                    return bundle, run.returncode, said
            time.sleep(0.005)
        raise AssertionError("no second step was reserved within 300 s")


def test_the_account_survives_a_killed_bench_and_ctrl_c(tmp_path: Path, disk: Path, asked: list[str]) -> None:
    runs = tmp_path / "runs"
    first, status, said = interrupted(["qualify", "--yes", *asked], runs, signal.SIGKILL)
    assert status == -signal.SIGKILL, said
    time.sleep(2)  # the kernel ends what the bench started
    assert document(first / "run.json")["state"] == "running"

    second, status, said = interrupted(["resume", "--yes", str(first)], runs, signal.SIGINT)
    assert status == 130, said
    assert f"removed daq-bench-{first.name}" in said
    assert "daq-bench resume " in said
    assert document(second / "run.json")["resumes"] == first.name
    entries = document(second / "results" / "endurance_ledger.json")["entries"]
    assert all(entry["charged_bytes"] is not None for entry in entries)
    assert {entry["run"] for entry in entries} == {first.name, second.name}
    texts = [json.loads(line)["text"] for line in (second / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    assert any("goes on: " in text and " B left" in text for text in texts)

    state = LAYOUT.state_directory(NAME) / "endurance"
    shutil.rmtree(state)  # the control node loses its account: the bundles know it
    done = rig("resume", "--yes", str(second))
    assert done.returncode in (0, 3), (
        done.stdout + done.stderr
    )  # 3: others wrote to this disk, and the budget was exceeded by them
    third = (runs / "latest").resolve()
    result = document(third / "results" / "endurance.json")
    assert [entry["number"] for entry in result["ledger"]] == list(range(1, len(result["ledger"]) + 1))
    assert {entry["run"] for entry in result["ledger"]} == {first.name, second.name, third.name}
    assert (
        sum(entry["asked_bytes"] for entry in result["ledger"] if entry["run"] == third.name)
        <= BUDGET - result["spent_before_bytes"]
    )
    assert sum(step["written_bytes"] for step in result["steps"]) <= BUDGET - result["spent_before_bytes"]
    assert result["ended"]
    assert list(disk.iterdir()) == []
    checked = rig("check-bundle", str(third), "--scenario", asked[asked.index("--scenario") + 1])
    assert checked.returncode == 0, checked.stderr

    finished = rig("resume", "--yes", str(third))
    assert finished.returncode == 2
    assert "is finished: there is nothing to resume" in finished.stderr
    spent = rig("qualify", "--yes", *asked)
    assert spent.returncode == 2
    assert "are spent by earlier runs" in spent.stderr
    assert (runs / "latest").resolve() == third, "a refused run leaves no bundle"
    scenario = second / "profiles" / "scenarios" / "resumed.yml"
    scenario.write_text(scenario.read_text(encoding="utf-8").replace("io_depth: 8", "io_depth: 9"), encoding="utf-8")
    altered = rig("resume", "--yes", str(second))
    assert altered.returncode == 2
    assert "profiles/scenarios/resumed.yml changed since the run" in altered.stderr
