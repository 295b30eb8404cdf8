"""The supernova record on a target that is brought into named conditions: real records, on a file of this machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench_model.documents.results import Conditioning
from bench_model.documents.struct import read
from bench_model.profiles.scenarios import load_scenario
from bench_model.verdict.sequential import Looks, Stopping
from rig.base.settings import Layout
from rig.candidate.load_target import FileTarget, RawDevice
from rig.candidate.machine import LocalMachine
from rig.run.preflight import space_needs
from rig.workloads.snb_record import RecordPlan, minidaq_arguments, run_record

MACHINE = LocalMachine()
FULL = load_scenario(Layout().inventory / "scenarios" / "snb-100s.yml")
SHORT = FULL.altered(0.005, 1.0)


def plan_in(disk: Path, raw: Path) -> RecordPlan:
    parameters = {
        **SHORT.workloads["snb_record"],
        "ring_size": 4 * 2**20,
        "block_size": 2**20,
        "conditions": ["fresh", "preconditioned"],
    }
    return RecordPlan(
        daqwriter=Layout().daqwriter,
        parameters=parameters,
        demand=SHORT.demand,
        seed=1,
        load=lambda name: FileTarget(MACHINE, disk / name),
        capacity_bytes=10**12,
        dedicated=False,
        work=raw,
        raw=raw,
        line_protocol=raw / "workload.lp",
        tags={},
    )


def test_every_condition_has_its_record_and_its_evidence(disk: Path, tmp_path: Path) -> None:
    said: list[str] = []
    twice = Stopping(Looks(2, 2, stages=2), [], {"scenario": {"scale": 0.005}}, dict)
    result = run_record(MACHINE, plan_in(disk, tmp_path), twice, lambda text, step, steps, seconds: said.append(text))
    assert [one["condition"] for one in result["repetitions"]] == ["fresh", "fresh", "preconditioned", "preconditioned"]
    assert {one["verify"]["status"] for one in result["repetitions"]} == {"intact"}
    # fresh before each record, preconditioned once
    assert [one["label"] for one in result["conditioning"]] == [
        "record-1-fresh",
        "record-2-fresh",
        "record-3-preconditioned",
    ]
    for evidence in result["conditioning"]:
        read(evidence, Conditioning, evidence["label"])
    span = result["conditioning"][2]["span_bytes"]
    assert span == SHORT.demand.record_bytes
    assert result["conditioning"][2]["preconditioning"]["bytes_written"] == 2 * (span // 2**17 * 2**17)
    assert any(text.startswith("Preconditioned over 46.21 MB of 1 TB") for text in result["limits"])
    assert "record 4 of 4 (preconditioned)" in said
    assert list(disk.iterdir()) == []


def test_the_links_rate_and_scale_reach_daqwriter_to_the_last_digit(tmp_path: Path) -> None:
    nominal = load_scenario(Layout().inventory / "scenarios" / "snb-100s-nominal.yml")
    plan = replace(plan_in(tmp_path, tmp_path), demand=nominal.demand)
    drive = RawDevice(MACHINE, "S1", Path("/dev/nvme9n1"), True, None)
    words = minidaq_arguments(plan, drive, 1)
    assert "--scale=1.0819138623459355" in words
    assert [word for word in words if "S1" in word] == ["--allow-serial=S1", "--destroy=S1"]


@pytest.mark.parametrize(("size", "expected"), [(None, 924_288_000_000), (2 * 10**12, 2 * 10**12)])
def test_preconditioning_counts_for_capacity(size: int | None, expected: int) -> None:
    parameters: dict[str, Any] = {**FULL.workloads["snb_record"], **({"precondition_size": size} if size else {})}
    (need,) = space_needs(replace(FULL, workloads={"snb_record": parameters}))
    assert need.size_bytes == expected
