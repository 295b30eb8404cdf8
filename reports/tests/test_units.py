"""Numbers on paper: significant digits, decimal and binary units, and differences that rounding must not hide."""

from __future__ import annotations

import pytest

from daq_bench.bench_report.base import units
from daq_bench.bench_report.document.table import Table


def plain(text: str) -> str:
    return text.replace(units.THIN, " ")


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [
        (9.24288, 4, "9.243"), (0.0, 4, "0"), (0.00001234, 3, "1.23 \u00d7 10\u207b\u2075"), (0.04, 3, "0.0400"), (9.9996, 4, "10.00"),
        (123456.0, 4, "123 500"), (-1.5, 2, "\u22121.5"), (99999, 4, "100 000"),
    ],
)  # fmt: skip
def test_significant_digits_survive_any_magnitude(value: float, digits: int, expected: str) -> None:
    assert plain(units.significant(value, digits)) == expected


def test_trimming_drops_only_zeros_that_carry_nothing() -> None:
    assert units.significant(10.0, trim=True) == "10"
    assert units.significant(0.9243, trim=True) == "0.9243"
    assert plain(units.significant(120000.0, trim=True)) == "120 000"


@pytest.mark.parametrize("value", [1e-9, 0.049, 0.5, 999.9999, 1e9 - 1, 1e15, 5e-324])
def test_no_value_reads_as_zero(value: float) -> None:
    for text in (
        units.significant(value, 3),
        units.decimal_rate(value),
        units.latency(value),
        units.duration(value),
    ):
        assert any(digit in text.split("\u00d7")[0] for digit in "123456789"), text


def test_the_real_demand_in_both_units() -> None:
    real = 10 * 166_000 * 5568
    assert plain(units.in_gb_per_s(real)) == "9.243 GB/s"
    assert plain(units.in_gib_per_s(real)) == "8.608 GiB/s"


def test_the_prefix_is_chosen_after_rounding() -> None:
    assert plain(units.decimal_rate(999.96e6)) == "1.000 GB/s"
    assert plain(units.latency(999.9)) == "1.00 ms"
    assert plain(units.binary_size(4096)) == "4 KiB"
    assert plain(units.binary_size(32 * 2**20)) == "32 MiB"


def test_a_count_is_exact() -> None:
    assert plain(units.count(3306078)) == "3 306 078"
    assert units.count(1234) == "1234"


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("measured 34746211, bound = 0", "measured 34 746 211, bound = 0"),
        ("8388608 B of 12345.", "8 388 608 B of 12 345."),
        ("1234 of 9.26712 GB/s at 1048576.5 B", "1234 of 9.26712 GB/s at 1048576.5 B"),
        ("run 20260929T141320Z-a, port host:50051, /dev/123456, X100000", None),
    ],
)
def test_only_whole_numbers_of_a_sentence_are_grouped(told: str, shown: str | None) -> None:
    assert units.grouped_in(told).replace(units.THIN, " ") == (shown or told)


def test_bound_and_measured_share_the_requirements_unit() -> None:
    assert plain(units.quantity(0.0421, "GB")) == "0.04210 GB"
    assert plain(units.quantity(1000, "ms")) == "1000 ms"
    assert plain(units.quantity(76.5, "degC")) == "76.50 \u00b0C"
    assert units.quantity(0, "count") == "0"


@pytest.mark.parametrize(("value", "bound"), [(0.9999998, 1.0), (9.2428799, 9.24288), (8.49999999, 8.5)])
def test_a_miss_by_a_hair_never_looks_like_the_bound(value: float, bound: float) -> None:
    shown = units.quantity_beside(value, bound, "GB/s")
    assert shown != units.quantity(bound, "GB/s", trim=True)
    assert float(shown.split(units.THIN)[0]) < bound


def test_a_value_at_the_bound_is_written_plainly() -> None:
    assert units.quantity_beside(1.0, 1.0, "1") == "1"


def cells(*texts: str) -> tuple[str, ...]:
    return tuple(text.replace(" ", units.THIN) for text in texts)


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (("594 \u00b5s", "5.01 ms", "\u2013", "549 ms"), ("0.594 ms", "5.01 ms", "\u2013", "549 ms")),
        (("315.5 MB/s", "1.047 GB/s"), ("0.3155 GB/s", "1.047 GB/s")),
        (("12 345 MB/s", "20.00 GB/s"), ("12.345 GB/s", "20.00 GB/s")),
        (("0 B/s", "\u22123.20 MB/s", "1.0 GB/s"), ("0 GB/s", "\u22120.00320 GB/s", "1.0 GB/s")),
    ],
)
def test_a_column_of_a_table_reads_in_one_unit_and_keeps_its_digits(
    column: tuple[str, ...], shown: tuple[str, ...]
) -> None:
    assert Table(("Value",), "n", tuple((text,) for text in cells(*column))).rows == tuple(
        (text,) for text in cells(*shown)
    )


@pytest.mark.parametrize(
    "column",
    [
        ("4 KiB", "1 MiB"),  # names of blocks
        ("3 \u00b5s", "12.5 GB"),  # not alike
        ("3 \u00b5s", "12.5 s"),  # too far apart to be read in one unit
        ("2 min 04 s", "3.2 ms"),
        ("0 B/s", "0 GB/s"),
        ("5 s", "7 s"),
    ],
)
def test_units_that_do_not_belong_together_stay(column: tuple[str, ...]) -> None:
    assert units.in_one_unit(cells(*column)) == cells(*column)


def test_only_the_first_line_of_numbers_is_moved() -> None:
    rows = ((*cells("1.0 GB"), *cells("1.0 GB")), (cells("200 MB")[0] + "\n5 kB more", *cells("200 MB")))
    table = Table(("Size", "Note"), "nt", rows)
    assert table.rows[1] == (cells("0.200 GB")[0] + "\n5 kB more", *cells("200 MB"))


def test_whole_numbers_beside_each_other_have_no_point_and_others_have_the_same_digits() -> None:
    assert units.together((10.0, 9.0, 11.0)) == ("10", "9", "11")
    assert units.together((10.7, 10.0, 11.0)) == ("10.70", "10.00", "11.00")
    assert units.together((3.92,)) == ("3.92",)
    assert units.span((-1.0, 1.0)) == f"{units.MINUS}1 to 1" and units.span((0.98, 1.02)) == "0.980 to 1.02"
