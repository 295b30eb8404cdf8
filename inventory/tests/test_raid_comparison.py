"""The results of a comparison's rounds: ratios, power, wear, money, and a disturbed round that is named and stays in."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jmespath
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from raid_factory import START_S, found, power, visit

from daq_bench.bench_model.base.units import GB
from daq_bench.bench_model.evidence.target_failures import COMPARISON, failures_of
from daq_bench.bench_model.profiles.candidates import Candidate, Target, load_candidate
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.published import load_published
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.bench_model.statistics.paired import BELOW, UNDECIDED
from daq_bench.bench_model.workloads.raid_vs_3dxp.analysis import UNKNOWN, cause_of, document
from daq_bench.bench_model.workloads.raid_vs_3dxp.facts import added_power, cost, endurance

INVENTORY = Path(__file__).resolve().parents[1]
PUBLISHED = load_published(INVENTORY / "devices" / "published")
DECLARED: dict[str, dict[str, Any]] = {
    "reference": {"published": "micron-x100"},
    "nand-raid0": {
        "drive_endurance": {"dwpd": 1, "years": 5, "source": "data sheet"},
        "drive_price": {"amount": 400, "currency": "EUR", "date": "2026-11-01", "source": "offer 17"},
        "rack_units": {"value": 0.5, "source": "3 of 12 bays of 2 U"},
    },
    "nand-raid5": {"drive_endurance": {"pbw": 6, "source": "data sheet"}},
}


@pytest.fixture
def candidate() -> Candidate:
    shipped = load_candidate(INVENTORY / "lab.yml", "virtual")
    targets = tuple(
        Target(name, "filesystem", f"/srv/{name}", None, None, declared=one) for name, one in DECLARED.items()
    )
    return replace(shipped, targets=targets, target=targets[0])


def steady(turn: int, name: str) -> float:
    """Ratios of about 0.8 and 0.6, with a little noise that follows no order."""
    wiggle = 1 + 0.01 * math.sin(3 * turn + len(name))
    return {"reference": 9e9, "nand-raid0": 7.2e9, "nand-raid5": 5.4e9}[name] * wiggle


def of(result: dict[str, Any], name: str, quantity: str) -> dict[str, Any]:
    [one] = [entry for entry in result["comparisons"] if (entry["set"], entry["quantity"]) == (name, quantity)]
    return dict(one)


def test_the_factory_writes_what_the_workload_writes() -> None:
    check_document(found(steady), "raid-vs-3dxp", "results/raid_vs_3dxp.json")


def test_ratios_power_wear_room_and_money(candidate: Candidate) -> None:
    rounds = found(steady)
    watts = {"reference": 18.0, "nand-raid0": 36.0, "nand-raid5": 40.0}
    result = document(rounds, candidate, PUBLISHED, power(rounds, watts), [])
    ratio = of(result, "nand-raid0", "throughput")["result"]
    assert ratio["ratio"] == pytest.approx(0.8, rel=0.02)
    assert ratio["decision"] == BELOW
    assert of(result, "nand-raid0", "latency_p99_9")["result"]["decision"] == UNDECIDED  # both alike
    assert of(result, "nand-raid5", "kernel_cpu")["result"]["ratio"] == pytest.approx(1.5)
    by_name = {one["name"]: one for one in result["targets"]}
    raid0, raid5 = by_name["nand-raid0"], by_name["nand-raid5"]
    assert raid0["added_power_w"]["median"] == pytest.approx(36)
    assert raid0["added_w_per_gb_per_s"]["median"] == pytest.approx(36 / 7.2, rel=0.02)
    assert result["judged"]["added_energy_j_per_tb"][0] == pytest.approx(36 / steady(1, "nand-raid0") * 1e12)
    assert raid0["gb_per_s_per_u"] == pytest.approx(7.2 / 0.5, rel=0.02)
    assert raid0["endurance_bytes"]["value"] == pytest.approx(3 * 5 * 365.25 * 4e12)
    assert raid5["endurance_bytes"]["value"] == pytest.approx(3 * 6e15 / 1.5)
    assert by_name["reference"]["endurance_bytes"]["value"] == pytest.approx(86000 * 4e12)
    assert by_name["reference"]["endurance_bytes"]["basis"].startswith(
        "1 x 344 PB of each drive (published as 86000 drive"
    )
    assert raid0["cost"] == {
        "currency": "EUR",
        "total": 1200,
        "per_tb": pytest.approx(100),
        "per_gb_per_s": pytest.approx(1200 / (raid0["throughput_bytes_per_s"]["mean"] / GB)),
        "basis": "3 x 400 EUR of 2026-11-01, declared: offer 17",
    }
    assert raid5["cost"]["reason"] == "the inventory declares no drive_price"
    assert raid5["md_threads_s_per_gb"] == pytest.approx(1.28 / 64)
    assert raid5["rack_units"] == {"value": None, "reason": "the inventory declares no rack_units"}
    assert [one["id"] for one in result["published"]][:2] == ["micron-9550-max", "micron-x100"]
    assert result["reasons"] == {}
    assert result["disturbed"] == []


def test_every_metric_of_the_scenarios_has_a_value_per_round_or_a_reason(candidate: Candidate) -> None:
    metrics = load_metrics(INVENTORY / "metrics.yml")
    scenario = load_scenario(INVENTORY / "scenarios" / "raid-vs-3dxp.yml")
    names = {name for name in load_metrics(INVENTORY / "metrics.yml") if scenario.answers(name)}
    rounds = found(steady)
    whole = document(rounds, candidate, PUBLISHED, power(rounds, dict.fromkeys(DECLARED, 20.0)), [])
    bare = replace(candidate, targets=tuple(replace(one, declared={}) for one in candidate.targets))
    lacking = document(rounds, bare, {}, [], [])
    assert names == {name for name in metrics if name.startswith("raid_vs_3dxp.")}
    for name in names:
        values = jmespath.search(metrics[name].path, whole)
        assert len(values) == (1 if name.endswith("endurance") else 6), name
        assert all(isinstance(value, int | float) for value in values), name
        missing = None in jmespath.search(metrics[name].path, lacking)
        assert missing is (name in lacking["reasons"]), name
    assert lacking["reasons"]["raid_vs_3dxp.added_power"] == "no BMC gives the server's power"


def test_a_disturbed_round_is_named_from_its_event_and_not_averaged_away(candidate: Candidate) -> None:
    rounds = found(lambda turn, name: steady(turn, name) * (0.2 if (turn, name) == (3, "nand-raid0") else 1))
    at_s = rounds["rounds"][2]["visits"][1]["write"]["begin_s"]
    events = [
        {"at_s": at_s - 1, "text": "drive NA2 is held to 4 MB/s, critical warning set"},
        {"at_s": at_s + 25, "text": "drive NA2 is released"},
    ]
    result = document(rounds, candidate, PUBLISHED, [], events)
    [disturbed] = result["disturbed"]
    assert (disturbed["set"], disturbed["round"], disturbed["seen_in"]) == ("nand-raid0", 3, ["throughput"])
    assert disturbed["cause"] == "nand-raid0: drive NA2 is held to 4 MB/s, critical warning set"
    throughput = of(result, "nand-raid0", "throughput")
    assert throughput["result"]["outlier_rounds"] == [3]
    assert (throughput["result"]["n"], throughput["undisturbed"]["n"]) == (6, 5)
    assert throughput["result"]["ratio"] < 0.65 < throughput["undisturbed"]["ratio"]
    unexplained = document(rounds, candidate, PUBLISHED, [], [])
    assert [one["cause"] for one in unexplained["disturbed"]] == [UNKNOWN]
    assert of(unexplained, "nand-raid5", "throughput")["undisturbed"] is None


def test_a_fault_belongs_to_the_visits_during_which_it_was_in_force() -> None:
    during = visit("nand-raid0", 0, START_S, 1e9, 1.0)
    late, early = (
        {"at_s": START_S + 300, "text": "drive NA1 is pulled"},
        {"at_s": START_S - 9, "text": "inlet at 45 degC"},
    )
    other = {"at_s": START_S + 1, "text": "writes to drive XP1 fail"}
    released = {"at_s": START_S - 5, "text": "every hazard is released"}
    assert cause_of(during, ["NA1"], [late]) is None
    assert cause_of(during, ["NA1"], [other]) is None
    assert cause_of(during, ["NA1"], [early]) == "inlet at 45 degC"
    assert cause_of(during, ["NA1"], [early, released]) is None
    ended = {"at_s": START_S + 5, "text": "every hazard is released"}
    assert cause_of(during, ["NA1"], [early, ended]) == "inlet at 45 degC"


def test_a_masked_visit_is_in_no_figure_and_says_why(candidate: Candidate) -> None:
    rounds = found(steady)
    broken = rounds["rounds"][0]["visits"][1]["paced"]
    broken |= {"admissible": False, "reason": "9 of 10 superchunks were lost", "lost_superchunks": 9}
    result = document(rounds, candidate, PUBLISHED, [], [])
    tail = of(result, "nand-raid0", "latency_p99_9")
    assert (tail["rounds"][0]["ratio"], tail["result"]["n"]) == (None, 5)
    assert of(result, "nand-raid0", "throughput")["result"]["n"] == 6
    assert result["judged"]["lost_superchunks"][0] == 9
    assert result["reasons"]["raid_vs_3dxp.latency_p99_9"] == "round 1: 9 of 10 superchunks were lost"
    assert "raid_vs_3dxp.lost_superchunks" not in result["reasons"]


@pytest.mark.parametrize("part", ["write", "paced"])
def test_a_judged_set_that_lost_a_drive_is_named_with_its_drives(part: str) -> None:
    """Once: what follows the first failure is its consequence. A full disk, another set and the reference accuse nobody."""
    document = found(lambda turn, name: 9e9)

    def fail(group: int, turn: int, name: str, errno: str | None) -> None:
        (one,) = [one for one in document["rounds"] if (one["group"], one["round"]) == (group, turn)]
        (visit,) = [visit for visit in one["visits"] if visit["target"] == name]
        visit[part] |= {"failed": True, "admissible": False, "reason": f"it ended in {errno}", "errno": errno}

    for group, name, errno in (
        (1, "reference", "EIO"),
        (2, "nand-raid5", "EIO"),
        (1, "nand-raid0", "ENOSPC"),
        (1, "nand-raid0", None),
    ):
        fail(group, 2, name, errno)
        assert list(failures_of({COMPARISON: document})) == []
    fail(1, 5, "nand-raid0", "EIO")
    fail(1, 3, "nand-raid0", "EIO")
    said = "The set nand-raid0 failed in round 3: it ended in EIO"
    assert list(failures_of({COMPARISON: document})) == [said]
    (named,) = failures_of({COMPARISON: document}, "It lies on the reference")
    assert named.startswith(f"{said}. It lies on ") and named.count("serial NA") == 3 and "XP1" not in named


def test_power_without_a_reading_in_the_window_is_not_guessed() -> None:
    idle, load = {"begin_s": 0.0, "end_s": 5.0}, {"begin_s": 10.0, "end_s": 12.0}
    assert added_power([(1, 200.0), (4, 202.0), (11, 231.0)], idle, load).value == 30
    missing = added_power([(1, 200.0), (13, 231.0)], idle, load)
    assert (missing.value, missing.basis) == (None, "the BMC's power has no reading within the 2.0 s of the write")
    lost = added_power([(1, 200.0), (10, 231.0), (11, None)], idle, load)
    said = "the BMC's power could not be read at some time within the 2.0 s of the write"
    assert (lost.value, lost.basis) == (None, said)


def test_an_endurance_that_cannot_be_known_has_its_reason() -> None:
    assert "no published device 'nemo'" in endurance({"published": "nemo"}, PUBLISHED, [10**12], 1.0).basis
    assert "not its own" in endurance({"drive_endurance": {"pbw": 1, "source": "x"}}, {}, [10**12], None).basis
    assert "not known" in endurance({}, {}, [], 1.0).basis


def test_a_price_in_yen_keeps_its_digits() -> None:
    price = {"amount": 1234567, "currency": "JPY", "date": "2026-11-01", "source": "offer 18"}
    assert cost({"drive_price": price}, 3, None, None)["basis"] == "3 x 1234567 JPY of 2026-11-01, declared: offer 18"
