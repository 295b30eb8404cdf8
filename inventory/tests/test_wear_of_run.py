"""The drives' own account of their wear over a run: intervals that whole percent allow, and nothing where a drive does not say."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from daq_bench.audit.good import small_run
from daq_bench.audit.good.small_run import some_run

from daq_bench.bench_model.behaviour.smart_facts import pairs_of
from daq_bench.bench_model.behaviour.wear_of_run import DATA_UNIT_BYTES, from_pairs, of_bundle
from daq_bench.bench_model.documents.run import RequirementOfRun, Run
from daq_bench.bench_model.evidence.soundness import fault_of
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.candidate_kit.smartctl import NVME_HEALTH

METRICS = Path(__file__).resolve().parents[1] / "metrics.yml"
PB_UNITS = 10**15 // DATA_UNIT_BYTES


def run_on(name: str) -> Run:
    return some_run(target=small_run.target(small_run.drive(name, serial="S0")), requirement=RequirementOfRun("x"))


def drive(used: Any = 3, written: Any = 1000, **rest: Any) -> dict[str, Any]:
    log = {
        "percentage_used": used,
        "data_units_written": written,
        "available_spare": 100,
        "available_spare_threshold": 10,
    }
    return {"serial_number": "S0", NVME_HEALTH: {**log, **rest}}


def made(before: Any, after: Any, asked: float | None = None) -> tuple[dict[str, Any], dict[str, str]]:
    document = from_pairs({"nvme0n1": (before, after)}, asked)
    assert fault_of("results/wear.json", json.loads(json.dumps(document, allow_nan=False))) == ""
    return document["drives"][0], document["reasons"]


def test_a_petabyte_that_costs_ten_percent_costs_nine_to_eleven() -> None:
    row, reasons = made(drive(3, 0), drive(13, PB_UNITS))
    assert row["percent_per_pb_interval"] == pytest.approx([9, 11], rel=1e-6) and row[
        "percent_per_pb"
    ] == pytest.approx(10)
    assert (row["used_percent"], row["used_growth_percent"], row["spare_margin_percent"]) == (
        13,
        10,
        90,
    ) and reasons == {}


@pytest.mark.parametrize(("asked", "judged"), [(None, 11), (12, 11), (11.5, 11), (8, 9), (10, None)])
def test_the_end_of_the_interval_decides_or_nothing_does(asked: float | None, judged: float | None) -> None:
    row, reasons = made(drive(3, 0), drive(13, PB_UNITS), asked)
    assert row["judged_percent_per_pb"] == (None if judged is None else pytest.approx(judged, rel=1e-6))
    assert ("wear.percent_per_pb" in reasons) == (judged is None)


def test_a_short_run_neither_meets_nor_misses_and_says_what_would_decide() -> None:
    row, reasons = made(drive(3, 0), drive(3, PB_UNITS // 1000), 30)
    assert row["judged_percent_per_pb"] is None
    assert reasons["wear.percent_per_pb"].startswith("nvme0n1: 1 TB were written: between 0 and 1000 percent per PB")
    assert reasons["wear.percent_per_pb"].endswith("66.7 TB or more decide about 30")


@pytest.mark.parametrize("bad", [None, math.nan, math.inf, -1, "3", True, 255])
@pytest.mark.parametrize("when", [0, 1])
def test_a_percentage_that_is_none_decides_nothing(bad: Any, when: int) -> None:
    pair = [drive(3, 0), drive(5, PB_UNITS)]
    pair[when] = drive(bad, (0, PB_UNITS)[when])
    row, reasons = made(*pair)
    assert row["used_growth_percent"] is None and row["judged_percent_per_pb"] is None
    assert {"wear.used_growth_percent", "wear.percent_per_pb"} <= set(reasons)


@pytest.mark.parametrize(
    ("before", "after", "value"),
    [
        (drive(5), drive(3), "used_growth_percent"),  # it went back
        (drive(3, 9), drive(3, 5), "percent_per_pb"),
        (drive(3, 9), drive(3, 9), "percent_per_pb"),  # nothing written
        (drive(), drive(available_spare=None), "spare_margin_percent"),
        (drive(), {**drive(), NVME_HEALTH: "garbage"}, "used_percent"),
        (drive(), None, "used_percent"),
        (None, drive(), "used_growth_percent"),
        (None, None, "percent_per_pb"),
    ],
)
def test_what_a_drive_does_not_say_is_null_with_its_reason(before: Any, after: Any, value: str) -> None:
    row, reasons = made(before, after)
    assert row.get(value) is None or value == "percent_per_pb"
    assert reasons[f"wear.{value}"].startswith("nvme0n1: ")


def test_sata_and_sas_say_it_in_their_own_fields() -> None:
    """The sum that smartctl 7.5 makes of an ATA drive's attributes is its guess (ataprint.cpp), and no word of the drive."""
    statistic = {"pages": [{"number": 7, "table": [{"offset": 8, "value": 4, "flags": {"valid": True}}]}]}
    ata = {"device": {"protocol": "ATA"}, "endurance_used": {"current_percent": 9}}
    for table in ({**ata, "ata_device_statistics": statistic}, {"scsi_percentage_used_endurance_indicator": 4}):
        row, reasons = made({"serial_number": "S"}, table)
        assert row["used_percent"] == 4 and "wear.percent_per_pb" in reasons
    row, reasons = made(ata, ata)
    assert row["used_percent"] is None and "wear.used_percent" in reasons


def sata(used: int, sectors: Any, block: Any = 512) -> dict[str, Any]:
    """Page and offset as smartctl 7.0 has them of a Samsung 860 EVO (Starosdev/scrutiny, testdata/smart-ata-full.json)."""
    pages = [(1, 24, sectors), (7, 8, used)]
    flags = {"valid": True}
    tables = [{"number": n, "table": [{"offset": at, "value": v, "flags": flags}]} for n, at, v in pages]
    return {
        "device": {"protocol": "ATA"},
        "logical_block_size": block,
        "ata_device_statistics": {"pages": tables},
    }


def sas(used: int, gigabytes: Any) -> dict[str, Any]:
    log = {"write": {"gigabytes_processed": gigabytes}}
    return {
        "device": {"protocol": "SCSI"},
        "scsi_percentage_used_endurance_indicator": used,
        "scsi_error_counter_log": log,
    }


@pytest.mark.parametrize(
    "pair",
    [
        (sata(19, 64_777_770_148), sata(29, 64_777_770_148 + 10**15 // 512)),
        (sata(19, 8, 4096), sata(29, 8 + 10**15 // 4096, 4096)),  # 4Kn
        (sas(3, "2124.590"), sas(13, "1002124.590")),
    ],
)
def test_the_wear_of_a_petabyte_is_told_of_sata_and_sas_drives_too(pair: tuple[Any, Any]) -> None:
    row, reasons = made(*pair)
    assert row["percent_per_pb_interval"] == pytest.approx([9, 11], rel=1e-4)
    assert set(reasons) == {"wear.spare_margin_percent"}


@pytest.mark.parametrize(
    "pair",
    [
        (sata(3, 9), sata(4, None)),
        (sata(3, 9), sata(4, 8)),  # it went back
        (sata(3, 9), sata(4, 2**62)),
        (sata(3, 9, None), sata(4, 10**9, None)),  # sectors of an unknown size
        (sata(3, 9), sas(4, "1002124.590")),  # two drives' words
        (drive(3, 9), {**sata(4, 10**9), NVME_HEALTH: {}}),
        (sas(3, "0.000"), sas(4, "0.000")),
        (sas(3, "1"), sas(4, "2")),
    ],
)
def test_a_count_of_writes_that_does_not_hold_gives_no_rate(pair: tuple[Any, Any]) -> None:
    row, reasons = made(*pair)
    assert row["judged_percent_per_pb"] is None and "wear.percent_per_pb" in reasons


def test_a_bundle_without_health_before_or_after_has_no_such_document(tmp_path: Path) -> None:
    assert of_bundle(tmp_path, run_on("nvme0n1")) is None


def test_each_of_two_drives_with_one_serial_has_its_own_account(tmp_path: Path) -> None:
    """A disk with two actuators, as Seagate's Exos 2X18 with SAS, is two devices of one serial."""
    (tmp_path / "facts").mkdir()
    for when, used in (("before", (3, 3)), ("after", (3, 9))):
        devices = [
            {"device": f"/dev/{name}", "data": drive(one)} for name, one in zip(("sda", "sdb"), used, strict=True)
        ]
        (tmp_path / "facts" / f"smart-{when}.json").write_text(json.dumps({"devices": devices}), encoding="utf-8")
    both = [small_run.drive(name, serial="S0") for name in ("sda", "sdb")]
    pairs = pairs_of(tmp_path, both)
    grown = [one["used_growth_percent"] for one in from_pairs(pairs)["drives"]]
    assert grown == [0, 6]


def test_a_bundles_requirement_gives_the_bound(tmp_path: Path) -> None:
    (tmp_path / "facts").mkdir()
    (tmp_path / "profiles/requirements").mkdir(parents=True)
    for name, one in (("before", drive(3, 0)), ("after", drive(13, PB_UNITS))):
        rows = [{"device": "/dev/nvme0", "status": "read", "detail": "", "data": one}]
        (tmp_path / f"facts/smart-{name}.json").write_text(json.dumps({"devices": rows}))
    (tmp_path / "profiles/requirements/x.yml").write_text(
        "requirements:\n- {metric: wear.percent_per_pb, bound: 0.08, unit: '1'}\n- {metric: cost.hours, bound: 1, unit: h}\n"
    )
    document = of_bundle(tmp_path, run_on("nvme0n1"))
    assert document is not None and document["drives"][0]["judged_percent_per_pb"] == pytest.approx(9, rel=1e-6)


def test_every_value_is_a_metric() -> None:
    metrics = {name: one for name, one in load_metrics(METRICS).items() if one.file == "results/wear.json"}
    assert set(metrics) == {
        "wear.used_percent",
        "wear.used_growth_percent",
        "wear.spare_margin_percent",
        "wear.percent_per_pb",
    }
    assert {one.nature for one in metrics.values()} == {"observed"}
