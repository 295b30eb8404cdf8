"""The plotted numbers are the bundle's, they are those that are attached, and no series is told apart by colour alone."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_report.base.units import GB, GIB
from daq_bench.bench_report.document.attachments import FIGURES_CSV, REQUIREMENTS, document_attachments
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.document import Laid, lay_out
from daq_bench.bench_report.document.report_data import document_data
from daq_bench.bench_report.document.traces import Trace
from daq_bench.bench_report.figures.blocks import block_figure
from daq_bench.bench_report.figures.host import host_figure
from daq_bench.bench_report.figures.record import record_figures
from daq_bench.bench_report.qualification.render import document_of
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.workloads.latency_under_load.figures import latency_figure, nines

Maker = Callable[..., Path]


def trace(figure: Figure | None, series: str) -> Trace:
    assert figure is not None
    (found,) = (one for one in figure.data if one.series.startswith(series))
    return found


def test_the_record_is_drawn_as_it_was_recorded(bundle_with: Maker) -> None:
    root = bundle_with()
    series = json.loads((root / "results/snb_record.json").read_text())["repetitions"][0]["minidaq"]["series"]
    (figure,) = record_figures(load(root))
    for name in ("offered", "stored"):
        drawn = trace(figure, name)
        assert drawn.x == pytest.approx(series["t_s"])
        assert drawn.y == pytest.approx([size / 0.1 / GB for size in series[f"{name}_bytes"]], rel=1e-6)
        assert (drawn.x_label, drawn.y_label) == ("time since the start of the record (s)", "GB/s")
    assert trace(figure, "backlog").y == pytest.approx([size / 1e6 for size in series["backlog_bytes"]])
    assert trace(figure, "demanded").y == pytest.approx([0.924288])


def test_the_scan_is_drawn_as_it_was_measured_and_masked_points_are_holes(bundle_with: Maker) -> None:
    root = bundle_with(masked=(8192,))
    points = json.loads((root / "results/block_scan.json").read_text())["points"]
    figure = block_figure(load(root))
    mean = trace(figure, "mean")
    assert mean.x == tuple(point["block_bytes"] for point in points)
    for value, point in zip(mean.y, points, strict=True):
        assert math.isnan(value) != point["admissible"]
        assert math.isnan(value) or value == pytest.approx(point["throughput_bytes_per_s"] / GIB)
    spread = trace(figure, "lowest to highest")
    counted = [point["throughput_bytes_per_s_samples"] for point in points if point["admissible"]]
    assert spread.low == pytest.approx([min(samples) / GIB for samples in counted])
    assert spread.high == pytest.approx([max(samples) / GIB for samples in counted])


def test_latencies_without_a_distribution_are_the_percentiles_reported(bundle_with: Maker) -> None:
    root = bundle_with(hdr=False)
    found = json.loads((root / "results/snb_record.json").read_text())["repetitions"][0]["minidaq"]["latency_us"]
    drawn = trace(latency_figure(load(root)), "arrival to durable")
    shares = (50.0, 90.0, 99.0, 99.9, 99.99)
    assert drawn.x == pytest.approx([nines(share) for share in shares])
    assert drawn.y == pytest.approx([found["p" + f"{share:g}".replace(".", "_")] for share in shares])
    assert drawn.y_label == "latency (us)"


def test_the_drives_rate_is_the_kernels_counter(bundle_with: Maker) -> None:
    bundle = load(bundle_with(temperature=True))
    assert bundle.host is not None
    ((name, (times, rates)),) = bundle.host.disk_write_bytes_per_s.items()
    drawn = trace(host_figure(bundle), name)
    assert drawn.x == pytest.approx(times) and drawn.y == pytest.approx([rate / GB for rate in rates])


def laid_of(root: Path) -> tuple[Laid, dict[str, bytes], list[dict[str, Any]]]:
    """Returns the document, the PDF's attachments, and the figures and tables of report-data.json."""
    document = document_of(load(root))
    laid = lay_out(document)
    data = document_data(document, laid, {}, {})
    parts = [*data["front_tables"], *(part for section in data["sections"] for part in section["parts"])]
    return laid, document_attachments(laid), parts


def test_what_is_attached_is_what_is_drawn(bundle_with: Maker) -> None:
    laid, attached, parts = laid_of(bundle_with(cores=96, temperature=True))
    figures = [{"label": one["label"], **one["content"]} for one in parts if one["kind"] == "figure"]
    assert [one["label"] for one in figures] == [one.label for one in laid.figures] and len(figures) >= 4
    rows = list(csv.DictReader(io.StringIO(attached[FIGURES_CSV].decode())))
    for placed, data in zip(laid.figures, figures, strict=True):
        assert isinstance(placed.part, Figure)
        assert len(data["traces"]) == len(placed.part.data)
        for drawn, kept in zip(placed.part.data, data["traces"], strict=True):
            assert kept.get("y", []) == [value if math.isfinite(value) else None for value in drawn.y]
        lines = [one for one in placed.part.data if one.kind == "line" and one.series]
        for drawn in lines:
            own = [
                row
                for row in rows
                if (row["figure"], row["panel"], row["series"]) == (placed.label, drawn.panel, drawn.series)
            ]
            assert [row["y"] for row in own if row["kind"] == "line"] == [
                repr(y) if math.isfinite(y) else "" for y in drawn.y
            ]
    assert any(trace.get("grid") for one in figures for trace in one["traces"])  # the map of the CPUs


def test_the_requirement_table_is_attached_as_it_is_printed(bundle_with: Maker) -> None:
    _, attached, parts = laid_of(bundle_with())
    rows = list(csv.reader(io.StringIO(attached[REQUIREMENTS].decode())))
    (table,) = (one["content"] for one in parts if one["kind"] == "table" and one["content"]["name"] == "requirements")
    assert rows[0] == table["heads"] and len(rows) == 10
    assert rows[1:] == [[cell.replace("\n", "; ") for cell in row] for row in table["rows"]]


def test_series_of_a_panel_differ_in_more_than_colour(bundle_with: Maker) -> None:
    laid, _, _ = laid_of(bundle_with(cores=4, temperature=True, repetitions=3))
    for placed in laid.figures:
        assert isinstance(placed.part, Figure)
        looks = Counter(
            (one.panel, one.kind, one.look)
            for one in placed.part.data
            if one.series and one.kind in ("line", "band", "bars", "level") and one.look
        )
        assert max(looks.values(), default=1) == 1, (placed.label, looks)


def test_every_figure_says_what_to_see(bundle_with: Maker) -> None:
    laid, _, _ = laid_of(bundle_with(cores=4, temperature=True))
    for placed in laid.figures:
        assert (
            isinstance(placed.part, Figure) and re.search(r"\d", placed.part.see) and placed.part.see.endswith(".")
        ), placed.label


def test_points_of_the_html_show_their_numbers(bundle_with: Maker) -> None:
    figure = block_figure(load(bundle_with()))
    assert figure is not None
    mean = trace(figure, "mean")
    titles = re.findall(r"<circle [^>]*><title>(.*?)</title>", figure.svg, flags=re.DOTALL)
    assert any(title.startswith("mean") and f"{mean.y_label}: {mean.y[-1]:.4g}" in title for title in titles)
