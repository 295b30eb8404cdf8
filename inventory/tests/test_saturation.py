"""Cliffs of a saturation run: found where there are, not where there are none, and never by evidence that contradicts itself."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from daq_bench.audit.good import results_of
from daq_bench.audit.good.case import case_of, evidence_of
from numpy.typing import NDArray

from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.documents.verdict import Verdict
from daq_bench.bench_model.evidence.coverage import nothing_counts
from daq_bench.bench_model.evidence.soundness import Sound
from daq_bench.bench_model.evidence.target_failures import PURGE_FAILURE
from daq_bench.bench_model.verdict.verdict import judge
from daq_bench.bench_model.workloads.saturation import analysis as saturation
from daq_bench.bench_model.workloads.saturation.passes import Trace, contradictions, holes, trace_of, unusable

Values = NDArray[np.float64]
GB = 10**9
MIB = 2**20


def noisy(count: int, level: float, share: float = 0.02, seed: int = 1) -> Values:
    """`count` rates around `level` GB/s."""
    return level * GB * (1 + share * np.random.default_rng(seed).standard_normal(count))


def one_pass(rates: Any, step: float = 1.0, **changes: Any) -> Document:
    """A pass over a whole fresh drive that took one sample per `step` s."""
    amounts = [int(rate * step) for rate in rates]
    times = [step * (place + 1) for place in range(len(amounts))]
    written = sum(amounts)
    purge = {"method": "discard", "text": "whole drive", "done": True, "zero_share": 1.0, "seconds": 1.0}
    return {
        "number": 1,
        "target_kind": "raw-device",
        "capacity_bytes": written,
        "asked_bytes": written,
        "conditioning": {"condition": "fresh", "purge": purge},
        "condition": "fresh",
        "status": "complete",
        "error": None,
        "ended_by": "bytes",
        "written_bytes": written,
        "write_s": times[-1],
        "series": {"interval_s": step, "t_s": times, "written_bytes": amounts},
        "reason": None,
        **changes,
    }


def analysed(one: Document, free_bytes: int = 924 * GB) -> Document:
    told = {"block_bytes": 8 * MIB, "io_depth": 4, "cliff_free_bytes": free_bytes, "repetitions": [one]}
    row: Document = saturation.document(told)["repetitions"][0]
    return row


def places(row: Document) -> list[int]:
    return [round(one["at_bytes"] / GB) for one in row["cliff_list"]]


def test_a_cliff_is_found_where_it_is_with_the_levels_on_either_side() -> None:
    row = analysed(one_pass(np.concatenate([noisy(200, 6), noisy(1500, 1.5, seed=2)])))
    assert (row["finding"], row["cliffs"]) == ("cliff", 1)
    (cliff,) = row["cliff_list"]
    low, high = cliff["interval_bytes"]
    assert low <= sum(noisy(200, 6)) <= high and high - low < 20 * GB
    assert row["bytes_before_cliff"] == low
    assert row["rate_before_cliff"] == pytest.approx(6 * GB, rel=0.01)
    assert row["sustained_rate"] == pytest.approx(1.5 * GB, rel=0.01)
    assert row["duration"] == 1700


def test_two_cliffs_are_two_and_what_is_sustained_follows_the_last() -> None:
    row = analysed(one_pass(np.concatenate([noisy(200, 6), noisy(300, 3, seed=2), noisy(1500, 1, seed=3)])))
    assert row["cliffs"] == 2 and places(row) == [pytest.approx(1200, abs=12), pytest.approx(2100, abs=12)]
    assert row["sustained_rate"] == pytest.approx(GB, rel=0.01)


def test_a_load_that_falls_and_then_swings_between_two_rates_has_one_cliff() -> None:
    swings = np.tile(np.concatenate([noisy(2, 6), noisy(8, 0.5)]), 150)
    assert analysed(one_pass(np.concatenate([noisy(200, 6), swings])))["cliffs"] == 1


@pytest.mark.parametrize(
    "rates",
    [
        np.full(600, 5.0 * GB),
        noisy(600, 5),
        np.concatenate([noisy(300, 6), noisy(10, 0.5), noisy(300, 6, seed=3)]),
        np.concatenate([noisy(300, 6), np.zeros(30), noisy(300, 6, seed=3)]),
    ],
    ids=["constant", "white noise", "a dip", "a stall"],
)
def test_no_cliff_is_a_result(rates: Values) -> None:
    row = analysed(one_pass(rates))
    assert (row["finding"], row["cliffs"], row["early_cliffs"], row["bytes_before_cliff"]) == ("none", 0, 0, None)
    assert row["sustained_rate"] == pytest.approx(np.mean(rates), rel=1e-6)


@pytest.mark.parametrize("slow_from_s", [0, 40, 160], ids=["at the begin", "within the record", "behind it"])
def test_the_rate_before_a_cliff_is_that_of_the_record_whatever_a_large_drive_does_later(slow_from_s: int) -> None:
    """A record of 924 GB takes 97 s at 9.5 GB/s; 40 s at 8.7 GB/s in it are too slow for 9.24288 GB/s."""
    rates = noisy(650, 9.5)
    rates[slow_from_s : slow_from_s + 40] *= 8.7 / 9.5
    row = analysed(one_pass(rates), free_bytes=924_288_000_000)
    in_record = slow_from_s < 97
    assert (row["finding"], row["sustained_rate"] > 9.4 * GB) == ("none", True)
    assert (row["rate_before_cliff"] < 9.24288 * GB) is in_record
    assert len(row["before"]["samples"]) == (101 if in_record else 98)


def test_a_cliff_within_the_record_ends_the_rate_before_it() -> None:
    row = analysed(one_pass(np.concatenate([noisy(60, 10), noisy(900, 2, seed=2)])))
    assert row["early_cliffs"] == 1 and row["rate_before_cliff"] == pytest.approx(10 * GB, rel=0.01)


def wander(phi: float, share: float, seed: int) -> Values:
    """A rate that wanders slowly around 5 GB/s."""
    steps = np.random.default_rng(seed).standard_normal(1000)
    found = np.zeros(1000)
    for place in range(1, 1000):
        found[place] = phi * found[place - 1] + steps[place]
    return 5 * GB * (1 + share * math.sqrt(1 - phi**2) * found)


@pytest.mark.parametrize("phi", [0.5, 0.9, 0.97])
def test_slow_noise_is_no_cliff(phi: float) -> None:
    findings = [saturation.find(trace_of(one_pass(wander(phi, 0.06, seed))), 1e6).finding for seed in range(60)]
    assert "cliff" not in findings


@pytest.mark.parametrize(
    ("rates", "why"),
    [
        ([5 * GB], "1 samples are fewer than the 50"),
        (np.concatenate([[6.0 * GB], noisy(800, 1.5)]), "so near to the begin"),
        (np.concatenate([noisy(800, 6), [1.0 * GB]]), "so near to the end"),
        (np.linspace(5, 2.5, 1000) * noisy(1000, 1), "slowly: no place is a cliff"),
        (wander(0.97, 0.3, 3), "scatters so much|slowly"),
    ],
    ids=["a single sample", "cliff in the first sample", "cliff in the last sample", "a slow decline", "wild"],
)
def test_what_cannot_be_told_says_why_and_has_no_figure(rates: Any, why: str) -> None:
    row = analysed(one_pass(rates))
    assert row["finding"] == "unknown"
    assert re.search(why, row["reason"]), row["reason"]
    assert [row[key] for key in ("cliffs", "early_cliffs", "rate_before_cliff", "sustained_rate")] == [None] * 4


def test_a_cliff_is_early_late_or_too_near_to_the_record_to_tell() -> None:
    one = one_pass(np.concatenate([noisy(200, 6), noisy(800, 1)]))
    (cliff,) = analysed(one)["cliff_list"]
    assert [analysed(one, bound)["early_cliffs"] for bound in (900 * GB, cliff["at_bytes"], 1500 * GB)] == [0, None, 1]


def test_without_a_cliff_a_drive_smaller_than_the_record_decides_nothing() -> None:
    assert analysed(one_pass(noisy(100, 6)))["early_cliffs"] is None


def test_the_slowest_hundredth_is_that_of_a_search_through_all_places() -> None:
    rates = np.random.default_rng(5).uniform(0, 4, 300) * GB
    rates[120:126] = 0
    trace = trace_of(one_pass(rates))
    found = saturation.slowest(trace)
    assert found is not None
    length = trace.bytes[-1] / 100
    begins = np.linspace(0, trace.bytes[-1] - length, 20001)
    took = trace.reached(begins + length, last=True) - trace.reached(begins, last=False)
    assert found["bytes_per_s"] == pytest.approx(length / took.max(), rel=0.01)
    assert found["bytes_per_s"] <= length / took.max() * (1 + 1e-9)


def test_a_long_series_is_averaged_down_and_keeps_its_bytes() -> None:
    trace: Trace = trace_of(one_pass(noisy(9001, 2)))
    assert len(trace.rates) <= 2001
    assert trace.rate(0, len(trace.rates)) == pytest.approx(2 * GB, rel=0.01)


# Adversaries ---------------------------------------------------------------------------------------------------------------------


@cache
def _good() -> dict[str, Document]:
    return results_of(case_of("saturation"))


def outcome(change: Callable[[Document], Any], again: bool = True) -> str:
    """Returns the outcome of good evidence with a changed first pass; `again`: the analysis follows it, as a forger would ensure."""
    case, results = case_of("saturation"), deepcopy(_good())
    told = results[saturation.FILE]
    change(told["repetitions"][0])
    if again:
        results[saturation.NAME] = saturation.document(told)
    verdict = judge(evidence_of(case, results), case.profile, case.metrics)
    return verdict.outcome


def test_the_good_run_passes() -> None:
    assert outcome(lambda one: None) == "PASS"


def _drop_sample(one: Document) -> None:
    one["series"]["t_s"].pop(40), one["series"]["written_bytes"].pop(40)


def _drop_many_and_lower_the_total(one: Document) -> None:
    for key in ("t_s", "written_bytes"):
        del one["series"][key][40:60]
    one["written_bytes"] = sum(one["series"]["written_bytes"])


def _drop_many_and_forge_the_total(one: Document) -> None:
    """The bytes of the samples that went are given to the next one: only the time shows the hole."""
    gone = sum(one["series"]["written_bytes"][40:60])
    for key in ("t_s", "written_bytes"):
        del one["series"][key][40:60]
    one["series"]["written_bytes"][40] += gone


def _twice(one: Document) -> None:
    for key in ("t_s", "written_bytes"):
        one["series"][key].insert(40, one["series"][key][40])


def _swap(one: Document) -> None:
    times = one["series"]["t_s"]
    times[40], times[41] = times[41], times[40]


ADVERSARIES: dict[str, Callable[[Document], Any]] = {
    "a sample missing": _drop_sample,
    "samples missing, total lowered": _drop_many_and_lower_the_total,
    "samples missing, total kept": _drop_many_and_forge_the_total,
    "a sample twice": _twice,
    "out of order": _swap,
    "total too high": lambda one: one.update(written_bytes=one["written_bytes"] + 1),
    "written more than asked": lambda one: one.update(asked_bytes=one["asked_bytes"] - 8 * MIB),
    "ended early": lambda one: one.update(status="interrupted", ended_by="signal"),
    "ended by its time": lambda one: one.update(ended_by="duration"),
    "failed": lambda one: one.update(status="failed", ended_by="error", error="EIO"),
    "less asked than the drive has": lambda one: one.update(capacity_bytes=2 * one["capacity_bytes"]),
    "capacity zero": lambda one: one.update(capacity_bytes=0),
    "overwritten": lambda one: one.update(condition="overwrite"),
    "not purged": lambda one: one["conditioning"]["purge"].update(done=False),
    "purged, and not empty": lambda one: one["conditioning"]["purge"].update(zero_share=0.5),
    "purge not read back": lambda one: one["conditioning"]["purge"].update(zero_share=None),
    "preconditioned": lambda one: one["conditioning"].update(condition="preconditioned"),
    "no sample": lambda one: one.update(series={"interval_s": 1.0, "t_s": [], "written_bytes": []}),
    "a pass that does not count": lambda one: one.update(admissible=False, reason="the drives counted half"),
    "the end of the series cut": lambda one: one.update(write_s=2 * one["write_s"]),
}


@pytest.mark.parametrize("again", [True, False], ids=["analysed again", "analysis kept"])
@pytest.mark.parametrize("name", ADVERSARIES)
def test_no_adversary_passes(name: str, again: bool) -> None:
    assert outcome(ADVERSARIES[name], again) in ("INADMISSIBLE", "FAIL")


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -1, "7", True])
@pytest.mark.parametrize("key", ["t_s", "written_bytes"])
def test_a_sample_that_is_no_number_passes_nobody(key: str, value: Any) -> None:
    def change(one: Document) -> None:
        one["series"][key][40] = value

    assert outcome(change, again=False) == "INADMISSIBLE"
    one = deepcopy(_good()[saturation.FILE]["repetitions"][0])
    change(one)
    assert list(contradictions(one)) and unusable(one)


def test_the_series_of_one_pass_does_not_stand_for_another() -> None:
    case, results = case_of("saturation"), deepcopy(_good())
    rows = results[saturation.FILE]["repetitions"]
    rows[1] = {**deepcopy(rows[0]), "number": 2}
    results[saturation.NAME] = saturation.document(results[saturation.FILE])
    assert judge(evidence_of(case, results), case.profile, case.metrics).outcome == "INADMISSIBLE"


def test_fewer_passes_than_bound_anything_decide_nothing() -> None:
    case, results = case_of("saturation"), deepcopy(_good())
    results[saturation.FILE]["repetitions"] = results[saturation.FILE]["repetitions"][:5]
    results[saturation.NAME] = saturation.document(results[saturation.FILE])
    assert judge(evidence_of(case, results), case.profile, case.metrics).outcome == "INADMISSIBLE"


@pytest.mark.parametrize(
    "rates",
    [
        np.concatenate([[12.0 * GB], noisy(600, 9.6, 0.005)]),
        np.concatenate([noisy(600, 9.6, 0.005), [1.0 * GB]]),
        np.linspace(14, 10, 600) * GB,
        noisy(40, 100, 0.005),
        [4000.0 * GB],
        np.concatenate([noisy(60, 12, 0.005), noisy(1000, 3, 0.005)]),
        np.concatenate([noisy(60, 12, 0.005), noisy(300, 6, 0.005), noisy(1000, 1, 0.005)]),
    ],
    ids=["first sample", "last sample", "slow decline", "few samples", "one sample", "early cliff", "two cliffs"],
)
def test_no_curve_without_a_whole_record_passes(rates: Any) -> None:
    """All six passes have it, so that only the curve decides."""
    case, results = case_of("saturation"), deepcopy(_good())
    told = results[saturation.FILE]
    for number, old in enumerate(told["repetitions"]):
        made = one_pass(np.asarray(rates) * (1 + number / 1e6), step=1 + number / 1000)
        capacity = made["written_bytes"] // (8 * MIB) * 8 * MIB
        made["series"]["written_bytes"][-1] -= made["written_bytes"] - capacity
        sizes = {"capacity_bytes": capacity, "asked_bytes": capacity, "written_bytes": capacity}
        keys = ("series", "write_s")
        told["repetitions"][number] = {**old, **{key: made[key] for key in keys}, **sizes}
    results[saturation.NAME] = saturation.document(told)
    assert judge(evidence_of(case, results), case.profile, case.metrics).outcome != "PASS"


def test_a_hole_is_named_with_its_length() -> None:
    one = one_pass(noisy(100, 6))
    _drop_many_and_forge_the_total(one)
    assert next(holes(one)).startswith("no sample was taken for 21 s")


def unpurged(results: dict[str, Document], **changes: Any) -> Verdict:
    case = case_of("saturation")
    told = {"workload": "saturation", "label": "saturation-1", "serial": "S1", "method": "discard", "zero_share": 0.25}
    found = {PURGE_FAILURE: {"schema_version": 1, **told, **changes}}
    return judge(evidence_of(case, {**results, **found}), case.profile, case.metrics)


def test_a_drive_that_its_purge_left_with_data_is_no_evidence_and_told_first() -> None:
    verdict = unpurged({})
    assert verdict.outcome == "INADMISSIBLE"
    assert verdict.reasons[0].startswith(
        "saturation ended before saturation-1 was written to drive S1. After the purge (discard) 25% of"
    )
    assert verdict.reasons[0].endswith(
        "purge: format in a copy of the scenario (NVMe Format with erasure), or choose a drive that reads zeros after a discard"
    )
    assert not [text for text in verdict.reasons if "did not finish" in text or "was not written, or" in text]
    other = unpurged({}, workload="steady_state", method="format").reasons[0]
    assert "Set workloads.steady_state.purge: discard in a copy where the requirement profile takes it" in other


def test_passes_before_a_purge_that_failed_still_miss() -> None:
    good = deepcopy(_good())
    assert unpurged(good).outcome == "INADMISSIBLE", "however good the passes are that it has"
    slow = {**good, saturation.FILE: {**good[saturation.FILE], "repetitions": []}}
    for one in good[saturation.FILE]["repetitions"]:
        times = [10 * at for at in one["series"]["t_s"]]
        series = {**one["series"], "interval_s": 10 * one["series"]["interval_s"], "t_s": times}
        slow[saturation.FILE]["repetitions"].append({**one, "series": series, "write_s": 10 * one["write_s"]})
    slow[saturation.NAME] = saturation.document(slow[saturation.FILE])
    verdict = unpurged(slow, label="saturation-7")
    assert verdict.outcome == "FAIL"
    assert any("saturation ended before saturation-7" in text for text in verdict.reasons)


@pytest.mark.parametrize(
    "change", [{"zero_share": 1.0}, {"zero_share": None}, {"method": "wipe"}, {"serial": None}, {"more": 1}]
)
def test_a_purge_failure_that_the_bench_does_not_write_helps_nobody(change: Document) -> None:
    assert unpurged(deepcopy(_good()), **change).outcome == "INADMISSIBLE"
    assert unpurged({}, **change).outcome in ("INADMISSIBLE", "ERROR")


def test_a_rehearsal_that_measured_nothing_is_none() -> None:
    case = case_of("saturation")
    evidence = evidence_of(case, {})
    short = replace(evidence, run={**evidence.run, "scenario": {**evidence.run["scenario"], "scale": 0.1}})
    told = {"workload": "saturation", "label": "saturation-1", "serial": "S1", "method": "discard", "zero_share": 0.25}
    short.results[PURGE_FAILURE] = {"schema_version": 1, **told}
    assert nothing_counts(Sound.of(short).run, short.results)
    assert not judge(short, case.profile, case.metrics).declared_rehearsal
