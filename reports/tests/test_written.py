"""A purchase run shows more than the paper's figures: rate against bytes written, and power beside rate and temperature."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from daq_bench.bench_report.figures.host import host_figure
from daq_bench.bench_report.figures.written import written_figure, written_of
from daq_bench.bench_report.reading.load import load

Maker = Callable[..., Path]


def scan_with(root: Path, samples: list[list[float]], masked: int | None = None) -> Path:
    """The bundle whose scan repeated its largest block with these samples, B/s; repetition `masked` does not count."""
    file = root / "results" / "block_scan.json"
    scan = json.loads(file.read_text())
    repeated = scan["large_blocks"]["repetitions"][0] | {"block_bytes": 8 * 2**20}
    scan["large_blocks"]["repetitions"] = [
        repeated | {
            "repetition": number, "throughput_bytes_per_s_samples": one, "admissible": number != masked,
            "throughput_bytes_per_s": None if number == masked else sum(one) / len(one),
            "reason": "the tool was killed" if number == masked else None,
        }
        for number, one in enumerate(samples, 1)
    ]  # fmt: skip
    scan["sample_s"] = 2.0
    file.write_text(json.dumps(scan))
    return root


def test_the_rate_is_drawn_against_all_bytes_written_before(bundle_with: Maker) -> None:
    bundle = load(scan_with(bundle_with(), [[4e9] * 10, [3e9] * 10, [1e9] * 5], masked=3))
    assert bundle.block_scan is not None
    series, ends, block = written_of(bundle.block_scan)
    assert (series[0], series[-1], ends, block) == ((8e9, 4e9), (140e9, 3e9), [80e9, 140e9], 8 * 2**20)
    figure = written_figure(bundle)
    assert (
        figure is not None
        and "2 repetitions" in figure.caption
        and "n = 20 samples of 2 s" in figure.caption.replace("\u202f", " ")
    )
    assert "25 % below the first (4 GB/s)" in figure.see.replace("\u202f", " ")
    line = next(one for one in figure.data if one.series == "each sample")
    assert line.x[-1] == pytest.approx(140.0) and line.y[-1] == pytest.approx(3.0)


def test_without_a_repetition_that_counts_there_is_no_such_figure(bundle_with: Maker) -> None:
    assert written_figure(load(scan_with(bundle_with(), [[4e9] * 10], masked=1))) is None


def test_the_bmcs_power_stands_below_the_temperature_and_a_hole_breaks_it(bundle_with: Maker) -> None:
    root = bundle_with(temperature=True)
    assert "by its BMC" not in str([one.panel for one in host_figure(load(root)).data])  # type: ignore[union-attr]
    spool = root / "telemetry" / "points.lp"
    at = int(spool.read_text().splitlines()[0].rpartition(" ")[2])
    told = ("power_w=300", "power_w=420", "unread=1i", "power_w=410")
    lines = [f"ipmi_power,host=x {one} {at + number * 1_000_000_000}" for number, one in enumerate(told)]
    spool.write_text(spool.read_text() + "\n".join(lines) + "\n")
    bundle = load(root)
    assert bundle.host is not None
    times, watts = bundle.host.power_w["server"]
    assert [None if value != value else value for value in watts] == [300.0, 420.0, None, 410.0]
    assert times[-1] - times[0] == pytest.approx(3.0)
    figure = host_figure(bundle)
    assert figure is not None and "Power 300 to 420 W." in figure.caption
    assert any(one.panel == "Power of the whole server, by its BMC" for one in figure.data)
