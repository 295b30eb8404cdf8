"""A distribution of latencies, by whatever measured it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Latency:
    """Percentiles in us; `hdr` is the whole distribution in HdrHistogram's encoding, when exported."""

    definition: str | None
    count: int | None
    points_us: tuple[tuple[float, float], ...]  # (percentile, us), increasing; 100 is the maximum
    min_us: float | None
    mean_us: float | None
    hdr: str | None
    hdr_unit: str | None  # of the encoded values
