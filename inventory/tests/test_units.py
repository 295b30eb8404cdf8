"""Sizes and units: GB and GiB are never mixed, and what is ambiguous is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daq_bench.bench_model.base.units import (
    GB,
    GIB,
    binary_label,
    convert,
    convert_earlier,
    decimal_label,
    in_digits,
    never_negative,
    of_temperature,
    rate_label,
)
from daq_bench.candidate_kit.sizes import parse_size


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("8MiB", 8 * 2**20), ("4 GiB", 4 * 2**30), ("1.5GB", 1_500_000_000), ("4096", 4096), (512, 512), ("0.5KiB", 512)],
)
def test_sizes_are_read_with_their_unit(text: str | int, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize("text", ["8k", "8M", "8G", "8kB", "MiB", "-1MiB", "1e3", "", "1.0000001KiB"])
def test_ambiguous_or_broken_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"use one of|write for example|whole number"):
        parse_size(text)


@given(st.integers(min_value=1, max_value=2**50))
def test_a_binary_label_reads_back_as_the_same_size(size_bytes: int) -> None:
    assert parse_size(binary_label(size_bytes)) == size_bytes


def test_gb_and_gib_differ_by_the_known_ratio() -> None:
    assert convert(8.5, "GiB/s", "GB/s") == pytest.approx(9.127, abs=5e-4)  # seed fact 2: 8.5 GiB/s = 9.127 GB/s
    assert convert(1, "GiB", "B") == GIB
    assert convert(1, "GB", "B") == GB


def test_units_of_different_kinds_do_not_convert() -> None:
    with pytest.raises(ValueError, match="is a rate and 's' a time"):
        convert(1, "GB/s", "s")
    with pytest.raises(ValueError, match="'Gb/s' is unknown"):
        convert(1, "Gb/s", "GB/s")


def test_a_difference_of_temperatures_is_no_temperature() -> None:
    """20 K below a limit are never 20 degC, nor is a bound of 343 K one of 343 degC."""
    for one, other in (("K", "degC"), ("degC", "K")):
        with pytest.raises(ValueError, match="difference of temperatures"):
            convert(20, one, other)
    assert of_temperature("K") and of_temperature("degC") and not of_temperature("W") and not of_temperature("unknown")
    assert not never_negative("K")


def test_an_earlier_run_that_recorded_a_difference_in_degc_has_its_place_beside_a_later_one_in_kelvin() -> None:
    assert convert_earlier(21.0, "degC", "K") == 21.0
    assert convert_earlier(1.0, "GB", "MB") == 1000.0
    with pytest.raises(ValueError, match="is a difference of temperatures and 'degC' a temperature"):
        convert_earlier(21.0, "K", "degC")


@pytest.mark.parametrize(
    ("rate", "label"),
    [
        (2.7e9, "2.7 GB/s"),  # of stored evidence that read "2.7e+03 MB/s"
        (999.4e6, "999 MB/s"),
        (999.6e6, "1 GB/s"),
        (999.6e9, "1000 GB/s"),
        (51.23456e6, "51.2 MB/s"),
        (-2.7e9, "-2.7 GB/s"),
        (0.0, "0 MB/s"),
        (1.0, "0 MB/s"),
        (345.0, "0.000345 MB/s"),
    ],
)
def test_a_rate_has_three_digits_and_no_exponent(rate: float, label: str) -> None:
    assert rate_label(rate) == label


def test_no_rate_that_a_server_has_is_told_with_an_exponent() -> None:
    for power in range(-20, 135):
        said = rate_label(1.37 * 10 ** (power / 10))
        assert "e" not in said.partition(" ")[0] and said.endswith(("MB/s", "GB/s")), said


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (68620.0, 4, "68620"),  # us: a report's table had "6.862e+04"
        (123456.7, 4, "123500"),  # IOPS
        (1234.0, 3, "1230"),
        (1e-6, 6, "0.000001"),
        (-2.5e-7, 4, "-0.00000025"),
        (1e9, 15, "1000000000"),
        (1234567.0, 15, "1234567"),
        (0.1, 15, "0.1"),
        (0.0, 4, "0"),
        (float("inf"), 4, "inf"),
        (float("nan"), 4, "nan"),
    ],
)
def test_a_number_in_a_sentence_has_no_exponent(value: float, digits: int, text: str) -> None:
    assert in_digits(value, digits) == text


def test_an_amount_of_data_has_no_exponent() -> None:
    """28 PB are the rated endurance of a drive of 15.36 TB at one drive write a day for five years."""
    assert [decimal_label(size) for size in (28.03e15, 1e16, 2**63, -1e16, 999.9e12)] == [
        "28.03 PB", "10 PB", "9.223 EB", "-10 PB", "999.9 TB",
    ]  # fmt: skip
    assert "e" not in decimal_label(1e25).lower().removesuffix("eb")


def test_decimal_labels_keep_their_digits() -> None:
    assert [decimal_label(size) for size in (18_485_760_000, 999, 80.1e9)] == ["18.49 GB", "999 B", "80.1 GB"]
