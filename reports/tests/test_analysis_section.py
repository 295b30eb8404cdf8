"""The section of the concurrent analysis: the study's figures in kind, its stated points as references only, masks in words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from analysis_factory import found, of_set, point
from section_parts import figure, table, texts

from daq_bench.bench_model.workloads.concurrent_analysis.analysis import document
from daq_bench.bench_report.document.section import Lacking, Section
from daq_bench.bench_report.qualification.render import to_html
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.workloads.concurrent_analysis.section import section

Maker = Callable[..., Path]
PUBLISHED = Path(__file__).resolve().parents[2] / "inventory" / "devices" / "published"


def put(root: Path, measured: dict[str, Any]) -> None:
    for name, content in (("concurrent_analysis", measured), ("concurrent_analysis_rates", document(measured))):
        (root / "results" / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    folder = root / "profiles" / "devices" / "published"
    folder.mkdir(parents=True, exist_ok=True)
    for file in PUBLISHED.glob("proof-*.yml"):
        (folder / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")


def made(root: Path, measured: dict[str, Any]) -> Section:
    put(root, measured)
    one = section(load(root))
    assert one is not None
    return one


def two_storages() -> dict[str, Any]:
    one = found()
    one["storages"].append({**one["storages"][0], "name": "ssd-raid0", "text": "xfs on 2 x a drive"})
    one["sets"].append(of_set("full", "ssd-raid0"))
    one["points"] += [
        point("full", workers, turn, 60.0, storage="ssd-raid0") for workers in (1, 2) for turn in range(1, 7)
    ]
    return one


def test_a_run_without_it_has_no_section(bundle_with: Maker) -> None:
    assert section(load(bundle_with())) is None


def test_one_series_for_each_storage_and_the_texts_points_as_references(bundle_with: Maker) -> None:
    one = figure(made(bundle_with(), two_storages()), "analysis-full")
    said = texts(one.svg)
    assert {"analysis rate (MB/s)", "workers", "target", "ssd-raid0", "2 physical cores"} <= said
    assert {"published: Mtron MSP-SATA7035064", "published: Seagate ST3750640NS"} <= said
    for words in (
        "n = 6 repetitions with a cold cache",
        "Mtron MSP-SATA7035064 about 80 MB/s",
        "more than 100 MB/s",
        "about 18 MB/s",
        "figure 3",
    ):
        assert words in one.caption, words


def test_what_the_text_states_far_above_is_named_and_not_drawn(bundle_with: Maker) -> None:
    one = figure(made(bundle_with(), found()), "analysis-sparse")
    assert "Beyond the axis: published: Mtron MSP-SATA7035064 (25.0 MB/s)" in one.caption
    assert "published: Mtron MSP-SATA7035064" not in texts(one.svg)
    assert "published: Seagate ST3750640NS" in texts(one.svg)  # at most 3 MB/s, a line


def test_the_device_stands_beside_the_files(bundle_with: Maker) -> None:
    one = figure(made(bundle_with(), found()), "analysis-device")
    assert {"full, from the files", "full, from the device", "sparse, from the device"} <= texts(one.svg)


def test_masked_points_are_not_drawn_and_say_why(bundle_with: Maker) -> None:
    warm = found()
    for one in warm["points"]:
        if one["analysis"] == "full" and one["workers"] == 4:
            one["devices"][0]["read_bytes"] = 0
    whole = made(bundle_with(), warm)
    points = table(whole, "analysis-points")
    assert len(points.marked) == 1
    assert (
        "not drawn: the cache was not cold: the device was read by 0 B only"
        in points.rows[next(iter(points.marked))][-1]
    )
    assert "4" not in texts(figure(whole, "analysis-full").svg) or "n = 6" in figure(whole, "analysis-full").caption
    for one in warm["points"]:
        one["devices"][0]["read_bytes"] = 0
    assert any(
        isinstance(part, Lacking) and "full analysis that counts" in part.text
        for part in made(bundle_with(), warm).parts
    )


def test_the_farm_and_the_physics(bundle_with: Maker) -> None:
    whole = made(bundle_with(), found())
    farm = figure(whole, "analysis-farm")
    assert "Together they have 0.950 of the sum (n = 6" in farm.caption and "without figures" in farm.caption
    assert {"sum of the nodes, each alone", "all nodes together", "round"} <= texts(farm.svg)
    mass = figure(whole, "analysis-mass")
    assert "Generated: 91.19 GeV" in mass.caption and "Fitted: 91.290" in mass.caption
    assert "invariant mass (GeV)" in texts(mass.svg)
    rows = {row[1]: row for row in table(whole, "analysis-physics").rows}
    assert rows["full"][4] == "0" and "mass 1.0" in rows["full"][5]


def test_a_wrong_result_is_marked(bundle_with: Maker) -> None:
    wrong = found()
    wrong["points"][0]["result"]["entries"] = 3
    rows = table(made(bundle_with(), wrong), "analysis-physics")
    assert rows.marked == {0} and "3 events were analysed, 1000 were generated" in rows.rows[0][-1]


def test_a_storage_that_could_not_be_measured_says_why(bundle_with: Maker) -> None:
    one = found(farm=None)
    one["storages"].append(
        {
            **one["storages"][0],
            "name": "slow-disk",
            "kind": "slow-disk",
            "devices": [],
            "reason": "it could not be measured: no loop",
        }
    )
    whole = made(bundle_with(), one)
    rows = table(whole, "analysis-storages")
    assert rows.marked == {1} and rows.rows[1][-1] == "it could not be measured: no loop"
    assert any(isinstance(part, Lacking) and part.text.startswith("the farm") for part in whole.parts)


def test_it_stands_in_the_report(bundle_with: Maker) -> None:
    root = bundle_with()
    put(root, found())
    html = to_html(load(root))
    assert "Concurrent analysis of ROOT files" in html and "Mass spectrum of the full analysis" in html
