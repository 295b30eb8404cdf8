"""Wear and years against hand-worked examples; the whole percents must be in every interval."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.workloads.endurance import wear

UNIT = Demand(10, 5568, 166000.0, 1.0, 100.0)
STEP = 512_000.0


def test_one_percent_over_40_tb_is_anything_from_none_to_two() -> None:
    cost = wear.wear_percent_per_tb(3, 4, 40e12, 0)
    assert cost is not None
    assert (cost.low, cost.best, cost.high) == (0.0, 1 / 40, 2 / 40)


def test_no_movement_bounds_the_wear_from_above_only() -> None:
    cost = wear.wear_percent_per_tb(0, 0, 100e12, 0)
    assert cost is not None
    assert (cost.low, cost.best, cost.high) == (0.0, None, 0.01)
    life = wear.years(wear.supernova_cadence(UNIT, 12, 1.0), cost)
    # 1 % per 100 TB at most is a life of 10 000 TB; 12 TB a year at the nominal rate
    assert (life.low, life.best, life.high) == (pytest.approx(10_000 / 12), None, None)


def test_ten_percent_over_100_tb_bounds_the_years_on_both_sides() -> None:
    cost = wear.wear_percent_per_tb(0, 10, 100e12, 0)
    assert cost is not None
    life = wear.years(wear.supernova_cadence(UNIT, 12, 1.0), cost)
    assert life.low == pytest.approx(100 / 0.11 / 12)
    assert life.high == pytest.approx(100 / 0.09 / (12 * 0.924288))


def test_continuous_writing_wears_a_nand_drive_out_in_days() -> None:
    """5 PBW per TB x 0.75 TB = 3.75 PB: at 9.243 GB/s that is 4.7 days."""
    life = wear.years_of_total(5e15 * 0.75, wear.continuous(UNIT, 1.0))
    assert life.high is not None
    assert life.high * 365.25 == pytest.approx(3.75e15 / 9.24288e9 / 86400)
    assert life.low * 365.25 == pytest.approx(3.75e15 / 10e9 / 86400)


def test_the_x100_takes_one_record_a_month_for_millennia() -> None:
    life = wear.years_of_total(86e15 * 0.75, wear.supernova_cadence(UNIT, 12, 1.0))
    assert life.low == pytest.approx(86e15 * 0.75 / 12e12)


def test_a_rating_writes_the_drive_so_often_a_day() -> None:
    load = wear.rated_writes(3, 6.4e12)
    assert load.low_bytes == load.high_bytes == pytest.approx(3 * 6.4e12 * 365.25)


def test_what_two_readings_do_not_bound_is_none() -> None:
    assert wear.wear_percent_per_tb(4, 3, 1e12, STEP) is None
    assert wear.wear_percent_per_tb(254, 255, 1e12, STEP) is None
    assert wear.wear_percent_per_tb(0, 1, STEP, STEP) is None
    assert wear.write_amplification(STEP, 1e6, STEP, STEP) is None


def test_write_amplification_holds_the_counters_steps() -> None:
    found = wear.write_amplification(1e9, 1.5e9, STEP, STEP)
    assert found is not None
    assert found.best == 1.5
    assert found.low == pytest.approx((1.5e9 - STEP) / (1e9 + STEP))
    assert found.high == pytest.approx((1.5e9 + STEP) / (1e9 - STEP))


@pytest.mark.parametrize(("used", "left"), [(0, (99.0, 100.0)), (40, (59.0, 61.0)), (120, (0.0, 0.0))])
def test_what_is_left_holds_either_rounding(used: float, left: tuple[float, float]) -> None:
    assert wear.percent_left(used) == left


@given(
    true_per_tb=st.floats(1e-4, 1.0),
    start=st.floats(0, 50),
    written_tb=st.floats(1, 400),
    round_up=st.booleans(),
)
def test_the_true_wear_is_in_the_interval_whichever_way_the_drive_rounds(
    true_per_tb: float, start: float, written_tb: float, round_up: bool
) -> None:
    def shown(percent: float) -> int:
        return int(percent) + 1 if round_up else int(percent)

    end = start + true_per_tb * written_tb
    if end >= 200:
        return
    cost = wear.wear_percent_per_tb(shown(start), shown(end), written_tb * 1e12, STEP)
    assert cost is not None
    assert cost.low <= true_per_tb * (1 + 1e-9)
    assert cost.high is not None
    assert true_per_tb <= cost.high * (1 + 1e-9)
