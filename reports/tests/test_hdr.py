"""The HdrHistogram decoder against an encoder written from the format's layout, and against damage."""

from __future__ import annotations

import base64
import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daq_bench.bench_model.statistics import hdr
from daq_bench.simulation.tools.hdr_writer import encode


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(st.integers(0, 3_600_000_000_000), st.integers(1, 2**40), min_size=1, max_size=40),
    st.booleans(),
)
def test_every_count_comes_back_within_the_histograms_resolution(counts: dict[int, int], deflate: bool) -> None:
    decoded = hdr.decode(encode(counts, deflate=deflate))
    assert decoded.total == sum(counts.values())
    for value in counts:
        assert any(low <= value <= high for low, high in zip(decoded.lowest, decoded.highest, strict=True))
    for low, high in zip(decoded.lowest, decoded.highest, strict=True):
        assert high - low <= max(1, low / 1000)


def test_small_values_are_exact() -> None:
    decoded = hdr.decode(encode({0: 1, 7: 3, 2047: 2}))
    assert (decoded.lowest, decoded.counts) == ((0, 7, 2047), (1, 3, 2))
    assert decoded.highest == decoded.lowest


def test_percentiles_follow_the_definition_of_the_format() -> None:
    decoded = hdr.decode(encode(dict.fromkeys(range(1, 1001), 1)))
    assert [decoded.value_at(share) for share in (0, 50, 99, 99.9, 100)] == [1, 500, 990, 999, 1000]


def test_a_known_encoding_decodes() -> None:
    # by hand: header, then -5 (five empty slots) as zig-zag 9 and 3 as zig-zag 6: the value 5, three times
    plain = struct.pack(">iiiiqqd", 0x1C849313, 2, 0, 3, 1, 3_600_000_000, 1.0) + bytes([9, 6])
    assert hdr.decode(base64.b64encode(plain).decode()) == hdr.Histogram((5,), (5,), (3,))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "bytes"), (b"\x00" * 48, "cookie"), (struct.pack(">iiiiqqd", 0x1C849313, 9, 0, 3, 1, 100, 1.0), "announced"),
        (struct.pack(">ii", 0x1C849314, 4) + b"junk", "inflate"), (struct.pack(">iiiiqqd", 0x1C849313, 1, 0, 3, 1,
        100, 1.0) + b"\x80", "cut short"),
        (struct.pack(">ii", 0x1C849314, 6) + zlib.compress(b"x" * 99)[:6], "cut short"),
    ],
)  # fmt: skip
def test_damage_is_named(data: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        hdr.decode(base64.b64encode(data).decode())


def test_what_is_not_base64_is_refused() -> None:
    with pytest.raises(ValueError, match="base64"):
        hdr.decode("not base64!")
