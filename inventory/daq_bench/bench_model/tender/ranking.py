"""Places of contenders by what was decided between each two of them, which ones nothing beats, and which are dominated. Pure.

A place is an interval: a contender is at best one place behind those that are certainly better, and at worst ahead of those alone
that are certainly worse. Where nothing is decided, everybody shares all places.

A contender is dominated where another is no worse in anything and better in something. Where a value is an interval, *dominated for
certain* means that it holds wherever the values lie within their intervals."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from daq_bench.bench_model.documents.comparison import Dominance

FRONT: Final = "front"
MAYBE: Final = "maybe dominated"
DOMINATED: Final = "dominated"
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


@dataclass(frozen=True)
class Range:
    """A value between the ends of its interval, larger being better; `low` = `high` where it is known exactly."""

    value: float
    low: float
    high: float


def dominance(points: Mapping[str, Sequence[Range]]) -> dict[str, tuple[Dominance, list[str]]]:
    """Returns the kind of each contender (front, maybe dominated or dominated) and the names of those that dominate it.

    *dominated*: certainly, by at least one. *maybe dominated*: by the estimates alone. Raises ValueError for unequal lengths."""
    if len({len(one) for one in points.values()}) > 1:
        raise ValueError("contenders have different numbers of criteria")
    found: dict[str, tuple[Dominance, list[str]]] = {}
    for name, own in points.items():
        others = {other: values for other, values in points.items() if other != name}
        surely = [other for other, values in others.items() if _dominates(values, own, certain=True)]
        likely = [other for other, values in others.items() if _dominates(values, own, certain=False)]
        found[name] = (DOMINATED, surely) if surely else (MAYBE, likely) if likely else (FRONT, [])
    return found


def _dominates(better: Sequence[Range], worse: Sequence[Range], certain: bool) -> bool:
    if certain:
        pairs = [(one.low, other.high) for one, other in zip(better, worse, strict=True)]
    else:
        pairs = [(one.value, other.value) for one, other in zip(better, worse, strict=True)]
    return all(one >= other for one, other in pairs) and any(one > other for one, other in pairs)
