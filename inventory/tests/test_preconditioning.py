"""Preconditioning must cover the target's own capacity; evidence of it may be missing, partial, forged or foreign."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from daq_bench.audit.good import results_of
from daq_bench.audit.good.case import case_of, evidence_of

from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.documents.verdict import FAIL, INADMISSIBLE, PASS
from daq_bench.bench_model.verdict.verdict import judge
from daq_bench.bench_model.workloads.preconditioning import Room, bytes_due, full_share, shortfall, span_of

RECORD, TB = 924_288_000_000, 10**12
BOTH = {"conditions": ["fresh", "preconditioned"]}
CASE = case_of("snb-100s", capacity_bytes=7_680 * 10**9)
RESULTS = results_of(CASE)


@pytest.mark.parametrize(
    ("room", "asked", "span"),
    [
        (Room(7_680 * 10**9, 7_680 * 10**9, raw=True), None, 7_680 * 10**9),
        (Room(7_680 * 10**9, 7_680 * 10**9, raw=True), 7 * TB, 7 * TB),
        (Room(7_680 * 10**9, 7_600 * 10**9, dedicated=True), None, 7_524 * 10**9),  # 1 % stays free
        (Room(7_680 * 10**9, 7_600 * 10**9), None, RECORD),  # somebody else's file system is not filled unasked
        (Room(7_680 * 10**9, 7_600 * 10**9), 7 * TB, 7 * TB),
        (Room(480 * 10**9, 470 * 10**9), None, 465_300_000_000),
    ],
)
def test_the_span_follows_from_the_target(room: Room, asked: int | None, span: int) -> None:
    assert span_of(asked, room, RECORD) == span


def test_a_span_that_is_no_whole_number_of_blocks_is_written_as_far_as_blocks_go() -> None:
    """99 % of a file system's free room is any number of bytes; both its size and 1.25 times as much are rounded to blocks."""
    results = copy.deepcopy(RESULTS)
    one = filled(results["results/snb_record.json"])
    span = 7_524_000_123_457
    size, written = bytes_due(span, 131072, 1.25)
    assert (size % 131072, written % 131072, 1.25 * span - written) == (0, 0, pytest.approx(131072, abs=131072 * 1.25))
    one.update(span_bytes=span, share_of_capacity=span / 7_680e9)
    one["preconditioning"].update(bytes_written=written, device_bytes_written=written)
    assert judge(evidence_of(CASE, results), CASE.profile, CASE.metrics).outcome == PASS
    one["preconditioning"]["bytes_written"] -= 131072
    found = judge(evidence_of(CASE, results), CASE.profile, CASE.metrics)
    assert any("were due" in finding.text for finding in found.findings)


@pytest.mark.parametrize(("used", "span", "share"), [(0, 7 * TB, 7 / 7.68), (6 * TB, 2 * TB, 1.0), (TB, TB, 2 / 7.68)])
def test_what_is_full_is_what_holds_data(used: int, span: int, share: float) -> None:
    assert full_share(span, used, 7_680 * 10**9) == pytest.approx(share)
    assert full_share(span, used, None) is None


@pytest.mark.parametrize(
    ("room", "asked", "said"),
    [
        (Room(7_680 * 10**9, 7_680 * 10**9, raw=True), None, None),
        (Room(7_680 * 10**9, 7_600 * 10**9, dedicated=True), None, None),
        (Room(7_680 * 10**9, 7_600 * 10**9), 7 * TB, None),
        (Room(7_680 * 10**9, 7_600 * 10**9), 6 * TB, "make it 6912000000001 B at least and 7524000000000 B at most"),
        (
            Room(7_680 * 10**9, 7_600 * 10**9),
            None,
            "Set snb_record.precondition_size between 6912000000001 B and 7524000",
        ),
        (Room(7_680 * 10**9, 3_000 * 10**9), None, "Choose a raw-device target, or let provisioning build"),
        (Room(7_680 * 10**9, 3_000 * 10**9, 4_600 * 10**9), 2_900 * 10**9, None),  # the rest holds data already
        (Room(None, 3_000 * 10**9), 2 * TB, "capacity is not known"),
        (Room(1_024 * 10**9, 1_000 * 10**9), None, None),  # a record fills it
    ],
)
def test_what_will_be_missing_is_told_with_its_remedy(room: Room, asked: int | None, said: str | None) -> None:
    own: dict[str, Any] = {**BOTH, **({"precondition_size": asked} if asked else {})}
    found = shortfall(own, room, RECORD)
    assert found is None if said is None else said in (found or "")


def test_a_record_without_conditions_needs_none() -> None:
    assert shortfall({}, Room(7_680 * 10**9, 10**9), RECORD) is None
    assert shortfall({"conditions": ["fresh"]}, Room(7_680 * 10**9, 10**9), RECORD) is None


def filled(result: Document) -> Document:
    found: Document = result["conditioning"][-1]
    return found


def halved(result: Document) -> None:
    filled(result)["preconditioning"]["bytes_written"] //= 2
    filled(result)["preconditioning"]["device_bytes_written"] //= 2


def smaller(result: Document) -> None:
    one = filled(result)
    one.update(span_bytes=6 * TB, share_of_capacity=6 / 7.68)
    one["preconditioning"].update(bytes_written=7_500 * 10**9, device_bytes_written=7_500 * 10**9)


def another(result: Document) -> None:
    for one in result["conditioning"]:
        one.update(capacity_bytes=TB, share_of_capacity=one["span_bytes"] / TB)


SPOILT: dict[str, tuple[Callable[[Document], Any], str]] = {
    "none": (lambda one: one.update(conditioning=[]), "the conditioning record-1-fresh was planned and is missing"),
    "not before the preconditioned": (
        lambda one: one["conditioning"].pop(),
        "record-4-preconditioned was planned and is",
    ),
    "twice": (lambda one: one["conditioning"].append(filled(one)), "record-4-preconditioned stands there 2 times"),
    "partial": (halved, "were due"),
    "in one block that is larger than the drive": (
        lambda one: filled(one)["preconditioning"].update(
            block_bytes=10**15, bytes_written=0, device_bytes_written=0, seconds=0.0
        ),
        "its blocks have 1000000000000000 B",
    ),
    "in blocks of nothing": (lambda one: filled(one)["preconditioning"].update(block_bytes=0), "block"),
    "over a part": (
        smaller,
        "Preconditioned over 6.001 TB of 7.68 TB: at least 90% of the user capacity must hold data",
    ),
    "of another drive": (another, "is of a target of 1000000000000 B, and the run's has 7680000000000 B"),
    "after the load": (
        lambda one: filled(one).update(started_utc="2026-01-31T13:59:00Z"),
        "record-4-preconditioned ended after its record had begun",
    ),
    "before the fresh records": (
        lambda one: filled(one).update(started_utc="2026-01-31T12:00:30Z"),
        "record-4-preconditioned began before the record before it had ended",
    ),
    "no counter": (
        lambda one: filled(one)["preconditioning"].pop("device_bytes_written"),
        "no counter of the device confirms its bytes",
    ),
    "a counter that saw half": (
        lambda one: filled(one)["preconditioning"].update(device_bytes_written=4 * TB),
        "the device counted 4000000000000 B of the",
    ),
    "faster than it took": (lambda one: filled(one)["preconditioning"].update(seconds=10.0), "contradicts itself"),
    "emptied again": (lambda one: filled(one).update(discarded_bytes=2 * TB), "2 TB of it were discarded again"),
    "nobody counted discards": (
        lambda one: filled(one).update(discarded_bytes=None),
        "nothing of it was discarded again",
    ),
    "not a number": (lambda one: filled(one)["preconditioning"].update(bytes_per_s=float("nan")), "snb_record"),
    "null": (lambda one: filled(one).update(preconditioning=None), "is not what was brought about"),
    "zero": (lambda one: filled(one).update(span_bytes=0, share_of_capacity=0.0), "at least 90% of the user capacity"),
    "more than there is": (
        lambda one: filled(one).update(span_bytes=8 * TB, share_of_capacity=8 / 7.68),
        "are more than the target holds",
    ),
    "a share of its own": (lambda one: filled(one).update(share_of_capacity=1.0), "its share of the capacity"),
    "fresh that was filled": (
        lambda one: one["conditioning"][0].update(preconditioning=filled(one)["preconditioning"]),
        "is not what was brought about",
    ),
}


@pytest.mark.parametrize("name", SPOILT)
def test_evidence_that_does_not_show_a_full_target_is_no_pass(name: str) -> None:
    spoil, said = SPOILT[name]
    results = {file: copy.deepcopy(one) if "snb_record" in file else one for file, one in RESULTS.items()}
    spoil(results["results/snb_record.json"])
    verdict = judge(evidence_of(CASE, results), CASE.profile, CASE.metrics)
    assert verdict.outcome in (INADMISSIBLE, FAIL)
    assert any(said in one.text for one in verdict.findings), [one.text for one in verdict.findings]


def test_the_same_evidence_unspoilt_passes() -> None:
    assert judge(evidence_of(CASE, RESULTS), CASE.profile, CASE.metrics).outcome == PASS
