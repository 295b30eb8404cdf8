"""Arrived and stored, summed up: their distance at the mark is the writer's own high-water mark, also between samples and with losses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.traces import Trace
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.workloads.snb_record.buffer import buffer_figure

Maker = Callable[..., Path]


def changed(root: Path, change: Callable[[dict[str, Any]], None]) -> Figure | None:
    file = root / "results/snb_record.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    change(document["repetitions"][0]["minidaq"])
    file.write_text(json.dumps(document), encoding="utf-8")
    return buffer_figure(load(root))


def trace(figure: Figure, series: str) -> Trace:
    (found,) = (one for one in figure.data if one.series == series and one.kind == "line")
    return found


def distance(figure: Figure, at_s: float) -> float:
    arrived, stored = trace(figure, "arrived"), trace(figure, "stored")
    place = arrived.x.index(at_s)
    factor = 1e9 if "(GB)" in arrived.y_label else 1e6
    return (arrived.y[place] - stored.y[place]) * factor


def test_the_distance_of_the_curves_is_the_backlog_at_every_sample(bundle_with: Maker) -> None:
    root = bundle_with(telemetry=False)
    figure = buffer_figure(load(root))
    assert figure is not None
    minidaq = json.loads((root / "results/snb_record.json").read_text(encoding="utf-8"))["repetitions"][0]["minidaq"]
    held = dict(zip(minidaq["series"]["t_s"], minidaq["series"]["backlog_bytes"], strict=True))
    times = [one for one in trace(figure, "stored").x if one > 0]
    assert [distance(figure, one) for one in times] == pytest.approx([held[one] for one in times], abs=1e4)
    assert len(times) < len(held)  # only the stretch around the mark
    rising = np.diff(trace(figure, "stored").y)
    assert (rising >= -1e-9).all()


def test_the_mark_lies_on_both_curves_though_no_sample_saw_it(bundle_with: Maker) -> None:
    def mark(minidaq: dict[str, Any]) -> None:
        minidaq["backlog"] |= {"high_water_bytes": 669_000_000, "high_water_s": 8.04321}

    figure = changed(bundle_with(telemetry=False), mark)
    assert figure is not None
    assert distance(figure, 8.04321) == pytest.approx(669e6)
    assert "8.04\u202fs after the start: 669" in figure.see and "of the rings" not in figure.see
    upright = trace(figure, "high-water mark")
    assert upright.x == (8.04321, 8.04321)


def test_what_was_lost_is_no_buffer(bundle_with: Maker) -> None:
    figure = buffer_figure(load(bundle_with(outcome="FAIL", telemetry=False)))
    assert figure is not None and "Lost here: 6.871\u202fMB" in figure.caption
    offered, arrived = trace(figure, "offered, with what was lost"), trace(figure, "arrived")
    factor = 1e9 if "(GB)" in arrived.y_label else 1e6
    assert (offered.y[-1] - arrived.y[-1]) * factor == pytest.approx(1234 * 5568, rel=1e-3)


def no_mark(minidaq: dict[str, Any]) -> None:
    minidaq["backlog"]["high_water_bytes"] = 0


def no_series(minidaq: dict[str, Any]) -> None:
    minidaq["series"] |= {
        key: minidaq["series"][key][:3] for key in ("t_s", "offered_bytes", "stored_bytes", "backlog_bytes")
    }


@pytest.mark.parametrize("change", [no_mark, no_series])
def test_without_a_backlog_or_a_series_there_is_no_figure(
    bundle_with: Maker, change: Callable[[dict[str, Any]], None]
) -> None:
    assert changed(bundle_with(telemetry=False), change) is None


@pytest.mark.parametrize("at_s", [0.0, -1.0, 1e9])
def test_a_mark_at_the_end_or_beyond_is_drawn_at_the_end(bundle_with: Maker, at_s: float) -> None:
    figure = changed(bundle_with(telemetry=False), lambda minidaq: minidaq["backlog"].update(high_water_s=at_s))
    assert figure is not None
    times = trace(figure, "stored").x
    assert list(times) == sorted(times) and "high-water" in str([one.series for one in figure.data])
