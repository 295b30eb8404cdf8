"""The storage application's section: the paper's figures in kind, its stated points as references only, masks and damage in words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from section_parts import figure, table, texts
from streams_factory import found, paced, verification

from daq_bench.bench_model.workloads.streams_checksum.analysis import document
from daq_bench.bench_report.document.section import Lacking, Section
from daq_bench.bench_report.qualification.render import to_html
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.workloads.streams_checksum.section import section

Maker = Callable[..., Path]


def made(root: Path, measured: dict[str, Any]) -> Section:
    for name, content in (("streams_checksum", measured), ("streams_checksum_analysis", document(measured))):
        (root / "results" / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    one = section(load(root))
    assert one is not None
    return one


def test_overhead_has_a_series_for_each_way_of_handing_out(bundle_with: Maker) -> None:
    one = figure(made(bundle_with(), found()), "streams-overhead")
    said = texts(one.svg)
    assert {
        "overhead per event (\u00b5s)",
        "checksum threads",
        "(i) a thread per chunk",
        "(iii) pool, busy-waiting master",
    } <= said
    assert "median of n = 8 turns" in one.caption
    assert not any("physical cores" in text for text in said)  # without siblings no line says where they begin


def test_throughput_is_normalised_and_the_papers_gain_is_a_reference(bundle_with: Maker) -> None:
    one = figure(made(bundle_with(), found()), "streams-throughput")
    said = texts(one.svg)
    assert {"throughput / original (1: alike)", "pool-busy", "original: zlib, one thread"} <= said
    assert any(text.startswith("published: ATLAS TDAQ storage server up to \u00d71.40") for text in said)
    assert "no benefit between 12 and 24 threads" in one.caption
    assert "No drive: what the CPUs alone could do" in one.caption
    assert "n = 6 pairs" in one.caption


def test_siblings_are_a_series_of_their_own_with_a_line_where_they_begin(bundle_with: Maker) -> None:
    whole = made(bundle_with(), found(siblings=True))
    said = texts(figure(whole, "streams-throughput").svg)
    assert {"pool-busy, one CPU per core", "pool-busy, with SMT siblings", "4 physical cores"} <= said
    assert "Adding the SMT siblings gives 1.00 times" in str(whole.parts[0])


def test_siblings_that_cost_throughput_are_called_slower(bundle_with: Maker) -> None:
    rows = table(made(bundle_with(), found({"siblings added": 0.8}, siblings=True)), "streams-comparisons").rows
    assert next(row for row in rows if row[0] == "siblings added")[6] == "slower"


def test_without_siblings_the_section_says_what_it_cannot_show(bundle_with: Maker) -> None:
    notes = made(bundle_with(), found()).parts[-1]
    assert "nothing can be said about SMT siblings" in str(notes)
    assert "24 checksum threads were asked for and not measured: the candidate has 4 physical cores" in str(notes)


def test_a_masked_setup_is_named_and_not_drawn(bundle_with: Maker) -> None:
    root, measured = bundle_with(), found()
    whole = figure(made(root, found()), "streams-throughput")
    masked = next(one for one in measured["comparisons"] if one["label"] == "pool-busy, 4 threads")
    for pair in masked["pairs"]:
        pair["measured"]["reason"] = "the busiest stream had 50.0% of the bytes instead of 67.0%"
    of = made(root, measured)
    assert "Not drawn, since no pair counts: pool-busy, 4 threads" in figure(of, "streams-throughput").caption
    assert figure(of, "streams-throughput").svg.count("<use ") < whole.svg.count("<use ")
    rows = table(of, "streams-comparisons").rows
    assert "the busiest stream had 50.0%" in next(row for row in rows if row[0] == "pool-busy, 4 threads")[-1]


def test_shares_stand_beside_the_one_that_the_source_states(bundle_with: Maker) -> None:
    one = figure(made(bundle_with(), found()), "streams-shares")
    assert {"stream 0", "stream 4", "share of the whole (%)", "67.2\u202f%"} <= texts(one.svg)
    assert any("one stream more than 66" in text for text in texts(one.svg))
    assert "The source states the busiest stream" in one.caption


def test_damage_and_a_late_source_are_marked(bundle_with: Maker) -> None:
    measured = found({"pool-busy, 2 threads": 0.8})
    wrong = [{"name": "run.0.1.events", "fault": "adler32 00000001 was recorded, zlib finds 00000002"}]
    measured["verification"].append(
        verification("peak", "fused", wrong_files=1, wrong=wrong, faults=3, status="damaged")
    )
    measured["demand"][1] = paced("peak", 1e8, kept=None, reason="the source offered only 80.00% of what was due")
    of = made(bundle_with(), measured)
    assert table(of, "streams-files").marked == frozenset({2})
    assert "zlib finds 00000002" in table(of, "streams-files").rows[2][-1]
    assert table(of, "streams-demand").marked == frozenset({1})
    assert table(of, "streams-demand").rows[1][5] == "\u2013"
    slower = next(row for row in table(of, "streams-comparisons").rows if row[0] == "pool-busy, 2 threads")
    assert slower[6] == "slower"


def test_a_run_without_results_says_so_and_one_without_the_workload_nothing(bundle_with: Maker) -> None:
    root = bundle_with()
    assert section(load(root)) is None
    (root / "results" / "streams_checksum.json").write_text(json.dumps(found()), encoding="utf-8")
    one = section(load(root))
    assert one is not None and isinstance(one.parts[0], Lacking)
    assert "streams_checksum_analysis" in one.parts[0].text


@pytest.mark.parametrize("siblings", [False, True])
def test_the_whole_report_renders_with_it(bundle_with: Maker, siblings: bool) -> None:
    root = bundle_with()
    made(root, found(siblings=siblings))
    html = to_html(load(root))
    assert "Storage application with multi-threaded checksum" in html
    assert "streams-throughput" in html
