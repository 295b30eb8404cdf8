"""The thermal soak's conclusions: equilibrium, onset within the record, and what the record would have lost, worked by hand."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import convert

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "studies"))
from series_factory import approach, white, with_dip
from tracks_factory import BEGIN_S, DRIVE, drive, scenery, track

from daq_bench.bench_model.behaviour import smart_facts
from daq_bench.bench_model.behaviour.dip_documents import Scenery
from daq_bench.bench_model.behaviour.equilibrium import WIDTH_MAX_K, asymptote, level_at, settled
from daq_bench.bench_model.behaviour.service_curve import Loss, constant_rate_loss, worst_record
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.workloads.plan import Plan
from daq_bench.bench_model.workloads.thermal import soak as thermal_soak
from daq_bench.bench_model.workloads.thermal.document import Thermal
from daq_bench.bench_model.workloads.thermal.model import left_for_record

COUNT = 600
INVENTORY = Path(__file__).resolve().parents[1]


LOAD = {
    "block_bytes": 4096,
    "io_depth": 1,
    "file_bytes": 4096,
    "rate_limit_bytes_per_s": None,
    "condition": "overwrite",
}


def concluded(thermal: dict[str, Any], scene: Scenery) -> dict[str, Any]:
    return as_document(thermal_soak.document(convert(thermal, Thermal), scene))


def thermal(**changes: Any) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "tool": "fio",
        "tool_version": "fio-3.33",
        "soak": {
            "name": "soak",
            "stopped_by": "time limit",
            "start_utc_s": BEGIN_S,
            "end_utc_s": BEGIN_S + COUNT,
            "bytes_written": 1,
            "throughput_bytes_per_s": 1.0,
        },
        "rule": {
            "window_s": 300,
            "slope_max_k_per_min": 0.2,
            "min_s": 1,
            "max_s": 1,
            "hold_s": 1,
            "text": "the line is level",
        },
        "sustained": [],
        "hazards": [],
        "record": {"demand_bytes_per_s": 4.5e9, "duration_s": 100},
        "load": LOAD,
        "cool_down": {"start_utc_s": BEGIN_S + COUNT, "end_utc_s": BEGIN_S + COUNT + 60},
        "fan_sweep": {"status": "not asked", "reason": None, "points": []},
        **changes,
    }


def test_a_buffer_takes_the_shortfall_until_it_is_full() -> None:
    """10 offered, 8 taken for 5 s: 10 wait; a buffer of 6 holds 6 and loses 4. Lost data are not caught up."""
    loss = worst_record([8.0] * 5 + [14.0] * 2, 1.0, 10.0, 7.0, 6.0)
    assert loss == Loss(0.0, 10.0, 4.0)
    held = worst_record([8.0] * 5, 1.0, 10.0, 5.0, 10.0)
    assert held is not None
    assert held.lost_bytes == 0.0


def test_the_worst_record_is_found_wherever_it_begins() -> None:
    worst = worst_record([10.0] * 20 + [4.0] * 5 + [10.0] * 20, 1.0, 10.0, 10.0, 12.0)
    assert worst is not None
    assert (worst.backlog_bytes, worst.lost_bytes) == (30.0, 18.0)
    assert 15 <= worst.start_s <= 20
    assert worst_record([1.0] * 5, 1.0, 10.0, 10.0, 0.0) is None


def one_by_one(rates: list[float], step_s: float, demand: float, length: int, buffer: float) -> Loss:
    """The same, record by record and step by step, as the definition has it."""
    worst = Loss(0.0, 0.0, 0.0)
    for start in range(len(rates) - length + 1):
        waiting = held = lost = most = 0.0
        for rate in rates[start : start + length]:
            waiting = max(0.0, waiting + (demand - rate) * step_s)
            most = max(most, waiting)
            held = max(0.0, held + (demand - rate) * step_s)
            lost += max(0.0, held - buffer)
            held = min(held, buffer)
        if (lost, most) > (worst.lost_bytes, worst.backlog_bytes):
            worst = Loss(start * step_s, most, lost)
    return worst


@pytest.mark.parametrize("seed", range(40))
def test_all_records_at_once_lose_what_each_loses_by_itself_to_the_last_digit(seed: int) -> None:
    """Rates that scatter, that repeat (so that several records lose as much: the first counts), that are 0, not known or beyond measure."""
    rng = np.random.default_rng(seed)
    rates = rng.normal(9e9, 2e9, rng.integers(1, 300)) if seed % 2 else rng.choice([8e9, 9e9, 10e9], 120)
    for value in (np.nan, np.inf, 0.0)[: seed % 4]:
        rates[rng.integers(0, len(rates), 3)] = value
    step_s, length = float(rng.choice([0.1, 1.0])), int(rng.integers(1, len(rates) + 1))
    for buffer in (0.0, 1.3e9, 64e9, np.inf):
        found = worst_record(rates.tolist(), step_s, 9.243e9, length * step_s, buffer)
        assert found == one_by_one(rates.tolist(), step_s, 9.243e9, length, buffer)


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
    found = concluded(thermal(), scenery())
    assert (found["throttled"], found["onsets_in_record"], found["record"]["lost_bytes"]) == (False, 0, 0.0)
    assert (found["equilibrium_degC"], found["headroom_degC"]) == (None, 20.0)
    assert found["reasons"].keys() == {"thermal.equilibrium_temperature"}
    assert "go on for 20 min at least" in found["reasons"]["thermal.equilibrium_temperature"]


@pytest.mark.parametrize(("start", "within"), [(50, 1), (300, 0)])
def test_throttling_gives_onset_depth_and_the_records_loss(start: int, within: int) -> None:
    rates = with_dip(white(np.random.default_rng(3), COUNT), start, COUNT - start, 0.5)
    hot = drive(COUNT, (float(start), float(COUNT)), temperature=True, warning=True)
    found = concluded(thermal(), scenery(rates, hot))
    assert found["throttled"]
    assert found["onsets_in_record"] == within
    assert found["onset"]["depth_fraction"] == pytest.approx(0.5, abs=0.03)
    assert found["record"]["at_throttled_rate"]["backlog_bytes"] == pytest.approx(2e9 * 100, rel=0.03)
    assert found["record"]["lost_bytes"] == pytest.approx(200e9 - 10e9, rel=0.05)
    assert found["headroom_degC"] == -3.0


def test_a_soak_shorter_than_the_record_has_no_value_and_says_so() -> None:
    short = scenery(white(np.random.default_rng(4), 60))
    found = concluded(thermal(), short)
    assert found["onsets_in_record"] is None
    assert "says nothing of a record of 100 s" in found["reasons"]["thermal.onsets_in_record"]
    assert found["record"]["lost_bytes"] is None
    assert "shorter than the record" in found["reasons"]["thermal.record_lost_bytes"]


def test_a_load_that_was_held_back_does_not_show_what_the_target_can_take() -> None:
    found = concluded(thermal(load={**LOAD, "rate_limit_bytes_per_s": 10**9}), scenery())
    assert found["record"]["lost_bytes"] is None
    assert "held below the record's demand" in found["reasons"]["thermal.record_buffer_needed"]


def test_a_missing_sensor_leaves_its_metrics_without_a_value() -> None:
    """Null with its reason: the verdict makes it INADMISSIBLE, never PASS."""
    scene = scenery()
    scene.tracks.found = {key: one for key, one in scene.tracks.found.items() if key[0] not in ("temperature", "smart")}
    found = concluded(thermal(), scene)
    assert (found["headroom_degC"], found["equilibrium_degC"], found["throttled"]) == (None, None, None)
    assert found["reasons"]["thermal.temperature_headroom"] == f"no temperature of {DRIVE}"
    assert found["onsets_in_record"] is None


def test_a_sas_drive_has_its_temperatures_from_its_health_log() -> None:
    """The kernel reads none, and the log is read every 10 s. A soak of such drives could not pass."""
    scene = scenery()
    found = scene.tracks.found
    for name in ("temperature_degc", "warning_degc", "critical_degc"):
        quick = found.pop(("temperature", DRIVE, name))
        found["smart_temperature", DRIVE, name] = replace(quick, times_s=quick.times_s[::10], values=quick.values[::10])
    made = concluded(thermal(), scene)
    assert (made["headroom_degC"], made["throttled"], made["onsets_in_record"]) == (20.0, False, 0)
    assert made["drives"][DRIVE]["critical_degC"] == 85.0
    assert made["recovery"] is not None


def test_the_kernels_thermometer_stands_before_the_health_logs() -> None:
    tracks = scenery().tracks
    tracks.found["smart_temperature", DRIVE, "temperature_degc"] = track(lambda _: 99, COUNT)
    tracks.found["smart_temperature", DRIVE, "warning_degc"] = track(lambda _: 75, COUNT)
    assert tracks.thermometer(DRIVE) == "temperature"
    del tracks.found["temperature", DRIVE, "warning_degc"]
    assert tracks.thermometer(DRIVE) == "smart_temperature"  # a reading without its limit says less
    del tracks.found["smart_temperature", DRIVE, "warning_degc"]
    assert tracks.thermometer(DRIVE) == "temperature"
    assert tracks.thermometer("sdz") == "temperature"


@pytest.mark.parametrize("minutes", [15, 30, 60])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_asymptote_lies_in_its_interval_or_none_is_given(minutes: int, noise: float) -> None:
    """Readings of 1 K; five lengths of the load, two seeds each: the full table is in docs/thermal.md."""
    for seed in range(2):
        top, whole = approach(np.random.default_rng(seed), 60 * minutes, 14400, noise)
        for length in (1800, 2700, 5400, 10800, 14400):
            found = asymptote(whole, 0.0, length)
            if found.interval is None:
                assert (found.degc, found.more_s is not None) == (None, True)
                assert "go on for" in found.reason
            else:
                assert found.interval[0] <= top <= found.interval[1]
                assert found.interval[1] - found.interval[0] <= WIDTH_MAX_K
        assert found.interval is not None  # four hours are enough for each


def test_a_slope_that_is_nearly_level_is_no_equilibrium() -> None:
    """The old rule: 0.2 K per minute over 300 s, which an approach of an hour meets 10 K below its end."""
    _, whole = approach(np.random.default_rng(1), 3600, 7200, 0.0)
    level = level_at(whole, 4800, 300, 0)
    assert settled(level, 0.2)
    assert asymptote(whole, 0.0, 4800).interval is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda values: np.where(np.arange(len(values)) == 900, np.nan, values), "no number"),
        (lambda values: np.where(np.arange(len(values)) == 900, np.inf, values), "no number"),
        (lambda values: values[:50], "fewer than"),
        (lambda values: values[:5000], "was not read for"),
    ],
)
def test_readings_that_cannot_be_fitted_give_no_asymptote(change: Any, words: str) -> None:
    _, whole = approach(np.random.default_rng(1), 900, 7200, 0.3)
    values = change(whole.values)
    found = asymptote(replace(whole, times_s=whole.times_s[: len(values)], values=values), 0.0, 7200)
    assert (found.degc, found.interval) == (None, None)
    assert words in found.reason


def test_a_long_soak_states_its_asymptote_with_the_interval_that_th_05_is_judged_by() -> None:
    top, whole = approach(np.random.default_rng(1), 900, 7200, 0.3)
    scene = scenery(
        white(np.random.default_rng(1), 7200),
        {("temperature", DRIVE, "temperature_degc"): replace(whole, times_s=whole.times_s + BEGIN_S), **LIMITS},
    )
    found = concluded(thermal(), scene)
    low, high = found["equilibrium_interval_degC"]
    assert low <= found["equilibrium_degC"] <= high
    assert low <= top <= high
    metric = load_metrics(INVENTORY / "metrics.yml")["thermal.equilibrium_temperature"]
    assert (metric.interval, metric.samples) == ("[equilibrium_interval_degC]", None)


LIMITS = {("temperature", DRIVE, "warning_degc"): track(lambda _: 80, 7200)}
TMT1 = ("smart", DRIVE, "thermal_management_1_transitions")


@pytest.mark.parametrize(("at_s", "within"), [(50, 1), (95, 1), (300, 0)])
def test_what_the_drive_counted_under_an_even_rate_is_an_onset(at_s: float, within: int) -> None:
    found = concluded(thermal(), scenery(None, {TMT1: track(lambda time: 7 + (time >= at_s), COUNT, 10.0)}))
    assert (found["throttled"], found["onset"], found["onsets_in_record"]) == (True, None, within)
    assert found["drives_word"][0]["kind"] == "counter"


def test_what_was_counted_at_an_unknown_time_leaves_the_record_undecided() -> None:
    scene = replace(
        scenery(), facts={DRIVE: smart_facts.Health(grown=(("warning_temperature_time_min", 1.0, "1 more minute"),))}
    )
    found = concluded(thermal(), scene)
    assert found["onsets_in_record"] is None
    assert "at a time that nobody knows" in found["reasons"]["thermal.onsets_in_record"]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_temperature_that_is_no_number_has_no_headroom(value: float) -> None:
    hot = {("temperature", DRIVE, "temperature_degc"): track(lambda time: value if time == 300 else 50, COUNT)}
    found = concluded(thermal(), scenery(None, hot))
    assert (found["headroom_degC"], found["equilibrium_degC"]) == (None, None)
    limit = {("temperature", DRIVE, "warning_degc"): track(lambda time: value if time == 300 else 75, COUNT)}
    assert concluded(thermal(), scenery(None, limit))["headroom_degC"] is None


NEED = 4.5e9
RECORD = {"links": 1, "superchunk_bytes": 1, "superchunk_rate_hz": NEED}


def left(own: list[float] | None, taken: list[float] | None = None, **record: Any) -> list[Any]:
    """Returns `left_for_record` of a load that wrote `own`, where the target's counters show `taken` (None: 5 GB/s throughout)."""
    taken = [5e9] * 300 if taken is None else taken
    load: dict[str, Any] = {"name": "soak", "start_utc_s": BEGIN_S, "end_utc_s": BEGIN_S + 300}
    if own is not None:
        load["own"] = [[BEGIN_S, 5e9], *([BEGIN_S + at + 1, rate] for at, rate in enumerate(own))]
    beside: dict[str, Any] = {
        "soak": {"step_s": 1.0, "throughput_bytes_per_s_samples": taken},
        "record": {
            "demand_bytes_per_s": NEED,
            "duration_s": 100,
            "buffer_bytes": 6e9,
            "worst_in_soak": {"lost_bytes": 0.0},
            **record,
        },
    }
    plan = Plan("thermal", {"record": RECORD}, 1, 1, 1.0, None, ())
    return list(left_for_record(plan, {"sustained": [load]}, beside))


def test_what_others_wrote_is_no_room_for_a_record() -> None:
    own = [5e9] * 100 + [4e9] * 100 + [5e9] * 100
    (text,) = left(own)
    assert text == (
        "others wrote 1 GB/s to the target beside the soak, in the 100 s from 100 s on: of what they left a record would have lost 44 GB"
    )


@pytest.mark.parametrize(
    ("own", "taken"),
    [
        (None, None),  # the load states nothing of its own
        ([], None),
        ([4e9] * 20, None),  # shorter than a record
        ([4.9e9] * 300, None),  # others wrote, and left enough
        ([5e9] * 150 + [0.0] + [5e9] * 149, None),  # one second: the buffer holds it
        ([4e9] * 300, [4e9] * 300),  # nobody else wrote: the counters show the loss themselves
        ([4e9] * 300, [4.02e9] * 300),  # two counts of the same bytes
        ([4e9] * 300, []),
    ],
)
def test_a_load_that_had_the_target_to_itself_is_left_to_the_counters(
    own: list[float] | None, taken: list[float] | None
) -> None:
    assert left(own, taken) == []


def test_a_load_that_was_held_below_the_demand_shows_nothing_of_others() -> None:
    assert left([4e9] * 300, worst_in_soak=None) == []


def test_a_mirror_counted_twice_is_no_room_for_a_record_either() -> None:
    """The sum over a mirror's drives is twice what a record would get."""
    (text,) = left([4e9] * 300, [8e9] * 300)
    assert "would have lost 44 GB" in text
