"""The verdict: which evidence gives which outcome. Each test spoils one thing of a run that would pass."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench_model.evidence import Evidence
from bench_model.profiles import load_metrics, load_requirements
from bench_model.verdict import judge

sys.path.insert(0, str(Path(__file__).parent))
from evidence_factory import evidence, setting

INVENTORY = Path(__file__).resolve().parents[1]
METRICS = load_metrics(INVENTORY / "metrics.yml")
PROFILE = load_requirements(INVENTORY / "requirements" / "dune-snb.yml", METRICS)


def verdict(run: Evidence) -> dict[str, Any]:
    return judge(run, PROFILE, METRICS)


def row(document: dict[str, Any], identifier: str) -> dict[str, Any]:
    return next(requirement for requirement in document["requirements"] if requirement["id"] == identifier)


def minidaq(run: Evidence, repetition: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = run.results["results/snb_record.json"]["repetitions"][repetition]["minidaq"]
    return found


def test_a_full_scale_run_that_meets_everything_passes() -> None:
    document = verdict(evidence())
    assert document["outcome"] == "PASS"
    assert {requirement["outcome"] for requirement in document["requirements"]} == {"PASS"}
    assert document["findings"] == []


def test_one_lost_superchunk_fails_and_is_quoted() -> None:
    run = evidence()
    minidaq(run)["superchunks"]["lost"] = 1
    document = verdict(run)
    assert document["outcome"] == "FAIL"
    assert document["reasons"][0] == "SNB-01 No superchunk is lost during the record: measured 1, bound = 0"
    assert row(document, "SNB-01")["margin"] == -1


def test_the_worst_repetition_is_judged_and_n_is_stated() -> None:
    run = evidence(repetitions=3)
    minidaq(run, 1)["busy"]["count"] = 2
    found = row(verdict(run), "SNB-02")
    assert (found["outcome"], found["measured"], found["n"]) == ("FAIL", 2, 3)


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda run: run["scenario"].update(scale=0.1), "The load is 0.1 of one readout unit"),
        (lambda run: run["demand"].update(duration_s=20.0), "The record lasts 20 s instead of 100 s"),
        (lambda run: run["target"].update(kind="scratch-file"), "The target is a scratch file on xfs"),
        (lambda run: run["candidate"].update(virtual=True), "The candidate is a virtual machine with emulated drives"),
        (lambda run: run["target"].update(drives=[{"model": "QEMU NVMe Ctrl"}]), "The candidate is a virtual machine"),
    ],
)
def test_a_scaled_down_run_never_passes(spoil: Any, text: str) -> None:
    run = evidence()
    spoil(run.run)
    document = verdict(run)
    assert document["outcome"] == "INADMISSIBLE"
    assert document["declared_rehearsal"] is True
    assert document["reasons"][0].startswith(text)


def test_what_fails_at_a_tenth_of_the_load_fails() -> None:
    run = evidence()
    run.run["scenario"]["scale"] = 0.1
    minidaq(run)["superchunks"]["lost"] = 5
    document = verdict(run)
    assert document["outcome"] == "FAIL"
    assert any("0.1 of one readout unit" in reason for reason in document["reasons"])


def test_a_bound_that_scales_with_the_load_is_scaled_and_shown() -> None:
    run = evidence()
    run.run["scenario"]["scale"] = 0.1
    run.results["results/block_scan.json"]["large_blocks"]["throughput_bytes_per_s"] = 1.0e9
    found = row(verdict(run), "SNB-07")
    assert found["bound"] == pytest.approx(9.24288)
    assert found["scaled_bound"] == pytest.approx(0.924288)
    assert found["measured"] == pytest.approx(1.0)
    assert found["margin"] == pytest.approx(0.075712)
    assert found["outcome"] == "INADMISSIBLE"


def test_the_candidates_own_declaration_is_a_bound() -> None:
    run = evidence()
    minidaq(run)["transient_buffer"]["needed_bytes"] = 1_500_000_000
    found = row(verdict(run), "SNB-05")
    assert (found["outcome"], found["bound"], found["measured"]) == ("FAIL", 1.0, 1.5)


def test_an_advisory_requirement_does_not_decide() -> None:
    run = evidence()
    minidaq(run)["latency_us"]["p99_9"] = 2_000_000.0
    document = verdict(run)
    assert row(document, "SNB-08")["outcome"] == "FAIL"
    assert document["outcome"] == "PASS"


def test_a_sensor_that_a_requirement_needs_and_that_is_missing_is_inadmissible() -> None:
    run = evidence()
    run.results["results/drive_temperature.json"] = {
        "headroom_degC": None,
        "reasons": {"snb_record.drive_temperature_headroom": "no sensor"},
    }
    document = verdict(run)
    assert (document["outcome"], document["declared_rehearsal"]) == ("INADMISSIBLE", False)
    assert row(document, "SNB-06")["reason"] == "Not measured: no sensor"
    run.run["scenario"]["scale"] = 0.1
    run.results["results/block_scan.json"]["large_blocks"]["throughput_bytes_per_s"] = 9.9e9
    assert verdict(run)["declared_rehearsal"] is True


def test_a_workload_that_left_no_result_is_an_error() -> None:
    run = evidence()
    del run.results["results/block_scan.json"]
    assert verdict(run)["outcome"] == "ERROR"


@pytest.mark.parametrize("lost", [0, 7])
def test_a_source_that_was_too_slow_makes_pass_and_fail_inadmissible(lost: int) -> None:
    run = evidence()
    minidaq(run)["source"]["achieved_fraction"] = 0.97
    minidaq(run)["superchunks"]["lost"] = lost
    document = verdict(run)
    assert document["outcome"] == "INADMISSIBLE"
    assert document["declared_rehearsal"] is False
    assert "97.0%" in document["reasons"][0]


def test_a_record_that_the_drive_ended_early_fails_although_the_source_stopped_with_it() -> None:
    run = evidence()
    minidaq(run).update(status="failed")
    minidaq(run)["source"]["achieved_fraction"] = 0.5
    run.results["results/snb_record.json"]["repetitions"][0]["verified_fraction"] = 0.98
    assert verdict(run)["outcome"] == "FAIL"


def test_a_gap_in_the_telemetry_is_inadmissible_and_named() -> None:
    run = evidence()
    assert run.telemetry is not None
    run.telemetry["collectors"][0]["longest_gap_s"] = 6.0
    document = verdict(run)
    assert document["outcome"] == "INADMISSIBLE"
    assert document["reasons"] == ["Telemetry of cpu has a gap of 6.0 s (limit 5.0 s)"]


def test_an_unsupported_tuning_forbids_a_pass_and_no_more() -> None:
    run = evidence()
    assert run.tuning is not None
    run.tuning["settings"].append(setting("unsupported", detail="no cpufreq"))
    document = verdict(run)
    # At full scale nobody declared that beforehand, so it is no rehearsal.
    assert (document["outcome"], document["declared_rehearsal"]) == ("INADMISSIBLE", False)
    minidaq(run)["superchunks"]["lost"] = 1
    assert verdict(run)["outcome"] == "FAIL"


def test_a_tuning_that_did_not_hold_invalidates_the_run() -> None:
    run = evidence()
    assert run.tuning_after is not None
    run.tuning_after["settings"][0].update(status="mismatch", read_back="powersave")
    document = verdict(run)
    assert document["outcome"] == "INADMISSIBLE"
    assert document["declared_rehearsal"] is False
    assert "reads back powersave after the run" in document["reasons"][0]


@pytest.mark.parametrize("name", ["identity", "tuning", "tuning_verified", "tuning_after", "telemetry"])
def test_what_was_not_recorded_does_not_pass_silently(name: str) -> None:
    document = verdict(replace(evidence(), **{name: None}))
    assert (document["outcome"], document["declared_rehearsal"]) == ("INADMISSIBLE", False)
    assert len(document["reasons"]) == 1


def test_the_wrong_machine_invalidates_the_run() -> None:
    run = evidence()
    assert run.identity is not None
    run.identity["checks"][0]["ok"] = False
    run.run.update(state="error", state_reason="the identity suite failed")
    document = verdict(run)
    assert (document["outcome"], document["declared_rehearsal"]) == ("INADMISSIBLE", False)
    assert document["reasons"] == ["Identity: CPUs should be at least 2 but is 2"]


@pytest.mark.parametrize("state", ["interrupted", "error"])
def test_a_run_that_did_not_finish_is_an_error(state: str) -> None:
    run = evidence()
    run.run.update(state=state, state_reason="stopped in the middle")
    document = verdict(run)
    assert (document["outcome"], document["reasons"]) == ("ERROR", ["stopped in the middle"])
