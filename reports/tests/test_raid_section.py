"""The comparison's part of the report: both tables, both figures, and the words on a disturbed round and on missing values."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from raid_factory import found, power
from section_parts import table

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.profiles.candidates import Target, load_candidate
from daq_bench.bench_model.profiles.published import load_published
from daq_bench.bench_model.workloads.raid_vs_3dxp.analysis import document
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.section import Lacking, Section
from daq_bench.bench_report.qualification.render import to_html
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.workloads.raid_vs_3dxp.section import section as raid_section

REPOSITORY = Path(__file__).resolve().parents[2]

Maker = Callable[..., Path]


def rate(turn: int, name: str) -> float:
    disturbed = 0.2 if (turn, name) == (3, "nand-raid0") else 1.0
    return {"reference": 9e9, "nand-raid0": 7.2e9, "nand-raid5": 5.4e9}[name] * (1 + 0.01 * (turn % 3)) * disturbed


def results(**changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    rounds = found(rate)
    shipped = load_candidate(REPOSITORY / "inventory" / "lab.yml", "virtual")
    declared = {"drive_price": {"amount": 400, "currency": "EUR", "date": "2026-11-01", "source": "offer 17"}}
    names = ("reference", "nand-raid0", "nand-raid5")
    targets = tuple(
        Target(name, "filesystem", f"/srv/{name}", None, None, declared=declared if name == "nand-raid5" else {})
        for name in names
    )
    at_s = rounds["rounds"][2]["visits"][1]["write"]["begin_s"]
    events = [
        {"at_s": at_s + 1, "text": "drive NA2 is held to 4 MB/s"},
        {"at_s": at_s + 9, "text": "drive NA2 is released"},
    ]
    watts = power(rounds, dict.fromkeys(names, 20.0)) if changes.get("bmc", True) else []
    published = load_published(REPOSITORY / "inventory" / "devices" / "published")
    return rounds, document(rounds, replace(shipped, targets=targets), published, watts, events)


@pytest.fixture
def compared(bundle_with: Maker) -> Callable[..., Path]:
    def make(**changes: Any) -> Path:
        root = bundle_with()
        rounds, comparison = results(**changes)
        for name, content in (("raid_vs_3dxp", rounds), ("raid_comparison", comparison)):
            (root / "results" / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
        return root

    return make


def section_of(root: Path) -> Section:
    section = raid_section(load(root))
    assert section is not None
    return section


def test_a_run_without_a_comparison_has_no_such_section(bundle_with: Maker) -> None:
    assert raid_section(load(bundle_with())) is None


def test_the_tables_hold_what_was_measured(compared: Callable[..., Path]) -> None:
    section = section_of(compared())
    sets = table(section, "raid-sets")
    assert [row[0] for row in sets.rows] == ["reference", "nand-raid0", "nand-raid5"]
    assert sets.rows[2][1].replace("\u202f", " ") == "RAID 5, 3 drives, chunk 128KiB"
    assert sets.rows[2][9] == "0.0200"
    pairs = table(section, "raid-pairs")
    head = next(row for row in pairs.rows if row[:2] == ("nand-raid5", "Throughput"))
    assert head[2:4] == ("6", "0.600")
    assert head[6] == "less than the reference"
    costs = table(section, "raid-costs")
    assert costs.rows[2][7].replace("\u202f", " ") == "1200 EUR"
    assert costs.rows[2][5] == "1.50"


def test_a_disturbed_round_is_named_and_both_comparisons_are_shown(compared: Callable[..., Path]) -> None:
    section = section_of(compared())
    disturbed = table(section, "raid-disturbed")
    assert disturbed.rows == (("nand-raid0", "3", "Throughput", "nand-raid0: drive NA2 is held to 4 MB/s"),)
    pairs = table(section, "raid-pairs")
    place = next(index for index, row in enumerate(pairs.rows) if row[:2] == ("nand-raid0", "Throughput"))
    assert pairs.rows[place + 1][1:4] == ("without the disturbed", "5", "0.800")
    ratios = next(part for part in section.parts if isinstance(part, Figure) and part.name == "raid-ratios")
    assert "round 3" in ratios.svg


def test_published_devices_are_references_and_named_so(compared: Callable[..., Path]) -> None:
    figure = next(
        part for part in section_of(compared()).parts if isinstance(part, Figure) and part.name == "raid-rates"
    )
    assert "Micron X100" in figure.svg
    assert "published, not measured here" in figure.svg
    assert "references, never measurements of this bench" in figure.caption
    assert "Micron X100 (published)" not in figure.caption


def test_what_is_missing_is_said_once_for_all_targets(compared: Callable[..., Path]) -> None:
    lacking = [part.text for part in section_of(compared(bmc=False)).parts if isinstance(part, Lacking)]
    assert "power of reference, nand-raid0, nand-raid5: no BMC gives the server's power" in lacking
    assert "price of reference, nand-raid0: the inventory declares no drive_price" in lacking


def test_the_section_is_in_the_report_and_a_broken_run_says_so(
    compared: Callable[..., Path], bundle_with: Maker
) -> None:
    html = to_html(load(compared()))
    assert html.count("RAID sets against the reference drive") >= 2  # contents and heading
    assert "Throughput beside published devices" in html
    broken = load(bundle_with())
    parameters = broken.run.scenario.parameters | {"workloads": {"raid_vs_3dxp": {}}}
    scenario = structs.replace(broken.run.scenario, parameters=parameters)
    named = replace(broken, run=structs.replace(broken.run, scenario=scenario))
    section = raid_section(named)
    assert section is not None
    assert section.parts == (Lacking("the comparison: it did not finish"),)


def test_a_damaged_comparison_is_an_error_that_names_its_field(compared: Callable[..., Path]) -> None:
    root = compared()
    file = root / "results" / "raid_comparison.json"
    file.write_text(json.dumps({**json.loads(file.read_text(encoding="utf-8")), "judged_set": 3}), encoding="utf-8")
    with pytest.raises(BenchError, match=r"results/raid_comparison\.json: judged_set: Expected `str`, got `int`: 3"):
        raid_section(load(root))
