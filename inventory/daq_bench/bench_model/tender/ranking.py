"""Places of contenders by what was decided between each two of them, and which ones nothing beats. Pure.

A place is an interval: a contender is at best one place behind those that are certainly better, and at worst ahead of those alone
that are certainly worse. Where nothing is decided, everybody shares all places."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

Beats = Mapping[str, Collection[str]]  # name -> those that it is better than


@dataclass(frozen=True)
class Place:
    best: int
    worst: int


def places(names: Sequence[str], better_than: Beats) -> dict[str, Place]:
    """Each contender's first and last possible place, counted from 1."""
    found = {}
    for name in names:
        ahead = sum(name in better_than.get(other, ()) for other in names)
        behind = sum(other in better_than.get(name, ()) for other in names)
        found[name] = Place(1 + ahead, len(names) - behind)
    return found


def unbeaten(names: Sequence[str], better_than: Beats) -> list[str]:
    """Those that no other is better than, in the order of `names`."""
    return [name for name in names if not any(name in better_than.get(other, ()) for other in names)]
