"""Names, strings and durations as InfluxQL writes them.

Promise: the role that sets a server up and the rig that asks one quote and count alike. Ansible's modules import this file as
`ansible.module_utils.bench_influxql`, so that it imports no other of the kit.
"""

from __future__ import annotations

import re

UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def name_in(text: str) -> str:
    """Quote an identifier."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def string_in(text: str) -> str:
    """Quote a string."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def duration_s(text: str) -> int:
    """Return an InfluxQL duration (30d, 720h0m0s, INF) in seconds; 0 is for ever. ValueError for any other text."""
    if text.upper() in ("INF", "0", "0S"):
        return 0
    parts = re.findall(r"(\d+)([smhdw])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is not a duration: write a whole number with s, m, h, d or w, such as 30d, or INF")
    return sum(int(number) * UNITS_S[unit] for number, unit in parts)


def duration_text(seconds: int) -> str:
    """Return seconds as InfluxDB itself prints them in a query: in the largest unit that divides them."""
    for unit, size in sorted(UNITS_S.items(), key=lambda pair: -pair[1]):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return "INF"
