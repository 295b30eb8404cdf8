"""The report on decisions: interval with its method, spread, guard band, undecided in words; and the run's cost."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_model.documents.struct import read
from daq_bench.bench_model.documents.verdict import Verdict
from daq_bench.bench_report.document.table import LINE, Table
from daq_bench.bench_report.qualification.render import to_html
from daq_bench.bench_report.qualification.view import outcome_of
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.sections.cost import cost_section
from daq_bench.bench_report.tables.requirements import notes, requirement_table

Maker = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("unsettled")  # the words are tested here

COST: dict[str, Any] = {
    "schema_version": 1,
    "hours": 2.5,
    "phases": [{"name": "provision", "hours": 0.5}, {"name": "snb_record", "hours": 2.0}],
    "written_bytes": 1_500_000_000_000,
    "written_bytes_per_drive": {"nvme0n1": 1_500_000_000_000},
    "nand_written_bytes": None,
    "energy_kwh": 0.75,
    "energy_source": "ipmi_power",
    "energy_hours": 2.4,
    "reasons": {"cost.nand_written": "no drive's own log of NAND writes was read in this run"},
}


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("\u202f", " "))


def changed(root: Path, change: Callable[[dict[str, Any]], None]) -> Bundle:
    """Returns the bundle with another verdict than its evidence gives."""
    document = json.loads((root / "verdict.json").read_text(encoding="utf-8"))
    change(document)
    return replace(load(root), verdict=read(document, Verdict, "verdict.json"))


def row_of(bundle: Bundle, index: int) -> list[list[str]]:
    """The cells of a requirement, each as its lines."""
    table = requirement_table(bundle)
    assert table is not None
    return [[plain(line) for line in cell.split(LINE)] for cell in table.rows[index]]


def test_a_row_says_interval_method_spread_and_guard_band(bundle_with: Maker) -> None:
    bundle = load(bundle_with(telemetry=False))
    _, _, _, measured, margin, _ = row_of(bundle, 5)
    assert bundle.verdict is not None
    row = bundle.verdict.requirements[5]
    assert row.confidence_interval is not None and row.spread is not None and row.spread.sd is not None
    assert measured[1:] == [
        f"95 % CI {row.confidence_interval[0]:.3f} to {row.confidence_interval[1]:.3f} GB/s",
        "Student t and order statistics of 6 repetitions",
        f"repetitions {row.spread.min:.3f} to {row.spread.max:.3f} GB/s",
        f"sd {row.spread.sd:.5f} GB/s",
        "min of n = 18",
    ]
    assert margin[-1] == "guard band 0.25 GB/s"
    assert row_of(bundle, 0)[3][1:] == ["this run only (n = 1)"]


@pytest.mark.parametrize(
    ("method", "shown"),
    [
        ("this run only (n = 1): block bootstrap and cosine t; fewer than 6 repetitions bound nothing",
         "this run only (n = 1): block bootstrap and cosine t"),
        ("range of the steady window (SNIA PTS), this run only, no confidence level",
         "range of the steady window (SNIA PTS), this run only, no confidence level"),
    ],
)  # fmt: skip
def test_what_knows_this_run_only_says_so_where_it_would_say_95_percent(
    bundle_with: Maker, method: str, shown: str
) -> None:
    def alone(document: dict[str, Any]) -> None:
        document["requirements"][5].update(confidence=None, interval_method=method)

    bundle = changed(bundle_with(telemetry=False), alone)
    assert row_of(bundle, 5)[3][1:3] == ["this run only (n = 18) 2.374 to 2.399 GB/s", shown]
    assert any(note.startswith("This run only: ") for note in notes(bundle))
    assert not any(note.startswith("CI: ") for note in notes(bundle))
    assert "95 % CI" not in plain(re.sub(r"<[^>]+>", "", to_html(bundle)))


def test_the_rule_that_decided_is_named_and_what_six_repetitions_hold_is_said(bundle_with: Maker) -> None:
    def ranged(document: dict[str, Any]) -> None:
        document["requirements"][5].update(
            confidence=None, interval_method="range of all 2160 samples of 6 repetitions, no confidence level"
        )

    bundle = changed(bundle_with(telemetry=False), ranged)
    lines = row_of(bundle, 5)[3]
    assert lines[1] == "range of all 2160 samples of 6 repetitions 2.374 to 2.399 GB/s"
    assert sum("range" in line for line in lines) == 1, "the table says it once"
    said = notes(bundle)
    assert any(note.startswith("Range of all samples: ") for note in said)
    assert not any(note.startswith("This run only: ") for note in said)
    # 0.95^6 = 0.735; 1 - 0.05^(1/6) = 0.393
    assert any("n = 6 repetitions" in note and "74 %" in note and "39 %" in note for note in said)


def test_a_fact_is_of_this_run_only_whichever_bench_said_so(bundle_with: Maker) -> None:
    def said(document: dict[str, Any]) -> None:
        document["requirements"][0]["interval_method"] = (
            "this run only (n = 1): an observation, exact; it bounds no other repetition"
        )

    bundle = changed(bundle_with(telemetry=False), said)
    assert row_of(bundle, 0)[3][1:] == ["this run only (n = 1)"]


def test_undecided_is_said_with_what_would_decide(bundle_with: Maker) -> None:
    bundle = load(bundle_with())
    _, _, _, measured, _, outcome = row_of(bundle, 7)
    why = "this run only (n = 1): no series; fewer than 6 repetitions bound nothing; about 5 more repetitions would decide"
    assert outcome == ["undecided", why]
    assert measured[1] == "this run only (n = 1): no series"
    assert any(note.startswith("Undecided: ") for note in notes(bundle))
    assert why in plain(re.sub(r"<[^>]+>", "", to_html(bundle)))


@pytest.mark.parametrize("found", [True, False])
def test_the_first_page_tells_too_little_evidence_from_evidence_that_does_not_count(
    bundle_with: Maker, found: bool
) -> None:
    def only_undecided(document: dict[str, Any]) -> None:
        document["outcome"] = "INADMISSIBLE"
        for row in document["requirements"]:
            row["decision"] = "met"
        document["requirements"][0]["decision"] = "undecided"
        if not found:
            document["findings"] = []

    root = bundle_with(telemetry=False, scale=1.0, scaled_down=False)  # a rehearsal says that it is one instead
    (meaning,) = outcome_of(changed(root, only_undecided)).reasons
    assert meaning.startswith("The evidence does not count" if found else "The evidence does not decide yet")


def test_a_decision_that_is_none_is_refused(bundle_with: Maker) -> None:
    with pytest.raises(Exception, match=r"requirements\[\d+\]\.decision: Invalid enum value"):
        changed(bundle_with(telemetry=False), lambda document: document["requirements"][0].update(decision="perhaps"))


def test_the_cost_of_the_run_is_shown_with_what_is_not_known(bundle_with: Maker) -> None:
    section = cost_section(load(bundle_with(telemetry=False, extra={"results/cost.json": COST})))
    assert section is not None
    totals, phases = section.parts
    assert isinstance(totals, Table) and isinstance(phases, Table)
    assert [[plain(cell) for cell in row[:2]] for row in totals.rows] == [
        ["Time, whole run", "2 h 30 min"],
        ["Written by the host", "1.500 TB"],
        ["Written onto the NAND", "\u2013"],
        ["Energy", "0.750 kWh"],
    ]
    assert totals.rows[2][2] == "no drive's own log of NAND writes was read in this run"
    assert [plain(row[2]) for row in phases.rows] == ["20 %", "80 %"]
    assert cost_section(load(bundle_with(telemetry=False))) is None


def test_the_looks_of_a_repeated_measurement_are_shown_with_their_cost(bundle_with: Maker) -> None:
    cost = {"hours": 0.5, "written_bytes": 2_000_000_000, "energy_kwh": None}
    look = {"repetitions": 1, "decisions": {"SNB-01": "met"}, "stop": True, "reason": "every requirement is decided"}
    looks = {"repetitions_min": 1, "repetitions_max": 5, "confidence": 0.99, "looks": [{**look, "cost": cost}]}
    extra = {"results/cost.json": COST, "results/other.json": {"stopping": looks}}
    section = cost_section(load(bundle_with(telemetry=False, extra=extra)))
    assert section is not None
    table = section.parts[-1]
    assert isinstance(table, Table)
    assert [plain(cell) for cell in table.rows[0]] == [
        "1",
        "SNB-01 met",
        "every requirement is decided",
        "30 min 00 s, 2.000 GB",
    ]
    assert plain(table.caption).endswith("each uses intervals of 99 %.")
