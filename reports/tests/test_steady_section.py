"""The steady-state section: its words on a test that is steady, and on one that is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filled import filled

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.workloads.steady_state.document import SteadyState
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.section import Lacking
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.qualification.render import to_html
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.workloads.steady_state.section import section as make

Maker = Callable[..., Path]


def point(value: float) -> dict[str, Any]:
    latency = {"mean": 100.0, "max": 900.0, "p99_9": 400.0}
    side = {"bytes": 10**9, "bytes_per_s": value, "iops": value / 131072, "runtime_s": 60.0, "latency_us": latency}
    return {
        **{"name": "write-131072", "block_bytes": 131072, "read_percent": 0, "runtime_s": 60.0, "iops": value / 131072},
        **{"bytes_per_s": value, "latency_us": 100.0, "read": None, "write": side, "admissible": True, "reason": None},
    }


def conditioning() -> dict[str, Any]:
    purge = {
        "method": "format",
        "text": "whole drive of 10 B, nvme format",
        "done": True,
        "zero_share": 1.0,
        "seconds": 2.0,
    }
    written = {
        "passes": 2,
        "block_bytes": 131072,
        "io_depth": 32,
        "bytes_written": 2 * 10**12,
        "bytes_per_s": 2e9,
        "seconds": 1000.0,
    }
    return {
        **{
            "condition": "preconditioned",
            "label": "steady-throughput-128kib",
            "started_utc": "2026-01-31T12:00:00Z",
            "span_bytes": 10**12,
        },
        **{
            "capacity_bytes": 10**12,
            "share_of_capacity": 1.0,
            "purge": purge,
            "preconditioning": written,
            "limits": [],
        },
    }


def one_test(values: list[float | None], window: dict[str, Any] | None) -> dict[str, Any]:
    rounds = [
        {
            "round": number,
            "value": value,
            "reason": None if value else "ran for 1 s of 60 s",
            "device_bytes_written": None,
            "points": [point(value or 1)],
        }
        for number, value in enumerate(values, 1)
    ]
    return {
        **{
            "name": "throughput-128kib",
            "kind": "throughput",
            "title": "Sequential throughput in 128 KiB transfers",
            "unit": "B/s",
        },
        **{"tracking": "sequential write throughput, 128 KiB", "io_depth": 32, "threads": 1, "notes": ["a note"]},
        **{"conditioning": conditioning(), "rounds": rounds, "steady": window is not None, "window": window},
        "reason": None if window else "steady state was not reached in 25 rounds",
    }


def bundle(root: Path, test: dict[str, Any]) -> Path:
    document = {
        **{
            "schema_version": 1,
            "tool": "fio",
            "tool_version": "fio-3.33",
            "standard": "SNIA SSS PTS 2.0.2",
            "rule": "the rule",
        },
        **{
            "span_bytes": 10**12,
            "capacity_bytes": 10**12,
            "logical_block_bytes": 4096,
            "seconds_per_point": 60,
            "rounds_max": 25,
        },
        **{"tests": [test], "summary": {}, "samples": {}, "reasons": {}, "limits": []},
    }
    (root / "results" / "steady_state.json").write_text(json.dumps(filled(document, SteadyState)), encoding="utf-8")
    return root


WINDOW = {
    **{
        "first_round": 2,
        "last_round": 6,
        "mean": 1e9,
        "range_share": 0.07,
        "slope_per_round": 1e6,
        "intercept": 9.96e8,
    },
    "fit_share": 0.004,
}
STEADY: list[float | None] = [2e9, 9.8e8, 1.01e9, 1e9, 1.04e9, 9.7e8]


def test_a_steady_test_shows_its_window_fit_and_figures(bundle_with: Maker) -> None:
    section = make(load(bundle(bundle_with(), one_test(STEADY, WINDOW))))
    assert section is not None
    (figure,) = [part for part in section.parts if isinstance(part, Figure)]
    assert "Steady, rounds 2 to 6" in figure.caption
    for words in ("round", "mean \u00b1 10%", "best line", "window: rounds 2 to 6"):
        assert words in figure.svg, words
    tables = {part.name: part for part in section.parts if isinstance(part, Table)}
    window = tables["steady-window"]
    assert [row[0] for row in window.rows] == ["2", "3", "4", "5", "6"]
    # the hand-worked window of test_steady_state.py, times 10^6: its line goes from 998 to 1002 MB/s
    assert [row[3].replace("\u202f", " ") for row in (window.rows[0], window.rows[-1])] == ["0.9980 GB/s", "1.002 GB/s"]
    assert tables["steady-points"].rows[0][0].replace("\u202f", " ") == "128 KiB"
    assert "100" in tables["steady-conditions"].rows[0][2]
    assert not [part for part in section.parts if isinstance(part, Lacking)]


def test_a_test_that_is_not_steady_shows_no_figures_but_why(bundle_with: Maker) -> None:
    values: list[float | None] = [float(10**9 * (1 + number % 2)) for number in range(25)]
    values[20] = None
    section = make(load(bundle(bundle_with(), one_test(values, None))))
    assert section is not None
    assert any(
        "steady state was not reached in 25 rounds" in part.text for part in section.parts if isinstance(part, Lacking)
    )
    tables = {part.name: part for part in section.parts if isinstance(part, Table)}
    assert "steady-points" not in tables
    assert tables["steady-overview"].rows[0][3] == "not reached"
    (figure,) = [part for part in section.parts if isinstance(part, Figure)]
    assert "Not drawn, since the round does not count: 21" in figure.caption
    assert "rounds 16 to 20" in figure.caption  # the last window that is whole


def test_the_section_stands_in_the_report_and_damaged_results_are_named(bundle_with: Maker) -> None:
    root = bundle(bundle_with(), one_test(STEADY, WINDOW))
    assert "Sequential throughput in 128 KiB transfers: rounds to steady state" in to_html(load(root))
    file = root / "results" / "steady_state.json"
    broken = json.loads(file.read_text(encoding="utf-8"))
    del broken["tests"][0]["rounds"][0]["points"][0]["iops"]
    file.write_text(json.dumps(broken), encoding="utf-8")
    with pytest.raises(BenchError, match=r"tests\[0\]\.rounds\[0\]\.points\[0\]: .*missing required field `iops`"):
        make(load(root))


def test_a_run_without_the_workload_has_no_such_section(bundle_with: Maker) -> None:
    assert make(load(bundle_with())) is None
