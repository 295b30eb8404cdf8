"""The drives' identity and health, the alignment of their numbers, and references between parts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_report.base.marks import Numbers, see_table
from daq_bench.bench_report.document.alignment import filled
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.tables.drives import (
    MOST_ROWS,
    drive_lines,
    drive_table,
    got_worse,
    smart_raw_table,
    smart_table,
)

Maker = Callable[..., Path]


def plain(text: str) -> str:
    return text.replace("\u202f", " ")


def test_health_is_compared_and_what_got_worse_is_marked(bundle_with: Maker) -> None:
    table = smart_table(load(bundle_with(drives=2, smart_worse=True)))
    assert table is not None
    rows = {row[:2]: [plain(cell) for cell in row[2:]] for row in table.rows}
    assert rows["/dev/nvme0n1", "media errors"] == ["0", "3", "+3"]
    assert rows["/dev/nvme1n1", "data written"] == ["5.120 GB", "6.144 GB", "+1.024 GB"]  # units of 512 000 B
    assert ("/dev/nvme1n1", "unsafe shutdowns") not in rows  # unchanged, and asked for by nobody
    assert [table.rows[index][:2] for index in table.marked] == [("/dev/nvme0n1", "media errors")]


def test_a_drive_that_tells_nothing_is_named_with_the_reason(bundle_with: Maker) -> None:
    table = smart_table(load(bundle_with()))
    assert table is not None and table.rows == (
        ("vda", "unsupported: virtio has no SMART", "\u2013", "\u2013", "\u2013"),
    )
    assert table.marked == {0} and smart_raw_table(load(bundle_with())) is None


def test_of_many_drives_each_has_one_row_the_worst_first(bundle_with: Maker) -> None:
    bundle = load(bundle_with(drives=64, smart_worse=True))
    table, raw = smart_table(bundle), smart_raw_table(bundle)
    assert table is not None and raw is not None
    assert [row[0] for row in table.rows] == [f"/dev/nvme{number}n1" for number in range(64)] and MOST_ROWS < 64
    assert table.rows[0] == ("/dev/nvme0n1", "media errors", "0", "3", "+3") and table.marked == {0}
    assert len(raw.rows) == 64 * 14
    identity = drive_table(bundle)
    assert identity is not None and len(identity.rows) == 65


def with_health(bundle: Path, before: dict[str, Any], after: dict[str, Any]) -> Bundle:
    """Makes a bundle with these answers of smartctl for its last drive."""
    for name, data in (("before", before), ("after", after)):
        path = bundle / f"facts/smart-{name}.json"
        document = json.loads(path.read_text())
        document["devices"][-1]["data"] = data
        path.write_text(json.dumps(document))
    return load(bundle)


def attributes(*rows: tuple[int, str, int, str]) -> dict[str, Any]:
    table = [{"id": number, "name": name, "raw": {"value": raw, "string": text}} for number, name, raw, text in rows]
    return {"ata_smart_attributes": {"table": table}}


@pytest.mark.parametrize(
    ("number", "name"),
    [(187, "Uncorrectable_Error_Cnt"), (199, "CRC_Error_Count"), (197, "Pending_Sector_Count"), (5, "Retired_Block_Count")],
)  # fmt: skip
def test_a_drive_that_got_worse_is_found_by_id_and_class(bundle_with: Maker, number: int, name: str) -> None:
    pair = attributes((number, name, 0, "0")), attributes((number, name, 7, "7"))
    bundle = with_health(bundle_with(drives=2), *pair)
    words = name.replace("_", " ")
    assert got_worse(bundle) == [f"/dev/nvme1n1: {words} 0 before, 7 after"]
    table = smart_table(bundle)
    assert table is not None and table.rows[0][:2] == ("/dev/nvme1n1", words) and 0 in table.marked


def test_a_sas_drives_log_of_errors_is_read(bundle_with: Maker) -> None:
    logs = [
        {"scsi_error_counter_log": {"write": {"total_uncorrected_errors": n, "total_errors_corrected": n}}}
        for n in (0, 2)
    ]
    bundle = with_health(bundle_with(drives=1), *logs)
    assert got_worse(bundle) == ["/dev/nvme0n1: write total uncorrected errors 0 before, 2 after"]


def test_what_is_bad_as_it_stands_is_said_absolutely(bundle_with: Maker) -> None:
    failed = {"smart_status": {"passed": False}, "nvme_smart_health_information_log": {"critical_warning": 4}}
    bundle = with_health(bundle_with(drives=3), failed, failed)
    assert got_worse(bundle) == [
        "/dev/nvme2n1: its own self-assessment is that it fails (no before, no after)",
        "/dev/nvme2n1: critical warning 4 stands (4 before, 4 after)",
    ]
    table = smart_table(bundle)
    assert table is not None and [row[0] for row in table.rows[:2]] == ["/dev/nvme2n1"] * 2 and table.marked == {0, 1}


def test_a_packed_temperature_is_the_one_that_its_text_leads_with(bundle_with: Maker) -> None:
    packed = attributes((194, "Temperature_Celsius", 0x2D0013001F, "31 (Min/Max 19/45)"))
    bundle = with_health(bundle_with(drives=1), packed | {"temperature": {"current": 0}}, packed)
    assert bundle.smart_before is not None
    assert dict(bundle.smart_before[-1].readings) == {"Temperature_Celsius": 31.0}


def test_drives_that_are_alike_share_a_line_and_another_firmware_does_not(bundle_with: Maker) -> None:
    lines = [plain(line) for line in drive_lines(load(bundle_with(drives=8)))]
    assert lines[0] == "array md127, raid0"
    assert (
        lines[1].startswith("SAMSUNG MZWLO7T6HBLA, 7.680 TB, firmware OPPA3B5Q")
        and "S7Y1NX0W000000 (nvme0n1)" in lines[1]
    )
    assert lines[2].startswith("7 \u00d7 SAMSUNG") and lines[2].endswith("nvme6n1 and 1 more)")


def column(*texts: str) -> list[float]:
    return [row[1].room_em for row in filled(Table(("", ""), "tn", tuple(("", text) for text in texts)))]


def test_points_of_a_column_stand_below_each_other() -> None:
    digit, point = 0.636, 0.318
    assert column("1.25", "10.5", "7") == pytest.approx([0, digit, 2 * digit + point], abs=0.02)
    assert column("1.349\u202fGiB/s", "12.5\u202fms", "\u2013")[2] == 0
    assert column("34\u202f746\u202f211", "0.7907", "198.9\u202fGB") == [0, 0, 0]  # of several kinds
    assert column("1.25\u202fms", "0", "10.5\u202fms")[2] > 0
    assert column("1.25", "about 3", "10.5") == [0, 0, 0]  # a text that is no quantity leaves the column alone


def test_a_reference_is_a_link_where_its_part_is_and_words_where_it_is_not() -> None:
    numbers = Numbers({("table", "tuning"): ("Table 3", "table-3")})
    text = f"see {see_table('tuning')} and {see_table('nothing', 'the file')} <b>"
    assert numbers.plain(text) == "see Table 3 and the file <b>"
    assert numbers.prose(text) == 'see <a class="ref" href="#table-3">Table\u00a03</a> and the file &lt;b&gt;'
