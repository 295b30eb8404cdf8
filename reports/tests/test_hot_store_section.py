"""The hot store's section: what the paper states is a reference, masked points are not drawn, persistence stands beside the figure."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from filled import filled

from daq_bench.bench_model.workloads.hot_store.document import HotStore
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.section import Lacking, Section
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.workloads.hot_store import section as hot_store

Maker = Callable[..., Path]


def rate(mean: float, n: int = 6) -> dict[str, Any]:
    return {
        "n": n, "samples_ops_per_s": [mean] * n, "mean_ops_per_s": mean, "min_ops_per_s": mean * 0.9, "stdev_ops_per_s": mean * 0.03,
        "relative_stdev": 0.03, "min_over_mean": 0.9, "waited_s": 0.0, "latency_us": {"p50": 3.0, "p99": 9.0, "p99_9": 20.0, "max": 90.0},
    }  # fmt: skip


def point(value_bytes: int, kops: float, masked: bool = False, moved: bool = False) -> dict[str, Any]:
    ratio = {"value": 4.0, "interval": [3.8, 4.2]}
    return {
        "value_bytes": value_bytes, "embedded": {"put": rate(kops * 1e3), "consume": rate(kops * 900), "cpu_us_per_operation": 5.0,
            "handover_ns": {"before": 40.0, "after": 200.0 if moved else 41.0}, "cpus_moved": moved,
        },
        "redis": {"set": rate(kops * 250), "get": rate(kops * 240)}, "drive": None, "ratios": {"put": ratio, "consume": ratio},
        "admissible": not masked, "reason": "2 values were not what was put" if masked else None,
    }  # fmt: skip


def scaled(kind: str, nodes: int) -> dict[str, Any]:
    return {
        "deployment": kind, "nodes": nodes, "put_ops_per_s": 9e3 * nodes, "consume_ops_per_s": 3e3, "put_p99_us": 400.0,
        "consume_p99_us": 900.0, "unconfirmed": 0, "events": 1000, "network_bytes": 10**7,
        "network_bytes_per_event": 1e4 if kind == "base" else 2e4, "admissible": True, "reason": None,
    }  # fmt: skip


DOCUMENT: dict[str, Any] = {
    "schema_version": 1, "seconds_per_point": 3.0, "sample_s": 0.5, "capacity_bytes": 1 << 28, "redis_clients": 50,
    "client_value_bytes": 1000, "memory_folder": "/dev/shm",
    "promises": {"lmdb": "acknowledged operations survive the death of any process", "redis": "as its settings promise"},
    "published": {
        "source": "the paper, section 4.4", "just_below_ops_per_s": 300_000, "min_ops_per_s": 241_000,
        "stdev_at_most_ops_per_s": 7_600, "times_redis": 3, "conditions": "a RAM disk",
    },
    "points": [point(1000, 250), point(10_000, 120)],
    "clients": [{"clients": 2, "put": rate(2e5), "consume": rate(2e5), "admissible": True, "reason": None}],
    "semantics": {
        "rows": [{"id": "range", "text": "Ranges equal brute force", "engines": {
            "lmdb": {"outcome": "passed", "detail": ""}, "redis": {"outcome": "failed", "detail": "3 keys instead of 4"}}}],
        "passed": 1, "failed": 1,
    },
    "losses": [{
        "id": "node-lost", "text": "A lost node", "engine": "redis-cluster", "outcome": "passed", "detail": "9 acknowledged", "lost": 0,
    }],
    "scale_out": {
        "value_bytes": 10_000, "replicas": 1, "network": "namespaces", "consumers_per_node": 2,
        "points": [scaled(kind, nodes) for nodes in (1, 3) for kind in ("base", "detached")],
    },
    "summary": {
        "ratios": {"put": [], "consume": []}, "relative_stdev": 0.03, "min_over_mean": 0.9, "semantics_failed": 1, "lost_events": 0,
        "network_share": 0.5, "reasons": {},
    },
}  # fmt: skip


def made(bundle_with: Maker, **changes: Any) -> Section:
    root = bundle_with()
    document = {**copy.deepcopy(DOCUMENT), **changes}
    (root / "results" / "hot_store.json").write_text(json.dumps(filled(document, HotStore)), encoding="utf-8")
    section = hot_store.section(load(root))
    assert section is not None
    return section


def figures(section: Section) -> dict[str, Figure]:
    return {part.name: part for part in section.parts if isinstance(part, Figure)}


def texts(figure: Figure) -> set[str]:
    return {
        re.sub(r"<[^>]+>", "", text).strip() for text in re.findall(r"<text.*?</text>", figure.svg, flags=re.DOTALL)
    }


def test_a_run_without_the_hot_store_has_no_section(bundle_with: Maker) -> None:
    assert hot_store.section(load(bundle_with())) is None


def test_figures_five_and_six_in_kind_with_what_the_paper_states(bundle_with: Maker) -> None:
    figure = figures(made(bundle_with))["hot-store-sizes"]
    assert {
        "KOPS",
        "value size (B)",
        "LMDB in process, memory",
        "Redis, loopback TCP",
        "1000",
        "10\N{NARROW NO-BREAK SPACE}000",
    } <= texts(figure)
    assert any(text.startswith("published: just below 300") for text in texts(figure))
    assert "LMDB in process, target" not in texts(figure)  # it was not measured
    for words in (
        "survive the death of any process",
        "Redis is volatile",
        "over TCP on loopback",
        "50 connections",
        "put threads wait while 64",
        "67\u202f108\u202f864",
        "n = 2 sizes, each with 6 samples",
        "not stated and not drawn",
    ):
        assert words in figure.caption


def test_references_far_above_the_data_are_named_and_not_drawn(bundle_with: Maker) -> None:
    figure = figures(made(bundle_with, points=[point(1000, 30)]))["hot-store-sizes"]
    assert not any(text.startswith("published") for text in texts(figure))
    assert "Beyond the axis: published: just below 300" in figure.caption


def test_masked_points_are_not_drawn_and_their_reason_is_in_the_table(bundle_with: Maker) -> None:
    section = made(bundle_with, points=[point(1000, 250), point(10_000, 120, masked=True)])
    figure = figures(section)["hot-store-sizes"]
    assert "n = 1 sizes" in figure.caption and "does not count as evidence: 10000 B" in figure.caption
    table = next(part for part in section.parts if isinstance(part, Table) and part.name == "hot-store-sizes-table")
    assert table.marked == {1} and "2 values were not what was put" in table.rows[1][-1]
    nothing = made(bundle_with, points=[point(1000, 250, masked=True)])
    assert any(isinstance(part, Lacking) for part in nothing.parts)


def test_of_the_repetitions_of_a_size_the_one_in_the_middle_is_drawn(bundle_with: Maker) -> None:
    points = []
    for number, (ratio, speed) in enumerate(((5.0, 300), (3.0, 100), (4.0, 200), (9.0, 900)), start=1):
        one = point(1000, speed, masked=number == 4)
        one["ratios"] = {side: {"value": ratio, "interval": None} for side in ("put", "consume")}
        points += [{"repetition": number, **one}, {"repetition": number, **point(10_000, 120)}]
    section = made(bundle_with, points=points)
    figure = figures(section)["hot-store-sizes"]
    assert "The fastest put is 200" in figure.see and "n = 2 sizes" in figure.caption
    assert "the middle one of 4 repetitions" in figure.caption
    assert "does not count as evidence: 1000 B (repetition 4) (" in figure.caption
    table = next(part for part in section.parts if isinstance(part, Table) and part.name == "hot-store-sizes-table")
    assert [row[1] for row in table.rows] == ["1", "1", "2", "2", "3", "3", "4", "4"] and table.marked == {6}


def test_cpus_that_moved_during_a_measurement_are_named(bundle_with: Maker) -> None:
    def caption(*points: dict[str, Any]) -> str:
        parts = made(bundle_with, points=list(points)).parts
        return next(part.caption for part in parts if isinstance(part, Table) and part.name == "hot-store-sizes-table")

    assert "distance of the CPUs" not in caption(point(1000, 250))
    words = "measured: 4000 B (a cache line passed in 40 ns before and 200 ns after)."
    assert words in caption(point(1000, 250), point(4000, 200, moved=True))


def test_a_failed_row_is_marked_with_what_it_saw(bundle_with: Maker) -> None:
    table = next(
        part for part in made(bundle_with).parts if isinstance(part, Table) and part.name == "hot-store-matrix"
    )
    assert table.marked == {0} and table.rows[0] == (
        "Ranges equal brute force",
        "passed",
        "failed",
        "redis: 3 keys instead of 4",
    )


def test_scale_out_says_that_nodes_share_a_machine(bundle_with: Maker) -> None:
    section = made(bundle_with)
    figure = figures(section)["hot-store-scale"]
    assert {"base", "detached", "storage nodes"} <= texts(figure)
    assert "more nodes are not more hardware" in figure.caption
    table = next(part for part in section.parts if isinstance(part, Table) and part.name == "hot-store-scale-table")
    assert "base moves 50" in table.caption
