"""The LAN's section: the presentation's figures in kind, its stated points as references only, masks, read-backs, reduced scale."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from lan_factory import Made, iperf, record, whole
from test_streams_section import figure, table, texts

from daq_bench.bench_model.bundle.telemetry_tracks import Tracks
from daq_bench.bench_report.base.marks import Numbers
from daq_bench.bench_report.document.section import Lacking, Section
from daq_bench.bench_report.qualification.render import to_html
from daq_bench.bench_report.reading.load import load
from daq_bench.workloads.lan.model.analysis import document
from daq_bench.workloads.lan.report import section

Maker = Callable[..., Path]


def made(root: Path, measured: Made) -> Section:
    analysis = document(measured.document, measured.raw.__getitem__, Tracks())
    for name, content in (("lan", measured.document), ("lan_analysis", analysis)):
        (root / "results" / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    one = section(load(root))
    assert one is not None
    return one


def test_bandwidth_and_cpu_stand_against_message_size_with_both_directions_apart(bundle_with: Maker) -> None:
    one = figure(made(bundle_with(), whole()), "lan-bandwidth")
    assert {
        "goodput (Gbit/s)",
        "CPU use (%)",
        "message size",
        "iperf3, switch",
        "iperf3, both directions, switch",
    } <= texts(one.svg)
    assert "Memory bandwidth: not measured here" in one.caption and "least and most interval" in one.caption


def test_what_is_far_above_a_scaled_down_network_is_named_and_not_drawn(bundle_with: Maker) -> None:
    one = figure(made(bundle_with(), whole()), "lan-bandwidth")
    assert (
        "Beyond the axis: published: OFED 80.0\u202fGbit/s; published: both directions 150\u202fGbit/s" in one.caption
    )
    assert any(text.startswith("needed at this scale 0.640") for text in texts(one.svg))
    assert (
        "4 network namespaces of one machine, ports shaped to 1.00\u202fGbit/s; no card, cable or switch" in one.caption
    )


def test_at_full_scale_the_stated_points_are_drawn_and_no_others(bundle_with: Maker) -> None:
    full = whole()
    full.document |= {"scale": 1, "need_bytes_per_s": full.document["full_need_bytes_per_s"]}
    full.document["network"] |= {"kind": "hosts", "port_bytes_per_s": None}
    for name in [name for name in full.raw if name.startswith("lan-bandwidth")]:
        full.raw[name] = iperf(90, 80)
    one = figure(made(bundle_with(), full), "lan-bandwidth")
    published = {text for text in texts(one.svg) if text.startswith("published")}
    assert published == {
        "published: OFED 80.0\u202fGbit/s", "published: both directions 150\u202fGbit/s", "published: needed 64.0\u202fGbit/s",
    }  # fmt: skip
    assert "the points of its figures are not stated and not drawn" in one.caption and "4 hosts." in one.caption


def test_latency_has_no_reference_since_none_is_stated(bundle_with: Maker) -> None:
    one = figure(made(bundle_with(), whole()), "lan-latency")
    assert not any("published" in text for text in texts(one.svg))
    assert "The source states no latency" in one.caption and "n = 1000 to 1000 messages" in one.caption


def test_event_building_shows_every_receiving_node_and_incast(bundle_with: Maker) -> None:
    of = made(bundle_with(), whole())
    assert {
        "node0",
        "node3",
        "receiving node",
        "streams, many to one",
        "all builders, fragments of 100\u202fkB",
    } <= texts(figure(of, "lan-building").svg)
    rows = table(of, "lan-crowds").rows
    assert rows[0][3:7] == ("0.970", "6", "0.00667\u202f%", "7")


def test_each_setting_has_its_own_contribution_and_its_read_back(bundle_with: Maker) -> None:
    of = made(bundle_with(), whole())
    assert {"mtu", "all together", "ratio (1: alike)"} <= texts(figure(of, "lan-settings").svg)
    assert (
        table(of, "lan-settings-table").rows[0][4] == "higher" and table(of, "lan-settings-table").rows[0][8] == "lower"
    )
    assert table(of, "lan-read-back").rows == (
        ("mtu", "node0", "1500", "9000", "9000", "applied", "yes", "yes", "16", ""),
    )
    assert table(of, "lan-read-back").marked == frozenset()


def test_a_setting_that_did_not_hold_is_marked(bundle_with: Maker) -> None:
    run = whole()
    run.document["transfers"][-1]["settings"] = [record(held=False)]
    of = made(bundle_with(), run)
    assert table(of, "lan-read-back").marked == frozenset({0}) and "1 read-backs were NOT as asked" in str(of.parts[0])


def test_a_masked_point_is_named_with_its_reason_and_not_drawn(bundle_with: Maker) -> None:
    root, run = bundle_with(), whole()
    before = figure(made(root, whole()), "lan-bandwidth").svg.count("<use ")
    run.raw["lan-bandwidth-4096-node0-node1.txt"] = "{"
    of = made(root, run)
    one = figure(of, "lan-bandwidth")
    assert "Not drawn, since the point does not count (reasons in the table): bandwidth-4096" in Numbers().plain(
        one.caption
    )
    assert one.svg.count("<use ") < before
    assert table(of, "lan-bandwidth-table").marked == frozenset({0})
    assert "no whole JSON" in table(of, "lan-bandwidth-table").rows[0][-1]


def test_a_run_without_results_says_so_and_one_without_the_workload_nothing(bundle_with: Maker) -> None:
    root = bundle_with()
    assert section(load(root)) is None
    (root / "results" / "lan.json").write_text(json.dumps(whole().document), encoding="utf-8")
    one = section(load(root))
    assert one is not None and isinstance(one.parts[0], Lacking) and "lan_analysis" in one.parts[0].text


def test_a_run_in_which_nothing_counts_renders_too(bundle_with: Maker) -> None:
    root, run = bundle_with(), whole()
    run.raw = dict.fromkeys(run.raw, "")
    made(root, run)
    html = to_html(load(root))
    assert "no point of the bandwidth against message size counts" in html and "no pair of any setting" in html


def test_the_whole_report_renders_with_it(bundle_with: Maker) -> None:
    root = bundle_with()
    made(root, whole())
    html = to_html(load(root))
    assert "100 Gbit/s LAN for event building" in html and "lan-settings" in html
