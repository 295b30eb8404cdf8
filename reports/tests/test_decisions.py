"""What the report says of decisions: interval with its method, spread, guard band, undecided in words; and what the run cost."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench_report.dataset import Bundle
from bench_report.load import load
from bench_report.render import to_html
from bench_report.requirement_table import notes, requirement_table
from bench_report.sections.cost import cost_section
from bench_report.tables import LINE, Table
from bench_report.view import outcome_of

Maker = Callable[..., Path]

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


def changed(root: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    file = root / "verdict.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    change(document)
    file.write_text(json.dumps(document), encoding="utf-8")
    return root


def row_of(bundle: Bundle, index: int) -> list[list[str]]:
    """The cells of a requirement, each as its lines."""
    table = requirement_table(bundle)
    assert table is not None
    return [[plain(line) for line in cell.split(LINE)] for cell in table.rows[index]]


def test_a_row_says_interval_method_spread_and_guard_band(bundle_with: Maker) -> None:
    bundle = load(bundle_with(telemetry=False))
    _, _, _, measured, margin, _ = row_of(bundle, 5)
    assert measured[1:] == [
        "95 % CI 2.332 to 2.404 GB/s",
        "block bootstrap and cosine t, 80 samples",
        "samples 2.142 to 2.618 GB/s",
        "sd 0.07140 GB/s",
    ]
    assert margin[-1] == "guard band 0.25 GB/s"
    assert row_of(bundle, 0)[3][1:] == ["exact"]


def test_undecided_is_said_with_what_would_decide(bundle_with: Maker) -> None:
    bundle = load(bundle_with(telemetry=False))
    _, _, _, measured, _, outcome = row_of(bundle, 7)
    why = "12 samples are too few: 50 are the least; a measurement about 4.2 times as long would decide"
    assert outcome == ["INADMISSIBLE", "undecided", why]
    assert measured[1] == "no CI"
    assert any(note.startswith("Undecided: ") for note in notes(bundle))
    assert why in plain(re.sub(r"<[^>]+>", "", to_html(bundle)))


@pytest.mark.parametrize("found", [True, False])
def test_the_first_page_tells_too_little_evidence_from_evidence_that_does_not_count(
    bundle_with: Maker, found: bool
) -> None:
    def only_undecided(document: dict[str, Any]) -> None:
        for row in document["requirements"]:
            row["decision"] = "met"
        document["requirements"][0]["decision"] = "undecided"
        if not found:
            document["findings"] = []

    meaning = outcome_of(load(changed(bundle_with(telemetry=False), only_undecided))).meaning
    assert meaning.startswith("The evidence does not count" if found else "The evidence does not decide yet")


def test_a_decision_that_is_none_is_refused(bundle_with: Maker) -> None:
    root = changed(
        bundle_with(telemetry=False), lambda document: document["requirements"][0].update(decision="perhaps")
    )
    with pytest.raises(Exception, match="expected one of met, missed, undecided"):
        load(root)


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
