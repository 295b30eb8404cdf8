"""The thermal soak's conclusions: equilibrium, onset within the record, and what the record would have lost, worked by hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "studies"))
from series_factory import white, with_dip
from tracks_factory import BEGIN_S, DRIVE, drive, scenery, track

from bench_model import thermal_soak
from bench_model.equilibrium import level_at, settled
from bench_model.service_curve import constant_rate_loss, record_loss, worst_record

COUNT = 600


def thermal(**changes: Any) -> dict[str, Any]:
    return {
        "soak": {"stopped_by": "time limit"},
        "rule": {"window_s": 300, "slope_max_k_per_min": 0.2},
        "record": {"demand_bytes_per_s": 4.5e9, "duration_s": 100},
        "load": {"rate_limit_bytes_per_s": None},
        "cool_down": {"start_utc_s": BEGIN_S + COUNT, "end_utc_s": BEGIN_S + COUNT + 60},
        "fan_sweep": {"points": []},
        **changes,
    }


def test_a_buffer_takes_the_shortfall_until_it_is_full() -> None:
    """10 offered, 8 taken for 5 s: 10 wait; a buffer of 6 holds 6 and loses 4. What was lost is not caught up."""
    loss = record_loss([8.0] * 5 + [14.0] * 2, 1.0, 10.0, 6.0)
    assert (loss.backlog_bytes, loss.lost_bytes) == (10.0, 4.0)
    assert record_loss([8.0] * 5, 1.0, 10.0, 10.0).lost_bytes == 0.0


def test_the_worst_record_is_found_wherever_it_begins() -> None:
    worst = worst_record([10.0] * 20 + [4.0] * 5 + [10.0] * 20, 1.0, 10.0, 10.0, 12.0)
    assert worst is not None
    assert (worst.backlog_bytes, worst.lost_bytes) == (30.0, 18.0)
    assert 15 <= worst.start_s <= 20
    assert worst_record([1.0] * 5, 1.0, 10.0, 10.0, 0.0) is None


def test_the_papers_shortfall_is_11_6_gb() -> None:
    """9.127 GB/s taken of 9.24288 offered, for 100 s (seed facts of the DUNE paper: 11.6 GB)."""
    assert constant_rate_loss(9.127e9, 9.24288e9, 100, 0).backlog_bytes == pytest.approx(11.6e9, rel=0.002)


def test_a_line_that_is_level_enough_is_equilibrium() -> None:
    rising = track(lambda time: 40 + 0.5 * time / 60, COUNT)
    level = level_at(rising, BEGIN_S + 599, 300, BEGIN_S)
    assert level is not None
    assert level.slope_k_per_min == pytest.approx(0.5)
    assert not settled(level, 0.2)
    assert settled(level, 0.6)
    assert level_at(rising, BEGIN_S + 200, 300, BEGIN_S) is None  # not observed for long enough
    assert not settled(None, 10)


def test_a_quiet_soak_has_equilibrium_headroom_and_no_onset() -> None:
    found = thermal_soak.document(thermal(), scenery())
    assert (found["throttled"], found["onsets_in_record"], found["record"]["lost_bytes"]) == (False, 0, 0.0)
    assert (found["equilibrium_degC"], found["headroom_degC"]) == (55.0, 20.0)
    assert found["equilibrium_degC_samples"] == [55.0] * 300
    assert found["reasons"] == {}


@pytest.mark.parametrize(("start", "within"), [(50, 1), (300, 0)])
def test_throttling_gives_onset_depth_and_the_records_loss(start: int, within: int) -> None:
    rates = with_dip(white(np.random.default_rng(3), COUNT), start, COUNT - start, 0.5)
    hot = drive(COUNT, (float(start), float(COUNT)), temperature=True, warning=True)
    found = thermal_soak.document(thermal(), scenery(rates, hot))
    assert found["throttled"]
    assert found["onsets_in_record"] == within
    assert found["onset"]["depth_fraction"] == pytest.approx(0.5, abs=0.03)
    assert found["record"]["at_throttled_rate"]["backlog_bytes"] == pytest.approx(2e9 * 100, rel=0.03)
    assert found["record"]["lost_bytes"] == pytest.approx(200e9 - 10e9, rel=0.05)
    assert found["headroom_degC"] == -3.0


def test_a_soak_shorter_than_the_record_has_no_value_and_says_so() -> None:
    short = scenery(white(np.random.default_rng(4), 60))
    found = thermal_soak.document(thermal(), short)
    assert found["onsets_in_record"] is None
    assert "says nothing of a record of 100 s" in found["reasons"]["thermal.onsets_in_record"]
    assert found["record"]["lost_bytes"] is None
    assert "shorter than the record" in found["reasons"]["thermal.record_lost_bytes"]


def test_a_load_that_was_held_back_does_not_show_what_the_target_can_take() -> None:
    found = thermal_soak.document(thermal(load={"rate_limit_bytes_per_s": 10**9}), scenery())
    assert found["record"]["lost_bytes"] is None
    assert "held below the record's demand" in found["reasons"]["thermal.record_buffer_needed"]


def test_a_missing_sensor_leaves_its_metrics_without_a_value() -> None:
    """Null with its reason: the verdict makes it INADMISSIBLE, never PASS."""
    scene = scenery()
    scene.tracks.found = {key: one for key, one in scene.tracks.found.items() if key[0] not in ("temperature", "smart")}
    found = thermal_soak.document(thermal(), scene)
    assert (found["headroom_degC"], found["equilibrium_degC"], found["throttled"]) == (None, None, None)
    assert found["reasons"]["thermal.temperature_headroom"] == f"no temperature of {DRIVE}"
    assert found["onsets_in_record"] is None
