"""A temperature reading that never moves is no evidence where the drive's temperature must have moved, and counts where it need not."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from daq_bench.audit.good.small_run import drive, some_run, target

from daq_bench.bench_model.bundle import telemetry_tracks
from daq_bench.bench_model.bundle.telemetry_tracks import Track
from daq_bench.bench_model.documents.struct import as_document, read
from daq_bench.bench_model.documents.telemetry import SensorCoverage
from daq_bench.bench_model.evidence import sensor_coverage
from daq_bench.bench_model.evidence.sensor_coverage import RISE_K_MIN, least_rise_k
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import load_requirements
from daq_bench.bench_model.verdict.verdict import judge

sys.path.insert(0, str(Path(__file__).parent))
from evidence_factory import evidence

INVENTORY = Path(__file__).resolve().parents[1]
FIRST, SECOND = "nvme0n1", "nvme1n1"
IDLE_S, LOAD_S, AFTER_S = 10, 300, 10
FULL, QUARTER = 9.24, 2.31  # GB/s
Degrees = Callable[[int], float | None]  # None: nothing was read in that second


def still(_second: int) -> float:
    return 38.0


def warming(by: float) -> Degrees:
    """Warms by so many degrees under the load, in steps of whole ones."""
    return lambda second: 38.0 + round(by * min(1.0, max(0, second - IDLE_S) / 100))


def told(
    folder: Path,
    degrees: Mapping[str, Degrees],
    gb_per_s: float = FULL,
    load_s: int = LOAD_S,
    more: Callable[[int], list[str]] = lambda _: [],
    models: Mapping[str, str] | None = None,
) -> SensorCoverage:
    """The document of a bundle in which every drive writes at this rate for `load_s`, after idle seconds and before others."""
    lines = []
    for second in range(IDLE_S + load_s + AFTER_S):
        written = round(gb_per_s * 1e9 * min(load_s, max(0, second - IDLE_S)))
        rows = [f"block_device,device={drive} written_bytes={written}i,read_bytes=0i" for drive in (FIRST, SECOND)]
        rows += [
            f"temperature,device={drive},label=Composite {_field(of(second))}warning_degc=80.0"
            for drive, of in degrees.items()
        ]
        lines += [f"{row} {second * 10**9}\n" for row in rows + more(second)]
    (folder / "telemetry").mkdir(exist_ok=True)
    (folder / "telemetry" / "points.lp").write_text("".join(lines), encoding="utf-8")
    (folder / "telemetry" / "summary.json").write_text(
        json.dumps({"collectors": [{"name": "temperature", "period_s": 1.0}]}), encoding="utf-8"
    )
    drives = [drive(name, (models or {}).get(name, "SIM X100")) for name in degrees]
    return sensor_coverage.of_bundle(folder, some_run(target=target(*drives)))


def _field(degrees: float | None) -> str:
    """Line protocol has no null: a missing reading leaves its field out."""
    return "" if degrees is None else f"temperature_degc={degrees},"


def outcome(document: SensorCoverage, profile: str = "dune-snb") -> tuple[str, list[str]]:
    run = evidence()
    run.results["results/sensor_coverage.json"] = as_document(document)
    metrics = load_metrics(INVENTORY / "metrics.yml")
    verdict = judge(run, load_requirements(INVENTORY / "requirements" / f"{profile}.yml", metrics), metrics)
    return verdict.outcome, verdict.reasons


def test_a_reading_that_never_moves_under_the_whole_load_is_no_evidence(tmp_path: Path) -> None:
    document = told(tmp_path, {FIRST: still})
    (text,) = document.unmoved
    assert text.startswith(
        f"The temperature reading of drive {FIRST} was 38 degC throughout 319 s, although writing 2772 GB in 300 s warms"
    )
    assert "update the drive's firmware or replace it, and run again" in text
    assert (document.limits, document.invalid) == ([], [])
    assert outcome(document) == ("INADMISSIBLE", [text])


@pytest.mark.parametrize("profile", ["thermal", "block-scan", "saturation"])
def test_it_is_none_for_any_profile_just_as_a_sensor_that_is_silent(tmp_path: Path, profile: str) -> None:
    found = told(tmp_path, {FIRST: still})
    assert found.unmoved[0] in outcome(found, profile)[1]


def test_a_reading_that_moves_by_one_degree_counts(tmp_path: Path) -> None:
    document = told(tmp_path, {FIRST: warming(1.0)})
    assert document.unmoved == []
    assert outcome(document)[0] == "PASS"


@pytest.mark.parametrize(
    ("gb_per_s", "load_s"),
    [(FULL, 20), (FULL / 10, LOAD_S), (QUARTER, LOAD_S), (0.0, LOAD_S)],
    ids=["short rehearsal", "a tenth of the load", "a quarter, well cooled", "no load"],
)
def test_where_a_drive_may_have_stayed_so_the_reading_counts(tmp_path: Path, gb_per_s: float, load_s: int) -> None:
    assert told(tmp_path, {FIRST: still}, gb_per_s, load_s).unmoved == []


def test_one_drive_of_a_set_is_held_against_the_others(tmp_path: Path) -> None:
    (text,) = told(tmp_path, {FIRST: warming(20), SECOND: still}, QUARTER).unmoved
    assert f"of drive {SECOND} was" in text
    assert f"although drive {FIRST}, of the same model and with the same load, moved by 20 K" in text
    other = {FIRST: "SIM X100", SECOND: "SIM PM9"}
    assert told(tmp_path, {FIRST: warming(20), SECOND: still}, QUARTER, models=other).unmoved == []
    assert told(tmp_path, {FIRST: warming(3), SECOND: still}, QUARTER).unmoved == []
    assert told(tmp_path, {FIRST: still, SECOND: still}, QUARTER).unmoved == []  # nothing shows that it can move


def test_a_spare_drive_that_is_not_written_may_stay_as_cool_as_it_is(tmp_path: Path) -> None:
    def unwritten(_second: int) -> list[str]:
        return [
            "block_device,device=nvme2n1 written_bytes=0i,read_bytes=0i",
            "temperature,device=nvme2n1,label=Composite temperature_degc=30.0,warning_degc=80.0",
        ]

    told(tmp_path, {FIRST: warming(20)}, QUARTER, more=unwritten)
    drives = [drive(name, "SIM X100") for name in (FIRST, "nvme2n1")]
    assert sensor_coverage.of_bundle(tmp_path, some_run(target=target(*drives))).unmoved == []


@pytest.mark.parametrize(
    "row",
    [
        "temperature,device=nvme0n1,label=Sensor\\ 2 temperature_degc={degrees}",
        "smart_temperature,device=nvme0n1,sensor=composite temperature_degc={degrees},warning_degc=80.0",
    ],
    ids=["inside", "health log"],
)
def test_another_reading_of_the_same_drive_that_moves_is_evidence_after_a_while(tmp_path: Path, row: str) -> None:
    def more(second: int) -> list[str]:
        return [row.format(degrees=warming(20)(second))]

    (text,) = told(tmp_path, {FIRST: still}, QUARTER, more=more).unmoved
    assert "although another reading of the same drive moved by 20 K" in text
    assert told(tmp_path, {FIRST: still}, QUARTER, 120, more=more).unmoved == []  # a hot spot may be ahead of the drive


def test_the_drives_own_count_of_throttling_contradicts_a_reading_that_stood_still(tmp_path: Path) -> None:
    def more(second: int) -> list[str]:
        return [f"smart,device=nvme0n1 thermal_management_1_transitions={3 + (second > 100)}i"]

    (text,) = told(tmp_path, {FIRST: still}, QUARTER, more=more).unmoved
    assert "although the drive counted 1 more transitions to light throttling (TMT1)" in text
    assert told(tmp_path, {FIRST: warming(1)}, QUARTER, more=more).unmoved == []


def test_a_reading_that_moved_before_the_load_and_not_under_it_counts(tmp_path: Path) -> None:
    """It may be an honest drive in its equilibrium: the rule is about a whole run."""
    assert told(tmp_path, {FIRST: lambda second: 38.0 if second > IDLE_S else 37.0}).unmoved == []


def test_no_sensor_and_no_telemetry_are_as_they_were(tmp_path: Path) -> None:
    run = some_run(target=target(drive(FIRST)))
    assert sensor_coverage.of_bundle(tmp_path, run).unmoved == []
    (tmp_path / "telemetry").mkdir()
    (tmp_path / "telemetry" / "points.lp").write_text("block_device,device=nvme0n1 written_bytes=1i 1\n")
    assert sensor_coverage.of_bundle(tmp_path, run).unmoved == []


def test_a_counter_that_goes_back_or_is_absent_proves_no_load(tmp_path: Path) -> None:
    def reset(second: int) -> list[str]:
        return [f"block_device,device=nvme0n1 written_bytes={0 if second == 200 else 10**13}i"]

    assert told(tmp_path, {FIRST: still}, more=reset).unmoved == []
    assert told(tmp_path, {"sda": still}).unmoved == []


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_a_reading_that_is_no_number_is_not_called_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: float
) -> None:
    """drive_temperature names it. Line protocol refuses such a value; a spool in columns might hold it."""
    assert told(tmp_path, {FIRST: still}).unmoved
    tracks = telemetry_tracks.of_bundle(tmp_path)
    monkeypatch.setattr(telemetry_tracks, "of_bundle", lambda _: tracks)
    tracks.found["temperature", FIRST, "temperature_degc"].values[5] = odd
    assert sensor_coverage.unmoved(tmp_path, [drive(FIRST, None)]) == []


@pytest.mark.parametrize("least", [0, 60])
def test_readings_that_are_null_in_between_hide_no_still_one(tmp_path: Path, least: int) -> None:
    """A sensor that gives a number only at times has moved as little as one that always does."""
    (text,) = told(tmp_path, {FIRST: lambda second: 38.0 if second >= least or second % 3 == 0 else None}).unmoved
    assert f"of drive {FIRST} was 38 degC throughout" in text


def test_nulls_are_no_movement_and_hide_none(tmp_path: Path) -> None:
    cooled = {FIRST: lambda second: None if second % 2 else warming(1.0)(second)}
    assert told(tmp_path, cooled).unmoved == []


def test_nulls_under_the_load_are_a_silence(tmp_path: Path) -> None:
    """Nothing is known of the heat then: neither that the reading stood still, nor that the drive stayed cool."""
    document = told(tmp_path, {FIRST: lambda second: None if 100 < second <= 200 else warming(20)(second)})
    assert document.invalid == [f"The temperature of drive {FIRST} was not read for 101 s (limit 10 s)"]
    assert outcome(document)[0] == "INADMISSIBLE"


@pytest.mark.parametrize("readings", [0, 1])
def test_a_sensor_that_gave_no_number_or_one_is_not_called_still(tmp_path: Path, readings: int) -> None:
    document = told(tmp_path, {FIRST: lambda second: 38.0 if second < readings else None})
    assert document.unmoved == []
    assert document.longest_silence_s == {FIRST: 319.0 if readings else None}
    assert (
        len(document.invalid) == readings
    )  # without any number it has no sensor, and no headroom either (drive_temperature)


@pytest.mark.parametrize("word", ["null", "NaN", "nan", "None", ""])
def test_a_word_where_a_reading_should_be_is_refused_with_its_line(tmp_path: Path, word: str) -> None:
    told(tmp_path, {FIRST: still})
    spool = tmp_path / "telemetry" / "points.lp"
    spool.write_text(spool.read_text().replace("temperature_degc=38.0,", f"temperature_degc={word},", 1))
    with pytest.raises(ValueError, match=r"points\.lp"):
        sensor_coverage.unmoved(tmp_path, [drive(FIRST, "SIM X100")])


def test_the_least_rise_is_that_of_a_well_cooled_drive() -> None:
    times = np.arange(0, 1000.0)
    steady = Track(times, np.maximum(0.0, times - 10) * 9e9)
    assert least_rise_k(steady) == pytest.approx(4.5, abs=0.01)  # 9 GB/s, 1 W for each, 0.5 K/W
    warm = Track(times, times * 9e9)
    assert least_rise_k(warm) == 0.0  # in its equilibrium from the first reading
    burst = Track(times, np.clip(times - 10, 0, 20) * 9e9)
    assert least_rise_k(burst) == pytest.approx(4.5 * (1 - math.exp(-20 / 80)), abs=0.01)
    assert least_rise_k(burst) < RISE_K_MIN


def test_documents_of_older_benches_have_no_such_list(tmp_path: Path) -> None:
    moved: dict[str, Any] = as_document(told(tmp_path, {FIRST: warming(9)}))
    assert "unmoved" not in moved  # so that they are computed again word for word
    assert read(moved, SensorCoverage, "results/sensor_coverage.json").unmoved == []
