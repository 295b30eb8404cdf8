"""Long series: drawn in bounded numbers with every extreme; a file that is no spool is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_report.base.envelope import MAX_DRAWN_POINTS, thinned_together
from daq_bench.bench_report.reading.load import load

Maker = Callable[..., Path]


def test_an_unsound_spool_is_named_with_its_line(bundle_with: Maker) -> None:
    root = bundle_with()
    with (root / "telemetry/points.lp").open("a", encoding="utf-8") as file:
        file.write("cpu,core=0 user_fraction=half 1\n")
    line = (root / "telemetry/points.lp").read_text(encoding="utf-8").count("\n")
    with pytest.raises(BenchError, match=rf"telemetry/points\.lp:{line}: not line protocol"):
        load(root)


def test_rows_that_are_drawn_together_keep_the_extremes_of_each() -> None:
    rng = np.random.default_rng(3)
    times = np.arange(50_000.0)
    rows = [rng.random(times.size), rng.random(times.size)]
    rows[0][17], rows[1][31_415] = 5.0, -5.0
    kept, drawn = thinned_together(times, rows)
    assert len(kept) <= MAX_DRAWN_POINTS and all(len(row) == len(kept) for row in drawn)
    assert drawn[0][list(kept).index(17.0)] == 5.0 and drawn[1][list(kept).index(31_415.0)] == -5.0
    assert (kept[0], kept[-1]) == (0.0, 49_999.0)
    assert thinned_together(times[:10], [rows[0][:10]])[1][0] is not None
