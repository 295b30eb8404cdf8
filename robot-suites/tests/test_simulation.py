"""Simulated runs: a good server passes, hazards end in their right outcome, a seed gives the same bytes, and the mark cannot be lost."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import convert

from daq_bench.bench_model.bundle.telemetry_tracks import Tracks
from daq_bench.bench_model.documents.run import TargetOfRun
from daq_bench.bench_model.documents.tools.daqwriter import Latency
from daq_bench.bench_model.verdict.judging import judge_bundle
from daq_bench.bench_model.workloads.snb_record import SnbRecord
from daq_bench.bench_model.workloads.thermal.document import Rule
from daq_bench.bench_report.workloads.latency_under_load.figures import curve_of
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.checking.sealing import altered_evidence, seal_evidence
from daq_bench.rig.workloads.registry import WORKLOADS
from daq_bench.rig.workloads.thermal import workload
from daq_bench.rig.workloads.thermal.watch import decide
from daq_bench.simulation.physics.drawing import Spec, kinds_of, spec_of
from daq_bench.simulation.physics.hazards import KINDS, Hazard
from daq_bench.simulation.run import REFUSED, Run, simulate
from daq_bench.simulation.tools.daqwriter import latency
from daq_bench.simulation.truth import truth_of

AMPLE = 5  # a seed of one drive well above the demand


def with_hazards(hazards: Sequence[Hazard], seed: int = AMPLE) -> Spec:
    return replace(spec_of(seed), hazards=tuple(hazards))


def hazard(kind: str, strength: float, record: int = 2, length_s: float = 50.0, at_s: float = 20.0) -> Hazard:
    return Hazard(kind, record, at_s, length_s, strength, 0)


def run_of(tmp_path: Path, *hazards: Hazard) -> Run:
    return simulate(with_hazards(hazards), tmp_path)


def test_a_good_server_would_pass(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    assert run.spec.pace == "ample"
    assert (run.outcome, truth_of(run.server).outcomes) == ("PASS", {"PASS"})


def test_a_simulated_latency_has_a_distribution_that_a_report_draws() -> None:
    found = convert(latency(764e3, 131_000_000, "x"), Latency)
    curve = curve_of("arrival to durable", found)
    assert curve.problem is None and curve.whole and curve.count == found.count


def test_a_superchunk_that_nobody_counted_fails_the_suite(tmp_path: Path) -> None:
    """Also where the record's own trailer says another number than its writer."""
    bundle = run_of(tmp_path).bundle
    assert bundle
    context, record = RunContext(bundle, LocalMachine()), bundle.read("results/snb_record.json")
    checks = WORKLOADS["snb_record"].checks
    for check in checks:
        check(context, convert(record, SnbRecord))
    record["repetitions"][1]["minidaq"]["superchunks"]["stored"] -= 1
    for check, text in zip(checks, (r"stored \+ lost = ", "the record's trailer says "), strict=True):
        with pytest.raises(AssertionError, match=f"repetition 2: .*{text}"):
            check(context, convert(record, SnbRecord))


def test_the_stored_verdict_of_a_simulated_run_never_passes(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    assert run.bundle
    verdict = judge_bundle(run.bundle.path)
    assert verdict.outcome == "INADMISSIBLE"
    assert verdict.reasons[0].startswith("SIMULATED")


def test_who_takes_the_mark_away_breaks_the_seal(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    assert run.bundle
    seal_evidence(run.bundle.path)
    assert altered_evidence(run.bundle.path) == []
    text = (run.bundle.path / "run.json").read_text()
    (run.bundle.path / "run.json").write_text(text.replace('"simulated": true', '"simulated": false'))
    assert [change.name for change in altered_evidence(run.bundle.path)] == ["run.json"]


WRONG = [
    (hazard("throttle_from_start", 50.0, record=0), {"FAIL"}),
    (hazard("bit_flips", 30), {"FAIL"}),
    (hazard("torn_writes", 3), {"FAIL"}),
    (hazard("lost_writes", 3), {"FAIL"}),
    (hazard("misplaced_writes", 3), {"FAIL"}),
    (hazard("drive_pulled", 1), {"FAIL"}),
    (hazard("slow_drive", 0.5, record=0), {"FAIL"}),
    (hazard("sysctl_reset", 1), {"INADMISSIBLE"}),
    (hazard("governor_reset", 0.05), {"INADMISSIBLE"}),
    (hazard("clock_step", -12), {"INADMISSIBLE"}),
    (hazard("agent_silent", 30), {"INADMISSIBLE"}),
    (hazard("drive_sensor_silent", 60), {"INADMISSIBLE"}),
    (hazard("drive_sensor_stuck", 1, record=0), {"INADMISSIBLE"}),
    (hazard("bmc_hangs", 200), {"INADMISSIBLE"}),
    (hazard("bmc_zero_watts", 1, record=0), {"INADMISSIBLE"}),
    (hazard("network_cut", 1), {"ERROR"}),
    (hazard("power_cut", 1), {"ERROR"}),
    (hazard("control_disk_full", 1), {"INADMISSIBLE"}),
    (hazard("swapped_drive", 1, record=0), {REFUSED}),
    (hazard("counterfeit_serial", 1, record=0), {REFUSED}),
    (hazard("swapped_after_preflight", 1, record=0), {"INADMISSIBLE"}),
    (hazard("firmware_changed", 1, record=0), {"INADMISSIBLE"}),
    (hazard("other_load", 0.55), {"INADMISSIBLE"}),
    (hazard("other_load", 0.75, length_s=7.0), {"FAIL"}),  # 8 % of what the load wrote
    (hazard("other_cpu", 0.6), {"INADMISSIBLE"}),
    (hazard("other_cpu", 0.6, length_s=10.0), {"FAIL"}),  # 6 % of all CPUs
    (hazard("clock_offset", -12, record=0), {"INADMISSIBLE"}),
    (hazard("trailer_lost", 1), {"FAIL"}),
    (hazard("short_record", 0.1), {"INADMISSIBLE"}),
    (hazard("less_asked", 0.1, record=0), {"INADMISSIBLE"}),
    (hazard("unrecorded", 0, record=0), {"INADMISSIBLE"}),
    (hazard("unrecorded", 3, record=0), {"INADMISSIBLE"}),
    (hazard("mixed_up", 1, record=0), {"INADMISSIBLE"}),
    (hazard("fan_failure", 15.0, record=1), {"FAIL"}),
]


@pytest.mark.parametrize(("one", "outcomes"), WRONG, ids=[one.kind for one, _ in WRONG])
def test_a_hazard_that_does_harm_ends_in_its_outcome_with_its_cause(
    tmp_path: Path, one: Hazard, outcomes: set[str]
) -> None:
    run = run_of(tmp_path, one)
    truth = truth_of(run.server)
    assert run.outcome in outcomes
    assert run.outcome in truth.outcomes
    assert not truth.may_pass
    assert truth.is_named(run.said), (truth.causes, run.said)


def test_a_machine_that_was_alone_tells_of_no_company(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    assert run.bundle
    windows = run.bundle.read("results/others.json")["windows"]  # type: ignore[index]
    assert [one["name"] for one in windows] == ["record 1", "record 2", "record 3"]
    assert all(0 < one["cpu_fraction"] < 0.01 and not one["written_fraction"] and not one["names"] for one in windows)


@pytest.mark.parametrize("name", ["stress-ng-cpu", "<b>x</b>,a=1", "a b#c\u202e"])
def test_a_loaded_machine_blames_nobody_and_names_who_loaded_it(tmp_path: Path, name: str) -> None:
    spec = replace(with_hazards([hazard("other_cpu", 0.6)]), others_name=name)
    run = simulate(spec, tmp_path)
    shown = name.replace("\u202e", "?")  # by the real collector
    assert run.outcome == "INADMISSIBLE"
    assert run.reasons[0].startswith(
        f"The machine was not alone: other processes took 30% of all CPUs ({shown} 30%) during daqwriter record 2"
    )


def test_a_small_share_of_others_stands_beside_the_miss(tmp_path: Path) -> None:
    run = run_of(tmp_path, hazard("other_load", 0.75, length_s=7.0))
    assert run.outcome == "FAIL"
    assert (
        ", while other processes wrote 8% of what the load wrote (rsync 8%) during daqwriter record 2" in run.reasons[0]
    )


def test_who_writes_to_another_drive_excuses_no_slow_one(tmp_path: Path) -> None:
    """0.6 of the array's rate, for half of the record."""
    run = run_of(tmp_path, hazard("other_device", 0.6), hazard("slow_drive", 0.5, record=0))
    assert (run.outcome, truth_of(run.server).outcomes) == ("FAIL", {"FAIL"})
    assert run.bundle
    loaded = run.bundle.read("results/others.json")["windows"][1]  # type: ignore[index]
    assert loaded["written_fraction"] == 0 and 0 < loaded["cpu_fraction"] < 0.1


def test_damaged_data_is_the_candidates_own_in_any_company(tmp_path: Path) -> None:
    run = run_of(tmp_path, hazard("other_load", 0.55), hazard("bit_flips", 30))
    assert (run.outcome, truth_of(run.server).outcomes) == ("FAIL", {"FAIL"})


HARMLESS = [
    hazard("bit_flips", 2),
    hazard("clock_step", 0.5),
    hazard("clock_offset", 0.5, record=0),
    hazard("short_record", 0.003),
    hazard("less_asked", 0.0, record=0),
    hazard("members_unknown", 1, record=0),
    hazard("agent_silent", 2),
    hazard("bmc_hangs", 8),
    hazard("bmc_sensor_stuck", 1, record=0),
    hazard("influxdb_down", 1, record=0),
    hazard("throttle_once", 1, length_s=10),
    hazard("slow_drive", 0.02, record=0),
    hazard("other_cpu", 0.1),  # who meets a bound in company meets it alone
    hazard("other_device", 0.9),
]


@pytest.mark.parametrize("one", HARMLESS, ids=[one.kind for one in HARMLESS])
def test_a_hazard_too_weak_to_do_harm_is_no_reason_to_refuse(tmp_path: Path, one: Hazard) -> None:
    run = run_of(tmp_path, one)
    assert one.kind in run.server.fired or one.kind in (
        "less_asked",
        "members_unknown",
    )  # nothing left out; a single drive
    assert (run.outcome, truth_of(run.server).outcomes) == ("PASS", {"PASS"}), run.reasons


COOL = 0  # a seed whose drives are well cooled in a soak, and whose array is well above the demand


def soak_of(tmp_path: Path, *hazards: Hazard, seed: int = COOL) -> Run:
    return simulate(replace(spec_of(seed, "thermal"), hazards=tuple(hazards)), tmp_path, "thermal")


def test_a_soak_of_a_cool_server_would_pass_at_its_equilibrium(tmp_path: Path) -> None:
    run = soak_of(tmp_path)
    assert (run.outcome, truth_of(run.server).outcomes) == ("PASS", {"PASS"}), run.reasons
    assert run.agrees
    assert run.bundle
    result = run.bundle.read("results/thermal.json")
    assert result is not None
    assert (result["soak"]["stopped_by"], result["fan_sweep"]["status"]) == ("equilibrium", "not asked")


SOAKED_WRONG = [
    (hazard("throttle_from_start", 60.0, record=0), {"FAIL"}),
    (hazard("other_load", 0.6, record=1, length_s=1500.0, at_s=60.0), {"INADMISSIBLE"}),
    (hazard("wrong_numa_node", 0.6, record=0), {"FAIL"}),
    (hazard("drive_pulled", 1, record=1, at_s=200.0), {"FAIL"}),
    (hazard("power_cut", 1, record=1, at_s=300.0), {"ERROR"}),
    (hazard("network_cut", 1, record=1, at_s=0.0), {"ERROR"}),
    (hazard("short_record", 0.09, record=1), {"INADMISSIBLE"}),
    (hazard("short_record", 0.3, record=1), {"ERROR"}),
    (hazard("agent_silent", 30, record=1, at_s=1500.0), {"INADMISSIBLE"}),
    (hazard("drive_sensor_stuck", 1, record=0), {"INADMISSIBLE"}),
    (hazard("less_asked", 0.2, record=0), {"INADMISSIBLE"}),
]


@pytest.mark.parametrize(
    ("one", "outcomes"), SOAKED_WRONG, ids=[f"{one.kind}-{one.strength}" for one, _ in SOAKED_WRONG]
)
def test_a_hazard_that_does_harm_to_a_soak_ends_in_its_outcome_with_its_cause(
    tmp_path: Path, one: Hazard, outcomes: set[str]
) -> None:
    run = soak_of(tmp_path, one)
    truth = truth_of(run.server)
    assert run.outcome in outcomes & truth.outcomes, (run.outcome, truth, run.reasons)
    assert not truth.may_pass
    assert truth.is_named(run.said), (truth.causes, run.said)


@pytest.mark.parametrize("one", [hazard("other_load", 0.1, record=1), hazard("agent_silent", 2, record=1)], ids=str)
def test_a_hazard_too_weak_for_a_soak_is_no_reason_to_refuse(tmp_path: Path, one: Hazard) -> None:
    run = soak_of(tmp_path, one)
    assert one.kind in run.server.fired
    assert (run.outcome, truth_of(run.server).outcomes) == ("PASS", {"PASS"}), run.reasons


def test_a_soak_is_not_looked_at_while_nothing_can_end_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []

    def noted(
        tracks: Tracks, target: TargetOfRun, rule: Rule, start_s: float, now_s: float, by_us: bool = False
    ) -> str | None:
        looks.append(now_s - start_s)
        return decide(tracks, target, rule, start_s, now_s, by_us)

    monkeypatch.setattr(workload, "decide", noted)
    soak_of(tmp_path)
    assert looks
    assert min(looks) >= 1830


def test_a_soak_that_throttles_is_followed_by_a_load_after_cooling(tmp_path: Path) -> None:
    run = soak_of(tmp_path, hazard("throttle_from_start", 60.0, record=0))
    assert run.bundle
    result = run.bundle.read("results/thermal.json")
    assert result is not None
    assert result["soak"]["stopped_by"] == "throttling"
    assert [one["name"] for one in result["sustained"]] == ["soak", "after cooling"]


def test_every_kind_is_drawn_by_some_seed() -> None:
    drawn = {one.kind for seed in range(600) for one in spec_of(seed).hazards}
    assert drawn == set(KINDS)
    soaked = [one for seed in range(600) for one in spec_of(seed, "thermal").hazards]
    assert {one.kind for one in soaked} == set(kinds_of("thermal"))
    assert {one.record for one in soaked} == {0, 1}  # there is one soak


def digests(folder: Path) -> dict[str, str]:
    files = sorted(file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


@pytest.mark.parametrize("scenario", ["record", "thermal"])
def test_a_seed_gives_the_same_bytes_each_time(tmp_path: Path, scenario: str) -> None:
    found = []
    spec = replace(spec_of(AMPLE, scenario), hazards=(hazard("throttle_recurring", 30.0, record=1),))
    for place in ("one", "other"):
        (tmp_path / place).mkdir()
        run = simulate(spec, tmp_path / place, scenario)
        assert run.bundle
        found.append(digests(run.bundle.path))
    assert len(found[0]) > 20
    assert found[0] == found[1]
