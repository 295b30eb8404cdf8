"""Sizes as people write them. GB = 10^9 bytes, GiB = 2^30 bytes; a bare `k`, `M` or `G` is refused because it means both.

Promise: one rule for profiles, command lines, the agent and Ansible's modules. These import this file as
`ansible.module_utils.bench_sizes`, so that it imports no other of the kit.
"""

from __future__ import annotations

import re
from fractions import Fraction

UNITS = {
    "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "MB": 10**6, "GB": 10**9, "TB": 10**12,
}  # fmt: skip
SIZE_MAX = 2**63  # B: what a file's offset may be
_SIZE = re.compile(r"^\s*(\d{1,30}(?:\.\d{1,30})?)\s*([A-Za-z]*)\s*$", re.ASCII)


def parse_size(text: str | int) -> int:
    """Bytes of `8MiB`, `4 GiB`, `1.5GB` or a plain number of bytes. Raises ValueError with the remedy."""
    match = _SIZE.match(str(text))
    if not match:
        raise ValueError(f"{text!r} is not a size; write for example 8MiB (2^20 bytes) or 8MB (10^6 bytes)")
    number, unit = match.groups()
    if unit and unit not in UNITS:
        raise ValueError(f"{text!r} has unit {unit!r}; use one of {', '.join(UNITS)}")
    value = Fraction(number) * UNITS[unit or "B"]  # exact: a float is not, beyond 2^53 B
    if value.denominator != 1:
        raise ValueError(f"{text!r} is not a whole number of bytes")
    if value >= SIZE_MAX:
        raise ValueError(f"{text!r} is more than any file can have")
    return int(value)


def size_with_unit(text: str) -> int:
    """The same where a plain number is refused, too."""
    try:
        if text.strip()[-1:].isalpha():
            return parse_size(text)
    except ValueError:
        pass
    raise ValueError(f"{text!r} is not a size with its unit, e.g. 8GiB; units: {', '.join(UNITS)}")
