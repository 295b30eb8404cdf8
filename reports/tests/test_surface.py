"""Depth by jobs: each cell is the point that was measured, a masked one is empty, and a scan without both has no surface."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from daq_bench.audit.good import results_of
from daq_bench.audit.good.case import case_of

from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.figures.surface import MOST_PANELS, Cell, surface_figure
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.workloads.read_scan import section


def cells(panel: str = "random, 4 KiB", masked: tuple[int, int] | None = None) -> list[Cell]:
    return [
        Cell(panel, depth, jobs, None if (depth, jobs) == masked else 1e9 * min(depth * jobs, 8))
        for depth in (1, 8, 32)
        for jobs in (1, 4)
    ]


def test_each_cell_is_the_rate_at_its_depth_and_jobs() -> None:
    figure = surface_figure("s", "A trial", cells(masked=(32, 4)))
    assert figure is not None
    grid = next(one for one in figure.data if one.kind == "grid")
    assert grid.grid[0] == (1, 8, 8) and grid.grid[1][:2] == (4, 8) and math.isnan(grid.grid[1][2])
    assert ([name for _, name in grid.x_names], [name for _, name in grid.y_names]) == (["1", "8", "32"], ["1", "4"])
    assert grid.panel == "random, 4 KiB" and "best at depth 8 with 1 job (8\u202fGB/s)" in figure.see


def test_a_little_in_flight_that_comes_near_the_best_is_named() -> None:
    near = [
        Cell("sequential", depth, jobs, rate)
        for depth, jobs, rate in ((1, 1, 1e9), (8, 1, 9.8e9), (1, 4, 4e9), (8, 4, 1e10))
    ]
    figure = surface_figure("s", "A trial", near)
    assert figure is not None and figure.see.endswith("depth 8 with 1 reaches 98\u202f% of it.")


@pytest.mark.parametrize(
    "points",
    [[], [one for one in cells() if one.jobs == 1], [one for one in cells() if one.depth == 8],
     [Cell("random", one.depth, one.jobs, None) for one in cells()]],
)  # fmt: skip
def test_without_two_of_each_or_any_value_there_is_no_surface(points: list[Cell]) -> None:
    assert surface_figure("s", "A trial", points) is None


def test_what_finds_no_room_is_said() -> None:
    many = [one for number in range(MOST_PANELS + 3) for one in cells(f"kind {number}")]
    figure = surface_figure("s", "A trial", many)
    assert figure is not None and "Not drawn: 3 more kinds" in figure.caption


def test_a_read_scan_has_one_with_its_own_points(bundle_with: Callable[..., Path]) -> None:
    root = bundle_with()
    for file, document in results_of(case_of("read-scan")).items():
        (root / file).write_text(json.dumps(document), encoding="utf-8")
    found = section(load(root))
    assert found is not None
    figure = next(part for part in found.parts if isinstance(part, Figure))
    points = json.loads((root / "results/read_scan.json").read_text(encoding="utf-8"))["scans"][0]["points"]
    drawn = [value for trace in figure.data if trace.kind == "grid" for row in trace.grid for value in row]
    assert sorted(drawn) == pytest.approx(sorted(point["throughput_bytes_per_s"] / 1e9 for point in points))
