"""The verdict: which evidence gives which outcome. Each test spoils one thing of a run that would pass."""

from __future__ import annotations

import json
import sys
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_model.bundle.evidence import Evidence
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.evidence.company import rests_on_pace
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import load_requirements
from daq_bench.bench_model.verdict.sentences import _told_apart
from daq_bench.bench_model.verdict.verdict import judge

sys.path.insert(0, str(Path(__file__).parent))
from evidence_factory import asked_otherwise, evidence, large_blocks, lose, scaled, setting

INVENTORY = Path(__file__).resolve().parents[1]
QEMU = {"name": "nvme0n1", "model": "QEMU NVMe Ctrl", "serial": "Q1"}
METRICS = load_metrics(INVENTORY / "metrics.yml")
PROFILE = load_requirements(INVENTORY / "requirements" / "dune-snb.yml", METRICS)


def verdict(run: Evidence) -> dict[str, Any]:
    return as_document(judge(run, PROFILE, METRICS))


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
    lose(run, 1)
    document = verdict(run)
    assert document["outcome"] == "FAIL"
    assert document["reasons"][0] == "SNB-01 No superchunk is lost during the record: measured 1, bound = 0"
    assert row(document, "SNB-01")["margin"] == -1


@pytest.mark.parametrize(
    ("measured", "bound", "unit", "shown"),
    [
        (0.999997, 1.0, "1", ("0.999997", "1")),
        (1 - 1e-15, 1.0, "1", ("0.999999999999999", "1")),
        (9.99996e9, 10e9, "B/s", ("9999960000 B/s", "10000000000 B/s")),
        (5.5462, 6.0, "GB/s", ("5.546 GB/s", "6 GB/s")),
        (98765.4, 100000.0, "IOPS", ("98770 IOPS", "100000 IOPS")),  # read "9.877e+04 IOPS"
        (2.0, 2.0, "1", ("2", "2")),
        (3.0, 0.0, "count", ("3", "0")),
    ],
)
def test_a_missed_bound_never_reads_as_if_it_were_met(
    measured: float, bound: float, unit: str, shown: tuple[str, str]
) -> None:
    assert _told_apart(measured, bound, unit) == shown


def test_the_worst_repetition_is_judged_and_n_is_stated() -> None:
    run = evidence(repetitions=3)
    minidaq(run, 1)["busy"]["count"] = 2
    found = row(verdict(run), "SNB-02")
    assert (found["outcome"], found["measured"], found["n"]) == ("FAIL", 2, 6)


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda run: scaled(run, 0.1), "The load is 0.1 of one readout unit"),
        (
            lambda run: scaled(run, duration_s=20.0),
            "The scenario asks for less than the requirement profile demands: duration_s is 20",
        ),
        (lambda run: run.run["target"].update(kind="scratch-file"), "The target is a scratch file on xfs"),
        (
            lambda run: run.run["candidate"].update(virtual=True),
            "The candidate is a virtual machine with emulated drives",
        ),
        (
            lambda run: run.run["target"].update(drives=[QEMU]),
            "The candidate is a virtual machine",
        ),
    ],
)
def test_a_scaled_down_run_never_passes(spoil: Any, text: str) -> None:
    run = evidence()
    spoil(run)
    document = verdict(run)
    assert document["outcome"] == "INADMISSIBLE"
    assert document["declared_rehearsal"] is True
    assert document["reasons"][0].startswith(text)


def test_what_fails_at_a_tenth_of_the_load_fails() -> None:
    run = evidence()
    scaled(run, 0.1)
    lose(run, 5)
    document = verdict(run)
    assert document["outcome"] == "FAIL"
    assert any("0.1 of one readout unit" in reason for reason in document["reasons"])


def test_a_bound_that_scales_with_the_load_is_scaled_and_shown() -> None:
    run = evidence()
    scaled(run, 0.1)
    large_blocks(run, 1.0e9, scatter=0)
    found = row(verdict(run), "SNB-07")
    assert found["bound"] == pytest.approx(9.24288)
    assert found["scaled_bound"] == pytest.approx(0.924288)
    assert found["measured"] == pytest.approx(1.0)
    assert found["margin"] == pytest.approx(0.075712)
    assert found["outcome"] == "INADMISSIBLE"


def test_the_candidates_own_declaration_is_a_bound() -> None:
    run = evidence()
    minidaq(run)["transient_buffer"]["needed_bytes"] = 129_000_000_000
    found = row(verdict(run), "SNB-05")
    assert (found["outcome"], found["bound"], found["measured"]) == ("FAIL", 128.0, 129.0)


def test_an_advisory_requirement_does_not_decide() -> None:
    run = evidence()
    minidaq(run)["latency_us"]["p99_9"] = 2_000_000.0
    document = verdict(run)
    assert row(document, "SNB-08")["outcome"] == "FAIL"
    assert document["outcome"] == "PASS"


def test_a_sensor_that_a_requirement_needs_and_that_is_missing_is_inadmissible() -> None:
    run = evidence()
    reasons = {"snb_record.drive_temperature_headroom": "no sensor"}
    run.results["results/drive_temperature.json"].update(headroom_degC=None, samples=0, reasons=reasons)
    document = verdict(run)
    assert (document["outcome"], document["declared_rehearsal"]) == ("INADMISSIBLE", False)
    assert row(document, "SNB-06")["reason"] == "Not measured: no sensor"
    scaled(run, 0.1)
    assert verdict(run)["declared_rehearsal"] is True


def test_a_workload_that_left_no_result_is_an_error() -> None:
    run = evidence()
    del run.results["results/block_scan.json"]
    assert verdict(run)["outcome"] == "ERROR"


@pytest.mark.parametrize("lost", [0, 7])
def test_a_source_that_was_too_slow_makes_pass_and_fail_inadmissible(lost: int) -> None:
    run = evidence()
    minidaq(run)["source"]["achieved_fraction"] = 0.97
    lose(run, lost)
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


PULLED = "/t/snb.daq: write of 1048576 B at offset 8192 failed: Input/output error (EIO)"


def broken(part: str = "minidaq", errno: str | None = "EIO", **more: Any) -> Evidence:
    """The run whose second and last record the target broke off. `errno` is what its own document says of it."""
    run = evidence()
    record = run.results["results/snb_record.json"]
    record["repetitions"] = record["repetitions"][:2]
    one = record["repetitions"][1]
    one[part].update(status="failed", error=PULLED, errno=errno)
    if part == "verify":
        kinds = one["verify"]["superchunks"]
        kinds.update(dict.fromkeys(kinds, 0))
        one["verify"].update(complete_trailer=False, trailer_status=None, lost_at_source=None)
        one["verified_fraction"] = 0.0
    one["minidaq"]["parameters"].update(more)
    return run


@pytest.mark.parametrize("part", ["minidaq", "verify"])
def test_a_drive_that_fails_in_the_record_fails_whatever_else_the_run_then_lacks(part: str) -> None:
    run = replace(broken(part), tuning_after=None, telemetry=None)  # they would invalidate a run that came to its end
    document = verdict(run)
    where = "record 2" if part == "minidaq" else "the read-back of record 2"
    drive = run.run["target"]["drives"][0]
    assert document["outcome"] == "FAIL"
    assert document["reasons"][0] == (
        f"The target failed in {where}: {PULLED}. It lies on {drive['name']} ({drive['model']}, serial {drive['serial']})"
    )


@pytest.mark.parametrize("errno", ["ENODEV", "ENXIO", "ENODATA", "EREMOTEIO", "ETIMEDOUT"])
def test_other_answers_of_a_failed_drive(errno: str) -> None:
    assert verdict(broken(errno=errno))["outcome"] == "FAIL"


@pytest.mark.parametrize("errno", ["ENOSPC", "EDQUOT", "EROFS", "EINVAL", "EPERM", "EACCES", "ENOMEM", "EAGAIN", "5"])
def test_what_others_did_to_the_target_is_no_fail_of_the_candidate(errno: str) -> None:
    document = verdict(broken(errno=errno, target_kind="scratch-file"))
    assert document["outcome"] == "INADMISSIBLE"
    assert any("failed, and not by a drive" in reason for reason in document["reasons"])


def test_a_raw_drive_that_is_gone_has_no_space_left() -> None:
    assert verdict(broken(errno="ENOSPC", target_kind="raw-device"))["outcome"] == "FAIL"
    assert verdict(broken("verify", "ENOSPC", target_kind="raw-device"))["outcome"] == "INADMISSIBLE"  # nobody reads so


@pytest.mark.parametrize("errno", ["ENOENT", None])
def test_a_read_back_that_failed_for_another_reason_accuses_nobody(errno: str | None) -> None:
    assert verdict(broken("verify", errno))["outcome"] == "INADMISSIBLE"


def test_a_record_that_is_complete_and_was_answered_an_error_contradicts_itself() -> None:
    run = evidence()
    minidaq(run)["errno"] = "EIO"
    document = verdict(run)
    assert document["outcome"] == "INADMISSIBLE"
    assert "it ended as 'complete' and was answered EIO" in document["reasons"][0]


@pytest.mark.parametrize("state", ["interrupted", "error"])
def test_a_run_that_broke_after_the_drive_failed_is_an_error_that_names_both(state: str) -> None:
    """Whatever took the machine away may have taken the drive first."""
    run = broken()
    run.run.update(state=state, state_reason="connection to node1 lost")
    document = verdict(run)
    assert document["outcome"] == "ERROR"
    assert document["reasons"][0] == "connection to node1 lost"
    assert document["reasons"][1].startswith("The target failed in record 2")


def test_a_failed_drive_of_another_machine_or_of_nobody_is_no_fail() -> None:
    wrong = broken()
    assert wrong.identity is not None
    wrong.identity["checks"][0]["ok"] = False
    assert verdict(wrong)["outcome"] == "INADMISSIBLE"
    assert verdict(replace(broken(), identity=None))["outcome"] == "INADMISSIBLE"
    nobodys = broken()
    nobodys.run["target"]["drives"] = []
    document = verdict(nobodys)
    assert document["outcome"] == "INADMISSIBLE"
    assert document["reasons"][0].endswith("Which drives carry it is not known, so that none can be blamed")


def test_a_failed_drive_in_a_document_that_is_none_is_no_fail() -> None:
    run = broken()
    minidaq(run, 1)["errno"] = 5
    assert verdict(run)["outcome"] == "INADMISSIBLE"


def test_a_gap_in_the_telemetry_is_inadmissible_and_named() -> None:
    run = evidence()
    assert run.telemetry is not None
    run.telemetry["collectors"][0]["longest_gap_s"] = 6.0
    document = verdict(run)
    assert document["outcome"] == "INADMISSIBLE"
    assert document["reasons"] == ["Telemetry of block_device has a gap of 6.0 s (limit 5.0 s)"]


def test_at_ten_samples_a_second_half_a_second_is_no_gap() -> None:
    run = evidence()
    assert run.telemetry is not None
    run.telemetry["collectors"][0].update(period_s=0.1, longest_gap_s=0.8)
    assert verdict(run)["outcome"] == "PASS"
    run.telemetry["collectors"][0]["longest_gap_s"] = 1.3
    assert verdict(run)["reasons"] == ["Telemetry of block_device has a gap of 1.3 s (limit 1.0 s)"]


def test_an_unsupported_tuning_forbids_a_pass_and_no_more() -> None:
    run = evidence()
    for tuning in (run.tuning, run.tuning_verified, run.tuning_after):
        assert tuning is not None
        tuning["settings"].append(setting("unsupported", id="cpu-idle", detail="no cpuidle"))
    document = verdict(run)
    # At full scale nobody declared that beforehand, so it is no rehearsal.
    assert (document["outcome"], document["declared_rehearsal"]) == ("INADMISSIBLE", False)
    lose(run, 1)
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
    assert document["reasons"] == ["Identity: architecture should be x86_64 but is x86_64"]


@pytest.mark.parametrize("state", ["interrupted", "error"])
def test_a_run_that_did_not_finish_is_an_error(state: str) -> None:
    run = evidence()
    run.run.update(state=state, state_reason="stopped in the middle")
    document = verdict(run)
    assert (document["outcome"], document["reasons"]) == ("ERROR", ["stopped in the middle"])


@pytest.mark.parametrize("state", ["interrupted", "error"])
def test_a_run_that_broke_before_it_looked_at_the_machine_is_an_error_with_its_cause(state: str) -> None:
    """A failed playbook accuses no other machine; a check that was made and failed does, and so does a finished run without one."""
    run = replace(evidence(), identity=None, tuning_verified=None, tuning_after=None)
    run.run.update(state=state, state_reason="playbook provision failed on node1: the BMC refuses this password")
    document = verdict(run)
    assert (document["outcome"], document["declared_rehearsal"]) == ("ERROR", False)
    assert document["reasons"] == ["playbook provision failed on node1: the BMC refuses this password"]
    run.run.update(state="finished", state_reason=None)
    assert verdict(run)["outcome"] == "INADMISSIBLE"


def clock(*differences: float) -> dict[str, Any]:
    moments = ("before the load", "after the load")
    readings = [
        {"when": when, "difference_s": one, "uncertainty_s": 0.5}
        for when, one in zip(moments, differences, strict=True)
    ]
    return {"schema_version": 1, "same_clock": False, "readings": readings}


@pytest.mark.parametrize(("differences", "outcome"), [((0.1, -1.4), "PASS"), ((0.1, -1.6), "INADMISSIBLE")])
def test_a_clock_that_went_astray_during_the_run_makes_it_inadmissible(
    differences: tuple[float, ...], outcome: str
) -> None:
    run = replace(evidence(), clock=clock(*differences))
    lose(run, 1 if outcome == "INADMISSIBLE" else 0)  # and no FAIL either
    document = verdict(run)
    assert document["outcome"] == outcome
    if outcome == "INADMISSIBLE":
        assert document["reasons"][0].startswith(
            "The candidate's clock was -1.6 s off the control node's after the load"
        )


def test_a_candidate_behind_ssh_whose_clock_nobody_compared_does_not_pass_silently() -> None:
    run = evidence()
    run.run["candidate"]["connection"] = "ssh"
    assert verdict(run)["outcome"] == "INADMISSIBLE"
    assert verdict(replace(run, clock=clock(0.0, 0.0)))["outcome"] == "PASS"


def test_an_undecided_requirement_is_neither_a_pass_nor_a_fail() -> None:
    run = evidence()
    large_blocks(run, 9.243e9)  # some just below the bound
    document = verdict(run)
    found = row(document, "SNB-07")
    assert (document["outcome"], found["outcome"], found["decision"]) == ("INADMISSIBLE", "INADMISSIBLE", "undecided")
    assert found["confidence_interval"][0] < 9.24288 < found["confidence_interval"][1]
    assert document["declared_rehearsal"] is False
    text = "SNB-07 Writing blocks of 8 MiB, the record's, sustains the real demand: measured 9.23"
    assert document["reasons"][0].startswith(text) and ", undecided: the interval" in document["reasons"][0]
    lose(run, 1)
    assert verdict(run)["outcome"] == "FAIL"


def test_too_few_samples_say_how_many_more_are_needed_and_spoil_no_rehearsal() -> None:
    run = evidence()
    large_blocks(run, 9.9e9, seconds=3, scatter=0, repetitions=1)
    found = row(verdict(run), "SNB-07")
    assert found["interval_method"].startswith("none: 12 samples are too few: 50 are the least")
    assert found["length_factor"] == pytest.approx(50 / 12)
    assert "about 4.2 times as long and about 5 more repetitions would decide" in found["reason"]
    scaled(run, 0.1)
    assert verdict(run)["declared_rehearsal"] is True


def test_a_repetition_that_does_not_count_is_not_left_out() -> None:
    run = evidence()
    scan = run.results["results/block_scan.json"]
    hole = {"throughput_bytes_per_s": None, "admissible": False, "reason": "ran for 2 s of 90 s"}
    scan["large_blocks"]["repetitions"][2].update(hole)
    scan["reasons"]["block_scan.large_block_throughput"] = "8 MiB, repetition 3, ran for 2 s of 90 s"
    found = row(verdict(run), "SNB-07")
    assert found["outcome"] == "INADMISSIBLE"
    assert "value 3 of 6" in found["reason"] and "ran for 2 s of 90 s" in found["reason"]


def test_one_block_size_below_the_bound_is_not_made_up_for_by_another() -> None:
    sizes = [*evidence().run["scenario"]["parameters"]["workloads"]["block_scan"]["block_sizes"], "16MiB"]
    run = asked_otherwise("block_scan", block_sizes=sizes)
    good = deepcopy(run.results["results/block_scan.json"]["large_blocks"]["repetitions"])
    assert {one["block_bytes"] for one in good} == {2**23, 2**24} and row(verdict(run), "SNB-07")["decision"] == "met"
    large_blocks(run, 9.2e9)
    slow = run.results["results/block_scan.json"]["large_blocks"]["repetitions"]
    slow[:] = [one if one["block_bytes"] == 2**24 else better for one, better in zip(slow, good, strict=True)]
    assert row(verdict(run), "SNB-07")["decision"] != "met"


def test_a_scan_of_an_older_bench_without_repetitions_decides_nothing() -> None:
    run = evidence()
    run.results["results/block_scan.json"]["large_blocks"] = {"throughput_bytes_per_s": 9.9e9}
    found = row(verdict(run), "SNB-07")
    assert (found["outcome"], found["measured"]) == ("INADMISSIBLE", None)


@pytest.mark.parametrize("rate", [9.9e9, 5.0e9])
def test_one_repetition_says_this_run_only_where_it_would_say_95_percent(rate: float) -> None:
    run = evidence(1)
    large_blocks(run, rate, scatter=0, repetitions=1)
    document = verdict(run)
    found = row(document, "SNB-07")
    assert (document["outcome"], found["decision"], found["confidence"]) == ("INADMISSIBLE", "undecided", None)
    assert found["interval_method"].startswith("this run only (n = ") and found["confidence_interval"] is not None
    assert (found["more_repetitions"], found["length_factor"]) == (5, None)
    assert "fewer than 6 repetitions bound nothing" in found["reason"]
    assert "about 5 more repetitions would decide" in found["reason"]


def test_a_throughput_clearly_below_the_bound_fails() -> None:
    run = evidence()
    large_blocks(run, 9.0e9)
    document = verdict(run)
    assert (document["outcome"], row(document, "SNB-07")["decision"]) == ("FAIL", "missed")


def test_the_verdict_is_the_same_to_the_last_digit() -> None:
    assert json.dumps(verdict(evidence())) == json.dumps(verdict(evidence()))


def test_a_value_inside_its_guard_band_is_undecided() -> None:
    index = next(number for number, one in enumerate(PROFILE.requirements) if one.id == "SNB-06")
    requirements = list(PROFILE.requirements)
    requirements[index] = replace(requirements[index], guard_band=12.0)
    document = as_document(judge(evidence(), replace(PROFILE, requirements=tuple(requirements)), METRICS))
    found = row(document, "SNB-06")  # 12 degrees of headroom, 1 asked: 11 inside, less than the band
    assert (document["outcome"], found["decision"], found["guard_band"]) == ("INADMISSIBLE", "undecided", 12.0)
    assert "within the guard band" in document["reasons"][0]


def of_fio(errno: str = "EIO", **changes: Any) -> Evidence:
    """The run whose block scan the target broke off under fio: its result is missing, and so is all that came after."""
    run = evidence()
    del run.results["results/snb_record.json"]
    found = {
        "workload": "block_scan",
        "during": "fio at block size 1 MiB",
        "tool": "fio",
        "errno": errno,
        "raw_drive": False,
    }
    run.results["results/target_failure.json"] = {"schema_version": 1, **found, "said": PULLED, **changes}
    return run


def test_a_drive_that_fails_under_fio_fails_whatever_else_the_run_then_lacks() -> None:
    run = replace(of_fio(), tuning_after=None, telemetry=None)
    document = verdict(run)
    assert document["outcome"] == "FAIL"
    assert document["reasons"][0].startswith(
        f"The target failed in block_scan, fio at block size 1 MiB: {PULLED}. It lies on "
    )
    assert verdict(of_fio("ENOSPC", raw_drive=True))["outcome"] == "FAIL"
    assert verdict(of_fio("ETIMEDOUT", tool="daqwriter"))["outcome"] == "FAIL"


@pytest.mark.parametrize(
    "run",
    [
        of_fio("ENOSPC"),  # of a file system
        of_fio("EILSEQ"),  # fio's own for a verification
        of_fio("ETIMEDOUT"),  # fio's own for a latency
        of_fio("EROFS"),
        of_fio("5"),
        of_fio(errno=5),  # type: ignore[arg-type]
        of_fio(said=""),
        of_fio(tool="dd"),
        of_fio(raw_drive=None),
        of_fio(more=1),
    ],
)
def test_what_is_no_failure_of_the_drive_under_fio_is_no_fail_and_no_pass(run: Evidence) -> None:
    assert verdict(run)["outcome"] in ("INADMISSIBLE", "ERROR")


def with_others(
    run: Evidence, cpu: float = 0.0, steal: float = 0.0, written: float = 0.0, during: str = "record 2"
) -> Evidence:
    """The run with what others took during one of its loads; during its first record they took nothing."""
    window = {
        "workload": "daqwriter", "start_s": 0.0, "end_s": 100.0, "samples": 50, "steal_fraction": 0.0, "written_fraction": 0.0,
        "cpu_fraction": 0.0,
    }  # fmt: skip
    busy = {
        "cpu_fraction": cpu,
        "steal_fraction": steal,
        "written_fraction": written,
        "names": ["stress 81%", "cc1 9%"],
    }
    run.results["results/others.json"] = {
        "schema_version": 1,
        "windows": [{**window, "name": "record 1", "names": []}, {**window, "name": during, **busy}],
    }
    return run


@pytest.mark.parametrize(
    ("took", "said"),
    [
        ({"cpu": 0.9}, "other processes took 90% of all CPUs (stress 81%, cc1 9%) during daqwriter record 2"),
        ({"steal": 0.11}, "the hypervisor took 11% of the CPU time for others during daqwriter record 2"),
        ({"written": 0.5}, "other processes wrote 50% of what the load wrote (stress 81%, cc1 9%) during daqwriter record 2"),
    ],
)  # fmt: skip
def test_a_miss_on_a_machine_that_was_not_alone_is_not_held_against_the_candidate(
    took: dict[str, float], said: str
) -> None:
    run = evidence()
    lose(run, 1)
    document = verdict(with_others(run, **took))
    assert (document["outcome"], document["declared_rehearsal"]) == ("INADMISSIBLE", False)
    assert document["reasons"][0] == (
        f"The machine was not alone: {said}. Beyond 10% a miss is not held against the candidate: end what else runs there, and run again"
    )
    assert any(reason.startswith("SNB-01 ") for reason in document["reasons"][1:])
    assert (row(document, "SNB-01")["outcome"], row(document, "SNB-01")["decision"]) == ("INADMISSIBLE", "missed")


def test_a_small_share_stands_beside_the_miss_and_a_pass_is_not_spoilt() -> None:
    run = evidence()
    lose(run, 1)
    document = verdict(with_others(run, cpu=0.1))
    assert document["outcome"] == "FAIL"
    assert document["reasons"][0].startswith(
        "SNB-01 No superchunk is lost during the record: measured 1, bound = 0, while other processes took 10% of all CPUs "
        "(stress 81%, cc1 9%) during daqwriter record 2"
    )
    alone = evidence()
    lose(alone, 1)
    assert "while" not in verdict(with_others(alone, cpu=0.009))["reasons"][0]
    assert verdict(with_others(evidence(), cpu=0.9))["outcome"] == "PASS"


def test_others_during_another_load_excuse_no_record() -> None:
    run = evidence()
    lose(run, 1)
    document = verdict(with_others(run, cpu=0.9, during="write 7"))
    assert document["outcome"] == "FAIL" and "other processes" not in document["reasons"][0]
    run.results["results/others.json"]["windows"].pop(0)  # nobody watched the records
    assert verdict(run)["outcome"] == "FAIL"


def test_others_during_any_load_excuse_a_scan_whose_loads_are_not_watched_one_by_one() -> None:
    run = evidence()
    for one in run.results["results/block_scan.json"]["large_blocks"]["repetitions"]:
        one["throughput_bytes_per_s"] /= 2
        one["throughput_bytes_per_s_samples"] = [rate / 2 for rate in one["throughput_bytes_per_s_samples"]]
    assert verdict(run)["outcome"] == "FAIL"
    document = verdict(with_others(run, cpu=0.9, during="write 7"))
    assert document["outcome"] == "INADMISSIBLE"
    assert document["reasons"][0].startswith(
        "The machine was not alone: other processes took 90% of all CPUs (stress 81%, cc1 9%) during daqwriter write 7"
    )


def test_what_no_load_of_others_can_cause_fails_in_any_company() -> None:
    run = with_others(evidence(), cpu=0.9)
    run.results["results/drive_temperature.json"]["headroom_degC"] = -5.0
    assert verdict(run)["outcome"] == "FAIL"


def test_a_share_that_was_read_back_is_excused_where_only_what_was_lost_is_missing_from_it() -> None:
    results = evidence().results
    repetitions = results["results/snb_record.json"]["repetitions"]
    name = "snb_record.verified_fraction"
    assert rests_on_pace(METRICS[name], results)
    for odd in (1, None):
        repetitions[1]["damaged_superchunks"] = odd
        assert not rests_on_pace(METRICS[name], results)
    found = {name for name, metric in METRICS.items() if rests_on_pace(metric, results)}
    assert {
        "snb_record.lost_superchunks",
        "block_scan.large_block_throughput",
        "snb_record.durable_latency_p99_9",
    } <= found
    assert not {"snb_record.damaged_superchunks", "snb_record.drive_temperature_headroom"} & found


@pytest.mark.parametrize(
    "forged", [None, {}, {"schema_version": 1, "windows": []}, {"schema_version": 1, "windows": None}]
)
def test_without_a_share_that_was_measured_a_miss_is_a_miss(forged: Any) -> None:
    run = evidence()
    lose(run, 1)
    if forged is not None:
        run.results["results/others.json"] = forged
    sound = forged is None or forged.get("windows") == []
    assert verdict(run)["outcome"] == ("FAIL" if sound else "INADMISSIBLE")
    if not sound:
        assert "is not what the bench writes" in verdict(run)["findings"][0]["text"]


def test_a_scaled_down_run_that_missed_in_company_is_no_rehearsal() -> None:
    run = evidence()
    scaled(run, 0.1)
    lose(run, 1)
    document = verdict(with_others(run, cpu=0.9))
    assert (document["outcome"], document["declared_rehearsal"]) == ("INADMISSIBLE", False)
