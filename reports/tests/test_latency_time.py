"""Latency over time: the cells are the record's own counts, the longest wait is named, and a table that contradicts itself is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.workloads.snb_record.latency_time import latency_time_figure

Maker = Callable[..., Path]
EDGES = [1024.0, 1536.0, 2048.0, 3072.0]


def drawn(root: Path, change: Callable[[dict[str, Any]], None]) -> Figure | None:
    file = root / "results/snb_record.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    for one in document["repetitions"]:
        change(one["minidaq"])
    file.write_text(json.dumps(document), encoding="utf-8")
    return latency_time_figure(load(root))


def table(rows: list[list[int]], **more: Any) -> Callable[[dict[str, Any]], None]:
    def change(minidaq: dict[str, Any]) -> None:
        minidaq["latency_us"] |= {"count": int(sum(map(sum, rows))), "p50": 1500.0}
        minidaq["latency_over_time"] = {"definition": "d", "interval_s": 0.2, "from_us": EDGES, "counts": rows} | more

    return change


QUIET = [[0, 90, 10, 0]] * 4
STALL = [[0, 10, 60, 30], [0, 0, 0, 0]]


def test_the_cells_are_the_counts_and_the_longest_wait_is_named(bundle_with: Maker) -> None:
    figure = drawn(bundle_with(telemetry=False), table([*QUIET, *STALL]))
    assert figure is not None
    grid = next(one for one in figure.data if one.kind == "grid")
    expected = np.array([*QUIET, *STALL], dtype=float).T
    assert np.array_equal(np.nan_to_num(np.array(grid.grid)), expected) and grid.x == pytest.approx((0, 1.2))
    assert figure.see.startswith(
        "The longest wait, 3.07\u202fms to 4.10\u202fms, began 0.8\u202fs to 1\u202fs after the start"
    )
    assert "nothing waited longer than 3.07\u202fms" in figure.see
    half = next(one for one in figure.data if one.series == "half of them within")
    assert half.y[:5] == (2, 2, 2, 2, 3) and np.isnan(half.y[5])  # nothing arrived in the last


def test_the_factory_shows_the_stall(bundle_with: Maker) -> None:
    figure = latency_time_figure(load(bundle_with(telemetry=False)))
    assert figure is not None and "n = 20\u202f000" in figure.caption and "repetition" not in figure.title


def test_a_record_of_an_older_writer_has_none(bundle_with: Maker) -> None:
    assert drawn(bundle_with(telemetry=False), lambda minidaq: minidaq.pop("latency_over_time")) is None


def test_a_record_that_stored_nothing_or_ended_at_once_has_none(bundle_with: Maker) -> None:
    assert drawn(bundle_with(telemetry=False), table([], from_us=[])) is None
    assert drawn(bundle_with(telemetry=False), table(QUIET[:2])) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (table([*QUIET, [1, 2, 3]]), r"counts\[4\]: 3 counts for 4 columns"),
        (table([*QUIET, [1, -2, 3, 4]]), r"latency_over_time\.counts.*>= 0"),
        (table(QUIET, from_us=[1.0, 2.0, 2.0, 3.0]), "from_us: the edges must increase"),
        (table(QUIET, interval_s=0.0), r"latency_over_time\.interval_s: Expected `float` > 0"),
        (table([*QUIET, [1, 2.5, 3, 4]]), r"latency_over_time\.counts.*`int`"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_is_refused_by_field(
    bundle_with: Maker, change: Callable[[dict[str, Any]], None], words: str
) -> None:
    with pytest.raises(BenchError, match=words):
        drawn(bundle_with(telemetry=False), change)


def test_a_table_of_other_superchunks_is_refused(bundle_with: Maker) -> None:
    def forged(minidaq: dict[str, Any]) -> None:
        table([*QUIET, *STALL])(minidaq)
        minidaq["latency_over_time"]["counts"][4] = [
            100,
            0,
            0,
            0,
        ]  # the stall is gone, the number is the same: nothing is said
        minidaq["latency_us"]["count"] += 1

    with pytest.raises(BenchError, match="500 superchunks, where latency_us counts 501"):
        drawn(bundle_with(telemetry=False), forged)
