"""A good server passes: every shipped scenario, on every kind of target that its profile allows, for drives from 0.48 TB to sets of 250 TB.

The evidence is that of the audit's good runs, the judge the bench's own. Where a target cannot carry the scenario, preflight's own checks
must refuse it beforehand, with the change that would make a PASS possible."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from daq_bench.audit.__main__ import scenarios
from daq_bench.audit.good import results_of
from daq_bench.audit.good.case import INVENTORY, Case, case_of, evidence_of

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_model.documents.run import Drive, Host
from daq_bench.bench_model.documents.struct import read
from daq_bench.bench_model.documents.verdict import PASS
from daq_bench.bench_model.profiles.candidates import Candidate, Target, load_candidate
from daq_bench.bench_model.verdict.verdict import judge
from daq_bench.rig.candidate.host import Node, Survey
from daq_bench.rig.candidate.host import Target as FoundTarget
from daq_bench.rig.run import preflight
from daq_bench.rig.workloads.registry import workloads_of

TB = 10**12
CAPACITIES = ((480 * 10**9, 1), (1920 * 10**9, 1), (7680 * 10**9, 1), (30720 * 10**9, 1), (250 * TB, 32))
KINDS = ("filesystem", "raw-device")
# Their own words on page one say that they measure less than is demanded: on any target.
NO_QUALIFICATION = ("-rehearsal", "-emulated", "dune-snb")
NETWORK = {
    "interface": "eth0",
    "address": "10.1.0.1",
    "link": "switch",
    "peers": [{"host": f"ru-0{number}", "interface": "eth0", "address": f"10.1.0.{number}"} for number in (2, 3, 4)],
}
REFUSALS_KNOWN = (
    "is too small: ",
    "write_budget",
    "cannot show that",
)
OF_KINDS = ("needs a file system, but the target of", "takes a whole drive, but the target of")
REMEDIES = ("Use a larger target", "Choose a ", "choose a ", "Raise ", "Give ", "raise ", "A higher write_budget")


def shipped() -> Iterator[str]:
    yield from (name for name in scenarios() if not name.endswith(NO_QUALIFICATION))


def candidate_of(case: Case) -> Candidate:
    serials = [one["serial"] for one in case.drives]
    storage = {"drives": serials, "destroy": True, "filesystem": "xfs"}
    storage |= {"raid": {"level": 0}} if case.members > 1 else {}
    target = Target("", case.target_kind, "" if case.raw else "/srv/t", serials[0] if case.raw else None, storage)
    if case.raw:
        target = replace(target, storage=None, destroy=True)
    loaded = load_candidate(INVENTORY / "lab.yml", "this-machine")
    document = {**loaded.document, "network": NETWORK}
    return replace(loaded, name="imaginary", target=target, transient_buffer_bytes=128 * 10**9, document=document)


def survey_of(case: Case) -> Survey:
    """The candidate's own description once its file system is made."""
    drives = [read(one, Drive, "a drive") for one in case.drives]
    nodes = [Node(one.name, f"/dev/{one.name}", "disk", None, one) for one in drives]
    free = case.capacity_bytes if case.raw else int(0.98 * case.capacity_bytes)
    found = FoundTarget(None if case.raw else "xfs", free, read(case.device, Drive, "the target"))
    return Survey(Host(memory_bytes=512 * 10**9), nodes, found, 0.0)


def refused(case: Case) -> str:
    """Preflight's refusal; empty where it lets the run begin."""
    candidate, found = candidate_of(case), survey_of(case)
    assert found.target is not None
    free = found.target.free_bytes
    reserve = 0 if case.raw else preflight.reserve_of(candidate, free)
    try:
        preflight.check_space(case.scenario, Path("/srv/t"), free, reserve)
        preflight.check_memory(candidate, case.scenario, found.host.memory_bytes or 0)
        preflight.check_workloads(case.scenario, candidate, found)
    except RefusedError as error:
        return str(error)
    return ""


def kind_refused(name: str, kind: str) -> str:
    """A refusal of the target's kind by the workloads' own code; empty where there is none."""
    case = case_of(name, kind=kind, capacity_bytes=7680 * 10**9)
    candidate, found = candidate_of(case), survey_of(case)
    for workload in workloads_of(case.scenario):
        try:
            preflight.check_workload(workload, case.scenario, candidate, found)
        except RefusedError as error:
            if any(one in str(error) for one in OF_KINDS):
                return str(error)
    return ""


@pytest.mark.parametrize("name", [file.stem for file in sorted((INVENTORY / "scenarios").glob("*.yml"))])
def test_no_scenario_allows_a_kind_of_target_that_its_workloads_refuse(name: str) -> None:
    """The test robot-suites/tests/test_raw_workloads.py tries what a workload refuses for real."""
    kinds = case_of(name).profile.conditions.target_kinds
    assert [why for kind in kinds if (why := kind_refused(name, kind))] == []


def test_a_kind_that_a_workload_refuses_is_seen() -> None:
    assert "needs a file system, but the target of" in kind_refused("interference", "raw-device")
    assert "takes a whole drive, but the target of" in kind_refused("steady-state", "filesystem")


@pytest.mark.parametrize("name", [*shipped()])
def test_a_good_server_passes_or_is_refused_in_seconds(name: str) -> None:
    passed = []
    for kind in case_of(name).profile.conditions.target_kinds:
        for capacity, members in CAPACITIES:
            if kind == "raw-device" and members > 1:
                continue  # a set of drives is no raw drive
            case = case_of(name, kind=kind, capacity_bytes=capacity, members=members)
            began = time.process_time()
            why = refused(case)
            assert time.process_time() - began < 5
            if why:
                assert any(one in why for one in REFUSALS_KNOWN), why
                assert any(one in why for one in REMEDIES), why
                continue
            verdict = judge(evidence_of(case, results_of(case)), case.profile, case.metrics)
            assert verdict.outcome == PASS, (kind, capacity, verdict.reasons)
            passed.append((kind, capacity))
    assert 7680 * 10**9 in {capacity for _, capacity in passed}
