"""Evidence that is missing, that contradicts itself, or whose tools did not end well, never passes. Each test spoils one thing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from daq_bench.audit.good import results_of
from daq_bench.audit.good.case import case_of, evidence_of
from evidence_factory import evidence, record

from daq_bench.bench_model.bundle.evidence import Evidence
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.verdict.verdict import judge

SNB = case_of("snb-100s")
Spoil = Callable[[Evidence], object]


def judged(run: Evidence) -> dict[str, Any]:
    return as_document(judge(run, SNB.profile, SNB.metrics))


def outcome(spoil: Spoil) -> tuple[str, str]:
    run = evidence(3)
    spoil(run)
    document = judged(run)
    return document["outcome"], " | ".join(document["reasons"])


@pytest.mark.parametrize(
    ("tool", "status", "expected"),
    [
        ("minidaq", "failed", "FAIL"),
        ("minidaq", "interrupted", "INADMISSIBLE"),
        ("verify", "damaged", "FAIL"),
        ("verify", "failed", "FAIL"),
        ("verify", "interrupted", "INADMISSIBLE"),
        ("verify", "complete", "INADMISSIBLE"),
        ("minidaq", "intact", "INADMISSIBLE"),
        ("minidaq", None, "INADMISSIBLE"),
        ("minidaq", "", "INADMISSIBLE"),
    ],
)
def test_a_tools_own_word_decides(tool: str, status: str | None, expected: str) -> None:
    errno = "EIO" if status == "failed" else None
    found, reasons = outcome(lambda run: record(run, 1)[tool].update(status=status, errno=errno))
    assert found == expected, reasons
    assert any(name in reasons for name in ("record 2", "read-back 2", f"repetitions[1].{tool}.status"))


def test_a_record_whose_flush_failed_is_a_fail() -> None:
    """daqwriter under a libc whose fdatasync answers EIO: exit status 1, no trailer, and a read-back that finds no damage."""

    def spoil(run: Evidence) -> None:
        one = record(run)
        one["minidaq"].update(status="failed", error="cannot flush: Input/output error")
        one["verify"].update(status="damaged", trailer_status=None, complete_trailer=False)

    found, reasons = outcome(spoil)
    assert found == "FAIL" and "the writer of record 1 ended as 'failed'" in reasons


def test_a_record_without_its_trailer_is_damaged() -> None:
    found, reasons = outcome(
        lambda run: record(run)["verify"].update(trailer_status="interrupted", complete_trailer=False)
    )
    assert found == "FAIL" and "record 1 was not closed by its writer" in reasons


@pytest.mark.parametrize(
    ("state", "why"),
    [("running", "did not end"), *((text, f"Invalid enum value {text!r}") for text in ("", "FINISHED", "passed"))],
)
def test_a_run_that_has_not_ended_is_not_judged(state: str, why: str) -> None:
    found, reasons = outcome(lambda run: run.run.update(state=state))
    assert found == "INADMISSIBLE" and why in reasons


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda run: run.results["results/snb_record.json"]["repetitions"].pop(), "5 of 6 planned records are there"),
        (lambda run: run.results["results/snb_record.json"].update(repetitions=[]), "0 of 6 planned records are there"),
        (
            lambda run: run.results["results/snb_record.json"]["repetitions"].append(record(run)),
            "7 records are there and at most 6 were planned",
        ),
        (
            lambda run: run.results["results/block_scan.json"]["points"].pop(0),
            "block size 4 KiB was planned and is missing",
        ),
        (
            lambda run: run.results["results/block_scan.json"]["points"][0].update(admissible=False, reason="it hung"),
            "block size 4 KiB does not count: it hung",
        ),
        (
            lambda run: run.results.pop("results/sensor_coverage.json"),
            "did not record whether the drives' temperatures",
        ),
        (lambda run: run.results.pop("results/telemetry_account.json"), "did not record what became of its telemetry"),
        (lambda run: run.identity.update(checks=[]), "nothing of the candidate was checked"),
        (lambda run: run.identity["checks"].pop(), "planned checks and those that were made differ"),
        (lambda run: run.telemetry.update(collectors=[]), "Not one telemetry collector was at work"),
        (lambda run: run.telemetry["collectors"].pop(), "differ on temperature"),
        (
            lambda run: [one.update(status="unsupported") for one in run.telemetry["collectors"]],
            "Not one telemetry collector",
        ),
        (lambda run: run.tuning.update(settings=[]), "Not one tuning setting was recorded"),
        (lambda run: run.tuning_after.update(settings=[]), "what was read back after the run differ"),
        (lambda run: run.run["scenario"]["parameters"].update(workloads={}), "names no workload"),
    ],
)
def test_a_hole_in_the_plan_is_named_and_never_passes(spoil: Spoil, said: str) -> None:
    found, reasons = outcome(spoil)
    assert found == "INADMISSIBLE" and said in reasons, reasons


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None, "1.0", True, []])
@pytest.mark.parametrize(
    "place",
    [
        lambda run: (record(run)["minidaq"]["source"], "achieved_fraction"),
        lambda run: (run.run["demand"], "duration_s"),
        lambda run: (run.telemetry["collectors"][0], "longest_gap_s"),
        lambda run: (run.run["scenario"], "scale"),
        lambda run: (run.results["results/drive_temperature.json"], "headroom_degC"),
    ],
)
def test_what_is_no_number_never_passes(place: Callable[[Evidence], tuple[dict[str, Any], str]], value: Any) -> None:
    run = evidence(3)
    parent, key = place(run)
    parent[key] = value
    assert judged(run)["outcome"] == "INADMISSIBLE"


@pytest.mark.parametrize("value", [math.nan, math.inf, 5.0])
def test_a_clock_that_is_off_or_says_nothing_never_passes(value: float) -> None:
    reading = {"when": "after the load", "difference_s": value, "uncertainty_s": 0.1}
    run = replace(evidence(3), clock={"schema_version": 1, "same_clock": False, "readings": [reading]})
    assert judged(run)["outcome"] == "INADMISSIBLE"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda one: one["minidaq"]["superchunks"].update(lost=5), "stored and lost"),
        (lambda one: one["minidaq"]["superchunks"].update(intended=1), "more was offered than intended"),
        (lambda one: one["minidaq"]["bytes"].update(payload=1), "the bytes are not those"),
        (lambda one: one["minidaq"]["series"]["stored_bytes"].pop(), "the series does not add up"),
        (lambda one: one["minidaq"]["applications"][0].update(status="failed"), "an application ended otherwise"),
        (lambda one: one["verify"]["superchunks"].update(present=1), "read-back"),
        (lambda one: one["verify"]["superchunks"].update(corrupt=3), "damage is not the sum"),
        (lambda one: one.update(verified_fraction=0.5), "the verified share"),
        (lambda one: one["verify"].update(record_id="0" * 32), "of another record"),
        (lambda one: one["minidaq"]["parameters"].update(links=1), "was told links 1 instead of 10"),
        (lambda one: one["minidaq"]["parameters"].update(superchunk_rate_hz=166.0), "was told superchunk_rate_hz"),
        (lambda one: one["minidaq"]["parameters"].update(paced=False), "was told paced False"),
        (lambda one: one["minidaq"]["parameters"].update(target_kind="null"), "the kind of target does not follow"),
        (lambda one: one["minidaq"]["parameters"].update(duration_s=1.0), "was told duration_s"),
    ],
)
def test_a_record_that_contradicts_itself_or_its_orders_counts_for_nothing(
    spoil: Callable[[dict[str, Any]], object], said: str
) -> None:
    found, reasons = outcome(lambda run: spoil(record(run, 2)))
    assert found == "INADMISSIBLE" and said in reasons, reasons


def test_a_profile_without_a_mandatory_requirement_passes_nobody() -> None:
    shipped = case_of("thread-scan")
    demands = tuple(one for one in shipped.profile.requirements if one.severity == "advisory")
    case = replace(shipped, profile=replace(shipped.profile, requirements=demands))
    for results in (results_of(case), {}):
        document = as_document(judge(evidence_of(case, results), case.profile, case.metrics))
        assert document["outcome"] == "INADMISSIBLE"
        assert any("no mandatory requirement" in reason for reason in document["reasons"])


def test_bursts_that_died_beside_one_disturber_are_not_left_out() -> None:
    """The bursts beside `readers` ended with an I/O error: null in their row, which a JMESPath projection drops."""
    case = case_of("interference")
    results = results_of(case)
    found = results["results/interference.json"]
    row = next(one for one in found["burst"] if one["disturber"] == "readers")
    row.update(n=0, masked=row["n"], lost_superchunks=None, busy_count=None, buffer_needed_bytes=None)
    document = as_document(judge(evidence_of(case, results), case.profile, case.metrics))
    assert document["outcome"] == "INADMISSIBLE"
    assert any("0 of 6 bursts beside readers count" in reason for reason in document["reasons"])
    first = next(one for one in document["requirements"] if one["id"] == "INT-01")
    assert "gives no number for value" in first["reason"]


def test_a_document_nested_beyond_reason_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"deeper": deep}
    found, reasons = outcome(lambda run: record(run)["minidaq"].update(more=deep))
    assert found == "INADMISSIBLE" and "levels deep" in reasons
