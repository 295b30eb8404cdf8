"""The report on dips, throttling and a thermal soak, from documents that the analysis itself made."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from factory_knobs import START
from msgspec import structs

from daq_bench.bench_model.behaviour.dip_documents import Scenery, dips_document, throttling_document
from daq_bench.bench_model.documents.dips import Dips
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.workloads.thermal import soak as thermal_soak
from daq_bench.bench_model.workloads.thermal.document import Thermal
from daq_bench.bench_report.figures.dips import _see
from daq_bench.bench_report.qualification.render import to_html
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.sections.dips import _row

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "inventory" / "studies"))
import tracks_factory
from series_factory import white, with_dip

Maker = Callable[..., Path]
COUNT = 120


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The analysed load lies within the bundle's telemetry, which is of the device vda."""
    monkeypatch.setattr(tracks_factory, "BEGIN_S", START.timestamp() + 2)
    monkeypatch.setattr(tracks_factory, "DRIVE", "vda")


def thermal(scenery: Scenery, sweep: dict[str, Any]) -> dict[str, Any]:
    load = scenery.windows[0]
    times = {"start_utc_s": load.start_s, "end_utc_s": load.end_s}
    return {
        "schema_version": 1, "tool": "fio", "tool_version": "fio-3.33", "sustained": [],
        "soak": {"name": "soak", "stopped_by": "throttling", **times, "bytes_written": 1, "throughput_bytes_per_s": 1.0},
        "rule": {
            "window_s": 30, "slope_max_k_per_min": 0.2, "min_s": 1, "max_s": 1, "hold_s": 1, "text": "the line is level"
        },
        "record": {"demand_bytes_per_s": 4.5e9, "duration_s": 100},
        "load": {
            "block_bytes": 4096, "io_depth": 1, "file_bytes": 4096, "rate_limit_bytes_per_s": None, "condition": "overwrite"
        },
        "cool_down": {"start_utc_s": load.end_s, "end_utc_s": load.end_s + 60},
        "hazards": ["throttle VCXP0001 after 32 s"],
        "fan_sweep": sweep,
    }  # fmt: skip


def documents(scenery: Scenery, sweep: dict[str, Any] | None = None) -> dict[str, Any]:
    soaked = thermal(scenery, sweep or {"status": "not asked", "reason": None, "points": []})
    return {
        "results/dips.json": dips_document(scenery),
        "results/throttling.json": throttling_document(scenery),
        "results/thermal.json": soaked,
        "results/thermal_soak.json": as_document(thermal_soak.document(msgspec.convert(soaked, Thermal), scenery)),
    }


def html(root: Path) -> str:
    text = to_html(load(root))
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>|[\u202f\u00a0]", " ", text))


def throttled() -> Scenery:
    series = with_dip(white(np.random.default_rng(1), COUNT), 50, 40, 0.5)
    hot = tracks_factory.drive(COUNT, (50.0, 90.0), temperature=True, warning=True)
    return tracks_factory.scenery(series, hot, [tracks_factory.hazard(50, "drive VCXP0001 is held to 4 MB/s")])


def test_a_throttled_soak_is_told_with_its_cause_and_its_loss(bundle_with: Maker) -> None:
    text = html(bundle_with(temperature=True, extra=documents(throttled())))
    for words in (
        "Dips and their causes",
        "1 dip of 10 % or more under sustained load, 0 of them without a known cause",
        "Thermal throttling was found 1 time",
        "with confidence high",
        "commanded hazard",
        "vda at 78 degC, its warning limit is 75 degC",
        "The soak was ended by throttling",
        "at the throttled rate throughout",
        "Commanded during the soak: throttle VCXP0001 after 32 s",
        "Rate and dips: thermal, soak",
        "put down to",
    ):
        assert words in text, words


def test_the_drives_temperature_is_drawn_below_the_rate(bundle_with: Maker) -> None:
    found = documents(throttled())
    found["results/throttling.json"]["drives"] = ["nvme0n1"]  # whose temperature the bundle's telemetry has
    text = html(bundle_with(temperature=True, extra=found))
    assert "temperature of the drives" in text and "The drives report no temperature" not in text
    assert "The drives report no temperature" in html(bundle_with(extra=found))


def test_a_dip_without_a_cause_says_unknown_and_what_was_not_looked_at(bundle_with: Maker) -> None:
    scenery = tracks_factory.scenery(with_dip(white(np.random.default_rng(1), COUNT), 50, 40, 0.5))
    scenery.tracks.found = {key: one for key, one in scenery.tracks.found.items() if key[0] != "pcie_link"}
    text = html(bundle_with(extra=documents(scenery)))
    assert "1 of them without a known cause" in text
    assert "no evidence for any cause that was looked at; not looked at: the drives' PCIe links" in text.replace(
        "&#39;", "'"
    )


def test_without_a_sensor_the_report_claims_nothing(bundle_with: Maker) -> None:
    scenery = tracks_factory.scenery(white(np.random.default_rng(1), COUNT))
    scenery.tracks.found = {
        key: one for key, one in scenery.tracks.found.items() if key[0] not in ("temperature", "smart")
    }
    sweep = {"status": "unsupported", "reason": "the inventory entry has no BMC", "points": []}
    text = html(bundle_with(extra=documents(scenery, sweep)))
    assert "Thermal throttling could neither be found nor excluded: whether a drive throttled cannot be told" in text
    assert "fan-speed sweep unsupported: the inventory entry has no BMC" in text
    assert "No thermal throttling was found" not in text


def test_a_fan_sweep_is_drawn_and_tabled(bundle_with: Maker) -> None:
    found = documents(throttled())
    point = {
        "name": "fans at 50 %", "duty_percent": 50, "stopped_by": "equilibrium", "duration_s": 60.0,
        "throughput_bytes_per_s": 4.9e9, "throttled": False, "fan_speeds_rpm": {"Fan1": 6000.0},
        "drives": {"vda": {"max_degC": 61.0, "equilibrium_degC": 60.5, "equilibrium_interval_degC": [59.8, 61.2]}},
    }  # fmt: skip
    warm = {
        "duty_percent": 30,
        "stopped_by": "time limit",
        "drives": {"vda": {"max_degC": 71.0, "equilibrium_degC": None}},
    }
    found["results/thermal_soak.json"]["fan_sweep"] = [point, {**point, **warm}]
    found["results/thermal.json"]["fan_sweep"] = {"status": "done", "reason": None, "points": []}
    text = html(bundle_with(extra=found))
    assert "Fan-speed sweep: where temperature and rate settled" in text
    assert "Temperature and rate against the fans" in text
    assert "Fan1 6000" in text
    assert "vda 60.5 (59.8 to 61.2)" in text


def test_what_the_drive_counted_under_an_even_rate_is_said_with_the_contradiction(bundle_with: Maker) -> None:
    counter = ("smart", "vda", "thermal_management_1_transitions")
    processor = ("cpu_throttle", "0", "package_throttle_count")
    said = {name: tracks_factory.track(lambda time: 7 + (time >= 60), COUNT, 10.0) for name in (counter, processor)}
    scenery = tracks_factory.scenery(white(np.random.default_rng(1), COUNT), said)
    text = html(bundle_with(extra=documents(scenery)))
    for words in (
        "Thermal throttling was found 1 time",
        "The drives' word and the rate contradict each other: vda counts 1 more transitions to light throttling (TMT1)",
        "The drives throttled by their own word, where the rate shows no dip",
        "Processor 0 counted throttling for heat 1 times",
    ):
        assert words in text.replace("&#39;", "'"), words
    scenery.run.target.drives.clear()
    facts = documents(tracks_factory.scenery(white(np.random.default_rng(1), COUNT)))
    facts["results/throttling.json"] = throttling_document(scenery)
    text = html(bundle_with(extra=facts))
    assert "could neither be found nor excluded: the run names no drive beneath the target" in text


def test_a_rate_that_never_was_as_high_is_called_no_dip_from_first_to_last_second() -> None:
    found = msgspec.convert(dips_document(throttled()), Dips)
    window = next(one for one in found.windows if one.dips)
    whole = structs.replace(
        window.dips[0], start_s=1.0, end_s=window.duration_s, ended=False, reference_bytes_per_s=2e9
    )
    told = ": the rate never reached 2.00\u202fGB/s"
    assert _row(window, whole)[1].endswith(told) and not _row(window, window.dips[0])[1].endswith(told)
    assert _see(structs.replace(window, dips=[whole])).startswith(
        "The rate never reached 2.00\u202fGB/s under this load"
    )
    part = structs.replace(whole, start_s=window.duration_s / 2)
    assert _see(structs.replace(window, dips=[part])).startswith("The deepest dip takes ")


def test_a_run_without_sustained_load_has_no_such_section(bundle_with: Maker) -> None:
    empty = {
        "schema_version": 1,
        "rule": "",
        "windows": [],
        "summary": {
            "windows_analysed": 0,
            "dips": None,
            "unexplained": None,
            "lost_bytes": None,
            "deepest_fraction": None,
        },
        "reasons": {},
    }
    text = html(bundle_with(extra={"results/dips.json": empty}))
    assert "Dips and their causes" not in text
