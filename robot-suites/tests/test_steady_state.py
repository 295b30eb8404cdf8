"""The steady-state workload on a file of this machine, short; its tests as data; what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.base.units import KIB, MIB
from daq_bench.bench_model.documents.run import Host
from daq_bench.bench_model.evidence.measured import measure
from daq_bench.bench_model.profiles.candidates import Target, load_candidate
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import load_requirements
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.bench_model.verdict.decision import decide, estimate
from daq_bench.bench_model.workloads.steady_state.rounds import steady_window
from daq_bench.bench_model.workloads.steady_state.summary import summary_of
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.candidate.load_target import FileTarget
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.run.preflight import check_workloads
from daq_bench.rig.workloads.shared.fio_job import JobFiles
from daq_bench.rig.workloads.steady_state import tests as steady_tests
from daq_bench.rig.workloads.steady_state import workload as steady_state
from daq_bench.rig.workloads.steady_state.tests import Test, round_file, round_values, shortcomings, tests_of
from daq_bench.rig.workloads.steady_state.workload import SteadyPlan, round_document, run_steady_state, test_document

INVENTORY = Layout().inventory
MACHINE = LocalMachine()
STANDARD = load_scenario(INVENTORY / "scenarios" / "steady-state.yml")
REHEARSAL = load_scenario(INVENTORY / "scenarios" / "steady-state-rehearsal.yml")
CANDIDATE = load_candidate(INVENTORY / "lab.yml", "this-machine")
NOWHERE = Survey(Host(memory_bytes=2**34), [], None, 0.0)
# not tests, although their names say so
test_document.__test__ = False  # type: ignore[attr-defined]
tests_of.__test__ = False  # type: ignore[attr-defined]
Test.__test__ = False  # type: ignore[attr-defined]


def asked(scenario: Any) -> dict[str, Any]:
    found: dict[str, Any] = scenario.workloads["steady_state"]
    return found


def test_the_standards_scenario_falls_short_of_it_in_nothing() -> None:
    assert shortcomings(asked(STANDARD)) == []
    iops = next(test for test in tests_of(asked(STANDARD), 512) if test.name == "iops")
    assert len(iops.points) == 56
    # from reads to writes, from large to small
    assert [iops.points[0].name, iops.points[7].name, iops.points[-1].name] == ["r100-1048576", "r100-512", "r0-512"]
    assert iops.tracked == "r0-4096"


def test_a_rehearsal_says_all_that_it_leaves_out() -> None:
    texts = " | ".join(shortcomings(asked(REHEARSAL)))
    for part in (
        "on 512 MiB of the target",
        "lasts 2 s instead of",
        "in 12 rounds at most",
        "throughput test leaves out 1 MiB",
        "95 % reads",
    ):
        assert part in texts, part


def test_a_drive_with_4_kib_blocks_is_not_asked_for_smaller_transfers() -> None:
    by_name = {test.name: test for test in tests_of(asked(STANDARD), 4096)}
    assert len(by_name["iops"].points) == 49
    assert by_name["latency"].notes == ("not measured: 512 B, smaller than the drive's logical block of 4096 B",)


def test_the_jesd219_mix_has_its_shares() -> None:
    scenario = load_scenario(INVENTORY / "scenarios" / "jesd219.yml")
    (fine,) = tests_of(asked(scenario), 512)
    split = dict(pair.split("/") for pair in fine.points[0].split.split(":"))
    assert sum(map(int, split.values())) == sum(steady_tests.JESD219_SIZES.values()) == 100
    assert (split["512"], split["3584"], split["4096"], split["65536"]) == ("4", "1", "67", "3")
    options = round_file(fine, 10**9).options({}, "mix")
    assert options["rwmixread"] == "40"
    assert options["random_distribution"] == "zoned:50/5:30/15:20/80"
    (coarse,) = tests_of(asked(scenario), 4096)
    assert coarse.points[0].split == "4096/77:8192/10:16384/7:32768/3:65536/3"
    assert coarse.notes[-1].startswith("10 % of the transfers are raised to the drive's logical block")


def test_every_round_has_a_seed_of_its_own() -> None:
    (test, *_) = tests_of(asked(REHEARSAL), 512)
    job = round_file(test, 2**29)
    seeds = {job.options(round_values(test, 2, number), test.tracked)["randseed"] for number in (1, 2)}
    assert seeds == {"1", "2"}


def test_a_folder_needs_a_span_and_a_test_its_tracking_variable() -> None:
    with pytest.raises(
        RefusedError,
        match="has no span_size, so that it takes a whole drive, but the target of this-machine is a folder",
    ):
        check_workloads(STANDARD, CANDIDATE, NOWHERE)
    parameters = {**asked(REHEARSAL), "iops": {**asked(REHEARSAL)["iops"], "transfer_sizes": [64 * KIB]}}
    without = replace(REHEARSAL, workloads={"steady_state": parameters})
    with pytest.raises(
        RefusedError, match=r"steady_state\.iops\.transfer_sizes: lacks 4KiB, by which the standard judges"
    ):
        check_workloads(without, CANDIDATE, NOWHERE)


def test_a_workload_that_needs_a_file_system_is_refused_on_a_raw_drive() -> None:
    raw = replace(CANDIDATE, target=Target("", "raw-device", "", "S1", None, True))
    with pytest.raises(
        RefusedError, match=r"workloads\.hot_store needs a file system, but the target of this-machine is a raw drive"
    ):
        check_workloads(load_scenario(INVENTORY / "scenarios" / "hot-store.yml"), raw, NOWHERE)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Two tests, for real, on a file of 32 MiB."""
    folder = Layout().build / "tests" / "steady"
    folder.mkdir(parents=True, exist_ok=True)
    parameters = {
        "span_size": 32 * MIB,
        "purge": "discard",
        "seconds_per_point": 1,
        "rounds_max": 5,
        "latency": {"transfer_sizes": [4 * KIB], "read_percents": [0, 100]},
        "jesd219": {"io_depth": 4, "threads": 1},
    }
    raw = tmp_path_factory.mktemp("raw")
    plan = SteadyPlan(
        parameters, 1, FileTarget(MACHINE, folder / steady_state.FILE), None, None, JobFiles(MACHINE, raw, raw)
    )
    try:
        result = run_steady_state(MACHINE, plan, lambda text, step, steps, seconds: None)
        assert list(folder.iterdir()) == []
        assert len(list(raw.glob("steady-latency-round-*.json"))) == len(result["tests"][0]["rounds"])
    finally:
        folder.rmdir()
    return result


def test_real_rounds_make_a_whole_document(measured: dict[str, Any]) -> None:
    check_document(measured, "steady-state", "results/steady_state.json")
    assert [test["name"] for test in measured["tests"]] == ["latency", "jesd219"]
    for test in measured["tests"]:
        assert test["conditioning"]["preconditioning"]["bytes_written"] == 2 * 32 * MIB
        assert all(point["admissible"] and point["iops"] > 0 for one in test["rounds"] for point in one["points"])
    mix = measured["tests"][1]["rounds"][0]["points"][0]
    share = mix["read"]["iops"] / mix["iops"]
    assert 0.35 < share < 0.45
    assert any("The preconditioned condition is a file's" in text for text in measured["limits"])


def test_what_is_not_steady_has_no_figure_but_a_reason(measured: dict[str, Any]) -> None:
    test = json.loads(json.dumps(measured["tests"][0]))
    test |= {"steady": False, "window": None, "reason": "steady state was not reached"}
    found = summary_of([test], rounds_max=25)
    assert found.values["write_latency_4kib_mean"] is None
    assert (found.samples, found.intervals) == ({}, {})
    assert found.reasons["steady_state.write_latency_4kib_mean"].endswith("steady state was not reached in 5 rounds")
    assert found.values["tests_not_steady"] == 1
    assert (
        summary_of([test], rounds_max=12).values["tests_not_steady"] is None
    )  # the standard's 25 rounds were not tried


def test_a_steady_mean_is_decided_by_its_windows_range() -> None:
    """The standard's rule decides: all five rounds of the window lie inside, and no level is claimed for it."""
    (test, *_) = tests_of(asked(REHEARSAL), 512)
    rates = [0.098e9, 0.101e9, 0.1e9, 0.104e9, 0.097e9]
    point = {
        "name": "write-131072",
        "bytes_per_s": 0.0,
        "iops": 1.0,
        "latency_us": 1.0,
        "admissible": True,
        "reason": None,
    }
    rounds = [
        {"round": number, "value": rate, "points": [{**point, "bytes_per_s": rate}]}
        for number, rate in enumerate(rates, 1)
    ]
    found = summary_of([test_document(test, {}, rounds, steady_window(rates))], rounds_max=25)
    metrics = load_metrics(INVENTORY / "metrics.yml")
    profile = load_requirements(INVENTORY / "requirements" / "steady-state.yml", metrics)
    asked_for = next(one for one in profile.requirements if one.id == "SS-02")
    document = {
        "summary": found.values,
        "samples": found.samples,
        "intervals": found.intervals,
        "reasons": found.reasons,
    }
    measured = measure(asked_for, metrics[asked_for.metric], {"results/steady_state.json": document})
    known = estimate(asked_for, metrics[asked_for.metric], measured, seed=1)
    assert known.value == pytest.approx(0.1)
    assert known.interval == (0.097, 0.104) and known.confidence is None
    assert known.method.startswith("range of the steady window (SNIA PTS)")
    assert decide(asked_for.comparison, 0.0924288, 0.0, known).decision == "met"
    assert decide(asked_for.comparison, 0.098, 0.0, known).decision == "undecided"
    assert decide(asked_for.comparison, 0.105, 0.0, known).decision == "missed"


def test_a_tracked_point_that_ended_early_or_that_the_device_did_not_see_does_not_count() -> None:
    (test, *_) = tests_of(asked(REHEARSAL), 512)
    side = {
        "io_bytes": 10**9,
        "bw_bytes": 5 * 10**8,
        "iops": 10.0,
        "runtime": 2000,
        "total_ios": 20,
        "lat_ns": {"mean": 1e6, "max": 2e6},
    }
    idle = {**side, "io_bytes": 0, "bw_bytes": 0, "iops": 0.0, "runtime": 0, "total_ios": 0}
    jobs = [
        {"jobname": "read-131072", "error": 0, "read": side, "write": idle},
        {"jobname": "write-131072", "error": 0, "read": idle, "write": side},
    ]
    good = round_document(test, 1, 2.0, json.dumps({"jobs": jobs}), 10**9)
    assert (good["value"], good["reason"]) == (5e8, None)
    unseen = round_document(test, 1, 2.0, json.dumps({"jobs": jobs}), 10**6)
    assert unseen["value"] is None
    assert unseen["reason"] == "the device counted 1000000 B of the 1000000000 B that fio says it wrote"
    jobs[1]["write"] = {**side, "runtime": 1200}
    early = round_document(test, 1, 2.0, json.dumps({"jobs": jobs}), 10**9)
    assert (early["value"], early["reason"]) == (None, "ran for 1.20 s of 2 s")
    jobs[0]["error"] = 5
    with pytest.raises(
        BenchError, match=r"fio reports I/O errors in round 1 of throughput-128kib: read-131072 \(error 5\)"
    ):
        round_document(test, 1, 2.0, json.dumps({"jobs": jobs}), 10**9)
