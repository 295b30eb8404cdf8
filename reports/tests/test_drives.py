"""All drives of a set as heat maps: a slow, a waiting and a hot one are named among 64, and none where there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from factory_knobs import ns

from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.figures.drives import drives_figure
from daq_bench.bench_report.reading.load import load

Maker = Callable[..., Path]
Change = Callable[[int, int, list[float]], list[float] | None]  # drive, second, [rate, latency, degrees]
SECONDS = 80


def unchanged(drive: int, second: int, values: list[float]) -> list[float] | None:
    return values


def watched(root: Path, drives: int, change: Change = unchanged, fields: str = "rlt") -> Figure | None:
    """Writes telemetry of the set: `fields` of rate, latency and temperature; `change` may alter a reading, or drop it."""
    rng, lines = np.random.default_rng(3), []
    for second in range(1, SECONDS):
        for drive in range(drives):
            busy = 1.0 if 5 < second < 70 else 0.001
            given = [2e9 * busy * float(rng.normal(1, 0.02)), 1e-3, 40 + 0.1 * second]
            found = change(drive, second, given)
            if found is None:
                continue
            own = [f"written_bytes_per_s={found[0]}"] * ("r" in fields) + [f"write_latency_s={found[1]}"] * (
                "l" in fields
            )
            if own:
                lines.append(f"block_device,device=nvme{drive}n1 {','.join(own)} {ns(second)}")
            if "t" in fields:
                lines.append(
                    f"temperature,chip=nvme,device=nvme{drive}n1,sensor=x,label=Composite temperature_degc={found[2]} {ns(second)}"
                )
    (root / "telemetry/points.lp").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return drives_figure(load(root))


def odd_ones(drive: int, second: int, values: list[float]) -> list[float] | None:
    rate, wait, degrees = values
    return [rate * (0.7 if drive == 17 else 1), wait * (3 if drive == 41 else 1), degrees + (12 if drive == 5 else 0)]


def test_a_drive_30_percent_slow_is_named_among_64(bundle_with: Maker) -> None:
    figure = watched(bundle_with(drives=64, repetitions=1), 64, odd_ones)
    assert figure is not None
    assert "Slowest: nvme17n1, 30" in figure.see
    assert "longest writes: nvme41n1, 3.00\u202fms where the median drive takes 1.00\u202fms" in figure.see
    assert "hottest: nvme5n1, 59.9\u202f\u00b0C, 12.0\u202fK above" in figure.see
    rate, wait, heat = figure.data
    assert [len(one.grid) for one in (rate, wait, heat)] == [64, 64, 64]
    row = np.array(rate.grid)
    assert row[17].max() < 0.75 * row[16].max()
    assert [name for _, name in rate.y_names] == ["nvme5n1", "nvme17n1", "nvme41n1"]  # others have no room


def test_drives_that_are_alike_are_called_so(bundle_with: Maker) -> None:
    figure = watched(bundle_with(drives=3), 3)
    assert figure is not None and figure.see.startswith("No drive is more than 3")
    assert "longest writes" not in figure.see
    assert [name for _, name in figure.data[0].y_names] == ["nvme0n1", "nvme1n1", "nvme2n1"]


def test_a_drive_that_vanishes_leaves_its_row_empty_and_is_not_called_the_slowest(bundle_with: Maker) -> None:
    def gone(drive: int, second: int, values: list[float]) -> list[float] | None:
        return None if drive == 1 and second > 40 else odd_ones(17 if drive == 2 else drive, second, values)

    figure = watched(bundle_with(drives=3), 3, gone)
    assert figure is not None and "Slowest: nvme2n1" in figure.see
    assert np.isnan(np.array(figure.data[0].grid)[1, -1])


@pytest.mark.parametrize(("drives", "fields"), [(1, "rlt"), (3, "t"), (3, "l")])
def test_nothing_is_drawn_without_rates_of_several_drives(bundle_with: Maker, drives: int, fields: str) -> None:
    assert watched(bundle_with(drives=drives), drives, fields=fields) is None


def test_only_what_was_read_is_drawn(bundle_with: Maker) -> None:
    figure = watched(bundle_with(drives=3), 3, fields="r")
    assert figure is not None and len(figure.data) == 1 and "hottest" not in figure.see


def test_a_set_that_was_never_at_work_is_not_compared(bundle_with: Maker) -> None:
    figure = watched(bundle_with(drives=3), 3, lambda *given: [0.0, *given[2][1:]])
    assert figure is not None and "cannot be compared" in figure.see


def test_an_array_and_other_disks_are_no_drives_of_the_set(bundle_with: Maker) -> None:
    root = bundle_with(drives=3)
    figure = watched(root, 5)
    assert figure is not None and len(figure.data[0].grid) == 3
