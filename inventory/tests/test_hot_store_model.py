"""The hot store's figures: what is masked and why, ratios and their intervals, the matrix, what a kill proves, network bytes."""

from __future__ import annotations

import base64
import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest
from daq_bench.audit.good.small_run import some_run

from daq_bench.bench_model.evidence.measured import measure
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import load_requirements
from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.bench_model.verdict.decision import decide, estimate
from daq_bench.bench_model.workloads.hot_store import figures as model
from daq_bench.bench_model.workloads.hot_store import runs

INVENTORY = Path(__file__).resolve().parents[1]

# An HdrHistogram in encoding V2: one count in the slot of 1 ns.
ONE_COUNT = base64.b64encode(
    struct.pack(">iiiiqqd", 0x1C849313, 2, 0, 3, 1, 3_600_000_000, 1.0) + bytes([1, 2])
).decode()
LATENCY = {"p50": 3.0, "p99": 9.0, "p99_9": 20.0, "max": 100.0}


def bench(put: list[float], consume: list[float], **changes: Any) -> dict[str, Any]:
    def side(samples: list[float]) -> dict[str, Any]:
        return {"samples_ops_per_s": samples, "latency_us": LATENCY, "waited_s": 0.0}

    document = {
        "status": "complete", "error": None, "corrupt": 0, "put": side(put), "consume": side(consume),
        "cpu": {"us_per_operation": 6.0}, "handover_ns": {"before": 40.0, "after": 41.0},
    }  # fmt: skip
    return {**document, **changes}


def test_a_rate_has_mean_least_and_scatter() -> None:
    rate = model.rate_of([90.0, 100.0, 110.0])
    assert (rate["mean_ops_per_s"], rate["min_ops_per_s"], rate["stdev_ops_per_s"]) == (100.0, 90.0, 10.0)
    assert (rate["relative_stdev"], rate["min_over_mean"]) == (0.1, 0.9)
    empty = model.rate_of([])
    assert empty["mean_ops_per_s"] is None and empty["relative_stdev"] is None


def test_cpus_that_moved_are_told_from_those_that_stayed() -> None:
    found = [
        model.cpus_moved({"handover_ns": {"before": before, "after": after}})
        for before, after in ((37.0, 38.0), (37.0, 205.0), (205.0, 37.0), (None, 37.0))
    ]
    assert found == [False, True, True, None]


def test_a_ratio_is_of_means_and_its_interval_covers_both_ends() -> None:
    numbers = random.Random(1)
    above = [numbers.gauss(300, 2) for _ in range(60)]
    below = [numbers.gauss(100, 1) for _ in range(60)]
    ratio = model.ratio_of(model.rate_of(above), model.rate_of(below), 1)
    assert ratio["value"] == pytest.approx(3, rel=0.01)
    low, high = ratio["interval"]
    assert low < ratio["value"] < high and high - low < 0.1
    short = model.ratio_of(model.rate_of(above[:6]), model.rate_of(below), 1)
    assert short["value"] is not None and short["interval"] is None


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (bench([1.0] * 6, [1.0] * 6, status="failed", error="broke"), "is failed: broke"),
        (bench([1.0] * 6, [1.0] * 6, corrupt=2), "2 values were not what was put"),
        (bench([1.0] * 3, [1.0] * 6), "fewer samples than were asked for: put"),
        (bench([1.0] * 6, [0.0] * 6), "nothing was done: consume"),
    ],
)
def test_what_does_not_count_is_masked_with_its_reason(document: dict[str, Any], words: str) -> None:
    made = model.point(1000, document, {"set": [1.0] * 6, "get": [1.0] * 6}, None, 3.0, 1)
    assert made["admissible"] is False and words in made["reason"]
    good = model.point(1000, bench([1.0] * 6, [1.0] * 6), {"set": [1.0] * 6, "get": [1.0] * 6}, None, 3.0, 1)
    points = [{"repetition": number, **one} for number, one in enumerate((good, made, good), start=1)]
    summary = model.summary(points, model.matrix({}, []), [], [])
    for side in ("put", "consume"):  # a hole with its place among the others, which do not stand for it
        assert [one["value"] for one in summary["ratios"][side]] == [1.0, None, 1.0]
    assert summary["relative_stdev"] is None and "1000 B, repetition 2" in summary["reasons"]["hot_store.put_ratio"]
    assert words in summary["reasons"]["hot_store.put_ratio"]


def test_a_target_that_failed_masks_the_point_and_says_that_it_was_the_target() -> None:
    good, bad = bench([2.0] * 6, [2.0] * 6), bench([2.0] * 6, [2.0] * 6, corrupt=1)
    made = model.point(1000, good, {"set": [1.0] * 6, "get": [1.0] * 6}, bad, 3.0, 1)
    assert made["reason"] == "on the target: 1 values were not what was put"


def verified(**changes: int) -> dict[str, Any]:
    return {
        "acknowledged": 100, "removed": 40, "missing": 0, "corrupt": 0, "came_back": 0, "removed_twice": 0, **changes,
    }  # fmt: skip


def test_a_kill_with_nothing_to_lose_proves_nothing() -> None:
    assert model.loss_row("x", "text", "lmdb", verified(), 50)["outcome"] == "passed"
    few = model.loss_row("x", "text", "lmdb", verified(acknowledged=10), 50)
    assert few["outcome"] == "failed" and "fewer than 50 acknowledged" in few["detail"]
    for finding in ("missing", "corrupt", "came_back", "removed_twice"):
        row = model.loss_row("x", "text", "lmdb", verified(**{finding: 3}), 50)
        assert (row["outcome"], row["lost"]) == ("failed", 3)
    assert model.with_returned(model.loss_row("x", "text", "lmdb", verified(), 50), 0)["outcome"] == "failed"


def test_the_matrix_has_a_row_for_each_check_and_counts_what_failed() -> None:
    rows = [{"id": "put", "text": "Put", "outcome": "passed", "detail": ""}]
    wrong = [{"id": "put", "text": "Put", "outcome": "failed", "detail": "why"}]
    matrix = model.matrix({"lmdb": rows, "redis": wrong}, [model.loss_row("kill", "Kill", "lmdb", verified(), 50)])
    assert [row["id"] for row in matrix["rows"]] == ["put", "kill"]
    assert matrix["rows"][0]["engines"]["redis"] == {"outcome": "failed", "detail": "why"}
    assert (matrix["passed"], matrix["failed"]) == (2, 1)


def test_network_bytes_are_compared_at_the_most_nodes_that_both_deployments_have() -> None:
    def at(kind: str, nodes: int, each: float | None, admissible: bool = True) -> dict[str, Any]:
        return {"deployment": kind, "nodes": nodes, "network_bytes_per_event": each, "admissible": admissible}

    points = [
        at("base", 1, 10.0),
        at("detached", 1, 40.0),
        at("base", 3, 10.0),
        at("detached", 3, 20.0),
        at("base", 6, 1.0),
    ]
    assert model.network_share(points) == 0.5
    assert model.network_share([*points[:3], at("detached", 3, 20.0, admissible=False)]) == 0.25
    assert model.network_share([at("base", 3, None), at("detached", 3, None)]) is None


def whole_bench(put: list[float], consume: list[float]) -> dict[str, Any]:
    document = bench(put, consume, measured_s=4.0, promise="outlives its process", answers={}, returned_events=2)
    for side in ("put", "consume"):
        document[side] |= {"operations": 100, "ops_per_s": 25.0}
    return document


RUNS: dict[str, Any] = {
    "schema_version": 1, "seed": 1, "seconds_per_point": 3.0, "capacity_bytes": 1 << 28, "redis_clients": 50, "client_value_bytes": 1000,
    "memory_folder": "/dev/shm",
    "points": [
        {"repetition": 1, "value_bytes": 1000, "embedded": "hot-store-1000", "redis": "hot-store-redis-1000", "drive": None}
    ],
    "clients": [{"clients": 2, "document": "hot-store-clients-2"}],
    "semantics": {"lmdb": "hot-store-semantics-lmdb"},
    "losses": [{
        "id": "kill", "text": "Kill", "engine": "redis", "verify": "hot-store-kill-verify", "acknowledged_min": 50,
        "heirs": ["hot-store-kill-consumer-1"],
    }],
    "scale_out": {
        "value_bytes": 1000, "replicas": 0, "network": "loopback", "consumers_per_node": 1,
        "points": [{
            "deployment": "base", "nodes": 1, "producers": ["hot-store-base-1"], "consumers": ["hot-store-base-1"], "network_bytes": None,
            "drained_s": 1.0,
        }],
    },
}  # fmt: skip


def raw_files(folder: Path) -> Path:
    """A bundle of which the raw documents are small."""
    load = whole_bench([200.0] * 6, [100.0] * 6)
    without = {
        **load,
        **{side: {**load[side], "latency_us": {**LATENCY, "hdr": ONE_COUNT}} for side in ("put", "consume")},
    }
    documents = {
        "hot-store-1000": load, "hot-store-redis-1000": {"samples_ops_per_s": {"set": [50.0] * 6, "get": [50.0] * 6}},
        "hot-store-clients-2": load, "hot-store-base-1": without, "hot-store-kill-consumer-1": load,
        "hot-store-semantics-lmdb": {"rows": [{"id": "put", "text": "Put", "outcome": "passed", "detail": ""}]},
        "hot-store-kill-verify": {**verified(), "promise": "as its settings promise"},
    }  # fmt: skip
    raw = folder / "results" / "raw"
    raw.mkdir(parents=True)
    for name, document in documents.items():
        (raw / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    check_document(RUNS, "hot-store-runs", "runs")
    (folder / runs.RUNS).write_text(json.dumps(RUNS), encoding="utf-8")
    return folder


def test_the_figures_follow_from_the_raw_documents_of_a_bundle(tmp_path: Path) -> None:
    made = runs.of_bundle(raw_files(tmp_path), some_run())
    assert made is not None
    check_document(made, "hot-store", "made")
    assert made["summary"]["ratios"]["put"][0]["value"] == 4.0
    assert made["promises"] == {"lmdb": "outlives its process", "redis": "as its settings promise"}
    assert (made["summary"]["semantics_failed"], made["summary"]["lost_events"]) == (0, 0)
    assert "2 events came back" in made["losses"][0]["detail"]
    changed = tmp_path / "results" / "raw" / "hot-store-redis-1000.json"
    changed.write_text(
        '{"samples_ops_per_s": {"set": [100, 100, 100, 100, 100, 100], "get": [50, 50, 50, 50, 50, 50]}}'
    )
    again = runs.of_bundle(tmp_path, some_run())
    assert again is not None and again["summary"]["ratios"]["put"][0]["value"] == 2.0
    assert runs.of_bundle(tmp_path / "nothing", some_run()) is None


def decided(above: list[float], sizes: tuple[int, ...] = (1000, 10_000), holes: tuple[int, ...] = ()) -> str:
    """The decision on KVS-03 with the embedded store at so many times Redis in each repetition."""
    metrics = load_metrics(INVENTORY / "metrics.yml")
    profile = load_requirements(INVENTORY / "requirements" / "hot-store.yml", metrics)
    requirement = next(one for one in profile.requirements if one.id == "KVS-03")
    points = []
    for number, ratio in enumerate(above, start=1):
        for size in sizes:
            load = bench([ratio] * 6, [4.0] * 6, corrupt=int(number in holes and size == sizes[-1]))
            made = model.point(size, load, {"set": [1.0] * 6, "get": [1.0] * 6}, None, 3.0, 1)
            points.append({"repetition": number, **made})
    results = {"results/hot_store.json": {"points": points, "summary": model.summary(points, NO_MATRIX, [], [])}}
    measured = measure(requirement, metrics[requirement.metric], results)
    if measured.problem:
        return measured.problem
    found = estimate(requirement, metrics[requirement.metric], measured, 1)
    return decide(requirement.comparison, requirement.bound, requirement.guard_band, found).decision


NO_MATRIX: dict[str, Any] = {"rows": [], "failed": 0}
SIX = [4.0, 4.1, 3.9, 4.05, 3.95, 4.02]


def test_six_repetitions_of_each_value_size_decide_and_fewer_do_not() -> None:
    assert decided(SIX) == "met"
    assert decided([one / 2 for one in SIX]) == "missed"
    assert decided([*SIX[:5], 2.9]) == "undecided"  # the worst repetition is below the bound
    for number in range(1, 6):
        assert decided(SIX[:number], sizes=(1000, 2000, 4000, 6000, 8000, 10_000)) == "undecided"


def test_a_repetition_that_does_not_count_is_no_smaller_number_of_them() -> None:
    assert "value 6 of 14" in decided([*SIX, 4.0], holes=(3,))
