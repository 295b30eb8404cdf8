"""Figures: labelled axes, masked points, honest thinning, and the same bytes every time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from filled import filled
from section_parts import texts

from daq_bench.bench_model.workloads.snb_record import SnbRecord
from daq_bench.bench_report.base.envelope import thinned
from daq_bench.bench_report.figures.blocks import block_figure
from daq_bench.bench_report.figures.host import host_figure
from daq_bench.bench_report.figures.record import record_figures
from daq_bench.bench_report.reading.dataset.record import series_of
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.workloads.latency_under_load.figures import curves_of, latency_figure, nines

Maker = Callable[..., Path]


def test_the_record_has_rate_and_backlog_on_one_time_axis(bundle_with: Maker) -> None:
    (figure,) = record_figures(load(bundle_with()))
    found = texts(figure.svg)
    assert {"GB/s", "MB", "time since the start of the record (s)", "offered", "stored", "BUSY"} <= found
    assert any(text.startswith("demanded 0.9243") for text in found)
    assert "Scaled down" in figure.caption and re.search(r"n = \d+ intervals", figure.caption)


def test_block_sizes_are_labelled_in_powers_of_two_with_both_reference_lines(bundle_with: Maker) -> None:
    figure = block_figure(load(bundle_with()))
    assert figure is not None
    found = texts(figure.svg)
    assert "throughput (GiB/s), logarithmic" in found and not any("GB/s" in text for text in found)
    assert any(text.startswith("real demand 8.608") for text in found)
    assert any("Micron X100 8.5" in text for text in found)
    assert any(text.startswith("plateau") for text in found)


def test_a_masked_point_is_not_drawn_but_named(bundle_with: Maker) -> None:
    whole, masked = (
        block_figure(load(bundle_with(masked=()))),
        block_figure(load(bundle_with(masked=(8192, 2**20)))),
    )
    assert whole is not None and masked is not None
    assert masked.svg.count("<use ") < whole.svg.count("<use ")
    assert "8\u202fKiB, 1\u202fMiB" in masked.caption and "Not drawn" not in whole.caption
    assert "n = 12 block sizes" in masked.caption


def test_a_reference_far_above_the_data_is_drawn_on_a_logarithmic_axis(bundle_with: Maker) -> None:
    root = bundle_with()
    scan = json.loads((root / "results/block_scan.json").read_text(encoding="utf-8"))
    for point in scan["points"]:
        point["throughput_bytes_per_s"] /= 50
        point["throughput_bytes_per_s_samples"] = [sample / 50 for sample in point["throughput_bytes_per_s_samples"]]
    for one in scan["large_blocks"]["repetitions"]:
        one["throughput_bytes_per_s"] /= 50
        one["throughput_bytes_per_s_samples"] = [sample / 50 for sample in one["throughput_bytes_per_s_samples"]]
    scan["plateau"] |= {"throughput_bytes_per_s": None, "from_block_bytes": None}
    (root / "results/block_scan.json").write_text(json.dumps(scan), encoding="utf-8")
    figure = block_figure(load(root))
    assert figure is not None
    assert "throughput (GiB/s), logarithmic" in texts(figure.svg)
    (demand,) = (one for one in figure.data if one.series.startswith("real demand"))
    assert demand.y == pytest.approx((8.608,), rel=1e-3)
    assert "has no plateau" in figure.caption


def test_the_latency_curve_is_the_decoded_distribution(bundle_with: Maker) -> None:
    bundle = load(bundle_with())
    minidaq = bundle.repetitions[0].minidaq
    curve = curves_of(minidaq)[0]
    assert curve.whole and curve.count == 20_000
    reported = minidaq.latency_us.points_us
    at_p99 = max(us for percentile, us in zip(curve.percentiles, curve.us, strict=True) if percentile <= 99.0)
    assert at_p99 == pytest.approx(reported[99.0], rel=0.01)


def test_without_a_sound_distribution_the_percentiles_serve(bundle_with: Maker) -> None:
    root = bundle_with()
    record = json.loads((root / "results/snb_record.json").read_text(encoding="utf-8"))
    record["repetitions"][0]["minidaq"]["latency_us"]["hdr"] = "HISTAA=="
    (root / "results/snb_record.json").write_text(json.dumps(record), encoding="utf-8")
    figure = latency_figure(load(root))
    assert figure is not None and "only 4 bytes" in figure.caption


def test_a_distribution_that_contradicts_the_percentiles_is_not_drawn(bundle_with: Maker) -> None:
    root = bundle_with()
    record = json.loads((root / "results/snb_record.json").read_text(encoding="utf-8"))
    record["repetitions"][0]["minidaq"]["latency_us"]["p99"] *= 3
    (root / "results/snb_record.json").write_text(json.dumps(record), encoding="utf-8")
    figure = latency_figure(load(root))
    assert figure is not None and "was not used" in figure.caption


def test_the_tail_of_one_repetition_names_its_own_losses(bundle_with: Maker) -> None:
    root = bundle_with(repetitions=2)
    record = json.loads((root / "results/snb_record.json").read_text(encoding="utf-8"))
    for one, lost, longest in zip(record["repetitions"], (20, 300), (1e6, 2e6), strict=True):
        one["minidaq"]["superchunks"]["lost"] = lost
        one["minidaq"]["latency_us"]["max"] = longest
    (root / "results/snb_record.json").write_text(json.dumps(record), encoding="utf-8")
    figure = latency_figure(load(root))
    assert figure is not None and "repetition 2" in figure.title and "300 superchunks were lost" in figure.caption


def test_each_nine_has_equal_room() -> None:
    assert [round(nines(percentile)) for percentile in (0, 90, 99, 99.9)] == [1, 10, 100, 1000]


def test_the_host_figure_says_when_there_is_no_temperature(bundle_with: Maker) -> None:
    figure = host_figure(load(bundle_with()))
    assert figure is not None
    assert "No temperature sensor reported." in figure.caption
    assert {"time since the start of the run (s)", "block scan", "record", "user", "steal"} <= texts(figure.svg)


def test_many_cpus_become_a_map(tmp_path: Path, bundle_with: Maker) -> None:
    figure = host_figure(load(bundle_with(cores=48, temperature=True)))
    assert figure is not None
    assert {"CPU number", "\u00b0C"} <= texts(figure.svg)
    assert "data:image/png" in figure.svg and "Highest temperature" in figure.caption


def test_figures_are_the_same_bytes_every_time(bundle_with: Maker) -> None:
    bundle = load(bundle_with())
    first, second = (record_figures(bundle)[0].svg, record_figures(bundle)[0].svg)
    assert first == second
    assert "<metadata" not in first and "<style" not in first


def test_thinning_keeps_every_extreme() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(0, 1, 100_000)
    values[51_234] = 40.0
    values[77_777] = -40.0
    times, kept = thinned(np.arange(values.size, dtype=np.float64), values, limit=1000)
    assert kept.size <= 1000 and (kept.max(), kept.min()) == (40.0, -40.0)
    assert times[int(np.argmax(kept))] == 51_234 and np.all(np.diff(times) > 0)
    assert set(kept) <= set(values)


RECORDED = Path(__file__).parent / "recorded"


def test_a_real_record_of_the_writer_is_drawn(bundle_with: Maker) -> None:
    """recorded/ holds what daqwriter wrote for `minidaq --duration 3 --scale 0.05` and its `verify`, unchanged."""
    root = bundle_with()
    repetition = {
        kind: json.loads((RECORDED / f"{kind}.json").read_text(encoding="utf-8")) for kind in ("minidaq", "verify")
    }
    (root / "results/snb_record.json").write_text(
        json.dumps(filled({"schema_version": 1, "repetitions": [repetition]}, SnbRecord)), encoding="utf-8"
    )
    (root / "telemetry/workload.lp").write_text(
        (RECORDED / "workload.lp").read_text(encoding="utf-8"), encoding="utf-8"
    )
    bundle = load(root)
    (figure,) = record_figures(bundle)
    minidaq = bundle.repetitions[0].minidaq
    assert [curve.whole for curve in curves_of(minidaq)] == [True, True]
    assert "never BUSY" in figure.caption
    assert "(10.29\u202fMB, 1.44\u202f% of the rings\u2019 713.0\u202fMB)" in figure.see
    assert np.mean(series_of(minidaq.series, 1).offered_bytes_per_s[:-1]) == pytest.approx(462.1e6, rel=0.01)
    assert bundle.live_series is not None
    assert np.mean(bundle.live_series.offered_bytes_per_s) == pytest.approx(462.1e6, rel=0.02)
