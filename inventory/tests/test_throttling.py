"""Throttling needs a drive's own word, and a drive that cannot speak is never said not to throttle."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dip_tracks import COUNT, HOT, dipped, errors

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "studies"))
from daq_bench.audit.good import small_run
from series_factory import BACKGROUNDS, white
from tracks_factory import BEGIN_S, DRIVE, LOG_PERIOD_S, drive, hazard, scenery, track

from daq_bench.bench_model.behaviour import smart_facts
from daq_bench.bench_model.behaviour.dip_documents import Scenery, dips_document, throttling_document
from daq_bench.bench_model.behaviour.load_windows import Window
from daq_bench.bench_model.behaviour.throttling import COUNTERS, STATUS
from daq_bench.bench_model.bundle.telemetry_tracks import Track


def test_a_dip_alone_is_no_throttling() -> None:
    document = throttling_document(scenery(dipped()))
    assert document["summary"] == {"episodes": 0, "time_to_onset_s": None, "lost_bytes": 0}
    assert document["watched"] == ["temperature", "critical_warning", "counter"]


@pytest.mark.parametrize(
    ("signals", "confidence"),
    [
        ({"temperature": True}, "medium"),
        ({"warning": True}, "medium"),
        ({"counter": True}, "medium"),
        ({"temperature": True, "warning": True}, "high"),
        ({"temperature": True, "warning": True, "counter": True}, "high"),
    ],
)
def test_what_the_drive_says_with_the_dip_makes_it_throttling(signals: dict[str, bool], confidence: str) -> None:
    (episode,) = throttling_document(scenery(dipped(), drive(COUNT, HOT, **signals)))["episodes"]
    assert episode["confidence"] == confidence
    assert len(episode["signals"]) == len(signals)
    assert len(episode["silent"]) == 3 - len(signals)
    assert episode["time_to_onset_s"] == pytest.approx(300, abs=1)
    assert episode["depth_fraction"] == pytest.approx(0.5, abs=0.02)
    assert episode["ended"]


def test_a_warning_before_the_dip_is_not_of_it() -> None:
    """It is an episode of its own, by the drive's word alone."""
    document = throttling_document(scenery(dipped(), drive(COUNT, (100.0, 200.0), temperature=True, warning=True)))
    (episode,) = document["episodes"]
    assert (episode["kind"], episode["time_to_onset_s"], episode["lost_bytes"]) == ("drive", 100.0, None)


def test_a_hot_drive_that_keeps_its_rate_is_an_episode_by_its_own_word_and_the_contradiction_is_said() -> None:
    document = throttling_document(scenery(None, drive(COUNT, HOT, temperature=True)))
    assert document["summary"] == {"episodes": 1, "time_to_onset_s": 300.0, "lost_bytes": None}
    (said,) = document["contradictions"]
    assert said.startswith(f"{DRIVE} at 78 degC, its warning limit is 75 degC under thermal: soak")
    assert "the rate shows no dip" in document["reasons"]["throttling.lost_bytes"]


def recurring() -> np.ndarray[Any, np.dtype[np.float64]]:
    """20 s at half of the rate every 60 s, fifteen times."""
    series = white(np.random.default_rng(1), 900)
    for start in range(40, 900, 60):
        series[start : start + 20] *= 0.5
    return series


def tmt(*values: float, period_s: float = LOG_PERIOD_S) -> Track:
    """TMT1 transitions, one reading per period."""
    return Track(BEGIN_S + period_s * np.arange(len(values)), np.array(values))


TMT1 = ("smart", DRIVE, "thermal_management_1_transitions")
FIFTEEN = {
    TMT1: track(lambda time: 7 + max(0, (time + 20) // 60), 900, LOG_PERIOD_S),
    ("smart", DRIVE, "thermal_management_1_time_s"): track(lambda time: 50 + 291 * time / 890, 900, LOG_PERIOD_S),
}


def test_recurring_throttles_that_the_drive_counts_are_episodes_one_by_one() -> None:
    document = throttling_document(scenery(recurring(), {**drive(900), **FIFTEEN}))
    assert document["summary"]["episodes"] == 15
    kinds = [one["kind"] for one in document["episodes"]]
    assert kinds == [*["recurring"] * 14, "dip"]  # the last one has not ended


def test_a_throttle_in_the_targets_rhythm_is_one_none_the_less() -> None:
    """Four seconds of 40 cost 5 %, a pattern and no dip; with the drive's counter they are throttling."""
    series = BACKGROUNDS["flush of 4 s every 40 s, 50 %"](np.random.default_rng(1), 600)
    counted = {TMT1: track(lambda time: 7 + time // 40, 600, LOG_PERIOD_S)}
    episodes = throttling_document(scenery(series, {**drive(600), **counted}))["episodes"]
    assert len(episodes) == 14  # one began with the load
    assert throttling_document(scenery(series))["summary"]["episodes"] == 0


@pytest.mark.parametrize("key", [*COUNTERS, STATUS])
def test_any_counter_or_status_that_speaks_is_an_episode_under_an_even_rate(key: tuple[str, str]) -> None:
    said = {(key[0], DRIVE, key[1]): track(lambda time: 15 * (time >= 300), COUNT, LOG_PERIOD_S)}
    document = throttling_document(scenery(None, said))
    (episode,) = document["episodes"]
    assert (document["summary"]["episodes"], episode["kind"]) == (1, "drive")
    assert 280 <= episode["time_to_onset_s"] <= 300


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([7.0] * 30 + [0.0] * 30, "went backwards"),
        ([7.0] * 30 + [NAN] + [7.0] * 29, "no number"),
        ([INF] * 60, "no number"),
        ([2.0**32 - 1] * 60, "end of its range"),
        ([0.0, 7.0, 0.0] * 20, None),
    ],
)
def test_a_counter_that_contradicts_itself_never_says_none(values: list[float], words: str | None) -> None:
    """Cool temperatures do not stand in for it; growth before it broke is growth."""
    document = throttling_document(scenery(None, {TMT1: tmt(*values)}))
    if words is None:
        assert document["summary"]["episodes"] == 1
        return
    assert document["summary"]["episodes"] is None
    assert words in document["reasons"]["throttling.episodes"]


def without(*measurements: str) -> Scenery:
    scene = scenery()
    scene.tracks.found = {key: one for key, one in scene.tracks.found.items() if key[0] not in measurements}
    return scene


def test_a_cool_drive_without_counters_did_not_throttle() -> None:
    assert throttling_document(without("smart"))["summary"]["episodes"] == 0


def test_a_counter_that_is_known_to_count_answers_without_a_temperature() -> None:
    assert throttling_document(without("temperature"))["summary"]["episodes"] == 0


@pytest.mark.parametrize(
    ("tracks", "words"),
    [
        ({("temperature", DRIVE, "warning_degc"): track(lambda _: NAN, COUNT)}, "no temperature together with"),
        ({("temperature", DRIVE, "warning_degc"): track(lambda _: 1e4, COUNT)}, "no temperature together with"),
        ({("temperature", DRIVE, "temperature_degc"): track(lambda _: NAN, COUNT)}, "no number"),
        ({("temperature", DRIVE, "temperature_degc"): track(lambda _: 50, 100)}, "was not read for 501 s"),
        ({("smart", DRIVE, "critical_warning"): track(lambda _: NAN, COUNT, LOG_PERIOD_S)}, "critical warning"),
    ],
)
def test_a_drive_that_is_not_seen_to_stay_cool_has_no_number(
    tracks: dict[tuple[str, str, str], Track], words: str
) -> None:
    """Its counter stands at 0, as one that it does not keep would."""
    idle = {("smart", DRIVE, "thermal_management_1_time_s"): track(lambda _: 0, COUNT, LOG_PERIOD_S)}
    document = throttling_document(scenery(None, {**idle, **tracks}))
    assert document["summary"]["episodes"] is None
    assert words in document["reasons"]["throttling.episodes"]


def test_every_drive_of_the_target_must_answer() -> None:
    scene = scenery()
    scene.run.target.drives.append(small_run.drive("nvme1n1"))
    document = throttling_document(scene)
    assert document["summary"]["episodes"] is None
    assert "nvme1n1" in document["reasons"]["throttling.episodes"]
    scene.run.target.drives.clear()
    assert throttling_document(scene)["summary"]["episodes"] is None


def test_without_any_sense_of_heat_nothing_is_said() -> None:
    document = throttling_document(without("temperature", "smart"))
    assert document["summary"]["episodes"] is None
    assert "cannot be told" in document["reasons"]["throttling.episodes"]


def smart(**counts: Any) -> dict[str, Any]:
    return {"serial_number": "S1", "nvme_smart_health_information_log": counts}


TMT1_COUNT = "thermal_mgmt_temperature_1_transition_count"  # smartctl's own name (smartmontools/smartmontools#583)


def of_smartctl(**counts: Any) -> dict[str, Any]:
    return {**smart(**counts), "smartctl": {"version": [8, 0]}}


def attribute(value: Any, text: str | None = None) -> dict[str, Any]:
    raw = {"value": value, **({"string": text} if text else {})}
    return {"ata_smart_attributes": {"table": [{"name": "Thermal_Throttling_Cnt", "raw": raw}, {"name": None}]}}


@pytest.mark.parametrize(
    ("before", "after", "episodes"),
    [
        (smart(warning_temp_time=3), smart(warning_temp_time=3), 0),
        (smart(warning_temp_time=3), smart(warning_temp_time=4), 1),
        (
            smart(thermal_mgmt_temperature_1_transition_count=0),
            smart(thermal_mgmt_temperature_1_transition_count=15),
            1,
        ),
        (smart(**{TMT1_COUNT: 3}), smart(**{TMT1_COUNT: 4}), 1),
        (
            of_smartctl(warning_temp_time=3),
            of_smartctl(warning_temp_time=3, **{TMT1_COUNT: 4}),
            1,
        ),  # none while all are 0
        (smart(warning_temp_time=3), smart(warning_temp_time=3, **{TMT1_COUNT: 4}), None),  # perhaps another smartctl
        (of_smartctl(), of_smartctl(**{TMT1_COUNT: 4}), None),  # no log before
        (smart(critical_comp_time=4), smart(critical_comp_time=3), None),
        (smart(warning_temp_time=3), smart(), None),
        (smart(warning_temp_time=3), smart(warning_temp_time=None), None),
        (smart(warning_temp_time=NAN), smart(warning_temp_time=NAN), None),
        (smart(warning_temp_time="3"), smart(warning_temp_time="3"), None),
        (smart(warning_temp_time=True), smart(warning_temp_time=True), None),
        (smart(warning_temp_time=3), None, None),
        # a drive that answered with a page of zeros once: its life's minutes are not this run's
        (smart(available_spare=0, warning_temp_time=0), smart(available_spare=100, warning_temp_time=1234), None),
        (smart(available_spare=100, warning_temp_time=3), smart(available_spare=0, warning_temp_time=0), None),
        (attribute(5), attribute(6), 1),
        # Intel's and Solidigm's raw24/raw32:04321 in smartctl's drivedb.h, percent now / times: the whole number falls as the status ends
        (attribute(5 << 32 | 7, "5/7"), attribute(8, "0/8"), 1),
        (attribute(7, "0/7"), attribute(5 << 32 | 7, "5/7"), 0),
        (attribute(6), attribute(5), 0),
        (attribute(6), attribute([]), None),
        ({"nvme_smart_health_information_log": 3}, {"ata_smart_attributes": {"table": 4}}, 0),
    ],
)
def test_the_readings_before_and_after_the_run_are_evidence(before: Any, after: Any, episodes: int | None) -> None:
    scene = replace(scenery(), facts={DRIVE: smart_facts.compared(before, after)})
    document = throttling_document(scene)
    assert document["summary"]["episodes"] == episodes
    if episodes:
        (one,) = document["episodes"]
        assert (one["workload"], one["time_to_onset_s"]) == (None, None)


def test_the_readings_of_a_drive_are_found_by_serial_number_or_by_name(tmp_path: Path) -> None:
    (tmp_path / "facts").mkdir()
    drives = [
        small_run.drive(name, serial=serial) for name, serial in (("nvme0n1", "S1"), ("sda", None), ("sdb", "S9"))
    ]
    assert smart_facts.of_bundle(tmp_path, drives) == {}
    for name, minutes in ((smart_facts.BEFORE, 3), (smart_facts.AFTER, 5)):
        rows = [
            {"device": "/dev/nvme3", "data": smart(warning_temp_time=minutes)},
            {"device": "/dev/sda", "data": attribute(minutes)},
            {"device": "/dev/sdb", "data": {**attribute(minutes), "serial_number": "another"}},
            {"device": "/dev/sdc", "data": None},
            None,
        ]
        (tmp_path / name).write_text(json.dumps({"devices": rows}), encoding="utf-8")
    found = smart_facts.of_bundle(tmp_path, drives)
    assert {name: health.grown[0][1] for name, health in found.items()} == {"nvme0n1": 2, "sda": 2}


def test_a_counter_that_grew_outside_of_the_loads_is_an_episode_at_a_known_time() -> None:
    scene = scenery(
        None, {TMT1: Track(BEGIN_S + np.array([-400.0, -300.0, 0.0, 300.0, 600.0]), np.array([1.0, 3, 3, 3, 3]))}
    )
    document = throttling_document(scene)
    (episode,) = document["episodes"]
    assert (episode["workload"], episode["start_utc_s"]) == (None, BEGIN_S - 400)


def test_a_processor_that_throttles_is_told_and_is_no_drive() -> None:
    document = throttling_document(scenery(None, {("cpu_throttle", "1", "core_throttle_count"): errors(0.0, 3.0)}))
    assert document["summary"]["episodes"] == 0
    assert document["processors"] == [
        "the cores of processor 1 counted throttling for heat 300 times under thermal: soak"
    ]


def test_a_soak_that_is_slow_from_its_first_second_is_known_by_the_load_after_cooling() -> None:
    slow = white(np.random.default_rng(1), COUNT) * 0.5
    scene = scenery(slow, drive(COUNT, (0.0, float(COUNT)), counter=True))
    fast = Window(
        "thermal", "after cooling", BEGIN_S + 700, BEGIN_S + 760, "", tuple(white(np.random.default_rng(2), 60))
    )
    scene.windows.append(fast)
    (episode,) = throttling_document(scene)["episodes"]
    assert (episode["kind"], episode["start_s"], episode["ended"]) == ("from the start", 0.0, False)
    assert episode["depth_fraction"] == pytest.approx(0.5, abs=0.03)
    # Records of daqwriter's may have been asked for different rates.
    scene.windows[:] = [replace(one, workload="daqwriter") for one in scene.windows]
    assert [dip for window in dips_document(scene)["windows"] for dip in window["dips"]] == []


def test_a_load_that_was_held_to_a_rate_is_compared_with_it() -> None:
    scene = scenery(white(np.random.default_rng(1), COUNT) * 0.5)
    assert dips_document(scene)["summary"]["dips"] == 0
    scene.run.scenario.parameters["workloads"] = {"thermal": {"rate_size": "5GB"}}
    (dip,) = dips_document(scene)["windows"][0]["dips"]
    assert dip["kind"] == "from the start"


def test_recovery_counts_from_the_release_of_what_was_commanded() -> None:
    events = [hazard(300, "drive is held"), hazard(390, "every hazard is released", released=True)]
    (episode,) = throttling_document(scenery(dipped(), drive(COUNT, HOT, warning=True), events))["episodes"]
    assert episode["recovery_s"] == pytest.approx(10, abs=1)
