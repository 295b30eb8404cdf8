"""From counters to judged years: values that decide, values that do not, and values that no drive gave."""

from __future__ import annotations

from typing import Any

import pytest
from filled import filled

from daq_bench.bench_model.documents.struct import as_document, read
from daq_bench.bench_model.profiles.published import PublishedDevice, PublishedFigure
from daq_bench.bench_model.workloads.endurance.document import Endurance, Rating
from daq_bench.bench_model.workloads.endurance.projection import document

DEMAND = {"links": 10, "superchunk_bytes": 5568, "superchunk_rate_hz": 166000, "record_s": 100, "records_per_year": 12}
PAPER = PublishedFigure("full_drive_writes", 5000, "1", "5 PBW per TB", "paper", "stated")
PUBLISHED = {"nand": PublishedDevice("nand", "NAND", "nand", None, None, (PAPER,))}


def reading(written_tb: float, used: int | None, nand_tb: float | None = None) -> dict[str, Any]:
    return {
        "id": "S1",
        "written_bytes": int(written_tb * 1e12),
        "step_bytes": 512000,
        "nand_bytes": None if nand_tb is None else int(nand_tb * 1e12),
        "percentage_used": used,
        "available_spare": 100,
        "media_errors": 0,
    }


def endurance(before: dict[str, Any], after: dict[str, Any], opening: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "drives": [{"id": "S1", "model": "Drive", "capacity_bytes": 750 * 10**9}],
        "demand": DEMAND,
        "writes_per_byte_max": 1,
        "epoch": "drives' own",
        "opening": {"epoch": "drives' own", "drives": [opening or before]},
        "at_start": [before],
        "at_end": [after],
        "steps": [],
    }


def made(run: dict[str, Any], asked: float | None = 10.0, rating: dict[str, Any] | None = None) -> dict[str, Any]:
    bounds = {} if asked is None else {"supernova": asked}
    ratings = {"S1": Rating(**rating)} if rating else {}
    return as_document(document(read(filled(run, Endurance), Endurance, "a run"), ratings, PUBLISHED, bounds))


def test_wear_below_a_percent_decides_where_the_lower_end_is_enough() -> None:
    found = made(endurance(reading(0, 0), reading(100, 0)))
    years = found["drives"][0]["projections"][0]["years"]
    assert years["high"] is None
    assert found["judged_years"]["supernova"] == years["low"] == pytest.approx(10_000 / 12, rel=1e-6)


def test_too_little_writing_decides_nothing_and_says_how_much_would() -> None:
    found = made(endurance(reading(0, 0), reading(0.1, 0)))
    assert found["judged_years"]["supernova"] is None
    reason = found["reasons"]["endurance.years_supernova"]
    assert "with no upper bound, which does not decide about 10" in reason
    assert "A write_budget of 1.2 TB or more can decide" in reason
    enough = made(endurance(reading(0, 0), reading(1.21, 0)))
    assert enough["judged_years"]["supernova"] >= 10


def test_a_drive_that_wears_out_early_is_judged_by_the_upper_end() -> None:
    found = made(endurance(reading(0, 0), reading(10, 20)))
    years = found["drives"][0]["projections"][0]["years"]
    assert years["high"] < 10
    assert found["judged_years"]["supernova"] == years["high"]


def test_the_first_run_of_the_experiment_counts_while_the_counter_goes_on() -> None:
    run = endurance(reading(50, 4), reading(60, 5), opening=reading(0, 0))
    assert made(run)["drives"][0]["since"] == "the experiment's first run"
    assert made(run)["drives"][0]["host_bytes"] == 60 * 10**12
    reset = {**run, "epoch": "boot 2"}
    assert made(reset)["drives"][0]["host_bytes"] == 10 * 10**12


def test_a_drive_without_a_log_gives_reasons_and_no_years() -> None:
    found = made(endurance(reading(0, None), reading(1, None)))
    assert found["judged_years"] == {"supernova": None, "continuous": None, "rating": None}
    assert "reports no NVMe health log" in found["reasons"]["endurance.years_supernova"]
    assert "drive_ratings" in found["reasons"]["endurance.years_rating"]
    assert "log page C0h" in found["reasons"]["endurance.write_amplification"]


def test_rating_and_published_endurance_stand_beside_the_measured_one() -> None:
    rating = {"serial": "S1", "dwpd": 3, "years": 5, "source": "data sheet"}
    found = made(endurance(reading(0, 0, 0), reading(100, 2, 150)), rating=rating)
    drive = found["drives"][0]
    assert found["write_amplification_at_most"] == pytest.approx(1.5, rel=1e-5)
    by_load = {one["load"]: one for one in drive["projections"]}
    assert by_load["rating"]["rated_years"]["low"] == pytest.approx(5)
    assert by_load["supernova"]["published_years"][0]["years"]["low"] == pytest.approx(5000 * 0.75 / 12)
    assert found["judged_years"]["rating"] == by_load["rating"]["years"]["low"]


def test_a_coarse_count_of_the_nand_widens_the_amplification() -> None:
    """In steps of 1 GiB, 10 GB from the host with 20 GB onto the NAND may be 1.9 or 2.1 times as much."""
    coarse = {"nand_step_bytes": 2**30}
    fine = made(endurance(reading(0, 0, 0), reading(0.01, 0, 0.02)))["drives"][0]["write_amplification"]
    wide = made(endurance(reading(0, 0, 0) | coarse, reading(0.01, 0, 0.02) | coarse))["drives"][0][
        "write_amplification"
    ]
    assert fine["best"] == wide["best"] == pytest.approx(2.0)
    assert fine["high"] == pytest.approx(2.0, rel=1e-3)
    assert (wide["low"], wide["high"]) == (pytest.approx(1.893, rel=1e-3), pytest.approx(2.107, rel=1e-3))


def test_a_drive_that_counts_backwards_is_said() -> None:
    found = made(endurance(reading(0, 5), reading(100, 4)))
    assert "went backwards" in found["reasons"]["endurance.years_supernova"]
