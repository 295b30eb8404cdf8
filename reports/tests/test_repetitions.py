"""Repetitions side by side: each has a panel on the same axes, BUSY is outlined where it was, and each has its curve of latencies."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.workloads.latency_under_load.figures import Curve
from daq_bench.bench_report.workloads.snb_record.repetitions import (
    BACKLOGS,
    ECDF,
    MOST_PANELS,
    Latencies,
    _alike,
    repetition_figures,
)

Maker = Callable[..., Path]


def figures(
    root: Path, change: Callable[[int, dict[str, Any]], None] = lambda number, minidaq: None
) -> dict[str, Figure]:
    file = root / "results/snb_record.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    for number, one in enumerate(document["repetitions"], 1):
        change(number, one["minidaq"])
    file.write_text(json.dumps(document), encoding="utf-8")
    return {figure.name: figure for figure in repetition_figures(load(root))}


def odd(number: int, minidaq: dict[str, Any]) -> None:
    """The second is BUSY twice, and had the highest backlog and the longest latencies."""
    minidaq["busy"] = {"count": 0, "total_s": 0.0, "episodes": []}
    if number == 2:
        minidaq["busy"] = {
            "count": 2,
            "total_s": 0.5,
            "episodes": [{"start_s": 3.0, "duration_s": 0.4}, {"start_s": 7.0, "duration_s": 0.1}],
        }
        minidaq["backlog"]["high_water_bytes"] *= 5
        minidaq["latency_us"] = {
            key: value * 3 if isinstance(value, float) else value for key, value in minidaq["latency_us"].items()
        }
        minidaq["latency_us"]["hdr"] = "HISTAAAA"  # of its name only


def test_one_repetition_has_figures_of_its_own(bundle_with: Maker) -> None:
    assert figures(bundle_with(telemetry=False)) == {}


def test_each_repetition_has_a_panel_and_busy_is_outlined_where_it_was(bundle_with: Maker) -> None:
    figure = figures(bundle_with(repetitions=4, telemetry=False), odd)[BACKLOGS]
    lines = [one for one in figure.data if one.kind == "line" and one.series == "backlog"]
    assert len(lines) == 4 and len({one.panel for one in lines}) == 4
    (busy,) = (one for one in figure.data if one.series == "BUSY")
    assert busy.panel.startswith("2: ") and busy.x[:2] == pytest.approx((3.0, 3.4)) and busy.x[2] == 7.0
    assert "BUSY in 1 of 4: 2." in figure.see and "(2)" in figure.see


def longer(number: int, minidaq: dict[str, Any]) -> None:
    """Each repetition took twice as long as the one before."""
    minidaq["latency_us"] = {
        key: value * 2**number if isinstance(value, float) else value for key, value in minidaq["latency_us"].items()
    }
    minidaq["latency_us"]["hdr"] = "HISTAAAA"


def test_every_repetition_has_its_curve(bundle_with: Maker) -> None:
    figure = figures(bundle_with(repetitions=4, telemetry=False), longer)[ECDF]
    assert [one.series for one in figure.data] == [f"repetition {number}" for number in range(1, 5)]
    assert "share one" not in figure.caption


def test_repetitions_that_would_lie_on_each_other_share_one_line_and_the_odd_one_is_named(bundle_with: Maker) -> None:
    figure = figures(bundle_with(repetitions=4, telemetry=False), odd)[ECDF]
    assert [one.series for one in figure.data] == ["repetitions 1, 3, 4", "repetition 2"]
    assert "within a line's width of each other all along share one" in figure.caption
    assert "repetition 2, end at" in figure.see and "Only percentiles are known" in figure.caption


@pytest.mark.parametrize(("longer_by", "lines"), [(1.0, 1), (1.08, 1), (1.2, 2)])
@pytest.mark.parametrize("percentiles", [(1.0, 50.0, 60.0, 90.0, 99.9999), (1.0, 49.0, 60.0, 90.0, 99.9999)])
def test_a_steep_curve_has_a_lines_width_aside_too(
    longer_by: float, lines: int, percentiles: tuple[float, ...]
) -> None:
    """A line's width upwards is 7 % here, of a range of three decades."""
    us = (1.0, 10.0, 300.0, 900.0, 1000.0)
    curves = (percentiles, us), ((1.0, 50.0, 60.0, 90.0, 99.9999), (1.0, 10.0, 300.0 * longer_by, 900.0, 1000.0))
    own = [
        Latencies(number, None, Curve(str(number), 1, shares, taken, True, None))
        for number, (shares, taken) in enumerate(curves, 1)
    ]
    assert len(_alike(own)) == lines


def test_of_very_many_those_with_the_highest_backlog_are_shown(bundle_with: Maker) -> None:
    found = figures(bundle_with(repetitions=MOST_PANELS + 2, telemetry=False), odd)
    panels = {one.panel for one in found[BACKLOGS].data}
    assert len(panels) == MOST_PANELS and any(panel.startswith("2: ") for panel in panels)
    assert f"highest backlog of {MOST_PANELS + 2} repetitions" in found[BACKLOGS].caption
    named = {one.series for one in found[ECDF].data if one.series}
    others = ", ".join(str(number) for number in range(1, MOST_PANELS + 3) if number != 2)
    assert named == {"repetition 2", f"repetitions {others}"}
