"""The scans' sections: masked points are not drawn, published figures are never drawn as measurements, units are named."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filled import filled
from section_parts import texts

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.evidence.schemas import TYPES
from daq_bench.bench_report.base.units import NONE
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.section import Lacking, Section
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.figures.blocks import block_figure
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.tables.measured import large_blocks_table
from daq_bench.bench_report.tables.raw import large_blocks_raw_table
from daq_bench.bench_report.workloads import minidaq_scan, thread_scan
from daq_bench.bench_report.workloads.latency_under_load import section as latency_under_load
from daq_bench.simulation.tools.hdr_writer import encode

Maker = Callable[..., Path]
GIB, KIB, MIB = 2**30, 2**10, 2**20


def figures(section: Section | None) -> list[Figure]:
    assert section is not None
    return [part for part in section.parts if isinstance(part, Figure)]


def table(section: Section | None) -> Table:
    assert section is not None
    return next(part for part in section.parts if isinstance(part, Table))


def written(root: Path, name: str, document: dict[str, Any]) -> Path:
    (root / "results" / f"{name}.json").write_text(
        json.dumps(filled(document, TYPES[f"results/{name}.json"])), encoding="utf-8"
    )
    return root


def threads_document(masked: bool = False, rate: float = 4.0 * GIB) -> dict[str, Any]:
    points = [
        {
            "threads": threads, "block_bytes": size, "throughput_bytes_per_s": rate * (1 + threads / 10) / 2,
            "throughput_bytes_per_s_samples": [rate * 0.4, rate * 0.9], "admissible": not (masked and threads == 10),
            "reason": "ran for 1.00 s of 3 s" if masked and threads == 10 else None,
        }
        for size in (32 * KIB, 4 * MIB) for threads in (1, 5, 10)
    ]  # fmt: skip
    scan = {
        "tool": "fio", "condition": "overwrite", "points": points,
        "series": [{"block_bytes": size, "plateau": None} for size in (32 * KIB, 4 * MIB)],
        "plateau": {"throughput_bytes_per_s": None, "rule": "The rule"},
        "ratio": {"block_bytes": 32 * KIB, "threads": [1, 10], "value": None if masked else 1.82},
        "system_cpu": {"block_bytes": 4 * MIB, "highest_fraction": 0.12}, "saturating_block_bytes": 4 * MIB, "reasons": {},
    }  # fmt: skip
    return {"schema_version": 1, "io_depth": 1, "sample_s": 0.25, "scans": [scan], "reasons": {}}


def test_threads_have_a_series_for_each_block_size(bundle_with: Maker) -> None:
    section = thread_scan.section(load(written(bundle_with(), "thread_scan", threads_document())))
    (figure,) = figures(section)
    assert {"32\u202fKiB", "4\u202fMiB", "threads", "throughput (GiB/s)"} <= texts(figure.svg)
    assert any(text.startswith("published: Micron X100 8.5") for text in texts(figure.svg))
    assert "n = 6 points, each with 2 samples" in figure.caption
    assert section is not None and "1.82 times as fast as 1" in str(section.parts[0])
    assert "Published, not measured here: Micron X100 4 times" in str(section.parts[0])


def test_masked_threads_are_named_and_not_drawn(bundle_with: Maker) -> None:
    root = bundle_with()
    (whole,) = figures(thread_scan.section(load(written(root, "thread_scan", threads_document()))))
    section = thread_scan.section(load(written(root, "thread_scan", threads_document(masked=True))))
    (masked,) = figures(section)
    assert masked.svg.count("<use ") < whole.svg.count("<use ")
    assert "10 \u00d7 32\u202fKiB, 10 \u00d7 4\u202fMiB" in masked.caption
    assert "10: ran for 1.00 s of 3 s" in table(section).rows[0][-1]
    assert section is not None and "was not measured" in str(section.parts[0])


def test_a_published_rate_far_above_the_data_is_drawn_on_a_logarithmic_axis(bundle_with: Maker) -> None:
    (figure,) = figures(
        thread_scan.section(load(written(bundle_with(), "thread_scan", threads_document(rate=0.5 * GIB))))
    )
    assert any(text.startswith("published: Micron X100 8.5") for text in texts(figure.svg))
    assert "throughput (GiB/s), logarithmic" in texts(figure.svg)


def minidaq_document(masked: int | None = None, factors: tuple[float, ...] = (1.0,)) -> dict[str, Any]:
    """`factors`: on the rates of each repetition, in the last of which `masked` is."""
    points = []
    grid = [
        (number, size, factor * rate)
        for number, factor in enumerate(factors, start=1)
        for size, rate in ((4 * MIB, 4.0 * GIB), (16 * MIB, 7.0 * GIB), (32 * MIB, 7.1 * GIB))
    ]
    for number, size, rate in grid:
        counts = size != masked or number < len(factors)
        points.append({
            "repetition": number, "asked_request_bytes": size,
            "throughput_bytes_per_s": rate, "throughput_bytes_per_s_samples": [rate * 0.9, rate],
            "synthetic": {"throughput_bytes_per_s": rate * 1.02, "throughput_bytes_per_s_samples": [rate]},
            "limited_by": "inhibit" if counts else "source", "inhibits": 0, "copy_share": 0.11,
            "ratio_to_synthetic": 0.98 if counts else None,
            "runs": [{"trigger_rate_hz": 200.0}], "admissible": counts, "reason": None if counts else "the source was slow",
        })  # fmt: skip
    plateau = {
        "from_request_bytes": 16 * MIB, "throughput_bytes_per_s": 7.05 * GIB, "ratio_to_synthetic": 0.98, "copy_share": 0.11,
        "rule": "The rule",
    }  # fmt: skip
    return {
        "schema_version": 1, "applications": 2, "links": 5, "synthetic_threads": 2, "demand_bytes_per_s": 9.24288e9,
        "seconds_per_point": 10, "condition": "new files", "points": points, "plateau": plateau, "inhibits": 0, "reasons": {},
    }  # fmt: skip


def test_the_minidaq_is_drawn_beside_synthetic_writes(bundle_with: Maker) -> None:
    section = minidaq_scan.section(load(written(bundle_with(), "minidaq_scan", minidaq_document())))
    (figure,) = figures(section)
    found = texts(figure.svg)
    assert {"2 \u00d7 MiniDAQ", "synthetic, 2 threads", "throughput (GiB/s)"} <= found
    assert any(text.startswith("plateau 7.05") for text in found)
    assert any(text.startswith("all that the links deliver 8.608") for text in found)
    assert "Published, not measured here: Micron X100 about 8.5 GiB/s" in figure.caption
    assert table(section).rows[0][4] == "inhibit"


def test_repetitions_of_the_minidaq_are_drawn_by_their_median(bundle_with: Maker) -> None:
    root = bundle_with()
    once = minidaq_scan.section(load(written(root, "minidaq_scan", minidaq_document())))
    (single,) = figures(once)
    section = minidaq_scan.section(
        load(written(root, "minidaq_scan", minidaq_document(16 * MIB, factors=(1.1, 0.5, 1.0, 1.02))))
    )
    (figure,) = figures(section)
    assert figure.svg.count("<use ") == single.svg.count(
        "<use "
    )  # one point for each size, however often it was measured
    assert "medians of 3 to 4 repetitions" in figure.caption and "repetitions" not in single.caption
    assert "does not count as evidence: 16\u202fMiB (repetition 4) (" in figure.caption
    assert "At 32\u202fMiB, the largest size drawn, the MiniDAQ stores 7.17" in figure.see  # 7.1 x the median of 1.01
    assert [row[1] for row in table(section).rows] == ["1"] * 3 + ["2"] * 3 + ["3"] * 3 + ["4"] * 3
    assert table(section).marked == frozenset({10})


def test_a_rate_that_only_the_source_limited_is_masked(bundle_with: Maker) -> None:
    section = minidaq_scan.section(load(written(bundle_with(), "minidaq_scan", minidaq_document(masked=4 * MIB))))
    (figure,) = figures(section)
    assert "Not drawn, since the point does not count as evidence: 4\u202fMiB" in figure.caption
    assert table(section).marked == frozenset({0})
    assert table(section).rows[0][-1] == "not drawn: the source was slow"


def latency_document(lost: int = 0, hdr: str | None = None) -> dict[str, Any]:
    points = []
    for gb, base in ((1.0, 2000), (2.0, 2500), (3.0, 9000)):
        values = [int(1000 * base * (1 + index / 1000)) for index in range(2000)]
        gone = lost if gb == 3.0 else 0
        points.append({
            "load_factor": gb, "asked_bytes_per_s": gb * 1e9, "stored_bytes_per_s": gb * 1e9, "offered": 2000 + gone, "stored": 2000,
            "lost": gone, "busy_count": int(gone > 0), "worst_lateness_us": 300.0, "admissible": True, "reason": None,
            "percentiles": [
                {"percentile": 50.0, "us": base * 2.0, "reason": None},
                {"percentile": 99.0, "us": None if gone else base * 2.98, "reason": "lost" if gone else None},
                {"percentile": 99.999, "us": None, "reason": "too few"},
            ],
            "latency_us": {"count": 2000, "p50": base * 2.0, "hdr_unit": "ns", "hdr": hdr or encode(Counter(values))},
        })  # fmt: skip
    knee = {"sustained_bytes_per_s": 2e9, "knee_bytes_per_s": 3e9, "why": "the tail rose", "rule": "The knee rule"}
    return {
        "schema_version": 1, "links": 10, "scale": 0.1, "seconds_per_point": 2, "points": points, "knee": knee,
        "percentile_rule": "The percentile rule", "at_demand": {}, "reasons": {},
    }  # fmt: skip


def test_percentiles_stand_against_offered_rate_with_the_knee(bundle_with: Maker) -> None:
    section = latency_under_load.section(load(written(bundle_with(), "latency_under_load", latency_document())))
    curve, spectrum = figures(section)
    found = texts(curve.svg)
    assert {"p50", "p99", "offered rate (GB/s)", "knee 3\u202fGB/s"} <= found
    assert "p99.999" not in found  # no value anywhere: no line and no legend
    assert "superchunks lost" not in found
    assert "intended arrival" in curve.caption and "Scaled down" in curve.caption
    assert {"1\u202fGB/s offered", "2\u202fGB/s offered", "3\u202fGB/s offered"} <= texts(spectrum.svg)
    assert table(section).rows[0][7] == "\u2013"


def test_a_rate_that_lost_superchunks_has_a_cross_and_no_tail(bundle_with: Maker) -> None:
    section = latency_under_load.section(load(written(bundle_with(), "latency_under_load", latency_document(lost=100))))
    curve, _ = figures(section)
    assert "superchunks lost" in texts(curve.svg)
    assert "A rate with a cross lost superchunks" in curve.caption
    assert table(section).rows[2][4] == "\u2013"


def test_a_damaged_histogram_is_an_error_that_names_it(bundle_with: Maker) -> None:
    root = written(bundle_with(), "latency_under_load", latency_document(hdr="SElTVA=="))
    with pytest.raises(BenchError, match=r"latency_under_load\.json: points\[0\]\.latency_us"):
        latency_under_load.section(load(root))


def test_where_nothing_counts_the_section_says_so(bundle_with: Maker) -> None:
    document = latency_document()
    for point in document["points"]:
        point.update(admissible=False, reason="the source offered only 50 %")
    section = latency_under_load.section(load(written(bundle_with(), "latency_under_load", document)))
    assert figures(section) == []
    assert section is not None and any(isinstance(part, Lacking) for part in section.parts)


def test_the_block_scan_shows_both_tools(bundle_with: Maker) -> None:
    root = bundle_with()
    file = root / "results" / "block_scan.json"
    scan = json.loads(file.read_text(encoding="utf-8"))
    other = json.loads(json.dumps(scan)) | {"tool": "daqwriter"}
    other["points"][2].update(admissible=False, reason="ran for 1.00 s of 3 s")
    file.write_text(json.dumps({**scan, "others": [other]}), encoding="utf-8")
    figure = block_figure(load(root))
    assert figure is not None
    assert {"fio, mean", "daqwriter, mean"} <= texts(figure.svg)
    assert "with daqwriter" in figure.caption and "Not drawn" in figure.caption


def repetition(number: int, size: int, rate: float | None) -> dict[str, Any]:
    return {
        "repetition": number, "block_bytes": size, "throughput_bytes_per_s": rate, "throughput_bytes_per_s_samples": [1e9] * 360,
        "bytes_written": 10**11, "runtime_s": 90.0, "device_bytes_written": None, "admissible": rate is not None,
        "reason": None if rate is not None else "ran for 2.00 s of 90 s",
    }  # fmt: skip


def with_repetitions(root: Path, *found: dict[str, Any]) -> Path:
    file = root / "results" / "block_scan.json"
    scan = json.loads(file.read_text(encoding="utf-8"))
    scan["large_blocks"] = {"throughput_bytes_per_s": 2.3e9, "from_block_bytes": 2**23, "repetitions": list(found)}
    return written(root, "block_scan", scan)


def test_the_repetitions_of_large_blocks_stand_beside_the_scan_with_number_and_range(bundle_with: Maker) -> None:
    rates = {2**23: (2.0, 2.1, 2.2), 2**24: (2.3, None, 2.5)}
    found = [
        repetition(number, size, rate * 2**30 if rate else None)
        for size, of_size in rates.items()
        for number, rate in enumerate(of_size, start=1)
    ]
    bundle = load(with_repetitions(bundle_with(), *found))
    figure, table, raw = block_figure(bundle), large_blocks_table(bundle), large_blocks_raw_table(bundle)
    assert figure is not None and table is not None and raw is not None
    assert "measured again" in texts(figure.svg)
    assert (
        "again 3 times each, in turns (crosses, n = 5, 2\u202fGiB/s to 2.5\u202fGiB/s; 1 more do not count)"
        in figure.caption
    )
    assert [row[2] for row in table.rows] == ["3 of 3", "2 of 3"]
    assert table.rows[0][4] == "2.000\u202fGiB/s \u2013 2.200\u202fGiB/s"
    assert table.rows[1][-1] == "2: ran for 2.00 s of 90 s"
    assert table.marked == {1}
    assert [row[3] for row in raw.rows].count(NONE) == 1


def test_a_single_repetition_is_the_scans_own_point_and_said_to_decide_nothing(bundle_with: Maker) -> None:
    bundle = load(with_repetitions(bundle_with(), repetition(1, 2**23, 2.3e9)))
    figure = block_figure(bundle)
    assert figure is not None and "measured again" not in texts(figure.svg)
    assert "one short point decides nothing" in figure.caption
    assert large_blocks_table(bundle) is None and large_blocks_raw_table(bundle) is None


def test_where_no_repetition_counts_the_figure_says_so(bundle_with: Maker) -> None:
    bundle = load(with_repetitions(bundle_with(), *(repetition(number, 2**23, None) for number in (1, 2, 3))))
    figure, table = block_figure(bundle), large_blocks_table(bundle)
    assert figure is not None and "these repetitions do not count" in figure.caption
    assert table is not None and table.rows[0][2:5] == ("0 of 3", NONE, NONE)


@pytest.mark.parametrize("field", ["repetition", "block_bytes", "throughput_bytes_per_s", "admissible"])
def test_a_repetition_without_a_field_is_refused_by_name(bundle_with: Maker, field: str) -> None:
    root = with_repetitions(bundle_with(), repetition(1, 2**23, 2.3e9), repetition(2, 2**23, 2.3e9))
    file = root / "results" / "block_scan.json"
    scan = json.loads(file.read_text(encoding="utf-8"))
    del scan["large_blocks"]["repetitions"][1][field]
    file.write_text(json.dumps(scan), encoding="utf-8")
    with pytest.raises(BenchError, match=rf"large_blocks\.repetitions\[1\]: .*missing required field `{field}`"):
        load(root)
