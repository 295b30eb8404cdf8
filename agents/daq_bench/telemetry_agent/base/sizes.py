"""Sizes on the command line. GB = 10^9 bytes, GiB = 2^30 bytes; a number without a unit is refused."""

from __future__ import annotations

import re

_UNITS = {
    "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "MB": 10**6, "GB": 10**9, "TB": 10**12,
}  # fmt: skip
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-z]*)")


def parse_size(text: str) -> int:
    """Bytes of e.g. `8GiB`. Raises ValueError with the remedy."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"{text!r} is not a size with its unit, e.g. 8GiB; units: {', '.join(_UNITS)}")
    return int(float(match[1]) * _UNITS[match[2]])
