"""Tells which runs make a history, which are left out and why, and what a trend says of them."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

sys.path.insert(0, str(Path(__file__).parent))
from evidence_factory import seal
from nights_factory import FIRST, NightPlan, changed, season, write_night

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.nights.bundle_facts import Change, differences
from daq_bench.bench_model.nights.night import _power_on, read_night
from daq_bench.bench_model.nights.run_history import NOWHERE, History, _notes, history_of, read_all
from daq_bench.bench_model.nights.run_temperatures import INLET
from daq_bench.bench_model.nights.trend import Trend, trend_of


def history(runs: Path, plans: list[NightPlan], candidate: str = "server-a", scenario: str | None = None) -> History:
    for plan in plans:
        write_night(runs, plan)
    return history_of(*read_all([runs]), candidate, scenario)


def why(found: History, name: str) -> str:
    return next(one.reason for one in found.left_out if one.name == name)


def test_broken_bundles_are_listed_and_not_fatal(tmp_path: Path) -> None:
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "run.json").write_text("{", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    broken = write_night(tmp_path, NightPlan(7), "no-requirements")
    (broken / "verdict.json").write_text("{}", encoding="utf-8")
    seal(broken)
    found = history(tmp_path, [NightPlan(1), NightPlan(2)])
    assert len(found.nights) == 2
    assert "run.json" in why(found, "torn")
    assert why(found, "empty") == "run.json is missing: no finished run"
    assert why(found, "no-requirements").startswith(
        "contradicts itself: stored by another version of the bench, or altered"
    )


def test_a_bundle_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    runs, link = tmp_path / "runs", tmp_path / "link"
    first, second = (write_night(runs, NightPlan(number)) for number in (1, 2))
    link.symlink_to(second)
    nights, left_out = read_all([second, runs, first, link, runs / ".." / "runs"])
    assert ([night.path for night in nights], left_out) == ([second, first], [])


def test_a_link_to_a_bundle_is_read_and_one_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    runs, elsewhere = tmp_path / "runs", tmp_path / "elsewhere"
    first, second = write_night(runs, NightPlan(1)), write_night(elsewhere, NightPlan(2))
    (runs / "latest").symlink_to(first.name)
    (runs / "a-name-of-its-own").symlink_to(second)
    (runs / "disk-that-is-gone").symlink_to(tmp_path / "gone")
    (runs / "loop").symlink_to("loop")
    nights, left_out = read_all([runs])
    assert [night.path for night in nights] == [first, second]
    assert {(one.name, one.reason) for one in left_out} == {("disk-that-is-gone", NOWHERE), ("loop", NOWHERE)}


def test_other_candidates_scenarios_scales_and_unfinished_runs_are_named(tmp_path: Path) -> None:
    others = [
        NightPlan(3, candidate="server-b"),
        NightPlan(4, scenario="other"),
        NightPlan(5, scale=0.5),
        NightPlan(6, state="interrupted"),
    ]
    found = history(tmp_path, [NightPlan(1), *others, NightPlan(8)])
    assert [night.id for night in found.nights] == [NightPlan(1).run_id, NightPlan(8).run_id]
    assert why(found, others[0].run_id) == "is of candidate 'server-b'"
    assert why(found, others[1].run_id) == "did something else: scenario 'other' instead of 'snb-100s'"
    assert why(found, others[2].run_id) == "did something else: scale 0.5 instead of 1.0"
    assert why(found, others[3].run_id) == "its run ended in state 'interrupted'"


def test_a_copy_is_counted_once(tmp_path: Path) -> None:
    write_night(tmp_path, NightPlan(1), "a-copy")
    found = history(tmp_path, [NightPlan(1), NightPlan(2)])
    assert len(found.nights) == 2
    assert why(found, "a-copy") == f"has the run id of {NightPlan(1).run_id}, a copy; counted once"


@pytest.mark.parametrize(
    ("hours", "spare", "told"),
    [
        (9104, 100, [("S1", 9104.0)]),
        (0, 0, []),  # smartctl has the hours from the health page, and a page of zeros states no hours
        (2**32 - 1, 100, []),
        ("9104", 100, [("S1", 9104.0)]),
        (None, 100, []),
        ([], 100, []),
        (True, 100, []),
    ],
)
def test_only_credible_hours_order_the_nights(hours: Any, spare: int, told: list[tuple[str, float]]) -> None:
    """Else one blank page makes every earlier night contradict that one."""
    log = {"available_spare": spare, "percentage_used": 0, "power_on_hours": hours if isinstance(hours, int) else 0}
    data = {"serial_number": "S1", "power_on_time": {"hours": hours}, "nvme_smart_health_information_log": log}
    assert list(_power_on({"devices": [{"data": data}, {"data": None}]})) == told


def test_a_clock_that_jumped_is_found_by_overlap_by_the_id_and_by_the_drives_hours(tmp_path: Path) -> None:
    overlapping = NightPlan(2, started=FIRST + timedelta(days=2, minutes=1))
    misnamed = write_night(tmp_path, NightPlan(5), "20260306T020000Z-server-a-snb-100s")
    text = (misnamed / "run.json").read_text(encoding="utf-8")
    (misnamed / "run.json").write_text(text.replace("2026-03-06T02:0", "2026-03-06T09:0"), encoding="utf-8")
    seal(misnamed)
    found = history(
        tmp_path,
        [NightPlan(1), NightPlan(2), overlapping, NightPlan(8, hours=900), NightPlan(9, hours=100), NightPlan(10)],
    )
    assert [night.id for night in found.nights] == [NightPlan(1).run_id, NightPlan(10).run_id]
    assert "overlap" in why(found, NightPlan(2).run_id)
    assert "overlap" in why(found, overlapping.run_id)
    assert "at another time by its id" in why(found, misnamed.name)
    assert "900 h" in why(found, NightPlan(8).run_id)


def test_one_bad_clock_costs_no_other_night(tmp_path: Path) -> None:
    """The clock was five weeks ahead for one night: every later night of those weeks seems to come before it, with more hours."""
    ahead = NightPlan(40, hours=100 + 24 * 3 + 12)
    found = history(tmp_path, [*(NightPlan(number, hours=100 + 24 * number) for number in range(1, 8)), ahead])
    assert [night.id for night in found.nights] == [NightPlan(number).run_id for number in range(1, 8)]
    assert "drive S1 had 196 h" in why(found, ahead.run_id)


@pytest.mark.parametrize(("began_anew", "left"), [(1, 4), (2, 2)])
def test_a_drive_whose_hours_begin_anew_is_no_clock_that_jumped(tmp_path: Path, began_anew: int, left: int) -> None:
    """As after a firmware update; where most drives' hours go back, it is the clock."""
    for number in range(1, 5):
        write_night(tmp_path, NightPlan(number))
    nights, broken = read_all([tmp_path])
    for place in range(4):
        hours = {f"S{drive}": 9000.0 + 24 * place for drive in range(3)}
        hours |= {f"S{drive}": 24.0 * place for drive in range(began_anew) if place > 1}
        nights[place] = replace(nights[place], power_on_h=hours)
    if left == 4:
        assert len(history_of(nights, broken, "server-a").nights) == 4
    else:
        with pytest.raises(BenchError, match="has a start that can be believed"):
            history_of(nights, broken, "server-a")


def test_a_changed_profile_is_noted_and_each_run_keeps_its_bound(tmp_path: Path) -> None:
    found = history(tmp_path, [NightPlan(1, bound=8.0), NightPlan(2, bound=8.0), NightPlan(3, bound=9.0)])
    assert found.notes == (
        f"The requirement profile changed before {NightPlan(3).run_id}: R-01's bound went from 8 to 9 GB/s.",
    )
    assert trend_of(found).tracks[0].bounds == (8.0, 8.0, 9.0)


def test_a_requirement_that_measures_something_else_is_not_one_series(tmp_path: Path) -> None:
    write_night(tmp_path, NightPlan(1, metric="night.other_rate"))
    track = trend_of(history(tmp_path, [NightPlan(2), NightPlan(3)])).tracks[0]
    assert len(track.values) == 2
    assert "measured something else" in track.left_out[0].reason


def test_units_are_converted(tmp_path: Path) -> None:
    write_night(tmp_path, NightPlan(1, unit="MB/s"))
    found = history(tmp_path, [NightPlan(2)])
    assert [night.rows[0].measured for night in found.nights] == pytest.approx([10000.0, 10.0])
    track = trend_of(found).tracks[0]
    assert track.values == pytest.approx((10.0, 10.0))
    assert track.intervals[0] == pytest.approx((9.9, 10.1))
    assert track.bounds == pytest.approx((9.0, 9.0))


def test_a_difference_of_temperatures_that_was_recorded_in_degc_goes_on_in_kelvin(tmp_path: Path) -> None:
    found = history(tmp_path, [NightPlan(1), NightPlan(2)])
    nights = [
        replace(
            night,
            verdict=structs.replace(
                night.verdict, requirements=[structs.replace(row, unit=unit) for row in night.verdict.requirements]
            ),
        )
        for night, unit in zip(found.nights, ("degC", "K"), strict=True)
    ]
    track = trend_of(replace(found, nights=tuple(nights))).tracks[0]
    assert (track.values, track.bounds, track.row.unit) == ((10.0, 10.0), (9.0, 9.0), "K")
    assert list(_notes(nights)) == []
    assert len(list(_notes(nights[::-1]))) == 1  # K is never read as degC


def test_no_run_of_the_candidate_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(
        BenchError, match=r"no finished run of scenario 'x' of candidate 'server-a'\. Candidates found: server-a"
    ):
        history(tmp_path, [NightPlan(1)], scenario="x")
    with pytest.raises(BenchError, match="is no folder"):
        read_all([tmp_path / "nowhere"])


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Trend:
    plans = changed(season(), 23, rate=8.7, governor="powersave", sensors=("block_device", "smart"))
    return trend_of(history(tmp_path_factory.mktemp("season"), plans))


def test_a_step_is_said_to_coincide_with_what_changed_there(told: Trend) -> None:
    track = told.tracks[0]
    assert track.warmth is not None
    assert (track.warmth.sensor, track.warmth.depends) == (INLET, True)
    (step,) = [one for one in track.adjusted_steps if one.step.index == 14]
    assert step.worse
    assert step.changes == (Change("drive firmware", "of S1", "1.0", "1.1"),)


def test_the_last_good_run_and_what_changed_since(told: Trend) -> None:
    assert told.history.last_good is not None
    assert told.history.last_good.id == NightPlan(22).run_id
    assert [(one.group, one.name, one.before, one.after) for one in told.since_good] == [
        ("tuning", "cpu-governor", "performance", "powersave"),
        ("sensor", "ipmi_sensor", "ok", None),
    ]


def test_latency_drifts_towards_its_bound(told: Trend) -> None:
    line = told.tracks[1].drift
    assert line is not None
    assert line.trend
    assert line.slope == pytest.approx(0.08, abs=0.02)


def test_a_trend_is_the_same_again(told: Trend) -> None:
    assert trend_of(told.history) == told


def test_drives_are_known_by_serial_and_not_by_the_kernels_name(tmp_path: Path) -> None:
    one, two = (
        read_night(write_night(tmp_path, plan)) for plan in (NightPlan(1), replace(NightPlan(2), firmware="2.0"))
    )
    assert differences(one.facts, two.facts) == [Change("drive firmware", "of S1", "1.0", "2.0")]
    assert differences(one.facts, one.facts) == []


def test_the_inlet_is_found_among_the_bmcs_sensors(tmp_path: Path) -> None:
    assert read_night(write_night(tmp_path, NightPlan(1, inlet=23.5))).temperatures == {INLET: 23.5}
    assert read_night(write_night(tmp_path, NightPlan(2))).temperatures == {}


def test_a_folder_whose_name_is_no_utf8_is_left_out_by_name(tmp_path: Path) -> None:
    """No document can hold the name; the run beside it counts."""
    sound = write_night(tmp_path, NightPlan(1))
    write_night(tmp_path, NightPlan(2), os.fsdecode(b"night\xe9"))
    nights, broken = read_all([tmp_path])
    assert [night.path for night in nights] == [sound]
    assert [(one.name, "no UTF-8" in one.reason) for one in broken] == [("night\\udce9", True)]


def test_who_finds_no_run_is_told_what_was_left_out(tmp_path: Path) -> None:
    bundle = write_night(tmp_path, NightPlan(1))
    (bundle / "run.json").unlink()
    (bundle / "run.json").symlink_to("run.json")
    nights, broken = read_all([bundle])
    with pytest.raises(
        BenchError, match=rf"Candidates found: none\. 1 left out, the first: {bundle.name}: cannot be read"
    ):
        history_of(nights, broken, "server-a")
