"""The drives' identity and health, the alignment of their numbers, and references between parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench_report.base.marks import Numbers, see_table
from bench_report.document.alignment import filled
from bench_report.document.table import Table
from bench_report.reading.load import load
from bench_report.tables.drives import MOST_ROWS, drive_lines, drive_table, smart_raw_table, smart_table

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


def test_many_drives_are_shortened_and_none_of_what_got_worse_is_lost(bundle_with: Maker) -> None:
    bundle = load(bundle_with(drives=64, smart_worse=True))
    table, raw = smart_table(bundle), smart_raw_table(bundle)
    assert table is not None and raw is not None
    assert (
        len(table.rows) == MOST_ROWS and table.rows[0][:2] == ("/dev/nvme0n1", "media errors") and table.marked == {0}
    )
    assert len(raw.rows) == 64 * 14
    identity = drive_table(bundle)
    assert identity is not None and len(identity.rows) == 65


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
    assert column("1.25", "about 3", "10.5") == [0, 0, 0]  # a text that is no quantity leaves the column alone


def test_a_reference_is_a_link_where_its_part_is_and_words_where_it_is_not() -> None:
    numbers = Numbers({("table", "tuning"): ("Table 3", "table-3")})
    text = f"see {see_table('tuning')} and {see_table('nothing', 'the file')} <b>"
    assert numbers.plain(text) == "see Table 3 and the file <b>"
    assert numbers.prose(text) == 'see <a class="ref" href="#table-3">Table\u00a03</a> and the file &lt;b&gt;'
