"""The wear experiment on the virtual candidate: interrupted by Ctrl-C and by a power cut, resumed, and refused when its budget is spent.

The drive's own counter, read beside the bench, is what the budget is held against."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from whole_runs import document

from daq_bench.bench_model.documents.results import WearExperiment
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.workloads.shared.wear_ledger import ledger_file
from daq_bench.virtual_candidate.candidate import VirtualCandidate

pytestmark = [pytest.mark.virtual, pytest.mark.campaign, pytest.mark.usefixtures("own_lock")]

LAYOUT = Layout()
YAML_SAFE = YAML(typ="safe")
SERIAL = "VCXP0001"
BUDGET, STEP, FILE = 400_000_000, 32 * 2**20, 16 * 2**20
NOWHERE = "http://127.0.0.1:18999"  # no InfluxDB: the runs go on without


def wear_of_one_drive(candidate: dict[str, Any]) -> None:
    del candidate["bmc"]
    candidate["targets"] = {"reference": candidate["targets"]["reference"]}
    candidate["tuning"] = {}
    candidate["drive_ratings"] = [
        {"serial": SERIAL, "dwpd": 30, "years": 5, "source": "an invented rating, for the test"}
    ]


@pytest.fixture(scope="module")
def asked(
    virtual_machine: VirtualCandidate, inventory_of: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[str]]:
    """The words that choose candidate, scenario and requirement; the account of the experiment goes with the fixture."""
    at, folder = virtual_machine.instance, tmp_path_factory.mktemp("endurance")
    inventory = inventory_of(at, wear_of_one_drive)
    scenario = load_scenario(LAYOUT.inventory / "scenarios" / "endurance-rehearsal.yml").document
    scenario["id"] = "short-endurance"
    scenario["workloads"]["endurance"] |= {"write_budget": BUDGET, "step_size": STEP, "file_size": FILE}
    YAML_SAFE.dump(scenario, folder / "short-endurance.yml")
    yield [
        *("--candidate", at.name, "--inventory", str(inventory), "--scenario", str(folder / "short-endurance.yml")),
        *("--requirement", "endurance", "--runs", str(folder / "runs"), "--influx-url", NOWHERE),
    ]
    if (state := LAYOUT.state_directory(at.name)).exists():  # a run that was refused made none
        shutil.rmtree(state)


def runs_of(asked: list[str]) -> Path:
    return Path(asked[asked.index("--runs") + 1])


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "daq_bench.rig", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for_steps(run: subprocess.Popen[str], bundles: Path, before: Path | None, steps: int) -> Path:
    """Waits until the newest run has settled so many steps and reserved another; returns its bundle."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        assert run.poll() is None, run.communicate()
        bundle = (bundles / "latest").resolve()
        ledger = bundle / "results" / "endurance_ledger.json"
        if bundle != before and ledger.exists():
            entries = [entry for entry in document(ledger)["entries"] if entry["run"] == bundle.name]
            if len(entries) > steps and entries[-1]["charged_bytes"] is None:
                return bundle
        time.sleep(0.05)
    raise AssertionError(f"no run reserved step {steps + 1} within 300 s")


def counted(bundle: Path) -> int:
    """Returns the drive's own count of bytes written while the run's workload ran, as far as the bundle knows."""
    result = document(bundle / "results" / "endurance.json")
    started = result["at_start"][0]["written_bytes"]
    seen = [
        entry["after"]["written_bytes"][SERIAL]
        for entry in result["ledger"]
        if entry["run"] == bundle.name and entry["after"]
    ]
    return max(seen, default=started) - started


def test_budget_holds_over_ctrl_c_a_power_cut_and_resumption(
    virtual_machine: VirtualCandidate, asked: list[str]
) -> None:
    runs = runs_of(asked)
    # Slow enough that a step can be hit: 32 MiB at 16 MB/s take two seconds.
    virtual_machine.hazards.throttle(SERIAL, 16_000_000)
    try:
        with start("qualify", "--yes", *asked) as run:
            first = wait_for_steps(run, runs, None, 2)
            run.send_signal(signal.SIGINT)
            said = run.communicate(timeout=300)
        assert run.returncode == 130, said
        assert f"resume RUN={first}" in said[0] or "daq-bench resume " in said[0]
        after_first = document(first / "results" / "endurance_ledger.json")
        assert all(entry["charged_bytes"] is not None for entry in after_first["entries"])
        spent_first = sum(entry["charged_bytes"] for entry in after_first["entries"])
        assert counted(first) <= spent_first < BUDGET

        with start("resume", "--yes", str(first)) as run:
            second = wait_for_steps(run, runs, first, 2)
            boot = virtual_machine.boot_id()
            virtual_machine.hazards.cut_power()
            said = run.communicate(timeout=400)
        assert run.returncode == 2, said
        assert document(second / "run.json")["resumes"] == first.name
        after_cut = document(second / "results" / "endurance_ledger.json")
        assert after_cut["entries"][-1]["charged_bytes"] is None, "nobody can have seen how far the step came"
        written_before_cut = counted(second)
    finally:
        virtual_machine.hazards.release_all()
        virtual_machine.hazards.restore_power()
    virtual_machine.wait(after_boot=boot)

    done = start("resume", "--yes", str(second))
    said = done.communicate(timeout=600)
    assert done.returncode in (0, 3), said  # 3: telemetry with gaps, on a busy machine
    third = (runs / "latest").resolve()
    result = document(third / "results" / "endurance.json")
    mine = {entry["run"]: entry for entry in result["ledger"]}
    assert list(mine) == [first.name, second.name, third.name]
    cut = mine[second.name]
    assert (cut["charged_by"], cut["charged_bytes"]) == ("reservation", cut["reserved_bytes"])
    # The drive's count, and at most one whole step whose end nobody saw.
    assert counted(first) + written_before_cut + cut["asked_bytes"] + counted(third) <= BUDGET
    assert result["overrun_bytes"] == 0
    assert result["spent_bytes"] <= BUDGET
    assert "does not fit" in result["ended"]
    assert document(third / "verdict.json")["outcome"] == "INADMISSIBLE"
    projection = document(third / "results" / "endurance_projection.json")["drives"][0]["projections"]
    assert [one["load"] for one in projection] == ["supernova", "continuous", "rating"]
    checked = subprocess.run(
        [sys.executable, "-m", "daq_bench.rig", "check-bundle", str(third)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr

    finished = subprocess.run(
        [sys.executable, "-m", "daq_bench.rig", "resume", "--yes", str(third)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 2
    assert "is finished: there is nothing to resume" in finished.stderr
    spent = subprocess.run(
        [sys.executable, "-m", "daq_bench.rig", "qualify", "--yes", *asked], capture_output=True, text=True, check=False
    )
    assert spent.returncode == 2
    assert "are spent by earlier runs" in spent.stderr
    assert "Nothing was written" in spent.stderr
    assert (runs / "latest").resolve() == third, "a refused run leaves no bundle"
    experiment = WearExperiment(virtual_machine.instance.name, "short-endurance", "reference", (SERIAL,))
    assert ledger_file(LAYOUT.state_directory(virtual_machine.instance.name), experiment).exists()
