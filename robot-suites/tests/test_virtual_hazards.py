"""The judge of hazards on the virtual candidate sees what is planted; `make crash-trials HAZARDS=virtual` makes the runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import load_requirements
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.crash_trials import virtual_hazards
from daq_bench.crash_trials.__main__ import chosen
from daq_bench.crash_trials.virtual_hazards import HAZARDS, left_behind, short_profiles
from daq_bench.rig.base.settings import Layout
from daq_bench.virtual_candidate.candidate import VirtualCandidate


@pytest.mark.virtual
def test_what_a_run_may_leave_on_the_server_is_seen(virtual_machine: VirtualCandidate) -> None:
    """Files, units, signatures, settings and fans, one by one; then nothing is left to say."""
    before = virtual_machine.run("cat /proc/sys/fs/aio-max-nr").strip()
    plant = "touch /opt/planted; touch /etc/systemd/system/daq-bench-planted.service; mkfs.ext4 -q /dev/nvme0n1"
    virtual_machine.run(f"{plant}; echo 77777 > /proc/sys/fs/aio-max-nr")
    virtual_machine.bmc.sensors.set_fan_mode("full")
    try:
        said = " ".join(left_behind(virtual_machine))
    finally:
        virtual_machine.bmc.sensors.set_fan_mode("standard")
        remove = "rm /opt/planted /etc/systemd/system/daq-bench-planted.service; wipefs --all --quiet /dev/nvme0n1"
        virtual_machine.run(f"{remove}; echo {before} > /proc/sys/fs/aio-max-nr")
    for planted in ("/opt/planted", "daq-bench-planted.service", "ext4", "aio_max_nr 77777", "full speed"):
        assert planted in said
    assert left_behind(virtual_machine) == []


def test_an_undisturbed_run_that_misses_a_requirement_or_names_a_cause_is_objected_to() -> None:
    verdict: dict[str, Any] = {
        "requirements": [{"id": "SNB-01", "outcome": "INADMISSIBLE"}],
        "reasons": ["The candidate is a virtual machine"],
    }
    assert virtual_hazards._undisturbed(verdict) == []
    missed = verdict | {"requirements": [{"id": "SNB-02", "outcome": "FAIL"}]}
    assert "but missed: SNB-02" in virtual_hazards._undisturbed(missed)[0]
    named = verdict | {"reasons": ["Telemetry of ipmi has a gap of 40 s"]}
    assert "bmc_hangs" in virtual_hazards._undisturbed(named)[0]


def test_the_profiles_of_these_runs_are_valid_and_ask_for_power(tmp_path: Path) -> None:
    scenario, requirement = short_profiles(tmp_path)
    assert list(load_scenario(scenario).document["workloads"]) == ["snb_record"]
    metrics = {
        one.metric
        for one in load_requirements(requirement, load_metrics(Layout().inventory / "metrics.yml")).requirements
    }
    assert "snb_record.power_mean" in metrics


def test_a_misspelt_hazard_is_refused_with_those_that_there_are() -> None:
    assert [one.kind for one in chosen(HAZARDS, "reset,power_cut")] == ["power_cut", "reset"]
    for wrong in ("power-cut", "", "reset,"):
        with pytest.raises(BenchError, match=r"no hazard .*; there are nothing, swapped_drive"):
            chosen(HAZARDS, wrong)
