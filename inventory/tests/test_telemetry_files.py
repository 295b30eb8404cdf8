"""A BMC that the control node read has a spool of its own; whoever reads a bundle's telemetry reads both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from daq_bench.audit.good.case import case_of
from daq_bench.audit.good.small_run import drive, some_run, target
from evidence_factory import evidence

from daq_bench.bench_model.behaviour import cost, record_power
from daq_bench.bench_model.bundle import telemetry_tracks
from daq_bench.bench_model.bundle.telemetry_files import points_files, points_of_bundle, spool_folders
from daq_bench.bench_model.evidence.admissibility import findings
from daq_bench.bench_model.evidence.soundness import Sound

SNB = case_of("snb-100s")
RUN = some_run(
    started_utc="1970-01-01T00:00:00+00:00",
    finished_utc="1970-01-01T00:01:40+00:00",
    target=target(drive("sda", model=None)),
)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    (tmp_path / "telemetry" / "bmc").mkdir(parents=True)
    own = "".join(f"block_device,device=sda written_bytes={second}i {second * 10**9}\n" for second in range(101))
    (tmp_path / "telemetry" / "points.lp").write_text(own, encoding="utf-8")
    lines = [f"ipmi_power power_w={400 + second} {second * 10**9}\n" for second in range(0, 101, 5)]
    lines += [f"ipmi_sensor,entity=29.1,kind=fan,sensor=Fan1 speed_rpm=5000.0 {second * 10**9}\n" for second in (5, 10)]
    (tmp_path / "telemetry" / "bmc" / "points.lp").write_text("".join(lines), encoding="utf-8")
    return tmp_path


def test_a_run_that_was_never_watched_has_no_spool(tmp_path: Path) -> None:
    assert (spool_folders(tmp_path), points_files(tmp_path)) == ([], ())
    assert list(points_of_bundle(tmp_path, {"ipmi_power"})) == []


def test_the_bmcs_readings_are_found_wherever_they_were_made(bundle: Path) -> None:
    assert len(points_files(bundle)) == 2
    assert cost.of_bundle(bundle, RUN).energy_kwh == pytest.approx(447.5 * 100 / 3.6e6, rel=1e-3)
    assert cost.of_bundle(bundle, RUN).written_bytes == 100
    tracks = telemetry_tracks.of_bundle(bundle)
    assert tracks.has("block_device")
    fan = tracks.get("ipmi_sensor", "Fan1 (29.1)", "speed_rpm")
    assert fan is not None
    assert fan.values.tolist() == [5000.0, 5000.0]
    with (bundle / "telemetry" / "bmc" / "points.lp").open("a", encoding="utf-8") as file:
        file.write("ipmi_sensor,entity=29.1,kind=fan,sensor=Fan1 speed_rpm=0.0 15000000000\n")
    later = telemetry_tracks.of_bundle(bundle).get("ipmi_sensor", "Fan1 (29.1)", "speed_rpm")
    assert later is not None
    assert later.values.tolist() == [5000.0, 5000.0, 0.0]
    readings = [(at.time_ns / 1e9, float(at.fields["power_w"])) for at in points_of_bundle(bundle, {"ipmi_power"})]
    assert record_power.mean_power(readings, 10, 20) == pytest.approx(412.5)


def gaps(**collector: Any) -> list[str]:
    """Returns the findings on the telemetry when the BMC's collector left this account."""
    entry = {"name": "ipmi_lan", "status": "ok", "period_s": 5.0, "longest_gap_s": 0.0, **collector}
    summary = {"schema_version": 1, "state": "finished", "collectors": [entry]}
    run = replace(evidence(), bmc_telemetry=summary)
    found = findings(Sound.of(run), SNB.profile.conditions)
    return [one.text for one in found if one.evidence == ("telemetry/bmc/summary.json",)]


def test_a_gap_in_the_bmcs_readings_is_a_finding(bundle: Path) -> None:
    assert gaps(longest_gap_s=25.0) == []
    assert gaps(longest_gap_s=26.0) == ["Telemetry of ipmi_lan has a gap of 26.0 s (limit 25.0 s)"]
    assert gaps(longest_gap_s=26.0, status="unsupported") == []


def test_a_bmc_that_takes_long_for_each_reading_has_that_as_its_pace(bundle: Path) -> None:
    assert gaps(longest_gap_s=60.0, duration_s_mean=17.0) == []
    assert gaps(longest_gap_s=90.0, duration_s_mean=17.0) != []
