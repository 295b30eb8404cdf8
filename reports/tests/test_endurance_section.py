"""The sections on endurance and on interference: the facts that a reader must find, and the points that must not be drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from section_parts import printed_words, table

from daq_bench.bench_report.document.section import Lacking, Section
from daq_bench.bench_report.qualification.render import to_html
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.workloads import endurance, interference

Maker = Callable[..., Path]
GB = 10**9


def health(written: int, used: int | None) -> list[dict[str, Any]]:
    return [{"id": "S1", "written_bytes": written, "percentage_used": used}]


def step(number: int, kind: str, used: int | None, admissible: bool = True) -> dict[str, Any]:
    return {
        "number": number,
        "kind": kind,
        "asked_bytes": 10 * GB,
        "throughput_bytes_per_s": (2 + number / 10) * 1e9,
        "admissible": admissible,
        "health": health(number * 10 * GB, used),
    }


def entry(number: int, charged: int | None, by: str | None) -> dict[str, Any]:
    return {
        "number": number,
        "run": "20261121T120000Z-server-endurance",
        "kind": "mix",
        "reserved_bytes": 11 * GB,
        "counted_bytes": charged if by == "drives" else None,
        "charged_bytes": charged,
        "charged_by": by,
        "settled_utc": by and "2026-11-21T12:30:00Z",
    }


def wear_document(used: int | None = 3) -> dict[str, Any]:
    return {
        "write_budget_bytes": 100 * GB,
        "spent_bytes": 41 * GB,
        "spent_before_bytes": 11 * GB,
        "left_bytes": 59 * GB,
        "overrun_bytes": 0,
        "ended": None,
        "pattern": {"file_bytes": GB, "random_percent": 10},
        "drives": [{"id": "S1"}],
        "steps": [
            step(2, "fill", used),
            step(3, "mix", used),
            step(4, "mix", used),
            step(5, "mix", used, admissible=False),
        ],
        "ledger": [
            entry(1, 11 * GB, "reservation"),
            *(entry(n, 10 * GB, "drives") for n in (2, 3, 4)),
            entry(5, None, None),
        ],
    }


def projection() -> dict[str, Any]:
    years = {"low": 833.3, "best": None, "high": None}
    return {
        "drives": [
            {
                "id": "S1",
                "host_bytes": 30 * GB,
                "percentage_used": [3, 3],
                "available_spare": [100, 100],
                "media_errors": [0, 0],
                "wear_percent_per_tb": {"low": 0.0, "best": None, "high": 33.0},
                "no_wear": None,
                "write_amplification": None,
                "no_write_amplification": "the drive reports no NAND writes",
                "projections": [
                    {
                        "load": "supernova",
                        "text": "12 records a year",
                        "years": years,
                        "years_left": {"low": 800.0, "best": None, "high": None},
                        "rated_years": None,
                        "published_years": [
                            {"device": "Micron X100", "years": {"low": 0.01, "best": 0.01, "high": 0.012}},
                        ],
                    }
                ],
            }
        ],
        "reasons": {"endurance.years_continuous": "too little was written"},
    }


def made(
    bundle_with: Maker, section: Callable[..., Section | None], **documents: dict[str, Any]
) -> tuple[Section, Path]:
    root = bundle_with(extra={f"results/{name}.json": content for name, content in documents.items()})
    found = section(load(root))
    assert found is not None
    return found, root


def test_the_account_the_wear_and_the_years_are_in_the_report(bundle_with: Maker) -> None:
    section, root = made(bundle_with, endurance.section, endurance=wear_document(), endurance_projection=projection())
    ledger = table(section, "endurance-ledger")
    assert [row[6] for row in ledger.rows[:2]] == ["the whole reservation", "what was counted"]
    assert ledger.rows[4][6] == "reserved, not settled"
    assert ledger.rows[-1][5].startswith("52.00")  # 11 charged + 3 x 10 + the open reservation of 11
    assert {0, 4} <= ledger.marked
    assert "unbounded" in table(section, "endurance-years").rows[0][2]
    assert "below 33" in table(section, "endurance-wear").rows[0][3]
    text = printed_words(to_html(load(root)))
    assert "Throughput and wear against what was written" in text
    assert "they do not count as evidence: 1 of 3 steps" in text
    assert "The run did not come to its end" in text


def test_a_drive_without_wear_is_said_in_the_figure(bundle_with: Maker) -> None:
    section, _ = made(bundle_with, endurance.section, endurance=wear_document(None), endurance_projection=projection())
    figure = next(part for part in section.parts if hasattr(part, "svg"))
    assert "no drive reports it" in figure.svg  # type: ignore[union-attr]


def test_readings_that_lack_what_the_drive_told_are_counted_and_not_drawn(bundle_with: Maker) -> None:
    """One of the four readings lost its log; the line is drawn from the others."""
    document = wear_document()
    document["at_start"] = health(0, 3)
    document["steps"][2]["health"][0]["percentage_used"] = None
    _, root = made(bundle_with, endurance.section, endurance=document, endurance_projection=projection())
    words = printed_words(to_html(load(root)))
    assert "1 of 4 readings of the drives lack a field that the drive told at the start." in words
    assert "no drive reports it" not in words
    document["steps"][2]["health"][0]["percentage_used"] = 3
    _, root = made(bundle_with, endurance.section, endurance=document, endurance_projection=projection())
    assert "lack a field" not in printed_words(to_html(load(root)))


def test_a_run_without_the_workload_has_no_section(bundle_with: Maker) -> None:
    bundle = load(bundle_with())
    assert endurance.section(bundle) is None
    assert interference.section(bundle) is None


def run(value: float | None, reason: str | None = None) -> dict[str, Any]:
    return {"value": value, "reason": reason}


def cell(victim: str, disturber: str, mean: float | None) -> dict[str, Any]:
    reason = None if mean else "disturbed: writers did nothing in 2 of 10 parts of the measurement"
    pair = {
        "solo": run(1e9),
        "disturbed": run(1e9 / mean if mean else None, reason),
        "slowdown": mean,
        "reason": reason,
    }
    slowdown = {"n": 3, "mean": mean, "median": mean, "least": mean, "most": mean, "low": 1.0, "high": 3.0}
    return {
        "victim": victim,
        "disturber": disturber,
        "pairs": [pair],
        "slowdown": slowdown if mean else None,
        "reason": reason,
    }


def matrix() -> dict[str, Any]:
    names = ("burst", "writers", "readers")
    row = {
        "n": 3,
        "masked": 0,
        "offered_superchunks": 1000,
        "lost_superchunks": 0,
        "busy_count": 0,
        "buffer_needed_bytes": 10**7,
    }
    return {
        "seconds": 10,
        "rounds": 3,
        "lead_s": 2,
        "burst_bytes_per_s": 1e9,
        "activities": [{"name": name, "measure": f"the {name}", "unit": "B/s"} for name in names],
        "cells": [cell("readers", "burst", 2.0), cell("readers", "writers", None), cell("readers", "all", 20.0)],
        "burst": [{"disturber": "none", **row}, {"disturber": "all", **row, "lost_superchunks": 7}],
    }


def test_the_matrix_masks_what_is_not_proven_and_marks_what_was_lost(bundle_with: Maker) -> None:
    section, root = made(bundle_with, interference.section, interference=matrix())
    figure = next(part for part in section.parts if hasattr(part, "svg"))
    assert "masked" in figure.svg  # type: ignore[union-attr]
    assert "2 of 3 cells; the worst is readers beside all, 20.0" in figure.alt  # type: ignore[union-attr]
    assert table(section, "interference-burst").marked == {1}
    cells = table(section, "interference-cells")
    assert cells.rows[1][2:5] == ("\u2013", "\u2013", "\u2013")
    assert "did nothing in 2 of 10 parts" in cells.rows[1][6]
    assert "did nothing in 2 of 10 parts" in printed_words(to_html(load(root)))


def test_a_matrix_without_a_cell_says_so(bundle_with: Maker) -> None:
    document = matrix() | {"cells": [cell("readers", "writers", None)], "burst": []}
    section, _ = made(bundle_with, interference.section, interference=document)
    assert [part.text for part in section.parts if isinstance(part, Lacking)] == [
        "no cell of the matrix that counts as evidence.",
        "the burst was not a victim in this run.",
    ]
