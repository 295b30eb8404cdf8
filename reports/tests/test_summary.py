"""What reports on several runs read of each: bounded, and no extreme of any sample is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bench_report.envelope import MAX_DRAWN_POINTS, thinned_together
from bench_report.errors import BundleError
from bench_report.summary import load_summaries, load_summary

Maker = Callable[..., Path]
START_NS = 1_773_453_600_000_000_000  # factory_knobs.START


def long_spool(root: Path, samples: int = 20_000) -> None:
    """Out of order, with one spike and one hole that last for a single sample."""
    values = [40.0 + (index % 7) / 10 for index in range(samples)]
    values[12_345], values[777] = 93.25, -5.5
    times = [START_NS + index * 10**8 for index in range(samples)]
    order = [*range(100, samples), *range(100)]
    lines = [f"temperature,device=nvme0n1,label=Composite temperature_degc={values[i]} {times[i]}" for i in order]
    (root / "telemetry/points.lp").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_an_envelope_keeps_every_extreme_and_the_statistics_of_all(bundle_with: Maker) -> None:
    root = bundle_with()
    long_spool(root)
    found = load_summary(root)
    (heat,) = found.of("temperature", "temperature_degc").values()
    assert (heat.n, heat.low, heat.high) == (20_000, -5.5, 93.25)
    assert heat.mean == pytest.approx(40.3, abs=0.01)
    assert len(heat.values) <= MAX_DRAWN_POINTS
    assert {-5.5, 93.25} <= set(heat.values) and all(heat.t_s[1:] > heat.t_s[:-1])
    assert heat.t_s[list(heat.values).index(93.25)] == pytest.approx(1234.5)
    assert (found.points, found.run.run_id) == (20_000, "run-1")
    assert found.verdict is not None and found.verdict.outcome == "INADMISSIBLE"


def test_several_bundles_come_in_their_order(bundle_with: Maker) -> None:
    root = bundle_with()
    assert [one.root for one in load_summaries([root, root, root])] == [root] * 3


def test_a_bundle_without_telemetry_has_no_envelope(bundle_with: Maker) -> None:
    found = load_summary(bundle_with(telemetry=False))
    assert (found.points, dict(found.envelopes)) == (0, {})


@pytest.mark.parametrize("together", [1, 2])
def test_an_unsound_spool_is_named_with_its_line(bundle_with: Maker, together: int) -> None:
    root = bundle_with()
    with (root / "telemetry/points.lp").open("a", encoding="utf-8") as file:
        file.write("cpu,core=0 user_fraction=half 1\n")
    line = (root / "telemetry/points.lp").read_text(encoding="utf-8").count("\n")
    with pytest.raises(BundleError, match=rf"telemetry/points\.lp: line {line}: not line protocol"):
        list(load_summaries([root] * together))


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
