"""The decoder's counterpart, for simulated tools and tests: writes a histogram in HdrHistogram's V2 encoding, straight from the layout."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping

HALF_BITS = 10  # three significant digits: 2048 sub-buckets, of which half are new in each later bucket


def slot_of(value: int) -> int:
    bucket = max(0, value.bit_length() - (HALF_BITS + 1))
    return (bucket << HALF_BITS) + (value >> bucket)


def _varint(value: int) -> bytes:
    rest = ((value << 1) ^ (value >> 63)) & 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while rest > 0x7F and len(out) < 8:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def encode(counts: Mapping[int, int], *, deflate: bool = True) -> str:
    """Base64 of values (whole numbers) and how often each occurred."""
    slots: dict[int, int] = {}
    for value, number in counts.items():
        slots[slot_of(value)] = slots.get(slot_of(value), 0) + number
    payload, at = b"", 0
    for slot in sorted(slots):
        if slot > at:
            payload += _varint(at - slot)
        payload += _varint(slots[slot])
        at = slot + 1
    plain = struct.pack(">iiiiqqd", 0x1C849313, len(payload), 0, 3, 1, 3_600_000_000_000, 1.0) + payload
    if deflate:
        packed = zlib.compress(plain)
        plain = struct.pack(">ii", 0x1C849314, len(packed)) + packed
    return base64.b64encode(plain).decode()
