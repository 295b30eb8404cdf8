"""Tells how many points of each measurement were made, are in the spool, or were thinned.

Promise: for each measurement and in total, collected = spooled + thinned + unspooled, whenever one looks.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from daq_bench.telemetry_agent.base.files import utc_text

THINNINGS_KEPT_MAX = 200
THINNING_GAP_NS = 60_000_000_000  # thinnings for one reason that lie closer together are one entry


def measurement_of(line: bytes) -> str:
    """The measurement of a line. Ours hold no comma or space; any other is cut before an escaped one."""
    return line.split(b" ", 1)[0].split(b",", 1)[0].decode("utf-8", "replace")


class Thinned(NamedTuple):
    """The points that were left out: their counts by measurement, those of them that InfluxDB has, and the times that they span."""

    points: Mapping[str, int]
    delivered: Mapping[str, int]
    from_ns: int
    to_ns: int
    reason: str

    @property
    def total(self) -> int:
        """All points."""
        return sum(self.points.values())


def together(parts: Iterable[Thinned], reason: str) -> Thinned:
    """The sum of several."""
    found = [part for part in parts if part.points]
    points: Counter[str] = Counter()
    delivered: Counter[str] = Counter()
    for part in found:
        points.update(part.points)
        delivered.update(part.delivered)
    first = min([part.from_ns for part in found], default=0)
    return Thinned(points, delivered, first, max([part.to_ns for part in found], default=0), reason)


class Ledger:
    """The spool's counts, by measurement. Several threads write: one lock guards it all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._collected: Counter[str] = Counter()
        self._spooled: Counter[str] = Counter()
        self._thinned: Counter[str] = Counter()
        self._thinned_delivered: Counter[str] = Counter()
        self._entries: list[Thinned] = []
        self.collected_points = self.spooled_points = self.thinned_points = 0

    def collect(self, counts: Mapping[str, int]) -> None:
        """Points were handed over."""
        with self._lock:
            self._collected.update(counts)
            self.collected_points += sum(counts.values())

    def spool(self, counts: Mapping[str, int]) -> None:
        """Points are in the file."""
        with self._lock:
            self._spooled.update(counts)
            self.spooled_points += sum(counts.values())

    def thin(self, thinned: Thinned, from_file: bool) -> None:
        """Points were left out; those `from_file` were in it before."""
        with self._lock:
            self._thinned.update(thinned.points)
            self._thinned_delivered.update(thinned.delivered)
            self.thinned_points += thinned.total
            if from_file:
                self._spooled.subtract(thinned.points)
                self.spooled_points -= thinned.total
            self._enter(thinned)

    def recover(self, spooled: Mapping[str, int], thinned: Iterable[Thinned]) -> None:
        """Counts what an earlier agent left in the file: its points, and its comments on those that went."""
        self.collect(spooled)
        self.spool(spooled)
        for part in thinned:
            self.collect(part.points)
            self.thin(part, from_file=False)

    def measurements(self) -> dict[str, dict[str, int]]:
        """The `measurements` section of summary.json."""
        with self._lock:
            return {
                name: {
                    "collected": self._collected[name],
                    "spooled": self._spooled[name],
                    "thinned": self._thinned[name],
                    "thinned_delivered": self._thinned_delivered[name],
                }
                for name in sorted(self._collected)
            }

    def totals(self) -> dict[str, int]:
        """Collected, spooled, thinned, and thinned after delivery, at one moment."""
        with self._lock:
            return {
                "collected": self.collected_points,
                "spooled": self.spooled_points,
                "thinned": self.thinned_points,
                "thinned_delivered": sum(self._thinned_delivered.values()),
            }

    def thinnings(self) -> list[dict[str, Any]]:
        """When, why and how many, in the order in which it began."""
        with self._lock:
            return [
                {
                    "from_utc": utc_text(part.from_ns / 1e9),
                    "to_utc": utc_text(part.to_ns / 1e9),
                    "reason": part.reason,
                    "points": part.total,
                }
                for part in self._entries
            ]

    def _enter(self, thinned: Thinned) -> None:
        for index in range(len(self._entries) - 1, -1, -1):
            entry = self._entries[index]
            near = thinned.from_ns - entry.to_ns <= THINNING_GAP_NS and entry.from_ns - thinned.to_ns <= THINNING_GAP_NS
            if entry.reason == thinned.reason and (near or len(self._entries) >= THINNINGS_KEPT_MAX):
                self._entries[index] = together((entry, thinned), thinned.reason)
                return
        self._entries.append(thinned)
