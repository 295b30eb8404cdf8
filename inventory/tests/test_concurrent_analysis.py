"""Rates of the concurrent analysis, against numbers worked by hand; what is masked and why; what is wrong physics."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from analysis_factory import FIT, TRUTH, farm_round, found, of_set, point, result

from daq_bench.bench_model.base.errors import ProfileError
from daq_bench.bench_model.evidence.measured import measure
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.bench_model.profiles.compared_targets import check_compared, compared_names
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import load_requirements
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.bench_model.workloads.concurrent_analysis.analysis import document
from daq_bench.bench_model.workloads.concurrent_analysis.points import pulls, rates, why_not_cold, worker_counts, wrong

INVENTORY = Path(__file__).resolve().parents[1]


def test_workers_go_from_one_beyond_the_cores_and_are_thinned_on_large_machines() -> None:
    assert worker_counts(2, 2) == [1, 2, 3, 4]
    assert worker_counts(1, 1.2) == [1, 2]  # beyond the cores in any case
    large = worker_counts(64, 1.5)
    assert {1, 64, 96} <= set(large) and len(large) <= 15 and large == sorted(large)


def test_a_rate_is_bytes_asked_of_the_files_over_the_whole_span() -> None:
    records = [
        {"start_s": 10.0, "end_s": 12.0, "fetched_bytes": 30, "read_bytes": 40, "user_s": 1.0, "system_s": 0.5, "requests": 3},
        {"start_s": 10.5, "end_s": 14.0, "fetched_bytes": 50, "read_bytes": 60, "user_s": 2.0, "system_s": 0.5, "requests": 5},
    ]  # fmt: skip
    one = rates(records, [{"name": "sda", "read_bytes": 200}], cpus=2)
    assert (one["wall_s"], one["bytes_per_s"], one["device_bytes_per_s"]) == (4.0, 20.0, 50.0)
    assert one["cpu_share"] == 0.5  # 4 s of 2 CPUs x 4 s
    assert (one["storage_bytes"], one["requests"], one["reason"]) == (100, 8, None)


@pytest.mark.parametrize(
    ("stored", "device", "words"),
    [
        (100, 99, "the device was read by 99 B only, and 100 B were asked"),
        (0, 10**9, "fetched from storage for the jobs by 0 B only"),  # others read the device meanwhile
        (100, None, "no single device"),
        (100, 100, None),
    ],
)
def test_only_counters_prove_a_cold_cache(stored: int, device: int | None, words: str | None) -> None:
    said = why_not_cold(100, stored, device)
    assert said is None if words is None else words in str(said)
    assert why_not_cold(0, 1, 1) == "nothing was read"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, None),
        ({"entries": 999}, "999 events were analysed, 1000"),
        ({"digest": "b" * 64}, "a variable's histogram"),
        ({"balanced": 998}, "2 events have a total energy"),
        ({"selected": 801}, "801 pairs of opposite charge"),
        ({"mass": [8, *[7] * 98, 6, *[5] * 20]}, None),  # one pair moved over an edge by rounding
        ({"mass": [17, *[7] * 97, 2, 2, *[5] * 20]}, "10 of 800 pairs"),
    ],
)
def test_physics_is_held_against_what_was_generated(changes: dict[str, Any], words: str | None) -> None:
    said = wrong(result("full", **changes), TRUTH, "full")
    assert said is None if words is None else words in str(said)


def test_pulls_are_in_the_fits_own_deviations() -> None:
    found_pulls = pulls(FIT, TRUTH, of_set("full")["shape"])
    assert found_pulls == pytest.approx({"signal": 0.5, "mass": 1.0, "width": -1.0})
    assert pulls(None, TRUTH, of_set("full")["shape"]) is None


def series(derived: dict[str, Any], analysis: str) -> dict[str, Any]:
    one: dict[str, Any] = next(one for one in derived["series"] if one["analysis"] == analysis)
    return one


def test_series_have_medians_and_the_peak_within_the_same_repetitions() -> None:
    check_document(found(), "concurrent-analysis", "made up")
    derived = document(found())
    full, sparse = series(derived, "full"), series(derived, "sparse")
    assert [one["median_bytes_per_s"] for one in full["points"]] == pytest.approx([31.05e6, 51.75e6, 46.575e6, 41.4e6])
    assert (full["peak_workers"], full["core_ratio"]) == (2, {"ratio": 1.0, "interval": [1.0, 1.0], "n": 6})
    assert sparse["peak_workers"] in (2, 3) and sparse["core_ratio"]["ratio"] == pytest.approx(1.0)
    point_of_one = full["points"][0]
    assert point_of_one["amplification"] == pytest.approx(2.0)
    assert point_of_one["cpu_share"] == pytest.approx(0.25)  # one job, half of one of two CPUs
    assert derived["judged"]["supply"] == pytest.approx(
        [2.5 * (1 + 0.01 * turn) for turn in range(1, 7)]
    )  # 25 MB/s each
    assert derived["judged"]["pull_max"] == pytest.approx(1.0)


def test_a_storage_that_deteriorates_before_the_cores_has_a_ratio_below_one() -> None:
    rates_of = {1: 18.0, 2: 9.0, 3: 8.0, 4: 7.0}
    points = [point("full", workers, turn, rate) for turn in range(1, 7) for workers, rate in rates_of.items()]
    one = series(document(found(points=points, sets=[of_set("full")])), "full")
    assert (one["peak_workers"], one["core_ratio"]["ratio"]) == (1, pytest.approx(0.5))


def test_workers_that_are_fed_too_little_count_when_the_cpu_is_saturated() -> None:
    slow = [point("full", 2, turn, 4.0) for turn in range(1, 7)]
    assert document(found(points=slow, sets=[of_set("full")]))["judged"]["supply"] == pytest.approx(
        [0.5 / 0.9] * 6
    )  # CPU at 50 %
    busy = copy.deepcopy(slow)
    for one in busy:
        for record in one["records"]:
            record["user_s"], record["system_s"] = 1.8, 0.15
    assert document(found(points=busy, sets=[of_set("full")]))["judged"]["supply"] == pytest.approx([0.975 / 0.9] * 6)


def test_a_warm_point_is_masked_and_invalidates_the_run_on_the_judged_storage_only() -> None:
    warm = found()
    warm["points"][0]["devices"][0]["read_bytes"] = 0
    derived = document(warm)
    assert series(derived, "sparse")["points"][0]["n"] == 5 and series(derived, "sparse")["points"][0]["masked"] == 1
    assert derived["judged"]["coldness_min"] == 0
    assert (
        "1 of 48 points on target are masked; the first, sparse with 1 workers: the cache was not cold"
        in derived["invalid"][0]
    )
    other = found()
    other["storages"].append({**other["storages"][0], "name": "other"})
    other["sets"].append(of_set("full", "other"))
    other["points"].append(point("full", 1, 1, 5.0, storage="other", devices=[{"name": "sdb", "read_bytes": 0}]))
    assert document(other)["invalid"] == []


def test_results_must_be_the_same_for_every_number_of_workers() -> None:
    one = found()
    one["points"][-1]["result"]["mass"][0] += 1
    one["points"][-1]["result"]["mass"][1] -= 1
    derived = document(one)
    assert derived["judged"]["wrong_results"] == 1
    assert next(each for each in derived["physics"] if each["analysis"] == "full")["why_wrong"] == [
        "the result differs from that of other numbers of workers"
    ]
    assert document(found())["judged"]["wrong_results"] == 0


def test_the_farm_is_held_against_the_sum_of_its_nodes_round_by_round() -> None:
    farm = document(found())["farm"]
    assert farm["ratio"] == pytest.approx(0.95) and farm["n"] == 6 and farm["workers"] == 2
    assert farm["rounds"][0]["sum_bytes_per_s"] == pytest.approx(40e6)
    cached = found()
    cached["farm"]["rounds"][2]["runs"][0]["devices"][0]["read_bytes"] = 5
    derived = document(cached)
    assert derived["farm"]["n"] == 5 and "1 of 6 rounds of the farm are masked" in derived["invalid"][0]


def test_a_farm_that_was_not_measured_says_why() -> None:
    derived = document(found(farm=None))
    assert derived["judged"]["farm_ratio"] is None
    assert derived["reasons"]["concurrent_analysis.farm_ratio"] == "no farm was measured"


def test_every_requirement_finds_its_metric() -> None:
    metrics = load_metrics(INVENTORY / "metrics.yml")
    profile = load_requirements(INVENTORY / "requirements" / "concurrent-analysis.yml", metrics)
    results = {"results/concurrent_analysis_rates.json": document(found())}
    for one in profile.requirements:
        measured = measure(one, metrics[one.metric], results)
        assert measured.values and not measured.problem, one.id
    bare = {"results/concurrent_analysis_rates.json": document(found(farm=None))}
    farm = next(one for one in profile.requirements if one.metric.endswith("farm_ratio"))
    assert "no farm was measured" in measure(farm, metrics[farm.metric], bare).problem


def test_storages_are_targets_of_the_candidate(tmp_path: Path) -> None:
    text = (INVENTORY / "scenarios" / "concurrent-analysis.yml").read_text(encoding="utf-8")
    candidate, lab = load_candidate(INVENTORY / "lab.yml", "virtual"), INVENTORY / "lab.yml"

    def scenario(storages: str) -> Any:
        file = tmp_path / "concurrent-analysis.yml"
        file.write_text(
            text.replace("    compression:", f"    storages: [{storages}]\n    compression:"), encoding="utf-8"
        )
        return load_scenario(file)

    sound = scenario("reference, nand-raid0")
    check_compared(sound, candidate, lab)
    assert compared_names(sound) == ["reference", "nand-raid0"]
    with pytest.raises(ProfileError, match=r"storages\[1\]: candidate 'virtual' has no target 'ssd'"):
        check_compared(scenario("reference, ssd"), candidate, lab)
    with pytest.raises(ProfileError, match="which is the drive of the reference"):
        check_compared(scenario("nand-raid0, nand-raid5"), candidate, lab)


def test_rounds_of_a_farm_alternate() -> None:
    assert farm_round(1)["runs"][0]["nodes"] == ["node0"] and len(farm_round(2)["runs"][0]["nodes"]) == 2
