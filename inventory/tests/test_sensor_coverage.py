"""A drive's temperature sensor that falls silent, or is not there, is told; and the verdict then does not count."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from daq_bench.audit.good.small_run import drive, some_run, target

from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.evidence import sensor_coverage
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import load_requirements
from daq_bench.bench_model.verdict.verdict import judge

sys.path.insert(0, str(Path(__file__).parent))
from evidence_factory import evidence

INVENTORY = Path(__file__).resolve().parents[1]
RUN = some_run(target=target(drive("nvme0n1"), drive("nvme1n1")))
Telemetry = Callable[[dict[str, list[int]]], Path]


@pytest.fixture
def telemetry(tmp_path: Path) -> Telemetry:
    """A bundle that was watched for 100 s, with temperatures of drives at the given seconds."""

    def write(readings: dict[str, list[int]]) -> Path:
        (tmp_path / "telemetry").mkdir(exist_ok=True)
        lines = [(second, "block_device,device=sda written_bytes=1i") for second in range(101)]
        lines += [
            (second, f"temperature,device={drive} temperature_degc=50.0")
            for drive, seconds in readings.items()
            for second in seconds
        ]
        text = "".join(f"{line} {second * 10**9}\n" for second, line in sorted(lines))
        (tmp_path / "telemetry" / "points.lp").write_text(text, encoding="utf-8")
        summary = {"collectors": [{"name": "temperature", "period_s": 1.0}]}
        (tmp_path / "telemetry" / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
        return tmp_path

    return write


WHOLE = list(range(101))


def test_sensors_that_were_read_throughout_say_nothing(telemetry: Telemetry) -> None:
    document = as_document(sensor_coverage.of_bundle(telemetry({"nvme0n1": WHOLE, "nvme1n1": WHOLE[20:]}), RUN))
    assert document["longest_silence_s"] == {"nvme0n1": 1.0, "nvme1n1": 1.0}
    assert (document["invalid"], document["limits"]) == ([], [])


@pytest.mark.parametrize(
    ("silent", "seconds"), [(range(40, 71), 32), (range(70, 101), 31)], ids=["between", "at the end"]
)
def test_a_sensor_that_fell_silent_invalidates_the_run(telemetry: Telemetry, silent: range, seconds: int) -> None:
    readings = [second for second in WHOLE if second not in silent]
    document = as_document(sensor_coverage.of_bundle(telemetry({"nvme0n1": WHOLE, "nvme1n1": readings}), RUN))
    assert document["invalid"] == [f"The temperature of drive nvme1n1 was not read for {seconds} s (limit 10 s)"]
    run = evidence()
    run.results["results/sensor_coverage.json"] = document
    run.run["target"]["drives"].append({"name": "nvme1n1", "model": "Imaginary 9000", "serial": "IMG2"})
    metrics = load_metrics(INVENTORY / "metrics.yml")
    verdict = judge(run, load_requirements(INVENTORY / "requirements" / "dune-snb.yml", metrics), metrics)
    assert (verdict.outcome, verdict.reasons) == ("INADMISSIBLE", document["invalid"])


@pytest.mark.parametrize(("since", "late"), [(0, 40.0), (35, None)], ids=["from the begin", "from shortly before"])
def test_a_sensor_that_begins_long_after_its_drive_was_there_invalidates_the_run(
    telemetry: Telemetry, since: int, late: float | None
) -> None:
    """A drive that is put in, or made, during the run has no temperature before."""
    bundle = telemetry({"nvme0n1": WHOLE, "nvme1n1": WHOLE[40:]})
    file = bundle / "telemetry" / "points.lp"
    there = "".join(f"block_device,device=nvme1n1 written_bytes=1i {second * 10**9}\n" for second in range(since, 101))
    file.write_text(file.read_text(encoding="utf-8") + there, encoding="utf-8")
    document = as_document(sensor_coverage.of_bundle(bundle, RUN))
    said = [f"The temperature of drive nvme1n1 was not read for {late:.0f} s (limit 10 s)"] if late else []
    assert (document["invalid"], document["longest_silence_s"]["nvme1n1"]) == (said, late or 1.0)


def test_a_drive_without_a_sensor_beside_one_that_has_one_forbids_a_pass(telemetry: Telemetry) -> None:
    document = as_document(sensor_coverage.of_bundle(telemetry({"nvme0n1": WHOLE}), RUN))
    assert document["invalid"] == []
    assert document["limits"] == ["Drive nvme1n1 reports no temperature, while other drives of the target do"]


def test_where_no_drive_has_a_sensor_the_requirement_on_it_says_so_itself(telemetry: Telemetry, tmp_path: Path) -> None:
    document = as_document(sensor_coverage.of_bundle(telemetry({}), RUN))
    assert (document["invalid"], document["limits"]) == ([], [])
    assert as_document(sensor_coverage.of_bundle(tmp_path / "nothing", RUN))["longest_silence_s"] == {
        "nvme0n1": None,
        "nvme1n1": None,
    }


def by_health_log(bundle: Path, readings: dict[str, list[int]]) -> Path:
    """The same bundle with readings of drives' health logs, every 10 s, as of SAS drives."""
    file = bundle / "telemetry" / "points.lp"
    lines = [
        f"smart_temperature,device={drive},sensor=drive temperature_degc=50.0 {second * 10**9}\n"
        for drive, seconds in readings.items()
        for second in seconds
    ]
    file.write_text(file.read_text(encoding="utf-8") + "".join(lines), encoding="utf-8")
    summary = {"collectors": [{"name": "temperature", "period_s": 1.0}, {"name": "smart", "period_s": 10.0}]}
    (bundle / "telemetry" / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    return bundle


@pytest.mark.parametrize(
    ("seconds", "silence"), [(range(0, 101, 10), 10.0), ([*range(0, 31, 10), *range(80, 101, 10)], 50.0)]
)
def test_a_sas_drive_is_watched_by_its_health_log(telemetry: Telemetry, seconds: range, silence: float) -> None:
    """The kernel reads no temperature of it; five readings that are missing are no gap."""
    bundle = by_health_log(telemetry({}), {"nvme0n1": list(seconds), "nvme1n1": list(range(0, 101, 10))})
    document = as_document(sensor_coverage.of_bundle(bundle, RUN))
    assert document["longest_silence_s"] == {"nvme0n1": silence, "nvme1n1": 10.0}
    assert (document["invalid"], document["limits"]) == ([], [])


def test_a_sas_drive_that_fell_silent_invalidates_the_run(telemetry: Telemetry) -> None:
    """A run of such drives passed, although nobody had read the temperature of one for 100 s."""
    bundle = by_health_log(telemetry({}), {"nvme0n1": [0, 10, 20, 80, 90, 100], "nvme1n1": list(range(0, 101, 10))})
    document = as_document(sensor_coverage.of_bundle(bundle, RUN))
    assert document["invalid"] == ["The temperature of drive nvme0n1 was not read for 60 s (limit 50 s)"]


def test_inner_sensors_of_a_health_log_stand_for_no_drive(telemetry: Telemetry) -> None:
    bundle = by_health_log(telemetry({"nvme0n1": WHOLE}), {})
    file = bundle / "telemetry" / "points.lp"
    file.write_text(
        file.read_text(encoding="utf-8") + "smart_temperature,device=nvme1n1,sensor=sensor_1 temperature_degc=50.0 1\n",
        encoding="utf-8",
    )
    document = as_document(sensor_coverage.of_bundle(bundle, RUN))
    assert document["longest_silence_s"] == {"nvme0n1": 1.0, "nvme1n1": None}
