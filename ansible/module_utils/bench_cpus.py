"""The kernel's CPU lists, such as `0-3,8`. Pure. Runs on the candidate: Python 3.9, standard library only."""

from __future__ import annotations

import re
from collections.abc import Iterable

CPUS_MAX = 65536  # the kernel's own bound is 8192
SHOWN_MAX = 300  # characters of a text that is no list


def parse_cpus(text: str) -> set[int]:
    """Return the CPUs of a list; systemd separates by blanks what the kernel separates by commas."""
    cpus: set[int] = set()
    for part in re.split(r"[,\s]+", text.strip()):
        if not part:
            continue
        found = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part)
        if not found:
            raise ValueError(f"{text[:SHOWN_MAX]!r} is no list of CPUs; write one such as 2-7 or 2,4-5")
        first, last = int(found.group(1)), int(found.group(2) or found.group(1))
        if last >= CPUS_MAX:
            raise ValueError(f"{text[:SHOWN_MAX]!r} is no list of CPUs: Linux has fewer than {CPUS_MAX}")
        if last < first:
            raise ValueError(f"{text[:SHOWN_MAX]!r} is no list of CPUs: {part} runs backwards")
        cpus.update(range(first, last + 1))
    return cpus


def format_cpus(cpus: Iterable[int]) -> str:
    """Return the shortest list."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and cpu == ranges[-1][1] + 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def cpus_left(isolated: str, online: str) -> str:
    """Return the CPUs that the system keeps when some are isolated; ValueError where that cannot be."""
    wanted, there = parse_cpus(isolated), parse_cpus(online)
    if not wanted:
        raise ValueError("names no CPU; write a list such as 2-7, or leave it out")
    absent = wanted - there
    if absent:
        raise ValueError(f"is {isolated}: this machine has no CPU {format_cpus(absent)} online (online: {online})")
    if wanted == there:
        raise ValueError(f"is {isolated}: that leaves the system no CPU (online: {online}); leave one out, usually 0")
    return format_cpus(there - wanted)
