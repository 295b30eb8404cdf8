"""Rate against temperature: a fall is found where heat costs speed, in shares of each drive's own rate, and nothing where it does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from test_drives import watched

from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.figures.heat_and_rate import heat_and_rate_figure
from daq_bench.bench_report.reading.load import load

Maker = Callable[..., Path]


def drawn(
    root: Path, change: Callable[[int, int, list[float]], list[float]], workload: str = "thermal"
) -> Figure | None:
    run = json.loads((root / "run.json").read_text(encoding="utf-8"))
    run["scenario"]["parameters"]["workloads"][workload] = {}
    (root / "run.json").write_text(json.dumps(run), encoding="utf-8")
    watched(root, 3, change)
    return heat_and_rate_figure(load(root))


def throttling(drive: int, second: int, values: list[float]) -> list[float]:
    """Warms up, loses 40 % from 60 degrees on; one drive is slower than the others from the beginning."""
    degrees = 40 + 0.5 * second
    slow = (0.6 if degrees > 60 else 1.0) * (0.7 if drive == 1 else 1.0)
    return [values[0] * slow, values[1], degrees]


def test_throttling_is_seen_with_its_temperature(bundle_with: Maker) -> None:
    figure = drawn(bundle_with(drives=3), throttling)
    assert figure is not None
    assert "Warm drives write 4" in figure.see or "Warm drives write 3" in figure.see
    assert "from 60\u202f\u00b0C on it stays lower" in figure.see or "from 61\u202f\u00b0C on" in figure.see
    median = next(one for one in figure.data if one.series == "median at each degree")
    cool = [y for x, y in zip(median.x, median.y, strict=True) if x < 59 and not np.isnan(y)]
    assert min(cool) > 90  # the slower drive does not pull it down: shares are of its own rate
    grid = next(one for one in figure.data if one.kind == "grid")
    assert np.nansum(np.array(grid.grid)) > 100


def test_warmth_without_a_fall_is_called_so(bundle_with: Maker) -> None:
    figure = drawn(bundle_with(drives=3), lambda drive, second, values: [*values[:2], 40 + 0.5 * second])
    assert figure is not None and figure.see.startswith("No fall of the rate with the temperature")


@pytest.mark.parametrize("workload", ["thread_scan", "lan"])
def test_a_load_that_asks_for_its_own_rate_says_nothing(bundle_with: Maker, workload: str) -> None:
    assert drawn(bundle_with(drives=3), throttling, workload) is None


def test_an_even_temperature_says_nothing(bundle_with: Maker) -> None:
    assert drawn(bundle_with(drives=3), lambda drive, second, values: [*values[:2], 40.0]) is None


def test_drives_without_a_sensor_say_nothing(bundle_with: Maker) -> None:
    root = bundle_with(drives=3)
    drawn(root, throttling)
    spool = root / "telemetry/points.lp"
    kept = [line for line in spool.read_text(encoding="utf-8").splitlines() if not line.startswith("temperature")]
    spool.write_text("\n".join(kept) + "\n", encoding="utf-8")
    assert heat_and_rate_figure(load(root)) is None
