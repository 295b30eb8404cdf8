"""Heat maps: the numbers are read back unchanged, an empty cell is no number, and a bin is the mean of what lies in it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from daq_bench.bench_report.document.canvas import sheet
from daq_bench.bench_report.document.heat import in_bins


@pytest.mark.parametrize("logarithmic", [False, True])
def test_the_cells_are_read_back_as_they_were_drawn(logarithmic: bool) -> None:
    values = np.array([[1.0, math.nan, 3.0], [4.0, 5.0, 1e6]])
    with sheet("heat", 50) as (drawing, (axes,)):
        axes.heat(values, (0, 30, -0.5, 1.5), "ms", logarithmic=logarithmic)
    drawn = drawing.figure("", "", "a trial")
    (trace,) = drawn.data  # the colour bar is no data
    assert trace.kind == "grid" and (trace.x, trace.y) == ((0, 30), (-0.5, 1.5))
    assert np.array_equal(np.array(trace.grid), values, equal_nan=True)
    assert "data:image/png" in drawn.svg


def test_even_values_are_drawn_too() -> None:
    with sheet("heat", 50) as (drawing, (axes,)):
        axes.heat(np.ones((2, 2)), (0, 1, 0, 1), "B", logarithmic=True)
        axes.heat(np.zeros((2, 2)), (0, 1, 0, 1), "B")
    assert drawing.figure("", "", "a trial").svg


def test_a_bin_is_the_mean_of_its_samples_and_empty_without_any() -> None:
    edges = np.array([0.0, 1.0, 2.0, 3.0])
    found = in_bins([0.1, 0.9, 1.0, 2.5, 7.0, -1.0], [2.0, 4.0, 5.0, math.nan, 9.0, 9.0], edges)
    assert found[:2].tolist() == [3.0, 5.0] and math.isnan(found[2])
