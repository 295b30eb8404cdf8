"""The plans of the LAN, the hot store, the storage application, concurrent analysis and RAID sets are counted: a hole never passes."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any

import pytest
from daq_bench.audit.good import results_of
from daq_bench.audit.good.case import case_of, evidence_of

from daq_bench.bench_model.documents.struct import Document, as_document
from daq_bench.bench_model.evidence.coverage import gaps
from daq_bench.bench_model.verdict.verdict import judge

FULL_SCALE = (
    "lan-100g", "hot-store", "streams-checksum", "concurrent-analysis", "raid-vs-3dxp", "steady-state", "jesd219", "endurance", "thermal",
    "saturation",
)  # fmt: skip
REHEARSALS = (
    "lan-100g-rehearsal", "hot-store-rehearsal", "streams-checksum-rehearsal", "concurrent-analysis-rehearsal", "raid-vs-3dxp-rehearsal",
    "raid-vs-3dxp-emulated", "steady-state-rehearsal", "steady-state-emulated", "endurance-rehearsal", "thermal-rehearsal",
    "thermal-emulated", "saturation-rehearsal", "saturation-emulated",
)  # fmt: skip
Results = dict[str, Document]


@cache
def _results(scenario: str) -> Results:
    return results_of(case_of(scenario))


def verdict(scenario: str, results: Results) -> dict[str, Any]:
    case = case_of(scenario)
    return as_document(judge(evidence_of(case, results), case.profile, case.metrics))


@pytest.mark.parametrize("scenario", [*FULL_SCALE, *REHEARSALS])
def test_a_good_run_has_no_gap(scenario: str) -> None:
    assert [gap.text for gap in gaps(case_of(scenario).run, _results(scenario))] == []


@pytest.mark.parametrize("scenario", FULL_SCALE)
def test_a_good_run_at_full_scale_passes(scenario: str) -> None:
    document = verdict(scenario, _results(scenario))
    assert document["outcome"] == "PASS", document["reasons"]


@pytest.mark.parametrize("scenario", REHEARSALS)
def test_a_good_rehearsal_passes_nobody(scenario: str) -> None:
    assert verdict(scenario, _results(scenario))["outcome"] == "INADMISSIBLE"


LAN, LAN_FIGURES = "results/lan.json", "results/lan_analysis.json"
STORE, RUNS = "results/hot_store.json", "results/hot_store_runs.json"
STREAMS = "results/streams_checksum.json"
ANALYSIS, RATES = "results/concurrent_analysis.json", "results/concurrent_analysis_rates.json"
SETS, COMPARISON = "results/raid_vs_3dxp.json", "results/raid_comparison.json"
STEADY, PASSES, SOAK, WEAR = (f"results/{name}.json" for name in ("steady_state", "saturation", "thermal", "endurance"))
BESIDE, THREADS = "results/interference.json", "results/thread_scan.json"


def last_tuned(run: Results) -> Document:
    """The last transfer in which settings were in force."""
    found: Document = [one for one in run[LAN]["transfers"] if one["settings"]][-1]
    return found


def first_visit(run: Results) -> Document:
    found: Document = run[SETS]["rounds"][0]["visits"][0]
    return found


def round_of(run: Results) -> Document:
    """The first round of the first test."""
    found: Document = run[STEADY]["tests"][0]["rounds"][0]
    return found


@pytest.mark.parametrize(
    ("scenario", "spoil", "said"),
    [
        (
            "lan-100g",
            lambda run: run[LAN]["transfers"].pop(0),
            "bandwidth, switch, iperf3, 64 B was planned and is missing",
        ),
        ("lan-100g", lambda run: run[LAN]["transfers"].append(run[LAN]["transfers"][0]), "stands there 2 times"),
        ("lan-100g", lambda run: run[LAN]["transfers"][3]["flows"][0].update(returncode=1), "ended with exit status 1"),
        ("lan-100g", lambda run: last_tuned(run).update(settings=[]), "nobody read back the setting"),
        (
            "lan-100g",
            lambda run: run[LAN]["left_out"].append({"id": "mtu", "reason": "no"}),
            "setting mtu was not tried",
        ),
        ("lan-100g", lambda run: run[LAN]["ports"].pop(), "port of node3 was planned and is missing"),
        ("lan-100g", lambda run: run[LAN].update(need_bytes_per_s=1.0), "what was asked of the network"),
        ("lan-100g", lambda run: run[LAN_FIGURES]["confirmation"].pop(), "confirmation-6 was planned and is missing"),
        (
            "lan-100g",
            lambda run: run[LAN_FIGURES]["judged"].update(port_share=[9.0] * 6),
            "does not follow from its rows",
        ),
        ("lan-100g", lambda run: run.pop(LAN_FIGURES), "was not written"),
        (
            "hot-store",
            lambda run: run[STORE]["points"].pop(),
            "values of 10000 B, repetition 6 was planned and is missing",
        ),
        ("hot-store", lambda run: run[STORE]["losses"].pop(), "kill node-lost of redis-cluster was planned"),
        ("hot-store", lambda run: run[STORE]["semantics"]["rows"].pop(0), "semantics put-refuses-existing on lmdb was"),
        ("hot-store", lambda run: run[STORE]["points"][0].update(admissible=False, reason="it hung"), "it hung"),
        (
            "hot-store",
            lambda run: run[STORE]["summary"].update(lost_events=-1),
            "is not what the bench writes|the summary",
        ),
        (
            "hot-store",
            lambda run: run[RUNS]["scale_out"]["points"].pop(),
            "the detached deployment on 6 nodes was planned",
        ),
        (
            "streams-checksum",
            lambda run: run[STREAMS]["comparisons"].pop(),
            "comparison no checksum at all was planned",
        ),
        (
            "streams-checksum",
            lambda run: run[STREAMS]["comparisons"][0]["pairs"].pop(),
            "round 8 was planned and is missing",
        ),
        ("streams-checksum", lambda run: run[STREAMS]["verification"].pop(0), "the files of identity-zlib was planned"),
        (
            "streams-checksum",
            lambda run: run[STREAMS]["verification"][0].update(status="damaged"),
            "ended as 'damaged'",
        ),
        ("streams-checksum", lambda run: run[STREAMS]["demand"][0].update(asked_bytes_per_s=1.0), "the sustained rate"),
        ("streams-checksum", lambda run: run[STREAMS]["demand"].pop(), "the rate peak was planned and is missing"),
        ("concurrent-analysis", lambda run: run[ANALYSIS]["points"].pop(5), "was planned and is missing"),
        ("concurrent-analysis", lambda run: run[ANALYSIS].update(farm=None), "the farm was planned and is missing"),
        ("concurrent-analysis", lambda run: run[ANALYSIS]["farm"]["rounds"].pop(), "round of the farm 6 was planned"),
        (
            "concurrent-analysis",
            lambda run: run[ANALYSIS]["sets"][0]["shape"].update(events=1000),
            "set target, sparse",
        ),
        (
            "concurrent-analysis",
            lambda run: run[RATES]["judged"].update(wrong_results=-1),
            "does not follow from its rows",
        ),
        ("raid-vs-3dxp", lambda run: run[SETS]["rounds"].pop(), "visit of nand-raid5 in round 6 was planned"),
        ("raid-vs-3dxp", lambda run: run[SETS]["rounds"][0]["visits"].pop(0), "the reference was not visited once"),
        ("raid-vs-3dxp", lambda run: run[COMPARISON]["judged"].update(lost_superchunks=[0] * 5), "what is judged"),
        ("raid-vs-3dxp", lambda run: run[SETS]["write"].update(write_size=1), "the write: write_size does not follow"),
        # The kinds that `make audit` found: a CPU that was read once, a latency without percentiles, a missing counter or capacity.
        (
            "lan-100g",
            lambda run: run[LAN]["transfers"][0]["window"]["begin"]["cpu"].pop("cpu0"),
            "cpu0 was not read at both ends of its window",
        ),
        (
            "lan-100g",
            lambda run: run[LAN]["transfers"][-1].update(window=None),
            "nobody read the counters and the CPUs",
        ),
        ("raid-vs-3dxp", lambda run: first_visit(run)["write"].update(latency_us={}), "is not what the bench writes"),
        ("raid-vs-3dxp", lambda run: first_visit(run)["paced"].update(latency_us={}), "is not what the bench writes"),
        (
            "raid-vs-3dxp",
            lambda run: first_visit(run)["paced"]["latency_us"].update(p99_9=None),
            "its latency lacks a percentile",
        ),
        ("steady-state", lambda run: round_of(run)["points"][0].update(latency_us=None), "latency_us does not follow"),
        ("steady-state", lambda run: round_of(run)["points"][0].update(iops=1e9), "iops does not follow"),
        ("steady-state", lambda run: round_of(run).update(value=1.0), "the value of round 1"),
        (
            "steady-state",
            lambda run: round_of(run).update(device_bytes_written=None),
            "round 1: no counter of the device confirms its bytes",
        ),
        (
            "steady-state",
            lambda run: round_of(run).update(device_bytes_written=1),
            "round 1 counts, although the device counted 1 B",
        ),
        (
            "steady-state",
            lambda run: run[STEADY]["tests"][0]["conditioning"]["purge"].update(zero_share=None),
            "which share of the target read as zeros after the purge by format is None",
        ),
        (
            "steady-state",
            lambda run: run[STEADY]["tests"][0]["conditioning"].update(preconditioning=None),
            "the condition 'preconditioned' is not what was brought about",
        ),
        (
            "steady-state",
            lambda run: run[STEADY]["tests"][0]["conditioning"]["preconditioning"].update(bytes_written=10**9),
            "1000000000 B were written where",
        ),
        (
            "steady-state",
            lambda run: run[STEADY]["tests"][0]["conditioning"].update(capacity_bytes=None),
            "is of a target of None B, and the run's has 4000000000000 B",
        ),
        (
            "saturation",
            lambda run: run[PASSES]["repetitions"][0]["conditioning"].update(capacity_bytes=None),
            "saturation-1 is of a target of None B",
        ),
        (
            "saturation",
            lambda run: run[PASSES]["repetitions"][0]["conditioning"].update(share_of_capacity=1.0),
            "its share of the capacity does not follow",
        ),
        (
            "saturation",
            lambda run: run[PASSES]["ledger"][0].update(counted_bytes=None),
            "entry 1 of the account: the drives' count does not follow",
        ),
        (
            "endurance",
            lambda run: run[WEAR]["ledger"][0].update(after=None),
            "entry 1 of the account: the drives' count does not follow",
        ),
        (
            "endurance",
            lambda run: run[WEAR]["steps"][0]["health"][0].update(media_errors=None),
            "media_errors of drive IMG1 is missing after step 1",
        ),
        (
            "interference",
            lambda run: run[BESIDE]["cells"][0]["pairs"][0]["solo"].update(value=None),
            "the solo run has the value None and the reason None",
        ),
        (
            "interference",
            lambda run: run[BESIDE]["cells"][0]["pairs"][0]["disturbed"].update(value=1e-9),
            "its slowdown does not follow",
        ),
        (
            "thread-scan",
            lambda run: run[THREADS]["scans"][0]["points"][0].update(device_bytes_written=None),
            "no counter of the device confirms its bytes",
        ),
        (
            "hot-store",
            lambda run: next(one for one in run[RUNS]["losses"] if one["heirs"])["heirs"].pop(),
            "the run of kill consumer-killed of lmdb has the heirs",
        ),
        ("thermal", lambda run: run[SOAK]["fan_sweep"].update(reason="failed"), "the fan sweep contradicts itself"),
        ("thermal", lambda run: run[SOAK].update(cool_down=None), "the rest after the soak is missing"),
        ("thermal", lambda run: run[SOAK]["load"].update(io_depth=1), "the load: io_depth does not follow"),
        (
            "concurrent-analysis",
            lambda run: run[ANALYSIS]["storages"][0].update(devices=[]),
            "the devices whose counters were read does not follow",
        ),
        ("concurrent-analysis", lambda run: run[ANALYSIS]["storages"][-1].update(limits=None), "what it is held to"),
        (
            "concurrent-analysis",
            lambda run: run[ANALYSIS]["sets"][0]["truth"].update(mass=[]),
            "is not what the bench writes",
        ),
        (
            "concurrent-analysis",
            lambda run: run[ANALYSIS]["farm"]["rounds"][0]["runs"][-1]["nodes"].clear(),
            "cannot be held against its result|was planned and is missing",
        ),
        # Rows that another order, origin or plan would have given.
        (
            "lan-100g",
            lambda run: run[LAN]["transfers"][0].update(topology="direct"),
            "bandwidth-switch-iperf3-64: topology does not follow",
        ),
        ("saturation", lambda run: run[PASSES]["ledger"].reverse(), "the order of the account: [0] does not follow"),
        (
            "saturation",
            lambda run: run[PASSES]["ledger"][0].update(charged_by="reservation"),
            "entry 1 of the account: what it was charged by does not follow",
        ),
        (
            "saturation",
            lambda run: run[PASSES]["repetitions"][0].update(target_kind="scratch-file"),
            "pass 1: the kind of target does not follow",
        ),
        (
            "endurance",
            lambda run: run[WEAR]["ledger"][0].update(charged_by="tool"),
            "entry 1 of the account: what it was charged by does not follow",
        ),
        (
            "endurance",
            lambda run: run[WEAR]["ledger"][1].update(kind="fill"),
            "step 2 and its entry of the account: kind does not follow",
        ),
        (
            "steady-state",
            lambda run: run[STEADY]["tests"][0]["rounds"].reverse(),
            "the rounds in their order: [0] does not follow",
        ),
        (
            "thermal",
            lambda run: run[SOAK]["fan_sweep"].update(status="done"),
            "the fan sweep is 'done', and none was asked for",
        ),
    ],
)
def test_a_hole_or_a_contradiction_is_named_and_never_passes(
    scenario: str, spoil: Callable[[Results], object], said: str
) -> None:
    results = deepcopy(_results(scenario))
    spoil(results)
    found = " | ".join(gap.text for gap in gaps(case_of(scenario).run, results))
    document = verdict(scenario, results)
    assert document["outcome"] != "PASS"
    assert any(words in " | ".join([found, *document["reasons"]]) for words in said.split("|"))


# endurance: which readings of the drives may be missing. What a drive's log that fails gives: every field null, the kernel's count for it.
LOG_FIELDS = (
    "percentage_used", "available_spare", "available_spare_threshold", "media_errors", "power_cycles", "unsafe_shutdowns", "nand_bytes",
)  # fmt: skip
COUNTS_DO_NOT_COMPARE = "the drives' counts before and after the step cannot be compared"


def _without_log(run: Results, *places: int) -> None:
    """The log fails after the steps at these places (0 is that of step 1): as the bench then writes steps and account (`run_experiment`,
    `WearLedger.settle`)."""
    wear = run[WEAR]
    for place in places:
        wear["steps"][place]["health"][0].update(dict.fromkeys(LOG_FIELDS), counter="kernel", written_bytes=4096)
        for at, end in ((place, "after"), (place + 1, "before")):
            if at < len(wear["steps"]):
                step, entry = wear["steps"][at], wear["ledger"][at]
                entry[end] = {"epoch": "boot b", "written_bytes": {"IMG1": 4096}}
                entry.update(counted_bytes=None, charged_bytes=entry["reserved_bytes"], charged_by="reservation")
                step.update(counted_bytes=None, admissible=False, reason=COUNTS_DO_NOT_COMPARE)
    wear["at_end"] = deepcopy(wear["steps"][-1]["health"])
    wear["spent_bytes"] = sum(one["charged_bytes"] for one in wear["ledger"])
    wear["overrun_bytes"] = max(0, wear["spent_bytes"] - wear["write_budget_bytes"])
    wear["left_bytes"] = max(0, wear["write_budget_bytes"] - wear["spent_bytes"])


def _fields(run: Results, key: str, values: dict[int, Any]) -> None:
    for place, value in values.items():
        run[WEAR]["steps"][place]["health"][0][key] = value
    run[WEAR]["at_end"] = deepcopy(run[WEAR]["steps"][-1]["health"])


@pytest.fixture
def wear_run() -> Results:
    """Thirty steps of the good run; its budget then is what they were charged, and one step more."""
    run = deepcopy(_results("endurance"))
    wear = run[WEAR]
    wear["steps"], wear["ledger"] = wear["steps"][:30], wear["ledger"][:30]
    assert len(wear["steps"]) == 30
    _without_log(run)
    return run


def _holes(run: Results) -> list[str]:
    return [gap.text for gap in gaps(case_of("endurance").run, run) if gap.file == WEAR]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda run: _without_log(run, 7),
        lambda run: _without_log(run, 3, 9, 20),
        lambda run: _without_log(run, 28),  # the last reading is there
        lambda run: _fields(run, "media_errors", {7: None}),
        lambda run: _fields(run, "percentage_used", {5: None, 7: None}),
        lambda run: _fields(run, "available_spare", {12: None}),
        lambda run: _fields(run, "percentage_used", dict.fromkeys(range(10, 30), 1)),
    ],
)
def test_a_reading_that_nothing_rests_on_may_be_missing(wear_run: Results, spoil: Callable[[Results], object]) -> None:
    assert _holes(wear_run) == []
    spoil(wear_run)
    assert _holes(wear_run) == []


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda run: _without_log(run, 0), "media_errors of drive IMG1 is missing after step 1"),
        (lambda run: _without_log(run, 29), "media_errors of drive IMG1 is missing after step 30"),
        (
            lambda run: _without_log(run, 7, 8),
            "media_errors of drive IMG1 is missing from after step 8 to after step 9",
        ),
        (lambda run: _without_log(run, 7, 8), "step 9 does not count"),
        (lambda run: _without_log(run, *range(30)), "written_bytes of drive IMG1 is missing after step 30"),
        (lambda run: run[WEAR]["at_start"][0].update(media_errors=None), "is missing at the start"),
        (lambda run: run[WEAR]["opening"]["drives"][0].update(percentage_used=None), "is missing at the opening"),
        (
            lambda run: _fields(run, "percentage_used", {29: None}),
            "percentage_used of drive IMG1 is missing after step 30",
        ),
        (lambda run: _fields(run, "media_errors", {6: None, 7: None}), "missing from after step 7 to after step 8"),
        # it counted an error, and forgot it around the gap
        (
            lambda run: _fields(run, "media_errors", {6: 1, 7: None}),
            "media_errors of drive IMG1 went from 1 after step 7 to 0",
        ),
        (lambda run: _fields(run, "media_errors", {6: 3}), "media_errors of drive IMG1 went from 3 after step 7 to 0"),
        (lambda run: _fields(run, "unsafe_shutdowns", {6: 1}), "went from 1 after step 7 to 0 after step 8"),
        (lambda run: _fields(run, "written_bytes", {12: 1}), "written_bytes of drive IMG1 went from"),
        (lambda run: (run[WEAR]["at_start"][0].update(percentage_used=3), None), "went from 3 at the start to 0"),
    ],
)
def test_a_reading_that_something_rests_on_must_be_there(
    wear_run: Results, spoil: Callable[[Results], object], said: str
) -> None:
    spoil(wear_run)
    assert said in " | ".join(_holes(wear_run))


def test_steps_around_a_lost_log_count_only_with_their_bytes(wear_run: Results) -> None:
    """The drive took 90 % of what both steps were to write: fewer than 95 %."""
    _without_log(wear_run, 7)
    steps = wear_run[WEAR]["steps"]
    for step in steps[8:]:
        step["health"][0]["written_bytes"] -= int(0.1 * (steps[7]["asked_bytes"] + steps[8]["asked_bytes"]))
    wear_run[WEAR]["at_end"] = deepcopy(steps[-1]["health"])
    assert "step 8 does not count" in " | ".join(_holes(wear_run))
    assert "step 9 does not count" in " | ".join(_holes(wear_run))
