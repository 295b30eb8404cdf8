"""Published devices: what the repository ships is sound and attributed, and what is wrong in a file is said with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from daq_bench.bench_model.base.errors import ProfileError
from daq_bench.bench_model.profiles.published import BASE_UNITS, FOLDER, load_published, of_metric
from daq_bench.bench_model.profiles.yaml_source import load_schema

SHIPPED = Path(__file__).resolve().parents[1] / FOLDER


def test_the_x100_keeps_what_was_measured_apart_from_its_nameplate() -> None:
    x100 = load_published(SHIPPED)["micron-x100"]
    measured, nameplate = (x100.figure("sequential_write_throughput", basis) for basis in ("measured", "nameplate"))
    assert measured is not None and nameplate is not None
    assert measured.in_base_units == pytest.approx(9.127e9, rel=1e-4)  # 8.5 GiB/s
    assert (nameplate.in_base_units, nameplate.qualifier) == (9e9, "more than")
    assert x100.figure("sequential_write_throughput") == measured
    assert x100.capacity_bytes == 750 * 10**9
    assert x100.figure("active_write_power") is None


def test_nameplates_say_that_nobody_verified_them_here() -> None:
    figures = [figure for device in load_published(SHIPPED).values() for figure in device.figures]
    nameplates = [figure for figure in figures if figure.basis == "nameplate"]
    assert nameplates and all(figure.conditions.startswith("nameplate, not verified here") for figure in nameplates)


def test_the_rates_are_those_of_the_data_sheets() -> None:
    rates = {
        device.id: figure.in_base_units
        for device in load_published(SHIPPED).values()
        if (figure := device.figure("sequential_write_throughput", "nameplate"))
    }
    assert rates == {
        "intel-optane-p4800x": 2.0e9,
        "intel-optane-p5800x": 6.2e9,
        "kioxia-cm6": 4.2e9,
        "micron-9400": 7.0e9,
        "micron-9550-max": 10e9,
        "micron-x100": 9e9,
        "samsung-pm1735": 3.8e9,
    }


def test_devices_are_ranked_by_a_metric_in_one_unit() -> None:
    ranked = [device.id for device, _ in of_metric(load_published(SHIPPED), "sequential_write_throughput")]
    assert ranked[:2] == ["micron-9550-max", "micron-x100"]  # 10 GB/s nameplate, 8.5 GiB/s measured


def test_every_metric_of_the_schema_has_a_base_unit() -> None:
    entry = load_schema("published-device")["properties"]["figures"]["items"]["properties"]
    assert set(entry["metric"]["enum"]) == set(BASE_UNITS)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "unit: GiB/s",
            "unit: MiB",
            r"micron-x100\.yml:10: figures\[0\]\.unit: .*Use a unit of sequential_write_throughput",
        ),
        ("id: micron-x100", "id: x100", "differs from the file's name"),
        ("basis: measured", "basis: guessed", r"figures\[0\]\.basis"),
        ("    source: Abed", "    sauce: Abed", "unknown key 'sauce'"),
        ("capacity: 750GB", "capacity: 750 G", "capacity"),
    ],
)
def test_a_wrong_file_is_explained(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = (SHIPPED / "micron-x100.yml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "micron-x100.yml").write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ProfileError, match=words):
        load_published(tmp_path)


def test_a_bundle_from_before_has_none(tmp_path: Path) -> None:
    assert load_published(tmp_path / "absent") == {}
