"""The storage application's analysis: what counts as a run, ratios with their decisions, overhead, and what has no value."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jmespath
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from daq_bench.audit.good.small_run import some_run
from streams_factory import found, overhead, verification
from tool_answers import RECORDED, answer

from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.documents.tools.streams import Streams
from daq_bench.bench_model.evidence.measured import measure
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import load_requirements
from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.bench_model.verdict.decision import MET, MISSED, UNDECIDED, decide, estimate
from daq_bench.bench_model.workloads.streams_checksum.analysis import document, parallel_share
from daq_bench.bench_model.workloads.streams_checksum.runs import paced, unpaced
from daq_bench.bench_model.workloads.table import MODELS

INVENTORY = Path(__file__).resolve().parents[1]
ANALYSIS = "results/streams_checksum_analysis.json"


def streams(**changes: Any) -> Streams:
    """An answer of `daqwriter streams`, with these values where they count."""
    share = changes.pop("achieved_share", 0.67)
    held = changes.pop("held_share", 0.9)
    achieved = changes.pop("achieved", None)
    totals = {"written_bytes": 2 * 10**9, "offered_bytes": 2 * 10**9, "written_events": 2000, "fallback_events": 500}
    each = {"abandoned_events": changes.pop("abandoned", 0), "held_s": held}
    both = answer(Streams, RECORDED / "streams.json").streams
    return answer(
        Streams,
        RECORDED / "streams.json",
        totals=totals | changes.pop("totals", {}),
        source={"held_share": held, "held_s": held, "due_bytes": 2 * 10**9, "achieved_fraction": achieved},
        streams=[
            as_document(of) | each | {"achieved_share": part} for of, part in zip(both, (share, 1 - share), strict=True)
        ],
        series={"backlog_bytes": [3, 9, 0]},
        **{"ended_by": "duration", "bytes_per_s_with_flush": 2e9, "time": {"emission_s": 1.0}} | changes,
    )


def test_a_run_that_did_what_was_asked_counts() -> None:
    run = unpaced(streams(), 1.0)
    assert (run["reason"], run["bytes_per_s"], run["fallback_share"], run["busiest_share"]) == (None, 2e9, 0.25, 0.67)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"achieved_share": 0.60}, "the busiest stream had 60.0% of the bytes instead of 67.0%"),
        ({"held_share": 0.01}, "the emulated source was the limit"),
        ({"time": {"emission_s": 0.9}}, "the run lasted 0.90 s of 1 s"),
        ({"time": {"emission_s": 0.2}, "ended_by": "bytes"}, "since run_size was reached"),
        ({"ended_by": "space"}, "the run was ended by space"),
        ({"status": "failed", "error": "EIO"}, "the run ended as failed: EIO"),
    ],
)
def test_a_run_that_was_not_the_asked_load_is_masked_with_its_reason(changes: dict[str, Any], reason: str) -> None:
    assert reason in (unpaced(streams(**changes), 1.0)["reason"] or "")


def test_chance_is_no_wrong_share_and_many_events_leave_less_to_chance() -> None:
    few = streams(achieved_share=0.60, totals={"written_events": 400})
    assert unpaced(few, 1.0)["reason"] is None


def test_a_pace_that_the_application_did_not_keep_is_a_figure_and_a_late_source_is_none() -> None:
    slow = streams(achieved=0.8, totals={"written_bytes": 1_600_000_000})
    assert (paced(slow, 1.0)["kept"], paced(slow, 1.0)["reason"]) == (0.8, None)
    late = paced(streams(achieved=0.8, held_share=0.0), 1.0)
    assert late["kept"] is None
    assert "the source offered only 80.00% of what was due" in late["reason"]
    kept = paced(streams(achieved=1.0, held_share=0.0), 1.0)
    assert (kept["kept"], kept["backlog_high_bytes"]) == (1.0, 9)
    unsaid = paced(streams(achieved=None), 1.0)
    assert (unsaid["kept"], unsaid["reason"]) == (None, "daqwriter does not say what share of the pace was offered")


def test_a_drive_that_fails_under_the_pace_is_evidence_against_it() -> None:
    broken = streams(achieved=0.8, status="failed", error="EIO", abandoned=3, totals={"written_bytes": 10**9})
    run = paced(broken, 1.0)
    assert (run["kept"], run["abandoned_events"], run["failed"], run["reason"]) == (0.5, 6, True, None)


def test_the_factory_keeps_to_the_schema() -> None:
    for siblings in (False, True):
        check_document(found(siblings=siblings), "streams-checksum", "made")


def test_forty_percent_on_twelve_cores_spread_31_percent_of_the_work() -> None:
    assert parallel_share(1.4, 12) == pytest.approx(0.3117, abs=1e-4)
    assert parallel_share(0.9, 12) is None
    assert parallel_share(1.0, 1) is None


def test_ratios_have_intervals_and_the_fallback_is_part_of_them() -> None:
    made = document(found())
    by_kind = {one["kind"]: one for one in made["comparisons"]}
    own = by_kind["application"]
    assert own["ratio"] == pytest.approx(3.0, rel=0.01)
    assert own["interval"][0] < own["ratio"] < own["interval"][1]
    assert (own["decision"], own["n"], own["masked"]) == ("above", 6, 0)
    assert [one["kind"] for one in made["fallback"]] == ["switched-off", "small-events"]
    assert made["judged"]["gain"]["ratio"] == own["ratio"]
    assert made["judged"]["gain_all_cores"]["label"] == "pool-busy, 4 threads"
    assert made["judged"]["gain_all_cores"]["parallel_share"] == pytest.approx((1 - 1 / 1.4) / (1 - 1 / 4), rel=0.02)
    assert made["judged"]["smt"] is None
    assert "nothing can be said about SMT siblings" in made["notes"][0]
    assert "24 checksum threads were asked for and not measured" in made["notes"][1]


def test_with_siblings_the_physical_cores_are_judged_and_the_siblings_stand_beside() -> None:
    made = document(found(siblings=True))
    assert made["judged"]["smt"]["label"] == "siblings added"
    judged = [
        one for one in made["comparisons"] if one["setup"]["placement"] == "cores" and one["setup"]["threads"] == 4
    ]
    assert made["judged"]["gain_all_cores"]["ratio"] == judged[0]["ratio"]
    assert len(made["notes"]) == 1


def test_slower_is_said_only_where_the_whole_interval_lies_below_one() -> None:
    assert document(found())["slower_points"] == 0
    made = document(found({"pool-busy, 2 threads": 0.9}))
    assert (made["slower_points"], made["slower"], made["slower_in_use"]) == (1, ["pool-busy, 2 threads"], 0)
    assert document(found({"small": 0.9}))["slower_in_use"] == 1
    assert document(found({"pool-busy, 2 threads": 0.995}))["slower_points"] == 0
    # A set-up without a checksum is no candidate for being slower, and neither are the siblings.
    assert document(found({"no checksum at all": 0.5, "siblings added": 0.5}, siblings=True))["slower_points"] == 0


def test_overhead_is_the_median_over_turns_with_an_interval_from_six_on() -> None:
    made = found()
    made["overhead"]["points"] = [overhead("pool-busy", 4, 12.0), overhead("pool-cv", 4, 30.0, turns=5)]
    many, few = document(made)["overhead"]
    assert many["median_us"] == pytest.approx(12.1)
    assert many["interval_us"] == [pytest.approx(12.0), pytest.approx(12.2)]
    assert (few["n"], few["interval_us"]) == (5, None)
    assert document(made)["judged"]["overhead_us"] == pytest.approx(12.1)


def test_what_has_no_value_has_a_reason() -> None:
    made = found()
    for one in made["comparisons"]:
        for pair in one["pairs"]:
            pair["measured"]["reason"] = "the emulated source was the limit"
    made["demand"][1] |= {"kept": None, "reason": "the source was late"}
    made["overhead"]["points"] = []
    analysis = document(made)
    assert analysis["slower_points"] is None
    names = ("gain", "gain_all_cores", "fallback", "slower_points", "slower_in_use", "kept", "overhead")
    assert set(analysis["reasons"]) == {f"streams_checksum.{name}" for name in names}
    assert "round 1, setup: the emulated source was the limit" in analysis["reasons"]["streams_checksum.gain"]
    metrics = load_metrics(INVENTORY / "metrics.yml")
    profile = load_requirements(INVENTORY / "requirements" / "streams-checksum.yml", metrics)
    for one in profile.requirements:
        measured = measure(one, metrics[one.metric], {ANALYSIS: analysis})
        assert bool(measured.problem) == (one.metric in analysis["reasons"]), one.metric


def decided(analysis: dict[str, Any]) -> dict[str, str]:
    metrics = load_metrics(INVENTORY / "metrics.yml")
    profile = load_requirements(INVENTORY / "requirements" / "streams-checksum.yml", metrics)
    outcomes = {}
    for one in profile.requirements:
        metric = metrics[one.metric]
        known = estimate(one, metric, measure(one, metric, {ANALYSIS: analysis}), 1)
        outcomes[one.id] = decide(one.comparison, float(one.bound), one.guard_band, known).decision
    return outcomes


def test_the_requirements_are_decided_by_whole_intervals() -> None:
    good = decided(document(found({"pool-busy, 1 thread": 1.02, "small": 1.02, "pool-busy, 4 threads": 1.6})))
    assert good == dict.fromkeys(good, MET)
    # 1.0 +- 1 % reaches below 0.99, and the paper's figure to either side of 1.40.
    assert decided(document(found({"small": 1.0, "pool-busy, 1 thread": 0.99})))["SCK-07"] == UNDECIDED
    assert decided(document(found({"small": 0.9})))["SCK-07"] == MISSED
    assert decided(document(found({"fused": 1.2})))["SCK-09"] == MISSED


def test_damage_wrong_checksums_and_failures_miss_their_requirements() -> None:
    made = found()
    made["verification"].append(
        verification(
            "peak", "fused", wrong_files=1, faults=2, failed=True, wrong=[{"name": "run.0.0.events", "fault": "x"}]
        )
    )
    made["identity"]["wrong"] = 1
    made["demand"][0] |= {"kept": 0.9, "abandoned_events": 4}
    outcomes = decided(document(made))
    assert [name for name, outcome in outcomes.items() if outcome == MISSED] == [f"SCK-0{n}" for n in range(1, 7)]


def test_every_metric_finds_its_place() -> None:
    analysis = document(found())
    for name, metric in load_metrics(INVENTORY / "metrics.yml").items():
        if name.startswith("streams_checksum."):
            assert metric.file == ANALYSIS
            assert None not in jmespath.search(metric.path, analysis), name


def test_it_is_made_from_the_bundle_alone(tmp_path: Path) -> None:
    make = MODELS["streams_checksum"].beside[0].make
    assert make is not None and make(tmp_path, some_run()) is None
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "streams_checksum.json").write_text(json.dumps(found()), encoding="utf-8")
    assert make(tmp_path, some_run()) == json.loads(json.dumps(document(found())))
