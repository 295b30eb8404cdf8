"""Decodes an HdrHistogram from its V2 interchange encoding (base64, deflated or plain).

Promise: counts come back exactly as recorded; anything malformed raises ValueError saying what.
The layout is HdrHistogram's public V2 encoding: a 40-byte big-endian header, then counts as zig-zag LEB128
integers of at most nine bytes, where a negative number stands for a run of empty slots.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

HEADER = struct.Struct(">iiiiqqd")
COOKIE_V2 = 0x1C849303
COOKIE_V2_COMPRESSED = 0x1C849304
COOKIE_MASK = ~0xF0  # these four bits hold the word size, which V2 does not use
MAX_PAYLOAD_BYTES = 64 * 1024 * 1024
LAST_VARINT_BYTE = 8


@dataclass(frozen=True)
class Histogram:
    """Recorded values: `highest[i]` is the largest value that slot i stands for, `counts[i]` how often."""

    lowest: tuple[int, ...]
    highest: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.counts)

    def value_at(self, percentile: float) -> int:
        """The highest value equivalent to the one at this percentile, as HdrHistogram defines it."""
        return self.value_of_rank(self.rank_of(percentile))

    def rank_of(self, percentile: float) -> int:
        """The place, counted from 1, of a percentile's value. Exact: 99.9 % of 1000 values are 999 of them."""
        return max(1, math.ceil(Fraction(str(percentile)) * self.total / 100))

    def value_of_rank(self, rank: int) -> int:
        """The rank-th smallest value; a rank outside of the values gives the nearest one."""
        if not self.counts:
            raise ValueError("the histogram is empty")
        wanted, seen = max(1, rank), 0
        for value, number in zip(self.highest, self.counts, strict=True):
            seen += number
            if seen >= wanted:
                return value
        return self.highest[-1]


def decode(text: str) -> Histogram:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"not base64: {error}") from error
    return decode_bytes(data)


def decode_bytes(data: bytes) -> Histogram:
    if len(data) < 8:
        raise ValueError(f"only {len(data)} bytes")
    cookie, length = struct.unpack_from(">ii", data)
    if cookie & COOKIE_MASK == COOKIE_V2_COMPRESSED & COOKIE_MASK:
        data = _inflated(data[8 : 8 + length])  # which holds counts, and nothing that is compressed again
        if len(data) < 8:
            raise ValueError(f"only {len(data)} bytes")
        (cookie,) = struct.unpack_from(">i", data)
    if cookie & COOKIE_MASK != COOKIE_V2 & COOKIE_MASK:
        raise ValueError(f"unknown cookie 0x{cookie & 0xFFFFFFFF:08x}")
    if len(data) < HEADER.size:
        raise ValueError("the header is cut short")
    _, length, offset, digits, lowest, highest, _ = HEADER.unpack_from(data)
    if offset != 0:
        raise ValueError(f"normalising offset {offset} is not supported")
    if not 0 <= digits <= 5 or lowest < 1 or highest < 2 * lowest:
        raise ValueError(f"impossible range: {lowest} to {highest} at {digits} digits")
    payload = data[HEADER.size : HEADER.size + length]
    if len(payload) != length:
        raise ValueError(f"{length} bytes of counts announced, {len(payload)} present")
    return _slots(payload, digits, lowest)


def _inflated(data: bytes) -> bytes:
    engine = zlib.decompressobj()
    try:
        plain = engine.decompress(data, MAX_PAYLOAD_BYTES)
    except zlib.error as error:
        raise ValueError(f"cannot inflate: {error}") from error
    if not engine.eof:
        raise ValueError("the deflated data is cut short or too large")
    return plain


def _slots(payload: bytes, digits: int, lowest: int) -> Histogram:
    unit_magnitude = lowest.bit_length() - 1
    half_magnitude = max(1, math.ceil(math.log2(2 * 10**digits))) - 1
    lows: list[int] = []
    highs: list[int] = []
    counts: list[int] = []
    index = 0
    for number in _varints(payload):
        if number < 0:
            index += -number
            continue
        if number > 0:
            low, width = _slot(index, half_magnitude, unit_magnitude)
            lows.append(low)
            highs.append(low + width - 1)
            counts.append(number)
        index += 1
    return Histogram(tuple(lows), tuple(highs), tuple(counts))


def _slot(index: int, half_magnitude: int, unit_magnitude: int) -> tuple[int, int]:
    """The lowest value and the width of a slot."""
    half = 1 << half_magnitude
    bucket = (index >> half_magnitude) - 1
    position = (index & (half - 1)) + half
    if bucket < 0:
        bucket, position = 0, position - half
    shift = bucket + unit_magnitude
    return position << shift, 1 << shift


def _varints(payload: bytes) -> Iterator[int]:
    at = 0
    while at < len(payload):
        value = shift = 0
        for position in range(LAST_VARINT_BYTE + 1):
            if at >= len(payload):
                raise ValueError("the counts are cut short")
            byte = payload[at]
            at += 1
            # the ninth byte carries eight bits, having no need of a continuation flag
            value |= (byte if position == LAST_VARINT_BYTE else byte & 0x7F) << shift
            shift += 7
            if position == LAST_VARINT_BYTE or not byte & 0x80:
                break
        yield (value >> 1) ^ -(value & 1)
