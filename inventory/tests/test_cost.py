"""The cost ledger against a bundle whose hours, bytes and energy are worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from daq_bench.audit.good.small_run import drive, some_run, target
from msgspec import structs

from daq_bench.bench_model.behaviour import cost
from daq_bench.bench_model.documents.struct import as_document

BEGIN_S = 1_767_225_600  # 2026-01-01T00:00:00Z
RUN = some_run(
    started_utc="2026-01-01T00:00:00.000Z",
    finished_utc="2026-01-01T01:00:00.000Z",
    target=target(drive("nvme0n1"), drive("nvme1n1")),
)


def point(seconds: float, text: str) -> str:
    return f"{text} {int((BEGIN_S + seconds) * 1e9)}\n"


def phase(minutes: int, source: str) -> str:
    event = {
        "time_utc": f"2026-01-01T{minutes // 60:02d}:{minutes % 60:02d}:00.000Z",
        "kind": "phase",
        "source": source,
        "text": "",
    }
    return json.dumps(event) + "\n"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    (tmp_path / "telemetry").mkdir()
    (tmp_path / "results").mkdir()
    lines = [
        point(600, "block_device,device=nvme0n1 written_bytes=1000i"),
        point(600, "block_device,device=nvme1n1 written_bytes=50i"),
        point(600, "block_device,device=sda written_bytes=7i"),
        point(1200, "block_device,device=nvme0n1 written_bytes=4000i"),
        point(1800, "block_device,device=nvme0n1 written_bytes=500i"),  # after a reboot
        point(2400, "block_device,device=sda written_bytes=7000i"),
        point(1200, "block_device,device=nvme1n1 written_bytes=60i"),
        point(600, "ipmi_power power_w=100"),
        point(1600, "ipmi_power power_w=300"),
        point(2600, "ipmi_power power_w=200"),
    ]
    (tmp_path / "telemetry" / "points.lp").write_text("".join(lines), encoding="utf-8")
    events = [
        phase(0, "provision"),
        phase(6, "snb_record"),
        phase(30, "snb_record"),
        phase(54, "verify"),
        phase(60, "report"),
    ]
    (tmp_path / "events.jsonl").write_text("".join(events), encoding="utf-8")
    return tmp_path


def test_hours_bytes_and_energy_add_up(bundle: Path) -> None:
    document = as_document(cost.of_bundle(bundle, RUN))
    assert document["hours"] == 1.0
    assert document["phases"] == [
        {"name": "provision", "hours": 0.1},
        {"name": "snb_record", "hours": 0.8},
        {"name": "verify", "hours": 0.1},
    ]
    # 3000 B, then 500 B since the counter began again; the boot drive does not count
    assert document["written_bytes_per_drive"] == {"nvme0n1": 3500, "nvme1n1": 10}
    assert document["written_bytes"] == 3510
    # 1000 s x 100 W + 1000 s x 300 W + 1000 s x 200 W
    assert document["energy_kwh"] == pytest.approx(600e3 / 3.6e6, rel=1e-8)
    assert document["energy_hours"] == pytest.approx(3000 / 3600, abs=1e-6)
    assert set(document["reasons"]) == {"cost.nand_written"}


def test_energy_covers_no_time_in_which_the_power_could_not_be_read(bundle: Path) -> None:
    with (bundle / "telemetry" / "points.lp").open("a", encoding="utf-8") as file:
        file.write(point(2100, 'ipmi_power unread="0 W while it measures"'))
    document = as_document(cost.of_bundle(bundle, RUN))
    # 1000 s x 100 W + 500 s x 300 W, 500 s without, 1000 s x 200 W
    assert document["energy_kwh"] == pytest.approx(450e3 / 3.6e6, rel=1e-8)
    assert document["energy_hours"] == pytest.approx(2500 / 3600, abs=1e-6)


def test_the_account_of_a_run_that_goes_on_stands_at_its_moment(bundle: Path) -> None:
    document = cost.so_far(bundle, structs.replace(RUN, finished_utc=None), BEGIN_S + 1600.0)
    assert document == {"hours": 0.444444, "written_bytes": 3010, "energy_kwh": round(100e3 / 3.6e6, 9)}


def test_what_was_not_measured_is_null_with_its_reason(tmp_path: Path) -> None:
    document = as_document(cost.of_bundle(tmp_path, structs.replace(RUN, target=target())))
    assert (document["hours"], document["written_bytes"], document["energy_kwh"]) == (1.0, None, None)
    assert document["reasons"]["cost.written"].endswith("the target, which no drive carries")
    assert "no BMC power readings" in document["reasons"]["cost.energy"]


def test_nand_writes_are_those_of_the_drives_own_logs(bundle: Path) -> None:
    def moment(nand_bytes: int | None) -> list[dict[str, Any]]:
        return [{"id": "A", "nand_bytes": nand_bytes}]

    file = bundle / "results" / "endurance.json"
    file.write_text(json.dumps({"at_start": moment(100), "at_end": moment(250)}), encoding="utf-8")
    assert as_document(cost.of_bundle(bundle, RUN))["nand_written_bytes"] == 150
    file.write_text(json.dumps({"at_start": moment(100), "at_end": moment(None)}), encoding="utf-8")
    assert as_document(cost.of_bundle(bundle, RUN))["nand_written_bytes"] is None
